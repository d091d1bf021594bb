"""What an order, a trade and a page of the ccxt classes are, for any history."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest
from walras._ccxt_rows import page, past_row, told, trade_row
from walras.client import Asset, Assets, OrderTerms, PastFill, PastOrder
from walras.client.amounts import inverse_limit, limit_of

MARKETS = {"EUR/USD": {"precision": {"amount": 1e-06}}}
ASSETS = Assets([Asset(at, symbol, 6, "0x", Decimal(0), Decimal(0), None, "0x") for at, symbol in enumerate(("USD", "EUR"))])


def history(seed: int) -> tuple[PastOrder, list[PastFill], Decimal]:
    """An order as a node tells it, its fills, and the amount that was asked for."""
    dice = random.Random(seed)
    is_sell = dice.random() < 0.5
    usd, eur = ASSETS["USD"], ASSETS["EUR"]
    sell, buy = (eur, usd) if is_sell else (usd, eur)
    amount, price = Decimal(dice.randint(1, 10**9)).scaleb(-6), Decimal(dice.randint(1, 10**6)).scaleb(-3)
    units, limit = eur.units(amount), limit_of(price, eur, usd)
    locked, own = (units, limit) if is_sell else inverse_limit(units, limit)
    left, fills = locked, []
    for at in range(dice.randint(0, 8)):
        sold = dice.randint(0, left)
        better = Decimal(dice.randint(1000, 1500)).scaleb(-3)
        bought = int(sold * own * better)
        left -= sold
        if sold:
            fills.append(PastFill(at, at, 7, sell.symbol, buy.symbol, sell.amount(sold), buy.amount(bought), Decimal(0), Decimal(0)))
    sums = [sum((getattr(one, name) for one in fills), Decimal(0)) for name in ("sold", "bought")]
    status, why = dice.choice([("resting", None), ("ended", "cancelled"), ("ended", "expired")]) if left else ("ended", "filled")
    past = PastOrder(
        9, 9, "0x", 7, 99, sell.symbol, buy.symbol, own, own, sell.amount(locked), "rests", None, status, why,
        sell.amount(left if status == "resting" else 0), sums[0], sums[1],
        asked=OrderTerms("sell" if is_sell else "buy", "EUR", "USD", amount, price),
    )
    return past, fills, amount


@pytest.mark.parametrize("seeds", [range(at, at + 500) for at in range(0, 2000, 500)])
def test_the_trades_of_an_order_sum_to_it_in_any_history(seeds: range) -> None:
    for seed in seeds:
        past, fills, asked = history(seed)
        assert past.sold is not None and past.bought is not None and past.asked is not None
        row = past_row(past, past.asked, (past.sold, past.bought), past)
        trades = [trade_row(MARKETS, fill) for fill in fills]
        amount, filled, remaining, cost = (Decimal(row[name]) for name in ("amount", "filled", "remaining", "cost"))
        assert filled == sum(Decimal(one["amount"]) for one in trades), seed
        assert cost == sum(Decimal(one["cost"]) for one in trades), seed
        assert amount == filled + remaining and remaining >= 0, seed
        assert (row["average"] is None) == (filled == 0) == (not trades or filled == 0), seed
        assert amount == max(asked, filled) and Decimal(row["price"]) == past.asked.price, seed
        assert {one["side"] for one in trades} <= {row["side"]}
        assert json.loads(json.dumps(row["info"]))["sold"] == told(past.sold)


def test_pages_from_since_on_join_without_hole_or_repetition_over_ten_thousand_rows() -> None:
    dice = random.Random(3)
    times = sorted(dice.randint(0, 6_000) for _ in range(10_000))
    rows = list(enumerate(times))
    for limit in (1, 7, 100, 1000):
        found: list[tuple[int, int]] = []
        since = 0
        while got := page(rows, lambda row: row[1], since, limit):
            assert got[0][1] >= since and len(got) >= min(limit, len(rows) - len(found))
            found += got
            since = got[-1][1] + 1
        assert found == rows, limit
    assert page(rows, lambda row: row[1], None, 5) == rows[-5:] and page(rows, lambda row: row[1], None, None) == rows
    assert page(rows, lambda row: row[1], 0, None) == rows
