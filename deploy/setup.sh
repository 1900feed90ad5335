#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shared by quickstart.sh and test.sh: install what is missing, configure, build with short progress.

say() { printf '%s\n' "$*" >&2; }

install_missing_packages() {
  local missing=() package
  while read -r package; do
    case "$package" in '' | '#'*) continue ;; esac
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done <deploy/packages.txt
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "Run as root, or install: ${missing[*]}"; return 1; }
    as_root=(sudo)
  fi
  say "Installing ${#missing[@]} Debian packages ..."
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  # Tests run Prometheus themselves; a daemon would take the port of the metrics.
  case " ${missing[*]} " in
    *' prometheus '*) "${as_root[@]}" systemctl disable --now prometheus >/dev/null 2>&1 || true ;;
  esac
}

# build_preset PRESET [TARGET...]: all of the build's output goes to a log that is shown on failure;
# progress is one line per tenth of the work.
build_preset() {
  local preset=$1
  shift
  local log=build/$preset.log
  mkdir -p build
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    return 1
  fi
  say "Building (${preset}) ..."
  NINJA_STATUS='[%p] ' ninja -C "build/$preset" "$@" 2>&1 | tee -a "$log" |
    awk '/^\[ *[0-9]+%\]/ { p = $0; sub(/%.*/, "", p); gsub(/[^0-9]/, "", p); t = int(p / 10)
           if (t > last) { last = t; printf "  %d %%\n", t * 10; fflush() } }' >&2
  if [ "${PIPESTATUS[0]}" -ne 0 ]; then
    grep -E 'error|FAILED' -A 5 "$log" | tail -n 40 >&2
    return 1
  fi
}
