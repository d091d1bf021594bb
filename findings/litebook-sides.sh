#!/bin/sh
# litebook 0.0.1 (PyPI) swaps the buyer and the seller of a trade.
#
# A purchase arrives and meets two resting sales. Its number should be `buy_id` of both fills; it is their `sell_id`, and the
# numbers of the sales stand in `buy_id`. If a sale arrives and meets a purchase, both numbers are right.
# Seen on 29 November 2026:
#   litebook 0.0.1: a purchase that arrives is named as ['seller', 'seller'], a sale that arrives as ['seller']
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check litebook==0.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import litebook

BUY, SELL = litebook.OrderType.Buy, litebook.OrderType.Sell


def placed(book, side, price, quantity):
    order = book.create_order(side, price=price, quantity=quantity)
    return order.id, book.add(order)


def named(arrived, fills):
    return ["seller" if fill.sell_id == arrived else "buyer" if fill.buy_id == arrived else "neither" for fill in fills]


book = litebook.OrderBook(tick_size=0.01)
placed(book, SELL, 10.05, 5.0)
placed(book, SELL, 10.00, 5.0)
bought = named(*placed(book, BUY, 10.10, 7.0))
book = litebook.OrderBook(tick_size=0.01)
placed(book, BUY, 10.00, 5.0)
sold = named(*placed(book, SELL, 10.00, 5.0))
print(f"litebook 0.0.1: a purchase that arrives is named as {bought}, a sale that arrives as {sold}")
sys.exit(0 if bought == ["seller", "seller"] and sold == ["seller"] else 1)
PYTHON
