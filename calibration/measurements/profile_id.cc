// SPDX-License-Identifier: Apache-2.0
#include "calibration/measurements/profile_id.h"

#include "absl/strings/ascii.h"

namespace sextant::calibration {

std::string ProfileId(absl::string_view software) {
  std::string id;
  int depth = 0;
  bool blank = false;
  for (const char c : software) {
    if (c == '(') ++depth;
    if (depth == 0) {
      if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
        blank = !id.empty();
      } else {
        if (blank) id.push_back('-');
        blank = false;
        id.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
      }
    }
    if (c == ')' && depth > 0) --depth;
  }
  return id;
}

}  // namespace sextant::calibration
