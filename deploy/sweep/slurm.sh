#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A sweep in parts, one per task of a Slurm job array. Submit from a folder that all nodes see:
#
#   sbatch --array=0-15 --export=ALL,SWEEP=sweep.yaml deploy/sweep/slurm.sh
#   sextant sweep merge results/shard-*.json      # when all are done
#
# Task I of N takes shard I of N; a task that failed may simply be submitted again (--array=3 with
# SHARDS=16).
#SBATCH --job-name=sextant-sweep
#SBATCH --array=0-15
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=2G
#SBATCH --time=01:00:00
#SBATCH --output=sextant-sweep-%A-%a.log
set -euo pipefail

sweep=${SWEEP:?set SWEEP to the sweep file}
results=${RESULTS:-results}
shard_count=${SHARDS:-$((SLURM_ARRAY_TASK_MAX - SLURM_ARRAY_TASK_MIN + 1))}
shard=$SLURM_ARRAY_TASK_ID
sextant=${SEXTANT:-sextant}

mkdir -p "$results"
# Written beside and renamed, so that a file that is there is whole.
part=$results/.shard-$shard.json.$$
trap 'rm -f "$part"' EXIT
"$sextant" sweep run "$sweep" --shard "$shard/$shard_count" --threads "${SLURM_CPUS_PER_TASK:-0}" \
  --output json >"$part"
mv "$part" "$results/shard-$shard.json"
