// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_ORCHESTRATOR_TEST_JOBS_H_
#define SEXTANT_COMMON_ORCHESTRATOR_TEST_JOBS_H_

#include "common/workload/job.h"

// Jobs of published models on A100 servers, for the tests and benchmarks of this room.
namespace sextant::orchestrator {

inline hardware::Cluster DgxA100() {
  using hardware::Precision;
  hardware::Cluster cluster;
  hardware::Accelerator& a = cluster.accelerator;
  a.name = "a100-sxm4-80gb";
  a.architecture = "ampere";
  a.sm_count = 108;
  a.boost_clock_hz = 1.41e9;
  a.matrix_flop_per_second[static_cast<size_t>(Precision::kFp32)] = 19.5e12;
  a.matrix_flop_per_second[static_cast<size_t>(Precision::kTf32)] = 156e12;
  a.matrix_flop_per_second[static_cast<size_t>(Precision::kFp16)] = 312e12;
  a.matrix_flop_per_second[static_cast<size_t>(Precision::kBf16)] = 312e12;
  a.matrix_flop_per_second[static_cast<size_t>(Precision::kInt8)] = 624e12;
  a.matrix_flop_per_second[static_cast<size_t>(Precision::kInt4)] = 1248e12;
  a.vector_flop_per_second = 19.5e12;
  a.shared_memory_bytes_per_sm = 164 * 1024;
  a.l2_bytes = int64_t{40} << 20;
  a.l2_bandwidth_bytes_per_second = 5e12;
  a.hbm_bytes = int64_t{80} << 30;
  a.hbm_bandwidth_bytes_per_second = 2.039e12;
  a.nvlink_bandwidth_bytes_per_second = 300e9;
  a.pcie_bandwidth_bytes_per_second = 32e9;
  a.power_watts = 400;
  cluster.name = "dgx-a100";
  cluster.gpus_per_node = 8;
  cluster.node_bandwidth_bytes_per_second = 300e9;
  cluster.node_latency_seconds = 1e-6;
  cluster.network_bandwidth_bytes_per_second = 200e9;
  cluster.network_latency_seconds = 2e-6;
  return cluster;
}

inline workload::ModelArchitecture GptModel(int64_t hidden, int64_t layers, int64_t heads) {
  workload::ModelArchitecture m;
  m.name = "gpt";
  m.hidden_size = hidden;
  m.layer_count = layers;
  m.attention_head_count = m.kv_head_count = heads;
  m.head_size = hidden / heads;
  m.ffn_size = 4 * hidden;
  m.vocabulary_size = 51200;
  m.tied_embeddings = true;
  m.learned_position_count = 2048;
  m.linear_bias = true;
  m.layer_norm = true;
  return m;
}

inline workload::ModelArchitecture LlamaModel(int64_t hidden, int64_t layers, int64_t heads,
                                              int64_t kv_heads, int64_t ffn) {
  workload::ModelArchitecture m;
  m.name = "llama";
  m.hidden_size = hidden;
  m.layer_count = layers;
  m.attention_head_count = heads;
  m.kv_head_count = kv_heads;
  m.head_size = hidden / heads;
  m.ffn_size = ffn;
  m.gated_ffn = true;
  m.vocabulary_size = 32000;
  return m;
}
inline workload::ModelArchitecture Llama2Seven() { return LlamaModel(4096, 32, 32, 32, 11008); }

// GPT-3 175B as Korthikanti et al. 2022 ran it: 64 GPUs, tp 8, pp 8, 3 chunks.
inline workload::Job Megatron175() {
  workload::Job job;
  job.model = GptModel(12288, 96, 96);
  job.cluster = DgxA100();
  job.gpu_count = 64;
  job.precision = hardware::Precision::kFp16;
  job.workload = workload::TrainingWorkload{.global_batch_size = 64, .sequence_length = 2048};
  job.plan.tensor_parallel_size = 8;
  job.plan.sequence_parallel = true;
  job.plan.pipeline_parallel_size = 8;
  job.plan.virtual_pipeline_size = 3;
  job.plan.schedule = workload::PipelineSchedule::kInterleaved;
  job.plan.recompute = workload::Recompute::kSelective;
  return job;
}

inline workload::Job LlamaTraining() {
  workload::Job job;
  job.model = Llama2Seven();
  job.cluster = DgxA100();
  job.gpu_count = 8;
  job.workload = workload::TrainingWorkload{.global_batch_size = 64, .sequence_length = 2048};
  job.plan.tensor_parallel_size = 2;
  job.plan.data_parallel_size = 4;
  return job;
}

inline workload::Job LlamaServing() {
  workload::Job job;
  job.model = Llama2Seven();
  job.cluster = DgxA100();
  job.gpu_count = 1;
  job.precision = hardware::Precision::kFp16;
  job.workload = workload::InferenceWorkload{.prompt_tokens = 512,
                                             .output_tokens = 128,
                                             .batch_size = 4,
                                             .kv_cache_precision = hardware::Precision::kFp16};
  return job;
}

}  // namespace sextant::orchestrator

#endif  // SEXTANT_COMMON_ORCHESTRATOR_TEST_JOBS_H_
