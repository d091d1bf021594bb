#!/bin/sh
# Starts a demo of one validator, runs a command against its door for Ethereum's tools, and stops it.
# Usage: sdk/ethereum/with-demo.sh [--developer | --sealed] path/to/walras command…
# With --developer it is the demo for people who develop contracts. With --sealed two validators make a sealing key, and nobody
# trades.
# The command finds its address in WALRAS_ETHEREUM, that of the native interface in WALRAS_HTTP, and the binary in
# WALRAS_BINARY.
set -eu

kind="--validators 1 --traders 2 --rate 1 --interval-ms 50"
case "${1:-}" in
--developer)
    kind=$1
    shift
    ;;
--sealed)
    kind="--validators 2 --seals --traders 2 --rate 0 --interval-ms 50"
    shift
    ;;
esac
walras=$(realpath "${1:?usage: with-demo.sh path/to/walras command…}")
shift
cd "$(dirname "$0")"
log=$(mktemp)

# shellcheck disable=SC2086
"$walras" demo $kind --assets 2 \
    --listen 127.0.0.1:0 --ethereum-listen 127.0.0.1:0 >"$log" 2>&1 &
demo=$!
stop() {
    # Tests that fail because nobody answers do not say why the demo ended.
    if ! kill -0 "$demo" 2>/dev/null; then
        echo "the demo ended before its tests did; its last words:" >&2
        tail -n 40 "$log" >&2
    fi
    kill -INT "$demo" 2>/dev/null || true
    wait "$demo" 2>/dev/null || true
    rm -f "$log"
}
trap stop EXIT
trap 'exit 130' INT TERM

address() { sed -n 's|^Ethereum JSON-RPC: \(http://[^ ,]*\).*|\1|p' "$log"; }
until [ -n "$(address)" ]; do
    if ! kill -0 "$demo" 2>/dev/null; then
        echo "the demo ended before it was running:" >&2
        cat "$log" >&2
        exit 1
    fi
    sleep 0.1
done

native() { sed -n 's|^Walras is running: \(http://[^ ,]*\).*|\1|p' "$log"; }
WALRAS_ETHEREUM=$(address) WALRAS_HTTP=$(native) WALRAS_BINARY=$walras "$@"
