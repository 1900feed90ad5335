#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and predicts published A100 and H100 cases:
# prints predicted against measured.
set -euo pipefail
cd "$(dirname "$0")"
. deploy/setup.sh

install_missing_packages
build_preset release sextant
say ""
exec build/release/services/cli/sextant validate datasets/measurements/training.csv \
  datasets/measurements/inference.csv --ids datasets/measurements/published_cases.csv --rows
