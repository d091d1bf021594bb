#!/usr/bin/env bash
# exchange-core's order book and `walras-lab bench matching` on the same commands, in turn; medians of several runs.
# usage: peers/exchange-core/run.sh [COMMANDS [RUNS]]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mvn -q -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/lib"
javac -cp "$work/lib/*" -d "$work/classes" "$here/Replay.java"
theirs() { java -Xms2g -Xmx4g -cp "$work/classes:$work/lib/*" Replay "$1" 3 2>/dev/null; }
. "$here/../turns.sh" exchange_core "$@"
