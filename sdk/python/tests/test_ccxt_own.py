"""ccxt's own tests of exchanges, as the installed package has them, against a running exchange.

Each test of `ccxt.test.exchange.sync` runs if the class says that it has the method. `NOT_OURS` names the others, and
why. (The package for JavaScript is published without its tests.)
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import ccxt.test.exchange.sync as own
import pytest
import walras.ccxt
from conftest import KEYS, Demo

SYMBOL, CODE = "EUR/USD", "EUR"

DERIVATIVES = "spot markets alone: no leverage, positions, funding or liquidations"
LEDGER = "money comes and goes by payments, which `walras.client` lists"
NOT_OURS = {
    "borrow_interest": DERIVATIVES,
    "funding_rate_history": DERIVATIVES,
    "leverage_tiers": DERIVATIVES,
    "liquidations": DERIVATIVES,
    "margin_mode": DERIVATIVES,
    "margin_modes": DERIVATIVES,
    "market_leverage_tiers": DERIVATIVES,
    "my_liquidations": DERIVATIVES,
    "open_interest_history": DERIVATIVES,
    "positions": DERIVATIVES,
    "accounts": "an exchange object has one account",
    "deposit_withdrawals": LEDGER,
    "deposits": LEDGER,
    "ledger": LEDGER,
    "ledger_entry": LEDGER,
    "transaction_fees": LEDGER,
    "transfers": LEDGER,
    "withdrawals": LEDGER,
    "create_order": "ccxt 4.5's test joins text and numbers, which Python refuses, and leaves by a market order",
    "markets": "ccxt 4.5's test wants a dict, and every exchange of the package returns a list",
    "last_prices": "`fetchTickers` has the last prices",
    "proxies": "asks servers of ccxt's authors whether a proxy works",
    "sign_in": "each request is signed, and nobody signs in",
}
SKIPPED = {
    "amountOfCurrencies": "a network lists the assets that it has, and may have fewer than six",
    "lastBetweenBidAsk": "a batch has one price, and in a thin book none may rest near it",
}
"""Checks within a test that hold for large exchanges alone."""
SKIPPED_IN = {"trades": {"side": "all that a batch trades in a market is one trade, which nobody took: it has no side"}}
"""What one test skips beside."""
MODULES = {one.name.removeprefix("test_").removeprefix("fetch_"): one.name for one in pkgutil.iter_modules(own.__path__)}


@pytest.fixture(scope="module")
def exchange(demo: Demo) -> Iterator[Any]:
    made = walras.ccxt.walras({"privateKey": KEYS[2], "urls": {"api": demo.url}})
    made.load_markets()
    # Something to show in each answer: a trade, a cancelled order and two that rest.
    made.create_order(SYMBOL, "limit", "sell", 20, 2.5)
    made.create_order(SYMBOL, "limit", "buy", 2, 3)
    assert made.fetch_trades(SYMBOL)
    made.create_order(SYMBOL, "limit", "buy", 2, 0.1)
    made.create_order(SYMBOL, "limit", "sell", 2, 500)
    made.cancel_order(made.fetch_open_orders(SYMBOL)[0]["id"])
    yield made
    made.cancel_all_orders()
    made.close()


@pytest.mark.parametrize("name", [name for name in MODULES if name not in NOT_OURS])
def test_ccxt_own_test_holds(exchange: Any, name: str) -> None:
    test = getattr(importlib.import_module(f"ccxt.test.exchange.sync.{MODULES[name]}"), MODULES[name])
    takes = test.__code__.co_varnames[2 : test.__code__.co_argcount]
    test(exchange, SKIPPED | SKIPPED_IN.get(name, {}), *[{"symbol": SYMBOL, "code": CODE}[argument] for argument in takes])


def test_what_is_not_ours_is_what_the_class_lacks(exchange: Any) -> None:
    """A method that is added needs its test; one that ccxt adds needs a word why it is not here."""
    assert set(NOT_OURS) <= set(MODULES)
    for name in set(NOT_OURS) - {"create_order", "markets", "proxies", "sign_in"}:
        method = "fetch" + "".join(part.capitalize() for part in name.split("_"))
        assert not exchange.has.get(method), method
