"""The numbers and orders of a trading key, stored before they are sent.

*Upon taking numbers*, they are above every one that the file names. *Upon sending*, a line with the signed orders is
synced first. *Upon an answer* that ends an order, a line says so; it is not synced. *Upon an execution*, its signed
report is synced into ``FILE.reports``, a line of hexadecimal each as the bridge writes them (``walras venue accuse``
takes one).

Properties: a number names one order, also after a crash, since orders leave only once their line is durable. What may
be open is in the file. The file stays short: it is written anew when what has ended is most of it.

A crash leaves at most a cut last line, of an order that was never sent; the next start drops it. The file belongs to
one process at a time, and to one key, venue and network.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from walras.client.errors import StoreError
from walras.venue.orders import OrderNumber

__all__ = ["OrderJournal", "Sent"]

_FORM = "walras venue orders"
_ANEW_BYTES = 1 << 20
_SEEN_MAX = 1 << 16
_OPEN_MANY = 1 << 10
"""A key has at most so many orders open: with more, some have ended unheard."""


class Sent:
    """What was sent together: single orders, or a list of them."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = dict(body)
        """As it was signed: ``{"orders": […]}`` or ``{"list": {…}}``."""

    @property
    def is_list(self) -> bool:
        return "list" in self.body

    @property
    def orders(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body["list"]["orders"] if self.is_list else self.body["orders"]
        return found

    @property
    def numbers(self) -> list[OrderNumber]:
        return [OrderNumber.of(order["number"]) for order in self.orders]


class OrderJournal:
    """A file, or memory without one: then numbers are safe as long as the process lives."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._lock = threading.RLock()
        self._of: dict[str, Any] | None = None
        self._last: OrderNumber | None = None
        self._open: dict[OrderNumber, Sent] = {}
        self._seen: dict[tuple[int, int], None] = {}
        self._file: int | None = None
        self._reports: int | None = None
        self._guard: int | None = None
        self._bytes = self._anew = 0

    def begin(self, network: str, venue: int, key: str) -> None:
        """Opens the file for a key, a venue and a network, once."""
        of = {"form": _FORM, "version": 1, "network": network, "venue": venue, "key": key}
        with self._lock:
            if self._of is not None:
                if self._of != of:
                    raise self._fault(f"is of {self._of}, not of {of}: give each key, venue and network a file")
                return
            if self._path is not None:
                self._open_file(of)
            self._of = of

    def _open_file(self, of: dict[str, Any]) -> None:
        assert self._path is not None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._guard = os.open(f"{self._path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise self._fault("is in use by another process: give each program a trading key of its own") from None
        except OSError as error:
            self.close()
            raise self._fault(f"cannot be locked, so nothing is sent: {error.strerror}") from error
        try:
            self._read(of)
            self._write_anew(of)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._reports = os.open(f"{self._path}.reports", flags, 0o600)
        except OSError as error:
            self.close()
            raise self._fault(f"cannot be opened, so nothing is sent: {error.strerror}") from error
        except StoreError:
            self.close()
            raise

    def _read(self, of: Mapping[str, Any]) -> None:
        assert self._path is not None
        if not self._path.exists():
            return
        if self._path.stat().st_mode & 0o077:
            raise self._fault("can be read by other users: run chmod 600 on it first")
        lines = self._path.read_bytes().split(b"\n")
        # What a crash cut was never sent.
        lines.pop()
        try:
            head, *told = [json.loads(line) for line in lines]
            if head != of:
                raise self._fault(f"is of {head}, not of {dict(of)}: give each key, venue and network a file")
            for line in told:
                self._learn(line)
        except (ValueError, KeyError, TypeError) as error:
            raise self._fault(
                f"is damaged ({error}): restore it, or authorise another key; with a fresh file numbers may come again"
            ) from error

    def _learn(self, line: Mapping[str, Any]) -> None:
        if "last" in line:
            self._took(OrderNumber.read(line["last"]))
        elif "ended" in line:
            for text in line["ended"]:
                self._open.pop(OrderNumber.read(text), None)
        else:
            self._add(Sent(line))

    def _took(self, number: OrderNumber) -> None:
        self._last = number if self._last is None else max(self._last, number)

    def _add(self, sent: Sent) -> None:
        for number in sent.numbers:
            self._took(number)
            self._open[number] = sent

    def _write_anew(self, of: Mapping[str, Any]) -> None:
        """Writes what is still needed into a new file, which takes the place of the old one."""
        assert self._path is not None
        told: list[Mapping[str, Any]] = [of]
        if self._last is not None:
            told.append({"last": str(self._last)})
        groups = {id(sent): sent for sent in self._open.values()}
        told += [sent.body for sent in groups.values()]
        ended = [str(one) for sent in groups.values() for one in sent.numbers if one not in self._open]
        told += [{"ended": ended}] if ended else []
        content = b"".join(_line(one) for one in told)
        unfinished = Path(f"{self._path}.unfinished")
        made = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        _write_whole(made, content)
        os.fsync(made)
        unfinished.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        if self._file is not None:
            os.close(self._file)
        self._file, self._bytes = made, len(content)
        self._anew = max(_ANEW_BYTES, 4 * len(content))

    def take(self, incarnation: int, day: int, first: int, count: int) -> list[OrderNumber]:
        """Numbers that were never taken, ascending; `first` is the lowest reference of a new day or incarnation. They
        count as used once `sends` has stored their orders."""
        with self._lock:
            last = self._last
            if last is not None and last >= OrderNumber(incarnation, day, 0):
                if last.incarnation != incarnation:
                    raise self._fault(f"has a number of incarnation {last.incarnation}; the venue is at {incarnation}")
                day, first = last.day, last.reference + 1
            numbers = [OrderNumber(incarnation, day, first + at) for at in range(count)]
            self._took(numbers[-1])
            return numbers

    def sends(self, sent: Sent) -> None:
        """Stores orders that are about to be sent."""
        with self._lock:
            self._append(_line(sent.body), durable=True)
            self._add(sent)

    def ended(self, numbers: Iterable[OrderNumber]) -> None:
        """Forgets orders of which nothing is open."""
        with self._lock:
            known = [number for number in numbers if self._open.pop(number, None) is not None]
            if known:
                self._append(_line({"ended": [str(number) for number in known]}), durable=False)

    def expire(self, height: int) -> None:
        """Forgets orders whose life is over at a height: nobody asked how they ended."""
        with self._lock:
            if len(self._open) > _OPEN_MANY:
                sent = {id(one): one for one in self._open.values()}.values()
                over = (order for one in sent for order in one.orders if int(order["expiry"]) < height)
                self.ended([OrderNumber.of(order["number"]) for order in over])

    def open(self) -> dict[OrderNumber, Sent]:
        """Orders that may be open, by number, each with what it was sent with."""
        with self._lock:
            return dict(sorted(self._open.items()))

    def saw(self, incarnation: int, index: int, report: str) -> bool:
        """Keeps the signed report of a fill; false if it was kept before by this process."""
        with self._lock:
            if (incarnation, index) in self._seen:
                return False
            if self._reports is not None:
                try:
                    _write_whole(self._reports, f"{report}\n".encode())
                    os.fsync(self._reports)
                except OSError as error:
                    raise self._fault(f"and its reports cannot be written: {error.strerror}") from error
            # Only what is kept counts as kept.
            self._seen[incarnation, index] = None
            if len(self._seen) > _SEEN_MAX:
                del self._seen[next(iter(self._seen))]
            return True

    def _append(self, line: bytes, durable: bool) -> None:
        if self._path is None:
            return
        if self._file is None or self._of is None:
            raise self._fault("is closed: nothing was sent")
        try:
            if self._bytes > self._anew:
                self._write_anew(self._of)
            _write_whole(self._file, line)
            self._bytes += len(line)
            if durable:
                os.fsync(self._file)
        except OSError as error:
            # What was written of the line is left behind by a new file.
            self._anew = -1
            raise self._fault(f"cannot be written, so nothing is sent: {error.strerror}") from error

    def close(self) -> None:
        """Closes the files and lets others use them."""
        with self._lock:
            for file in (self._file, self._reports, self._guard):
                if file is not None:
                    os.close(file)
            self._file = self._reports = self._guard = None

    def _fault(self, what: str) -> StoreError:
        return StoreError(f"{self._path or 'the journal of orders'} {what}")


def _line(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


def _write_whole(file: int, content: Sequence[int] | bytes) -> None:
    rest = memoryview(bytes(content))
    while rest:
        rest = rest[os.write(file, rest) :]
