#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
python make_overlap.py
chromabuild clash check overlap.pdb || echo "exit code $?: clashes remain"
chromabuild clash audit overlap.pdb || echo "exit code $?: faults that a minimiser cannot mend"
