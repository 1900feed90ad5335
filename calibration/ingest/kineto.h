// SPDX-License-Identifier: Apache-2.0
// Which kernels ran how long, by a trace of the PyTorch profiler?
#ifndef SEXTANT_CALIBRATION_INGEST_KINETO_H_
#define SEXTANT_CALIBRATION_INGEST_KINETO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibration/ingest/origin.h"
#include "calibration/ingest/refusals.h"

namespace sextant::ingest {

struct KernelTotal {
  std::string name;
  int64_t count = 0;
  double total_seconds = 0;
};

// A matrix product that the trace ties to its kernels: C[m,n] = A[m,k] B[k,n].
struct KinetoGemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch_count = 1;
  std::string data_type;      // "bf16", "fp16", "fp32", "fp8"
  std::string layout;         // "TN", "NN", "NT"; empty: strides not recorded
  int64_t count = 0;          // calls
  double median_seconds = 0;  // of the kernels of one call together
};

// A collective whose kernel carries its sizes (PyTorch 2.2 and later).
struct KinetoCollective {
  std::string collective;  // "all_reduce", ...
  int64_t bytes = 0;       // as nccl-tests count them
  int64_t group_size = 0;
  int64_t count = 0;
  // One rank's kernel also waits for the other ranks: the shortest is nearest to the transfer.
  double shortest_seconds = 0;
  double median_seconds = 0;
};

struct KinetoReading {
  Origin origin;
  std::optional<int64_t> world_size;
  std::optional<int64_t> rank;
  std::vector<KernelTotal> kernels;        // by name, longest total first
  int64_t kernel_count = 0;                // events of category kernel
  double kernel_seconds = 0;               // sum of their durations, overlap not subtracted
  int64_t communication_kernel_count = 0;  // of these NCCL's and RCCL's
  double communication_kernel_seconds = 0;
  int64_t copy_count = 0;  // memory copies and sets on the device
  double copy_seconds = 0;
  std::vector<KinetoGemm> gemms;
  std::vector<KinetoCollective> collectives;
  bool truncated = false;  // the file ends early; what came before is counted
  std::string error;       // why reading stopped; empty: it did not
  Refusals refusals;       // annotations that bear the name of a kernel among them
};

// JSON of torch.profiler (already unpacked): an object with "traceEvents", or the bare array.
// Durations are microseconds by the Chrome trace format. Memory grows with distinct names, shapes
// and calls up to fixed limits, not with all events. Linear in the text; never fails.
KinetoReading ReadKineto(absl::string_view text);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_KINETO_H_
