// SPDX-License-Identifier: Apache-2.0
#include "common/sweep/space.h"

#include <set>
#include <tuple>

#include "common/sweep/test_sweeps.h"
#include "gtest/gtest.h"

namespace sextant::sweep {
namespace {

using workload::Job;

using Sizes = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // tensor, pipeline, context, data

// A job on which few rules but the divisors bind: heads and batch divide by much.
Job RoomyJob(int64_t gpu_count) {
  Job job = orchestrator::LlamaTraining();
  job.model = orchestrator::LlamaModel(10080, 96, 10080, 10080, 20160);
  job.model.head_size = 1;
  job.gpu_count = gpu_count;
  job.workload = workload::TrainingWorkload{.global_batch_size = gpu_count * 2,
                                            .sequence_length = 8 * gpu_count};
  job.plan = {};
  return job;
}

bool SomeMicroBatchIsLegal(Job job) {
  job.plan.micro_batch_size = 1;
  return workload::ValidateJob(job).ok();
}

// Every way to write the GPU count as a product of four, tried one by one against the rules of
// jobs. The inner loop needs no fourth: three sizes leave the last.
std::set<Sizes> LegalSizesByTrial(Job job) {
  std::set<Sizes> legal;
  const int64_t n = job.gpu_count;
  for (int64_t tp = 1; tp <= n; ++tp) {
    if (n % tp != 0) continue;
    for (int64_t pp = 1; pp <= n / tp; ++pp) {
      if (n / tp % pp != 0) continue;
      for (int64_t cp = 1; cp <= n / tp / pp; ++cp) {
        if (n / tp / pp % cp != 0) continue;
        job.plan.tensor_parallel_size = tp;
        job.plan.pipeline_parallel_size = pp;
        job.plan.context_parallel_size = cp;
        job.plan.data_parallel_size = n / tp / pp / cp;
        if (SomeMicroBatchIsLegal(job)) legal.insert({tp, pp, cp, n / tp / pp / cp});
      }
    }
  }
  return legal;
}

class DivisorLayouts : public testing::TestWithParam<int64_t> {};

TEST_P(DivisorLayouts, AreEnumeratedAllAndNoOthers) {
  for (const Job& job : {RoomyJob(GetParam()), [&] {
                           Job llama = RoomyJob(GetParam());
                           llama.model = Llama31Seventy();
                           return llama;
                         }()}) {
    std::set<Sizes> enumerated;
    for (const Cell& cell : EnumerateCells(WholePlanSpace(), job)) {
      EXPECT_TRUE(enumerated.insert({cell.tensor, cell.pipeline, cell.context, cell.data}).second);
    }
    EXPECT_EQ(enumerated, LegalSizesByTrial(job));
    EXPECT_GT(enumerated.size(), 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(GpuCounts, DivisorLayouts, testing::Values(1, 7, 12, 96, 2520, 3072));

// The whole of a small space, point by point: what is enumerated is what ValidateJob accepts, once
// dimensions that make no difference are held at their first value.
TEST(Layouts, OfASmallMixtureAreExactlyTheLegalOnes) {
  Job job = RoomyJob(12);
  job.model = orchestrator::LlamaModel(256, 6, 12, 12, 384);
  job.model.experts = {.expert_count = 6, .experts_per_token = 2, .expert_ffn_size = 384};
  job.workload = workload::TrainingWorkload{.global_batch_size = 24, .sequence_length = 96};

  const auto key = [](const Layout& l) {
    return std::make_tuple(l.tensor, l.pipeline, l.chunks, l.context, l.expert, l.data,
                           l.micro_batch, l.zero, l.sequence_parallel, l.schedule, l.recompute);
  };
  std::set<decltype(key(Layout{}))> enumerated;
  for (const Cell& cell : EnumerateCells(WholePlanSpace(), job)) {
    const std::vector<Layout> layouts = EnumerateLayouts(WholePlanSpace(), job, cell);
    EXPECT_EQ(static_cast<int64_t>(layouts.size()), CountLayouts(WholePlanSpace(), job, cell));
    for (const Layout& layout : layouts) EXPECT_TRUE(enumerated.insert(key(layout)).second);
  }

  std::set<decltype(key(Layout{}))> legal;
  const auto try_words = [&](Layout l) {
    for (int zero = 0; zero < (l.data * l.context == 1 ? 1 : 4); ++zero) {
      for (int sp = 0; sp < (l.tensor == 1 ? 1 : 2); ++sp) {
        for (int schedule = 0; schedule < 6; ++schedule) {
          if ((l.chunks > 1) != (schedule == 2)) continue;
          if (l.pipeline == 1 && schedule != 0) continue;
          for (int recompute = 0; recompute < 3; ++recompute) {
            l.zero = static_cast<int8_t>(zero);
            l.sequence_parallel = static_cast<int8_t>(sp);
            l.schedule = static_cast<int8_t>(schedule);
            l.recompute = static_cast<int8_t>(recompute);
            l.ApplyTo(job.plan);
            if (workload::ValidateJob(job).ok()) legal.insert(key(l));
          }
        }
      }
    }
  };
  for (int32_t tp = 1; tp <= 12; ++tp) {
    for (int32_t pp = 1; pp <= 12; ++pp) {
      for (int32_t cp = 1; cp <= 12; ++cp) {
        if (12 % (tp * pp * cp) != 0) continue;
        for (int32_t chunks = 1; chunks <= 6; ++chunks) {
          if (chunks > 1 && 6 % (chunks * pp) != 0) continue;
          for (int32_t ep = 1; ep <= 6; ++ep) {
            for (int32_t micro_batch = 1; micro_batch <= 24; ++micro_batch) {
              try_words({.tensor = tp,
                         .pipeline = pp,
                         .chunks = chunks,
                         .context = cp,
                         .expert = ep,
                         .data = 12 / (tp * pp * cp),
                         .micro_batch = micro_batch});
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(enumerated, legal);
  EXPECT_GT(legal.size(), 1000u);
}

TEST(Layouts, OnlyGivenValuesAreTaken) {
  PlanSpace space = WholePlanSpace();
  space.tensor_parallel_size = {.values = {2, 8}};
  space.micro_batch_size = {.values = {4}};
  space.recompute = {.values = {2}};
  const Job job = RoomyJob(96);
  int64_t count = 0;
  for (const Cell& cell : EnumerateCells(space, job)) {
    EXPECT_TRUE(cell.tensor == 2 || cell.tensor == 8);
    for (const Layout& layout : EnumerateLayouts(space, job, cell)) {
      EXPECT_EQ(layout.micro_batch, 4);
      EXPECT_EQ(layout.recompute, 2);
      ++count;
    }
  }
  EXPECT_GT(count, 0);
}

// Heads 28 and KV heads 4 (INPUTS.md 26): a tensor parallel size of 7 splits KV heads unevenly, 28
// replicates them; heads 52 on 8 ranks (27) never appear.
TEST(Layouts, TensorSizesFollowTheHeads) {
  Job job = RoomyJob(56);
  job.model = orchestrator::LlamaModel(3584, 28, 28, 4, 18816);
  std::set<int32_t> sizes;
  for (const Cell& cell : EnumerateCells(WholePlanSpace(), job)) sizes.insert(cell.tensor);
  EXPECT_EQ(sizes, (std::set<int32_t>{1, 2, 4, 28}));

  job.model.attention_head_count = job.model.kv_head_count = 52;
  sizes.clear();
  for (const Cell& cell : EnumerateCells(WholePlanSpace(), job)) sizes.insert(cell.tensor);
  EXPECT_EQ(sizes.count(8), 0u);
}

TEST(Layouts, ExclusionsAreExplained) {
  Job job = RoomyJob(96);
  job.model = Llama31Seventy();
  const std::vector<std::string> sentences = ExplainExclusions(WholePlanSpace(), job);
  ASSERT_FALSE(sentences.empty());
  EXPECT_NE(sentences[0].find("tensor_parallel_size 3, 6, 12, 24, 48, 96: must divide "
                              "attention_head_count 64"),
            std::string::npos)
      << sentences[0];
}

TEST(Layouts, AbsurdCountsAreEmptyNotEndless) {
  for (const int64_t gpus : {int64_t{0}, int64_t{-4}, int64_t{1} << 40}) {
    Job job = RoomyJob(8);
    job.gpu_count = gpus;
    EXPECT_TRUE(EnumerateCells(WholePlanSpace(), job).empty());
  }
  PlanSpace space;
  space.tensor_parallel_size.values = {0, 4};
  space.zero_stage.values = {4};
  EXPECT_FALSE(ValidatePlanSpace(space).ok());
}

}  // namespace
}  // namespace sextant::sweep
