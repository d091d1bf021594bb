"""What an account did: its orders, fills and transfers as a node's index has them, and the definite answer about an order."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from walras.client.amounts import Asset, Assets
from walras.client.models import OrderTerms
from walras.client.references import PaymentReference

__all__ = ["OrderFate", "PastFill", "PastOrder", "Transfer"]


def _known(assets: Assets, symbol: str) -> Asset | None:
    """A refused order may name an asset that there is not."""
    return assets[symbol] if symbol in assets else None


_STATUSES = ("pending", "refused", "resting", "ended", "void")


def _status(status: str) -> str:
    """A status that a later node may tell is not taken for one of these."""
    if status not in _STATUSES:
        raise ValueError(f"it tells the status {status!r} of an order; this client knows {', '.join(_STATUSES)}")
    return status


@dataclass(frozen=True, slots=True)
class PastFill:
    """An execution of an offer or an exact order in a batch."""

    height: int
    time_ms: int
    offer: int
    sell: str
    buy: str
    sold: Decimal
    bought: Decimal
    """Net of commission."""
    left: Decimal
    returned: Decimal

    @staticmethod
    def of(body: Any, assets: Assets) -> PastFill:
        sell, buy = assets[body["sell"]], assets[body["buy"]]
        return PastFill(
            height=int(body["height"]),
            time_ms=int(body["time_ms"]),
            offer=int(body["offer"]),
            sell=sell.symbol,
            buy=buy.symbol,
            sold=sell.amount(int(body["sold"])),
            bought=buy.amount(int(body["bought"])),
            left=sell.amount(int(body["left"])),
            returned=sell.amount(int(body["returned"])),
        )


@dataclass(frozen=True, slots=True)
class PastOrder:
    """An order in a block, and how its offer stands."""

    height: int
    time_ms: int
    id: str
    """The transaction."""
    sequence: int
    """Also the number of the offer."""
    until: int
    """The last height at which it may count."""
    sell: str
    buy: str
    limit: Decimal
    """Units bought per unit sold."""
    price: Decimal | None
    """The same in whole assets; None where an asset is unknown."""
    amount: Decimal | None
    life: str
    client: str | None
    status: str
    """``refused``, ``resting``, ``ended`` or ``void``."""
    why: str | None
    left: Decimal | None
    sold: Decimal | None = None
    """In all of its fills; None where an asset is unknown, or the node is of an earlier version."""
    bought: Decimal | None = None
    """Likewise; None also where there are too many fills for the answer."""
    exact_side: Literal["buy", "sell"] | None = None
    """Of an order for an exact amount which of the two is exact; `limit` is the least rate that it means."""
    exact_units: Decimal | None = None
    """That amount, of the asset bought or sold."""
    exact_bound: Decimal | None = None
    """The most of the asset sold, or the least of the asset bought, in all."""
    asked: OrderTerms | None = None
    """What it asks for, as it was placed; None if it names assets that there are not, or no amount."""
    sealed_by: str | None = None
    """The envelope that held it, if one did."""

    @staticmethod
    def of(body: Any, assets: Assets) -> PastOrder:
        sell, buy = _known(assets, body["sell"]), _known(assets, body["buy"])
        limit = Decimal(body["limit"])
        exact = body.get("exact")
        own, other = (buy, sell) if exact and exact["side"] == "buy" else (sell, buy)
        return PastOrder(
            exact_side=exact["side"] if exact else None,
            exact_units=own.amount(int(exact["units"])) if exact and own else None,
            exact_bound=other.amount(int(exact["bound"])) if exact and other else None,
            height=int(body["height"]),
            time_ms=int(body["time_ms"]),
            id=body["id"],
            sequence=int(body["sequence"]),
            until=int(body["until"]),
            sell=body["sell"],
            buy=body["buy"],
            limit=limit,
            price=limit.scaleb(sell.decimals - buy.decimals) if sell and buy else None,
            amount=sell.amount(int(body["amount"])) if sell else None,
            life=body["life"],
            client=body["client"],
            status=_status(body["status"]),
            why=body["why"],
            left=sell.amount(int(body["left"])) if sell else None,
            sold=sell.amount(int(body["sold"])) if sell and "sold" in body else None,
            bought=buy.amount(int(body["bought"])) if buy and body.get("bought") is not None else None,
            asked=OrderTerms.of(body.get("asked"), assets),
            sealed_by=body.get("sealed_by"),
        )


@dataclass(frozen=True, slots=True)
class Transfer:
    """Units that left or reached an account by a native operation."""

    height: int
    time_ms: int
    id: str
    asset: str
    amount: Decimal
    is_received: bool
    kind: str
    """``payment``, ``issue``, ``burn``, ``stake``, ``lane`` or ``venue``."""
    other: str | None
    """The other account."""
    reference: PaymentReference | None = None
    """What for, if its sender said so; nobody has checked it."""

    @staticmethod
    def of(body: Any, assets: Assets) -> Transfer:
        said = body.get("reference")
        amount = assets[body["asset"]].amount(int(body["amount"]))
        return Transfer(
            height=int(body["height"]),
            time_ms=int(body["time_ms"]),
            id=body["id"],
            asset=body["asset"],
            amount=amount,
            is_received=body["direction"] == "in",
            kind=body["kind"],
            other=body["with"],
            reference=PaymentReference(said["kind"], said["value"]) if said else None,
        )


@dataclass(frozen=True, slots=True)
class OrderFate:
    """The definite answer about an order."""

    status: str
    """``pending`` and ``refused`` (it may count until `until`), ``resting``, ``ended``, or ``void``: it never counts."""
    until: int
    why: str | None
    id: str
    sequence: int
    order: PastOrder | None
    """None while it is in no block."""
    fills: tuple[PastFill, ...]
    """Newest first, at most a thousand."""
    sold: Decimal | None
    bought: Decimal | None
    """None where `fills` are not all, or it is in no block."""
    returned: Decimal | None
    known_from: int
    """The first height that the node's index has."""
    height: int = 0
    """The last one."""

    @staticmethod
    def of(body: Any, assets: Assets) -> OrderFate:
        order = PastOrder.of(body["order"], assets) if body["order"] else None
        sell = _known(assets, order.sell) if order else None
        buy = _known(assets, order.buy) if order else None
        return OrderFate(
            status=_status(body["status"]),
            until=int(body["until"]),
            why=body["why"],
            id=body["id"],
            sequence=int(body["sequence"]),
            order=order,
            fills=tuple(PastFill.of(one, assets) for one in body["fills"]),
            sold=sell.amount(int(body["sold"])) if sell else None,
            bought=buy.amount(int(body["bought"])) if buy and body["bought"] is not None else None,
            returned=sell.amount(int(body["returned"])) if sell else None,
            known_from=int(body["known_from"]),
            height=int(body["height"]),
        )


@dataclass(frozen=True, slots=True)
class PendingOrder:
    """An order that the node took and that is in no block yet."""

    id: str
    sequence: int
    until: int


@dataclass(frozen=True, slots=True)
class OwnOrders:
    """An account's own orders on the stream: with `is_snapshot` the newest hundred, else those that changed."""

    account: str
    height: int
    is_snapshot: bool
    orders: tuple[PastOrder, ...]
    fills: tuple[PastFill, ...]
    """Newest first."""
    pending: tuple[PendingOrder, ...]
    """All that the node took and no block contains."""

    @staticmethod
    def of(body: Any, assets: Assets) -> OwnOrders:
        return OwnOrders(
            account=body["account"],
            height=int(body["height"]),
            is_snapshot=body["type"] == "snapshot",
            orders=tuple(PastOrder.of(one, assets) for one in body["orders"]),
            fills=tuple(PastFill.of(one, assets) for one in body["fills"]),
            pending=tuple(
                PendingOrder(one["id"], int(one["sequence"]), int(one["until"])) for one in body["pending"]
            ),
        )
