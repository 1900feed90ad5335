// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/calibrate.h"

#include "absl/strings/str_cat.h"
#include "calibration/calibrate/calibrate.h"
#include "common/base/status_macros.h"
#include "services/cli/commands/parameters.h"
#include "services/cli/library.h"
#include "services/cli/measured.h"
#include "services/cli/remote.h"

namespace sextant::cli {

absl::StatusOr<ExitCode> CalibrateParameters(const CommonOptions& common,
                                             const CalibrateOptions& options, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  SEXTANT_ASSIGN_OR_RETURN(const auto initial, options.initial.empty()
                                                   ? ParametersInUse(common, catalog, terminal)
                                                   : FindParameters(catalog, options.initial));
  SEXTANT_ASSIGN_OR_RETURN(const calibration::Measurements measurements,
                           ReadMeasuredFiles(options.files, options.context, catalog, terminal));
  terminal.Note(absl::StrCat("fitting ", measurements.size(), " rows"));
  calibration::CalibrationOptions fit_options;
  fit_options.name = options.name;
  SEXTANT_ASSIGN_OR_RETURN(const calibration::CalibrationResult result,
                           calibration::Calibrate(measurements, *initial, fit_options));
  SEXTANT_RETURN_IF_ERROR(catalog::SaveParameterSet(*result.set, options.output_file));
  terminal.Note(absl::StrCat("wrote version ", result.set->version(), " to ", options.output_file));
  terminal.Print(common.output == "json" ? calibration::CalibrationReportJson(result.report)
                                         : calibration::CalibrationReportText(result.report));
  if (options.targets.empty()) return ExitCode::kOk;
  if (!result.report.improved) {
    terminal.Warn("the held-out error got worse: nothing was pushed");
    return ExitCode::kOk;
  }
  for (const std::string& target : options.targets) {
    SEXTANT_ASSIGN_OR_RETURN(const auto versions,
                             PushSet(ClientOf(common, target), *result.set, terminal));
    for (const client::ServiceVersion& version : versions) {
      terminal.Note(absl::StrCat(target, ": ", version.service, " now serves ", version.version));
    }
  }
  return ExitCode::kOk;
}

}  // namespace sextant::cli
