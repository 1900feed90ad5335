// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_FIT_COLLECTIVES_FIT_COLLECTIVES_H_
#define SEXTANT_CALIBRATION_FIT_COLLECTIVES_FIT_COLLECTIVES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/collectives/collective.h"
#include "common/hardware/cluster.h"
#include "common/parameters/parameter_set.h"

namespace sextant::calibration {

// One measured collective. The cluster holds the facts under which it is predicted; groups are
// fitted per accelerator (its name).
struct CollectiveFitRow {
  std::string id;
  std::string suite;
  collectives::Collective collective;
  hardware::Cluster cluster;
  std::string profile;  // id of the software; "nccl-2.27.3" and the like are the library itself
  double measured_seconds = 0;
  double weight = 1;  // > 0
};

// Profile for rows whose software is not stated: benchmark programs that launch each call from the
// host (nccl-tests, framework profilers), unlike kernels inside a captured graph.
inline constexpr absl::string_view kHostLaunchedProfile = "nccl-tests";

struct CollectiveFitOptions {
  // Residuals of log(predicted / measured) beyond this count linearly, not squared.
  double robust_scale = 0.15;
  double prior_rows = 0.03;  // pull towards the start (BlockFitOptions); holds what data leave open
  int max_iterations = 200;
  int min_profile_rows = 8;       // fewer do not make a profile of their own
  double min_profile_gain = 0.1;  // a profile must lower the mean error by this share
};

struct CollectiveFit {
  // Fitted values per accelerator: keys of common/collectives only; domains of the fitted blocks.
  std::map<std::string, parameters::AcceleratorParameters, std::less<>> accelerators;
  std::vector<std::string> notes;  // blocks left alone, profiles not worth keeping
  int used_rows = 0;
};

// Fits the blocks of common/collectives per accelerator, by least squares of log(predicted /
// measured) under a robust loss, inside the descriptors' bounds:
//   1. per fabric and family, shared values on the rows of the library itself (on all rows, where
//      it has none), in-network reduction together with all-reduce;
//   2. per further profile the fixed and low-latency costs, kept where they lower the error;
//   3. the network block on rows that span nodes of a stated fabric, the first two kept fixed.
// Suites are balanced within a block: weights grow with the square root of a suite's rows.
// INVALID_ARGUMENT for rows that are not valid ("rows[i].") or not positive. Deterministic.
absl::StatusOr<CollectiveFit> FitCollectives(absl::Span<const CollectiveFitRow> rows,
                                             const parameters::ParameterSet& initial,
                                             const CollectiveFitOptions& options = {});

// `base` with the values of `fit` in place of those of the same keys.
parameters::ParameterSet WithCollectives(const parameters::ParameterSet& base,
                                         const CollectiveFit& fit,
                                         parameters::Provenance provenance);

// Mean of |predicted / measured - 1| over rows, in percent; 0 for no rows.
double CollectiveMapePercent(absl::Span<const CollectiveFitRow> rows,
                             const parameters::ParameterSet& set);

// Errors on rows that were not fitted: whole groups (suite, profile, GPUs, kind) are dealt into
// `fold_count` folds by a hash of their name; each fold is predicted from a fit on the others.
struct HeldOutErrors {
  double mape_percent = 0;
  double median_percent = 0;
  std::map<std::string, double> mape_percent_by_group;
};
absl::StatusOr<HeldOutErrors> HoldOutGroups(absl::Span<const CollectiveFitRow> rows,
                                            const parameters::ParameterSet& initial, int fold_count,
                                            const CollectiveFitOptions& options = {});

}  // namespace sextant::calibration

#endif  // SEXTANT_CALIBRATION_FIT_COLLECTIVES_FIT_COLLECTIVES_H_
