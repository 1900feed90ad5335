// SPDX-License-Identifier: Apache-2.0
// Which kernels took how long, by a kernel summary of Nsight Systems?
#ifndef SEXTANT_CALIBRATION_INGEST_NSYS_H_
#define SEXTANT_CALIBRATION_INGEST_NSYS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "calibration/ingest/refusals.h"

namespace sextant::ingest {

struct NsysKernel {
  std::string name;
  int64_t instance_count = 0;
  double total_seconds = 0;
  // Per instance; absent where the table has no such column.
  std::optional<double> mean_seconds;
  std::optional<double> median_seconds;
  std::optional<double> minimum_seconds;
  std::optional<double> maximum_seconds;
  std::optional<double> deviation_seconds;
  std::optional<double> share_percent;  // of the total of all kernels, as printed
  bool name_is_cut = false;             // ends in an ellipsis
  bool is_communication = false;        // a kernel of NCCL or RCCL
};

struct NsysReading {
  std::vector<NsysKernel> kernels;  // in the file's order
  bool complete = true;             // false: the list says that it goes on ("...") or shares lack
  std::string report;               // "cuda_gpu_kern_sum"; empty where not said
  Refusals refusals;                // rows of API calls, ranges and memory copies among them
};

// Text of `nsys stats` for kernels: CSV with the header of any version ("Time (%)", "Avg (ns)";
// "Time(%)", "Average"; times in ns, us, ms or s) or the default columns. Tables of other reports
// in the same text (API calls, NVTX ranges, memory operations) are refused: they only bear names.
// At most kKernelLimit kernels. Linear in the text; never fails.
NsysReading ReadNsys(absl::string_view text);
inline constexpr size_t kNsysKernelLimit = 200'000;

// Whether a line is the header of a kernel summary. For the detector.
bool IsNsysKernelHeader(absl::string_view line);

// Whether a kernel of this name moves data between GPUs: NCCL and RCCL.
bool IsCommunicationKernel(absl::string_view name);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_NSYS_H_
