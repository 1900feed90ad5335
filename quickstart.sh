#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and predicts published A100 and H100 cases:
# prints predicted against measured.
set -euo pipefail
cd "$(dirname "$0")"
. deploy/setup.sh

install_missing_packages
build_preset release sextant

# Every case goes to a file. On screen: the Megatron steps, every 12th case of the other suites, and
# the errors over all cases.
all_cases=build/published_cases.txt
build/release/services/cli/sextant validate datasets/measurements/training.csv \
  datasets/measurements/inference.csv --ids datasets/measurements/published_cases.csv --rows \
  >"$all_cases"
awk 'NR <= 2 || /^$/ { tables += /^$/; print; next }
     tables > 0 || $1 == "korthikanti-2022" { print; next }
     !/skipped/ && $3 != "throughput" && ++seen % 12 == 1' "$all_cases"
say ""
say "All cases: $all_cases. Next: build/release/services/cli/sextant --help"
