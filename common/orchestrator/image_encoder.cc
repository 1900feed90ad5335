// SPDX-License-Identifier: Apache-2.0
#include "common/orchestrator/image_encoder.h"

#include "common/workload/model_architecture.h"

namespace sextant::orchestrator {

workload::Job EncoderJob(const workload::Job& job) {
  const serving::Images& images = job.serving->images;
  workload::Job encoder = job;
  encoder.serving.reset();
  encoder.plan = workload::ParallelPlan();
  encoder.gpu_count = 1;
  encoder.precision = hardware::Precision::kBf16;
  workload::ModelArchitecture m;
  m.name = "image encoder";
  m.hidden_size = images.encoder_hidden_size;
  m.layer_count = images.encoder_layer_count;
  m.attention_head_count = m.kv_head_count = images.encoder_head_count;
  m.head_size = images.encoder_hidden_size / images.encoder_head_count;
  m.ffn_size = images.encoder_ffn_size;
  m.vocabulary_size = 1;
  m.layer_norm = true;
  m.linear_bias = true;
  m.causal = false;
  encoder.model = m;
  return encoder;
}

double EncoderBytes(const workload::Job& job) {
  if (!job.serving.has_value() || job.serving->images.per_request == 0 ||
      job.serving->images.encoder_gpu_count > 0) {
    return 0;
  }
  return 2 * static_cast<double>(workload::CountParameters(EncoderJob(job).model).Total());
}

}  // namespace sextant::orchestrator
