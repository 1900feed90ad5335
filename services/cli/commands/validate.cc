// SPDX-License-Identifier: Apache-2.0
#include "services/cli/commands/validate.h"

#include "calibration/evaluate/validate.h"
#include "common/base/status_macros.h"
#include "services/cli/library.h"
#include "services/cli/measured.h"
#include "services/cli/remote.h"
#include "services/cli/render/validation.h"

namespace sextant::cli {
namespace {

absl::StatusOr<calibration::ValidationReport> Validate(
    const CommonOptions& common, const calibration::Measurements& measurements,
    const catalog::Catalog& catalog, Terminal& terminal) {
  if (!common.server.empty()) {
    const client::Client client = ConnectedClient(common, terminal);
    RemoteOperatorCost operator_cost(client);
    RemoteNetworkTime network_time(client);
    return calibration::Validate(measurements, operator_cost, network_time);
  }
  SEXTANT_ASSIGN_OR_RETURN(const auto parameters, ParametersInUse(common, catalog, terminal));
  return calibration::Validate(measurements, parameters);
}

}  // namespace

absl::StatusOr<ExitCode> ValidateMeasurements(const CommonOptions& common,
                                              const ValidateOptions& options, Terminal& terminal) {
  SEXTANT_ASSIGN_OR_RETURN(const catalog::Catalog catalog, OpenCatalog());
  SEXTANT_ASSIGN_OR_RETURN(calibration::Measurements measurements,
                           ReadMeasuredFiles(options.files, options.context, catalog, terminal));
  if (!options.ids_file.empty()) {
    SEXTANT_ASSIGN_OR_RETURN(const std::string list, terminal.Read(options.ids_file));
    SEXTANT_RETURN_IF_ERROR(KeepListedIds(list, options.ids_file, &measurements, terminal));
  }
  SEXTANT_ASSIGN_OR_RETURN(const calibration::ValidationReport report,
                           Validate(common, measurements, catalog, terminal));
  terminal.Print(common.output == "json" ? ValidationJson(report)
                                         : ValidationText(report, options.rows));
  return ExitCode::kOk;
}

}  // namespace sextant::cli
