#!/bin/sh
# Prints the table of PostgreSQL's drivers in docs/interoperability.md. Needs PostgreSQL (its programs on the path or in
# WALRAS_POSTGRES), Python 3.11, Node.js 20, Go, Maven, Java 17, and their registries.
# Usage: peers/databases/run.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
programs=${WALRAS_POSTGRES:-$(dirname "$(readlink -f "$(command -v postgres)")")}
folder=$(mktemp -d)
# The server refuses to be root.
as=
if [ "$(id -u)" = 0 ]; then
  user=nobody
  if id postgres >/dev/null 2>&1; then user=postgres; fi
  as="setpriv --reuid=$user --clear-groups"
  chown "$user" "$folder"
fi
cd "$folder"
$as "$programs/initdb" -D "$folder/data" -U walras -A trust --no-sync >initdb.log
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
$as "$programs/postgres" -D "$folder/data" -k "$folder" -h 127.0.0.1 -p "$port" -c fsync=off 2>postgres.log &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$folder"' EXIT
until "$programs/pg_isready" -q -h 127.0.0.1 -p "$port"; do sleep 0.2; done

python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
xargs npm install --silent --no-audit --no-fund <"$here/packages.txt" >/dev/null
mkdir go
cp "$here/by_go.go" go/main.go
(cd go && go mod init walras/databases && xargs go get <"$here/modules.txt" && go mod tidy && go build -o ../by_go .) \
  >go.log 2>&1
mvn --quiet --batch-mode --file "$here/pom.xml" dependency:build-classpath \
  -Dmdep.outputFile="$folder/classpath" >mvn.log
cp "$here/by_node.mjs" .

echo '| driver | read how | 18446744073709551615 becomes | exact |'
echo '|---|---|---|---|'
venv/bin/python "$here/by_python.py" "$port"
node by_node.mjs "$port"
./by_go "$port"
"${JAVA_HOME:+$JAVA_HOME/bin/}java" -cp "$(cat classpath)" "$here/ByJava.java" "$port"
