"""A continuous market as people count it: amounts and prices in whole assets, exactly lots and ticks.

What is no whole number of lots or ticks is refused, with the nearest valid values.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from walras.client.amounts import Asset, Number, exact, plain
from walras.client.errors import AmountError
from walras.client.venue import VenueMarket
from walras.venue.orders import TICK_MAX

__all__ = ["VenueTerms", "decimal_of"]


def decimal_of(value: Fraction) -> Decimal | None:
    """The decimal that a fraction is, exactly; None if it has no end."""
    scale, rest = 0, value.denominator
    while rest > 1 and (factor := next((one for one in (10, 5, 2) if rest % one == 0), 0)):
        scale, rest = scale + 1, rest // factor
    if rest > 1:
        return None
    # Written as text: arithmetic of decimals rounds to the context's digits.
    return Decimal(f"{(value * 10**scale).numerator}e-{scale}")


@dataclass(frozen=True, slots=True)
class VenueTerms:
    """A market with its assets."""

    market: VenueMarket
    base: Asset
    quote: Asset

    @property
    def name(self) -> str:
        """Such as ``EUR/USD``."""
        return f"{self.base.symbol}/{self.quote.symbol}"

    @property
    def number(self) -> int:
        return self.market.market

    @property
    def _price_step(self) -> Fraction:
        """Whole quote assets for a whole base asset, of one tick."""
        units = Fraction(self.market.tick_units, self.market.lot_units)
        return units * Fraction(10) ** (self.base.decimals - self.quote.decimals)

    @property
    def price_step(self) -> Decimal:
        """The price of one tick."""
        return self.price(1)

    @property
    def amount_step(self) -> Decimal:
        """The amount of one lot."""
        return self.amount(1)

    def price(self, tick: int) -> Decimal:
        """The price of a tick, in whole quote assets for a whole base asset."""
        price = decimal_of(tick * self._price_step)
        if price is None:
            raise AmountError(f"ticks of {self.name} are no decimal prices: sign its orders with `TradingKey.order`")
        return price

    def amount(self, lots: int) -> Decimal:
        """An amount of the base asset."""
        return self.base.amount(lots * self.market.lot_units)

    def quote_amount(self, lots: int, tick: int) -> Decimal:
        """What lots are worth at a tick, in the quote asset."""
        return self.quote.amount(lots * tick * self.market.tick_units)

    def tick(self, price: Number) -> int:
        """The tick of a price. Raises an `AmountError` with the nearest valid prices."""
        ticks = Fraction(exact(price, "the price")) / self._price_step
        if ticks.denominator == 1 and 1 <= ticks <= TICK_MAX:
            return int(ticks)
        below = min(max(ticks.__floor__(), 1), TICK_MAX)
        near = sorted({below, min(below + 1, TICK_MAX)} if 1 <= ticks <= TICK_MAX else {below})
        valid = " or ".join(plain(self.price(tick)) for tick in near)
        step = plain(self.price_step)
        raise AmountError(f"the price is {price}; prices of {self.name} are multiples of {step}: write {valid}")

    def lots(self, amount: Number) -> int:
        """The lots of an amount of the base asset. Raises an `AmountError` with the nearest valid amounts."""
        lots = Fraction(self.base.units(amount), self.market.lot_units)
        least = max(self.market.lots_min or 1, 1)
        if lots.denominator == 1 and least <= lots <= self.market.lots_max:
            return int(lots)
        below = min(max(lots.__floor__(), least), self.market.lots_max)
        inside = least <= lots <= self.market.lots_max
        near = sorted({below, min(below + 1, self.market.lots_max)} if inside else {below})
        valid = " or ".join(plain(self.amount(one)) for one in near)
        step = f"multiples of {plain(self.amount_step)} {self.base.symbol}"
        raise AmountError(f"the amount is {amount}; orders of {self.name} are {step}: write {valid}")

    def fee_cap(self) -> int:
        """The least fee cap that its orders may have, in millionths."""
        fees = (self.market.maker_ppm, self.market.taker_ppm)
        known = [fee for fee in fees if fee is not None]
        return max(0, *known) if len(known) == len(fees) else self.market.fee_cap_ppm
