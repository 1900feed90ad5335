// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_MEASUREMENTS_ROW_READER_H_
#define SEXTANT_CALIBRATION_MEASUREMENTS_ROW_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibration/measurements/csv.h"
#include "calibration/measurements/rows.h"
#include "common/base/violations.h"
#include "common/catalog/catalog.h"

namespace sextant::calibration {

// Catalog entries by the names of a file's rows, each looked up once: tables repeat few names
// thousands of times, and a name that is unknown costs a scan of its folder.
class Lookups {
 public:
  explicit Lookups(const catalog::Catalog& catalog) : catalog_(catalog) {}

  const absl::StatusOr<hardware::Accelerator>& Accelerator(absl::string_view name);
  const absl::StatusOr<hardware::Cluster>& Cluster(absl::string_view name);
  const absl::StatusOr<std::string>& DefaultCluster(absl::string_view accelerator);
  const absl::StatusOr<workload::ModelArchitecture>& Model(absl::string_view name);

  // One shared copy per distinct key; `make` is asked on the first use.
  std::map<std::string, std::shared_ptr<const hardware::Accelerator>> accelerators;
  std::map<std::string, std::shared_ptr<const hardware::Cluster>> clusters;

 private:
  const catalog::Catalog& catalog_;
  std::map<std::string, absl::StatusOr<hardware::Accelerator>, std::less<>> accelerator_;
  std::map<std::string, absl::StatusOr<hardware::Cluster>, std::less<>> cluster_;
  std::map<std::string, absl::StatusOr<std::string>, std::less<>> default_cluster_;
  std::map<std::string, absl::StatusOr<workload::ModelArchitecture>, std::less<>> model_;
};

// One row of a table, read by column name. What is wrong is collected in `violations`.
class RowReader {
 public:
  RowReader(const CsvTable& table, size_t row, const std::map<std::string, int, std::less<>>& index)
      : fields_(table.rows[row]), index_(index) {}

  // The stripped field; empty where it is empty or the file has no such column.
  absl::string_view Text(absl::string_view column) const;
  bool Has(absl::string_view column) const { return !Text(column).empty(); }

  // A whole number of at least `minimum`; nothing where empty, and a violation where it is not one.
  std::optional<int64_t> Integer(absl::string_view column, int64_t minimum = 1);
  // The same, and empty is a violation ("is not stated and has no default"); then 0.
  int64_t RequiredInteger(absl::string_view column, int64_t minimum = 1);
  // Empty: the default, said in `warnings`.
  int64_t IntegerOr(absl::string_view column, int64_t value, std::vector<std::string>* warnings,
                    int64_t minimum = 1);
  // A finite number above 0; nothing where empty.
  std::optional<double> Positive(absl::string_view column);
  double RequiredPositive(absl::string_view column);

  void Missing(absl::string_view column);
  base::Violations& violations() { return violations_; }
  // All violations in one line, "field: what; field: what"; empty where there is none.
  std::string Refusal() const;

 private:
  const std::vector<std::string>& fields_;
  const std::map<std::string, int, std::less<>>& index_;
  base::Violations violations_;
};

// id, suite, source, role, quality, accelerator; `software_column` gives the profile.
RowFacts ReadFacts(RowReader& row, absl::string_view software_column);

// The cluster of a row: its own, else the one that its other columns describe (`described`, may be
// empty), else the accelerator's default (said in facts.warnings), with the row's accelerator. `gpus_per_node` above 0 replaces the cluster's. Null and a violation where the
// accelerator or cluster is missing or unknown.
std::shared_ptr<const hardware::Cluster> ReadCluster(RowReader& row, Lookups& lookups,
                                                     int64_t gpus_per_node, RowFacts* facts,
                                                     absl::string_view described = "");

// The number formats of words such as "bf16", "fp8-cs", "fp8 rowwise": the first word decides.
std::optional<hardware::Precision> ReadPrecision(RowReader& row, absl::string_view column);

// One line of text for the violations of `status` under the names of the file's columns.
std::string OneLine(const absl::Status& status);

OperatorRow ReadOperatorRow(RowReader& row, Lookups& lookups);
CollectiveRow ReadCollectiveRow(RowReader& row, Lookups& lookups);
TrainingRow ReadTrainingRow(RowReader& row, Lookups& lookups);
InferenceRow ReadInferenceRow(RowReader& row, Lookups& lookups);

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_MEASUREMENTS_ROW_READER_H_
