// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/kv_cache.h"

#include <algorithm>

namespace sextant::orchestrator {

using workload::ModelArchitecture;

double KvBytesPerTokenPerLayer(const ModelArchitecture& model, int64_t tensor_parallel_size,
                               hardware::Precision precision) {
  const double element = hardware::BytesPerElement(precision);
  if (model.IsLatent()) {
    return element * static_cast<double>(model.latent_attention.kv_lora_rank +
                                         model.latent_attention.rope_head_size);
  }
  const int64_t heads = std::max<int64_t>(1, model.kv_head_count / tensor_parallel_size);
  return element * 2 * static_cast<double>(heads * model.head_size);
}

double KvBytesPerToken(const ModelArchitecture& model, int64_t tensor_parallel_size,
                       hardware::Precision precision) {
  return static_cast<double>(model.layer_count - model.LinearLayerCount()) *
         KvBytesPerTokenPerLayer(model, tensor_parallel_size, precision);
}

double StateBytesPerSequence(const ModelArchitecture& model, int64_t tensor_parallel_size) {
  const workload::LinearAttention& l = model.linear_attention;
  const double matrices = static_cast<double>(l.ValueSize() * l.key_head_size);
  const double taps = static_cast<double>(std::max<int64_t>(0, l.convolution_size - 1));
  const double tail = taps * static_cast<double>(2 * l.KeySize() + l.ValueSize());
  return static_cast<double>(model.LinearLayerCount()) * 2 * (matrices + tail) /
         static_cast<double>(tensor_parallel_size);
}

double KvCacheBytes(const ModelArchitecture& model, int64_t tensor_parallel_size,
                    hardware::Precision precision, double tokens) {
  const double seen = std::min(tokens, static_cast<double>(model.sliding_window));
  return KvBytesPerTokenPerLayer(model, tensor_parallel_size, precision) *
             (static_cast<double>(model.FullAttentionLayerCount()) * tokens +
              static_cast<double>(model.WindowedLayerCount()) * seen) +
         StateBytesPerSequence(model, tensor_parallel_size);
}

}  // namespace sextant::orchestrator
