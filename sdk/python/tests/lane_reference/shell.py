"""The only module with sockets and a clock: it carries requests to shards and their replies to a collection."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import request, tls, wire
from .certificate import Certificate
from .committee import Committee
from .purse import Collection, SignedPayment

AGAIN = 0.5


@dataclass(frozen=True)
class Directory:
    """A committee and where its shards listen, as `/v1/lane` says."""

    committee: Committee
    addresses: list[list[tuple[str, int]]]
    tls: bool


def directory(lane: dict[str, Any], committee: Committee) -> Directory:
    """The shards of a home: each on the port that is its home modulo `home_ports` above its address."""

    def place(text: str) -> tuple[str, int]:
        host, _, port = text.rpartition(":")
        return host.strip("[]"), int(port) + committee.epoch % lane["home_ports"]

    addresses = [[place(shard) for shard in shards] for shards in lane["addresses"]]
    return Directory(committee, addresses, lane["tls"])


class Link:
    """A connection to one shard."""

    def __init__(self, address: tuple[str, int], key: bytes | None) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.secure = tls.Client(key, os.urandom(64)) if key else None
        self.data = b""
        try:
            while self.secure and not self.secure.is_open:
                self.flush()
                self._read()
            self.flush()
        except BaseException:
            self.socket.close()
            raise

    def flush(self) -> None:
        if self.secure:
            self.socket.sendall(self.secure.to_send())

    def send(self, data: bytes) -> None:
        if self.secure:
            self.secure.send(data)
            self.flush()
        else:
            self.socket.sendall(data)

    def _read(self) -> None:
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the shard has closed the connection")
        self.data += self.secure.receive(data) if self.secure else data

    def replies(self) -> list[wire.Reply]:
        self._read()
        frames, self.data = wire.split(self.data, wire.REPLY_BYTES_MAX)
        return [wire.parse_reply(body) for _, body in frames]


class Client:
    """Asks the shards of a home. Where one does not listen, the others are asked."""

    def __init__(self, where: Directory) -> None:
        self.where, self.number = where, 0
        self.links: dict[tuple[int, int], Link] = {}
        self.selector = selectors.DefaultSelector()

    def _link(self, member: int, shard: int) -> Link | None:
        if (member, shard) not in self.links:
            key = self.where.committee.key(member, shard) if self.where.tls else None
            try:
                link = Link(self.where.addresses[member][shard], key)
            except OSError:
                return None
            self.links[member, shard] = link
            self.selector.register(link.socket, selectors.EVENT_READ, (member, link))
        return self.links[member, shard]

    def _send(self, member: int, shard: int, data: bytes) -> None:
        self.number += 1
        link = self._link(member, shard)
        try:
            if link:
                link.send(wire.frame(self.number, data))
        except OSError:
            self._drop(member, shard)

    def _drop(self, member: int, shard: int) -> None:
        link = self.links.pop((member, shard))
        self.selector.unregister(link.socket)
        link.socket.close()

    def _replies(self, wait: float) -> Iterator[tuple[int, wire.Reply]]:
        for key, _ in self.selector.select(wait):
            member, link = key.data
            try:
                for reply in link.replies():
                    yield member, reply
            except OSError:
                self._drop(*next(place for place, known in self.links.items() if known is link))

    def collect(self, collection: Collection, data: bytes, patience: float = 300) -> Certificate:
        """Sends the same bytes until there is a certificate."""
        until, asked = time.monotonic() + patience, request.under(collection.scheme, data)
        while time.monotonic() < until:
            for member, shard in collection.to_ask():
                self._send(member, shard, asked)
            again = time.monotonic() + AGAIN
            while (wait := again - time.monotonic()) > 0:
                for member, reply in self._replies(wait):
                    found = collection.add(member, reply)
                    if found is not None:
                        return found
                if collection.is_hopeless():
                    raise RuntimeError(f"refused: {collection.refused}")
        raise TimeoutError(f"{len(collection.answers)} answers: the payment may still be confirmed")

    def confirm(self, payment: SignedPayment, scheme: int = 0) -> Certificate:
        """Makes a stored payment *fast*."""
        return self.collect(Collection(self.where.committee, 2, payment.payment.summary(), scheme), payment.request)

    def settle(self, payment: SignedPayment, certificate: Certificate, scheme: int = 0) -> Certificate:
        """Makes a fast payment *settled*."""
        summary = payment.payment.summary()
        asked = request.settle(summary, certificate)
        return self.collect(Collection(self.where.committee, 3, summary, scheme), asked)

    def close(self) -> None:
        for place in list(self.links):
            self._drop(*place)
        self.selector.close()
