// SPDX-License-Identifier: Apache-2.0
// libFuzzer target; SEXTANT_FUZZED_READER is the number of the reader that it drives
// (CMakeLists.txt).
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "calibration/ingest/gunzip.h"
#include "calibration/ingest/ingest.h"

namespace sextant::ingest {
namespace {

void Drive(absl::string_view text) {
#if SEXTANT_FUZZED_READER == 0
  Ingest(text, "fuzz", {}).IgnoreError();
#elif SEXTANT_FUZZED_READER == 1
  ReadNcclTests(text);
#elif SEXTANT_FUZZED_READER == 2
  ReadKineto(text);
#elif SEXTANT_FUZZED_READER == 3
  ReadTrainingLog(text);
#elif SEXTANT_FUZZED_READER == 4
  ReadServing(text);
#elif SEXTANT_FUZZED_READER == 5
  ReadNsys(text);
#elif SEXTANT_FUZZED_READER == 6
  Gunzip(text, 1 << 20).IgnoreError();
#else
  IngestContext context;
  std::string job;
  ReadContextText(text, "fuzz", &context, &job).IgnoreError();
#endif
}

}  // namespace
}  // namespace sextant::ingest

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sextant::ingest::Drive({reinterpret_cast<const char*>(data), size});
  return 0;
}
