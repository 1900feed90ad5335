// SPDX-License-Identifier: Apache-2.0
#include "services/orchestrator/estimate_cache.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace sextant::orchestrator_service {
namespace {

using operator_cost::AttentionShape;
using operator_cost::ExpertFfnShape;
using operator_cost::GemmShape;
using operator_cost::MemoryBoundShape;
using operator_cost::Operator;
using operator_cost::Precision;

TEST(OperatorKey, DiffersWheneverOneFieldDiffers) {
  const GemmShape gemm{.m = 2, .n = 3, .k = 5};
  std::vector<Operator> operators = {
      {gemm, Precision::kBf16},
      {gemm, Precision::kFp16},
      {GemmShape{.m = 3, .n = 2, .k = 5}, Precision::kBf16},
      {GemmShape{.m = 2, .n = 3, .k = 5, .batch_count = 2}, Precision::kBf16},
      {GemmShape{.m = 2, .n = 3, .k = 5, .group_count = 2}, Precision::kBf16},
      {GemmShape{.m = 2, .n = 3, .k = 5, .weight_precision = Precision::kInt4}, Precision::kBf16},
      {GemmShape{.m = 2, .n = 3, .k = 5, .block_scaled = true}, Precision::kBf16},
      {AttentionShape{}, Precision::kBf16},
      {AttentionShape{.causal = false}, Precision::kBf16},
      {AttentionShape{.latent_size = 576}, Precision::kBf16},
      {MemoryBoundShape{}, Precision::kBf16},
      {ExpertFfnShape{}, Precision::kBf16},
      {ExpertFfnShape{.imbalance = 1.5}, Precision::kBf16},
      {ExpertFfnShape{.block_scaled = true}, Precision::kBf16},
      {ExpertFfnShape{.weight_precision = Precision::kFp8}, Precision::kBf16},
  };
  std::set<OperatorKey> keys;
  for (const Operator& op : operators) keys.insert(KeyOf(op));
  EXPECT_EQ(keys.size(), operators.size());
  EXPECT_EQ(KeyOf(operators[0]), KeyOf(Operator{gemm, Precision::kBf16}));
}

TEST(EstimateCache, GivesBackWhatWasInsertedInTheSameContextOnly) {
  EstimateCache<CollectiveKey, double> cache(10);
  cache.Insert("a", {1}, 2.5);
  std::vector<double> values;
  EXPECT_EQ(cache.Find("a", {{{1}, {2}}}, &values), (std::vector<size_t>{1}));
  EXPECT_EQ(values[0], 2.5);
  EXPECT_EQ(cache.Find("b", {{{1}}}, &values), (std::vector<size_t>{0}));
}

TEST(EstimateCache, DropsTheContextsThatAreStale) {
  EstimateCache<CollectiveKey, double> cache(10);
  cache.Insert("old/a", {1}, 1.0);
  cache.Insert("old/b", {1}, 1.0);
  cache.Insert("new/a", {1}, 2.0);
  cache.Drop([](const std::string& context) { return context.substr(0, 3) == "old"; });
  std::vector<double> values;
  EXPECT_EQ(cache.Find("old/a", {{{1}}}, &values), (std::vector<size_t>{0}));
  EXPECT_TRUE(cache.Find("new/a", {{{1}}}, &values).empty());
  EXPECT_EQ(cache.size(), 1u);
}

TEST(EstimateCache, NeverHoldsMoreThanItsCapacity) {
  EstimateCache<CollectiveKey, double> cache(10);
  for (int64_t i = 0; i < 95; ++i) {
    cache.Insert(i % 2 == 0 ? "even" : "odd", {i}, 1.0);
    EXPECT_LE(cache.size(), 10u);
  }
  std::vector<double> values;
  EXPECT_TRUE(cache.Find("even", {{{94}}}, &values).empty());
}

}  // namespace
}  // namespace sextant::orchestrator_service
