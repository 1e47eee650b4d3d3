#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
chromabuild all --until build
python - <<'SNIPPET'
import json

with open("results/provenance.json") as file:
    summary = json.load(file)["stages"]["build"]["summary"]
for octamer in summary["octamers"]:
    print(octamer)
SNIPPET
