// SPDX-License-Identifier: Apache-2.0
#include "services/runtime/request_id.h"

#include <algorithm>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace sextant::runtime {

std::string NewRequestId() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return absl::StrCat(absl::Hex(engine(), absl::kZeroPad16));
}

bool IsRequestId(absl::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

std::string RequestIdOf(const grpc::ServerContext& context) {
  const auto& metadata = context.client_metadata();
  if (metadata.count(kRequestIdKey) == 1) {
    const grpc::string_ref value = metadata.find(kRequestIdKey)->second;
    const absl::string_view text(value.data(), value.size());
    if (IsRequestId(text)) return std::string(text);
  }
  return NewRequestId();
}

}  // namespace sextant::runtime
