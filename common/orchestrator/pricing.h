// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_PRICING_H_
#define SEXTANT_COMMON_ORCHESTRATOR_PRICING_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/orchestrator/graph.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/timeline_formula.h"

// A graph's blocks with the ports' times in place. O(uses).
namespace sextant::orchestrator {

PricedBlock PriceBlock(const Block& block, const PortAnswers& answers);
// Seconds of one decode attention kernel: the port's, or those of an engine whose kernel serves
// each query head by itself on vector units, at `vector_rate` FLOP/s (0: it does not). Kink where
// such a kernel begins to outlast its memory traffic. `index` -1: no such layer, 0 seconds.
double DecodeAttentionSeconds(const Graph& graph, const PortAnswers& answers, int index,
                              double vector_rate);
double PriceCollectives(const std::vector<CollectiveUse>& uses, const PortAnswers& answers);

// Seconds by what binds, summed over operators and communication; only shares matter.
class BindingShares {
 public:
  void Add(absl::string_view name, double seconds);
  void AddBlock(const Block& block, const PortAnswers& answers, double factor);
  void AddCollectives(const std::vector<CollectiveUse>& uses, const PortAnswers& answers,
                      double factor);
  // Names with at least 5 % of the total, largest first.
  std::vector<std::string> Largest();

 private:
  std::vector<std::pair<std::string, double>> shares_;
  double total_ = 0;
};

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_PRICING_H_
