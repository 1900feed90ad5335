// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_TECHNOLOGY_H_
#define SEXTANT_COMMON_CATALOG_TECHNOLOGY_H_

#include "absl/status/statusor.h"
#include "common/catalog/catalog.h"
#include "common/hardware/what_if.h"

namespace sextant::catalog {

// The tables of datasets/technology/default.yaml; empty ones where there is no such file.
// INVALID_ARGUMENT with every violation of a broken file.
absl::StatusOr<hardware::Technologies> DefaultTechnologies(const Catalog& catalog);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_TECHNOLOGY_H_
