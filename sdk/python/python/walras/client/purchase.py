"""How a program's purchase of an amount of the base is placed.

What the next batch would not fill whole goes as an offer of what the amount costs: what trades of it at once trades at its
limit, and the rest waits. What it would fill whole goes as an exact order, which buys the amount and no more. An exact order
takes what the offers of a batch leave, so in a thin book there may be no room for it. Then it goes as an offer of what the
batch would charge, so that its money buys about the amount, with 5 % of room below its own limit: prices move from batch to
batch.

All of these are forms of one purchase: one of them that was sent without a result stands for the purchase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

from walras.client.amounts import Asset, bound_of, inverse_limit
from walras.client.flow import Flow
from walras.client.operations import CreateOffer, Exact

__all__ = ["Purchase", "Quoted"]

_CHARGED = Context(prec=7, rounding=ROUND_CEILING)
_TRIES, _MORE = 4, 1000
"""How often an offer is tightened at most, and how much more than the amount may be bought: a thousandth."""
_ROOM = Decimal("1.05")
_PAIR, _AMOUNT, _LIMIT = 9, 17, 25
"""Where the parts of an encoded offer end: kind, pair, amount, limit."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """What the next batch would do with an offer, in units."""

    amount: int
    sold: int
    bought: int

    @property
    def is_whole(self) -> bool:
        return self.sold >= self.amount


@dataclass(frozen=True, slots=True)
class Purchase:
    """So many units of the base, for at most `limit` quote units each."""

    base: Asset
    quote: Asset
    units: int
    limit: Decimal
    life: str
    client: str

    def offer(self, charged: Decimal | None = None) -> CreateOffer:
        """The offer of what it costs at its limit, or at what a batch would charge."""
        cost, inverse = inverse_limit(self.units, charged or self.limit)
        if charged is not None:
            _, inverse = inverse_limit(self.units, min(self.limit, _CHARGED.multiply(charged, _ROOM)))
        return CreateOffer(self.quote.number, self.base.number, cost, inverse, self.life, self.client)

    def exact(self) -> Exact | None:
        """The exact order; None where the amount costs less than a unit."""
        bound = bound_of(self.units, self.limit)
        return Exact(self.quote.number, self.base.number, "buy", self.units, bound, self.client) if bound else None

    def tightened(self, ask: Callable[[CreateOffer], Flow[Quoted]]) -> Flow[CreateOffer]:
        """An offer of what the next batch would charge; the usual one where it would not fill it."""
        offer = self.offer()
        for _ in range(_TRIES):
            told = yield from ask(offer)
            if not told.is_whole or told.bought <= self.units + self.units // _MORE:
                break
            charged = _CHARGED.divide(Decimal(told.sold), Decimal(told.bought))
            if charged >= self.limit:
                break
            offer = self.offer(charged)
        return offer

    def is_form(self, operation: bytes) -> bool:
        """Whether an encoded operation is a form of it: the exact order, or an offer for no more at no worse a limit."""
        usual, exact = self.offer().encode(), self.exact()

        def amount(encoded: bytes) -> int:
            return int.from_bytes(encoded[_PAIR:_AMOUNT], "little")

        # Prices sort as their bytes do.
        is_offer = operation[:_PAIR] == usual[:_PAIR] and operation[_LIMIT:] == usual[_LIMIT:]
        is_within = amount(operation) <= amount(usual) and operation[_AMOUNT:_LIMIT] >= usual[_AMOUNT:_LIMIT]
        return (exact is not None and operation == exact.encode()) or (is_offer and is_within)
