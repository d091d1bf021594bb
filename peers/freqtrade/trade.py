"""freqtrade trades on a node: `trade.py URL KEY MINUTES`, in a folder of its own.

freqtrade knows the exchanges that ccxt lists; so ours is listed first. Everything else is freqtrade unchanged.
It prints one line of JSON: what freqtrade says of its orders, beside what the node says of the same.
"""

import asyncio
import json
import signal
import sqlite3
import sys
import threading
from decimal import Decimal
from pathlib import Path

import ccxt
import ccxt.async_support

import walras.ccxt
import walras.ccxt_async

URL, KEY, MINUTES = sys.argv[1], sys.argv[2], float(sys.argv[3])
HOME = Path.cwd()

for module, kind in ((ccxt, walras.ccxt.walras), (ccxt.async_support, walras.ccxt_async.walras)):
    module.walras = kind
    module.exchanges.append("walras")

from freqtrade import main as freqtrade  # noqa: E402  (it reads the list when it is imported)

ACCOUNT = {"privateKey": KEY, "urls": {"api": URL}}
CONFIG = {
    "$schema": "https://schema.freqtrade.io/schema.json",
    "strategy": "EveryCandle",
    "max_open_trades": 2,
    "stake_currency": "USD",
    "stake_amount": 50,
    "dry_run": False,
    "timeframe": "1m",
    "unfilledtimeout": {"entry": 1, "exit": 1, "unit": "minutes"},
    "entry_pricing": {"price_side": "other", "use_order_book": True, "order_book_top": 1},
    "exit_pricing": {"price_side": "other", "use_order_book": True, "order_book_top": 1},
    "exchange": {
        "name": "walras",
        "ccxt_config": ACCOUNT,
        "ccxt_async_config": ACCOUNT,
        "pair_whitelist": ["EUR/USD"],
        "enable_ws": False,
    },
    "pairlists": [{"method": "StaticPairList"}],
    "bot_name": "every-candle",
    "initial_state": "running",
    "internals": {"process_throttle_secs": 2},
}


def run() -> None:
    """freqtrade until it is told to end, as a signal would."""
    (HOME / "config.json").write_text(json.dumps(CONFIG))
    (HOME / "user").mkdir()
    # A shell that runs this beside others has it ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    over = threading.Event()

    def end() -> None:
        over.set()
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(MINUTES * 60, end)
    timer.daemon = True
    timer.start()
    options = ["--config", "config.json", "--userdir", "user", "--strategy-path", str(Path(__file__).parent)]
    try:
        freqtrade.main(["trade", *options, "--db-url", "sqlite:///trades.sqlite"])
    except SystemExit as ended:
        if ended.code and not over.is_set():
            raise


def told() -> dict[str, object]:
    """freqtrade's orders, and how many of them the node tells otherwise."""
    rows = sqlite3.connect("trades.sqlite").execute(
        "select order_id, ft_order_side, status, amount, filled, average, cost from orders"
    ).fetchall()
    exchange = walras.ccxt.walras(ACCOUNT)
    exchange.load_markets()
    differ, spent = [], Decimal(0)
    for order, side, status, amount, filled, average, cost in rows:
        own = exchange.fetch_order(order, "EUR/USD")
        ours = (own["side"], own["status"], own["filled"], own["cost"])
        if (side, status) != ours[:2] or abs((filled or 0) - ours[2]) > 1e-9 or abs((cost or 0) - ours[3]) > 0.005:
            differ.append({"order": order, "freqtrade": [side, status, amount, filled, average, cost], "node": ours})
        spent += Decimal(str(own["cost"]))
    trades = sqlite3.connect("trades.sqlite").execute("select count(*), sum(is_open), sum(close_profit_abs) from trades")
    count, still_open, profit = trades.fetchone()
    return {
        "minutes": MINUTES, "orders": len(rows), "filled": sum(row[4] is not None and row[4] > 0 for row in rows),
        "trades": count, "open": still_open, "profit_usd": profit, "turnover_usd": float(spent), "differ": differ,
    }


if __name__ == "__main__":
    run()
    print(json.dumps(told()))
