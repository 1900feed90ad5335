// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert_economics.h"

#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

types::v1::Estimate EstimateToProto(const energy::Estimate& estimate) {
  types::v1::Estimate proto;
  proto.set_value(estimate.value);
  proto.set_low(estimate.low);
  proto.set_high(estimate.high);
  return proto;
}

energy::Estimate EstimateFromProto(const std::string& field, const types::v1::Estimate& proto,
                                   Reader& reader) {
  return {.value = reader.Finite(absl::StrCat(field, ".value"), proto.value()),
          .low = reader.Finite(absl::StrCat(field, ".low"), proto.low()),
          .high = reader.Finite(absl::StrCat(field, ".high"), proto.high())};
}

}  // namespace

types::v1::Economics ToProto(const energy::Economics& economics) {
  types::v1::Economics proto;
  if (economics.power.IsKnown()) {
    types::v1::PowerProfile& power = *proto.mutable_power();
    *power.mutable_idle() = EstimateToProto(economics.power.idle);
    *power.mutable_compute() = EstimateToProto(economics.power.compute);
    *power.mutable_memory() = EstimateToProto(economics.power.memory);
    *power.mutable_communication() = EstimateToProto(economics.power.communication);
    *power.mutable_host_watts_per_gpu() = EstimateToProto(economics.power.host_watts_per_gpu);
    *power.mutable_facility_overhead() = EstimateToProto(economics.power.facility_overhead);
  }
  for (const auto& [accelerator, price] : economics.dollars_per_gpu_hour) {
    (*proto.mutable_dollars_per_gpu_hour())[accelerator] = EstimateToProto(price);
  }
  return proto;
}

absl::StatusOr<energy::Economics> FromProto(const types::v1::Economics& proto) {
  Reader reader;
  energy::Economics economics;
  if (proto.has_power()) {
    const types::v1::PowerProfile& p = proto.power();
    economics.power.idle = EstimateFromProto("power.idle", p.idle(), reader);
    economics.power.compute = EstimateFromProto("power.compute", p.compute(), reader);
    economics.power.memory = EstimateFromProto("power.memory", p.memory(), reader);
    economics.power.communication =
        EstimateFromProto("power.communication", p.communication(), reader);
    economics.power.host_watts_per_gpu =
        EstimateFromProto("power.host_watts_per_gpu", p.host_watts_per_gpu(), reader);
    economics.power.facility_overhead =
        EstimateFromProto("power.facility_overhead", p.facility_overhead(), reader);
  }
  for (const auto& [accelerator, price] : proto.dollars_per_gpu_hour()) {
    economics.dollars_per_gpu_hour[accelerator] = EstimateFromProto(
        absl::StrCat("dollars_per_gpu_hour[", accelerator, "]"), price, reader);
  }
  return reader.Finish(std::move(economics));
}

}  // namespace sextant::wire
