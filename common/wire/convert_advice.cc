// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert_advice.h"

#include <utility>

#include "common/wire/convert.h"
#include "common/wire/convert_economics.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

types::v1::SpeedUp SpeedUpToProto(const advise::SpeedUp& step) {
  types::v1::SpeedUp proto;
  proto.set_gpu_count(step.gpu_count);
  *proto.mutable_plan() = ToProto(step.plan);
  proto.set_total_seconds(step.total_seconds);
  proto.set_tokens_per_second(step.tokens_per_second);
  proto.set_speed_up(step.speed_up);
  proto.set_efficiency(step.efficiency);
  return proto;
}

absl::StatusOr<advise::SpeedUp> SpeedUpFromProto(const types::v1::SpeedUp& proto) {
  Reader reader;
  advise::SpeedUp step{
      .gpu_count = proto.gpu_count(),
      .plan = reader.Nested("plan", FromProto(proto.plan())),
      .total_seconds = reader.Finite("total_seconds", proto.total_seconds()),
      .tokens_per_second = reader.Finite("tokens_per_second", proto.tokens_per_second()),
      .speed_up = reader.Finite("speed_up", proto.speed_up()),
      .efficiency = reader.Finite("efficiency", proto.efficiency())};
  return reader.Finish(std::move(step));
}

}  // namespace

types::v1::AdviceOptions ToProto(const advise::AdviceOptions& options) {
  types::v1::AdviceOptions proto;
  proto.set_max_gpu_count(options.max_gpu_count);
  proto.set_min_gpu_count(options.min_gpu_count);
  proto.set_step_count(options.step_count);
  proto.set_time_limit_margin(options.time_limit_margin);
  *proto.mutable_economics() = ToProto(options.economics);
  return proto;
}

absl::StatusOr<advise::AdviceOptions> FromProto(const types::v1::AdviceOptions& proto) {
  Reader reader;
  advise::AdviceOptions options{
      .max_gpu_count = proto.max_gpu_count(),
      .min_gpu_count = proto.min_gpu_count(),
      .step_count = proto.step_count(),
      .economics = reader.Nested("economics", FromProto(proto.economics()))};
  if (proto.has_time_limit_margin()) {
    options.time_limit_margin = reader.Finite("time_limit_margin", proto.time_limit_margin());
  }
  return reader.Finish(std::move(options));
}

types::v1::Advice ToProto(const advise::Advice& advice) {
  types::v1::Advice proto;
  proto.set_feasible(advice.feasible);
  proto.set_reason(advice.reason);
  proto.set_gpu_count(advice.gpu_count);
  *proto.mutable_plan() = ToProto(advice.plan);
  *proto.mutable_prediction() = ToProto(advice.prediction);
  proto.set_run_seconds(advice.run_seconds);
  proto.set_run_low_seconds(advice.run_low_seconds);
  proto.set_run_high_seconds(advice.run_high_seconds);
  proto.set_suggested_time_limit_seconds(advice.suggested_time_limit_seconds);
  proto.set_memory_headroom_bytes(advice.memory_headroom_bytes);
  if (advice.energy_joules) *proto.mutable_energy_joules() = ToProto(*advice.energy_joules);
  if (advice.cost_dollars) *proto.mutable_cost_dollars() = ToProto(*advice.cost_dollars);
  for (const advise::SpeedUp& step : advice.curve) *proto.add_speed_up() = SpeedUpToProto(step);
  return proto;
}

absl::StatusOr<advise::Advice> FromProto(const types::v1::Advice& proto) {
  Reader reader;
  advise::Advice advice{
      .feasible = proto.feasible(),
      .reason = proto.reason(),
      .gpu_count = proto.gpu_count(),
      .plan = reader.Nested("plan", FromProto(proto.plan())),
      .prediction = reader.Nested("prediction", FromProto(proto.prediction())),
      .run_seconds = reader.Finite("run_seconds", proto.run_seconds()),
      .run_low_seconds = reader.Finite("run_low_seconds", proto.run_low_seconds()),
      .run_high_seconds = reader.Finite("run_high_seconds", proto.run_high_seconds()),
      .suggested_time_limit_seconds = proto.suggested_time_limit_seconds(),
      .memory_headroom_bytes = proto.memory_headroom_bytes()};
  if (proto.has_energy_joules()) {
    advice.energy_joules = reader.Nested("energy_joules", FromProto(proto.energy_joules()));
  }
  if (proto.has_cost_dollars()) {
    advice.cost_dollars = reader.Nested("cost_dollars", FromProto(proto.cost_dollars()));
  }
  for (int i = 0; i < proto.speed_up_size(); ++i) {
    advice.curve.push_back(
        reader.Nested(absl::StrCat("speed_up[", i, "]"), SpeedUpFromProto(proto.speed_up(i))));
  }
  return reader.Finish(std::move(advice));
}

}  // namespace sextant::wire
