"""A local book of one market: the snapshot of the stream's channel ``book:BASE/QUOTE``, and its changes.

Levels are named by their price in units, as text. Each change says from which height it leads on, and has a checksum of
the ten best levels of both sides: a book that is another one is given up, and the next snapshot replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal
from zlib import crc32

from walras.client.amounts import Assets
from walras.client.models import Book, Level

__all__ = ["BookBrokenError", "BookUpdate", "Change", "LocalBook"]

CHECKED_LEVELS = 10

Side = Literal["sell", "buy"]


class BookBrokenError(ValueError):
    """A change does not continue the book, or the book is another one than the node's."""


@dataclass(frozen=True, slots=True)
class Change:
    """A level that is another one now. `amount` is 0 where it is gone."""

    side: Side
    price: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class BookUpdate:
    """A market's book changed: `book` is the whole of it, and is the same object each time."""

    market: str
    height: int
    changes: tuple[Change, ...]
    book: LocalBook


class LocalBook:
    """The best levels of a market, as the stream tells them."""

    def __init__(self, market: str) -> None:
        self.market = market
        self.height = -1
        """The block after which it was so; -1 before the first snapshot."""
        self._sides: dict[Side, dict[str, dict[str, Any]]] = {"sell": {}, "buy": {}}
        self._levels: dict[Side, tuple[Level, ...]] = {"sell": (), "buy": ()}

    @property
    def sells(self) -> tuple[Level, ...]:
        """Offers of the base, cheapest first."""
        return self._levels["sell"]

    @property
    def buys(self) -> tuple[Level, ...]:
        """Offers of the quote, highest price first."""
        return self._levels["buy"]

    @property
    def book(self) -> Book | None:
        """Its levels as `Client.book` has them; None before the first snapshot."""
        if self.height < 0:
            return None
        return Book(self.market, self.height, None, None, None, self.sells, self.buys)

    @property
    def best_sell(self) -> Level | None:
        return self.sells[0] if self.sells else None

    @property
    def best_buy(self) -> Level | None:
        return self.buys[0] if self.buys else None

    @property
    def middle(self) -> Decimal | None:
        """Between the best prices of both sides."""
        if self.best_sell is None or self.best_buy is None:
            return None
        return (self.best_sell.price + self.best_buy.price) / 2

    def snapshot(self, body: Any, assets: Assets) -> list[Change]:
        """Takes a snapshot. Returns what changed."""
        before = dict(self._levels)
        self._sides = {"sell": _named(body["sells"]), "buy": _named(body["buys"])}
        self._take(int(body["height"]), int(body["checksum"]), assets)
        return _changes("sell", before["sell"], self.sells) + _changes("buy", before["buy"], self.buys)

    def change(self, body: Any, assets: Assets) -> list[Change]:
        """Takes a change; one that is known already is ignored. Returns what changed. Raises a `BookBrokenError` where
        it does not continue this book, or leads to another one than the node's; the book is empty then."""
        height, previous = int(body["height"]), int(body["previous"])
        if height <= self.height:
            return []
        if self.height < 0 or previous > self.height:
            self._give_up(f"a change leads on from block {previous}, and the book is that of {self.height}")
        before = dict(self._levels)
        for own, levels in ((self._sides["sell"], body["sells"]), (self._sides["buy"], body["buys"])):
            for level in levels:
                if int(level["offers"]) == 0:
                    own.pop(level["price_units"], None)
                else:
                    own[level["price_units"]] = level
        self._take(height, int(body["checksum"]), assets)
        return _changes("sell", before["sell"], self.sells) + _changes("buy", before["buy"], self.buys)

    def checksum(self) -> int:
        """CRC-32 of the ten best levels of the buys and then of the sells, as the node counts it."""
        best = [*self._best("buy")[:CHECKED_LEVELS], *self._best("sell")[:CHECKED_LEVELS]]
        return crc32("".join(f"{one['price_units']}:{one['amount']}:{one['offers']};" for one in best).encode())

    def _best(self, side: Side) -> list[dict[str, Any]]:
        levels = self._sides[side].values()
        return sorted(levels, key=lambda one: Decimal(one["price_units"]), reverse=side == "buy")

    def _take(self, height: int, checksum: int, assets: Assets) -> None:
        if self.checksum() != checksum:
            self._give_up(f"the book of {self.market} after block {height} is another one than the node's")
        base, _ = assets.market(self.market)
        self._levels = {
            "sell": tuple(Level.of(one, base) for one in self._best("sell")),
            "buy": tuple(Level.of(one, base) for one in self._best("buy")),
        }
        self.height = height

    def _give_up(self, why: str) -> None:
        self.height = -1
        self._sides, self._levels = {"sell": {}, "buy": {}}, {"sell": (), "buy": ()}
        raise BookBrokenError(why)


def _named(levels: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {level["price_units"]: level for level in levels}


def _changes(side: Side, before: tuple[Level, ...], after: tuple[Level, ...]) -> list[Change]:
    old, new = ({level.price: level.amount for level in levels} for levels in (before, after))
    gone = [Change(side, price, Decimal(0)) for price in old if price not in new]
    return gone + [Change(side, price, amount) for price, amount in new.items() if old.get(price) != amount]
