"""The own reports of a venue's stream as pure logic: messages in, reports out, and what was missed asked for over
HTTP.

*Upon a connection*, it is attached as a session of the key. *Upon `attached`*, executions from the last one on are
asked for, so that each comes once and in order, also after a lost connection. *Upon a report*, it is handed out; an
execution that came before is dropped. A gap in the numbers of messages, or silence, breaks the connection, and
another is made.

What happened to orders while no connection was there, but for executions, is no event: `orders` and `order` say it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from walras.client.errors import ForeignAnswerError, StreamError
from walras.client.flow import Flow
from walras.client.stream import PAUSES_S, Disconnected
from walras.venue.reports import OrderReport
from walras.venue.trading import Trading

__all__ = ["VenueFeed"]


class VenueFeed:
    """The reports of a key; `from_index` is the first execution that is handed out, by default the next one."""

    def __init__(self, trading: Trading, session: int, from_index: int | None) -> None:
        self._trading = trading
        self._session = session
        self._next = from_index
        self._incarnation: int | None = None
        self._messages = 0
        self._tries = 0

    def hello(self) -> Flow[str]:
        """The first message of a connection."""
        status = yield from self._trading.known.status()
        if self._next is None or self._incarnation not in (None, status.incarnation):
            # Indices of another incarnation begin again.
            self._next = status.fills if self._next is None else 0
        self._incarnation, self._messages = status.incarnation, 0
        terms = {"session": self._session, "ends_orders": False, "dead_man_ms": None}
        request = yield from self._trading.signed({"attach": terms})
        return json.dumps({"id": "attach", "attach": request})

    def receive(self, text: str) -> Flow[list[OrderReport]]:
        """What a message tells. Raises a `StreamError` where the venue refuses the session."""
        server = self._trading.session.server
        try:
            message: Any = json.loads(text)
            kind, number = message["type"], message["sequence"]
        except (ValueError, KeyError, TypeError) as error:
            raise ForeignAnswerError(server, f"a message of its stream cannot be read: {error}") from error
        if number != self._messages:
            raise ForeignAnswerError(server, f"message {self._messages} of its stream is missing")
        self._messages, self._tries = self._messages + 1, 0
        if kind == "error":
            raise StreamError(server, message["error"]["code"], message["error"]["message"])
        if kind == "attached":
            return (yield from self._missed())
        if kind != "report":
            return []
        own = bool(message["own_session"])
        report = yield from self._trading.known.reading(lambda read: OrderReport.of(message["report"], read, own))
        if report.is_over:
            self._trading.journal.ended([report.number])
        return [report] if self._is_new(report) else []

    def _missed(self) -> Flow[list[OrderReport]]:
        found: list[OrderReport] = []
        while True:
            page = yield from self._trading.executions(self._next or 0)
            told = [OrderReport(one.number, "executed", execution=one, is_own_session=False) for one in page.executions]
            found += told
            if page.next == self._next:
                return found
            self._next = page.next

    def _is_new(self, report: OrderReport) -> bool:
        if report.execution is None:
            return True
        index, first = report.execution.index, self._next or 0
        self._next = max(first, index + 1)
        return index >= first

    def broken(self, reason: str, random: Callable[[], float]) -> Disconnected:
        """The connection broke: another one is made after a pause that grows."""
        least, most = PAUSES_S
        pause_s = min(most, least * 2**self._tries) * (1 - random() / 4)
        self._tries += 1
        return Disconnected(reason, pause_s)
