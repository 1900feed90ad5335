#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything and runs all tests. Arguments go to ctest, for example: ./test.sh -L unit
# SEXTANT_TEST_PRESET chooses another preset (dev, asan, tsan).
set -euo pipefail
cd "$(dirname "$0")"
. deploy/setup.sh

preset=${SEXTANT_TEST_PRESET:-release}
install_missing_packages
build_preset "$preset" all
ctest --preset "$preset" -j "$(nproc)" --progress "$@"
