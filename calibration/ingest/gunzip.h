// SPDX-License-Identifier: Apache-2.0
#ifndef SEXTANT_CALIBRATION_INGEST_GUNZIP_H_
#define SEXTANT_CALIBRATION_INGEST_GUNZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sextant::ingest {

bool IsGzip(absl::string_view bytes);

struct Inflated {
  std::string text;
  bool truncated = false;  // the gzip data ends early or is damaged; `text` is what came before
};

// The content of gzip data, members one after another as `cat a.gz b.gz` makes them.
// INVALID_ARGUMENT where nothing can be read, RESOURCE_EXHAUSTED above `limit_bytes` of content.
absl::StatusOr<Inflated> Gunzip(absl::string_view bytes, size_t limit_bytes);

}  // namespace sextant::ingest

#endif  // SEXTANT_CALIBRATION_INGEST_GUNZIP_H_
