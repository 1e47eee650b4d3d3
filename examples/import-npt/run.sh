#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
python make_salt_water.py
chromabuild import system.psf system.crd water_ions.prm --box 34.1 34.1 34.1 -o md
chromamd setup setup.inp
chromamd run minimise.inp
chromamd run npt.inp
