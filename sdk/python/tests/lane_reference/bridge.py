"""Posts to the ledger about the lane: their forms, and what is verified before the ledger looks at its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from walras.purse.lane import ed25519
from walras.purse.lane.certificate import Answer, Certificate, Claim, read_answer, read_certificate
from walras.purse.lane.committee import Dealing, Quorums, Registration, read_dealing, read_registration, sole_bls_keys
from lane_reference.complaint import Complaint, read_complaint
from walras.purse.lane.layout import Reader, ascends, derived, parsed, require, u8, u64
from walras.purse.lane.payment import (
    CONFIRMATION,
    HALT,
    VIEW,
    Output,
    Payment,
    Spent,
    Summary,
    exit_of,
    long_payment,
    read_long_payment,
    read_spent,
    read_summary,
)
from walras.purse.lane.receipt import Committees, PaidProof, check_certified, encode_proof, known, read_proof

DUTY = 128


@dataclass(frozen=True)
class Ledger:
    """What the ledger verifies posts with."""

    network: bytes
    registrars: list[bytes]
    committees: Committees


def view_leaf(case: bytes, paid: bytes | None) -> bytes:
    return derived("walras 2026 lane view v1", case + (paid or b""))


def halt_leaf(epoch: int, round_number: int) -> bytes:
    return derived("walras 2026 lane halt v1", u64(epoch) + u64(round_number))


class Post(Protocol):
    def encode(self) -> bytes: ...
    def verify(self, ledger: Ledger) -> None: ...


def check_payment(payment: Payment, ledger: Ledger) -> None:
    require(payment.network == ledger.network, "ForeignNetwork")


@dataclass(frozen=True)
class Redeem:
    payment: Payment
    certificate: Certificate

    def encode(self) -> bytes:
        return u8(2) + long_payment(self.payment) + self.certificate.encode()

    def verify(self, ledger: Ledger) -> None:
        check_payment(self.payment, ledger)
        check_certified(ledger.committees, CONFIRMATION, self.payment.summary(), self.certificate)


@dataclass(frozen=True)
class Contested:
    spent: Spent
    home: int
    owner: bytes
    signature: bytes
    proof: PaidProof | None

    def encode(self) -> bytes:
        return self.spent.encode() + u64(self.home) + self.owner + self.signature + encode_proof(self.proof)

    def exit(self, network: bytes) -> Payment:
        return exit_of(network, self.home, self.owner, self.spent)

    def check_id(self, network: bytes) -> None:
        if self.proof is not None:
            output = Output(0, self.owner, self.spent.asset, self.spent.amount)
            found = self.proof.id_of(network, output)
            require(found == self.spent.id and self.proof.summary.into == self.home, "ProofOfAnother")

    def check_signatures(self, ledger: Ledger) -> None:
        message = self.exit(ledger.network).signing_bytes()
        require(ed25519.holds(self.owner, message, self.signature), "WrongOwnerSignature")
        if self.proof is not None:
            check_certified(ledger.committees, CONFIRMATION, self.proof.summary, self.proof.certificate)


def read_contested(reader: Reader) -> Contested:
    spent = read_spent(reader)
    return Contested(spent, reader.u64(), reader.digest(), reader.signature(), read_proof(reader))


@dataclass(frozen=True)
class Resolve:
    bid: int
    outputs: tuple[Contested, ...]

    def encode(self) -> bytes:
        return u8(3) + u64(self.bid) + u8(len(self.outputs)) + b"".join(one.encode() for one in self.outputs)

    def verify(self, ledger: Ledger) -> None:
        for one in self.outputs:
            one.check_id(ledger.network)
        for one in self.outputs:
            one.check_signatures(ledger)


def read_resolve(reader: Reader) -> Resolve:
    bid, outputs = reader.u64(), reader.times(reader.u8(), read_contested)
    owners = {(one.home, one.owner) for one in outputs}
    right = 1 <= len(outputs) <= 16 and ascends([one.spent.id for one in outputs]) and len(owners) == 1
    require(right, "Malformed", "1 to 16 outputs of one owner and home, by ascending id")
    return Resolve(bid, tuple(outputs))


@dataclass(frozen=True)
class Vote:
    case: bytes
    payment: Payment
    signature: bytes | None
    answer: Answer

    def encode(self) -> bytes:
        signature = u8(0) if self.signature is None else u8(1) + self.signature
        return u8(4) + self.case + long_payment(self.payment) + signature + self.answer.encode()

    def verify(self, ledger: Ledger) -> None:
        check_payment(self.payment, ledger)
        if self.signature is None:
            require(self.payment.is_exit(), "WrongOwnerSignature")
        else:
            signed = ed25519.holds(self.payment.owner, self.payment.signing_bytes(), self.signature)
            require(signed, "WrongOwnerSignature")
        claim = Claim(CONFIRMATION, self.payment.owner, self.payment.digest())
        self.answer.verify(known(ledger.committees, self.payment.home), claim)


def read_vote(reader: Reader) -> Vote:
    case, payment = reader.digest(), read_long_payment(reader)
    return Vote(case, payment, reader.option(Reader.signature), read_answer(reader))


Certified = tuple[Summary, Certificate]


def read_certified(reader: Reader) -> Certified:
    return read_summary(reader), read_certificate(reader)


@dataclass(frozen=True)
class View:
    case: bytes
    committee: int
    owner: bytes
    paid: Certified | None
    answer: Answer

    def encode(self) -> bytes:
        paid = u8(0) if self.paid is None else u8(1) + self.paid[0].encode() + self.paid[1].encode()
        return u8(5) + self.case + u64(self.committee) + self.owner + paid + self.answer.encode()

    def verify(self, ledger: Ledger) -> None:
        paid = None if self.paid is None else self.paid[0].digest(ledger.network)
        claim = Claim(VIEW, self.owner, view_leaf(self.case, paid))
        self.answer.verify(known(ledger.committees, self.committee), claim)
        if self.paid is not None:
            check_certified(ledger.committees, CONFIRMATION, *self.paid)


def read_view(reader: Reader) -> View:
    case, committee, owner = reader.digest(), reader.u64(), reader.digest()
    return View(case, committee, owner, reader.option(read_certified), read_answer(reader))


@dataclass(frozen=True)
class Halt:
    epoch: int
    round: int
    owner: bytes
    answer: Answer

    def encode(self) -> bytes:
        return u8(6) + u64(self.epoch) + u64(self.round) + self.owner + self.answer.encode()

    def verify(self, ledger: Ledger) -> None:
        claim = Claim(HALT, self.owner, halt_leaf(self.epoch, self.round))
        self.answer.verify(known(ledger.committees, self.epoch), claim)


@dataclass(frozen=True)
class Register:
    registration: Registration
    proofs: tuple[bytes, ...]

    def encode(self) -> bytes:
        return u8(7) + self.registration.encode() + b"".join(self.proofs)

    def verify(self, ledger: Ledger) -> None:
        self.registration.verify(ledger.network, ledger.registrars)
        registrar = ledger.registrars[self.registration.member]
        self.registration.check_possession(ledger.network, registrar, list(self.proofs))


def read_register(reader: Reader) -> Register:
    registration = read_registration(reader)
    return Register(registration, tuple(reader.times(len(registration.keys), Reader.signature)))


@dataclass(frozen=True)
class AccusePayments:
    home: int
    validator: int
    pair: tuple[tuple[Payment, Certificate], ...]

    def encode(self) -> bytes:
        pair = b"".join(long_payment(payment) + signed.encode() for payment, signed in self.pair)
        return u8(8) + u8(1) + u64(self.home) + u8(self.validator) + pair

    def verify(self, ledger: Ledger) -> None:
        committee = known(ledger.committees, self.home)
        (one, _), (other, _) = self.pair
        shared = {spent.id for spent in one.inputs} & {spent.id for spent in other.inputs}
        here = all((of.home, of.network) == (self.home, ledger.network) for of in (one, other))
        require(bool(shared) and here and one.digest() < other.digest(), "Malformed", "no contradiction")
        for payment, signed in self.pair:
            signed.verify_signer(committee, Claim(CONFIRMATION, payment.owner, payment.digest()), self.validator)


@dataclass(frozen=True)
class AccuseViews:
    committee: int
    case: bytes
    owner: bytes
    pair: tuple[tuple[bytes | None, Answer], ...]

    def encode(self) -> bytes:
        pair = [(u8(0) if paid is None else u8(1) + paid) + answer.encode() for paid, answer in self.pair]
        return u8(8) + u8(2) + u64(self.committee) + self.case + self.owner + b"".join(pair)

    def verify(self, ledger: Ledger) -> None:
        committee = known(ledger.committees, self.committee)
        (one, first), (other, second) = self.pair
        differ = (one or b"") < (other or b"") and first.validator == second.validator
        require(differ, "Malformed", "no contradiction")
        for paid, answer in self.pair:
            answer.verify(committee, Claim(VIEW, self.owner, view_leaf(self.case, paid)))


def read_accuse(reader: Reader) -> AccusePayments | AccuseViews:
    kind = reader.u8()
    require(kind in (1, 2), "Malformed", "evidence of payments or of views")
    if kind == 1:
        home, validator = reader.u64(), reader.u8()
        pair = reader.times(2, lambda of: (read_long_payment(of), read_certificate(of)))
        return AccusePayments(home, validator, tuple(pair))
    committee, case, owner = reader.u64(), reader.digest(), reader.digest()
    views = reader.times(2, lambda of: (of.option(Reader.digest), read_answer(of)))
    return AccuseViews(committee, case, owner, tuple(views))


@dataclass(frozen=True)
class Deal:
    epoch: int
    members: int
    dealing: Dealing
    signature: bytes

    def encode(self) -> bytes:
        return u8(9) + u64(self.epoch) + u8(self.members) + self.dealing.encode() + self.signature

    def verify(self, ledger: Ledger) -> None:
        committee = known(ledger.committees, self.epoch)
        sole_bls_keys(committee)
        self.dealing.verify(committee, self.signature)


def read_deal(reader: Reader) -> Deal:
    epoch, members = reader.u64(), reader.u8()
    require(1 <= members <= 32, "Malformed", "1 to 32 members make a group key")
    return Deal(epoch, members, read_dealing(Quorums(members))(reader), reader.signature())


@dataclass(frozen=True)
class Complain:
    """What it proves depends on the board: see `complaint`."""

    epoch: int
    complaint: Complaint

    def encode(self) -> bytes:
        return u8(10) + u64(self.epoch) + self.complaint.encode()

    def verify(self, ledger: Ledger) -> None:
        pass


READERS: dict[int, Callable[[Reader], Any]] = {
    2: lambda of: Redeem(read_long_payment(of), read_certificate(of)),
    3: read_resolve,
    4: read_vote,
    5: read_view,
    6: lambda of: Halt(of.u64(), of.u64(), of.digest(), read_answer(of)),
    7: read_register,
    8: read_accuse,
    9: read_deal,
    10: lambda of: Complain(of.u64(), read_complaint(of)),
}


def parse_post(data: bytes) -> Post:
    def read(reader: Reader) -> Post:
        kind = reader.u8() & ~DUTY
        require(kind in READERS, "Malformed", "a post is of kind 2 to 10")
        post: Post = READERS[kind](reader)
        return post

    return parsed(read, data)


