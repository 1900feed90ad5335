#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One question of job_submit.lua: reads the request file "$1" (key value lines, then "job" and the
# description) and prints the answer as KEY=VALUE lines, within the budget. Nothing in the file
# becomes part of a command line but as one whole argument.
set -u
declare -A of=()
{
  while IFS=' ' read -r key value; do
    [ "$key" = job ] && break
    of[$key]=$value
  done
  text=$(head -c 16384)
} <"$1"

number() { [[ "${1:-}" =~ ^[0-9]+(\.[0-9]+)?$ ]] && printf '%s' "$1" || printf '%s' "$2"; }
budget=$(number "${of[budget]:-}" 0.2)
arguments=(advise - --output env --server "${of[server]}" --timeout "$budget"
  --steps "$(number "${of[steps]:-}" 0)" --margin "$(number "${of[margin]:-}" 0.1)"
  --min-gpus "$(number "${of[min_gpus]:-}" 0)" --max-gpus "$(number "${of[max_gpus]:-}" 0)")
[ "$(number "${of[min_gpus]:-}" 0)" -gt 0 ] && arguments+=(--set "gpu_count=${of[min_gpus]}")
# The cluster of the partition is for descriptions that name none.
if [ -n "${of[cluster]:-}" ] && ! [[ "$text" =~ (^|[{,[:space:]\"])cluster\"?: ]]; then
  arguments+=(--set "cluster=${of[cluster]}")
fi
# slurmctld blocks signals, and children inherit that: only KILL is sure.
timeout --signal=KILL "$budget" "${of[sextant]}" "${arguments[@]}" <<<"$text" \
  >"$1.answer" 2>"$1.error"
code=$?
problem=$(head -c 4000 "$1.error" | sed -e '/^hint: /d' -e 's/^sextant: error: //' | tr -s '\n ' ' ')
case $code in
  0 | 6) head -c 60000 "$1.answer" ;;
  3 | 4) printf 'SEXTANT_ERROR=%s\n' "$problem" ;;
  *) printf 'SEXTANT_FAILURE=%s\n' "${problem:-no answer within $budget s}" ;;
esac
rm -f "$1.answer" "$1.error"
