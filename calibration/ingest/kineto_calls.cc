// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/kineto_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "calibration/ingest/nccl_tests.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {
namespace {

// Sizes of real tensors stay far below; products of three fit in a double exactly enough.
constexpr double kLargestSize = 1e12;

// How many inputs stand before the two matrices; -1: no matrix product.
int MatricesAt(absl::string_view name) {
  if (name == "aten::mm" || name == "aten::bmm" || name == "aten::_scaled_mm") return 0;
  if (name == "aten::addmm" || name == "aten::baddbmm" || name == "aten::_addmm_activation") {
    return 1;
  }
  return -1;
}

// A list of whole numbers such as a shape.
std::optional<std::vector<int64_t>> Sizes(const JsonValue& list) {
  if (list.kind != JsonValue::Kind::kArray || list.items.size() > 8) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const JsonValue& item : list.items) {
    const auto number = item.AsNumber();
    if (!number || *number < 0 || *number > kLargestSize) return std::nullopt;
    sizes.push_back(static_cast<int64_t>(*number));
  }
  return sizes;
}

std::optional<std::vector<int64_t>> SizesAt(const JsonValue* lists, size_t index) {
  if (lists == nullptr || index >= lists->items.size()) return std::nullopt;
  return Sizes(lists->items[index]);
}

std::string DataTypeOf(const JsonValue* types, size_t index) {
  if (types == nullptr || index >= types->items.size()) return "";
  const std::string& name = types->items[index].text;
  if (name == "c10::BFloat16") return "bf16";
  if (name == "c10::Half") return "fp16";
  if (name == "float") return "fp32";
  if (absl::StartsWith(name, "c10::Float8")) return "fp8";
  return "";
}

// BLAS's letters for the row-major product: which of the two matrices lies transposed.
std::string LayoutOf(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const bool a_rows = a.back() == 1;
  const bool b_rows = b.back() == 1;
  const bool a_columns = a[a.size() - 2] == 1;
  const bool b_columns = b[b.size() - 2] == 1;
  if (a_rows && b_columns && !b_rows) return "TN";
  if (a_rows && b_rows) return "NN";
  if (a_columns && b_rows) return "NT";
  return "";
}

int64_t ElementBytes(absl::string_view type) {
  if (type == "BFloat16" || type == "Half") return 2;
  if (type == "Float" || type == "Int") return 4;
  if (type == "Double" || type == "Long") return 8;
  if (type == "Byte" || type == "Char" || type == "Bool" || absl::StartsWith(type, "Float8")) {
    return 1;
  }
  return 0;
}

}  // namespace

bool IsMatrixProduct(absl::string_view operator_name) { return MatricesAt(operator_name) >= 0; }

void MatrixProducts::AddOperator(absl::string_view operator_name, const JsonValue& args) {
  const int at = MatricesAt(operator_name);
  const auto id = args.Number("External id");
  if (at < 0 || !id || shape_of_call_.size() >= kCallLimit) return;
  const auto first = static_cast<size_t>(at);
  const JsonValue* dims = args.FindObject("Input Dims");
  const auto a = SizesAt(dims, first);
  const auto b = SizesAt(dims, first + 1);
  const std::string type = DataTypeOf(args.FindObject("Input type"), first);
  if (!a || !b || type.empty() || a->size() != b->size() || (a->size() != 2 && a->size() != 3)) {
    return;
  }
  const int64_t batch = a->size() == 3 ? a->front() : 1;
  const int64_t m = (*a)[a->size() - 2];
  const int64_t k = a->back();
  const int64_t n = b->back();
  if (m < 1 || n < 1 || k < 1 || batch < 1 || (*b)[b->size() - 2] != k) return;
  const JsonValue* strides = args.FindObject("Input Strides");
  const auto a_strides = SizesAt(strides, first);
  const auto b_strides = SizesAt(strides, first + 1);
  std::string layout;
  if (a_strides && b_strides && a_strides->size() == a->size() && b_strides->size() == b->size()) {
    layout = LayoutOf(*a_strides, *b_strides);
  }
  Shape shape(m, n, k, batch, type, layout);
  const auto [known, added] = index_.emplace(std::move(shape), shapes_.size());
  if (added) shapes_.push_back(known->first);
  shape_of_call_.emplace(static_cast<int64_t>(std::clamp(*id, -1e15, 1e15)), known->second);
}

void MatrixProducts::AddKernel(int64_t external_id, double seconds) {
  if (seconds_of_call_.size() < kCallLimit || seconds_of_call_.contains(external_id)) {
    seconds_of_call_[external_id] += seconds;
  }
}

std::vector<KinetoGemm> MatrixProducts::Summary() const {
  std::vector<std::vector<double>> times(shapes_.size());
  for (const auto& [id, shape] : shape_of_call_) {
    const auto seconds = seconds_of_call_.find(id);
    if (seconds != seconds_of_call_.end() && seconds->second > 0) {
      times[shape].push_back(seconds->second);
    }
  }
  std::vector<KinetoGemm> gemms;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (times[i].empty()) continue;
    const auto& [m, n, k, batch, type, layout] = shapes_[i];
    gemms.push_back({m, n, k, batch, type, layout, static_cast<int64_t>(times[i].size()),
                     Median(times[i]).value_or(0)});
  }
  return gemms;
}

void CollectiveCalls::AddKernel(const JsonValue& args, double seconds, Refusals* refusals) {
  const absl::string_view name = args.Text("Collective name");
  if (name.empty() || count_ >= kCallLimit) return;
  const std::string collective =
      name == "send" || name == "recv" ? "send_recv" : CollectiveNamed(name);
  const auto group = args.Number("Group size");
  const auto in = args.Number("In msg nelems");
  const auto out = args.Number("Out msg nelems");
  const int64_t element = ElementBytes(args.Text("dtype"));
  if (collective.empty() || !group || !in || !out || element == 0 || *group < 1 || *group > 1e9) {
    refusals->Add("collective kernel without name, size or group", 0, name);
    return;
  }
  // nccl-tests count the larger of a rank's buffers.
  const double elements = std::max(*in, *out);
  if (!(elements > 0) || elements > kLargestSize) {
    refusals->Add("moves no bytes", 0, name);
    return;
  }
  if (*group < 2) {
    refusals->Add("one rank: nothing was communicated", 0, name);
    return;
  }
  if (!(seconds > 0)) {
    refusals->Add("no time was measured", 0, name);
    return;
  }
  ++count_;
  seconds_[Key(collective, static_cast<int64_t>(elements) * element, static_cast<int64_t>(*group))]
      .push_back(seconds);
}

std::vector<KinetoCollective> CollectiveCalls::Summary() const {
  std::vector<KinetoCollective> calls;
  for (const auto& [key, seconds] : seconds_) {
    calls.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), static_cast<int64_t>(seconds.size()),
         *std::min_element(seconds.begin(), seconds.end()), Median(seconds).value_or(0)});
  }
  return calls;
}

}  // namespace sextant::ingest
