// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_RELIABILITY_H_
#define SEXTANT_COMMON_CATALOG_RELIABILITY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/catalog/catalog.h"
#include "common/resilience/goodput.h"

namespace sextant::catalog {

// The profile of datasets/reliability by name, or in a file (a name with '/' or ending in .yaml).
// NOT_FOUND with the nearest names; INVALID_ARGUMENT with every violation of a broken file.
absl::StatusOr<resilience::ReliabilityProfile> FindReliability(const Catalog& catalog,
                                                               absl::string_view name_or_path);

// Names, sorted.
std::vector<std::string> ReliabilityNames(const Catalog& catalog);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_RELIABILITY_H_
