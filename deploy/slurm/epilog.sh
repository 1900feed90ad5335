#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Slurm epilog (runs as root on each node of a job): takes what the job wrote about its steps, a
# training log such as Megatron's, from $SEXTANT_STEPS_DIRECTORY/sextant-<job id>.log into the folder
# that `sextant calibrate --watch` sends to calibration. Always ends well: an epilog that fails
# drains its node.
set -u
settings=${SEXTANT_EPILOG_CONFIG:-/etc/slurm/sextant_epilog.conf}
SEXTANT_STEPS_DIRECTORY=/tmp
SEXTANT_SPOOL=/var/spool/sextant
# shellcheck disable=SC1090
[ -r "$settings" ] && . "$settings"

case "${SLURM_JOB_COMMENT:-}" in 'sextant '*) ;; *) exit 0 ;; esac
[[ "${SLURM_JOB_ID:-}" =~ ^[0-9]+$ && "${SLURM_JOB_UID:-}" =~ ^[0-9]+$ ]] || exit 0
steps=$SEXTANT_STEPS_DIRECTORY/sextant-$SLURM_JOB_ID.log
name=slurm-$SLURM_JOB_ID-${SLURMD_NODENAME:-node}.log
umask 077
mkdir -p "$SEXTANT_SPOOL" && cd "$SEXTANT_SPOOL" || exit 0
# With the rights of the job's user: a link of theirs leads nowhere that they may not read.
timeout 5 setpriv --reuid "$SLURM_JOB_UID" --regid "${SLURM_JOB_GID:-$SLURM_JOB_UID}" --clear-groups -- \
  head -c 1048576 -- "$steps" >".$name.new" 2>/dev/null
# What job_submit.lua foresaw: the job as it was advised.
facts=$(timeout 5 scontrol show job "$SLURM_JOB_ID" 2>/dev/null | head -c 65536)
sed -n 's/^ *AdminComment=\({.*}\) *$/\1/p' <<<"$facts" >".$name.job"
nodes=$(sed -n 's/^ *NumNodes=\([0-9]*\) .*/\1/p' <<<"$facts")
if [ -s ".$name.new" ] && [ -s ".$name.job" ]; then
  printf 'suite: slurm\njob: .%s.job\nnodes: %s\n' "$name" "${nodes:-1}" >"$name.context"
  mv ".$name.new" "$name"
else
  rm -f ".$name.new" ".$name.job"
  logger -t sextant "job $SLURM_JOB_ID left no steps in $steps" 2>/dev/null
fi
exit 0
