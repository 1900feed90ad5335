// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "common/wire/convert.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

types::v1::Interval ToProto(const parameters::Interval& interval) {
  types::v1::Interval proto;
  proto.set_low_seconds(interval.low);
  proto.set_high_seconds(interval.high);
  return proto;
}

parameters::Interval Read(Reader& reader, const std::string& path,
                          const types::v1::Interval& proto) {
  return {reader.Finite(path + ".low_seconds", proto.low_seconds()),
          reader.Finite(path + ".high_seconds", proto.high_seconds())};
}

}  // namespace

types::v1::Prediction ToProto(const orchestrator::Prediction& p) {
  types::v1::Prediction proto;
  proto.set_total_seconds(p.total_seconds);
  proto.set_interval_low_seconds(p.interval_low_seconds);
  proto.set_interval_high_seconds(p.interval_high_seconds);
  for (const orchestrator::TimePart& part : p.breakdown) {
    types::v1::TimePart& out = *proto.add_breakdown();
    out.set_name(part.name);
    out.set_seconds(part.seconds);
  }
  proto.set_tokens_per_second(p.tokens_per_second);
  proto.set_tokens_per_second_per_gpu(p.tokens_per_second_per_gpu);
  proto.set_model_flops_utilization(p.model_flops_utilization);
  types::v1::MemoryPrediction& memory = *proto.mutable_memory();
  memory.set_total_bytes(p.memory.total_bytes);
  memory.set_capacity_bytes(p.memory.capacity_bytes);
  memory.set_fits(p.memory.fits);
  memory.set_shortfall_bytes(p.memory.shortfall_bytes);
  for (const orchestrator::MemoryPart& part : p.memory.breakdown) {
    types::v1::MemoryPart& out = *memory.add_breakdown();
    out.set_name(part.name);
    out.set_bytes(part.bytes);
  }
  memory.set_reserved_bytes(p.memory.reserved_bytes);
  if (p.memory.largest_micro_batch_size.has_value()) {
    memory.set_largest_micro_batch_size(*p.memory.largest_micro_batch_size);
  }
  for (const std::string& resource : p.binding) proto.add_binding(resource);
  if (p.time_to_first_token_seconds.has_value()) {
    proto.set_time_to_first_token_seconds(*p.time_to_first_token_seconds);
  }
  if (p.inter_token_latency_seconds.has_value()) {
    proto.set_inter_token_latency_seconds(*p.inter_token_latency_seconds);
  }
  if (p.time_to_first_token_interval.has_value()) {
    *proto.mutable_time_to_first_token_interval() = ToProto(*p.time_to_first_token_interval);
  }
  if (p.inter_token_latency_interval.has_value()) {
    *proto.mutable_inter_token_latency_interval() = ToProto(*p.inter_token_latency_interval);
  }
  if (p.kv_cache_capacity_tokens.has_value()) {
    proto.set_kv_cache_capacity_tokens(*p.kv_cache_capacity_tokens);
  }
  if (p.serving.has_value()) *proto.mutable_serving() = ToProto(*p.serving);
  proto.set_parameter_set(p.parameter_set);
  proto.set_extrapolated(p.extrapolated);
  for (const std::string& warning : p.warnings) proto.add_warnings(warning);
  for (const orchestrator::Sensitivity& sensitivity : p.sensitivities) {
    types::v1::Sensitivity& out = *proto.add_sensitivities();
    out.set_resource(sensitivity.resource);
    out.set_elasticity(sensitivity.elasticity);
  }
  return proto;
}

absl::StatusOr<orchestrator::Prediction> FromProto(const types::v1::Prediction& proto) {
  Reader reader;
  orchestrator::Prediction p;
  p.total_seconds = reader.Finite("total_seconds", proto.total_seconds());
  p.interval_low_seconds = reader.Finite("interval_low_seconds", proto.interval_low_seconds());
  p.interval_high_seconds = reader.Finite("interval_high_seconds", proto.interval_high_seconds());
  for (int i = 0; i < proto.breakdown_size(); ++i) {
    const types::v1::TimePart& part = proto.breakdown(i);
    p.breakdown.push_back(
        {part.name(), reader.Finite(absl::StrCat("breakdown[", i, "].seconds"), part.seconds())});
  }
  p.tokens_per_second = reader.Finite("tokens_per_second", proto.tokens_per_second());
  p.tokens_per_second_per_gpu =
      reader.Finite("tokens_per_second_per_gpu", proto.tokens_per_second_per_gpu());
  p.model_flops_utilization =
      reader.Finite("model_flops_utilization", proto.model_flops_utilization());
  const types::v1::MemoryPrediction& memory = proto.memory();
  p.memory.total_bytes = memory.total_bytes();
  p.memory.capacity_bytes = memory.capacity_bytes();
  p.memory.fits = memory.fits();
  p.memory.shortfall_bytes = memory.shortfall_bytes();
  for (const types::v1::MemoryPart& part : memory.breakdown()) {
    p.memory.breakdown.push_back({part.name(), part.bytes()});
  }
  p.memory.reserved_bytes = memory.reserved_bytes();
  if (memory.has_largest_micro_batch_size()) {
    p.memory.largest_micro_batch_size = memory.largest_micro_batch_size();
  }
  p.binding.assign(proto.binding().begin(), proto.binding().end());
  if (proto.has_time_to_first_token_seconds()) {
    p.time_to_first_token_seconds =
        reader.Finite("time_to_first_token_seconds", proto.time_to_first_token_seconds());
  }
  if (proto.has_inter_token_latency_seconds()) {
    p.inter_token_latency_seconds =
        reader.Finite("inter_token_latency_seconds", proto.inter_token_latency_seconds());
  }
  if (proto.has_time_to_first_token_interval()) {
    p.time_to_first_token_interval =
        Read(reader, "time_to_first_token_interval", proto.time_to_first_token_interval());
  }
  if (proto.has_inter_token_latency_interval()) {
    p.inter_token_latency_interval =
        Read(reader, "inter_token_latency_interval", proto.inter_token_latency_interval());
  }
  if (proto.has_kv_cache_capacity_tokens()) {
    p.kv_cache_capacity_tokens = proto.kv_cache_capacity_tokens();
  }
  if (proto.has_serving()) p.serving = reader.Nested("serving", FromProto(proto.serving()));
  p.parameter_set = proto.parameter_set();
  p.extrapolated = proto.extrapolated();
  p.warnings.assign(proto.warnings().begin(), proto.warnings().end());
  for (int i = 0; i < proto.sensitivities_size(); ++i) {
    const types::v1::Sensitivity& sensitivity = proto.sensitivities(i);
    p.sensitivities.push_back(
        {sensitivity.resource(), reader.Finite(absl::StrCat("sensitivities[", i, "].elasticity"),
                                               sensitivity.elasticity())});
  }
  return reader.Finish(std::move(p));
}

}  // namespace sextant::wire
