"""Answers of members, and certificates of quorums in their forms."""

from __future__ import annotations

from dataclasses import dataclass

from walras.purse.lane import bls, ed25519, trees
from walras.purse.lane.committee import Committee
from walras.purse.lane.layout import Reader, Refused, ascends, derived, parsed, require, u8, u16, u32, u64
from walras.purse.lane.payment import CONFIRMATION, SHARED, head


@dataclass(frozen=True)
class Claim:
    """What answers are about."""

    kind: int
    owner: bytes
    digest: bytes


@dataclass(frozen=True)
class Root:
    """What a shard signs."""

    kind: int
    validator: int
    shard: int
    size: int
    position: int
    root: bytes

    def check(self, committee: Committee, signature: bytes) -> None:
        signer = u8(self.validator) + u16(self.shard)
        tree = u32(self.size) + u64(self.position) + self.root
        message = head(self.kind, committee.network, committee.epoch) + signer + tree
        key = committee.key(self.validator, self.shard)
        require(ed25519.holds(key, message, signature), "WrongSignature", str(self.validator))


@dataclass(frozen=True)
class Place:
    """A leaf in a tree."""

    size: int
    index: int
    path: tuple[bytes, ...]

    def encode(self) -> bytes:
        return u32(self.size) + u32(self.index) + b"".join(self.path)

    def root(self, digest: bytes) -> bytes:
        leaf = trees.leaf(trees.SIGNED, digest)
        return trees.root_of(trees.SIGNED, leaf, self.size, self.index, list(self.path))


def read_place(reader: Reader) -> Place:
    size, index = reader.u32(), reader.u32()
    return Place(size, index, tuple(trees.read_path(reader, size, index)))


@dataclass(frozen=True)
class Answer:
    validator: int
    place: Place
    position: int
    signature: bytes

    def encode(self) -> bytes:
        numbers = u8(self.validator) + u32(self.place.size) + u32(self.place.index) + u64(self.position)
        return numbers + self.signature + b"".join(self.place.path)

    def root(self, committee: Committee, claim: Claim) -> Root:
        root = self.place.root(claim.digest)
        shard = committee.shard(self.validator, claim.owner)
        return Root(claim.kind, self.validator, shard, self.place.size, self.position, root)

    def verify(self, committee: Committee, claim: Claim) -> None:
        self.root(committee, claim).check(committee, self.signature)


def read_answer(reader: Reader) -> Answer:
    validator, size, index = reader.u8(), reader.u32(), reader.u32()
    position, signature = reader.u64(), reader.signature()
    path = trees.read_path(reader, size, index)
    return Answer(validator, Place(size, index, tuple(path)), position, signature)


def check_signers(signers: list[int], committee: Committee) -> None:
    right = len(signers) == committee.quorums.certificate and ascends(signers)
    require(right, "WrongSigners", "q members in ascending order")


@dataclass(frozen=True)
class Answers:
    answers: tuple[Answer, ...]

    def encode(self) -> bytes:
        return u8(len(self.answers)) + b"".join(one.encode() for one in self.answers)

    def verify(self, committee: Committee, claim: Claim) -> None:
        check_signers([one.validator for one in self.answers], committee)
        roots = [one.root(committee, claim) for one in self.answers]
        for root, one in zip(roots, self.answers, strict=True):
            root.check(committee, one.signature)

    def verify_signer(self, committee: Committee, claim: Claim, validator: int) -> None:
        require([one.validator for one in self.answers] == [validator], "WrongSigners")
        self.answers[0].verify(committee, claim)


@dataclass(frozen=True)
class Aggregate:
    bitmap: bytes
    signature: bytes

    def encode_part(self) -> bytes:
        return u8(len(self.bitmap)) + self.bitmap + self.signature

    def encode(self) -> bytes:
        return u8(0) + u8(1) + self.encode_part()

    def signers(self) -> list[int]:
        return [bit for bit in range(8 * len(self.bitmap)) if self.bitmap[bit // 8] >> bit % 8 & 1]

    def check(self, committee: Committee, claim: Claim, needed: int) -> list[int]:
        members, signers = len(committee.keys), self.signers()
        fits = len(self.bitmap) == (members + 7) // 8 and all(signer < members for signer in signers)
        require(fits and len(signers) >= needed, "WrongSigners", "the bitmap")
        return signers

    def verify_of(self, committee: Committee, claim: Claim, signers: list[int]) -> None:
        keys = [committee.bls_key(signer, committee.shard(signer, claim.owner)) for signer in signers]
        message = bls.signed(committee.network, committee.epoch, claim.kind, 2, claim.digest)
        require(bls.holds(bls.total(keys), message, self.signature), "WrongAggregate")

    def verify(self, committee: Committee, claim: Claim) -> None:
        signers = self.check(committee, claim, committee.quorums.certificate)
        self.verify_of(committee, claim, signers)

    def verify_signer(self, committee: Committee, claim: Claim, validator: int) -> None:
        signers = self.check(committee, claim, 1)
        require(validator in signers, "WrongSigners")
        self.verify_of(committee, claim, signers)


def read_aggregate(reader: Reader) -> Aggregate:
    return Aggregate(reader.take(reader.u8()), reader.take(48))


@dataclass(frozen=True)
class Threshold:
    signature: bytes

    def encode(self) -> bytes:
        return u8(0) + u8(4) + self.signature

    def verify(self, committee: Committee, claim: Claim) -> None:
        if committee.group is None:
            raise Refused("NoGroupKey")
        message = bls.signed(committee.network, committee.epoch, claim.kind, 3, claim.digest)
        require(bls.holds(committee.group.key, message, self.signature), "WrongAggregate")

    def verify_signer(self, committee: Committee, claim: Claim, validator: int) -> None:
        raise Refused("WrongSigners", "it shows nobody")


def encode_excluded(places: tuple[int, ...]) -> bytes:
    return u16(len(places)) + b"".join(map(u16, places))


def read_excluded(reader: Reader) -> tuple[int, ...]:
    places = reader.times(reader.u16(), Reader.u16)
    require(ascends(places), "Malformed", "excluded places ascend strictly")
    return tuple(places)


def shared_digest(place: Place, digest: bytes, excluded: tuple[int, ...]) -> bytes:
    """What is signed in place of the root of a broker's tree."""
    root = place.root(digest)
    require(place.index not in excluded, "WrongPath", "the payment is excluded")
    return derived("walras 2026 lane shared tree v1", root + u32(place.size) + encode_excluded(excluded))


@dataclass(frozen=True)
class BatchPart:
    validator: int
    position: int
    excluded: tuple[int, ...]
    signature: bytes

    def encode(self) -> bytes:
        return u8(self.validator) + u64(self.position) + encode_excluded(self.excluded) + self.signature

    def verify(self, committee: Committee, claim: Claim, place: Place) -> None:
        digest = shared_digest(place, claim.digest, self.excluded)
        shard = committee.shard(self.validator, claim.owner)
        Root(SHARED, self.validator, shard, place.size, self.position, digest).check(committee, self.signature)


def read_batch_part(reader: Reader) -> BatchPart:
    validator, position = reader.u8(), reader.u64()
    return BatchPart(validator, position, read_excluded(reader), reader.signature())


@dataclass(frozen=True)
class SharedAnswers:
    place: Place
    parts: tuple[BatchPart, ...]

    def encode(self) -> bytes:
        parts = u8(len(self.parts)) + b"".join(part.encode() for part in self.parts)
        return u8(0) + u8(2) + self.place.encode() + parts

    def verify(self, committee: Committee, claim: Claim) -> None:
        require(claim.kind == CONFIRMATION, "WrongSigners", "only confirmations are shared")
        check_signers([part.validator for part in self.parts], committee)
        for part in self.parts:
            part.verify(committee, claim, self.place)

    def verify_signer(self, committee: Committee, claim: Claim, validator: int) -> None:
        require([part.validator for part in self.parts] == [validator], "WrongSigners")
        self.parts[0].verify(committee, claim, self.place)


@dataclass(frozen=True)
class SharedAggregate:
    place: Place
    excluded: tuple[int, ...]
    aggregate: Aggregate

    def encode(self) -> bytes:
        place = self.place.encode() + encode_excluded(self.excluded)
        return u8(0) + u8(3) + place + self.aggregate.encode_part()

    def _claim(self, claim: Claim) -> Claim:
        return Claim(SHARED, claim.owner, shared_digest(self.place, claim.digest, self.excluded))

    def verify(self, committee: Committee, claim: Claim) -> None:
        require(claim.kind == CONFIRMATION, "WrongSigners", "only confirmations are shared")
        self.aggregate.verify(committee, self._claim(claim))

    def verify_signer(self, committee: Committee, claim: Claim, validator: int) -> None:
        self.aggregate.verify_signer(committee, self._claim(claim), validator)


Certificate = Answers | Aggregate | Threshold | SharedAnswers | SharedAggregate


def read_certificate(reader: Reader) -> Certificate:
    count = reader.u8()
    if count:
        return Answers(tuple(reader.times(count, read_answer)))
    form = reader.u8()
    require(1 <= form <= 4, "Malformed", "no form of a certificate")
    if form == 1:
        return read_aggregate(reader)
    if form == 4:
        return Threshold(reader.take(48))
    place = read_place(reader)
    if form == 2:
        return SharedAnswers(place, tuple(reader.times(reader.u8(), read_batch_part)))
    return SharedAggregate(place, read_excluded(reader), read_aggregate(reader))


def parse_certificate(data: bytes) -> Certificate:
    return parsed(read_certificate, data)
