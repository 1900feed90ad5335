// SPDX-License-Identifier: Apache-2.0
#include "common/wire/convert_technology.h"

namespace sextant::wire {
namespace {

template <typename Map>
auto Table(const Map& map) {
  return hardware::ByName<typename Map::mapped_type>(map.begin(), map.end());
}

}  // namespace

hardware::Technologies FromProto(const types::v1::Technologies& proto) {
  hardware::Technologies t{
      .logic_rate = Table(proto.logic_rate()),
      .logic_of_architecture = Table(proto.logic_of_architecture()),
      .stacks_of_accelerator = Table(proto.stacks_of_accelerator()),
      .node_fabric_bytes_per_second = Table(proto.node_fabric_bytes_per_second()),
      .network_bytes_per_second = Table(proto.network_bytes_per_second())};
  for (const auto& [name, stack] : proto.memory()) {
    t.memory[name] = {stack.bandwidth_bytes_per_second(), stack.capacity_bytes()};
  }
  return t;
}

hardware::WhatIf FromProto(const types::v1::WhatIf& proto) {
  return {.logic = proto.logic(),
          .memory = proto.memory(),
          .node_fabric = proto.node_fabric(),
          .network = proto.network(),
          .scale = Table(proto.scale())};
}

}  // namespace sextant::wire
