"""What a purse decides: what to pay with, what bytes to store and send, and when a payment is fast or settled.

Nothing here has a clock, a socket or a disk. The caller stores `SignedPayment.stored()` durably before it sends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from . import bls, ed25519, request
from .certificate import Aggregate, Answers, Certificate, Claim, Threshold
from .committee import Committee, combine
from .layout import Refused, require, u32
from .payment import INPUTS_MAX, Output, Payment, Rules, Spent, Summary, parse_payment
from .receipt import Committees, PaidProof, Receipt
from .wire import Answered, BlsAnswered, Refusal, Reply

TREES, AGGREGATE, SHARES = 0, 2, 3
MARGIN_HEIGHTS = 3


@dataclass(frozen=True)
class Holding:
    """An output that the purse can spend; without a proof it is the ledger's."""

    id: bytes
    output: Output
    home: int
    proof: PaidProof | None = None


@dataclass(frozen=True)
class SignedPayment:
    payment: Payment
    signature: bytes
    request: bytes

    def stored(self) -> bytes:
        """What a purse must have on its disk before the first byte is sent: it is enough to send the same bytes."""
        data = self.payment.encode()
        return u32(len(data)) + data + self.request


def restored(stored: bytes) -> SignedPayment:
    end = 4 + int.from_bytes(stored[:4], "little")
    payment, asked = parse_payment(stored[4:end]), stored[end:]
    parsed = request.parse_request(asked)
    require(isinstance(parsed, request.Spend) and parsed.payment == payment, "Malformed", "another payment")
    return SignedPayment(payment, parsed.signature, asked)  # type: ignore[union-attr]


def received(receipt: Receipt, network: bytes, committees: Committees, own: set[bytes], now: int) -> Holding:
    """The money that a receipt brings to a purse with these keys, in this lane epoch."""
    found = receipt.verify(network, committees)
    require(receipt.output.kind == 0 and receipt.output.to in own, "OtherOwner")
    require(now <= receipt.proof.summary.into + 1, "Late")
    return Holding(found, receipt.output, receipt.proof.summary.into, receipt.proof)


def choose(held: list[Holding], spent: set[bytes], asset: int, units: int, now: int) -> list[Holding]:
    """Outputs of one owner and home for this many units, fee included: the fewest, and never one that was named."""
    groups: dict[tuple[bytes, int], list[Holding]] = {}
    for one in held:
        if one.id not in spent and one.output.asset == asset and one.home in (now, now - 1):
            groups.setdefault((one.output.to, one.home), []).append(one)
    found: list[list[Holding]] = []
    for group in groups.values():
        chosen: list[Holding] = []
        for one in sorted(group, key=lambda of: -of.output.amount)[:INPUTS_MAX]:
            if sum(of.output.amount for of in chosen) >= units:
                break
            chosen.append(one)
        if sum(of.output.amount for of in chosen) >= units:
            found.append(chosen)
    require(found != [], "Missing", "no outputs of one owner and home make up this amount")
    return min(found, key=len)


def build(rules: Rules, seed: bytes, held: list[Holding], into: int, outputs: list[Output]) -> SignedPayment:
    """A payment that spends these outputs whole, checked as a shard checks it before anything is signed."""
    held = sorted(held, key=lambda one: one.id)
    spent = tuple(Spent(one.id, one.output.asset, one.output.amount) for one in held)
    payment = Payment(rules.network, held[0].home, into, ed25519.public(seed), spent, tuple(outputs))
    parse_payment(payment.encode()).check(rules)
    signature = ed25519.sign(seed, payment.signing_bytes())
    return SignedPayment(payment, signature, request.spend(payment, signature, [one.proof for one in held]))


@dataclass
class Collection:
    """Answers of members about one payment, until q of them are a certificate."""

    committee: Committee
    kind: int
    summary: Summary
    scheme: int = TREES
    answers: dict[int, Answered | bytes] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)

    @property
    def claim(self) -> Claim:
        return Claim(self.kind, self.summary.owner, self.summary.digest(self.committee.network))

    def to_ask(self) -> list[tuple[int, int]]:
        """Members that have neither answered nor refused finally, each with its shard for the owner."""
        members = (member for member, keys in enumerate(self.committee.keys) if keys)
        open_ones = [member for member in members if member not in self.answers and member not in self.refused]
        return [(member, self.committee.shard(member, self.summary.owner)) for member in open_ones]

    def is_hopeless(self) -> bool:
        members = sum(1 for keys in self.committee.keys if keys)
        return members - len(self.refused) < self.committee.quorums.certificate

    def add(self, member: int, reply: Reply) -> Certificate | None:
        """A reply from a member's connection; the certificate once there is one. What does not verify is ignored."""
        match reply:
            case Refusal(again=False, text=text) if member not in self.answers:
                self.refused[member] = text
            case Answered(kind, digest, answer) if self.scheme == TREES:
                if (kind, digest) == (self.kind, self.claim.digest) and self._holds(reply):
                    self.answers[answer.validator] = reply
                    self.refused.pop(answer.validator, None)
            case BlsAnswered(kind, digest, validator, signature) if self.scheme != TREES and validator == member:
                if (kind, digest) == (self.kind, self.claim.digest) and self._is_signed(member, signature):
                    self.answers[member] = signature
        return self.certificate()

    def _holds(self, reply: Answered) -> bool:
        try:
            reply.answer.verify(self.committee, self.claim)
            return True
        except Refused:
            return False

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
