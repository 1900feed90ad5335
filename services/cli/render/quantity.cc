// SPDX-License-Identifier: Apache-2.0
#include "services/cli/render/quantity.h"

#include <array>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sextant::cli {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

// Four significant digits with trailing zeros, so that columns line up: 1.234, 12.34, 123.4, 1234.
std::string FourDigits(double value) {
  const double magnitude = std::abs(value);
  const int decimals = magnitude < 9.9995 ? 3 : magnitude < 99.995 ? 2 : magnitude < 999.95 ? 1 : 0;
  return absl::StrFormat("%.*f", decimals, value);
}

}  // namespace

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds == 0) return "0 s";
  constexpr std::array<Scale, 4> kScales = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  for (const Scale& scale : kScales) {
    if (std::abs(seconds) >= scale.factor * 0.99995 || scale.factor == 1e-9) {
      return absl::StrCat(FourDigits(seconds / scale.factor), " ", scale.unit);
    }
  }
  return "-";
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<Scale, 4> kScales = {
      {{1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}}};
  const double value = static_cast<double>(bytes);
  for (const Scale& scale : kScales) {
    if (std::abs(value) >= scale.factor) {
      return absl::StrCat(FourDigits(value / scale.factor), " ", scale.unit);
    }
  }
  return absl::StrCat(bytes, " B");
}

std::string FormatRate(double per_second, absl::string_view unit) {
  if (!std::isfinite(per_second)) return "-";
  if (std::abs(per_second) >= 1e6) {
    return absl::StrCat(FourDigits(per_second / 1e6), " M ", unit, "/s");
  }
  if (std::abs(per_second) >= 1e4) {
    return absl::StrFormat("%.0f %s/s", per_second, unit);
  }
  return absl::StrCat(FourDigits(per_second), " ", unit, "/s");
}

std::string FormatShare(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  return absl::StrFormat("%.1f %%", fraction * 100);
}

std::string FormatPercent(double percent) {
  if (!std::isfinite(percent)) return "-";
  return absl::StrFormat("%+.1f %%", percent);
}

std::string FormatNumber(double number) {
  if (!std::isfinite(number)) return "-";
  return absl::StrFormat("%.4g", number);
}

}  // namespace sextant::cli
