// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_CONCURRENT_READER_H_
#define SEXTANT_COMMON_CATALOG_CONCURRENT_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/catalog/catalog.h"
#include "common/collectives/concurrent.h"

namespace sextant::catalog {

// The question in a YAML or JSON file: fields of sextant.types.v1.ConcurrentCollectives, its
// `cluster` the name of a cluster of the catalog or a mapping. INVALID_ARGUMENT with every
// violation by the paths of the file; NOT_FOUND where only the cluster's name is unknown.
absl::StatusOr<collectives::ConcurrentCollectives> ReadConcurrentCollectives(
    absl::string_view text, absl::string_view file_name, const Catalog& catalog);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_CONCURRENT_READER_H_
