"""The only module of the purse with sockets: it carries requests to shards, and their replies to a question.

No shard is waited for alone: connections are made, and bytes move, whenever a socket is ready.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any

from cryptography.exceptions import InvalidTag

from walras.purse.errors import LaneError
from walras.purse.lane import tls, wire
from walras.purse.lane.collect import Asking
from walras.purse.lane.committee import Committee
from walras.purse.lane.layout import Refused

__all__ = ["Shards"]

AGAIN_S = 0.5
"""After this time the same bytes are sent again to members that have not answered."""
CONNECT_S = 5.0
"""Longest time until a connection is open."""
_BROKEN = (OSError, Refused, InvalidTag, ValueError)
"""What a connection with somebody else than the shard ends with."""


class Link:
    """A connection to one shard, which proves its key before anything is sent."""

    def __init__(self, address: tuple[str, int], key: bytes | None) -> None:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.connect_ex(address)
        self._secure = tls.Client(key, os.urandom(64)) if key else None
        self._out = self._secure.to_send() if self._secure else b""
        self._waiting, self._data = b"", b""
        self._is_connected, self._until = False, time.monotonic() + CONNECT_S

    @property
    def wants(self) -> int:
        writes = not self._is_connected or self._out or (self._waiting and self._is_open)
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)

    @property
    def is_late(self) -> bool:
        return not (self._is_connected and self._is_open) and time.monotonic() > self._until

    @property
    def _is_open(self) -> bool:
        return self._secure is None or self._secure.is_open

    def send(self, data: bytes) -> None:
        self._waiting += data

    def move(self, events: int) -> list[tuple[int, wire.Reply]]:
        """Writes and reads what is possible now; the replies that are whole, with their numbers."""
        if fault := self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(fault, os.strerror(fault))
        if events & selectors.EVENT_READ:
            self._read()
        if self._is_open and self._waiting:
            if self._secure:
                self._secure.send(self._waiting)
            else:
                self._out += self._waiting
            self._waiting = b""
        if self._secure:
            self._out += self._secure.to_send()
        if events & selectors.EVENT_WRITE:
            self._is_connected = True
            self._out = self._out[self.socket.send(self._out) if self._out else 0 :]
        frames, self._data = wire.split(self._data, wire.REPLY_BYTES_MAX)
        return [(number, wire.parse_reply(body)) for number, body in frames]

    def _read(self) -> None:
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("it has closed the connection")
        self._data += self._secure.receive(data) if self._secure else data


class Shards:
    """Asks the shards of a home. Where one does not answer, the others are asked."""

    def __init__(self, committee: Committee, places: list[list[tuple[str, int]]], is_secure: bool) -> None:
        self.committee, self._places, self._is_secure = committee, places, is_secure
        self._links: dict[tuple[int, int], Link] = {}
        self._selector = selectors.DefaultSelector()
        self._number = 0

    def _link(self, member: int, shard: int) -> Link:
        if (member, shard) not in self._links:
            shards = self._places[member] if member < len(self._places) else []
            if shard >= len(shards):
                raise LookupError(f"the node knows no address of its shard {shard}")
            link = Link(shards[shard], self.committee.key(member, shard) if self._is_secure else None)
            self._links[member, shard] = link
            self._selector.register(link.socket, link.wants, (member, shard))
        return self._links[member, shard]

    def _send(self, asking: Asking, member: int, shard: int, data: bytes) -> int:
        self._number = (self._number + 1) % (1 << 32)
        try:
            self._link(member, shard).send(wire.frame(self._number, data))
        except (LookupError, *_BROKEN) as error:
            asking.excuses[member] = str(error)
        return self._number

    def _drop(self, place: tuple[int, int]) -> None:
        link = self._links.pop(place, None)
        if link is not None:
            self._selector.unregister(link.socket)
            link.socket.close()

    def _moved(self, asking: Asking, wait: float) -> Iterator[tuple[int, int, wire.Reply]]:
        """Lets bytes move for a moment; replies with their members and numbers."""
        for place, link in list(self._links.items()):
            if link.is_late:
                asking.excuses[place[0]] = "it does not open the connection"
                self._drop(place)
            else:
                self._selector.modify(link.socket, link.wants, place)
        for key, events in self._selector.select(min(wait, AGAIN_S)):
            place = key.data
            try:
                for number, reply in self._links[place].move(events):
                    yield place[0], number, reply
            except _BROKEN as error:
                asking.excuses[place[0]] = str(error) or type(error).__name__
                self._drop(place)

    def ask(self, asking: Asking, data: bytes, patience: float) -> Any:
        """Sends the same bytes until the answers decide. Raises a `LaneError`."""
        until, numbers = time.monotonic() + patience, set()
        while True:
            for member, shard in asking.to_ask():
                numbers.add(self._send(asking, member, shard, data))
            again = min(time.monotonic() + AGAIN_S, until)
            while (wait := again - time.monotonic()) > 0:
                for member, number, reply in self._moved(asking, wait):
                    # A refusal is not signed: it counts only as an answer to this question.
                    if isinstance(reply, wire.Refusal) and number not in numbers:
                        continue
                    found = asking.add(member, reply)
                    if found is not None:
                        return found
                for member in asking.liars:
                    self._drop((member, self.committee.shard(member, asking.owner)))
                asking.liars.clear()
                if asking.is_hopeless():
                    raise LaneError(f"refused by {len(asking.refused)} members: {_listed(asking.refused)}")
            if time.monotonic() >= until:
                needed = self.committee.quorums.certificate
                also = _listed(asking.refused | asking.excuses)
                raise LaneError(
                    f"{len(asking.answered())} of {needed} needed answers in time{also and f' ({also})'}: try again, "
                    "and do not pay this money to anyone else meanwhile"
                )

    def close(self) -> None:
        for place in list(self._links):
            self._drop(place)
        self._selector.close()


def _listed(reasons: dict[int, str]) -> str:
    """Reasons, each once with its members."""
    members: dict[str, list[str]] = {}
    for member, reason in sorted(reasons.items()):
        members.setdefault(reason, []).append(str(member))
    return "; ".join(f"member {', '.join(of)}: {reason}" for reason, of in members.items())
