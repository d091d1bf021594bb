#!/bin/sh
# Prints the table of order books in docs/interoperability.md. Needs Python 3.11 and PyPI.
# Usage: peers/order-books/run.sh
set -eu
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
LOGURU_LEVEL=ERROR "$folder/venv/bin/python" trades.py
