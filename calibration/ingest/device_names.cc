// SPDX-License-Identifier: Apache-2.0
#include "calibration/ingest/device_names.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "calibration/ingest/text.h"

namespace sextant::ingest {

std::string AcceleratorOfDevice(absl::string_view device) {
  std::string key = KeyOf(device.substr(0, 100));
  absl::string_view name = key;
  absl::ConsumePrefix(&name, "nvidia_");
  absl::ConsumePrefix(&name, "hgx_");
  struct Name {
    absl::string_view spelled;  // KeyOf of the driver's name, without the vendor
    absl::string_view accelerator;
  };
  // Names of nvidia-smi (NVML device names); an SXM H100 says its memory and no form factor.
  constexpr Name kNames[] = {
      {"a100_sxm4_40gb", "a100-sxm4-40gb"}, {"a100_sxm4_80gb", "a100-sxm4-80gb"},
      {"a100_sxm_80gb", "a100-sxm4-80gb"},  {"a100_pcie_40gb", "a100-pcie-40gb"},
      {"a100_pcie_80gb", "a100-pcie-80gb"}, {"a100_80gb_pcie", "a100-pcie-80gb"},
      {"a800_sxm4_80gb", "a800-sxm4-80gb"}, {"h100_80gb_hbm3", "h100-sxm5-80gb"},
      {"h100_sxm5_80gb", "h100-sxm5-80gb"}, {"h100_pcie", "h100-pcie-80gb"},
      {"h100_nvl", "h100-nvl-94gb"},        {"h100_sxm5_96gb", "h100-sxm5-96gb-hbm2e"},
      {"h800", "h800-sxm5-80gb"},           {"h200", "h200-sxm5-141gb"},
      {"gh200_480gb", "gh200-96gb"}};
  for (const Name& known : kNames) {
    if (known.spelled == name) return std::string(known.accelerator);
  }
  return "";
}

}  // namespace sextant::ingest
