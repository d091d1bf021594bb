#!/bin/sh
# Prints the table of payments' messages in docs/interoperability.md. Needs Python 3.11, Node.js 20, PyPI and npm.
# Usage: peers/payments/run.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
xargs npm install --silent --no-audit --no-fund <"$here/packages.txt" >/dev/null
venv/bin/python "$here/by_python.py" "$here"
# Its imports are those of the folder where it stands.
cp "$here/by_node.mjs" .
node by_node.mjs "$here"
