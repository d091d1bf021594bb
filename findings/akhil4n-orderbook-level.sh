#!/bin/sh
# akhil4n-orderbook 0.1.1 (PyPI): a level whose order was filled in part keeps showing all of it.
#
# `total_quantity` of a price level grows with each order that joins, and is not lowered when one trades in part. After a sale of 5
# has sold 2, the level says 5 and its order 3. When that order is cancelled later, only 3 are subtracted.
# Seen on 30 November 2026:
#   akhil4n-orderbook 0.1.1: traded 2 of 5; the level says 5, its order 3; a second order of 4 makes it 9
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check akhil4n-orderbook==0.1.1
cat >"$folder/run.py" <<'PYTHON'
import sys
from decimal import Decimal

from orderbook import Order, OrderBook, OrderSide

book = OrderBook()
price = Decimal(100)
book.add_limit_order(Order(OrderSide.ASK, price, 5))
book.add_limit_order(Order(OrderSide.BID, price, 2))
level = book.asks[price]
left = [order.remaining_quantity for order in level.queue.values()]
said = level.total_quantity
book.add_limit_order(Order(OrderSide.ASK, price, 4))
traded = sum(trade.quantity_filled for trade in book.trade_log)
print(
    f"akhil4n-orderbook 0.1.1: traded {traded} of 5; the level says {said}, its order {left[0]};"
    f" a second order of 4 makes it {level.total_quantity}"
)
sys.exit(0 if (traded, said, left, level.total_quantity) == (2, 5, [3], 9) else 1)
PYTHON
"$folder/venv/bin/python" "$folder/run.py"
