#!/bin/sh
# Prints the table of signatures and hashes in docs/interoperability.md. Needs Python 3.10, Node.js 20, Go and Maven with Java 17,
# and their registries.
# Usage: peers/signatures/run.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
python3 "$here/made.py" >known.json
python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["typed_data"]))' "$here/../../docs/vectors.json" >typed.json
echo '| tool | what | what it does |'
echo '|---|---|---|'
venv/bin/python "$here/by_python.py" known.json typed.json

xargs npm install --silent --no-audit --no-fund <"$here/packages.txt" >/dev/null
cp "$here/by_node.mjs" .
node by_node.mjs known.json typed.json

mkdir go
cp "$here/by_go.go" go/main.go
(cd go && go mod init walras/signatures && xargs go get <"$here/modules.txt" && go build -o ../by_go .) >go.log 2>&1
./by_go known.json typed.json

mvn --quiet --batch-mode --file "$here/pom.xml" dependency:build-classpath -Dmdep.outputFile="$folder/classpath" >mvn.log
java -cp "$(cat classpath)" "$here/ByJava.java" known.json typed.json 2>/dev/null
