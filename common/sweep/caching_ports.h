// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_SWEEP_CACHING_PORTS_H_
#define SEXTANT_COMMON_SWEEP_CACHING_PORTS_H_

#include <memory>

#include "common/orchestrator/local_ports.h"

namespace sextant::sweep {

using CachingOperatorCost = orchestrator::LocalOperatorCost;
using CachingNetworkTime = orchestrator::LocalNetworkTime;

}  // namespace sextant::sweep

#endif  // SEXTANT_COMMON_SWEEP_CACHING_PORTS_H_
