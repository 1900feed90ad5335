// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "common/wire/convert.h"
#include "common/wire/reader.h"

namespace sextant::wire {
namespace {

using hardware::Precision;

double& Rate(hardware::Accelerator& accelerator, Precision precision) {
  return accelerator.matrix_flop_per_second[static_cast<size_t>(precision)];
}

}  // namespace

types::v1::Accelerator ToProto(const hardware::Accelerator& a) {
  types::v1::Accelerator proto;
  proto.set_name(a.name);
  proto.set_architecture(a.architecture);
  proto.set_parameter_donor(a.parameter_donor);
  proto.set_sm_count(a.sm_count);
  proto.set_boost_clock_hz(a.boost_clock_hz);
  types::v1::MatrixRates& rates = *proto.mutable_matrix_flop_per_second();
  rates.set_fp32(a.MatrixRate(Precision::kFp32));
  rates.set_tf32(a.MatrixRate(Precision::kTf32));
  rates.set_fp16(a.MatrixRate(Precision::kFp16));
  rates.set_bf16(a.MatrixRate(Precision::kBf16));
  rates.set_fp8(a.MatrixRate(Precision::kFp8));
  rates.set_int8(a.MatrixRate(Precision::kInt8));
  rates.set_fp4(a.MatrixRate(Precision::kFp4));
  rates.set_int4(a.MatrixRate(Precision::kInt4));
  proto.set_vector_flop_per_second(a.vector_flop_per_second);
  proto.set_shared_memory_bytes_per_sm(a.shared_memory_bytes_per_sm);
  proto.set_l2_bytes(a.l2_bytes);
  proto.set_l2_bandwidth_bytes_per_second(a.l2_bandwidth_bytes_per_second);
  proto.set_hbm_bytes(a.hbm_bytes);
  proto.set_hbm_bandwidth_bytes_per_second(a.hbm_bandwidth_bytes_per_second);
  proto.set_nvlink_bandwidth_bytes_per_second(a.nvlink_bandwidth_bytes_per_second);
  proto.set_pcie_bandwidth_bytes_per_second(a.pcie_bandwidth_bytes_per_second);
  proto.set_power_watts(a.power_watts);
  return proto;
}

absl::StatusOr<hardware::Accelerator> FromProto(const types::v1::Accelerator& proto) {
  Reader reader;
  hardware::Accelerator a;
  a.name = proto.name();
  a.architecture = proto.architecture();
  a.parameter_donor = proto.parameter_donor();
  a.sm_count = reader.Int("sm_count", proto.sm_count());
  a.boost_clock_hz = reader.Finite("boost_clock_hz", proto.boost_clock_hz());
  const types::v1::MatrixRates& rates = proto.matrix_flop_per_second();
  const auto rate = [&](Precision precision, double value) {
    Rate(a, precision) = reader.Finite(
        absl::StrCat("matrix_flop_per_second.", std::string(hardware::PrecisionName(precision))),
        value);
  };
  rate(Precision::kFp32, rates.fp32());
  rate(Precision::kTf32, rates.tf32());
  rate(Precision::kFp16, rates.fp16());
  rate(Precision::kBf16, rates.bf16());
  rate(Precision::kFp8, rates.fp8());
  rate(Precision::kInt8, rates.int8());
  rate(Precision::kFp4, rates.fp4());
  rate(Precision::kInt4, rates.int4());
  a.vector_flop_per_second =
      reader.Finite("vector_flop_per_second", proto.vector_flop_per_second());
  a.shared_memory_bytes_per_sm = proto.shared_memory_bytes_per_sm();
  a.l2_bytes = proto.l2_bytes();
  a.l2_bandwidth_bytes_per_second =
      reader.Finite("l2_bandwidth_bytes_per_second", proto.l2_bandwidth_bytes_per_second());
  a.hbm_bytes = proto.hbm_bytes();
  a.hbm_bandwidth_bytes_per_second =
      reader.Finite("hbm_bandwidth_bytes_per_second", proto.hbm_bandwidth_bytes_per_second());
  a.nvlink_bandwidth_bytes_per_second =
      reader.Finite("nvlink_bandwidth_bytes_per_second", proto.nvlink_bandwidth_bytes_per_second());
  a.pcie_bandwidth_bytes_per_second =
      reader.Finite("pcie_bandwidth_bytes_per_second", proto.pcie_bandwidth_bytes_per_second());
  a.power_watts = reader.Finite("power_watts", proto.power_watts());
  return reader.Finish(std::move(a));
}

types::v1::Cluster ToProto(const hardware::Cluster& c) {
  types::v1::Cluster proto;
  proto.set_name(c.name);
  *proto.mutable_accelerator() = ToProto(c.accelerator);
  proto.set_gpus_per_node(c.gpus_per_node);
  proto.set_node_count(c.node_count);
  proto.set_node_fabric(std::string(hardware::NodeFabricName(c.node_fabric)));
  proto.set_node_bandwidth_bytes_per_second(c.node_bandwidth_bytes_per_second);
  proto.set_node_latency_seconds(c.node_latency_seconds);
  proto.set_network_bandwidth_bytes_per_second(c.network_bandwidth_bytes_per_second);
  proto.set_network_latency_seconds(c.network_latency_seconds);
  proto.set_oversubscription(c.oversubscription);
  proto.set_network_stated(c.network_stated);
  return proto;
}

absl::StatusOr<hardware::Cluster> FromProto(const types::v1::Cluster& proto) {
  Reader reader;
  hardware::Cluster c;
  c.name = proto.name();
  if (proto.has_accelerator()) {
    c.accelerator = reader.Nested("accelerator", FromProto(proto.accelerator()));
  } else {
    reader.Missing("accelerator", "give the accelerator of the cluster's nodes");
  }
  if (proto.has_gpus_per_node()) {
    c.gpus_per_node = reader.Int("gpus_per_node", proto.gpus_per_node());
  }
  c.node_count = proto.node_count();
  c.node_fabric = reader.Word("node_fabric", proto.node_fabric(), hardware::ParseNodeFabric,
                              hardware::NodeFabric::kNvSwitch);
  c.node_bandwidth_bytes_per_second =
      reader.Finite("node_bandwidth_bytes_per_second", proto.node_bandwidth_bytes_per_second());
  c.node_latency_seconds = reader.Finite("node_latency_seconds", proto.node_latency_seconds());
  c.network_bandwidth_bytes_per_second = reader.Finite("network_bandwidth_bytes_per_second",
                                                       proto.network_bandwidth_bytes_per_second());
  c.network_latency_seconds =
      reader.Finite("network_latency_seconds", proto.network_latency_seconds());
  if (proto.has_oversubscription()) {
    c.oversubscription = reader.Finite("oversubscription", proto.oversubscription());
  }
  if (proto.has_network_stated()) c.network_stated = proto.network_stated();
  return reader.Finish(std::move(c));
}

}  // namespace sextant::wire
