"""The ccxt class against a running exchange."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import ccxt
import pytest
import walras.ccxt
import walras.ccxt_async
from conftest import KEYS, Demo
from walras.client import Client, Ed25519Key, EthereumKey, to_pandas, to_polars


STRANGE: list[Any] = [float("nan"), float("inf"), 0, -0.0, "many"]
FOREIGN: list[Any] = ["b7f0c3d2-5f7e-4f43-9a57-6a2f1b9d1c11", "x-27d", "", 2**64, 99_999, "0x" + "77" * 32]
SUMS = ("amount", "filled", "remaining", "cost", "average", "fee", "status", "side", "price")


@pytest.fixture
def exchange(demo: Demo) -> Iterator[Any]:
    made = walras.ccxt.walras({"privateKey": KEYS[1], "urls": {"api": demo.url}})
    yield made
    made.close()


def test_ccxt_loads_markets_and_their_data(exchange: Any) -> None:
    markets = exchange.load_markets()
    assert list(markets) == ["EUR/USD"] and markets["EUR/USD"]["precision"]["amount"] == 1e-6
    assert markets["EUR/USD"]["precision"]["price"] > 1e-11, "freqtrade trades no market that says less"
    assert exchange.currencies["EUR"]["precision"] == 1e-6 and exchange.fetch_status()["status"] == "ok"
    exchange.create_order("EUR/USD", "limit", "sell", 20, 2.5)
    exchange.create_order("EUR/USD", "limit", "buy", 2, 3)
    exchange.cancel_all_orders()
    trades = exchange.fetch_trades("EUR/USD")
    assert trades[-1]["amount"] > 0 and trades[-1]["timestamp"] <= exchange.fetch_time()
    assert exchange.fetch_trades("EUR/USD", since=trades[-1]["timestamp"])[0]["timestamp"] >= trades[-1]["timestamp"]
    ticker = exchange.fetch_ticker("EUR/USD")
    assert ticker["low"] <= ticker["last"] <= ticker["high"] and ticker["baseVolume"] > 0
    assert exchange.fetch_tickers(["EUR/USD"])["EUR/USD"]["symbol"] == "EUR/USD"
    assert set(exchange.fetch_tickers()) <= {"EUR/USD"}
    book = exchange.fetch_order_book("EUR/USD", 5)
    assert len(book["asks"]) <= 5 and book["asks"] == sorted(book["asks"]) and book["nonce"] > 0
    candles = exchange.fetch_ohlcv("EUR/USD", "1m")
    assert candles and all(len(row) == 6 for row in candles) and candles[-1][3] <= candles[-1][4] <= candles[-1][2]
    assert exchange.fetch_ohlcv("EUR/USD", "1m", since=candles[-1][0], limit=1)[0][0] == candles[-1][0]


def test_ccxt_orders_live_their_lives(exchange: Any) -> None:
    before = exchange.fetch_balance()
    placed = exchange.create_order("EUR/USD", "limit", "sell", 2.5, 500)
    assert (placed["status"], placed["remaining"], placed["filled"]) == ("open", 2.5, 0)
    held = exchange.fetch_balance()["EUR"]
    assert held["used"] == 2.5 and held["total"] == before["EUR"]["total"]
    transaction = placed["info"]["transaction"]
    for id in (placed["id"], transaction):
        found = exchange.fetch_order(id)
        assert (found["side"], found["price"], found["remaining"], found["status"]) == ("sell", 500, 2.5, "open")
    assert [order["id"] for order in exchange.fetch_open_orders("EUR/USD")] == [placed["id"]]
    assert exchange.cancel_order(transaction)["status"] == "canceled"
    assert exchange.fetch_order(transaction) == exchange.fetch_order(placed["id"])
    ended = exchange.fetch_order(placed["id"])
    assert (ended["status"], ended["filled"], ended["amount"], ended["price"]) == ("canceled", 0, 2.5, 500)
    with pytest.raises(ccxt.OrderNotFound):
        exchange.fetch_order("99999")
    with pytest.raises(ccxt.OrderNotFound):
        exchange.cancel_order(placed["id"])
    bid = exchange.create_limit_buy_order("EUR/USD", 10, 0.5)
    found = exchange.fetch_order(bid["info"]["transaction"])
    assert (found["side"], found["price"], found["amount"], found["remaining"]) == ("buy", 0.5, 10, 10)
    exchange.create_order("EUR/USD", "limit", "sell", 1, 500, {"clientOrderId": "mine"})
    again = exchange.create_order("EUR/USD", "limit", "sell", 1, 500, {"clientOrderId": "mine"})
    assert again["clientOrderId"] == "mine" and len(exchange.fetch_open_orders()) == 2
    assert len(exchange.cancel_all_orders()) == 2 and exchange.fetch_open_orders() == []


def test_ccxt_orders_that_cross_are_filled_at_the_price_or_better(exchange: Any) -> None:
    exchange.create_order("EUR/USD", "limit", "sell", 20, 2.5)
    filled = exchange.create_order("EUR/USD", "limit", "buy", 2, 3)
    # It stops at its amount, whatever the batch's price: at 2.5 the money of two at 3 buys 2.4.
    assert filled["status"] == "closed" and 1.8 <= filled["filled"] < 2.2
    assert filled["cost"] < 6 and filled["average"] <= 3
    own = exchange.fetch_my_trades("EUR/USD")
    bought = [one for one in own if one["order"] == filled["id"]]
    assert sum(one["cost"] for one in bought) == pytest.approx(filled["cost"]) and {one["side"] for one in bought} == {"buy"}
    assert exchange.fetch_order_trades(filled["id"]) == bought
    again = exchange.fetch_order(filled["id"])
    assert (again["status"], again["side"], again["cost"]) == ("closed", "buy", pytest.approx(filled["cost"]))
    assert (again["price"], again["amount"]) == (filled["price"], filled["amount"])
    assert again["filled"] == pytest.approx(filled["filled"])
    assert filled["id"] in [order["id"] for order in exchange.fetch_closed_orders("EUR/USD")]
    exchange.cancel_all_orders()


def test_ccxt_a_market_order_is_a_limit_order_for_the_next_batch(exchange: Any) -> None:
    exchange.create_order("EUR/USD", "limit", "sell", 20, 2.5)
    exchange.create_order("EUR/USD", "limit", "buy", 1, 3)
    last = exchange.fetch_ticker("EUR/USD")["last"]
    # Somebody sells within the room, and above the bids: they would take it all before.
    exchange.create_order("EUR/USD", "limit", "sell", 20, round(last * 1.03, 4))
    bought = exchange.create_order("EUR/USD", "market", "buy", 2)
    assert bought["status"] == "closed" and 1.8 <= bought["filled"] < 2.2 and bought["price"] < 1.06 * last
    again = exchange.fetch_order(bought["id"])
    assert {name: again[name] for name in SUMS} == {name: bought[name] for name in SUMS}
    assert exchange.create_order("EUR/USD", "market", "sell", 1)["status"] != "open"
    exchange.cancel_all_orders()


def test_ccxt_orders_have_the_same_sums_in_every_call(exchange: Any) -> None:
    sell = exchange.create_order("EUR/USD", "limit", "sell", 50, 1.5, {"timeInForce": "GTC", "postOnly": False})
    buy = exchange.create_order("EUR/USD", "limit", "buy", 10, 3)
    never = exchange.create_order("EUR/USD", "limit", "sell", 10, 900)
    cancelled = exchange.cancel_order(never["id"])
    once = exchange.create_order("EUR/USD", "limit", "sell", 10, 900, {"timeInForce": "IOC"})
    assert (once["status"], once["timeInForce"], once["filled"]) == ("canceled", "IOC", 0)
    lists = [*exchange.fetch_orders("EUR/USD"), *exchange.fetch_closed_orders(), *exchange.fetch_open_orders("EUR/USD")]
    for placed in (sell, buy, never, once):
        told = exchange.fetch_order(placed["id"])
        rows = [told, *(one for one in lists if one["id"] == placed["id"])]
        assert len(rows) >= 2
        for row in rows:
            assert {name: row[name] for name in SUMS} == {name: told[name] for name in SUMS}, placed["id"]
        trades = exchange.fetch_order_trades(int(placed["id"]))
        assert told["filled"] == pytest.approx(sum(one["amount"] for one in trades), abs=1e-9)
        assert told["cost"] == pytest.approx(sum(one["cost"] for one in trades), abs=1e-9)
        assert told["amount"] == pytest.approx(told["filled"] + told["remaining"], abs=1e-9)
        # Bots ask for fees until they are told, 0 too.
        assert [one["fee"]["cost"] for one in (told, *trades)] == [0.0] * (1 + len(trades))
        # The exact text is JSON, too.
        assert json.loads(json.dumps(told))["info"]["order"]["sequence"] == int(placed["id"])
        assert all(type(told[name]) in (float, type(None)) for name in ("amount", "filled", "remaining", "cost", "average"))
    assert (cancelled["status"], cancelled["filled"], cancelled["cost"]) == ("canceled", 0, 0)
    assert exchange.fetch_order(sell["id"])["amount"] == 50
    assert exchange.fetch_order(buy["id"])["filled"] >= 9
    # Pages that begin after the last row have all of them.
    every, since, found = exchange.fetch_my_trades("EUR/USD"), 0, []
    while page := exchange.fetch_my_trades("EUR/USD", since, 1):
        found += page
        since = page[-1]["timestamp"] + 1
    assert [one["id"] for one in found] == [one["id"] for one in every]
    exchange.cancel_all_orders()


def test_ccxt_orders_for_exact_amounts_are_listed_with_them(exchange: Any) -> None:
    exchange.load_markets()
    fate = exchange.client.exact("buy", "EUR/USD", "3", "0.01")
    assert fate.outcome is not None and fate.outcome.why in ("beyond_bound", "no_price")
    found = exchange.fetch_order(str(fate.sequence))
    told = (found["status"], found["timeInForce"], found["side"], found["amount"], found["filled"])
    assert told == ("canceled", "FOK", "buy", 3, 0)
    past = exchange.client.orders(limit=1)[0]
    assert (past.exact_side, str(past.exact_units), str(past.exact_bound)) == ("buy", "3.000000", "0.010000")
    frame = to_pandas([past])
    assert frame["exact_side"][0] == "buy" and frame["exact_units"][0] == past.exact_units
    assert to_polars([past])["exact_bound"][0] == past.exact_bound
    assert past.asked is not None and to_polars([past])["asked_price"][0] == past.asked.price


def test_ccxt_on_an_event_loop_trades_and_watches(demo: Demo) -> None:
    async def trade() -> None:
        exchange = walras.ccxt_async.walras({"privateKey": KEYS[1], "urls": {"api": demo.url}})
        try:
            book = await exchange.watch_order_book("EUR/USD")
            assert book["bids"] == sorted(book["bids"], reverse=True) and book["asks"] == sorted(book["asks"])
            placed = await exchange.create_order("EUR/USD", "limit", "sell", 3, 490)
            for _ in range(100):
                book = await exchange.watch_order_book("EUR/USD")
                if [490, 3] in book["asks"] or len(book["asks"]) == 100:
                    break
            ticker = await exchange.watch_ticker("EUR/USD")
            assert ticker["last"] > 0 and ticker["symbol"] == "EUR/USD"
            assert placed["id"] in [order["id"] for order in await exchange.fetch_open_orders("EUR/USD")]
            assert (await exchange.cancel_order(placed["id"]))["status"] == "canceled"
            assert exchange.has["watchOrderBook"] and (await exchange.fetch_balance())["EUR"]["total"] > 0
        finally:
            await exchange.close()

    asyncio.run(trade())


def test_ccxt_watches_own_orders_and_trades(demo: Demo) -> None:
    async def trade() -> None:
        exchange = walras.ccxt_async.walras({"privateKey": KEYS[1], "urls": {"api": demo.url}})
        nobody = walras.ccxt_async.walras({"urls": {"api": demo.url}})

        async def order_until(id: str, status: str) -> Any:
            while True:
                for one in await exchange.watch_orders("EUR/USD"):
                    if (one["id"], one["status"]) == (id, status):
                        return one

        try:
            rests = await exchange.create_order("EUR/USD", "limit", "sell", 4, 495)
            seen = await order_until(rests["id"], "open")
            assert (seen["side"], seen["price"], seen["amount"], seen["remaining"]) == ("sell", 495, 4, 4)
            await exchange.cancel_order(rests["id"])
            await order_until(rests["id"], "canceled")
            # What was not watched meanwhile comes with the next looks.
            await exchange.create_order("EUR/USD", "limit", "sell", 20, 2.5)
            bought = await exchange.create_order("EUR/USD", "limit", "buy", 2, 3)
            await order_until(bought["id"], "closed")
            trades: list[Any] = []
            while bought["id"] not in [one["order"] for one in trades]:
                trades += await exchange.watch_my_trades("EUR/USD")
            own = [one for one in trades if one["order"] == bought["id"]]
            assert own[0]["side"] == "buy" and own[0]["price"] <= 3 and own[0]["amount"] > 0
            assert trades == sorted(trades, key=lambda one: one["timestamp"])
            await exchange.cancel_all_orders()
            assert exchange.has["watchOrders"] and exchange.has["watchMyTrades"]
            with pytest.raises(ccxt.AuthenticationError):
                await nobody.watch_orders()
        finally:
            await exchange.close()
            await nobody.close()

    asyncio.run(trade())


def test_ccxt_trades_with_a_session_key(demo: Demo) -> None:
    key, seed = Ed25519Key("0x" + "5e" * 32), "0x" + "5e" * 32
    with Client(demo.url, key=EthereumKey(KEYS[1])) as owner:
        added = owner.add_session(key, {"USD": "50", "EUR": "20"}, lasts=10_000)
        options = {"keyType": "ed25519", "slot": added.slot}
        settings = {"privateKey": seed, "walletAddress": owner.address, "urls": {"api": demo.url}, "options": options}
        bot = walras.ccxt.walras(settings)
        order = bot.create_order("EUR/USD", "limit", "sell", 10, 500)
        with pytest.raises(ccxt.InsufficientFunds, match="its cap leaves 10 EUR"):
            bot.create_order("EUR/USD", "limit", "sell", 11, 500)
        assert bot.fetch_order(order["id"])["status"] == "open" and int(order["id"]) >> 43 == added.slot
        bot.cancel_order(order["id"])
        bot.close()
        owner.revoke_session(added.slot)

    async def watched() -> None:
        exchange = walras.ccxt_async.walras(settings)
        try:
            # A session key logs in for its account; a revoked one does not.
            with pytest.raises(ccxt.ExchangeError):
                await asyncio.wait_for(exchange.watch_orders("EUR/USD"), 30)
        finally:
            await exchange.close()

    asyncio.run(watched())


def test_ccxt_errors_are_those_that_bots_know(exchange: Any, demo: Demo) -> None:
    order = exchange.create_order
    nobody = walras.ccxt.walras({"urls": {"api": "http://127.0.0.1:1"}})
    keyless = walras.ccxt.walras({"urls": {"api": demo.url}})
    mistakes: list[tuple[type[Exception], Callable[[], object]]] = [
        (ccxt.InsufficientFunds, lambda: order("EUR/USD", "limit", "sell", 1e9, 1)),
        (ccxt.InvalidOrder, lambda: order("EUR/USD", "stop", "sell", 1)),
        (ccxt.InvalidOrder, lambda: order("EUR/USD", "limit", "sell", 0.0000001, 1)),
        (ccxt.InvalidOrder, lambda: order("EUR/USD", "limit", "sell", 0.001, 1)),
        (ccxt.InvalidOrder, lambda: order("EUR/USD", "limit", "sell", 1, -1)),
        (ccxt.ArgumentsRequired, lambda: order("EUR/USD", "limit", "sell", 1)),
        (ccxt.NotSupported, lambda: order("EUR/USD", "limit", "sell", 1, 1, {"postOnly": True})),
        (ccxt.NotSupported, lambda: order("EUR/USD", "limit", "sell", 1, 1, {"timeInForce": "FOK"})),
        (ccxt.NotSupported, lambda: order("EUR/USD", "limit", "sell", 1, 1, {"stopPrice": 1})),
        *((ccxt.InvalidOrder, lambda bad=bad: order("EUR/USD", "limit", "sell", bad, 1)) for bad in STRANGE),
        *((ccxt.InvalidOrder, lambda bad=bad: order("EUR/USD", "limit", "buy", 1, bad)) for bad in STRANGE),
        *((ccxt.OrderNotFound, lambda bad=bad: exchange.fetch_order(bad)) for bad in FOREIGN),
        *((ccxt.OrderNotFound, lambda bad=bad: exchange.cancel_order(bad)) for bad in FOREIGN),
        *((ccxt.OrderNotFound, lambda bad=bad: exchange.fetch_order_trades(bad)) for bad in FOREIGN[:3]),
        (ccxt.BadSymbol, lambda: exchange.fetch_ticker("XYZ/USD")),
        (ccxt.BadRequest, lambda: exchange.fetch_ohlcv("EUR/USD", "7m")),
        (ccxt.ExchangeNotAvailable, lambda: nobody.fetch_time()),
        (ccxt.AuthenticationError, lambda: keyless.fetch_balance()),
    ]
    for kind, mistake in mistakes:
        with pytest.raises(kind):
            mistake()
    nobody.close()
    keyless.close()
    assert exchange.has["fetchMyTrades"] and exchange.has["createOrder"]
