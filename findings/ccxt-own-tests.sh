#!/bin/sh
# ccxt 4.5.90 (PyPI): two of the tests of exchanges that the package brings can hold for no exchange in Python.
#
# The package for Python has the tests that its authors run against each exchange (ccxt/test/exchange). They are translated from
# JavaScript, where a list is an object, and text and a number can be added. So `test_fetch_markets` wants a dict, although
# `fetch_markets` returns a list, as ccxt's manual says. And `test_create_order` joins text with a balance, which raises TypeError
# before the first order is sent. The exchange here answers from memory.
# Seen on 29 November 2026:
#   ccxt 4.5.90: test_fetch_markets: AssertionError memory fetchMarkets must return a dict.; test_create_order: TypeError can only
#   concatenate str (not "float") to str, 0 orders
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ccxt==4.5.90
"$folder/venv/bin/python" - <<'PYTHON'
import contextlib
import io
import sys

import ccxt
from ccxt.test.exchange.sync.test_create_order import test_create_order
from ccxt.test.exchange.sync.test_fetch_markets import test_fetch_markets


class Memory(ccxt.Exchange):
    """An exchange with one market, which answers from memory."""

    def describe(self):
        own = {"fetchBalance": True, "fetchOrderBook": True, "createOrder": True, "cancelOrder": True}
        return self.deep_extend(super().describe(), {"id": "memory", "has": own, "precisionMode": ccxt.TICK_SIZE})

    def fetch_markets(self, params={}):
        least = {"min": 0.01, "max": None}
        return [
            self.safe_market_structure(
                {
                    **{"id": "A-B", "symbol": "A/B", "base": "A", "quote": "B", "baseId": "A", "quoteId": "B"},
                    **{"type": "spot", "spot": True, "active": True, "precision": {"amount": 0.01, "price": 0.01}},
                    "limits": {"amount": least, "price": least, "cost": least},
                }
            )
        ]

    def fetch_balance(self, params={}):
        return {"A": {"free": 9.0}, "B": {"free": 9.0}}

    def fetch_order_book(self, symbol, limit=None, params={}):
        return {"symbol": symbol, "bids": [[1.0, 5.0]], "asks": [[1.1, 5.0]], "timestamp": 1, "datetime": None, "nonce": 1}

    def create_order(self, *order, **more):
        orders.append(order)
        return {"id": "1"}


def fate(test, *arguments):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            test(*arguments)
    except Exception as error:
        return f"{type(error).__name__} {error}"
    return "holds"


orders = []
exchange = Memory()
exchange.load_markets()
markets = fate(test_fetch_markets, exchange, {})
order = fate(test_create_order, exchange, {}, "A/B")
print(f"ccxt 4.5.90: test_fetch_markets: {markets.split('.')[0]}; test_create_order: {order}, {len(orders)} orders")
sys.exit(0 if "must return a dict" in markets and "can only concatenate str" in order and not orders else 1)
PYTHON
