#!/usr/bin/env bash
# exchange-core's whole pipeline (risk, matching, journal) and `walras-lab bench venue --pipeline` on the same commands, in turn.
# Theirs waits by yielding and by blocking in turn, and the better one counts. Both journal to one file system, WORK.
# usage: peers/exchange-core/pipeline.sh [COMMANDS [RUNS]]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
commands=${1:-300000} runs=${2:-5}
walras=${WALRAS_LAB:-$here/../../target/release/walras-lab}
work=$(mktemp -d "${WORK:-/tmp}/pipeline.XXXXXX")
trap 'rm -rf "$work"' EXIT

mvn -q -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/lib"
javac -cp "$work/lib/*" -d "$work/classes" "$here/Pipeline.java"
"$walras" bench venue --pipeline --arrivals "$commands" --flow "$work" >/dev/null
theirs() { java "@$here/opens.txt" -Xms2g -Xmx4g -cp "$work/classes:$work/lib/*" Pipeline "$work/flow.txt" "$runs" "$1" "$work/theirs" 2>/dev/null; }
ours() { "$walras" bench venue --pipeline --arrivals "$commands" --batch "$1" --runs "$runs" --directory "$work/ours" --json 2>/dev/null; }
field() { sed -nE "s/.*\"$1\":([0-9.]+).*/\1/p"; }

best=
for waits in YIELDING BLOCKING; do
  found=$(theirs "$waits")
  time=$(field ns_per_command <<<"$found")
  echo "{\"peer\":\"exchange-core\",\"waits\":\"$waits\",\"figures\":$found}"
  if [ -z "$best" ] || awk "BEGIN { exit !($time < $best) }"; then best=$time other=$found; fi
done
# Commands of a step, which has one sync. More than these are more than two settles hold: matching halts then.
for batch in 256 1024; do
  found=$(ours "$batch")
  lots=$(field traded_lots <<<"$found")
  if [ "$lots" != "$(field traded_lots <<<"$other")" ]; then
    echo "both did other things: $lots lots traded here and $(field traded_lots <<<"$other") there" >&2
    exit 1
  fi
  ratio=$(awk "BEGIN { printf \"%.2f\", $best / $(field ns_per_command <<<"$found") }")
  echo "{\"walras\":$found,\"over_exchange_core\":$ratio}"
done
