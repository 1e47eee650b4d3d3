#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
chromabuild all --until clash
chromabuild shards --plan
chromabuild shards --only 3
sha256sum results/shards/brick_00003.cbb
chromabuild solvate           # all of them, and the manifest
sha256sum results/shards/brick_00003.cbb
chromabuild shards verify results/shards
