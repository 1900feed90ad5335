// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/number.h"

#include <array>
#include <charconv>
#include <cmath>

namespace sextant::cli {

std::string ShortestNumber(double number) {
  if (!std::isfinite(number)) return "";
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return std::string(buffer.data(), result.ptr);
}

}  // namespace sextant::cli
