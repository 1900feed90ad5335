// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_TESTS_SUPPORT_JOBS_H_
#define SEXTANT_TESTS_SUPPORT_JOBS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/catalog/catalog.h"
#include "common/catalog/job_reader.h"
#include "common/orchestrator/local_ports.h"
#include "common/orchestrator/predict.h"
#include "common/parameters/parameter_set.h"
#include "common/workload/job.h"

namespace sextant::test_support {

// Jobs as people write them: dense and long-context training over nodes, and inference.
inline const std::vector<std::string>& JobTexts() {
  static const auto* texts = new std::vector<std::string>{
      R"(
model: llama-2-7b
cluster: dgx-a100
framework: megatron-lm
gpu_count: 16
training: {global_batch_size: 64, sequence_length: 4096}
plan: {tensor_parallel_size: 4, sequence_parallel: true, pipeline_parallel_size: 2, data_parallel_size: 2, recompute: selective}
)",
      R"(
model: llama-2-70b
cluster: dgx-h100
gpu_count: 64
training: {global_batch_size: 128, sequence_length: 4096}
plan: {tensor_parallel_size: 8, pipeline_parallel_size: 4, data_parallel_size: 2, zero_stage: 1, recompute: full}
)",
      R"(
model: llama-2-7b
cluster: dgx-a100
gpu_count: 2
inference: {prompt_tokens: 1000, output_tokens: 100, batch_size: 4}
plan: {tensor_parallel_size: 2}
)"};
  return *texts;
}

inline absl::StatusOr<workload::Job> ReadJobText(const std::string& text) {
  auto catalog = catalog::Catalog::Open(SEXTANT_SOURCE_DIR "/datasets");
  if (!catalog.ok()) return catalog.status();
  return catalog::ReadJob(text, "test.yaml", {}, *catalog);
}

// The answer of the embedded library.
inline absl::StatusOr<orchestrator::Prediction> PredictEmbedded(
    const workload::Job& job, const std::shared_ptr<const parameters::ParameterSet>& set) {
  orchestrator::LocalOperatorCost operator_cost(set);
  orchestrator::LocalNetworkTime network_time(set);
  return orchestrator::Predict(job, operator_cost, network_time);
}

// A legal set whose values differ from the initial ones, so that a swap is seen in predictions.
inline std::shared_ptr<const parameters::ParameterSet> SlowGemmSet(double peak_efficiency) {
  parameters::AcceleratorParameters values;
  values.shared["gemm.16bit.peak_efficiency"] = {.value = peak_efficiency};
  return std::make_shared<const parameters::ParameterSet>(
      parameters::Provenance{.name = "slow"},
      std::map<std::string, parameters::AcceleratorParameters, std::less<>>{
          {"a100-sxm4-80gb", values}, {"h100-sxm5-80gb", values}});
}

}  // namespace sextant::test_support

#endif  // SEXTANT_TESTS_SUPPORT_JOBS_H_
