#!/bin/sh
# freqtrade from its registry, unchanged, trades on a demo for so many minutes (60), and its orders are held against the
# node's. Usage: peers/freqtrade/run.sh WALRAS WHEEL [MINUTES]
set -eu

walras=$(realpath "${1:?usage: peers/freqtrade/run.sh WALRAS WHEEL [MINUTES]: the program, and the wheel of make python}")
wheel=$(realpath "${2:?the wheel that make python built}")
minutes=${3:-60}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
demo=
trap 'kill $demo 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check freqtrade==2026.9 "$wheel[ccxt]"
# As many transactions as leave traders with both assets for hours.
"$walras" demo --listen 127.0.0.1:0 --ethereum-listen 127.0.0.1:0 --validators 1 --assets 2 --rate 200 >demo.log 2>&1 &
demo=$!
address() { sed -n 's|^Walras is running: \(http://[^ ]*\).*|\1|p' demo.log; }
until [ -n "$(address)" ]; do
    kill -0 $demo 2>/dev/null || { cat demo.log >&2; exit 1; }
    sleep 0.2
done
# One of the accounts that every tool for development knows.
key=$(sed -n 's/^  0x[0-9a-fA-F]*  \(0x[0-9a-f]*\)$/\1/p' demo.log | head -1)
echo "freqtrade trades for $minutes minutes; its log is $folder/freqtrade.log" >&2
venv/bin/python "$here/trade.py" "$(address)" "$key" "$minutes" 2>freqtrade.log || { tail -40 freqtrade.log >&2; exit 1; }
