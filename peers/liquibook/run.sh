#!/usr/bin/env bash
# liquibook and `walras bench matching` on the same commands, in turn; medians of several runs.
# usage: peers/liquibook/run.sh [COMMANDS [RUNS]]
set -euo pipefail
commit=bfcb41e0b6dc9b705b746c444de5f958e3f419e2
commands=${1:-2000000} runs=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
walras=${WALRAS:-$here/../../target/release/walras}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git clone --quiet "${PEERS_FROM:-https://github.com}/objectcomputing/liquibook" "$work/liquibook"
git -C "$work/liquibook" checkout --quiet "$commit"
g++ -O3 -std=c++14 -DNDEBUG -I"$work/liquibook/src" "$here/replay.cpp" "$work/liquibook/src/simple/simple_order.cpp" -o "$work/replay"

for prices in near wide; do
  for depth in 1000 20000; do
    "$walras" bench matching --prices "$prices" --depths "$depth" --commands "$commands" --flow "$work" >/dev/null
    for ((turn = 0; turn < 2 * runs; turn++)); do
      if ((turn % 2)); then
        "$walras" bench matching --prices "$prices" --depths "$depth" --commands "$commands" --runs 1 --json 2>/dev/null |
          sed -E 's/.*"ns_per_command":([0-9.]+).*/\1/' >>"$work/ours"
      else
        "$work/replay" "$work/flow-$depth.txt" 1 | sed -E 's/.*"ns_per_command":([0-9.]+).*/\1/' >>"$work/theirs"
      fi
    done
    median() { sort -n "$1" | sed -n "$((runs / 2 + 1))p"; }
    ours=$(median "$work/ours") theirs=$(median "$work/theirs")
    echo "{\"prices\":\"$prices\",\"resting\":$depth,\"walras_ns\":$ours,\"liquibook_ns\":$theirs,\"times\":$(awk "BEGIN{printf \"%.2f\", $theirs / $ours}")}"
    rm "$work/ours" "$work/theirs"
  done
done
