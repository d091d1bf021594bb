"""Committees: quorums, shards, registrations, BLS keys, and the group key of an epoch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from walras.purse.lane import bls, ed25519
from walras.purse.lane.layout import Reader, Refused, ascends, derived, parsed, require, u8, u16, u64
from walras.purse.lane.payment import DEALING, POSSESSION, PREFIX, REGISTRATION, head

WITH_BLS = 1 << 15


@dataclass(frozen=True)
class Quorums:
    members: int

    @property
    def faulty(self) -> int:
        return (self.members - 1) // 3

    @property
    def certificate(self) -> int:
        return (self.members + self.faulty) // 2 + 1

    @property
    def binding(self) -> int:
        return self.members + self.faulty + 1 - self.certificate

    @property
    def witness(self) -> int:
        return self.faulty + 1


def shard_of(owner: bytes, shards: int) -> int:
    place = int.from_bytes(derived("walras 2026 lane shard v1", owner)[:8], "little")
    return place * shards >> 64


@dataclass(frozen=True)
class Registration:
    epoch: int
    member: int
    keys: tuple[bytes, ...]
    bls: tuple[tuple[bytes, bytes], ...]
    signature: bytes

    def signed(self) -> bytes:
        """The fields that the registrar signs."""
        count = len(self.keys) + (WITH_BLS if self.bls else 0)
        keys = b"".join(self.keys) + b"".join(key + proof for key, proof in self.bls)
        return u8(self.member) + u16(count) + keys

    def encode(self) -> bytes:
        return u64(self.epoch) + self.signed() + self.signature

    def verify(self, network: bytes, registrars: list[bytes]) -> None:
        require(self.member < len(registrars), "WrongRegistration", "no such member")
        registrar = registrars[self.member]
        bls_keys = {key for key, _ in self.bls}
        require(len(set(self.keys)) == len(self.keys), "WrongRegistration", "a key twice")
        require(len(bls_keys) == len(self.bls), "WrongRegistration", "a BLS key twice")
        message = head(REGISTRATION, network, self.epoch) + self.signed()
        require(ed25519.holds(registrar, message, self.signature), "WrongRegistration", "the registrar did not sign")
        for key, proof in self.bls:
            possession = PREFIX + network + ed25519.account(registrar) + u8(2) + key
            holds = bls.holds(bls.key(key), possession, proof, bls.POSSESSIONS)
            require(holds, "WrongBlsKey", "possession is not proved")

    def check_possession(self, network: bytes, registrar: bytes, proofs: list[bytes]) -> None:
        for shard, (key, proof) in enumerate(zip(self.keys, proofs, strict=True)):
            message = head(POSSESSION, network, self.epoch) + u8(self.member) + u16(shard) + registrar
            require(ed25519.holds(key, message, proof), "WrongRegistration", "possession is not proved")


def read_registration(reader: Reader) -> Registration:
    epoch, member, count = reader.u64(), reader.u8(), reader.u16()
    has_bls, count = count & WITH_BLS != 0, count & ~WITH_BLS
    require(1 <= count <= (16 if has_bls else 256), "Malformed", "a number of shards out of bounds")
    keys = reader.times(count, Reader.digest)
    pairs = reader.times(count if has_bls else 0, lambda of: (of.take(96), of.take(48)))
    return Registration(epoch, member, tuple(keys), tuple(pairs), reader.signature())


@dataclass(frozen=True)
class Group:
    """A group key, the keys of the shares, and the members that are struck."""

    key: Any
    shares: tuple[Any, ...]
    struck: frozenset[int]


@dataclass(frozen=True)
class Committee:
    network: bytes
    epoch: int
    keys: tuple[tuple[bytes, ...], ...]
    bls: tuple[tuple[bytes, ...], ...] = ()
    group: Group | None = field(default=None, compare=False)

    @property
    def quorums(self) -> Quorums:
        return Quorums(len(self.keys))

    def shard(self, member: int, owner: bytes) -> int:
        require(member < len(self.keys), "WrongSigners", "no member")
        require(len(self.keys[member]) > 0, "Unregistered")
        return shard_of(owner, len(self.keys[member]))

    def key(self, member: int, shard: int) -> bytes:
        return self.keys[member][shard]

    def bls_key(self, member: int, shard: int) -> Any:
        keys = self.bls[member] if member < len(self.bls) else ()
        require(shard < len(keys), "WrongBlsKey", "no BLS key")
        return bls.key(keys[shard])


def seated(network: bytes, epoch: int, registrars: list[bytes], registrations: list[Registration]) -> Committee:
    """The committee of an epoch by what its members registered. The caller has proved that the ledger has these."""
    keys: list[tuple[bytes, ...]] = [()] * len(registrars)
    bls_keys: list[tuple[bytes, ...]] = [()] * len(registrars)
    for one in registrations:
        if one.epoch == epoch:
            one.verify(network, registrars)
            keys[one.member], bls_keys[one.member] = one.keys, tuple(key for key, _ in one.bls)
    return Committee(network, epoch, tuple(keys), tuple(bls_keys))


@dataclass(frozen=True)
class Dealing:
    dealer: int
    commitments: tuple[bytes, ...]
    ephemeral: bytes
    shares: tuple[bytes, ...]
    proofs: tuple[bytes, bytes]

    def body(self) -> bytes:
        return u8(self.dealer) + b"".join(self.commitments) + self.ephemeral + b"".join(self.shares)

    def encode(self) -> bytes:
        return self.body() + b"".join(self.proofs)

    def context(self, committee: Committee) -> bytes:
        keys = b"".join(sole_bls_keys(committee))
        return PREFIX + committee.network + u64(committee.epoch) + u8(3) + u8(self.dealer) + keys

    def verify(self, committee: Committee, signature: bytes) -> None:
        """Who deals, and that it knows what it deals."""
        keys = sole_bls_keys(committee)
        require(self.dealer < len(keys), "WrongSigners", "no member")
        counts = (len(self.commitments), len(self.shares))
        require(counts == (committee.quorums.certificate, len(keys)), "WrongDealing", "for another number of members")
        message = derived("walras 2026 lane dkg dealing v1", self.encode())
        message = head(DEALING, committee.network, committee.epoch) + message
        require(ed25519.holds(committee.key(self.dealer, 0), message, signature), "WrongDealing", "not signed")
        context = self.context(committee)
        points = [bls.library().key(point) for point in (*self.commitments, self.ephemeral)]
        require(None not in points, "WrongDealing", "no point")
        for point, proof in zip((points[0], points[-1]), self.proofs, strict=True):
            require(bls.holds(point, context + self.body(), proof, bls.POSSESSIONS), "WrongDealing", "not proved")


def read_dealing(quorums: Quorums) -> Any:
    def read(reader: Reader) -> Dealing:
        dealer = reader.u8()
        commitments = reader.times(quorums.certificate, lambda of: of.take(96))
        ephemeral = reader.take(96)
        shares = reader.times(quorums.members, Reader.digest)
        return Dealing(dealer, tuple(commitments), ephemeral, tuple(shares), (reader.take(48), reader.take(48)))

    return read


def sole_bls_keys(committee: Committee) -> list[bytes]:
    """The BLS keys of members with one shard each."""
    has_one = len(committee.bls) == len(committee.keys) and all(len(keys) == 1 for keys in committee.bls)
    require(has_one, "WrongBlsKey", "each member has one shard with a BLS key")
    return [keys[0] for keys in committee.bls]


def with_board(committee: Committee, board: bytes) -> Committee:
    """The committee with the group key that its board gives."""
    sole_bls_keys(committee)
    quorums = committee.quorums

    def read(reader: Reader) -> tuple[list[tuple[Dealing, bytes]], list[int], list[int]]:
        dealings = reader.times(reader.u8(), lambda of: (read_dealing(quorums)(of), of.signature()))
        members = [list(reader.take(reader.u8())) for _ in range(2)]
        return dealings, members[0], members[1]

    dealings, out, struck = parsed(read, board)
    dealers = [dealing.dealer for dealing, _ in dealings]
    for members in (dealers, out, struck):
        known = all(member < quorums.members for member in members)
        require(ascends(members) and known, "Malformed", "members ascend strictly")
    require(dealers != [] and set(out) <= set(dealers), "Malformed", "who is out has dealt")
    for dealing, signature in dealings:
        dealing.verify(committee, signature)
    return replace(committee, group=group_of([one for one, _ in dealings if one.dealer not in out], struck, quorums))


def group_of(standing: list[Dealing], struck: list[int], quorums: Quorums) -> Group:
    enough = len(standing) >= quorums.witness and len(struck) <= quorums.faulty
    require(enough and quorums.members - len(struck) >= quorums.certificate, "NoGroupKey")
    curve = bls.library()
    points = [[bls.key(commitment) for commitment in one.commitments] for one in standing]
    sums = [bls.total(list(of)) for of in zip(*points, strict=True)]

    def share(member: int) -> Any:
        terms = [curve.multiply(point, (member + 1) ** power) for power, point in enumerate(sums)]
        return bls.total(terms)

    return Group(sums[0], tuple(map(share, range(quorums.members))), frozenset(struck))


def combine(group: Group, parts: dict[int, bytes]) -> bytes:
    """The signature under the group key, of signatures of q shares."""
    curve, points = bls.library(), []
    for member, data in parts.items():
        above = below = 1
        for other in parts:
            if other != member:
                above, below = above * (other + 1) % bls.ORDER, below * (other - member) % bls.ORDER
        point = curve.signature(data)
        if point is None:
            raise Refused("WrongSignature", str(member))
        points.append(curve.multiply(point, above * pow(below, -1, bls.ORDER) % bls.ORDER))
    return curve.signature_bytes(bls.total(points))
