"""A market maker at a continuous market: a ladder around the price, moved by one signature when the price moves.

    WALRAS_KEY=0x… WALRAS_PASSPHRASE=… python venue_market_maker.py trading.json EUR/USD --amount 10 --seconds 60

The first start makes the trading key, deposits, and authorises it. Each later one goes on with what is open: orders and
numbers are stored beside the key file.
"""

import argparse
import os
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from walras.client import Client, EthereumKey
from walras.venue import OrderNumber, TradingKey, VenueQuote, VenueTerms, VenueTrader


def ladder(market: VenueTerms, middle: int, levels: int, amount: Decimal) -> list[VenueQuote]:
    """Prices on both sides of a tick, the best ones first; nothing of it takes."""
    away = [5 + 3 * level for level in range(levels)]
    buys = [VenueQuote("buy", amount, market.price(middle - ticks), life="post_only") for ticks in away]
    return buys + [VenueQuote("sell", amount, market.price(middle + ticks), life="post_only") for ticks in away]


def run(trader: VenueTrader, name: str, levels: int, amount: Decimal, seconds: float) -> None:
    ends = time.monotonic() + seconds
    # What an earlier start left is known, and ends.
    trader.resume()
    trader.cancel_all(name)
    rungs: list[OrderNumber] = []
    around = None
    while time.monotonic() < ends:
        market = trader.market(name)
        bid, ask = market.market.bid, market.market.ask
        middle = ((bid or ask or 0) + (ask or bid or 0)) // 2
        if middle and middle != around:
            still_open = {one.number for one in trader.orders()}
            # What is open goes to its new price; the rest is placed anew.
            olds = [number if number in still_open else None for number in rungs] or [None] * (2 * levels)
            quotes = zip(ladder(market, middle, levels, amount), olds, strict=True)
            placed = trader.place_ladder(name, [replace(one, replaces=old) for one, old in quotes])
            rungs, around = [one.number for one in placed], middle
            refused = [one.refusal.code for one in placed if one.refusal]
            print(f"{sum(one.is_open for one in placed)} orders around {market.price(middle)}; refused: {refused}")
        time.sleep(0.5)
    for one in trader.executions().executions:
        print(f"{'bought' if one.side == 'buy' else 'sold'} {one.amount} at {one.price}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("file", type=Path, help="the trading key's file")
    arguments.add_argument("market")
    arguments.add_argument("--levels", type=int, default=4, help="orders on each side")
    arguments.add_argument("--amount", type=Decimal, default=Decimal(10), help="of the base asset, in each order")
    arguments.add_argument("--deposit", default="200", help="of each asset, when the key is made; it may lose as much")
    arguments.add_argument("--seconds", type=float, default=60.0)
    given, passphrase = arguments.parse_args(), os.environ["WALRAS_PASSPHRASE"]
    is_new = not given.file.exists()
    if is_new:
        TradingKey.generate().save(given.file, passphrase)
    server = os.environ.get("WALRAS_SERVER", "http://127.0.0.1:8080")
    with Client(server, key=EthereumKey(os.environ["WALRAS_KEY"])) as client:
        key = TradingKey.open(given.file, passphrase)
        with VenueTrader(client, key, file=given.file.with_suffix(".orders")) as trader:
            if is_new:
                terms = trader.market(given.market)
                lose = {terms.base.symbol: given.deposit, terms.quote.symbol: given.deposit}
                for asset, units in lose.items():
                    trader.deposit(asset, units)
                last = terms.price(terms.market.last or 1)
                band = (terms.price(max(1, terms.tick(last) // 2)), terms.price(2 * terms.tick(last)))
                trader.authorize({terms.name: band}, lose)
            try:
                run(trader, given.market, given.levels, given.amount, given.seconds)
            finally:
                trader.cancel_all(given.market)
