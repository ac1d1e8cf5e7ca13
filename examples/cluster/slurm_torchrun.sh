#!/bin/bash
# One run over the nodes of a Slurm job: sbatch slurm_torchrun.sh SOURCE --model NAME [flags of weft train]
# The same job again, with --resume RUN in place of the source, goes on from the last checkpoint.
#SBATCH --job-name=weft-train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=12:00:00
set -euo pipefail

source .venv/bin/activate
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 # makes torchrun's restart after a lost process reliable

srun torchrun --nnodes="$SLURM_NNODES" --nproc-per-node="${SLURM_GPUS_PER_NODE:-1}" --max-restarts=3 \
  --rdzv-backend=c10d --rdzv-endpoint="$head:29500" --rdzv-id="$SLURM_JOB_ID" \
  -m weft train "$@" --strategy fsdp --output "${WEFT_OUTPUT:-runs/slurm}"
