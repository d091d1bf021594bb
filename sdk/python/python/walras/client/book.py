"""A local book of one market.

The node's stream has no channel of the book, so a `LocalBook` is fed snapshots: a new one when a block changed
something. It tells what changed in between, level by level, and never goes back to an older block.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from walras.client.models import Block, Book, Level

__all__ = ["Change", "LocalBook"]


@dataclass(frozen=True, slots=True)
class Change:
    """A level that is another one now. `amount` is 0 where it is gone."""

    side: Literal["sell", "buy"]
    price: Decimal
    amount: Decimal


class LocalBook:
    """The book of a market, as last read."""

    def __init__(self, market: str) -> None:
        self.market = market
        self.book: Book | None = None
        self._behind = True

    @property
    def height(self) -> int:
        """The block after which it was read; -1 before the first snapshot."""
        return self.book.height if self.book else -1

    @property
    def best_sell(self) -> Level | None:
        return self.book.sells[0] if self.book and self.book.sells else None

    @property
    def best_buy(self) -> Level | None:
        return self.book.buys[0] if self.book and self.book.buys else None

    @property
    def middle(self) -> Decimal | None:
        """Between the best prices of both sides."""
        if self.best_sell is None or self.best_buy is None:
            return None
        return (self.best_sell.price + self.best_buy.price) / 2

    def saw(self, block: Block) -> bool:
        """Whether the block may have changed the book, so that a new snapshot is due."""
        self._behind |= block.height > self.height and (block.applied > 0 or block.fills > 0)
        return self._behind

    def apply(self, snapshot: Book) -> list[Change]:
        """Takes a snapshot; one that is not newer is ignored. Returns what changed."""
        if snapshot.market != self.market:
            raise ValueError(f"the book of {snapshot.market} is none of {self.market}")
        if snapshot.height <= self.height:
            return []
        before, self.book, self._behind = self.book, snapshot, False
        sells = _changes("sell", before.sells if before else (), snapshot.sells)
        return sells + _changes("buy", before.buys if before else (), snapshot.buys)


def _changes(side: Literal["sell", "buy"], before: tuple[Level, ...], after: tuple[Level, ...]) -> list[Change]:
    old, new = ({level.price: level.amount for level in levels} for levels in (before, after))
    gone = [Change(side, price, Decimal(0)) for price in old if price not in new]
    return gone + [Change(side, price, amount) for price, amount in new.items() if old.get(price) != amount]
