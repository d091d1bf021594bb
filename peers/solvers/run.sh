#!/bin/sh
# Prints the table of solvers in docs/interoperability.md. Needs Python 3.11 and PyPI.
# Usage: peers/solvers/run.sh
set -eu
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
"$folder/venv/bin/python" prices.py 2>/dev/null | grep '^|'
