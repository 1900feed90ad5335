// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_ORIGIN_H_
#define SEXTANT_CALIBRATION_INGEST_ORIGIN_H_

#include <string>
#include <vector>

namespace sextant::ingest {

// Where and when something was measured, as far as its file says so.
struct Origin {
  std::string device;    // the accelerator as the file spells it: "NVIDIA H100 80GB HBM3"
  std::string software;  // "NCCL 2.27.3", "vllm"; a profile id comes of it
  std::string time;      // "2025-12-19 10:49:15"
};

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_ORIGIN_H_
