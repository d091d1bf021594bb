#!/bin/sh
# candlestick-convert 7.0.0 (npm): after a silence a candle opens above its own high.
#
# Trades at 1 and 5 in one minute, and two at 2 ten minutes later. The second candle takes the last close as its open, but its high and
# low are of its own trades alone: open 5, high 2. Charts and indicators take open and close to lie between low and high.
# Seen on 29 November 2026:
#   candlestick-convert 7.0.0: the second candle: open 5, high 2, low 2, close 2
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund candlestick-convert@7.0.0 >/dev/null
cat >run.mjs <<'JAVASCRIPT'
import convert from "candlestick-convert";

const start = Date.UTC(2026, 10, 27);
const trades = [[0, 1], [1, 5], [600, 2], [601, 2]].map(([seconds, price]) => ({ time: start + seconds * 1000, price, quantity: 1 }));
const { open, high, low, close } = convert.batchTicksToCandle(trades, 60, true)[1];
console.log(`candlestick-convert 7.0.0: the second candle: open ${open}, high ${high}, low ${low}, close ${close}`);
process.exit(open === 5 && high === 2 && low === 2 && close === 2 ? 0 : 1);
JAVASCRIPT
node run.mjs
