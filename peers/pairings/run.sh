#!/bin/sh
# Prints the table of pairings in docs/interoperability.md: what each library makes of an envelope's key and point, and
# whether it reads points that nobody may take. Needs Python 3.10, Node.js 20, Go, and their registries.
# Usage: peers/pairings/run.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
vectors=$here/../../docs/sealed-vectors.json
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
venv/bin/python "$here/by_python.py" "$vectors" >said

xargs npm install --silent --no-audit --no-fund <"$here/packages.txt" >/dev/null
cp "$here/by_node.mjs" .
node by_node.mjs "$vectors" >>said

mkdir go
cp "$here/by_go.go" go/main.go
(cd go && go mod init walras/pairings && xargs go get <"$here/modules.txt" && go mod tidy && go build -o ../by_go .) >go.log 2>&1
./by_go "$vectors" >>said
python3 "$here/rows.py" "$vectors" said
