// SPDX-License-Identifier: Apache-2.0
#include "common/serving/step_cost.h"

#include <algorithm>
#include <utility>

namespace sextant::serving {
namespace {

// Segment of `x` in `points`, and how far along it: above 1 beyond the last point, 0 before the
// first.
struct Place {
  size_t index = 0;
  double share = 0;
};
Place Find(const std::vector<double>& points, double x) {
  if (points.size() < 2 || x <= points.front()) return {};
  const auto above = std::upper_bound(points.begin() + 1, points.end() - 1, x);
  const size_t index = static_cast<size_t>(above - points.begin()) - 1;
  return {index, (x - points[index]) / (points[index + 1] - points[index])};
}

double Mix(double a, double b, double share) { return a + (b - a) * share; }

}  // namespace

Line::Line(std::vector<double> x, std::vector<double> y) : x_(std::move(x)), y_(std::move(y)) {}

double Line::At(double x) const {
  if (y_.empty()) return 0;
  if (y_.size() == 1) return y_[0];
  const Place p = Find(x_, x);
  return Mix(y_[p.index], y_[p.index + 1], p.share);
}

Plane::Plane(std::vector<double> x, std::vector<double> y, std::vector<double> z)
    : x_(std::move(x)), y_(std::move(y)), z_(std::move(z)) {}

double Plane::At(double x, double y) const {
  if (z_.empty()) return 0;
  const Place px = Find(x_, x);
  const Place py = Find(y_, y);
  const size_t columns = y_.size();
  const auto row = [&](size_t i) {
    const double* z = z_.data() + i * columns;
    return columns < 2 ? z[0] : Mix(z[py.index], z[py.index + 1], py.share);
  };
  return x_.size() < 2 ? row(0) : Mix(row(px.index), row(px.index + 1), px.share);
}

StepCost::Attention StepCost::PromptAttention(int64_t tokens, int64_t before) const {
  const double x = static_cast<double>(tokens);
  const double y = static_cast<double>(before);
  return {.filled = tables_.prompt_attention_filled.At(x, y),
          .alone = tables_.prompt_attention_alone.At(x, y)};
}

double StepCost::Seconds(const StepLoad& load) const {
  const double stages = static_cast<double>(tables_.pipeline_stages);
  const double sequences = static_cast<double>(load.decode_sequences) / stages;
  const double decode = static_cast<double>(load.decode_tokens) / stages;
  const double tokens = static_cast<double>(load.prompt_tokens) / stages + decode;
  const bool prompt = load.prompt_tokens > 0;
  double device = prompt ? tables_.prompt_pass.At(tokens) : tables_.decode_pass.At(tokens);
  device += tables_.head.At(static_cast<double>(load.sampled_tokens) / stages);
  if (load.decode_sequences > 0) {
    const double attention =
        tables_.decode_attention.At(sequences, static_cast<double>(load.decode_context_tokens) /
                                                   static_cast<double>(load.decode_sequences));
    device += attention;
    if (tables_.draft_share > 0) {
      device += tables_.draft_share *
                (tables_.decode_pass.At(decode) + tables_.head.At(decode) + attention);
    }
  }
  if (prompt) {
    // Chunks share a kernel: at least its fixed time, and at least its longest chunk alone.
    device += std::max(tables_.prompt_attention_floor + load.prompt_attention_seconds / stages,
                       load.longest_prompt_attention_seconds);
  }
  if (load.adapters > 0) {
    device += tables_.adapter_kernels + tables_.adapter_read * static_cast<double>(load.adapters) +
              tables_.adapter_token * tokens;
  }
  if (load.images > 0) device += tables_.images.At(static_cast<double>(load.images));
  const double seconds = std::max(device, tables_.dispatch) + tables_.engine_step +
                         (prompt ? tables_.engine_prefill : 0.0) +
                         tables_.adapter_load * static_cast<double>(load.adapter_loads) +
                         tables_.engine_per_sequence * static_cast<double>(load.decode_sequences);
  return tables_.stretch * seconds;
}

}  // namespace sextant::serving
