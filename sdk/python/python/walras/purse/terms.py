"""The terms of the lane's assets, by lane epoch, as a node tells them. Nothing proves them, and nothing needs to:
members refuse a payment on wrong terms before they reserve anything, and the ledger refuses a deposit. What a purse
shows to people is another matter: the name and the decimals of an asset stay as the purse first knew them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from walras.client.amounts import Asset, Number

__all__ = ["Money", "ToldTerms"]


@dataclass(frozen=True)
class Money:
    """An asset of the lane, on the terms of some epoch."""

    asset: int
    symbol: str
    decimals: int
    least_units: int
    fee: int

    @property
    def rule(self) -> tuple[int, int]:
        return self.least_units, self.fee

    def _asset(self) -> Asset:
        return Asset(self.asset, self.symbol, self.decimals, "", Decimal(0), Decimal(0), None, None)

    def units(self, amount: Number) -> int:
        return self._asset().units(amount)

    def amount(self, units: int) -> Decimal:
        return self._asset().amount(units)


class ToldTerms:
    """What a node told last: for each asset the first lane epochs of its terms, ascending."""

    def __init__(self, bodies: list[Any]) -> None:
        self.bodies = bodies
        self._terms: dict[int, dict[int, tuple[Money, bool]]] = {}
        for of in sorted(bodies, key=lambda one: (int(one["number"]), int(one["from"]))):
            sizes = int(of["least_units"]), int(of["fee"])
            money = Money(int(of["number"]), str(of["asset"]), int(of["decimals"]), *sizes)
            self._terms.setdefault(money.asset, {})[int(of["from"])] = money, of["deposits"] == "taken"

    def renamed(self, known: Iterable[Money]) -> Money | None:
        """An asset that is called otherwise than before, or like another one."""
        told = [money for terms in self._terms.values() for money, _ in terms.values()]
        everything = [*known, *told]
        for one in told:
            for other in everything:
                is_same = one.asset == other.asset
                if is_same != (one.symbol == other.symbol) or (is_same and one.decimals != other.decimals):
                    return one
        return None

    def _of_home(self, asset: int, home: int) -> tuple[Money, bool] | None:
        of = self._terms.get(asset, {})
        begun = [epoch for epoch in of if epoch <= home]
        return of[begun[-1]] if begun else None

    def rule(self, asset: int, home: int) -> tuple[int, int] | None:
        """Least output and fee of an asset in a home; None if nothing was told about it."""
        found = self._of_home(asset, home)
        return found[0].rule if found else None

    def takes_deposits(self, asset: int, epoch: int) -> bool:
        """Whether deposits are taken in an epoch. A node of an older version tells nothing: then the ledger judges."""
        found = self._of_home(asset, epoch)
        return found[1] if found else not self._terms

    def assets(self) -> list[Money]:
        """The assets, on their newest terms."""
        return [list(terms.values())[-1][0] for terms in self._terms.values()]
