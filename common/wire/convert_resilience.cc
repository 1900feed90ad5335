// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert_resilience.h"

#include "common/wire/reader.h"

namespace sextant::wire {

absl::StatusOr<resilience::ReliabilityProfile> FromProto(
    const types::v1::ReliabilityProfile& proto) {
  Reader reader;
  resilience::ReliabilityProfile p;
  p.interruptions_per_million_gpu_hours = reader.Finite(
      "interruptions_per_million_gpu_hours", proto.interruptions_per_million_gpu_hours());
  p.node_loss_share = reader.Finite("node_loss_share", proto.node_loss_share());
  p.detection_seconds = reader.Finite("detection_seconds", proto.detection_seconds());
  p.restart_seconds = reader.Finite("restart_seconds", proto.restart_seconds());
  p.repair_seconds = reader.Finite("repair_seconds", proto.repair_seconds());
  p.checkpoint_seconds = reader.Finite("checkpoint_seconds", proto.checkpoint_seconds());
  p.checkpoint_bytes_per_second_per_gpu = reader.Finite(
      "checkpoint_bytes_per_second_per_gpu", proto.checkpoint_bytes_per_second_per_gpu());
  p.straggler_share = reader.Finite("straggler_share", proto.straggler_share());
  return reader.Finish(p);
}

types::v1::GoodputReport ToProto(const resilience::Goodput& g) {
  types::v1::GoodputReport proto;
  proto.set_useful_share(g.useful_share);
  proto.set_checkpoint_share(g.checkpoint_share);
  proto.set_rework_share(g.rework_share);
  proto.set_recovery_share(g.recovery_share);
  proto.set_waiting_share(g.waiting_share);
  proto.set_straggler_share(g.straggler_share);
  proto.set_mean_seconds_between_interruptions(g.mean_seconds_between_interruptions);
  proto.set_checkpoint_interval_seconds(g.checkpoint_interval_seconds);
  proto.set_best_checkpoint_interval_seconds(g.best_checkpoint_interval_seconds);
  proto.set_young_interval_seconds(g.young_interval_seconds);
  proto.set_daly_interval_seconds(g.daly_interval_seconds);
  return proto;
}

types::v1::PartFault ToProto(const resilience::RankedFault& fault) {
  types::v1::PartFault proto;
  proto.set_part(fault.part.kind);
  proto.set_example(fault.part.example);
  proto.set_is_switch(fault.part.is_switch);
  proto.set_count(fault.part.count);
  proto.set_bandwidth_fraction(fault.bandwidth_fraction);
  for (const std::string& name : fault.part.crossed) proto.add_crossed(name);
  proto.set_unreachable(fault.step.unreachable);
  if (!fault.step.unreachable.empty()) return proto;
  proto.set_step_seconds(fault.step.seconds);
  proto.set_slowdown(fault.step.slowdown);
  return proto;
}

types::v1::RandomFaultOutcome ToProto(const resilience::RandomOutcome& o) {
  types::v1::RandomFaultOutcome proto;
  proto.set_draw_count(o.draw_count);
  proto.set_cut_off_count(o.cut_off_count);
  proto.set_mean_slowdown(o.mean_slowdown);
  proto.set_low_slowdown(o.low_slowdown);
  proto.set_high_slowdown(o.high_slowdown);
  proto.set_median_slowdown(o.median_slowdown);
  proto.set_p95_slowdown(o.p95_slowdown);
  proto.set_worst_slowdown(o.worst_slowdown);
  return proto;
}

types::v1::MappingRobustness ToProto(const resilience::MappingOutcome& outcome,
                                     const workload::ParallelPlan& plan) {
  types::v1::MappingRobustness proto;
  proto.set_mapping(resilience::MappingName(plan, outcome.mapping));
  proto.set_routing(std::string(network_sim::RoutingName(outcome.routing)));
  proto.set_healthy_seconds(outcome.healthy_seconds);
  proto.set_expected_seconds(outcome.FaultySeconds());
  *proto.mutable_random_faults() = ToProto(outcome.random);
  return proto;
}

}  // namespace sextant::wire
