"""Orders in envelopes, which nobody reads before the block that holds them is decided.

Validators see plain orders before they propose their own. An envelope hides up to 32 orders from them: it is sealed to a key
of the whole committee, which opens it once its block is decided, into the batch of that block. See ``docs/sealed.md``.

An ed25519 key signs and pays for an envelope: the trader's own, or that of another account of the same owner (the *payer*),
which hides who trades. The orders have numbers of their own accounts, and are signed for this envelope alone.

**No order goes plain.** Without a key in force there is a `SealError` and nothing is sent. The node is asked nothing about the
order, neither a quote nor an offer by its id.

**Once.** The envelope is stored before it is sent, and only its bytes are sent again. If it ends before a block has it, or
if its number is taken, nothing in it can count: the same orders are sealed anew under the same numbers. With a `reference`
they count once over restarts; without one, a call after a crash tells of an envelope whose result nobody has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from walras.client.calls import Session
from walras.client.encoding import Body, Operation, Signed, raw
from walras.client.errors import SealError, SentBeforeError, TransactionRefusedError, VoidError
from walras.client.fate import told
from walras.client.flow import Flow
from walras.client.keys import Ed25519Key
from walras.client.models import Fate, Limits
from walras.client.operations import Cancel, CreateOffer, Exact, Replace, Sealed
from walras.client.sending import NumberGoneError, Sender
from walras.sealing import Enclosure, EnvelopeTerms, seal

__all__ = ["Envelopes"]

_LASTS = 16
"""Blocks for which an envelope may count. The fewer, the less its first reader chooses."""
_TRIES = 20
_SEALABLE = (CreateOffer, Replace, Exact, Cancel)
_NO_SIGNER = (
    "an ed25519 key signs envelopes, and this client has another one: give it a `payer`, another Client with the key of a "
    "fee account or of a session key. Nothing was sent"
)


class Envelopes:
    """Seals the orders of a trader; the payer signs and pays for the envelopes."""

    def __init__(self, session: Session, trader: Sender, payer: Sender) -> None:
        self._session = session
        self._trader = trader
        self._payer = payer

    def send_one(self, operation: Operation, wait: bool, reference: str | None) -> Flow[Fate]:
        """The fate of one order. Raises a `TransactionRefusedError` if it was refused."""
        (fate,) = yield from self.send([operation], wait, reference)
        if fate.state == "refused":
            numbers = (fate.id, fate.sequence or 0, fate.until or 0)
            raise TransactionRefusedError(self._session.server, 422, fate.code or "refused", fate.message or "", *numbers)
        return fate

    def send(self, operations: Sequence[Operation], wait: bool, reference: str | None) -> Flow[list[Fate]]:
        """Seals orders, at most 32, and sends the envelope; with `wait` until its block. Their fates, in order."""
        if other := next((one for one in operations if not isinstance(one, _SEALABLE)), None):
            raise SealError(f"an envelope holds orders, replacements and cancels: send {type(other).__name__} plain")
        if not isinstance(self._payer.key, Ed25519Key):
            raise SealError(_NO_SIGNER)
        yield from self._session.assets()
        if reference is None:
            yield from self._check_told()
        number, committee = yield from self._key()
        places = []
        for _ in operations:
            places.append((yield from self._trader.number()))
        for _ in range(_TRIES):
            inside: list[Signed] = []

            def make(limits: Limits, sequence: int, until: int, inside: list[Signed] = inside) -> Signed:
                inside += self._signed(limits, (sequence, until), operations, places)
                return self._envelope(limits, (number, committee), (sequence, until), inside)

            envelope, is_new = yield from self._payer.made(make, reference, _LASTS, _is_envelope)
            try:
                fate = yield from self._payer.deliver(envelope, wait, is_new)
            except (NumberGoneError, VoidError):
                # Nothing of it can count any more.
                self._payer.store.forget(envelope.id)
                if reference is not None:
                    with self._payer.store.reserved():
                        self._payer.store.release(reference, envelope.id)
                number, committee = yield from self._key()
                continue
            if fate.state == "pending":
                within = self._enclosure((yield from self._session.limits()), envelope.sequence)
                return [Fate(within.id_of(one), "pending", one.sequence, one.until) for one in inside]
            return (yield from self._fates(envelope, fate, places))
        raise SealError("each envelope ended before a block had it: try again later")

    def _fates(self, envelope: Signed, fate: Fate, places: list[Signed]) -> Flow[list[Fate]]:
        """What became of the orders of an envelope that a block has opened."""
        became = fate.outcome.why if fate.outcome else None
        if became != "opened":
            for place in places:
                self._trader.numbers.release(place.sequence, 0)
            code = (fate.outcome.code if fate.outcome else None) or str(became)
            why = (fate.outcome.message if fate.outcome else None) or "the envelope held no signed orders"
            numbers = (envelope.id, envelope.sequence, envelope.until)
            raise TransactionRefusedError(self._session.server, 422, code, f"nothing in the envelope counts: {why}", *numbers)
        body = yield from self._session.get(f"/v1/transactions/{envelope.id}", lambda body: body)
        fates = []
        for one in body.get("inside", []):
            committed = {"status": "committed", "height": body["height"], "until": body["until"], **one}
            fates.append(told(self._session, committed, None))
            if fates[-1].state == "refused":
                # Its bytes count in no other envelope, so that its number is free.
                self._trader.numbers.release(int(one["sequence"]), 0)
        return fates

    def _check_told(self) -> Flow[None]:
        """Tells, once, of an envelope whose result no call has seen."""
        for signed in self._payer.untold(_is_envelope):
            fate = yield from self._payer.look_up(signed)
            if fate.state == "void":
                continue
            raise SentBeforeError(self._session.server, signed.id, signed.until, fate.height)

    def _signed(
        self, limits: Limits, numbers: tuple[int, int], operations: Sequence[Operation], places: list[Signed]
    ) -> list[Signed]:
        (sequence, until), trader = numbers, self._trader
        within = self._enclosure(limits, sequence)
        # They end with their envelope: whoever pays for it cannot bring them once more later.
        bodies = (
            Body(limits.chain, trader.account, place.sequence, until, operation)
            for place, operation in zip(places, operations, strict=True)
        )
        return [trader.key.sign_inside(body, within) for body in bodies]

    def _enclosure(self, limits: Limits, sequence: int) -> Enclosure:
        return Enclosure(raw(limits.network), raw(self._payer.account), sequence)

    def _envelope(
        self, limits: Limits, key: tuple[int, bytes], numbers: tuple[int, int], inside: list[Signed]
    ) -> Signed:
        (number, committee), (sequence, until), payer = key, numbers, self._payer
        signer = raw(str(payer.key.public))
        terms = EnvelopeTerms(raw(limits.network), signer, number, raw(payer.account), sequence, until)
        try:
            sealed = seal(committee, terms, [one.encoded for one in inside])
        except ValueError as error:
            raise SealError(f"{error}. Nothing was sent") from error
        operation = Sealed(number, sealed.size, "0x" + sealed.point.hex(), "0x" + sealed.box.hex())
        return payer.key.sign(Body(limits.chain, payer.account, sequence, until, operation), limits.network)

    def _key(self) -> Flow[tuple[int, bytes]]:
        """The number and the bytes of the key in force."""
        body = yield from self._session.get("/v1/seal", lambda body: body)
        # An envelope lasts for a few blocks: its end counts from the newest one.
        self._payer.session.saw(int(body["height"]))
        if body["in_force"] is None:
            server = self._session.server
            raise SealError(
                f"{why_no_key(body)}. Nothing was sent. Wait for a key, as {server}/v1/seal tells of it, or send the order "
                "plain: validators then see it before its batch"
            )
        (key,) = [one["key"] for one in body["keys"] if one["number"] == body["in_force"]]
        return int(body["in_force"]), raw(key)


def _is_envelope(operation: bytes) -> bool:
    return operation.startswith(Sealed.CODE)


def why_no_key(body: Any) -> str:
    """Why a node names no key that is in force."""
    if body["threshold"] is None:
        return "this network has no sealing key: its genesis does not name `seals`"
    if key := next((one for one in body["keys"] if one["from"] > body["height"]), None):
        return f"key {key['number']} opens envelopes from block {key['from']} on, and the newest is {body['height']}"
    if making := body["making"]:
        awaited = ", ".join(making["awaited"]) or "nobody"
        step = f"the step `{making['step']}` awaits {awaited}, until block {making['ends']}"
        return f"the committee makes key {making['number']}: {step}"
    if failed := body["failed"]:
        silent = ", ".join(failed["silent"])
        return (
            f"the committee could not make key {failed['number']}: in the step `{failed['step']}` these did not take part: "
            f"{silent}. It tries again after block {failed['again']}"
        )
    return "the committee has not begun to make one"
