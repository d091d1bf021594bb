"""Programs trade at a running venue: ladders by one signature, lost answers, a killed program, reports and evidence."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from conftest import KEYS, Demo, until, venue_of
from walras.client import AmountError, AsyncClient, Client, ClientError, Ed25519Key, EthereumKey, NoAnswerError
from walras.client.flow import Answer, Ask
from walras.client.stream import Disconnected
from walras.venue import (
    AsyncVenueTrader,
    Execution,
    OrderNumber,
    OrderRefusedError,
    OrderReport,
    PlacedOrder,
    TradingKey,
    UndecidedOrdersError,
    UnsignedReportError,
    VenueQuote,
    VenueTrader,
)

MARKET = "EUR/USD"


class Meddling(Client):
    """A client whose answers a test may lose or change, after the venue has heard the question."""

    asked: list[Ask]
    meddle: Callable[[Ask, Callable[[], Answer]], Answer] | None = None

    def _answer(self, ask: Ask) -> Answer:
        self.asked = [*getattr(self, "asked", []), ask]
        ask_of = super()._answer
        return self.meddle(ask, lambda: ask_of(ask)) if self.meddle else ask_of(ask)

    def sent(self, path: str) -> list[Any]:
        return [json.loads(ask.body) for ask in getattr(self, "asked", []) if ask.path == path and ask.body]


@pytest.fixture(scope="module")
def venue(demo: Demo) -> Demo:
    return venue_of(demo)


def funded(demo: Demo, key: str) -> tuple[Ed25519Key, TradingKey]:
    """An account and a trading key that it authorises, with a deposit of both assets."""
    account, trading = Ed25519Key.generate(), TradingKey.generate()
    with Client(demo.url, key=EthereumKey(key)) as bank, Client(demo.url, key=account) as client:
        for asset in ("EUR", "USD"):
            bank.pay(account.address, asset, "900")
        with VenueTrader(client, trading) as trader:
            for asset in ("EUR", "USD"):
                assert trader.deposit(asset, "800").state == "executed"
            bands, lose = {MARKET: ("0.1", "10")}, {"EUR": "800", "USD": "800"}
            fate = trader.authorize(bands, lose)
            assert fate is not None and fate.state == "executed" and trader.authorize(bands, lose) is None
            # The venue knows the key and its deposit when the call returns.
            trader.cancel(trader.place(MARKET, "buy", "1", "0.1"))
    return account, trading


@pytest.fixture(scope="module")
def maker(venue: Demo) -> tuple[Ed25519Key, TradingKey]:
    return funded(venue, KEYS[6])


@pytest.fixture(scope="module")
def taker(venue: Demo) -> tuple[Ed25519Key, TradingKey]:
    return funded(venue, KEYS[7])


@pytest.fixture()
def trader(venue: Demo, maker: tuple[Ed25519Key, TradingKey], tmp_path: Path) -> Iterator[VenueTrader]:
    with Meddling(venue.url, key=maker[0]) as client, VenueTrader(client, maker[1], file=tmp_path / "orders") as trader:
        yield trader
        client.meddle = None
        trader.cancel_all()


def client_of(trader: VenueTrader) -> Meddling:
    client = trader._client
    assert isinstance(client, Meddling)
    return client


def ladder(trader: VenueTrader, away: str = "0.3") -> list[VenueQuote]:
    """Eight prices on each side, far from the demo's makers."""
    ask = until(lambda: trader.market(MARKET).market.ask, "an ask of the demo's makers")
    middle, step = trader.market(MARKET).price(ask), Decimal("0.001")
    bids = [VenueQuote("buy", "1", middle - Decimal(away) - at * step) for at in range(8)]
    return bids + [VenueQuote("sell", "1", middle + Decimal(away) + at * step) for at in range(8)]


def dear(trader: VenueTrader) -> Decimal:
    """A price far above what the demo's makers ask."""
    ask = until(lambda: trader.market(MARKET).market.ask, "an ask of the demo's makers")
    return trader.market(MARKET).price(ask + 2000)


def test_a_ladder_of_16_is_placed_moved_traded_and_settled_by_two_signatures(
    venue: Demo, trader: VenueTrader, taker: tuple[Ed25519Key, TradingKey], tmp_path: Path
) -> None:
    quotes = ladder(trader)
    placed = trader.place_ladder(MARKET, quotes)
    assert [one.state for one in placed] == ["open"] * 16 and all(one.left == 1 for one in placed)
    assert len({one.number for one in placed}) == 16 and [one.number for one in trader.orders()] == [
        one.number for one in placed
    ]
    # All of it comes closer, with more at the best bid than one sale below takes.
    step = Decimal("0.01")
    closer = [
        VenueQuote(one.side, "2" if at else "150", one.price + (step if one.side == "buy" else -step), old)
        for at, (one, old) in enumerate(zip(quotes, placed, strict=True))
    ]
    moved = trader.place_ladder(MARKET, closer)
    assert [one.state for one in moved] == ["open"] * 16, [one.refusal for one in moved]
    # The file has forgotten what was replaced before anybody asks.
    assert list(trader._journal.open()) == [one.number for one in moved]
    assert {trader.order(one).why for one in placed} == {"replaced"}
    lists = client_of(trader).sent("/v1/venue/lists")
    assert [len(one["lists"][0]["orders"]) for one in lists] == [16, 16]
    assert not client_of(trader).sent("/v1/venue/orders")
    # Another account sells to the best bid, after what the demo's makers bid above it.
    best = moved[0]
    with Client(venue.url, key=taker[0]) as client, VenueTrader(client, taker[1]) as other:

        def sell() -> Decimal | None:
            other.place(MARKET, "sell", "100", best.price, life="immediate_or_cancel")
            left = trader.order(best).open
            return None if left is None or left == 150 else 150 - left

        sold = until(sell, "a sale down to the ladder")
    assert 0 < sold <= 100 and trader.order(best).is_open
    until(lambda: trader.order(best).settled, "the settle of a fill of the ladder")
    page = trader.executions()
    of_best = [one for one in page.executions if one.number == best.number]
    assert of_best and all(one.price == best.price and not one.is_taker for one in of_best)
    assert sum(one.amount for one in of_best) == sold
    kept = (tmp_path / "orders.reports").read_text().splitlines()
    assert {one.evidence for one in of_best} <= set(kept)
    assert trader.orders() and len(trader.cancel_all(side="sell")) >= 8
    assert {one.side for one in trader.orders()} <= {"buy"}


def test_a_price_between_ticks_and_a_refusal_of_the_venue_place_nothing(trader: VenueTrader) -> None:
    before = len(client_of(trader).sent("/v1/venue/orders"))
    with pytest.raises(AmountError, match="write 0.9 or 0.9001$"):
        trader.place(MARKET, "buy", "1", "0.90001")
    with pytest.raises(AmountError, match="write 1 or 2$"):
        trader.place_ladder(MARKET, [VenueQuote("buy", "1", "0.9"), VenueQuote("buy", "1.5", "0.9")])
    with pytest.raises(ValueError, match="1 to 64 orders"):
        trader.place_ladder(MARKET, [])
    assert len(client_of(trader).sent("/v1/venue/orders")) == before
    with pytest.raises(OrderRefusedError) as refused:
        trader.place(MARKET, "buy", "9000", "0.9")
    assert refused.value.code in ("funds", "drawdown")
    assert trader.order(refused.value.number).standing == "refused" and trader.orders() == []
    good, bad = trader.place_ladder(MARKET, [VenueQuote("buy", "1", "0.5"), VenueQuote("buy", "9000", "0.5")])
    assert good.is_open and bad.refusal is not None and bad.state == "refused"
    # A cancel that is asked for twice, as after a lost answer, says how the order stands.
    assert [trader.cancel(good).kind for _ in range(2)] == ["ended", "status"] and trader.orders() == []


def test_a_lost_answer_is_asked_for_with_the_same_bytes_and_places_nothing_twice(trader: VenueTrader) -> None:
    client, lost = client_of(trader), [2]

    def lose(ask: Ask, answer: Callable[[], Answer]) -> Answer:
        made = answer()
        if ask.path in ("/v1/venue/orders", "/v1/venue/lists") and lost[0] > 0:
            lost[0] -= 1
            raise NoAnswerError(client.server, "lost")
        return made

    client.meddle = lose
    one = trader.place(MARKET, "buy", "3", "0.5")
    assert one.is_open and one.left == 3
    bodies = client.sent("/v1/venue/orders")
    assert len(bodies) == 3 and bodies[0] == bodies[1] == bodies[2]
    lost[0] = 1
    replaced = trader.replace(one, "2", "0.5")
    assert replaced.is_open and replaced.left == 2 and len(client.sent("/v1/venue/lists")) == 2
    lost[0] = 1
    both = trader.place_ladder(MARKET, [VenueQuote("buy", "1", "0.5"), VenueQuote("buy", "1", "0.51")])
    assert [order.is_open for order in both] == [True, True]
    assert len(trader.orders()) == 3 and len(trader.cancel_all()) == 3
    # The first answer to an order that has traded and ended since says nothing of that.
    price = dear(trader)

    def bought() -> PlacedOrder | None:
        lost[0] = 1
        done = trader.place(MARKET, "buy", "1", price, life="immediate_or_cancel")
        assert done.state == "ended" and done.left == 0 and trader.orders() == []
        return done if trader.order(done).why == "filled" else None

    done = until(bought, "a purchase from the demo's makers")
    assert done.number in [one.number for one in trader.executions().executions]


def test_an_answer_that_never_comes_leaves_orders_undecided_until_they_are_asked_for(
    venue: Demo, maker: tuple[Ed25519Key, TradingKey], tmp_path: Path
) -> None:
    def lose(is_heard: bool) -> Callable[[Ask, Callable[[], Answer]], Answer]:
        def meddle(ask: Ask, answer: Callable[[], Answer]) -> Answer:
            if ask.path != "/v1/venue/orders":
                return answer()
            if is_heard:
                answer()
            raise NoAnswerError("http://venue", "lost")

        return meddle

    with Meddling(venue.url, key=maker[0]) as client, VenueTrader(
        client, maker[1], file=tmp_path / "orders", patience=0.2
    ) as trader:
        undecided = []
        for is_heard in (True, False, False):
            client.meddle = lose(is_heard)
            with pytest.raises(UndecidedOrdersError) as error:
                trader.place(MARKET, "buy", "1", "0.5")
            undecided += error.value.numbers
        client.meddle = None
        heard, never, later = undecided
        assert [trader.order(one).standing for one in undecided] == ["open", "unknown", "unknown"]
        assert trader.retry(later)[0].is_open and trader.order(later).is_open
        assert [one.number for one in trader.resume()] == [heard, later]
        # What never came cannot come later.
        assert trader.order(never).standing == "overtaken"
        with pytest.raises(ClientError, match="not stored as open"):
            trader.retry(never)
        assert len(trader.cancel_all()) == 2 and trader.resume() == []


@pytest.mark.parametrize("seed", range(2))
def test_whatever_answers_are_lost_the_file_has_every_open_order_and_a_number_names_one(
    venue: Demo, maker: tuple[Ed25519Key, TradingKey], tmp_path: Path, seed: int
) -> None:
    dice = Random(seed)

    def lose(ask: Ask, answer: Callable[[], Answer]) -> Answer:
        is_lost = ask.method == "POST" and dice.random() < 0.6
        if is_lost and dice.random() < 0.5:
            raise NoAnswerError("http://venue", "it never heard")
        made = answer()
        if is_lost and dice.random() < 0.5:
            raise NoAnswerError("http://venue", "nobody heard it")
        # What stands in between may answer by itself.
        return Answer(502, b"<html>") if is_lost else made

    def begin() -> VenueTrader:
        return VenueTrader(client, maker[1], file=tmp_path / "orders", patience=0.02)

    def quote(replaces: OrderNumber | None = None) -> VenueQuote:
        return VenueQuote("buy", str(dice.randint(1, 5)), f"0.{dice.randint(40, 60)}", replaces)

    with Meddling(venue.url, key=maker[0]) as client:
        trader, named = begin(), [OrderNumber(0, 0, 0)]
        trader.status()
        client.meddle = lose
        for _ in range(40):
            try:
                match dice.randint(0, 6):
                    case 0 | 1:
                        count = dice.randint(1, 4)
                        named += [one.number for one in trader.place_ladder(MARKET, [quote() for _ in range(count)])]
                    case 2:
                        olds = dice.sample(named, min(2, len(named)))
                        named += [one.number for one in trader.place_ladder(MARKET, [quote(old) for old in olds])]
                    case 3:
                        trader.cancel(dice.choice(named))
                    case 4:
                        trader.retry(dice.choice(named))
                    case 5:
                        named += [one.number for one in trader.resume()]
                    case 6:
                        trader.close()
                        trader = begin()
            except UndecidedOrdersError as error:
                named += error.numbers
            except (ClientError, NoAnswerError):
                pass
        client.meddle = None
        known = {one.number for one in trader.resume()}
        # The venue's own answer: all of the key's orders that were open.
        assert {one.number for one in trader.cancel_all()} == known
        trader.close()
        fields: dict[tuple[int, ...], str] = {}
        singles = [order for body in client.sent("/v1/venue/orders") for order in body["orders"]]
        listed = [order for body in client.sent("/v1/venue/lists") for order in body["lists"][0]["orders"]]
        for order in singles + listed:
            told = json.dumps({name: order[name] for name in order if name not in ("replaces", "key", "signature")})
            assert fields.setdefault(tuple(order["number"].values()), told) == told
        assert len(fields) > 20


def test_orders_of_a_ladder_are_signed_one_by_one_while_the_ledger_counts_no_lists(trader: VenueTrader) -> None:
    client = client_of(trader)

    def no_lists(ask: Ask, answer: Callable[[], Answer]) -> Answer:
        if ask.path != "/v1/venue/lists":
            return answer()
        orders = json.loads(ask.body or b"")["lists"][0]["orders"]
        refused = {"type": "refused", "refused": {"code": "lists_to_come", "message": "sign each order by itself"}}
        results = [{"reports": [{"key": "0x", "number": one["number"], **refused}]} for one in orders]
        return Answer(200, json.dumps({"results": results}).encode())

    client.meddle = no_lists
    placed = trader.place_ladder(MARKET, [VenueQuote("buy", "1", "0.5"), VenueQuote("buy", "1", "0.51")])
    assert [one.is_open for one in placed] == [True, True]
    asked = client.sent("/v1/venue/lists")[0]["lists"][0]["orders"]
    assert [OrderNumber.of(one["number"]) for one in asked] == [one.number for one in placed]
    moved = trader.place_ladder(MARKET, [VenueQuote("buy", "2", "0.52", one) for one in placed])
    assert [one.is_open for one in moved] == [True, True]
    assert len(client.sent("/v1/venue/lists")) == 1 and len(client.sent("/v1/venue/orders")) == 2
    assert {trader.order(one).why for one in placed} == {"replaced"}
    assert [one.amount for one in trader.orders()] == [2, 2]
    kept = trader.cancel(moved[0], keep="1")
    assert kept.kind == "reduced" and trader.order(moved[0]).open == 1


def test_a_report_that_the_venue_did_not_sign_is_no_fill(trader: VenueTrader) -> None:
    price = dear(trader)
    bought = until(
        lambda: (found := trader.place(MARKET, "buy", "1", price, life="immediate_or_cancel")).executions and found,
        "a purchase from the demo's makers",
    )
    genuine = bought.executions[0]

    def forged(ask: Ask, answer: Callable[[], Answer]) -> Answer:
        made = answer()
        if b'"fills":[{' not in made.body:
            return made
        body = json.loads(made.body)
        for fill in body["fills"]:
            fill["index" if change == "index" else "report"] = changed(fill)
        return Answer(200, json.dumps(body).encode())

    def changed(fill: dict[str, Any]) -> str:
        if change == "index":
            return str(int(fill["index"]) + 1)
        report = fill["report"]
        # A byte of the leaf, of the account, of the key and of the signature.
        at = {"leaf": 40, "account": 110, "key": 150, "signature": 220, "cut": 0}[change]
        return report[:-2] if change == "cut" else report[:at] + ("0" if report[at] != "0" else "1") + report[at + 1 :]

    client_of(trader).meddle = forged
    for change in ("leaf", "account", "key", "signature", "cut", "index"):
        with pytest.raises(UnsignedReportError) as error:
            trader.executions(genuine.index)
        assert error.value.report
    client_of(trader).meddle = None
    assert trader.executions(genuine.index).executions[0] == genuine


KILLED = """
import sys, threading, time
from walras.client import Client
from walras.venue import TradingKey, VenueQuote, VenueTrader

url, seed, file = sys.argv[1:]
trader = VenueTrader(Client(url), TradingKey(seed), file=file)
known = trader.resume()
print("resumed", *[one.number for one in known], flush=True)
for turn in range(10_000):
    placed = trader.place_ladder("EUR/USD", [VenueQuote("buy", "1", "0.5"), VenueQuote("buy", "1", "0.4")])
    print("placed", *[one.number for one in placed], flush=True)
    if turn % 2:
        for one in placed:
            trader.cancel(one)
"""


def test_a_killed_program_goes_on_with_its_orders_and_uses_no_number_twice(
    venue: Demo, maker: tuple[Ed25519Key, TradingKey], tmp_path: Path
) -> None:
    file, seed = str(tmp_path / "orders"), "0x" + maker[1].seed.hex()
    command = [sys.executable, "-c", KILLED, venue.url, seed, file]
    placed: list[str] = []
    for round_ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.readline().startswith("resumed")
            for _ in range(3 + round_):
                placed += program.stdout.readline().split()[1:]
            os.kill(program.pid, signal.SIGKILL)
            placed += [word for line in program.stdout for word in line.split()[1:] if line.endswith("\n")]
    assert len(placed) >= 24 and len(set(placed)) == len(placed)
    with Client(venue.url) as client, VenueTrader(client, maker[1], file=file) as trader:
        known = {str(one.number) for one in trader.resume()}
        # Nothing is open that the file does not know: after these are cancelled, no order of the key is left.
        for number in known:
            trader.cancel(OrderNumber.read(number))
        assert trader.cancel_all() == [] and trader.resume() == []
        first = trader.place(MARKET, "buy", "1", "0.5")
        assert str(first.number) not in placed and first.number > max(map(OrderNumber.read, placed))
        trader.cancel(first)


def test_reports_come_once_and_in_order_over_broken_connections(trader: VenueTrader) -> None:
    price = dear(trader)

    def buy() -> Execution | None:
        done = trader.place(MARKET, "buy", "1", price, life="immediate_or_cancel")
        return done.executions[0] if done.executions else None

    first = until(buy, "a purchase")
    seen: list[int] = []

    def through(reports: Iterator[OrderReport | Disconnected], last: Callable[[OrderReport], bool]) -> None:
        for one in reports:
            if isinstance(one, OrderReport) and one.execution:
                seen.append(one.execution.index)
            if isinstance(one, OrderReport) and last(one):
                return

    # One that happened before the stream began, asked for by its index.
    reports = trader.reports(session=7, from_index=first.index)
    through(reports, lambda one: one.execution == first)
    second = until(buy, "a purchase")
    through(reports, lambda one: one.fate is not None and one.fate.index == second.index and one.fate.is_settled)
    reports.close()
    third = until(buy, "a purchase")
    again = trader.reports(session=7, from_index=second.index + 1)
    through(again, lambda one: one.execution == third)
    again.close()
    assert seen == sorted(set(seen)) and {first.index, second.index, third.index} <= set(seen)


def test_the_same_on_an_event_loop(venue: Demo, maker: tuple[Ed25519Key, TradingKey], tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncClient(venue.url, key=maker[0]) as client:
            async with AsyncVenueTrader(client, maker[1], file=tmp_path / "orders") as trader:
                reports = trader.reports(session=8)
                numbers: list[OrderNumber] = []

                async def hear() -> None:
                    # Fills of earlier orders are settled meanwhile.
                    while getattr(await anext(reports), "number", None) not in numbers:
                        pass

                heard = asyncio.ensure_future(hear())
                # The stream is there once something is heard; orders go on until then.
                while not heard.done():
                    placed = await trader.place_ladder(
                        MARKET, [VenueQuote("buy", "1", "0.5"), VenueQuote("buy", "1", "0.51")]
                    )
                    numbers += [one.number for one in placed]
                    await trader.cancel(placed[0])
                    await asyncio.sleep(0.1)
                await heard
                await reports.aclose()
                assert all(one.is_open for one in await trader.orders())
                await trader.cancel_all()
                assert await trader.orders() == []

    asyncio.run(run())


def test_a_deposit_comes_back_and_a_revoked_key_is_dead(venue: Demo) -> None:
    account, trading = funded(venue, KEYS[6])
    with Client(venue.url, key=account) as client, VenueTrader(client, trading) as trader:
        before = client.account().balance("EUR").available
        assert trader.collect("EUR").state == "executed"
        assert trader.raise_floor(OrderNumber(trader.status().incarnation, 65_535, 0)).state == "executed"
        assert trader.revoke().state == "executed"
        with pytest.raises(ClientError, match="is revoked, for ever"):
            trader.authorize({MARKET: ("0.1", "10")}, {})
        until(lambda: client.account().balance("EUR").available == before + 800, "the payout of a collection")

        def refused() -> bool:
            try:
                trader.cancel(trader.place(MARKET, "buy", "1", "0.1"))
            except OrderRefusedError as error:
                return error.code in ("key_revoked", "below_floor")
            return False

        until(refused, "the end of a revoked key")
    with Client(venue.url) as client, VenueTrader(client, TradingKey.generate()) as trader:
        with pytest.raises(ClientError, match="no account has authorised it"):
            trader.place(MARKET, "buy", "1", "0.1")
        with pytest.raises(ClientError, match="has no key"):
            trader.deposit("EUR", "1")
