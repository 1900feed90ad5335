// SPDX-License-Identifier: Apache-2.0
// Real files of the reference folder, for tests.
#ifndef SEXTANT_CALIBRATION_INGEST_TEST_SAMPLES_H_
#define SEXTANT_CALIBRATION_INGEST_TEST_SAMPLES_H_

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace sextant::ingest {

// The folder of real files; empty where SEXTANT_REFERENCE_DIR is not set.
inline std::string SamplesFolder() {
  const char* folder = std::getenv("SEXTANT_REFERENCE_DIR");
  return folder == nullptr || *folder == '\0' ? "" : std::string(folder) + "/samples/";
}

inline std::string ReadSample(const std::string& name) {
  std::ifstream file(SamplesFolder() + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Leaves the test, with a message, where the folder is not there.
#define SEXTANT_NEEDS_SAMPLES()                                                     \
  if (::sextant::ingest::SamplesFolder().empty()) {                                 \
    GTEST_SKIP() << "SEXTANT_REFERENCE_DIR is not set: real files are not at hand"; \
  }                                                                                 \
  static_assert(true)

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_TEST_SAMPLES_H_
