"""Sends transactions so that none is lost and none counts twice.

**Order of events.** A transaction gets a sequence number and is signed and stored, then it is sent. Whatever happens
next, only the same bytes are sent again. The operation is signed anew, under another number, only when the first
transaction can never count: another one has its number.

**Numbers.** Threads and tasks take numbers from one `Numbers`; clients and processes exclude one another by the store's
lock, and the store remembers the highest number that was taken. Senders of one account without a common store may take
the same number: the slower one signs again, unless both sign the same operation with the same end, which is one
transaction. Ends differ by chance, so that this is rare; a common store excludes it.

**Session keys.** A session key numbers in its slot, which has a window of its own: its owner, other keys and it never
take one another's numbers, whatever they share. A slot's own *stop* voids its lower numbers: what was sent before and
comes after it is void, and is not signed anew under a number above the stop.

**Refusals.** Whoever has seen a refused transaction may send it again until it ends. So it stays stored, its number is
used next with a later end (of two bodies with one number the one that ends later counts), and the same operation, asked
for again, is sent as the same bytes.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from walras.client.calls import Session
from walras.client.encoding import SEAL_BYTES, Body, Operation, Signed
from walras.client.errors import (
    BusyError,
    ClientError,
    NumbersError,
    OtherNetworkError,
    RefusedError,
    SentBeforeError,
    SessionKeyError,
    StoreError,
    TransactionRefusedError,
    UndecidedError,
    VoidError,
)
from walras.client.fate import fate_of, fate_of_number, told
from walras.client.flow import Ask, Flow, Pause, post, read
from walras.client.keys import Key
from walras.client.models import Account, Fate, Limits, SessionKey
from walras.client.operations import Cancel
from walras.client.pending import Store

__all__ = ["NumberGoneError", "Numbers", "Sender"]

Make: TypeAlias = "Callable[[Limits, int, int], Signed]"
"""Makes a transaction of a number and an end."""

_PAUSES_S = (0.01, 0.5)
_LAG_PATIENCE_S = 30.0
_RENUMBERED_MAX = 100
_STORED_MANY = 128
"""With so many stored transactions, those that are final are looked for and removed."""
_NUMBER_GONE = ("sequence_used", "sequence_too_old")
_NUMBER_REFUSED = (*_NUMBER_GONE, "sequence_conflict", "duplicate")
_WAITS = ("sequence_conflict", "sequence_too_far", "over_quota", "duplicate")
"""Refusals that pass: another pending transaction has the number, or the block was full of such operations."""


class NumberGoneError(Exception):
    """Another transaction has the number: this one can never count."""


class Numbers:
    """The sequence numbers of an account, handed out once each."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._lock = threading.Lock()
        self._highest: int | None = None
        self._next = 1
        self._free: dict[int, int] = {}
        """Numbers of refused transactions, with the last block in which those may count."""

    @property
    def is_known(self) -> bool:
        return self._highest is not None

    @property
    def last(self) -> int:
        """The highest number that the ledger would take now."""
        return (self._highest or 0) + self._window

    def learn(self, highest: int, next_free: int) -> None:
        """What a node says: the highest committed number, and a free one."""
        with self._lock:
            self._highest = max(self._highest or 0, highest)
            self._next = max(self._next, next_free)
            lowest = self._highest - self._window
            self._free = {number: ended for number, ended in self._free.items() if number > lowest}

    def take(self, stored: int) -> tuple[int, int] | None:
        """A number and the least end of its transaction; None while the window is full. `stored` is the highest number
        of a stored transaction."""
        with self._lock:
            if self._free:
                number = min(self._free)
                return number, self._free.pop(number) + 1
            number = max(self._next, stored + 1)
            if number > self.last:
                return None
            self._next = number + 1
            return number, 0

    def is_far_above(self, number: int, steps: int) -> bool:
        """Whether numbers were handed out `steps` above this one."""
        with self._lock:
            return self._next - number > steps

    def release(self, number: int, ended: int) -> None:
        """Gives back the number of a transaction without effect, which may count up to block `ended`."""
        with self._lock:
            self._free[number] = max(ended, self._free.get(number, 0))


@dataclass
class Sender:
    """An account, its key and its store."""

    session: Session
    account: str
    key: Key
    store: Store
    patience: float
    lasts: int
    _doubtful: set[str] | None = None
    """Stored transactions that no call attends to; None before the store was looked at."""
    _refused: set[str] = field(default_factory=set)
    """Those of them that were refused here, as their callers know."""
    _claims: threading.Lock = field(default_factory=threading.Lock)
    numbers: Numbers = field(default_factory=lambda: Numbers(64))
    slot: int = 0
    """The slot of the session key that signs; 0 of the account's own key."""
    lost_stops: list[Signed] = field(default_factory=list)
    """Stops that were left with a node whose connection is lost: it submits them."""
    _stops: int = 0
    """How often this sender stopped its slot."""

    @property
    def _numbered(self) -> str:
        """What the store calls these numbers."""
        return f"{self.account}.{self.slot}" if self.slot else self.account

    def signs(self, signed: Signed) -> bool:
        """Whether a stored transaction has one of this sender's numbers."""
        return signed.account == self.account and signed.slot == self.slot

    def stopped(self) -> None:
        """What was sent before this counts no more, and is not signed anew."""
        self._stops += 1

    def send(
        self,
        operation: Operation,
        wait: bool,
        reference: str | None,
        kept: Callable[[Signed], None] | None = None,
        is_form: Callable[[bytes], bool] | None = None,
    ) -> Flow[Fate]:
        """Signs an operation and sends it; with `wait` until its block. `kept` is told of each transaction that is
        signed for it, before that is sent. `is_form` says which encoded operations mean the same: if one of them was sent
        for the reference, or without a result, that one counts."""
        stops = self._stops
        for _ in range(_RENUMBERED_MAX):
            signed, is_new = yield from self.sign(operation, reference, is_form)
            if kept is not None:
                kept(signed)
            try:
                return (yield from self.deliver(signed, wait, is_new))
            except NumberGoneError:
                self.store.forget(signed.id)
                if stops != self._stops:
                    why = f"slot {self.slot} was stopped after it was sent"
                    raise VoidError(self.session.server, signed.id, why) from None
            except VoidError:
                if reference is None:
                    raise
            if reference is not None:
                # Another call may have signed anew for this reference meanwhile: that record stays.
                with self.store.reserved():
                    self.store.release(reference, signed.id)
        raise NumbersError("others that use this account take every number first; nothing was done. Try again later")

    def hold(self, operation: Operation, lasts: int) -> Flow[Signed]:
        """Signs an operation that another one may send later, under a number that nothing else takes. It is not stored:
        this client does not send it."""
        return (yield from self._numbered_and_signed(self._plain(operation), None, lasts, is_stored=False))[0]

    def number(self) -> Flow[Signed]:
        """A number and an end that nothing else takes, on a transaction that nobody has signed."""

        def unsigned(limits: Limits, sequence: int, until: int) -> Signed:
            head = Body(limits.chain, self.account, sequence, until, Cancel(())).encode()
            return Signed(head + bytes(SEAL_BYTES))

        return (yield from self._numbered_and_signed(unsigned, None, self.lasts, is_stored=False))[0]

    def made(
        self, make: Make, reference: str | None, lasts: int, is_form: Callable[[bytes], bool]
    ) -> Flow[tuple[Signed, bool]]:
        """As `sign`, of a transaction that is made for its number."""
        return (yield from self._numbered_and_signed(make, reference, lasts, is_form, is_stored=True))

    def _plain(self, operation: Operation) -> Make:
        def sign(limits: Limits, sequence: int, until: int) -> Signed:
            return self.key.sign(Body(limits.chain, self.account, sequence, until, operation), limits.network)

        return sign

    def sign(
        self, operation: Operation, reference: str | None, is_form: Callable[[bytes], bool] | None = None
    ) -> Flow[tuple[Signed, bool]]:
        """Signs an operation under a free number and stores it; or finds the one that the reference names. Says
        whether it is new."""
        encoded = operation.encode()
        is_form = is_form or (lambda other: other == encoded)
        plain = self._plain(operation)
        return (yield from self._numbered_and_signed(plain, reference, self.lasts, is_form, is_stored=True, repeats=True))

    def _numbered_and_signed(
        self,
        make: Make,
        reference: str | None,
        lasts: int,
        is_form: Callable[[bytes], bool] = lambda other: False,
        *,
        is_stored: bool,
        repeats: bool = False,
    ) -> Flow[tuple[Signed, bool]]:
        limits = yield from self.session.limits()
        self.numbers._window = limits.sequence_window
        self._check_network(limits.network)
        if not self.numbers.is_known:
            yield from self._clear_torn()
            yield from self._wait_until_caught_up()
            yield from self._learn()
        begun, is_fresh = time.monotonic(), False
        if repeats and reference is None and (before := (yield from self._sent_before(is_form))) is not None:
            return before, False
        height = yield from self.session.height()
        while True:
            with self.store.reserved():
                if reference is not None and (known := self.store.referenced(reference)) is not None:
                    if not is_form(known.body[44:]) or not self.signs(known):
                        raise StoreError(f"the reference {reference!r} stands for another operation: choose a new one")
                    return known, False
                stored = [signed for signed in self.store.all() if self.signs(signed)]
                above = max([self.store.highest(self._numbered), *(signed.sequence for signed in stored)])
                if is_fresh and not stored:
                    # Nothing is pending: numbers up there were taken by transactions without effect.
                    above = min(above, self.numbers.last - 1)
                taken = self.numbers.take(above)
                if taken is not None:
                    sequence, least = taken
                    until = max(height + lasts - secrets.randbelow(lasts // 4 + 1), least)
                    signed = make(limits, sequence, until)
                    if is_stored:
                        self.store.keep(signed, reference)
                    self.store.took(self._numbered, sequence)
                    break
            if time.monotonic() - begun > self.patience:
                raise NumbersError(
                    f"all {limits.sequence_window} numbers above the highest committed one are pending; nothing was "
                    "done. Wait for blocks, or use another account"
                )
            if is_fresh:
                yield Pause(0.05)
            yield from self._learn()
            height, is_fresh = (yield from self.session.height()), True
        if len(stored) > _STORED_MANY:
            yield from self.settle()
        # Whoever knows the reference may have sent the bytes before this call does.
        return signed, reference is None

    def _clear_torn(self) -> Flow[None]:
        """Removes what is not stored whole, which nothing can send again, once the node says what became of it."""
        for id in self.store.torn():
            fate = yield from fate_of(self.session, id, None)
            if fate.state == "pending":
                # Its number is taken, and its operation may be this one.
                raise StoreError(f"transaction {id} is pending, and its file is torn: ask `fate({id!r})`, then go on")
            self.store.forget(id)

    def _sent_before(self, is_form: Callable[[bytes], bool]) -> Flow[Signed | None]:
        """A stored transaction of the same operation that was refused: its bytes are sent again, since anybody may send
        them. Refuses an operation that was sent by a call or a process that has not told its result."""
        with self._claims:
            if self._doubtful is None:
                self._doubtful = {signed.id for signed in self.store.all()}
            doubtful = list(self._doubtful)
        for id in doubtful:
            signed = self.store.get(id)
            if signed is None or not is_form(signed.body[44:]) or not self.signs(signed):
                continue
            fate = yield from fate_of(self.session, id, signed)
            with self._claims:
                if id not in self._doubtful:
                    # Another call has taken it.
                    continue
                is_refused = fate.state == "refused" or (fate.state == "unknown" and id in self._refused)
                if is_refused or fate.is_final:
                    self._doubtful.discard(id)
            if is_refused:
                return signed
            if fate.state == "void":
                self._let_go(signed)
                continue
            if fate.state == "executed":
                # Who called has not been told: it is told now, once.
                self.store.forget(id)
            raise SentBeforeError(self.session.server, id, signed.until, fate.height)
        return None

    def untold(self, is_form: Callable[[bytes], bool]) -> list[Signed]:
        """Stored transactions of this form whose results no call has told."""
        with self._claims:
            if self._doubtful is None:
                self._doubtful = {signed.id for signed in self.store.all()}
            stored = [self.store.get(id) for id in self._doubtful]
        return [one for one in stored if one is not None and is_form(one.body[44:]) and self.signs(one)]

    def look_up(self, signed: Signed) -> Flow[Fate]:
        """The fate of a stored transaction; one that is final is no longer stored."""
        fate = yield from fate_of(self.session, signed.id, signed)
        if fate.is_final:
            with self._claims:
                self._doubtful = (self._doubtful or set()) - {signed.id}
            self.store.forget(signed.id)
        return fate

    def _check_network(self, network: str) -> None:
        """A key keeps to the network that it first signed for, until its owner names another."""
        known = self.store.network()
        if known not in (None, network) and not self.session.is_network_named:
            raise OtherNetworkError(self.session.server, network, str(known))
        if known != network:
            self.store.sign_for(network)

    def _learn(self) -> Flow[None]:
        account = yield from self.session.account(self.account)
        if self.slot == 0:
            self.numbers.learn(account.highest, account.next)
            return
        own = self.own_session(account)
        self.numbers.learn(own.highest, own.next)

    def own_session(self, account: Account) -> SessionKey:
        """The session key that signs, as an account has it. Raises a `SessionKeyError` if it has another one there."""
        found = next((one for one in account.sessions if one.slot == self.slot), None)
        if found is None:
            there = ", ".join(str(one.slot) for one in account.sessions) or "none"
            raise SessionKeyError(
                f"{self.account} has no session key in slot {self.slot}: it was revoked, has ended, or was never added; "
                f"slots with a key: {there}"
            )
        if found.key != self.key.public:
            raise SessionKeyError(
                f"the key of slot {self.slot} of {self.account} is {found.key}, and not {self.key.public}: name the slot "
                "that `sessions()` shows for it"
            )
        return found

    def _wait_until_caught_up(self) -> Flow[None]:
        """Waits while the node lags: it may name a used number, and a transaction that repeats one of before would seem
        to be committed."""
        begun = time.monotonic()
        while True:
            try:
                answer = yield Ask("GET", "/readyz")
                if answer.status != 200:
                    read(self.session.server, answer)
                return
            except RefusedError as error:
                if error.code != "catching_up":
                    return
                if time.monotonic() - begun > _LAG_PATIENCE_S:
                    raise
            yield Pause(0.2)

    def deliver(self, signed: Signed, wait: bool, is_new: bool = False) -> Flow[Fate]:
        """Sends a transaction, see `_deliver`. If the call ends without a result, however it ends, that is noted."""
        is_told = False
        try:
            fate = yield from self._deliver(signed, wait, is_new)
            is_told = True
            return fate
        finally:
            if not is_told and self.store.get(signed.id) is not None:
                with self._claims:
                    self._doubtful = (self._doubtful or set()) | {signed.id}

    def _deliver(self, signed: Signed, wait: bool, is_new: bool) -> Flow[Fate]:
        """Sends the same bytes until there is an answer; with `wait` until its block. `is_new` says that nobody has
        seen them yet.

        It is asked for rather than waited for at the node: a transaction that another one with its number displaces
        gets no answer there.
        """
        limits = yield from self.session.limits()
        yield from self.session.assets()
        begun = time.monotonic()
        longest = min(max(limits.block_interval_ms / 8000, _PAUSES_S[0]), _PAUSES_S[1])
        pause, is_pending, why = _PAUSES_S[0], False, "it waits for a block"
        fate: Fate | None
        refusal: RefusedError | None
        while True:
            fate = refusal = None
            try:
                if is_pending:
                    fate = yield from fate_of(self.session, signed.id, signed)
                else:
                    body = yield from post(self.session.server, "/v1/transactions", signed.encoded, self.patience)
                    fate = told(self.session, body, signed)
            except BusyError as error:
                why, pause = error.message, max(pause, error.retry_after)
            except ClientError as error:
                why = str(error)
                if is_new and isinstance(error, RefusedError) and error.code in _NUMBER_GONE:
                    # Nobody has seen the bytes before, and the node did not take them.
                    raise NumberGoneError from error
                if error.leaves_doubt:
                    # The node may have it: the next question is what it knows.
                    is_pending = True
                elif is_pending or not isinstance(error, RefusedError):
                    raise
                elif error.code in _NUMBER_GONE or error.code == "ended":
                    is_pending = True
                    self.session.forget_height()
                elif error.code not in _WAITS:
                    refusal = error
            is_new = False
            if refusal is not None:
                raise self._refusal(signed, refusal.status, refusal.code, refusal.message)
            if fate is not None:
                if fate.state == "refused" and fate.height is not None and fate.code in _NUMBER_REFUSED:
                    # It may be a copy of one that was executed, or come after another with its number.
                    fate = (yield from fate_of_number(self.session, signed)) or fate
                self._settle(fate, signed)
                is_pending, why = fate.state == "pending", fate.message or why
                if fate.state == "executed" or (is_pending and not wait):
                    return fate
            if time.monotonic() + pause - begun > self.patience:
                raise UndecidedError(self.session.server, signed.id, signed.until, why)
            yield Pause(pause)
            pause = min(pause * 2, longest)

    def _settle(self, fate: Fate, signed: Signed) -> None:
        """Forgets what is final, and raises what had no effect."""
        match fate.state:
            case "executed":
                self.store.forget(signed.id)
            case "refused" if fate.height is not None:
                raise self._refusal(signed, 422, fate.code or "refused", fate.message or "")
            case "void" if fate.code == "number_taken":
                raise NumberGoneError
            case "void":
                self._let_go(signed)
                raise VoidError(self.session.server, signed.id, fate.message or "it has ended")

    def _refusal(self, signed: Signed, status: int, code: str, message: str) -> TransactionRefusedError:
        # It stays stored until it can never count: anybody may send it again.
        self._refused.add(signed.id)
        self.numbers.release(signed.sequence, signed.until)
        numbers = (signed.id, signed.sequence, signed.until)
        return TransactionRefusedError(self.session.server, status, code, message, *numbers)

    def _let_go(self, signed: Signed) -> None:
        self.store.forget(signed.id)
        self.numbers.release(signed.sequence, signed.until)

    def retry(self, id: str, wait: bool) -> Flow[Fate]:
        """Sends a stored transaction again, unchanged."""
        signed = self.store.get(id)
        if signed is None:
            raise StoreError(f"transaction {id} is not stored here: it is final, or was sent by another client")
        yield from self.session.assets()
        try:
            return (yield from self.deliver(signed, wait))
        except NumberGoneError:
            self.store.forget(id)
            raise VoidError(self.session.server, id, "another transaction of the account has its number") from None

    def settle(self) -> Flow[list[Fate]]:
        """The fates of all stored transactions; those that are final are no longer stored."""
        fates = []
        for signed in self.store.all():
            if not self.signs(signed):
                continue
            fate = yield from fate_of(self.session, signed.id, signed)
            if fate.is_final:
                self.store.forget(signed.id)
            fates.append(fate)
        return fates
