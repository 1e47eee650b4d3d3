#!/usr/bin/env bash
# usage: run.sh [promoter]: two nucleosomes in seconds, or all ten
set -euo pipefail
cd "$(dirname "$0")"
python make_tracks.py
region=(--set locus.region=chrXIII:43,955-44,292)
if [ "${1:-}" = promoter ]; then region=(); fi
chromabuild validate "${region[@]}"
chromabuild all --until relax "${region[@]}"
python - <<'SNIPPET'
import json

with open("results/provenance.json") as file:
    stages = json.load(file)["stages"]
for octamer in stages["build"]["summary"]["octamers"]:
    print(octamer)
for row in stages["build"]["summary"]["modifications"]:
    print(row)
print("overlaps:", stages["clash"]["summary"]["pairs_after"],
      "steps of dynamics and minimisation:", stages["relax"]["summary"]["steps"])
SNIPPET
