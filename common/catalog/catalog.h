// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_CATALOG_CATALOG_H_
#define SEXTANT_COMMON_CATALOG_CATALOG_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/hardware/accelerator.h"
#include "common/hardware/cluster.h"
#include "common/parameters/parameter_set.h"
#include "common/workload/model_architecture.h"

namespace sextant::catalog {

// The entries of a datasets directory: hardware/, models/, clusters/ and parameters/, one YAML file
// per entry, named by its id. An entry may list `aliases`; ids and aliases are matched without
// regard to case, and '_' and ' ' match '-'. Every id and alias of a folder is unique (tested).
//
// Lazy: a file is read when it is first asked for, then remembered; an alias costs one scan of the
// heads of its folder. Copies share what was read. Thread-safe.
//
// Unknown names are NOT_FOUND with the nearest known ones; a file that is broken is
// INVALID_ARGUMENT with its violations.
class Catalog {
 public:
  // NOT_FOUND where `datasets_directory` has no hardware/ folder.
  static absl::StatusOr<Catalog> Open(std::string datasets_directory);

  absl::StatusOr<hardware::Accelerator> FindAccelerator(absl::string_view name) const;
  absl::StatusOr<workload::ModelArchitecture> FindModel(absl::string_view name) const;
  absl::StatusOr<hardware::Cluster> FindCluster(absl::string_view name) const;

  // The cluster that a job on `accelerator` (id or alias) is taken to run on where none is stated:
  // the `default_cluster` of its file.
  absl::StatusOr<std::string> DefaultClusterName(absl::string_view accelerator) const;

  // "uncalibrated" is the set without fitted values; a name with '/' or ending in .yaml or .json is
  // a file; any other name is a file of parameters/.
  absl::StatusOr<parameters::ParameterSet> FindParameterSet(absl::string_view name_or_path) const;

  // Ids, sorted.
  std::vector<std::string> AcceleratorNames() const;
  std::vector<std::string> ModelNames() const;
  std::vector<std::string> ClusterNames() const;
  std::vector<std::string> ParameterSetNames() const;  // "uncalibrated" included

  // Ids and aliases of all models, each with the id that it stands for; sorted by name.
  std::vector<std::pair<std::string, std::string>> ModelAliases() const;

  const std::string& datasets_directory() const;

 private:
  struct State;
  explicit Catalog(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// Writes `set` as YAML that reads back to the same version. Atomic: the file at `path` is the old
// one or the new one, never a part. Equal sets give equal bytes.
absl::Status SaveParameterSet(const parameters::ParameterSet& set, const std::string& path);

// The set in the file at `path`, whose version, if stated, must be that of the content.
absl::StatusOr<parameters::ParameterSet> ReadParameterSet(const std::string& path);

// The environment's SEXTANT_DATASETS_DIR, else the datasets of the source tree that this library
// was built from, else the installed ones.
std::string DefaultDatasetsDirectory();

// The content of the file at `path`; NOT_FOUND or INVALID_ARGUMENT (a folder, above 8 MiB).
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// The form in which names are compared: lower case, '_' and blanks as '-'; at most 256 characters.
std::string CanonicalName(absl::string_view name);

// The names in the line `aliases: [...]` of an entry's text, read without parsing the rest.
std::vector<std::string> AliasesAtHead(absl::string_view text);

}  // namespace sextant::catalog

#endif  // SEXTANT_COMMON_CATALOG_CATALOG_H_
