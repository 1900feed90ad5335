// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SERVING_SPECULATION_H_
#define SEXTANT_COMMON_SERVING_SPECULATION_H_

#include <cmath>
#include <cstdint>

// What does a token cost where a cheap draft proposes several and one pass of the model checks them
// together? Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding",
// ICML 2023. All O(1).
namespace sextant::serving {

struct Speculation {
  int64_t draft_tokens = 0;  // proposed in a step; 0: no speculation
  double acceptance = 0;     // probability that a proposal stands where those before it do; [0, 1]
  double draft_cost = 0;     // time of one draft pass over that of the pass that checks

  friend bool operator==(const Speculation&, const Speculation&) = default;
};

// Mean tokens of a step that checks `draft_tokens` proposals: the accepted ones and the one that the
// checking pass itself yields; equation 1 of the paper.
inline double TokensPerStep(const Speculation& s) {
  const double k = static_cast<double>(s.draft_tokens);
  if (s.acceptance >= 1) return k + 1;
  return (1 - std::pow(s.acceptance, k + 1)) / (1 - s.acceptance);
}

// Time of a step over that of its checking pass.
inline double StepOverPass(const Speculation& s) {
  return 1 + static_cast<double>(s.draft_tokens) * s.draft_cost;
}

// Proposals of `checked` that stand, for `uniform` in [0, 1).
inline int64_t AcceptedTokens(const Speculation& s, int64_t checked, double uniform) {
  if (checked <= 0 || s.acceptance <= 0) return 0;
  if (s.acceptance >= 1) return checked;
  const double run = std::floor(std::log1p(-uniform) / std::log(s.acceptance));
  return run < static_cast<double>(checked) ? static_cast<int64_t>(run) : checked;
}

}  // namespace sextant::serving

#endif  // SEXTANT_COMMON_SERVING_SPECULATION_H_
