#!/bin/sh
# order-matching 0.12.0 and lightmatchingengine 2019.1.4 (PyPI): what a market order cannot fill rests, and sets a price.
#
# Both take market orders. What the book cannot fill of one stays in the book, at the price infinity (order-matching, a
# purchase) or zero (lightmatchingengine, a sale). The next limit order of the other side trades with it at that price: a seller
# who asks for 7 gets infinity, and a buyer who offers 100 pays nothing.
# Seen on 29 November 2026:
#   order-matching: a sale at 7 or more trades at inf; lightmatchingengine: a purchase at 100 or less trades at 0
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'order-matching[polars]==0.12.0' lightmatchingengine==2019.1.4
LOGURU_LEVEL=ERROR "$folder/venv/bin/python" - <<'PYTHON'
import math
import sys
from datetime import datetime, timedelta

from lightmatchingengine.lightmatchingengine import LightMatchingEngine
from lightmatchingengine.lightmatchingengine import Side as Light
from order_matching.enums import Side
from order_matching.matching_engine import MatchingEngine
from order_matching.order import LimitOrder, MarketOrder
from order_matching.orders import Orders

START = datetime(2026, 11, 27)


def at(minute):
    return START + timedelta(minutes=minute)


def traded(engine, minute, order):
    engine.place(orders=Orders([order]))
    return [trade.price for trade in engine.match(timestamp=at(minute + 1)).trades]


engine = MatchingEngine(seed=1)
traded(engine, 0, LimitOrder(side=Side.SELL, price=1.0, size=1.0, timestamp=at(0), order_id="a", trader_id="a"))
traded(engine, 2, MarketOrder(side=Side.BUY, size=3.0, timestamp=at(2), order_id="b", trader_id="b"))
seller = traded(engine, 4, LimitOrder(side=Side.SELL, price=7.0, size=1.0, timestamp=at(4), order_id="c", trader_id="c"))

light = LightMatchingEngine()
light.add_order("A", 100, 5, Light.BUY)
light.add_order("A", 0, 8, Light.SELL)
buyer = [trade.trade_price for trade in light.add_order("A", 100, 3, Light.BUY)[1]]
print(
    f"order-matching: a sale at 7 or more trades at {seller[0]}; "
    f"lightmatchingengine: a purchase at 100 or less trades at {buyer[0]}"
)
sys.exit(0 if math.isinf(seller[0]) and buyer[0] == 0 else 1)
PYTHON
