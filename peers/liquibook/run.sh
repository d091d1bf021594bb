#!/usr/bin/env bash
# liquibook and `walras-lab bench matching` on the same commands, in turn; medians of several runs.
# usage: peers/liquibook/run.sh REPLAY [COMMANDS [RUNS]]      (REPLAY: replay.cpp with liquibook bfcb41e, both optimised)
set -euo pipefail
replay=$(realpath "${1:?the program made of replay.cpp and liquibook; see peers/README.md}")
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

theirs() { "$replay" "$1" 1; }
. "$here/../turns.sh" liquibook "$@"
