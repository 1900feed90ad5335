// SPDX-License-Identifier: Apache-2.0
#include "common/resilience/checkpoint.h"

#include "common/orchestrator/stage_layout.h"

namespace sextant::resilience {

double CheckpointBytes(const workload::Job& job) {
  const auto& work = std::get<workload::TrainingWorkload>(job.workload);
  workload::Job whole = job;  // on one rank nothing is split or held twice
  whole.plan = workload::ParallelPlan();
  whole.gpu_count = 1;
  double trained = 0;
  for (const orchestrator::StageClass& stage : orchestrator::StageClasses(whole)) {
    trained += orchestrator::CountTrainedParameters(whole, stage).Total();
  }
  const double states = work.optimizer == workload::Optimizer::kAdam ? 2 : 1;
  return trained * (2 + 4 + 4 * states);
}

double CheckpointSeconds(const workload::Job& job, const ReliabilityProfile& profile) {
  const double rate = profile.checkpoint_bytes_per_second_per_gpu;
  if (!(rate > 0)) return profile.checkpoint_seconds;
  return CheckpointBytes(job) / (rate * static_cast<double>(job.gpu_count));
}

}  // namespace sextant::resilience
