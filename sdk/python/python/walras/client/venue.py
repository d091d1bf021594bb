"""Venues: what a node tells of its continuous markets, and reports of fills, read and checked against who signed them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from blake3 import blake3
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from walras.client.encoding import derived, raw, u32, u64
from walras.client.proof import ProofError

__all__ = ["VenueDay", "VenueMarket", "VenueReport", "VenueStep", "VenueTrade"]

_SINGLE_BYTES = 164
_STEP_BYTES = 193
"""Those of a report of a step, without its path."""
_LEAVES_MAX = 1 << 20
_TREE = "walras 2026 venue reports tree v1"
_LEAF, _NODE = (derived(_TREE, bytes([tag])) for tag in (0, 1))


def _keyed(key: bytes, message: bytes) -> bytes:
    return blake3(message, key=key).digest()


def _sides(size: int, place: int) -> list[bool]:
    """For each sibling on the path of a leaf, whether it is on the left. The last node of an odd level has none."""
    sides = []
    while size > 1:
        if place ^ 1 < size:
            sides.append(place % 2 == 1)
        size, place = (size + 1) // 2, place // 2
    return sides


@dataclass(frozen=True, slots=True)
class VenueDay:
    """What a continuous market traded in the last 24 hours; prices are ticks."""

    since_ms: int
    complete: bool
    """Whether the node knows all of them."""
    open: int
    high: int
    low: int
    close: int
    change_percent: Decimal
    lots: int
    base_units: int
    quote_units: int
    trades: int

    @staticmethod
    def of(body: Mapping[str, Any]) -> VenueDay:
        return VenueDay(
            since_ms=int(body["since_ms"]),
            complete=bool(body["complete"]),
            open=int(body["open"]),
            high=int(body["high"]),
            low=int(body["low"]),
            close=int(body["close"]),
            change_percent=Decimal(body["change_percent"]),
            lots=int(body["lots"]),
            base_units=int(body["base_volume"]),
            quote_units=int(body["quote_volume"]),
            trades=int(body["trades"]),
        )


@dataclass(frozen=True, slots=True)
class VenueMarket:
    """A continuous market of the node's venue."""

    market: int
    symbol: str
    """In OUCH and ITCH."""
    base: int
    """The number of the asset, as that of `quote`."""
    quote: int
    lot_units: int
    """Base units of a lot."""
    tick_units: int
    """Quote units of a tick and lot."""
    lots_max: int
    """The most lots of an order."""
    fee_cap_ppm: int
    """The most that an order pays in fees, in millionths of the quote units, as is `maker_ppm` and `taker_ppm`."""
    maker_ppm: int | None
    """What makers pay; below zero what they are paid. None while the market is not open, as of the next three."""
    taker_ppm: int | None
    lots_min: int | None
    least_quote_units: int | None
    """What an order must be worth at the worst price that it may get."""
    phase: str
    bid: int | None
    """Ticks, as `ask` and `last`."""
    ask: int | None
    last: int | None
    day: VenueDay | None
    """None if it did not trade in the last 24 hours."""

    @staticmethod
    def of(body: Mapping[str, Any]) -> VenueMarket:
        return VenueMarket(
            market=int(body["market"]),
            symbol=body["symbol"],
            base=int(body["base"]),
            quote=int(body["quote"]),
            lot_units=int(body["lot_units"]),
            tick_units=int(body["tick_units"]),
            lots_max=int(body["lots_max"]),
            fee_cap_ppm=int(body["fee_cap_ppm"]),
            maker_ppm=body["maker_ppm"],
            taker_ppm=body["taker_ppm"],
            lots_min=body["lots_min"],
            least_quote_units=None if body["least_quote_units"] is None else int(body["least_quote_units"]),
            phase=body["phase"],
            bid=body["bid"],
            ask=body["ask"],
            last=body["last"],
            day=VenueDay.of(body["day"]) if body["day"] else None,
        )


@dataclass(frozen=True, slots=True)
class VenueTrade:
    """An execution of a continuous market, without its parties. It is told before it is settled."""

    index: int
    time_ms: int
    """By the venue's clock."""
    side: Literal["buy", "sell"]
    """The side that took."""
    tick: int
    lots: int

    @staticmethod
    def of(body: Mapping[str, Any]) -> VenueTrade:
        numbers = (int(body["index"]), int(body["time_ms"]))
        return VenueTrade(*numbers, body["side"], int(body["tick"]), int(body["lots"]))


@dataclass(frozen=True, slots=True)
class VenueStep:
    """Where a report stands in its step, of which the report key signs the root."""

    number: int
    clock_ms: int
    size: int
    place: int
    path: tuple[bytes, ...]

    def root(self, leaf: bytes) -> bytes:
        """The root that a leaf at this place has."""
        node = _keyed(_LEAF, leaf)
        for is_left, sibling in zip(_sides(self.size, self.place), self.path, strict=True):
            node = _keyed(_NODE, sibling + node if is_left else node + sibling)
        return node


@dataclass(frozen=True, slots=True)
class VenueReport:
    """What a venue said of a fill: keep it, it convicts a venue that settles another one."""

    venue: int
    incarnation: int
    index: int
    leaf: str
    account: str
    key: str
    signature: str
    step: VenueStep | None
    """``None`` if the report has a signature of its own."""

    @classmethod
    def read(cls, text: str) -> VenueReport:
        """The report of these hexadecimal digits, in either form."""
        try:
            data = raw(text)
        except ValueError as error:
            raise ProofError(f"a report of a fill is hexadecimal digits: {error}") from None
        if len(data) == _SINGLE_BYTES:
            return cls._of(data, None)
        if len(data) < _STEP_BYTES or data[0] != 1:
            raise ProofError(f"{len(data)} bytes are no report of a fill")
        step, told = data[1 + _SINGLE_BYTES :], data[1 : 1 + _SINGLE_BYTES]
        number, clock_ms = (int.from_bytes(step[at : at + 8], "little") for at in (0, 8))
        size, place, count = (int.from_bytes(step[at : at + 4], "little") for at in (16, 20, 24))
        path = tuple(step[at : at + 32] for at in range(28, len(step), 32))
        fits = place < size <= _LEAVES_MAX and len(path) == count == len(_sides(size, place))
        if not fits or len(step) != 28 + 32 * count:
            raise ProofError("the path of the report does not fit the number of leaves and the place")
        return cls._of(told, VenueStep(number, clock_ms, size, place, path))

    @classmethod
    def _of(cls, told: bytes, step: VenueStep | None) -> VenueReport:
        venue, incarnation, index = (int.from_bytes(told[at:to], "little") for at, to in ((0, 4), (4, 8), (8, 16)))
        spans = ((16, 48), (48, 68), (68, 100), (100, 164))
        leaf, account, key, signature = ("0x" + told[at:to].hex() for at, to in spans)
        return cls(venue, incarnation, index, leaf, account, key, signature, step)

    def is_signed(self, network: str) -> bool:
        """Whether the key that it names signed it for this network. Whether the venue has that key, the ledger says."""
        place = raw(network) + u32(self.venue) + u32(self.incarnation)
        told = u64(self.index) + raw(self.leaf) + raw(self.account)
        if self.step is None:
            message = b"walras venue report v1\0" + place + told
        else:
            step = self.step
            times = u64(step.number) + u64(step.clock_ms)
            message = b"walras venue step v1\0" + place + times + u32(step.size) + step.root(told)
        try:
            VerifyKey(raw(self.key)).verify(message, raw(self.signature))
        except (BadSignatureError, ValueError):
            return False
        return True
