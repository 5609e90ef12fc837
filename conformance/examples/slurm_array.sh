#!/bin/bash
# A conformance run over many machines: one array task for each shard, then one verdict.
#   sbatch --array=1-8 conformance/examples/slurm_array.sh onednn full 0x5eed results/
#   vaecheck merge --report results/report results/shard-*.jsonl
# All shards need the same seed. Without Slurm: SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2.
# SPDX-License-Identifier: MIT
#SBATCH --job-name=vaecheck
#SBATCH --cpus-per-task=2
#SBATCH --time=00:30:00
set -u
backend=${1:?backend} profile=${2:?profile} seed=${3:?seed} out=${4:?folder for the logs}
shard=${SLURM_ARRAY_TASK_ID:?not an array task} shards=${SLURM_ARRAY_TASK_COUNT:?not an array task}
mkdir -p "$out"
exec "${VAECHECK:-vaecheck}" --backend "$backend" --profile "$profile" --seed "$seed" --shard "$shard/$shards" \
    --log "$out/shard-$shard.jsonl"
