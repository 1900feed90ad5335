// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_TEST_SWEEPS_H_
#define SEXTANT_COMMON_SWEEP_TEST_SWEEPS_H_

#include <memory>

#include "common/orchestrator/test_jobs.h"
#include "common/sweep/run_sweep.h"

// Sweeps that tests and benchmarks of this room run.
namespace sextant::sweep {

inline energy::Economics TestEconomics() {
  energy::Economics e;
  e.power.idle = {0.15, 0.1, 0.2};
  e.power.compute = {0.9, 0.8, 1.0};
  e.power.memory = {0.6, 0.5, 0.7};
  e.power.communication = {0.4, 0.3, 0.5};
  e.power.host_watts_per_gpu = {200, 150, 250};
  e.power.facility_overhead = {1.2, 1.1, 1.3};
  e.dollars_per_gpu_hour["a100-sxm4-80gb"] = {2, 1, 4};
  return e;
}

inline PlanSpace WholePlanSpace() {
  PlanSpace space;
  space.tensor_parallel_size.all = space.pipeline_parallel_size.all = true;
  space.virtual_pipeline_size.all = space.context_parallel_size.all = true;
  space.expert_parallel_size.all = space.data_parallel_size.all = true;
  space.micro_batch_size.all = space.zero_stage.all = true;
  space.sequence_parallel.all = space.schedule.all = space.recompute.all = true;
  return space;
}

inline workload::ModelArchitecture Llama31Seventy() {
  workload::ModelArchitecture m = orchestrator::LlamaModel(8192, 80, 64, 8, 28672);
  m.name = "llama-3.1-70b";
  m.vocabulary_size = 128256;
  return m;
}

// Training of Llama-3.1-70B on `gpu_count` A100s: every layout.
inline SweepSpec TrainingSweep(int64_t gpu_count, int64_t global_batch_size) {
  Scenario scenario;
  scenario.job = orchestrator::LlamaTraining();
  scenario.job.model = Llama31Seventy();
  scenario.job.gpu_count = gpu_count;
  scenario.job.workload =
      workload::TrainingWorkload{.global_batch_size = global_batch_size, .sequence_length = 4096};
  SweepSpec spec;
  spec.scenarios.push_back(scenario);
  spec.plan = WholePlanSpace();
  spec.economics = TestEconomics();
  return spec;
}

inline std::shared_ptr<const parameters::ParameterSet> NoParameters() {
  return std::make_shared<const parameters::ParameterSet>();
}

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_TEST_SWEEPS_H_
