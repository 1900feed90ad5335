// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_ECONOMICS_H_
#define SEXTANT_COMMON_CATALOG_ECONOMICS_H_

#include "absl/status/statusor.h"
#include "common/catalog/catalog.h"
#include "common/energy/energy.h"

namespace sextant::catalog {

// Power and prices of datasets/economics/default.yaml; unknown ones where there is no such file.
// INVALID_ARGUMENT with every violation of a broken file.
absl::StatusOr<energy::Economics> DefaultEconomics(const Catalog& catalog);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_ECONOMICS_H_
