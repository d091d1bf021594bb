"""Orders at a venue byte by byte, as docs/venue-api.md describes them: single ones, lists under one signature,
requests.

A *number* names an order for ever. An *order* is signed for ever, alone or in a *list* of up to 64 under one
signature. A *request* (cancel, status, fills, a session) is signed for a moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from blake3 import blake3
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey
from nacl.utils import random

from walras.client.encoding import address_bytes, derived, raw, u32, u64
from walras.client.errors import AmountError
from walras.client.keys import Ed25519Key

__all__ = [
    "LIST_ORDERS_MAX",
    "TICK_MAX",
    "Life",
    "ListEntry",
    "OrderNumber",
    "SelfTrade",
    "Side",
    "TradingKey",
    "VenueOrder",
    "VenueScope",
    "is_list_signed",
]

LIST_ORDERS_MAX = 64
"""The most orders under one signature."""
TICK_MAX = 2_000_000_000
PPM = 1_000_000

Side: TypeAlias = Literal["buy", "sell"]
Life: TypeAlias = Literal["rests", "post_only", "immediate_or_cancel", "fill_or_kill"]
SelfTrade: TypeAlias = Literal["expire_maker", "expire_taker", "expire_both"]
_SIDES = ("buy", "sell")
_LIVES = ("rests", "post_only", "immediate_or_cancel", "fill_or_kill")
_SELF_TRADES = ("expire_maker", "expire_taker", "expire_both")

_ORDER_TAG = b"walras venue order v1\0"
_LIST_TAG = b"walras venue order list v1\0"
_REQUEST_TAG = b"walras venue request v1\0"
_POSSESSION_TAG = b"walras venue trading key v1\0"
_SALT = "walras 2026 venue list salt v1"
_LEAF, _NODE = (derived("walras 2026 venue orders tree v1", bytes([tag])) for tag in (0, 1))


def _option(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def _choice(texts: Sequence[str], value: str, what: str) -> bytes:
    if value not in texts:
        raise AmountError(f"{value!r} is no {what}: write one of {', '.join(texts)}")
    return bytes([texts.index(value)])


@dataclass(frozen=True, slots=True, order=True)
class OrderNumber:
    """The number of an order: incarnation of the venue, day (since 1970, UTC) and the client's reference."""

    incarnation: int
    day: int
    reference: int

    @staticmethod
    def of(body: Mapping[str, Any]) -> OrderNumber:
        return OrderNumber(int(body["incarnation"]), int(body["day"]), int(body["reference"]))

    @staticmethod
    def read(text: str) -> OrderNumber:
        """The number of this text, such as ``0:20787:15``."""
        try:
            incarnation, day, reference = (int(part) for part in text.split(":"))
        except ValueError:
            raise AmountError(f"{text!r} is no number of an order: write it such as 0:20787:15") from None
        return OrderNumber(incarnation, day, reference)

    def __str__(self) -> str:
        return f"{self.incarnation}:{self.day}:{self.reference}"

    def encode(self) -> bytes:
        return u32(self.incarnation) + self.day.to_bytes(2, "little") + u32(self.reference)


@dataclass(frozen=True, slots=True)
class VenueScope:
    """What orders and requests are signed for."""

    network: str
    venue: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class VenueOrder:
    """An order as it is signed. Prices are ticks, sizes lots."""

    market: int
    number: OrderNumber
    side: Side
    tick: int
    lots: int
    expiry: int
    """The last height of its life."""
    fee_cap_ppm: int
    """The most that it pays in fees, in millionths of the quote units."""
    floor: OrderNumber
    """Lower numbers are dead once the order is filled."""
    life: Life = "rests"
    self_trade: SelfTrade = "expire_taker"
    until_ms: int | None = None
    """The last block time of its life."""

    @property
    def is_plain(self) -> bool:
        """Whether its fields are within their bounds, whatever the market."""
        in_bounds = 1 <= self.tick <= TICK_MAX and 1 <= self.lots < 1 << 32 and 0 <= self.fee_cap_ppm <= PPM
        return in_bounds and self.floor <= self.number

    def encode(self) -> bytes:
        rules = _choice(_SIDES, self.side, "side") + _choice(_LIVES, self.life, "life of an order")
        rules += _choice(_SELF_TRADES, self.self_trade, "rule for trades with oneself")
        until = _option(None if self.until_ms is None else u64(self.until_ms))
        sizes = u32(self.tick) + u32(self.lots) + u64(self.expiry) + until + u32(self.fee_cap_ppm)
        return u32(self.market) + self.number.encode() + self.floor.encode() + rules + sizes

    def body(self) -> dict[str, Any]:
        """Its fields as they are sent."""
        return asdict(self)

    @staticmethod
    def of(body: Mapping[str, Any]) -> VenueOrder:
        """The order of the fields as they are sent."""
        return VenueOrder(
            market=int(body["market"]),
            number=OrderNumber.of(body["number"]),
            side=body["side"],
            tick=int(body["tick"]),
            lots=int(body["lots"]),
            expiry=int(body["expiry"]),
            fee_cap_ppm=int(body["fee_cap_ppm"]),
            floor=OrderNumber.of(body["floor"]),
            life=body["life"],
            self_trade=body["self_trade"],
            until_ms=body["until_ms"],
        )


@dataclass(frozen=True, slots=True)
class ListEntry:
    """An order of a list, and the number of the open order in whose place it goes."""

    order: VenueOrder
    replaces: OrderNumber | None = None


def _list_root(entries: Sequence[ListEntry], seed: bytes) -> bytes:
    level = []
    for place, entry in enumerate(entries):
        replaces = _option(None if entry.replaces is None else entry.replaces.encode())
        salt = derived(_SALT, seed + bytes([place]) + replaces)[:16]
        level.append(blake3(salt + entry.order.encode(), key=_LEAF).digest())
    while len(level) > 1:
        pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
        # The last node of an odd level has no sibling.
        level = [blake3(b"".join(pair), key=_NODE).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0]


def _check_list(entries: Sequence[ListEntry]) -> None:
    if not 1 <= len(entries) <= LIST_ORDERS_MAX:
        raise AmountError(f"a list has 1 to {LIST_ORDERS_MAX} orders, this one has {len(entries)}: split it")
    for at, entry in enumerate(entries):
        if not entry.order.is_plain:
            raise AmountError(f"order {at} of the list has a tick, lots, fee cap or floor out of bounds")
        if at and entries[at - 1].order.number >= entry.order.number:
            raise AmountError(f"the number of order {at} of the list is not above the one before: sort them")


def _list_bytes(entries: Sequence[ListEntry], seed: bytes, scope: VenueScope) -> bytes:
    head = _LIST_TAG + raw(scope.network) + u32(scope.venue)
    return head + bytes([len(entries)]) + _list_root(entries, seed)


def is_list_signed(body: Mapping[str, Any], scope: VenueScope) -> bool:
    """Whether a list as it is sent has fields within bounds, and is signed by its key for this network and venue."""
    replaced = [None if one["replaces"] is None else OrderNumber.of(one["replaces"]) for one in body["orders"]]
    entries = [ListEntry(VenueOrder.of(one), old) for one, old in zip(body["orders"], replaced, strict=True)]
    try:
        _check_list(entries)
        message = _list_bytes(entries, raw(body["seed"]), scope)
        VerifyKey(raw(body["key"])).verify(message, raw(body["signature"]))
    except (AmountError, BadSignatureError):
        return False
    return True


class TradingKey(Ed25519Key):
    """A key that trades at a venue for an account which has authorised it: a file of ``walras wallet new``."""

    def order(self, order: VenueOrder, scope: VenueScope) -> dict[str, Any]:
        """A signed order, as it is sent."""
        if not order.is_plain:
            raise AmountError("the order has a tick, lots, fee cap or floor out of bounds")
        signed = self.sign_bytes(_ORDER_TAG + raw(scope.network) + u32(scope.venue) + order.encode())
        return {**order.body(), "key": self.public, "signature": signed}

    def order_list(self, entries: Sequence[ListEntry], scope: VenueScope, seed: bytes | None = None) -> dict[str, Any]:
        """A list of orders under one signature, as it is sent. The seed is drawn for this list alone."""
        _check_list(entries)
        seed = random(32) if seed is None else seed
        orders = [entry.order.body() | {"replaces": entry.replaces and asdict(entry.replaces)} for entry in entries]
        signed = self.sign_bytes(_list_bytes(entries, seed, scope))
        return {"key": self.public, "seed": "0x" + seed.hex(), "orders": orders, "signature": signed}

    def request(self, ask: Mapping[str, Any], stamp_ms: int, scope: VenueScope) -> dict[str, Any]:
        """A signed request, as it is sent; `ask` is one of docs/venue-api.md."""
        head = _REQUEST_TAG + raw(scope.network) + u32(scope.venue) + u32(scope.incarnation) + raw(self.public)
        signed = self.sign_bytes(head + u64(stamp_ms) + _ask_bytes(ask))
        return {"key": self.public, "stamp_ms": stamp_ms, "ask": dict(ask), "signature": signed}

    def possession(self, account: str, network: str, venue: int) -> str:
        """The signature by which it agrees to trade for an account."""
        return self.sign_bytes(_POSSESSION_TAG + raw(network) + u32(venue) + address_bytes(account) + raw(self.public))

    def __repr__(self) -> str:
        return f"TradingKey({self.public})"


def _ask_bytes(ask: Mapping[str, Any]) -> bytes:
    (name, of), = ask.items()
    match name:
        case "attach":
            silence = of["dead_man_ms"]
            ends = bytes([of["ends_orders"]])
            return b"\0" + u32(of["session"]) + ends + _option(None if silence is None else u64(silence))
        case "cancel":
            return b"\1" + OrderNumber.of(of["number"]).encode() + u32(of["keeps"])
        case "cancel_all":
            market, side = of["market"], of["side"]
            of_side = _option(None if side is None else _choice(_SIDES, side, "side"))
            return b"\2" + _option(None if market is None else u32(market)) + of_side
        case "replace":
            return b"\3" + OrderNumber.of(of["old"]).encode() + OrderNumber.of(of["new"]).encode()
        case "status":
            return b"\4" + OrderNumber.of(of["number"]).encode()
        case "fills":
            return b"\5" + u64(of["from"])
        case "watch":
            return b"\6"
        case _:
            raise AmountError(f"{name!r} is no request to a venue: see docs/venue-api.md")
