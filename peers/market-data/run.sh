#!/bin/sh
# Prints the table of readers of market data in docs/interoperability.md. Needs Python 3.10 and PyPI.
# SAMPLES may name a folder with files that others publish: LOBSTER's AAPL_2012-06-21_message_50.csv, and the example
# file ex20101224.TEST_ITCH_50 of the R package RITCH.
# Usage: peers/market-data/run.sh path/to/walras
set -eu
walras=$(realpath "${1:?usage: run.sh path/to/walras}")
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
"$folder/venv/bin/python" table.py "$walras" "$folder"
