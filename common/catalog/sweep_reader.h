// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_SWEEP_READER_H_
#define SEXTANT_COMMON_CATALOG_SWEEP_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/catalog/catalog.h"
#include "common/sweep/run_sweep.h"

namespace sextant::catalog {

// The sweep that a sweep file describes, valid in the sense of ValidateSweep. A mapping of
//
//   job: what stays: a job file's content, or the path of one
//   vary: path in the job file -> what it may be. Sizes and words of `plan.` that the sweep
//     enumerates (tensor_parallel_size, ..., schedule, recompute) take `all`, a value or a list;
//     `plan: all` is all of them. Any other path (cluster, gpu_count, training.global_batch_size,
//     cluster.network_bandwidth_bytes_per_second, faults, ...) takes a list, {from, to, times} or
//     {from, to, step}; all combinations are made.
//   limits: metric -> bound that every row meets
//   require_fit (true), rank_by (tokens_per_second), pareto ([total_seconds, memory_bytes]),
//   top (20), sample (0)
//
// A job file alone is a sweep over every plan of its GPU count. `overrides` ("path=value") are
// applied to the job first.
// All violations at once; NOT_FOUND where only names or files are unknown, otherwise
// INVALID_ARGUMENT. `notes` as ReadJob. O(combinations outside the plan).
absl::StatusOr<sweep::SweepSpec> ReadSweep(absl::string_view yaml_text, absl::string_view file_name,
                                           const std::vector<std::string>& overrides,
                                           const Catalog& catalog,
                                           std::vector<std::string>* notes = nullptr);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_SWEEP_READER_H_
