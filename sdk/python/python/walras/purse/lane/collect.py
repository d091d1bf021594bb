"""What a purse sends and what counts as an answer: signed payments, and answers until a quorum of them decides.

Nothing here has a clock, a socket or a disk. The caller stores `SignedPayment.stored()` durably before it sends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from walras.purse.lane import bls, ed25519, request
from walras.purse.lane.certificate import Aggregate, Answers, Certificate, Claim, Threshold
from walras.purse.lane.committee import Committee, combine
from walras.purse.lane.layout import Reader, Refused, require, u32
from walras.purse.lane.payment import (
    CONFIRMATION,
    Output,
    Payment,
    Rules,
    Spent,
    Summary,
    exit_of,
    head,
    parse_payment,
)
from walras.purse.lane.payment import PAYMENT as OWNED
from walras.purse.lane.receipt import PaidProof
from walras.purse.lane.wire import Answered, BlsAnswered, Refusal, Reply, Spender

TREES, AGGREGATE, SHARES = 0, 2, 3


@dataclass(frozen=True)
class Holding:
    """An output that a purse can spend; without a proof it is the ledger's."""

    id: bytes
    output: Output
    home: int
    proof: PaidProof | None = None

    @property
    def spent(self) -> Spent:
        return Spent(self.id, self.output.asset, self.output.amount)


@dataclass(frozen=True)
class SignedPayment:
    payment: Payment
    digest: bytes
    signature: bytes
    request: bytes

    def stored(self) -> bytes:
        """What a purse must have on its disk before the first byte is sent: it is enough to send the same bytes."""
        data = self.payment.encode()
        return u32(len(data)) + data + self.digest + self.signature + self.request


def signed_by(payment: Payment, signature: bytes, proofs: list[PaidProof | None]) -> SignedPayment:
    return SignedPayment(payment, payment.digest(), signature, request.spend(payment, signature, proofs))


def restored(stored: bytes) -> SignedPayment:
    """The payment of `SignedPayment.stored`."""
    reader = Reader(stored)
    payment = parse_payment(reader.take(reader.u32()))
    digest, signature = reader.digest(), reader.signature()
    require(payment.digest() == digest, "Malformed", "another payment")
    return SignedPayment(payment, digest, signature, reader.rest())


def build(rules: Rules, seed: bytes, held: list[Holding], into: int, outputs: list[Output]) -> SignedPayment:
    """A payment that spends these outputs whole, checked as a shard checks it before anything is signed."""
    held = sorted(held, key=lambda one: one.id)
    spent = tuple(one.spent for one in held)
    payment = Payment(rules.network, held[0].home, into, ed25519.public(seed), spent, tuple(outputs))
    parse_payment(payment.encode()).check(rules)
    return signed_by(payment, ed25519.sign(seed, payment.signing_bytes()), [one.proof for one in held])


@dataclass
class Asking(ABC):
    """A question to the shards of one owner under a committee. What does not verify is no answer."""

    committee: Committee
    refused: dict[int, str] = field(default_factory=dict, kw_only=True)
    """Members that refused finally, with their reasons."""
    excuses: dict[int, str] = field(default_factory=dict, kw_only=True)
    """Members that may answer the same bytes later, with their reasons."""
    liars: set[int] = field(default_factory=set, kw_only=True)
    """Members whose connections brought an answer that does not verify."""

    @property
    @abstractmethod
    def owner(self) -> bytes:
        """The key whose shards are asked."""

    @abstractmethod
    def answered(self) -> set[int]:
        """Members that have answered."""

    @abstractmethod
    def add(self, member: int, reply: Reply) -> object:
        """Takes a reply from a member's connection; what the answers decide, or None while they do not."""

    def to_ask(self) -> list[tuple[int, int]]:
        """Members that have neither answered nor refused finally, each with its shard for the owner."""
        members = (member for member, keys in enumerate(self.committee.keys) if keys)
        done = self.answered() | set(self.refused)
        return [(member, self.committee.shard(member, self.owner)) for member in members if member not in done]

    def is_hopeless(self) -> bool:
        members = sum(1 for keys in self.committee.keys if keys)
        return members - len(self.refused) < self.committee.quorums.certificate

    def refuse(self, member: int, refusal: Refusal) -> None:
        if member not in self.answered():
            (self.excuses if refusal.again else self.refused)[member] = refusal.text


@dataclass
class Collection(Asking):
    """Answers of members about one payment, until q of them are a certificate."""

    kind: int
    summary: Summary
    scheme: int = TREES
    answers: dict[int, Answered | bytes] = field(default_factory=dict)

    @property
    def owner(self) -> bytes:
        return self.summary.owner

    @property
    def claim(self) -> Claim:
        return Claim(self.kind, self.summary.owner, self.summary.digest(self.committee.network))

    def answered(self) -> set[int]:
        return set(self.answers)

    def add(self, member: int, reply: Reply) -> Certificate | None:
        """A reply from a member's connection; the certificate once there is one. What does not verify is ignored."""
        match reply:
            case Refusal():
                self.refuse(member, reply)
            case Answered(kind, digest, answer) if self.scheme == TREES:
                if (kind, digest) != (self.kind, self.claim.digest):
                    pass
                elif holds(reply, self.committee, self.claim):
                    self.answers[answer.validator] = reply
                    self.refused.pop(answer.validator, None)
                else:
                    self.liars.add(member)
            case BlsAnswered(kind, digest, validator, signature) if self.scheme != TREES and validator == member:
                if (kind, digest) != (self.kind, self.claim.digest):
                    pass
                elif self._is_signed(member, signature):
                    self.answers[member] = signature
                    self.refused.pop(member, None)
                else:
                    self.liars.add(member)
        return self.certificate()

    def _is_signed(self, member: int, signature: bytes) -> bool:
        claim, group = self.claim, self.committee.group
        if self.scheme == SHARES:
            key = group.shares[member] if group and member not in group.struck else None
        else:
            key = self.committee.bls_key(member, self.committee.shard(member, claim.owner))
        message = bls.signed(self.committee.network, self.committee.epoch, self.kind, self.scheme, claim.digest)
        return key is not None and bls.holds(key, message, signature)

    def certificate(self) -> Certificate | None:
        if len(self.answers) < self.committee.quorums.certificate:
            return None
        members = sorted(self.answers)[: self.committee.quorums.certificate]
        found = self._of(members)
        found.verify(self.committee, self.claim)
        return found

    def _of(self, members: list[int]) -> Certificate:
        parts = {member: self.answers[member] for member in members}
        if self.scheme == TREES:
            return Answers(tuple(part.answer for part in parts.values() if isinstance(part, Answered)))
        signatures = {member: part for member, part in parts.items() if isinstance(part, bytes)}
        if self.scheme == SHARES:
            assert self.committee.group is not None
            return Threshold(combine(self.committee.group, signatures))
        bitmap = bytearray((len(self.committee.keys) + 7) // 8)
        for member in members:
            bitmap[member // 8] |= 1 << member % 8
        curve = bls.library()
        total = bls.total([curve.signature(part) for part in signatures.values()])
        return Aggregate(bytes(bitmap), curve.signature_bytes(total))


def holds(reply: Answered, committee: Committee, claim: Claim) -> bool:
    try:
        reply.answer.verify(committee, claim)
        return True
    except Refused:
        return False


@dataclass
class Inquiry(Asking):
    """What spends an output: whatever its owner signed since a copy of the purse was made.

    One payment with the owner's signature decides, or f + 1 confirmations of the exit, or a quorum that knows nothing.
    """

    holding: Holding
    seed: bytes
    silent: set[int] = field(default_factory=set)
    exited: set[int] = field(default_factory=set)

    @property
    def owner(self) -> bytes:
        return self.holding.output.to

    @property
    def request(self) -> bytes:
        return request.question(self.committee.network, self.committee.epoch, self.seed, self.holding.id)

    def answered(self) -> set[int]:
        return self.silent | self.exited

    def _exit(self) -> Payment:
        return exit_of(self.committee.network, self.holding.home, self.owner, self.holding.spent)

    def add(self, member: int, reply: Reply) -> tuple[Payment, bytes] | bool | None:
        """The spender and its signature; True if a quorum knows none; `None` if it is not decided."""
        match reply:
            case Refusal():
                self.refuse(member, reply)
            case Spender(output, None) if output == self.holding.id:
                self.silent.add(member)
            case Spender(output, (signature, data)) if output == self.holding.id:
                spender = self._own(signature, data)
                if spender is not None:
                    return spender, signature
                self.liars.add(member)
            case Answered(kind, digest, answer) if (kind, digest) == (CONFIRMATION, self._exit().digest()):
                if holds(reply, self.committee, Claim(CONFIRMATION, self.owner, digest)):
                    self.exited.add(answer.validator)
                else:
                    self.liars.add(member)
        if len(self.exited) >= self.committee.quorums.witness:
            exits = self._exit()
            return exits, ed25519.sign(self.seed, exits.signing_bytes())
        return True if len(self.silent) >= self.committee.quorums.certificate else None

    def _own(self, signature: bytes, data: bytes) -> Payment | None:
        """The payment, if it spends this output, by this owner, who signed it."""
        try:
            spender = parse_payment(data)
        except Refused:
            return None
        place = (spender.network, spender.home, spender.owner)
        is_here = place == (self.committee.network, self.holding.home, self.owner)
        message = head(OWNED, spender.network, spender.home) + spender.digest()
        is_whole = is_here and self.holding.spent in spender.inputs
        return spender if is_whole and ed25519.holds(self.owner, message, signature) else None
