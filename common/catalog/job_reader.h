// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_JOB_READER_H_
#define SEXTANT_COMMON_CATALOG_JOB_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/catalog/catalog.h"
#include "common/workload/job.h"

namespace sextant::catalog {

// The job that a job file describes, valid in the sense of ValidateJob.
//
// `model` is a catalog name, the path of a Hugging Face config.json (or of the folder that holds
// one) or of a YAML mapping, or a mapping; `cluster` likewise, and its `accelerator` is a catalog
// name or a mapping. A mapping whose `name` is a catalog entry starts from that entry and overrides
// what it gives. A relative path is tried from the working directory, then from the folder of
// `file_name`. Each of `set_overrides` is "path=value" ("plan.micro_batch_size=2",
// "faults[0].scope=node", "model.layer_count=16"); the last one for a path holds.
//
// Defaults are those of the .proto comments, except: without data_parallel_size it is what makes
// the sizes multiply out to gpu_count; without gpu_count that is the product of the sizes; the KV
// cache of an fp16 job is fp16.
//
// All violations at once, by the paths of the job file: NOT_FOUND where only names or files are
// unknown, otherwise INVALID_ARGUMENT. `notes`, if given, receives what was assumed or left out
// while reading a configuration. Thread-safe.
// `what_if` (sextant.types.v1.WhatIf) changes the cluster once it is known.
absl::StatusOr<workload::Job> ReadJob(absl::string_view yaml_text, absl::string_view file_name,
                                      const std::vector<std::string>& set_overrides,
                                      const Catalog& catalog,
                                      std::vector<std::string>* notes = nullptr);

// The same of a job whose plan and GPU count are still to be chosen: valid in the sense of
// ValidateOpenJob.
absl::StatusOr<workload::Job> ReadOpenJob(absl::string_view yaml_text, absl::string_view file_name,
                                          const std::vector<std::string>& set_overrides,
                                          const Catalog& catalog,
                                          std::vector<std::string>* notes = nullptr);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_JOB_READER_H_
