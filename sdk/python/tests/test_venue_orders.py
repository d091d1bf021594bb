"""Orders at venues without a node: published bytes, exact prices, numbers and the file that stores them."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from walras.client import AmountError, Asset, StoreError, VenueMarket
from walras.venue import ListEntry, OrderNumber, TradingKey, VenueOrder, VenueScope, VenueTerms, is_list_signed
from walras.venue.journal import OrderJournal, Sent
from walras.venue.terms import decimal_of

VENUE = json.loads((Path(__file__).resolve().parents[3] / "docs" / "venue-vectors.json").read_text())
SCOPE = VenueScope(VENUE["network"], VENUE["venue"], VENUE["incarnation"])
LIST = VENUE["list"]
ALTERNATIVES = {
    "side": ("buy", "sell"),
    "life": ("rests", "post_only", "immediate_or_cancel", "fill_or_kill"),
    "self_trade": ("expire_maker", "expire_taker", "expire_both"),
}


def sent(order: dict) -> dict:
    """A published order as it is sent."""
    words = {name: all_of_them[order[name]] for name, all_of_them in ALTERNATIVES.items()}
    until = None if order["until_ms"] is None else int(order["until_ms"])
    return order | words | {"expiry": int(order["expiry"]), "until_ms": until}


def entry(order: dict) -> ListEntry:
    replaces = order["replaces"] and OrderNumber.of(order["replaces"])
    return ListEntry(VenueOrder.of(sent(order)), replaces)


def key_of(public: str) -> TradingKey:
    """The key of the vectors with this public half: its seed is one byte 32 times."""
    return next(key for key in (TradingKey(bytes([seed] * 32)) for seed in range(16)) if key.public == public)


@pytest.mark.parametrize("order", [one for one in VENUE["orders"] if one["signature"]], ids=lambda one: one["side"])
def test_orders_are_signed_as_they_are_published(order: dict) -> None:
    made = VenueOrder.of(sent(order))
    head = b"walras venue order v1\0" + bytes.fromhex(SCOPE.network[2:] + "03000000")
    assert "0x" + (head + made.encode()).hex() == order["signing_bytes"]
    signed = key_of(order["key"]).order(made, SCOPE)
    assert signed["signature"] == order["signature"]
    assert VenueOrder.of(signed) == made


def test_a_list_is_signed_as_it_is_published() -> None:
    seed = bytes.fromhex(LIST["seed"][2:])
    made = key_of(LIST["key"]).order_list([entry(one) for one in LIST["orders"]], SCOPE, seed)
    assert (made["signature"], made["seed"]) == (LIST["signature"], LIST["seed"])
    assert is_list_signed(made, SCOPE)
    assert not is_list_signed(made, VenueScope(SCOPE.network, SCOPE.venue + 1, SCOPE.incarnation))
    # Each list has a seed of its own.
    again = [key_of(LIST["key"]).order_list([entry(LIST["orders"][0])], SCOPE) for _ in range(2)]
    assert again[0]["seed"] != again[1]["seed"] and all(is_list_signed(one, SCOPE) for one in again)


@pytest.mark.parametrize("spoiled", LIST["refused"], ids=lambda one: one["why"])
def test_a_spoiled_list_is_none(spoiled: dict) -> None:
    assert not is_list_signed(spoiled | {"orders": [sent(one) for one in spoiled["orders"]]}, SCOPE)


@pytest.mark.parametrize("size", [0, 65])
def test_a_list_has_1_to_64_orders(size: int) -> None:
    key, first = key_of(LIST["key"]), entry(LIST["orders"][0]).order
    numbers = [OrderNumber(2, 19_000, 100 + at) for at in range(size)]
    entries = [ListEntry(VenueOrder.of(first.body() | {"number": vars_of(number)})) for number in numbers]
    with pytest.raises(AmountError, match=f"this one has {size}"):
        key.order_list(entries, SCOPE)
    if size:
        assert is_list_signed(key.order_list(entries[:64], SCOPE), SCOPE)


def vars_of(number: OrderNumber) -> dict:
    return {"incarnation": number.incarnation, "day": number.day, "reference": number.reference}


def test_possession_and_requests_are_signed_for_one_network_and_venue() -> None:
    key, report = TradingKey(bytes([9] * 32)), VENUE["report"]
    signed = key.possession(report["account"], SCOPE.network, SCOPE.venue)
    message = bytes.fromhex(VENUE["possession"][2:])[:-32] + bytes.fromhex(key.public[2:])
    assert signed == key.sign_bytes(message)
    number = vars_of(OrderNumber(2, 19_000, 1))
    asks = [
        {"attach": {"session": 1, "ends_orders": False, "dead_man_ms": None}},
        {"attach": {"session": 1, "ends_orders": False, "dead_man_ms": 5}},
        {"cancel": {"number": number, "keeps": 3}},
        {"cancel_all": {"market": 0, "side": "sell"}},
        {"cancel_all": {"market": None, "side": None}},
        {"replace": {"old": number, "new": number}},
        {"status": {"number": number}},
        {"fills": {"from": 7}},
        {"watch": {}},
    ]
    signatures = {key.request(ask, 5, SCOPE)["signature"] for ask in asks}
    assert len(signatures) == len(asks)
    with pytest.raises(AmountError, match="no request"):
        key.request({"withdraw": {}}, 5, SCOPE)


def terms(
    lot_units: int, tick_units: int, decimals: tuple[int, int] = (6, 2), lots: tuple[int, int] = (1, 1000)
) -> VenueTerms:
    def asset(number: int, symbol: str, places: int) -> Asset:
        return Asset(number, symbol, places, "0x", Decimal(0), Decimal(0), None, None)

    numbers = {"market": 0, "base": 1, "quote": 0, "bid": None, "ask": None, "last": None, "fee_cap_ppm": 2000}
    numbers |= {"maker_ppm": -50, "taker_ppm": 200, "lots_min": lots[0], "lots_max": lots[1], "least_quote_units": "0"}
    texts = {"symbol": "M0", "phase": "continuous", "day": None}
    texts |= {"lot_units": str(lot_units), "tick_units": str(tick_units)}
    return VenueTerms(VenueMarket.of(numbers | texts), asset(1, "EUR", decimals[0]), asset(0, "USD", decimals[1]))


@pytest.mark.parametrize("decimals", [(0, 0), (6, 2), (2, 6), (18, 6), (3, 18)])
@pytest.mark.parametrize("lot", [1, 10, 1000, 64, 625])
@pytest.mark.parametrize("tick", [1, 7, 100])
def test_every_tick_and_lot_is_an_exact_decimal_and_comes_back(decimals: tuple[int, int], lot: int, tick: int) -> None:
    of = terms(lot, tick, decimals)
    for number in (1, 2, 3, 999, 123_457, 2_000_000_000):
        price = of.price(number)
        # The oracle: quote units for base units, without the module's own step.
        units = Fraction(price) * Fraction(10) ** (decimals[1] - decimals[0]) * lot
        assert units == number * tick and of.tick(price) == number and of.tick(str(price)) == number
    for number in (1, 2, 999, 1000):
        assert of.amount(number) * 10 ** decimals[0] == number * lot and of.lots(of.amount(number)) == number


def test_what_is_no_tick_or_no_lot_is_refused_with_the_nearest_ones() -> None:
    of = terms(1_000_000, 1, lots=(2, 10))
    assert (of.price_step, of.amount_step, of.fee_cap()) == (Decimal("0.01"), Decimal(1), 200)
    prices = (("1.005", "write 1 or 1.01"), ("0", "write 0.01"), ("-3", "write 0.01"), ("30000000", "write 20000000"))
    for price, says in prices:
        with pytest.raises(AmountError, match=f"{says}$"):
            of.tick(price)
    for amount, says in (("2.5", "write 2 or 3"), ("1", "write 2"), ("10.5", "write 10"), ("11", "write 10")):
        with pytest.raises(AmountError, match=f"{says}$"):
            of.lots(amount)
    with pytest.raises(AmountError, match="floats"):
        of.tick(1.5)  # type: ignore[arg-type]
    with pytest.raises(AmountError, match="no decimal prices"):
        terms(3, 1).price(1)
    assert decimal_of(Fraction(1, 3)) is None and decimal_of(Fraction(-5, 8)) == Decimal("-0.625")


def order(number: OrderNumber) -> dict:
    body = entry(LIST["orders"][0]).order.body() | {"number": vars_of(number), "floor": vars_of(OrderNumber(2, 0, 0))}
    return body | {"key": "0x", "signature": "0x", "replaces": None}


def begun(path: Path | None) -> OrderJournal:
    made = OrderJournal(path)
    made.begin("0x01", 3, "0x02")
    return made


def test_numbers_never_come_again_whatever_a_crash_leaves(tmp_path: Path) -> None:
    path, used = tmp_path / "orders", set()
    for round_, day in enumerate([7, 7, 8, 7, 9]):
        journal = begun(path)
        for number in journal.take(2, day, 5, 3):
            assert number not in used
            used.add(number)
            journal.sends(Sent({"orders": [order(number)]}))
        # Taken and not stored: it never left, and whether it comes again is nothing to anybody.
        journal.take(2, day, 5, 1)
        journal.close()
        with path.open("ab") as out:
            out.write(b'{"orders":[{"cut":' if round_ % 2 else b"")
        if round_ % 2:
            assert path.read_bytes()[-1:] != b"\n"
    assert len(used) == 15 and (path.stat().st_mode & 0o777) == 0o600
    journal = begun(path)
    assert set(journal.open()) == used
    with pytest.raises(StoreError, match="incarnation 2; the venue is at 1"):
        journal.take(1, 9, 5, 1)
    assert journal.take(3, 1, 5, 1) == [OrderNumber(3, 1, 5)]
    journal.close()


def test_the_file_forgets_what_has_ended_and_stays_short(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    journal = begun(path)
    kept = journal.take(2, 7, 5, 2)
    journal.sends(Sent({"list": {"orders": [order(one) for one in kept]}}))
    for _ in range(400):
        numbers = journal.take(2, 7, 5, 16)
        journal.sends(Sent({"orders": [order(one) for one in numbers]}))
        journal.ended(numbers)
    journal.ended(kept[:1])
    assert path.stat().st_size < 2 << 20 and list(journal.open()) == kept[1:]
    journal.close()
    journal = begun(path)
    assert list(journal.open()) == kept[1:] and path.stat().st_size < 2_000
    assert journal.take(2, 7, 5, 1)[0].reference == 5 + 2 + 400 * 16
    journal.close()


def test_orders_that_ended_unheard_are_forgotten_once_their_life_is_over(tmp_path: Path) -> None:
    journal = begun(tmp_path / "orders")
    numbers = journal.take(2, 7, 5, 1_100)
    for at in range(0, 1_100, 50):
        expiry = {"expiry": 1_000 + at}
        journal.sends(Sent({"orders": [order(one) | expiry for one in numbers[at : at + 50]]}))
    journal.expire(1_500)
    assert list(journal.open()) == numbers[500:]
    journal.expire(10_000)
    # So few may all be open.
    assert list(journal.open()) == numbers[500:]
    journal.close()


def test_the_file_belongs_to_one_program_one_key_and_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    journal = begun(path)
    with pytest.raises(StoreError, match="in use by another process"):
        begun(path)
    journal.close()
    with pytest.raises(StoreError, match="is closed: nothing was sent"):
        journal.sends(Sent({"orders": [order(OrderNumber(2, 7, 1))]}))
    with pytest.raises(StoreError, match="give each key, venue and network a file"):
        OrderJournal(path).begin("0x01", 3, "0x03")
    path.chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        begun(path)
    path.chmod(0o600)
    path.write_text(path.read_text() + "no line\n")
    with pytest.raises(StoreError, match="is damaged"):
        begun(path)
    # An error leaves no lock behind.
    path.write_text("")
    with pytest.raises(StoreError, match="is damaged"):
        begun(path)


def test_reports_are_stored_once_before_anybody_hears_of_them(tmp_path: Path) -> None:
    journal = begun(tmp_path / "orders")
    assert journal.saw(2, 7, "0xaa") and not journal.saw(2, 7, "0xaa") and journal.saw(3, 7, "0xbb")
    assert (tmp_path / "orders.reports").read_text() == "0xaa\n0xbb\n"
    assert ((tmp_path / "orders.reports").stat().st_mode & 0o777) == 0o600
    journal.close()
    assert begun(None).take(2, 7, 5, 2) == [OrderNumber(2, 7, 5), OrderNumber(2, 7, 6)]


def test_a_number_is_read_as_it_is_written() -> None:
    number = OrderNumber(0, 20_785, 17)
    assert str(number) == "0:20785:17" and OrderNumber.read("0:20785:17") == number
    for text in ("", "1:2", "1:2:x", "1:2:3:4"):
        with pytest.raises(AmountError, match="no number of an order"):
            OrderNumber.read(text)


def test_a_report_that_could_not_be_written_is_kept_when_it_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begun(tmp_path / "orders")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="reports cannot be written"):
            journal.saw(1, 7, "0xab")
    assert journal.saw(1, 7, "0xab") and not journal.saw(1, 7, "0xab")
    journal.close()
