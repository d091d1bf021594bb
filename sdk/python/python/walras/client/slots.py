"""Session keys: an account adds, lists and revokes them; a key keeps its offers alive, and leaves its stop at the door.
Who trades without a session key leaves a cancel of its offers.

**Safe.** A key is added once, however often it is asked for: the account's list and the stored transactions are looked
at first. A timer raises only what is alive: a slot that was stopped, by its owner or because a connection ended, stays
stopped until its program says `alive` itself.

**Cancel on disconnect.** A `Leaving` is one connection that leaves a signed stop, or a cancel of named offers, with the
node, which submits it when the connection ends. A cancel follows the account: it is signed anew when other offers rest
than it names. The number of the stop is taken like that of any transaction. Once the stop is withdrawn, the next
transaction takes its number, with a later end: what was left counts no more then, wherever it still lies. After a lost
connection nothing of this client takes the number, so that the stop counts, until another stop is held: then offers of
the new connection are not ended by the old one, which a node may have taken for open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from walras.client.amounts import Number
from walras.client.calls import Session, place_of
from walras.client.encoding import CANCELS_MAX, Operation, Signed
from walras.client.errors import (
    AmountError,
    ClientError,
    ForeignAnswerError,
    SessionKeyError,
    StreamError,
    TransactionRefusedError,
)
from walras.client.fate import LASTS_MAX
from walras.client.flow import Flow
from walras.client.keys import Ed25519Key
from walras.client.models import Account, Fate, SessionKey
from walras.client.operations import AuthorizeSession, Cancel, RevokeSession, SessionAlive, SessionLimit
from walras.client.sending import Sender

__all__ = ["HEIGHTS", "Leaving", "Slots"]

HEIGHTS = 100_000
"""Heights for which a key is added, unless the caller says otherwise."""
_TRIES = 16
_RENEWED = LASTS_MAX // 2
"""A stop that is left is renewed so many heights before its end."""
_WINDOW_LEFT = 24
"""It is renewed when this client's numbers are so far above it, of the 64 that are taken above the highest."""
_PAUSES_S = (0.02, 30.0)


class Slots:
    """The session keys of an account."""

    def __init__(self, session: Session, sender: Sender) -> None:
        self.session = session
        self.sender = sender

    def slot(self, slot: int | None) -> int:
        """A slot, by default the client's own."""
        if slot is None and self.sender.slot == 0:
            raise ValueError("name the slot: this client has the account's own key")
        return self.sender.slot if slot is None else slot

    def all(self, address: str) -> Flow[tuple[SessionKey, ...]]:
        return (yield from self.session.account(address)).sessions

    def own(self) -> Flow[SessionKey]:
        """The session key that signs here, as the chain has it."""
        return self.sender.own_session((yield from self.session.account(self.sender.account)))

    def add(
        self, key: Ed25519Key, caps: Mapping[str, Number], scope: str, lasts: int, alive: int | None
    ) -> Flow[SessionKey]:
        assets, limits = (yield from self.session.assets()), (yield from self.session.limits())
        if limits.fee_asset not in caps:
            raise AmountError(f"caps: without one for {limits.fee_asset} the key cannot pay fees, and so can do nothing")
        most = sorted((assets[symbol].number, assets[symbol].units(units)) for symbol, units in caps.items())
        limits_of = tuple(SessionLimit(*one) for one in most)
        for _ in range(_TRIES):
            account = yield from self.session.account(self.sender.account)
            if (found := _of_key(account, key)) is not None:
                return found
            if (begun := self._begun(key)) is not None:
                yield from self._sent(self.sender.retry(begun.id, True))
                continue
            ends = account.height + lasts
            first = ends if alive is None else min(account.height + alive, ends)
            slot = account.session_slots + 1
            agreed = key.agree(limits.network, self.sender.account, slot)
            operation = AuthorizeSession(slot, key.public, scope, ends, first, limits_of, agreed)
            yield from self._sent(self.sender.send(operation, True, None))
        raise ClientError(f"others take every slot of {self.sender.account} first; nothing was added. Try again later")

    def _begun(self, key: Ed25519Key) -> Signed | None:
        """A stored transaction that adds this key: its result was not seen."""
        head, named = b"\x0f\0", bytes.fromhex(key.public[2:])
        ours = (one for one in self.sender.store.all() if self.sender.signs(one))
        return next((one for one in ours if one.body[44:46] == head and one.body[50:82] == named), None)

    def _sent(self, sending: Flow[Fate]) -> Flow[None]:
        """Sends what adds a key. Another one may have taken its slot meanwhile, which never returns."""
        try:
            yield from sending
        except TransactionRefusedError as error:
            if error.code != "session_slot":
                raise
            self.sender.store.forget(error.id)

    def revoke(self, slot: int, wait: bool) -> Flow[Fate]:
        return (yield from self.sender.send(RevokeSession(slot), wait, None))

    def alive(self, blocks: int, slot: int | None, wait: bool) -> Flow[Fate]:
        own = self.slot(slot)
        height = (yield from self.session.status()).height
        ends = {one.slot: one.ends for one in (yield from self.all(self.sender.account))}
        through = min(height + blocks, ends.get(own, height + blocks))
        return (yield from self.sender.send(SessionAlive(own, through), wait, None))

    def stop(self, slot: int | None, wait: bool) -> Flow[Fate]:
        own = self.slot(slot)
        if own == self.sender.slot:
            self.sender.stopped()
        return (yield from self.sender.send(SessionAlive(own, 0), wait, None))

    def beat(self, blocks: int) -> Flow[float]:
        """Raises the timer of the own slot where less than half of `blocks` is left. Returns the seconds until the next
        look. Raises a `SessionKeyError` where the slot is not alive any more."""
        account = yield from self.session.account(self.sender.account)
        own, slot = self.sender.own_session(account), self.sender.slot
        if own.status != "live":
            raise SessionKeyError(
                f"slot {slot} of {self.sender.account} is {own.status} at height {account.height}: its offers have "
                "ended, and this timer does not bring a stopped slot back; say `alive` to trade again"
            )
        through = min(account.height + blocks, own.ends)
        if own.alive - account.height <= blocks // 2 and through > own.alive:
            try:
                yield from self.sender.send(SessionAlive(slot, through), True, None)
            except TransactionRefusedError as error:
                # Another heartbeat has raised it further meanwhile, or a stop came first: the next look says which.
                if error.code not in ("session_through", "session_lapsed"):
                    raise
        interval = (yield from self.session.limits()).block_interval_ms / 1000
        return min(max(blocks * interval / 4, _PAUSES_S[0]), _PAUSES_S[1])


def _of_key(account: Account, key: Ed25519Key) -> SessionKey | None:
    return next((one for one in account.sessions if one.key == key.public and one.status != "ended"), None)


class Leaving:
    """A connection of the stream that leaves a stop of a slot with the node, or where `slot` is None a cancel of the key's
    own resting offers: messages in, messages out."""

    def __init__(self, slots: Slots, slot: int | None, login: Callable[[str, str], Flow[dict[str, str]]]) -> None:
        self._slots = slots
        self._slot = slot
        self._login = login
        self._signed: Signed | None = None
        """What was sent last to be left."""
        self._before: Signed | None = None
        """What it renews: the node holds this one until it says that it holds the other one."""
        self.left: str | None = None
        """The id of what the node holds."""
        self.is_withdrawn = False
        self.beyond = 0
        """Resting offers beyond those that one cancel names: they stay."""
        self._listed: tuple[int, ...] | None = None
        """The offers that the last cancel names."""
        self._is_stale = False
        """Something happened to the account since."""
        self._is_awaited = False
        """The node has not answered the last request."""
        self._is_unwanted = False
        self._height = 0

    @property
    def is_held(self) -> bool:
        """Whether the node holds what ends the offers, or none rest."""
        return self.left is not None or self._listed == ()

    def opened(self) -> str:
        """The first message."""
        return json.dumps({"challenge": True})

    def withdrawal(self) -> str:
        """The message that takes back what was left."""
        self._is_unwanted = True
        return json.dumps({"withdraw": True})

    def receive(self, text: str) -> Flow[str | None]:
        """What the node is told upon a message. Raises a `ClientError` where the connection guards nothing any more."""
        try:
            message = json.loads(text)
            return (yield from self._receive(message, str(message["type"])))
        except (ValueError, KeyError, TypeError) as error:
            raise ForeignAnswerError(self._server, f"a message of its stream cannot be read: {error}") from error

    @property
    def _server(self) -> str:
        return self._slots.session.server

    def _receive(self, message: Any, kind: str) -> Flow[str | None]:
        if kind == "challenge":
            return json.dumps({"login": (yield from self._login(str(message["nonce"]), str(message["network"])))})
        if kind == "login":
            follows = {} if self._slot is not None else {"subscribe": [f"account:{self._slots.sender.account}"]}
            return json.dumps({**follows, **((yield from self._leave()) or {})})
        if kind == "error":
            raise StreamError(self._server, str(message["code"]), str(message["message"]))
        if kind == "on_disconnect":
            return _written((yield from self._told(message)))
        if kind == "heartbeat":
            self._height = int(message["height"])
            self._slots.session.saw(self._height)
        if kind in ("account", "snapshot"):
            self._is_stale = True
        return None

    def look(self) -> Flow[str | None]:
        """What replaces a transaction that is old, or a cancel of other offers than rest; asked for every tenth of a second,
        since fast senders use many numbers."""
        if self._is_old():
            return _written((yield from self._leave()))
        if self._is_stale and not self._is_awaited:
            before, operation = self._listed, (yield from self._operation())
            if self._listed != before:
                return _written((yield from self._leave_one(operation)))
        return None

    def _told(self, message: Any) -> Flow[dict[str, Any] | None]:
        """The node holds what was left, or does not any more."""
        if message["id"] is not None:
            self.left = str(message["id"])
            if self._signed is not None and self.left == self._signed.id:
                self._is_awaited = False
            self._let_go(self._before)
            self._before = None
            self._let_lost_go()
            return None
        code = str(message["code"])
        self.left = None
        if code == "withdrawn":
            self.is_withdrawn = self._is_unwanted
            self._is_awaited = False
            self._let_all_go()
            return None
        if code == "taken_over":
            raise StreamError(self._server, code, str(message["message"]))
        return (yield from self._leave())

    def _is_old(self) -> bool:
        signed = self._signed
        if signed is None or self.left != signed.id:
            return False
        return signed.until - self._height <= _RENEWED or self._slots.sender.numbers.is_far_above(signed.sequence, _WINDOW_LEFT)

    def _operation(self) -> Flow[Operation | None]:
        """What ends the offers; None where there are none."""
        if self._slot is not None:
            return SessionAlive(self._slot, 0)
        self._is_stale = False
        session, sender = self._slots.session, self._slots.sender
        assets = yield from session.assets()
        own = [one for one in (yield from session.offers(sender.account)) if one.slot == sender.slot]
        own.sort(key=lambda one: one.id, reverse=True)
        self.beyond = max(0, len(own) - CANCELS_MAX)
        self._listed = tuple(one.id for one in own[:CANCELS_MAX])
        return Cancel(tuple(place_of(one, assets) for one in own[:CANCELS_MAX])) if own else None

    def _leave(self) -> Flow[dict[str, Any] | None]:
        return (yield from self._leave_one((yield from self._operation())))

    def _leave_one(self, operation: Operation | None) -> Flow[dict[str, Any] | None]:
        self._is_awaited = operation is not None or self._signed is not None
        if operation is None:
            return None if self._signed is None else {"withdraw": True}
        self._let_go(self._before)
        self._before = self._signed
        self._signed = yield from self._slots.sender.hold(operation, LASTS_MAX)
        return {"on_disconnect": "0x" + self._signed.encoded.hex()}

    def ended(self) -> None:
        """The connection is over: what was withdrawn counts no more, what was not may be submitted."""
        if self.is_withdrawn:
            self._let_all_go()
        held = [one for one in (self._before, self._signed) if one is not None]
        self._before = self._signed = None
        self._slots.sender.lost_stops += held

    def _let_all_go(self) -> None:
        for one in (self._before, self._signed):
            self._let_go(one)
        self._before = self._signed = None

    def _let_lost_go(self) -> None:
        """What earlier connections have left to end the same."""
        sender, signed = self._slots.sender, self._signed
        for lost in [one for one in sender.lost_stops if signed is not None and _guarded(one) == _guarded(signed)]:
            sender.lost_stops.remove(lost)
            self._let_go(lost)

    def _let_go(self, signed: Signed | None) -> None:
        if signed is not None:
            self._slots.sender.numbers.release(signed.sequence, signed.until)


def _written(message: dict[str, Any] | None) -> str | None:
    return None if message is None else json.dumps(message)


def _guarded(signed: Signed) -> bytes:
    """What a transaction that was left ends: the offers of a slot, or named ones."""
    operation = signed.body[44:]
    return operation if operation[:1] == b"\x0f" else operation[:1]
