"""Amounts and prices, exactly: whole assets as people count them, and units as the ledger does.

Nothing is rounded in silence. An amount with more places than its asset has is refused, as is a price with more digits
than the ledger's, and floating point, which cannot write most decimals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from typing import Any, TypeAlias

from walras.client.errors import AmountError, UnknownAssetError

__all__ = [
    "DIGITS",
    "UNITS_MAX",
    "Asset",
    "Assets",
    "Number",
    "assets_of",
    "bound_of",
    "exact",
    "inverse_limit",
    "limit_of",
    "market_limit",
    "plain",
    "price_of",
]

Number: TypeAlias = "Decimal | int | str"
"""A number without loss. Floating point is refused."""

DIGITS = 17
"""Significant digits of the ledger's prices."""
UNITS_MAX = 2**63 - 1
_MAGNITUDE_MAX = 100
_EXACT = Context(prec=400, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, DivisionByZero])
_UP = Context(prec=DIGITS, rounding=ROUND_CEILING)
_PROPOSED = Context(prec=7, rounding=ROUND_HALF_UP)


def exact(value: Number, what: str = "the amount") -> Decimal:
    """`value` as a decimal, if it is a finite one of sensible size."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise AmountError(f'{what} is {value!r}; write it as text or Decimal, such as "12.5": floats are not exact')
    try:
        number = Decimal(value.strip() if isinstance(value, str) else value)
    except InvalidOperation:
        raise AmountError(f'{what} is {value!r}, which is no number; write it such as "12.5"') from None
    if not number.is_finite() or len(number.as_tuple().digits) > _MAGNITUDE_MAX:
        raise AmountError(f"{what} is {value!r}, which is no number that the ledger can hold")
    if number and abs(number.adjusted()) > _MAGNITUDE_MAX:
        raise AmountError(f"{what} is {value!r}, which is no number that the ledger can hold")
    return number


def plain(value: Decimal) -> str:
    """The shortest text of a decimal, without exponent."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset. Its amounts are in whole assets."""

    number: int
    symbol: str
    decimals: int
    issuer: str
    least: Decimal
    """The least that an offer sells or asks for."""
    issued: Decimal
    valuation: Decimal | None
    """In the last batch, per unit; only ratios of valuations mean anything."""
    token: str | None
    """The address of its ERC-20 token, on a chain with contracts."""
    supply_max: Decimal | None = None
    """The most that may exist at one time, of an asset that was listed after the genesis."""
    closes: int | None = None
    """The last height that it trades at, if it closes or is closed."""
    control: str = "open"
    """What its issuer controls in the hands of others: ``open``, nothing; ``freezable``, ``admitted``, ``recoverable`` or
    ``admitted_recoverable``."""

    def units(self, amount: Number, what: str = "the amount") -> int:
        """An amount above zero in units; refused if a part of a unit would be lost."""
        number = exact(amount, what)
        if number <= 0:
            raise AmountError(f"{what} is {plain(number)} {self.symbol}; it must be above 0")
        units = _EXACT.scaleb(number, self.decimals)
        if units != units.to_integral_value():
            raise AmountError(
                f"{what} is {plain(number)} {self.symbol}, but {self.symbol} has {self.decimals} places after the "
                "point: write fewer"
            )
        if units > UNITS_MAX:
            raise AmountError(f"{what} is {plain(number)} {self.symbol}; the most is {plain(self.amount(UNITS_MAX))}")
        return int(units)

    def amount(self, units: int) -> Decimal:
        """Units in whole assets."""
        return _EXACT.scaleb(Decimal(units), -self.decimals)


class Assets(Mapping[str, Asset]):
    """The assets of a network, by symbol."""

    def __init__(self, listed: list[Asset]) -> None:
        self._by_symbol = {asset.symbol: asset for asset in listed}
        self._by_number = {asset.number: asset for asset in listed}

    def learn(self, others: Assets) -> None:
        """Adds assets that were listed since; what is known of the others is renewed."""
        self._by_symbol = {**self._by_symbol, **others._by_symbol}
        self._by_number = {**self._by_number, **others._by_number}

    def __getitem__(self, symbol: str) -> Asset:
        if symbol not in self._by_symbol:
            raise UnknownAssetError(symbol, list(self._by_symbol))
        return self._by_symbol[symbol]

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._by_symbol

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_symbol)

    def __len__(self) -> int:
        return len(self._by_symbol)

    def numbered(self, number: int) -> Asset:
        """The asset with a number."""
        if number not in self._by_number:
            raise UnknownAssetError(f"number {number}", list(self._by_symbol))
        return self._by_number[number]

    def market(self, name: str) -> tuple[Asset, Asset]:
        """Base and quote of a market such as ``EUR/USD``."""
        base, slash, quote = name.partition("/")
        if not slash:
            raise UnknownAssetError(name, [f"{one}/{other}" for one in self for other in self if one != other][:20])
        return self[base], self[quote]


def _asset_of(body: Mapping[str, Any]) -> Asset:
    def amount(units: str) -> Decimal:
        return _EXACT.scaleb(Decimal(units), -int(body["decimals"]))

    return Asset(
        number=int(body["asset"]),
        symbol=str(body["symbol"]),
        decimals=int(body["decimals"]),
        issuer=str(body["issuer"]),
        least=amount(body["least_units"]),
        issued=amount(body["issued"]),
        valuation=None if body.get("valuation") is None else Decimal(body["valuation"]),
        token=body.get("token"),
        supply_max=amount(body["listed"]["supply_max"]) if body.get("listed") else None,
        closes=None if body.get("closes") is None else int(body["closes"]),
        control=str(body.get("control", "open")),
    )


def assets_of(body: Mapping[str, Any]) -> Assets:
    """The assets as a node lists them."""
    return Assets([_asset_of(one) for one in body["assets"]])


def limit_of(price: Number, sell: Asset, buy: Asset) -> Decimal:
    """A price in whole assets bought per whole asset sold, in units bought per unit sold."""
    number = exact(price, "the price")
    if number <= 0:
        raise AmountError(f"the price is {plain(number)}; it must be above 0")
    if len(number.normalize(_EXACT).as_tuple().digits) > DIGITS:
        raise AmountError(f"the price is {plain(number)}; the ledger's prices have at most {DIGITS} digits")
    limit = _EXACT.scaleb(number, buy.decimals - sell.decimals)
    if not -18 <= limit.adjusted() <= 17:
        raise AmountError(f"the price is {plain(number)}, in units {plain(limit)}: the ledger's are from 1e-18 to 1e18")
    return limit


def price_of(limit: Decimal, sell: Asset, buy: Asset) -> Decimal:
    """The price in whole assets of a limit in units."""
    return _EXACT.scaleb(limit, sell.decimals - buy.decimals)


def inverse_limit(units: int, limit: Decimal) -> tuple[int, Decimal]:
    """To buy `units` at no more than `limit` is to sell what they cost, for no less than one over the limit. Returns
    the cost, rounded up to a whole unit, and the inverse, rounded up in the ledger's digits: nobody pays more."""
    cost = _EXACT.multiply(Decimal(units), limit).to_integral_value(rounding=ROUND_CEILING, context=_EXACT)
    return int(cost), _UP.divide(Decimal(1), limit)


def bound_of(units: int, limit: Decimal) -> int:
    """What buying exactly so many units costs at the most, in whole units: nobody pays more than was written."""
    return int(_EXACT.multiply(Decimal(units), limit).to_integral_value(rounding=ROUND_FLOOR, context=_EXACT))


def market_limit(side: str, last: Decimal) -> Decimal:
    """The limit of a market order: the last price with 5 % of room, in 7 digits, so that nobody pays any price."""
    return _PROPOSED.multiply(last, Decimal("1.05" if side == "buy" else "0.95"))
