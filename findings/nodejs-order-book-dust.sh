#!/bin/sh
# nodejs-order-book 10.1.1 (npm): a purchase of 0.3 does not clear sales of 0.1 and 0.2, and the level shows twice what is left.
#
# Sizes are floating-point numbers. After the purchase, the sale of 0.2 stays open with 2.8e-17, and the level of its price shows
# 5.6e-17: the level keeps a sum of its own, which differs from the order that it consists of.
# Seen on 29 November 2026:
#   nodejs-order-book 10.1.1: the purchase is done with 0 left; the sale has 2.7755575615628914e-17, its level 5.551115123125783e-17
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund nodejs-order-book@10.1.1 >/dev/null
cat >run.mjs <<'JAVASCRIPT'
import { OrderBook } from "nodejs-order-book";

const book = new OrderBook();
book.limit({ side: "sell", id: "a", size: 0.1, price: 1 });
book.limit({ side: "sell", id: "b", size: 0.2, price: 1 });
const bought = book.limit({ side: "buy", id: "c", size: 0.3, price: 1 });
const [[[, level]]] = book.depth();
const left = bought.partial.size;
console.log(
  `nodejs-order-book 10.1.1: the purchase is done with ${bought.quantityLeft} left; the sale has ${left}, its level ${level}`,
);
process.exit(bought.quantityLeft === 0 && left > 0 && level === 2 * left ? 0 : 1);
JAVASCRIPT
node run.mjs
