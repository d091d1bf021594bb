"""What a trader knows of a node's venue: how it stands, its markets, who may sign its reports, and its clock.

**Evidence.** Each report of an execution is checked: signed by a report key that the ledger has for the venue, for
this network, incarnation, index and account. It is stored before the caller hears of the execution. Report keys and
markets are asked for again where one is missing: an operator may have changed, a market been listed.

Lots, ticks and decimals are the node's word, as amounts of assets are in `walras.client`: use a node that you trust.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from walras.client.calls import Session
from walras.client.errors import NotFoundError, OtherNetworkError, RefusedError
from walras.client.flow import Flow, decoded
from walras.client.proof import ProofError
from walras.client.venue import VenueReport
from walras.venue.journal import OrderJournal
from walras.venue.orders import OrderNumber, TradingKey, VenueScope
from walras.venue.reports import Checked, Execution, UnsignedReportError, VenueStatus
from walras.venue.terms import VenueTerms

__all__ = ["KnownVenue"]

T = TypeVar("T")
_STATUS_LASTS_S = 1.0


class KnownVenue:
    """The venue of a node, for a trading key."""

    def __init__(self, session: Session, key: TradingKey, journal: OrderJournal) -> None:
        self.session = session
        self.key = key
        self.journal = journal
        self._lock = threading.Lock()
        self._status: tuple[VenueStatus, float] | None = None
        self._incarnation: int | None = None
        self._terms: dict[int, VenueTerms] = {}
        self._owner: str | None = None
        self._report_keys: frozenset[str] = frozenset()
        self._ahead_ms = 0
        self._stamp_ms = 0

    def status(self) -> Flow[VenueStatus]:
        """How the venue stands now; on the expected network. Raises a `RefusedError` if the node runs none."""
        yield from self.session.limits()
        body = yield from self.session.get("/v1/venue", lambda body: body)
        if body["incarnation"] is None or body["height"] is None:
            why = body["why"] or f"it {body['standing']}"
            raise RefusedError(self.session.server, 503, "not_running", f"the venue takes no orders: {why}")
        status = VenueStatus.of(body)
        if status.network != self.session.network:
            raise OtherNetworkError(self.session.server, status.network, str(self.session.network))
        self.journal.begin(status.network, status.venue, self.key.public)
        with self._lock:
            if self._incarnation not in (None, status.incarnation):
                # Fees and report keys may be others.
                self._terms, self._report_keys = {}, frozenset()
            self._incarnation = status.incarnation
            self._status = (status, time.monotonic())
            self._ahead_ms = status.clock_ms - time.time_ns() // 1_000_000
        return status

    def now(self) -> Flow[VenueStatus]:
        """The status, at most a second old."""
        known = self._status
        if known is not None and time.monotonic() - known[1] < _STATUS_LASTS_S:
            return known[0]
        return (yield from self.status())

    def scope(self) -> Flow[VenueScope]:
        status = yield from self.now()
        return VenueScope(status.network, status.venue, status.incarnation)

    def markets(self) -> Flow[list[VenueTerms]]:
        """The venue's markets with their assets, as they are now."""
        assets = yield from self.session.assets()
        found = yield from self.session.venue_markets()
        terms = [VenueTerms(one, assets.numbered(one.base), assets.numbered(one.quote)) for one in found]
        self._terms = {one.number: one for one in terms}
        return terms

    def market(self, name: str | int, is_fresh: bool = False) -> Flow[VenueTerms]:
        """A market by name (``EUR/USD``), symbol (``M0``) or number; with `is_fresh` as it is now."""
        for is_again in (is_fresh, True):
            if is_again or not self._terms:
                yield from self.markets()
            for terms in self._terms.values():
                if name in (terms.name, terms.market.symbol, terms.number):
                    return terms
        there = ", ".join(terms.name for terms in self._terms.values())
        what = f"the venue has no market {name!r}; there are {there}"
        raise NotFoundError(self.session.server, 404, "no_market", what)

    def forget_status(self) -> None:
        """The venue is asked again: it begins anew, or a clock is wrong."""
        self._status = None

    def stamp_ms(self) -> int:
        """A moment by the venue's clock, each once."""
        with self._lock:
            self._stamp_ms = max(self._stamp_ms + 1, time.time_ns() // 1_000_000 + self._ahead_ms)
            return self._stamp_ms

    def key_record(self) -> Flow[Any]:
        """The trading key as the ledger has it. Raises a `NotFoundError` if nobody has authorised it."""
        venue = (yield from self.now()).venue
        return (yield from self.session.get(f"/v1/venues/{venue}/keys/{self.key.public}", lambda body: body))

    # Evidence.

    def prepare(self) -> Flow[None]:
        """Everything that reading a report needs is known, before an order is sent."""
        if self._owner is None:
            self._owner = str((yield from self.key_record())["account"]).lower()
        if not (self._report_keys and self._terms):
            yield from self._learn()

    def _learn(self) -> Flow[None]:
        yield from self.markets()
        body = yield from self.session.get(f"/v1/venues/{(yield from self.now()).venue}", lambda body: body)
        self._report_keys = frozenset(str(key).lower() for key in body["report_keys"])

    def reading(self, read: Callable[[Checked], T]) -> Flow[T]:
        """What `read` makes with something that reads executions."""
        yield from self.prepare()
        network = str(self.session.network)

        def checked(number: OrderNumber, body: Mapping[str, Any]) -> Execution:
            return self._execution(network, number, body)

        with suppress(KeyError, UnsignedReportError):
            return read(checked)
        yield from self._learn()
        return decoded(self.session.server, checked, read)

    def _execution(self, network: str, number: OrderNumber, body: Mapping[str, Any]) -> Execution:
        """An execution, of which the report is stored and checked."""
        index, evidence = int(body["index"]), str(body["report"])
        self.journal.saw(number.incarnation, index, evidence)
        try:
            report = VenueReport.read(evidence)
        except ProofError as error:
            raise UnsignedReportError(number, index, evidence, str(error)) from error
        if (report.incarnation, report.index, report.account) != (number.incarnation, index, self._owner):
            raise UnsignedReportError(number, index, evidence, "it is of another incarnation, fill or account")
        if report.key not in self._report_keys or not report.is_signed(network):
            raise UnsignedReportError(number, index, evidence, "no report key of the venue has signed it")
        terms = self._terms[int(body["market"])]
        lots, tick = int(body["lots"]), int(body["tick"])
        return Execution(
            number=number, index=index, market=terms.name, side=body["side"], amount=terms.amount(lots),
            price=terms.price(tick), fee=terms.quote.amount(int(body["fee"])), is_taker=bool(body["is_taker"]),
            report=report, evidence=evidence,
        )
