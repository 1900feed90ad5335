// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_COMMON_RESILIENCE_GOODPUT_H_
#define SEXTANT_COMMON_RESILIENCE_GOODPUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sextant::resilience {

// How a cluster breaks and how a run recovers. Shipped profiles, each number with its source:
// datasets/reliability.
struct ReliabilityProfile {
  double interruptions_per_million_gpu_hours = 0;  // that end a run, whatever the cause
  double node_loss_share = 0;     // of them, those after which a node must be repaired; [0, 1]
  double detection_seconds = 0;   // from the fault to the decision to restart
  double restart_seconds = 0;     // from there to the first step: start, load, warm up
  double repair_seconds = 0;      // mean, until a lost node is back
  double checkpoint_seconds = 0;  // for which a checkpoint stops the run
  // What one GPU's share of the storage takes, for checkpoints by the size of a job
  // (checkpoint.h); 0: not known.
  double checkpoint_bytes_per_second_per_gpu = 0;
  double straggler_share = 0;  // of GPU time lost to slow ranks; [0, 1)

  friend bool operator==(const ReliabilityProfile&, const ReliabilityProfile&) = default;
};

struct GoodputQuestion {
  ReliabilityProfile profile;
  int64_t gpu_count = 0;
  int64_t spare_node_count = 0;            // beside the job's own nodes
  double checkpoint_interval_seconds = 0;  // of work between checkpoints; 0: the best one
};

// Shares of a run's wall-clock time; useful + the losses sum to 1.
struct Goodput {
  double useful_share = 0;      // steps that count, at the speed of a run without stragglers
  double checkpoint_share = 0;  // writing checkpoints
  double rework_share = 0;      // steps, and writes of checkpoints, that were lost
  double recovery_share = 0;    // detection and restart
  double waiting_share = 0;     // no node to go on with
  double straggler_share = 0;

  double mean_seconds_between_interruptions = 0;
  double checkpoint_interval_seconds = 0;       // the one that the answer is for
  double best_checkpoint_interval_seconds = 0;  // exact optimum of this model
  double young_interval_seconds = 0;            // sqrt(2 C M)
  double daly_interval_seconds = 0;             // its higher-order estimate
};

// Every rule that the question breaks, by field name.
absl::Status ValidateGoodputQuestion(const GoodputQuestion& question);

// Expected goodput of a run much longer than the time between interruptions. Interruptions are
// Poisson and strike at any time but while the run waits for nodes (also in restarts and
// checkpoints); a checkpoint holds once it is written. Then the wall-clock time of an interval is
// M e^(R/M) (e^((T+C)/M) - 1) (Daly 2006, equation 20), its optimum solves
// (1 - T/M) e^((T+C)/M) = 1, and the share of time without a node is Erlang's loss formula with
// spares + 1 servers, whatever the distribution of repair times. O(spares).
// INVALID_ARGUMENT with all violations.
absl::StatusOr<Goodput> ExpectedGoodput(const GoodputQuestion& question);

// The same by events, for checking the closed form: one seeded run of `interruption_count`
// interruptions. Equal seeds give equal bytes. O(interruptions + checkpoints).
absl::StatusOr<Goodput> SimulateGoodput(const GoodputQuestion& question, int64_t interruption_count,
                                        uint64_t seed);

}  // namespace sextant::resilience

#endif  // SEXTANT_COMMON_RESILIENCE_GOODPUT_H_
