// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert_economics.h"

#include "common/wire/reader.h"

namespace sextant::wire {
types::v1::Estimate ToProto(const energy::Estimate& estimate) {
  types::v1::Estimate proto;
  proto.set_value(estimate.value);
  proto.set_low(estimate.low);
  proto.set_high(estimate.high);
  return proto;
}

absl::StatusOr<energy::Estimate> FromProto(const types::v1::Estimate& proto) {
  Reader reader;
  energy::Estimate estimate{.value = reader.Finite("value", proto.value()),
                            .low = reader.Finite("low", proto.low()),
                            .high = reader.Finite("high", proto.high())};
  return reader.Finish(estimate);
}

types::v1::Economics ToProto(const energy::Economics& economics) {
  types::v1::Economics proto;
  if (economics.power.IsKnown()) {
    types::v1::PowerProfile& power = *proto.mutable_power();
    *power.mutable_idle() = ToProto(economics.power.idle);
    *power.mutable_compute() = ToProto(economics.power.compute);
    *power.mutable_memory() = ToProto(economics.power.memory);
    *power.mutable_communication() = ToProto(economics.power.communication);
    *power.mutable_host_watts_per_gpu() = ToProto(economics.power.host_watts_per_gpu);
    *power.mutable_facility_overhead() = ToProto(economics.power.facility_overhead);
  }
  for (const auto& [accelerator, price] : economics.dollars_per_gpu_hour) {
    (*proto.mutable_dollars_per_gpu_hour())[accelerator] = ToProto(price);
  }
  return proto;
}

absl::StatusOr<energy::Economics> FromProto(const types::v1::Economics& proto) {
  Reader reader;
  energy::Economics economics;
  if (proto.has_power()) {
    const types::v1::PowerProfile& p = proto.power();
    economics.power.idle = reader.Nested("power.idle", FromProto(p.idle()));
    economics.power.compute = reader.Nested("power.compute", FromProto(p.compute()));
    economics.power.memory = reader.Nested("power.memory", FromProto(p.memory()));
    economics.power.communication =
        reader.Nested("power.communication", FromProto(p.communication()));
    economics.power.host_watts_per_gpu =
        reader.Nested("power.host_watts_per_gpu", FromProto(p.host_watts_per_gpu()));
    economics.power.facility_overhead =
        reader.Nested("power.facility_overhead", FromProto(p.facility_overhead()));
  }
  for (const auto& [accelerator, price] : proto.dollars_per_gpu_hour()) {
    economics.dollars_per_gpu_hour[accelerator] = reader.Nested(
        absl::StrCat("dollars_per_gpu_hour[", accelerator, "]"), FromProto(price));
  }
  return reader.Finish(std::move(economics));
}

}  // namespace sextant::wire
