"""Trading at a venue's continuous markets as flows: what is asked, signed, stored and sent, without I/O of its own.

**Order of events.** Orders get numbers, are signed and stored (`walras.venue.journal`), and then sent. While the
answer is missing the same orders are sent again: the venue gives the first answer to a number that it knows, so
nothing is placed twice. What is still unknown at the end of the patience is an `UndecidedOrdersError`.

**Many at once.** Orders that are placed together are signed once, as a list. While the ledger counts no lists yet
(``lists_to_come``) each is signed by itself, with the same fields and number.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

from walras.client.amounts import Number
from walras.client.errors import BusyError, ClientError, ForeignAnswerError, NoAnswerError, RefusedError
from walras.client.flow import Ask, Flow, Pause, read
from walras.venue.journal import Sent
from walras.venue.known import KnownVenue
from walras.venue.orders import (
    LIST_ORDERS_MAX,
    Life,
    ListEntry,
    OrderNumber,
    SelfTrade,
    Side,
    VenueOrder,
    VenueScope,
)
from walras.venue.reports import (
    ExecutionsPage,
    OrderRefusedError,
    OrderReport,
    OrderStanding,
    PlacedOrder,
    UndecidedOrdersError,
)
from walras.venue.terms import VenueTerms

__all__ = ["LASTS", "Numbered", "Trading", "VenueQuote"]

LASTS = 4_096
"""Heights that an order lives, unless the caller says otherwise."""
_PAUSES_S = (0.05, 1.0)
_LISTS_AGAIN_S = 60.0
_RECENT_MAX = 1 << 14
_DAY_MS = 86_400_000
_PASSING = (
    "begins_again", "busy", "not_running", "stamp", "too_many_requests", "too_much_was_false", "disk_full",
    "needs_rules",
)
"""Codes of answers to one order or request that was not performed now and may be later."""

Numbered: TypeAlias = "OrderNumber | PlacedOrder | OrderStanding"
"""What names an order."""


@dataclass(frozen=True, slots=True)
class VenueQuote:
    """An order of a ladder."""

    side: Side
    amount: Number
    """In the base asset; of a replacement the total, what has executed of the old one included."""
    price: Number
    replaces: Numbered | None = None
    """The open order in whose place it goes."""
    life: Life = "rests"


def _number(of: Numbered) -> OrderNumber:
    return of if isinstance(of, OrderNumber) else of.number


class Trading:
    """A trading key at the venue of a node."""

    def __init__(self, known: KnownVenue, patience: float) -> None:
        self.known = known
        self.session = known.session
        self._key = known.key
        self.journal = known.journal
        self._patience = patience
        self._no_lists_until = 0.0
        self._lock = threading.Lock()
        self._recent: dict[OrderNumber, VenueOrder] = {}
        """Orders of this process, also ended ones."""

    # Orders.

    def place(
        self, market: str | int, quotes: Sequence[VenueQuote], self_trade: SelfTrade, lasts: int, until_ms: int | None,
        fee_cap_ppm: int | None,
    ) -> Flow[list[PlacedOrder]]:
        """Places orders, of several under one signature. What becomes of each is in its `PlacedOrder`."""
        if not 1 <= len(quotes) <= LIST_ORDERS_MAX:
            raise ValueError(f"1 to {LIST_ORDERS_MAX} orders are placed at once, not {len(quotes)}: split them")
        yield from self.known.prepare()
        terms, status = (yield from self.known.market(market)), (yield from self.known.now())
        cap = terms.fee_cap() if fee_cap_ppm is None else fee_cap_ppm
        # Everything is checked before a number is used.
        sizes = [(terms.tick(quote.price), terms.lots(quote.amount)) for quote in quotes]
        first = status.clock_ms % _DAY_MS
        self.journal.expire(status.height)
        numbers = self.journal.take(status.incarnation, status.day, first, len(quotes))

        def entry(quote: VenueQuote, number: OrderNumber, size: tuple[int, int]) -> ListEntry:
            tick, lots = size
            order = VenueOrder(
                market=terms.number, number=number, side=quote.side, tick=tick, lots=lots, expiry=status.height + lasts,
                fee_cap_ppm=cap, floor=OrderNumber(status.incarnation, 0, 0), life=quote.life, self_trade=self_trade,
                until_ms=until_ms,
            )
            return ListEntry(order, None if quote.replaces is None else _number(quote.replaces))

        entries = [entry(*of) for of in zip(quotes, numbers, sizes, strict=True)]
        return (yield from self._place(entries, VenueScope(status.network, status.venue, status.incarnation)))

    def place_one(
        self, market: str | int, quote: VenueQuote, self_trade: SelfTrade, lasts: int, until_ms: int | None,
        fee_cap_ppm: int | None,
    ) -> Flow[PlacedOrder]:
        """Places an order. Raises an `OrderRefusedError` if the venue refuses it."""
        placed, = yield from self.place(market, [quote], self_trade, lasts, until_ms, fee_cap_ppm)
        return _taken(placed)

    def _place(self, entries: list[ListEntry], scope: VenueScope) -> Flow[list[PlacedOrder]]:
        # A list names what it replaces for ever; the request of a single order counts for a moment.
        is_many = len(entries) > 1 or any(entry.replaces for entry in entries)
        is_list = is_many and time.monotonic() >= self._no_lists_until
        sent = self._list(entries, scope) if is_list else self._singles(entries, scope)
        self.journal.sends(sent)
        self._remember(entry.order for entry in entries)
        results, is_retry = yield from self._results(sent)
        if is_list and any(_refused_as(result) == "lists_to_come" for result in results):
            # The venue remembers nothing of them: the same orders are signed one by one.
            self._no_lists_until = time.monotonic() + _LISTS_AGAIN_S
            sent = self._singles(entries, scope)
            self.journal.sends(sent)
            results, is_retry = yield from self._results(sent)
        return (yield from self._placed(sent, results, is_retry))

    def _list(self, entries: Sequence[ListEntry], scope: VenueScope) -> Sent:
        return Sent({"list": self._key.order_list(entries, scope)})

    def _singles(self, entries: Sequence[ListEntry], scope: VenueScope) -> Sent:
        # The request to replace is signed when it is sent: it counts for a moment.
        bodies = [
            self._key.order(entry.order, scope) | {"replaces": entry.replaces and asdict(entry.replaces)}
            for entry in entries
        ]
        return Sent({"orders": bodies})

    def _results(self, sent: Sent) -> Flow[tuple[list[Any], bool]]:
        """The answers to orders, each sent until it is there; and whether they were sent more than once."""
        until, pause_s, is_retry = time.monotonic() + self._patience, _PAUSES_S[0], False
        while True:
            try:
                results = yield from self._answered(sent)
                passing = next((one["error"] for one in results if one.get("error", {}).get("code") in _PASSING), None)
                if passing is None:
                    return results, is_retry
                why = str(passing["message"])
            except (BusyError, ForeignAnswerError, NoAnswerError) as error:
                # What is no answer of a venue may come from something in between.
                why = str(error)
            except RefusedError as error:
                if not error.leaves_doubt:
                    if not is_retry:
                        self.journal.ended(sent.numbers)
                        raise
                    raise UndecidedOrdersError(self.session.server, sent.numbers, str(error)) from error
                why = str(error)
            if time.monotonic() >= until:
                raise UndecidedOrdersError(self.session.server, sent.numbers, why)
            yield Pause(pause_s)
            pause_s, is_retry = min(2 * pause_s, _PAUSES_S[1]), True
            self.known.forget_status()

    def _answered(self, sent: Sent) -> Flow[list[Any]]:
        """An answer to each order."""
        body = yield from self._post(*(yield from self._payload(sent)))
        results = body.get("results", []) if isinstance(body, dict) else []
        if len(results) != len(sent.orders) or not all("reports" in one or "error" in one for one in results):
            raise ForeignAnswerError(self.session.server, "it does not answer each order")
        return list(results)

    def _payload(self, sent: Sent) -> Flow[tuple[str, dict[str, Any]]]:
        if sent.is_list:
            return "/v1/venue/lists", {"lists": [sent.body["list"]]}
        orders = []
        for order in sent.orders:
            old = order.get("replaces")
            ask = {"replace": {"old": old, "new": order["number"]}}
            request = None if old is None else (yield from self.signed(ask))
            orders.append({name: order[name] for name in order if name != "replaces"} | (
                {} if request is None else {"replaces": request}
            ))
        return "/v1/venue/orders", {"orders": orders}

    def _placed(self, sent: Sent, results: Sequence[Any], is_retry: bool) -> Flow[list[PlacedOrder]]:
        placed = []
        for body, result in zip(sent.orders, results, strict=True):
            order = VenueOrder.of(body)
            terms = yield from self.known.market(order.market)
            if "error" in result:
                refusal = OrderRefusedError(order.number, result["error"]["code"], result["error"]["message"])
                made = _placed_order(order, terms, [], refusal)
            else:
                told = yield from self._read(result["reports"])
                self.journal.ended(one.number for one in told if one.is_over)
                made = _placed_order(order, terms, told, None)
            if made.refusal is None and body["replaces"] is not None:
                self.journal.ended([OrderNumber.of(body["replaces"])])
            if is_retry and made.is_open:
                # The first answer says nothing of what came after it.
                now = yield from self.order(order.number)
                state, left = ("open" if now.is_open else "ended"), now.open or Decimal(0)
                made = replace(made, state=state, left=left if now.is_open else Decimal(0))
            placed.append(made)
        self.journal.ended(one.number for one in placed if not one.is_open)
        return placed

    def replace(self, of: Numbered, amount: Number, price: Number, lasts: int) -> Flow[PlacedOrder]:
        """Puts an order of the file into the place of another one, with the rules of that one."""
        number = _number(of)
        yield from self.known.now()
        order = self._order_of(of)
        if order is None:
            raise ClientError(f"order {number} is not stored as open: place a new order, or ask for it with `order`")
        quote = VenueQuote(order.side, amount, price, number, order.life)
        terms = (order.self_trade, lasts, order.until_ms, order.fee_cap_ppm)
        return (yield from self.place_one(order.market, quote, *terms))

    def retry(self, of: Numbered) -> Flow[list[PlacedOrder]]:
        """Sends an order again, with those that it was sent with: the same bytes, of which none is placed twice."""
        yield from self.known.now()
        sent = self.journal.open().get(_number(of))
        if sent is None:
            raise ClientError(f"order {_number(of)} is not stored as open: ask for it with `order`")
        results, _ = yield from self._results(sent)
        return (yield from self._placed(sent, results, True))

    def order(self, of: Numbered) -> Flow[OrderStanding]:
        """The definite answer about an order."""
        number = _number(of)
        body = yield from self._request({"status": {"number": asdict(number)}})
        told = body["reports"][0]
        if told["type"] != "status" and (refusal := (yield from self._read([told]))[0].refusal()):
            raise refusal
        standing = told["status"]
        order = self._order_of(of)
        if standing["standing"] not in ("open", "unknown"):
            self.journal.ended([number])
        terms = (yield from self.known.market(order.market)) if order else None
        return OrderStanding.of(number, standing, body.get("position"), order, terms)

    def _order_of(self, of: Numbered) -> VenueOrder | None:
        number = _number(of)
        if not isinstance(of, OrderNumber) and of.order is not None:
            return of.order
        if number in self._recent:
            return self._recent[number]
        sent = self.journal.open().get(number)
        bodies = sent.orders if sent else []
        return next((VenueOrder.of(one) for one in bodies if OrderNumber.of(one["number"]) == number), None)

    def _remember(self, orders: Iterable[VenueOrder]) -> None:
        with self._lock:
            self._recent.update((order.number, order) for order in orders)
            while len(self._recent) > _RECENT_MAX:
                del self._recent[next(iter(self._recent))]

    def orders(self) -> Flow[list[OrderStanding]]:
        """The open orders of the file, each as the venue says, without those that it does not know: see `resume`."""
        yield from self.known.now()
        found = []
        for number in self.journal.open():
            standing = yield from self.order(number)
            found += [standing] if standing.is_open else []
        return found

    def resume(self) -> Flow[list[OrderStanding]]:
        """What a program does that starts again: the open orders of the file. One that never came is cancelled by its
        number, so that it cannot come later."""
        yield from self.known.now()
        found = []
        for number in self.journal.open():
            standing = yield from self.order(number)
            if standing.standing == "unknown":
                yield from self._request({"cancel": {"number": asdict(number), "keeps": 0}})
                standing = yield from self.order(number)
                self.journal.ended([] if standing.is_open else [number])
            found += [standing] if standing.is_open else []
        return found

    def cancel(self, of: Numbered, keep: Number | None) -> Flow[OrderReport]:
        """Cancels an order, or all of it but a total of `keep`. An order that has ended says so."""
        number, keeps = _number(of), 0
        yield from self.known.now()
        if keep is not None:
            order = self._order_of(of)
            if order is None:
                raise ClientError(f"order {number} is not in the file: what is kept of it cannot be counted in lots")
            keeps = (yield from self.known.market(order.market)).lots(keep)
        reports = yield from self._reports({"cancel": {"number": asdict(number), "keeps": keeps}})
        mine = next((one for one in reports if one.number == number), None)
        if mine is None:
            raise ClientError(f"the venue answered nothing of order {number}: ask for it with `order`")
        if mine.kind != "overtaken" and (refusal := mine.refusal()):
            raise refusal
        return mine

    def cancel_all(self, market: str | int | None, side: Side | None) -> Flow[list[OrderReport]]:
        """Cancels all open orders of the key, or those of a market or a side: also those that are in no file."""
        number = None if market is None else (yield from self.known.market(market)).number
        reports = yield from self._reports({"cancel_all": {"market": number, "side": side}})
        for refusal in (one.refusal() for one in reports):
            if refusal:
                raise refusal
        return reports

    def executions(self, from_index: int) -> Flow[ExecutionsPage]:
        """Own executions of the incarnation from an index on, each with the same report as when it happened."""
        body = yield from self._request({"fills": {"from": from_index}})
        told = yield from self.known.reading(
            lambda checked: tuple(checked(OrderNumber.of(one["number"]), one) for one in body["fills"])
        )
        return ExecutionsPage(told, int(body["next"]), int(body["settled"]))

    # Requests.

    def signed(self, ask: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        """A request for this moment. Each has a stamp of its own."""
        scope = yield from self.known.scope()
        return self._key.request(ask, self.known.stamp_ms(), scope)

    def _request(self, ask: Mapping[str, Any]) -> Flow[Any]:
        """The answer to a request. All of them may be performed twice, so they are sent until one is there."""
        until, pause_s = time.monotonic() + self._patience, _PAUSES_S[0]
        while True:
            try:
                return (yield from self._post("/v1/venue/requests", (yield from self.signed(ask))))
            except RefusedError as error:
                if error.code not in _PASSING or time.monotonic() >= until:
                    raise
            except (ForeignAnswerError, NoAnswerError):
                if time.monotonic() >= until:
                    raise
            yield Pause(pause_s)
            pause_s = min(2 * pause_s, _PAUSES_S[1])
            self.known.forget_status()

    def _read(self, reports: Sequence[Any]) -> Flow[list[OrderReport]]:
        return (yield from self.known.reading(lambda checked: [OrderReport.of(one, checked) for one in reports]))

    def _reports(self, ask: Mapping[str, Any]) -> Flow[list[OrderReport]]:
        reports = yield from self._read((yield from self._request(ask))["reports"])
        self.journal.ended(one.number for one in reports if one.is_over)
        return reports

    def _post(self, path: str, body: Mapping[str, Any]) -> Flow[Any]:
        content = json.dumps(body, separators=(",", ":")).encode()
        answer = yield Ask("POST", path, body=content, wait_s=30.0, kind="application/json")
        return read(self.session.server, answer)

def _taken(placed: PlacedOrder) -> PlacedOrder:
    if placed.refusal:
        raise placed.refusal
    return placed


def _refused_as(result: Mapping[str, Any]) -> str | None:
    """The code with which the venue's root refused an order."""
    reports = result.get("reports", [])
    return next((str(one["refused"]["code"]) for one in reports if one["type"] == "refused"), None)


def _placed_order(
    order: VenueOrder, terms: VenueTerms, told: Sequence[OrderReport], refusal: OrderRefusedError | None
) -> PlacedOrder:
    mine = [one for one in told if one.number == order.number]
    refusal = refusal or next((why for one in mine if (why := one.refusal())), None)
    executions = tuple(one.execution for one in mine if one.execution)
    accepted = next((one.lots or 0 for one in mine if one.kind == "accepted"), 0)
    left = terms.amount(accepted) - sum((one.amount for one in executions), Decimal(0))
    is_over = refusal is not None or left <= 0 or any(one.kind == "ended" for one in mine)
    state = "refused" if refusal else "ended" if is_over else "open"
    return PlacedOrder(
        order.number, order, terms.name, terms.price(order.tick), terms.amount(order.lots), state,
        Decimal(0) if is_over else left, executions, refusal,
    )
