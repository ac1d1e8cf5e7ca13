#!/bin/bash
# Many runs on the nodes of a Slurm job: sbatch slurm_ray.sh SOURCE [flags of weft compare]
# weft[cluster] is installed in .venv below the folder that the job is submitted from, which all nodes share.
#SBATCH --job-name=weft-compare
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@60
set -euo pipefail

source .venv/bin/activate
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000)) # several jobs may share a machine

srun --nodes=1 --ntasks=1 --nodelist="$head" ray start --head --port="$port" --block &
for _ in $(seq 60); do # until the head answers
  (exec 3<>"/dev/tcp/$head/$port") 2>/dev/null && break
  sleep 1
done
if [ "$SLURM_NNODES" -gt 1 ]; then
  srun --nodes="$((SLURM_NNODES - 1))" --ntasks="$((SLURM_NNODES - 1))" --exclude="$head" \
    ray start --address="$head:$port" --block &
fi
sleep 20 # for the others to join; weft says how many nodes it found

# Slurm's SIGTERM a minute before the end is passed on: runs save, and the same job goes on from there.
weft compare "$@" --on "ray:$head:$port" --output "${WEFT_OUTPUT:-comparisons/slurm}" &
driver=$!
trap 'kill -TERM "$driver"' TERM
wait "$driver" || wait "$driver"
