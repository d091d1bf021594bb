#!/bin/sh
# pyorderbook 0.4.9 (PyPI): the average price of an order's trades is not weighted by what was traded.
#
# A purchase takes 5 at 99 and 2 at 100. That costs 695, as the blotter says, or 99.29 for each. The blotter's `average_price` is
# 99.5, the mean of the two prices, and its `num_trades` is 0.
# Seen on 29 November 2026:
#   pyorderbook 0.4.9: 2 trades of 7 units cost 695.0; average_price 99.5, num_trades 0
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyorderbook==0.4.9
"$folder/venv/bin/python" - <<'PYTHON'
import sys

from pyorderbook import Book, ask, bid

book = Book()
book.match(ask("A", 100, 5))
book.match(ask("A", 99, 5))
blotter = book.match(bid("A", 101, 7))
units = sum(trade.fill_quantity for trade in blotter.trades)
print(
    f"pyorderbook 0.4.9: {len(blotter.trades)} trades of {units} units cost {blotter.total_cost}; "
    f"average_price {blotter.average_price}, num_trades {blotter.num_trades}"
)
is_so = (units, float(blotter.total_cost), float(blotter.average_price), blotter.num_trades) == (7, 695.0, 99.5, 0)
sys.exit(0 if is_so else 1)
PYTHON
