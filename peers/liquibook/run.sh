#!/usr/bin/env bash
# liquibook and `walras bench matching` on the same commands, in turn; medians of several runs.
# usage: peers/liquibook/run.sh [COMMANDS [RUNS]]
set -euo pipefail
commit=bfcb41e0b6dc9b705b746c444de5f958e3f419e2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git clone --quiet "${PEERS_FROM:-https://github.com}/objectcomputing/liquibook" "$work/liquibook"
git -C "$work/liquibook" checkout --quiet "$commit"
g++ -O3 -std=c++14 -DNDEBUG -I"$work/liquibook/src" "$here/replay.cpp" "$work/liquibook/src/simple/simple_order.cpp" -o "$work/replay"
theirs() { "$work/replay" "$1" 1; }
. "$here/../turns.sh" liquibook "$@"
