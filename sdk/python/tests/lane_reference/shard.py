"""What a shard answers to the requests of clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from walras.purse.lane import ed25519, trees
from walras.purse.lane.certificate import Certificate, read_certificate
from walras.purse.lane.committee import Committee
from walras.purse.lane.layout import Reader, Refused, parsed, require, u8
from walras.purse.lane.payment import Output, Payment, Rules, Summary, read_payment, read_summary
from walras.purse.lane.receipt import Committees, check_certified, read_proof
from walras.purse.lane.request import ASK, SPEND, UNDER_BLS, question_bytes


@dataclass(frozen=True)
class Spend:
    payment: Payment
    signature: bytes
    proofs: bytes


@dataclass(frozen=True)
class Settle:
    summary: Summary
    certificate: Certificate


@dataclass(frozen=True)
class Question:
    home: int
    owner: bytes
    output: bytes
    signature: bytes


@dataclass(frozen=True)
class Batch:
    requests: tuple[bytes, ...]


def parse_request(data: bytes) -> Spend | Settle | Question | Batch:
    reader = Reader(data)
    kind = reader.u8()
    require(SPEND <= kind <= ASK, "Malformed", "no such request")
    match kind:
        case 1:
            # Proofs are read after all cheaper checks.
            return Spend(read_payment(reader), reader.signature(), reader.rest())
        case 2:
            found: Settle | Question | Batch = Settle(read_summary(reader), read_certificate(reader))
        case 3:
            count = reader.u16()
            require(1 <= count <= trees.LEAVES_MAX, "Malformed", "1 to 4,096 requests")
            found = Batch(tuple(reader.times(count, lambda of: of.take(of.u32()))))
        case _:
            found = Question(reader.u64(), reader.digest(), reader.digest(), reader.signature())
    reader.end()
    return found


@dataclass
class Shard:
    """What a shard of a home knows, as far as its answers depend on it."""

    rules: Rules
    committee: Committee
    committees: Committees
    member: int
    shard: int
    now: int
    backed: dict[bytes, Output]
    reserved: dict[bytes, bytes] = field(default_factory=dict)

    @property
    def home(self) -> int:
        return self.committee.epoch

    def judge(self, data: bytes) -> None:
        """Answers a request, or refuses it; then nothing has changed."""
        scheme = 0
        if data[:1] == u8(UNDER_BLS):
            require(data[1:2] in (b"\2", b"\3"), "Malformed", "no such scheme")
            scheme, data = data[1], data[2:]
            if scheme == 2:
                require(bool(self.committee.bls) and bool(self.committee.bls[self.member]), "WrongBlsKey")
            else:
                require(self.committee.group is not None, "NoGroupKey")
        match parse_request(data):
            case Spend() as spends:
                self.confirm(spends)
            case Settle(summary, certificate):
                self.check_place(summary.home, summary.owner)
                check_certified(self.committees, 2, summary, certificate)
            case Batch(requests):
                require(scheme != 3, "Malformed", "a tree is not signed with shares")
                self.confirm_batch(requests)
            case Question(home, owner, output, signature):
                self.check_place(home, owner)
                message = question_bytes(self.rules.network, home, output)
                require(ed25519.holds(owner, message, signature), "WrongOwnerSignature")

    def confirm_batch(self, requests: tuple[bytes, ...]) -> None:
        found = [parse_request(one) for one in requests]
        confirmed = 0
        for one in found:
            if not isinstance(one, Spend):
                raise Refused("Malformed", "a batch of other requests")
        for one in found:
            try:
                self.confirm(one)  # type: ignore[arg-type]
                confirmed += 1
            except Refused:
                pass
        require(confirmed > 0, "Malformed", "nothing can be confirmed")

    def check_place(self, home: int, owner: bytes) -> None:
        require(home == self.home, "ForeignHome")
        require(self.committee.shard(self.member, owner) == self.shard, "ForeignShard")

    def signs(self, payment: Payment) -> bool:
        since = self.now - self.home
        if since == 0:
            return payment.into == self.home
        return since == 1 and payment.into == self.home + 1 or since in (1, 2) and payment.is_exit()

    def confirm(self, spends: Spend) -> None:
        payment = spends.payment
        payment.check(self.rules)
        self.check_place(payment.home, payment.owner)
        digest, ids = payment.digest(), [one.id for one in payment.inputs]
        for spent in ids:
            require(self.reserved.get(spent, digest) == digest, "Conflict")
        if ids[0] in self.reserved:
            return
        require(self.signs(payment), "WrongEpoch")
        proofs = parsed(lambda reader: reader.times(len(ids), read_proof), spends.proofs)
        for one, proof in zip(payment.inputs, proofs, strict=True):
            self.check_input(payment, one.id, Output(0, payment.owner, one.asset, one.amount), proof)
        if self.now - self.home < 2:
            signed = ed25519.holds(payment.owner, payment.signing_bytes(), spends.signature)
            require(signed, "WrongOwnerSignature")
        for proof in proofs:
            if proof is not None:
                require(proof.summary.home in (self.home, self.home - 1), "UnknownCommittee")
                check_certified(self.committees, 2, proof.summary, proof.certificate)
        self.reserved.update(dict.fromkeys(ids, digest))

    def check_input(self, payment: Payment, spent: bytes, output: Output, proof: PaidProof | None) -> None:
        if proof is None:
            require(spent in self.backed, "UnknownOutput")
            require(self.backed[spent] == output, "ProofOfAnother")
            return
        found = proof.id_of(self.rules.network, output)
        require(found == spent and proof.summary.into == payment.home, "ProofOfAnother")


