"""What a venue says of orders: reports, standings, executions. *Executed is not settled.*"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from walras.client.errors import ClientError
from walras.client.venue import VenueReport
from walras.venue.orders import OrderNumber, Side, VenueOrder
from walras.venue.terms import VenueTerms

__all__ = [
    "Execution",
    "ExecutionsPage",
    "FillFate",
    "OrderRefusedError",
    "OrderReport",
    "OrderStanding",
    "PlacedOrder",
    "UndecidedOrdersError",
    "UnsignedReportError",
    "VenueStatus",
]


class OrderRefusedError(ClientError):
    """The venue refused an order or a request about one. `code` is stable (docs/venue-api.md); `message` has the remedy
    or the next valid value. A refused order is final: the next one has another number."""

    def __init__(self, number: OrderNumber, code: str, message: str) -> None:
        super().__init__(f"the venue refuses order {number} ({code}): {message}")
        self.number = number
        self.code = code
        self.message = message


class UndecidedOrdersError(ClientError):
    """Nobody knows yet whether the venue took these orders. They are stored: `retry` sends the same bytes again,
    `order` asks for one, and `resume` decides all."""

    def __init__(self, server: str, numbers: Sequence[OrderNumber], why: str) -> None:
        named = ", ".join(map(str, numbers))
        super().__init__(
            f"orders {named} are undecided at {server} ({why}): `retry(number)` sends the same bytes again and places "
            "none twice; `resume()` asks for all and ends what never came"
        )
        self.server = server
        self.numbers = tuple(numbers)

    @property
    def leaves_doubt(self) -> bool:
        return True


class UnsignedReportError(ClientError):
    """The report of a fill is not signed by a report key of the venue, or is of something else. Take it as no fill,
    cancel, and collect: the venue is faulty. `report` has the bytes."""

    def __init__(self, number: OrderNumber, index: int, report: str, why: str) -> None:
        super().__init__(f"the report of fill {index} of order {number} is no evidence ({why}): take it as no fill")
        self.number = number
        self.index = index
        self.report = report


@dataclass(frozen=True, slots=True)
class VenueStatus:
    """How the node's venue stands."""

    standing: str
    """``runs``, ``waits``, ``failed`` or ``stopped``."""
    network: str
    venue: int
    incarnation: int
    day: int
    """The day of order numbers now."""
    clock_ms: int
    height: int
    """The last certified one that it knows."""
    paused: str | None
    """Why matching pauses, as a code."""
    fills: int
    """Of the incarnation."""
    settled: int

    @staticmethod
    def of(body: Mapping[str, Any]) -> VenueStatus:
        return VenueStatus(
            standing=str(body["standing"]),
            network=str(body["network"]),
            venue=int(body["venue"]),
            incarnation=int(body["incarnation"]),
            day=int(body["day"]),
            clock_ms=int(body["clock_ms"]),
            height=int(body["height"]),
            paused=body["paused"],
            fills=int(body["fills"]),
            settled=int(body["settled"]),
        )


@dataclass(frozen=True, slots=True)
class Execution:
    """The own side of a fill: executed, not settled yet."""

    number: OrderNumber
    index: int
    """Of the fill, in the venue's incarnation: it names it for ever."""
    market: str
    side: Side
    amount: Decimal
    price: Decimal
    fee: Decimal
    """In the quote asset; below zero it is paid to the trader."""
    is_taker: bool
    report: VenueReport
    """Signed by the venue, and checked."""
    evidence: str
    """Its bytes as hexadecimal digits: they convict a venue that settles another fill (``walras venue accuse``)."""

    @property
    def incarnation(self) -> int:
        return self.number.incarnation


Checked: TypeAlias = "Callable[[OrderNumber, Mapping[str, Any]], Execution]"
"""Reads an execution, and checks and keeps its report."""


@dataclass(frozen=True, slots=True)
class FillFate:
    """What the ledger did with a fill: ``applied``, or the rule that it broke."""

    index: int
    height: int
    fate: str

    @property
    def is_settled(self) -> bool:
        """Whether it moved units; otherwise it is bust."""
        return self.fate == "applied"


@dataclass(frozen=True, slots=True)
class OrderReport:
    """Something happened to an order."""

    number: OrderNumber
    kind: str
    """``accepted``, ``executed``, ``reduced``, ``ended``, ``refused``, ``overtaken``, ``settled`` or ``status``."""
    execution: Execution | None = None
    fate: FillFate | None = None
    lots: int | None = None
    """Open lots after it, or those that were left when it ended."""
    why: str | None = None
    """Why it ended, or the code of its refusal."""
    message: str | None = None
    """The sentence of the refusal."""
    standing: Mapping[str, Any] | None = None
    is_own_session: bool = True
    """On a stream: whether the order came through this session."""

    @staticmethod
    def of(body: Mapping[str, Any], checked: Checked, is_own_session: bool = True) -> OrderReport:
        number, kind = OrderNumber.of(body["number"]), str(body["type"])
        part = body.get(kind) or {}
        execution = checked(number, part) if kind == "executed" else None
        fate = FillFate(int(part["index"]), int(part["height"]), part["fate"]) if kind == "settled" else None
        why = part["code"] if kind == "refused" else part.get("why")
        standing = part if kind == "status" else None
        lots = part.get("left" if kind == "executed" else "lots")
        return OrderReport(number, kind, execution, fate, lots, why, part.get("message"), standing, is_own_session)

    @property
    def is_over(self) -> bool:
        """Whether nothing of the order is open, or can come later."""
        ended = self.standing is not None and self.standing["standing"] not in ("open", "unknown")
        return ended or self.kind in ("ended", "overtaken") or (self.kind == "executed" and self.lots == 0)

    def refusal(self) -> OrderRefusedError | None:
        """The error that it is, if it refuses."""
        if self.kind == "overtaken":
            return OrderRefusedError(self.number, "overtaken", "a cancel of the order came first")
        return OrderRefusedError(self.number, self.why or "", self.message or "") if self.kind == "refused" else None


@dataclass(frozen=True, slots=True)
class OrderStanding:
    """How an order stands, by the venue's definite answer."""

    number: OrderNumber
    standing: str
    """``open``, ``ended``, ``refused``, ``overtaken`` (its cancel came first), or ``unknown`` to the venue."""
    why: str | None
    """Why it ended, or the code of its refusal."""
    message: str | None
    order: VenueOrder | None
    """As it was signed; None of an order that this client's file does not have."""
    market: str | None
    side: Side | None
    price: Decimal | None
    amount: Decimal | None
    """As it was signed, in the base asset."""
    open: Decimal | None
    """What is left, as are the next three; without the order, None."""
    executed: Decimal | None
    """Executed, and waiting for its settle."""
    settled: Decimal | None
    bust: Decimal | None
    orders_ahead: int | None
    """Of the same price, that came earlier; None unless it is open."""

    @property
    def is_open(self) -> bool:
        return self.standing == "open"

    @staticmethod
    def of(
        number: OrderNumber, body: Mapping[str, Any], position: Mapping[str, Any] | None,
        order: VenueOrder | None, terms: VenueTerms | None,
    ) -> OrderStanding:
        def amount(name: str) -> Decimal | None:
            lots = body.get(name)
            return None if lots is None or terms is None else terms.amount(lots)

        known = order is not None and terms is not None
        return OrderStanding(
            number=number,
            standing=str(body["standing"]),
            why=body.get("why") or body.get("code"),
            message=body.get("message"),
            order=order,
            market=terms.name if terms else None,
            side=order.side if order else None,
            price=terms.price(order.tick) if order is not None and terms is not None else None,
            amount=terms.amount(order.lots) if order is not None and terms is not None else None,
            **{name: amount(name) if known else None for name in ("open", "executed", "settled", "bust")},
            orders_ahead=None if position is None else int(position["orders_ahead"]),
        )


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """What became of an order at once."""

    number: OrderNumber
    order: VenueOrder
    market: str
    price: Decimal
    amount: Decimal
    state: str
    """``open``, ``ended`` or ``refused``."""
    left: Decimal
    """What is open."""
    executions: tuple[Execution, ...]
    """At once. After a lost answer they are not told again: `executions` has all."""
    refusal: OrderRefusedError | None

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    @property
    def executed(self) -> Decimal:
        """What has traded at once, in the base asset."""
        return sum((one.amount for one in self.executions), Decimal(0))


@dataclass(frozen=True, slots=True)
class ExecutionsPage:
    """Own executions from an index on."""

    executions: tuple[Execution, ...]
    next: int
    """Where the next page begins; at the end it stays."""
    settled: int
    """How many fills of the incarnation are settled or bust."""
