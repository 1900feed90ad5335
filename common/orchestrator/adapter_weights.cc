// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/adapter_weights.h"

namespace sextant::orchestrator {

double AdapterParameters(const workload::ModelArchitecture& model, int64_t rank,
                         int64_t tensor_parallel_size) {
  const double tp = static_cast<double>(tensor_parallel_size);
  const double h = static_cast<double>(model.hidden_size);
  const double heads = static_cast<double>(model.attention_head_count);
  // Outputs of the projections into attention, and what comes back from it.
  double inputs = 0;
  double projections = 3;
  double output = heads * static_cast<double>(model.head_size);
  if (model.IsLatent()) {
    const workload::LatentAttention& l = model.latent_attention;
    projections = 2;
    inputs = heads * static_cast<double>(l.nope_head_size + l.rope_head_size) +
             static_cast<double>(l.kv_lora_rank + l.rope_head_size);
    output = heads * static_cast<double>(l.value_head_size);
  } else {
    inputs = static_cast<double>((model.attention_head_count + 2 * model.kv_head_count) *
                                 model.head_size);
  }
  const double into = projections * h + inputs / tp;
  const double back = output / tp + h;
  return static_cast<double>(rank) * (into + back) *
         static_cast<double>(model.layer_count - model.LinearLayerCount());
}

double ResidentAdapterBytes(const workload::Job& job) {
  if (!job.serving.has_value()) return 0;
  const serving::Adapters& adapters = job.serving->adapters;
  return 2 * static_cast<double>(adapters.Resident()) *
         AdapterParameters(job.model, adapters.rank, job.plan.tensor_parallel_size);
}

}  // namespace sextant::orchestrator
