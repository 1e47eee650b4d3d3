#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
chromabuild init --example demo . --force --set scaffold.choose=last --set scaffold.sweeps=100
chromabuild scaffold
chromabuild build
chromabuild clash
