// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/trace.h"

#include <map>

#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/orchestrator/test_jobs.h"
#include "gtest/gtest.h"

namespace sextant::orchestrator {
namespace {

// Law: the events of a track follow one another without gap or overlap from zero to the predicted
// total.
TEST(Trace, EveryTrackEndsAtThePredictedTime) {
  const auto set = std::make_shared<const parameters::ParameterSet>();
  LocalOperatorCost operators(set);
  LocalNetworkTime network(set);
  for (const workload::Job& job : {Megatron175(), LlamaTraining(), LlamaServing()}) {
    const absl::StatusOr<Trace> trace = TraceJob(job, operators, network);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const absl::StatusOr<Prediction> prediction = Predict(job, operators, network);
    ASSERT_TRUE(prediction.ok()) << prediction.status();
    std::map<int, double> ends;
    for (const TraceEvent& event : trace->events) {
      EXPECT_NEAR(event.start_seconds, ends[event.track], 1e-9 * prediction->total_seconds);
      EXPECT_GT(event.duration_seconds, 0) << event.name;
      ends[event.track] = event.start_seconds + event.duration_seconds;
    }
    EXPECT_EQ(ends.size(), trace->tracks.size());
    for (const auto& [track, end] : ends) {
      EXPECT_NEAR(end, prediction->total_seconds, 1e-9 * prediction->total_seconds) << track;
    }
  }
}

TEST(Trace, AServingLoadIsRefused) {
  const auto set = std::make_shared<const parameters::ParameterSet>();
  LocalOperatorCost operators(set);
  LocalNetworkTime network(set);
  workload::Job job = LlamaServing();
  job.serving = serving::ServingLoad{};
  EXPECT_FALSE(TraceJob(job, operators, network).ok());
}

}  // namespace
}  // namespace sextant::orchestrator
