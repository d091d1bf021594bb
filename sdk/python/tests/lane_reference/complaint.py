"""Complaints about dealings: what they prove, and who is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from walras.purse.lane import bls
from walras.purse.lane.committee import Committee, Dealing, sole_bls_keys
from walras.purse.lane.layout import Reader, Refused, derived, require, u8


@dataclass(frozen=True)
class Complaint:
    member: int
    dealer: int
    shared: bytes
    challenge: bytes
    response: bytes

    def encode(self) -> bytes:
        return u8(self.member) + u8(self.dealer) + self.shared + self.challenge + self.response

    def verify(self, committee: Committee, dealing: Dealing) -> None:
        """The shared point is the member's secret times the ephemeral point of the dealing."""
        curve = bls.library()
        own = bls.key(sole_bls_keys(committee)[self.member])
        ephemeral, shared = bls.key(dealing.ephemeral), curve.key(self.shared)
        require(shared is not None, "WrongComplaint", "no point")
        c, r = (int.from_bytes(number, "little") for number in (self.challenge, self.response))
        require(c < bls.ORDER and r < bls.ORDER, "WrongComplaint", "no numbers")
        first = combination(bls.key(bls.GENERATOR), r, own, c)
        second = combination(ephemeral, r, shared, c)
        points = dealing.ephemeral + self.shared + curve.key_bytes(first) + curve.key_bytes(second)
        message = dealing.context(committee) + u8(self.member) + points
        require(challenge_of(message) == c, "WrongComplaint", "the proof")

    def is_justified(self, committee: Committee, dealing: Dealing) -> bool:
        """Whether the share is wrong, as the complaint says."""
        context = dealing.context(committee)
        pad = derived("walras 2026 lane dkg pad v1", context + u8(self.member) + self.shared)
        share = int.from_bytes(dealing.shares[self.member], "little") ^ int.from_bytes(pad, "little")
        if not 0 < share < bls.ORDER:
            return True
        curve = bls.library()
        powers = enumerate(map(bls.key, dealing.commitments))
        expected = bls.total([curve.multiply(point, (self.member + 1) ** power) for power, point in powers])
        return curve.key_bytes(curve.multiply(bls.key(bls.GENERATOR), share)) != curve.key_bytes(expected)


def combination(base: Any, r: int, point: Any, c: int) -> Any:
    """r times the base less c times the point."""
    curve = bls.library()
    return curve.add(curve.multiply(base, r), curve.multiply(point, bls.ORDER - c))


def challenge_of(message: bytes) -> int:
    hasher = blake3(message, derive_key_context="walras 2026 lane dkg complaint v1")
    for block in range(1_000):
        data = bytearray(hasher.digest(32, seek=32 * block))
        data[31] &= 0x7F
        number = int.from_bytes(data, "little")
        if 0 < number < bls.ORDER:
            return number
    raise Refused("WrongComplaint", "no number in a thousand blocks")


def read_complaint(reader: Reader) -> Complaint:
    return Complaint(reader.u8(), reader.u8(), reader.take(96), reader.digest(), reader.digest())
