#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
chromabuild init --example demo files --force   # the sequence and the dyads
cp files/demo.fa files/demo.dyads.bed .
chromabuild validate
chromabuild scaffold
