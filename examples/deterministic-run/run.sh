#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
python make_water.py
chromabuild import water.top water.gro -o md
chromamd setup setup.inp
for threads in 1 2; do
  OMP_NUM_THREADS=$threads chromamd run run.inp
  mv end0.rst end_$threads.rst
done
cmp end_1.rst end_2.rst && echo "the same bits"
