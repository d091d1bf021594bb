"""Reports of fills at venues, as docs/specification.md describes them: read, and checked against who signed them."""

from __future__ import annotations

from dataclasses import dataclass

from blake3 import blake3
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from walras.client.encoding import derived, raw, u32, u64
from walras.client.proof import ProofError

__all__ = ["VenueReport", "VenueStep"]

_SINGLE_BYTES = 164
_STEP_BYTES = 193
"""Those of a report of a step, without its path."""
_LEAVES_MAX = 1 << 20
_TREE = "walras 2026 venue reports tree v1"
_LEAF, _NODE = (derived(_TREE, bytes([tag])) for tag in (0, 1))


def _keyed(key: bytes, message: bytes) -> bytes:
    return blake3(message, key=key).digest()


def _sides(size: int, place: int) -> list[bool]:
    """For each sibling on the path of a leaf, whether it is on the left. The last node of an odd level has none."""
    sides = []
    while size > 1:
        if place ^ 1 < size:
            sides.append(place % 2 == 1)
        size, place = (size + 1) // 2, place // 2
    return sides


@dataclass(frozen=True, slots=True)
class VenueStep:
    """Where a report stands in its step, of which the report key signs the root."""

    number: int
    clock_ms: int
    size: int
    place: int
    path: tuple[bytes, ...]

    def root(self, leaf: bytes) -> bytes:
        """The root that a leaf at this place has."""
        node = _keyed(_LEAF, leaf)
        for is_left, sibling in zip(_sides(self.size, self.place), self.path, strict=True):
            node = _keyed(_NODE, sibling + node if is_left else node + sibling)
        return node


@dataclass(frozen=True, slots=True)
class VenueReport:
    """What a venue said of a fill: keep it, it convicts a venue that settles another one."""

    venue: int
    incarnation: int
    index: int
    leaf: str
    account: str
    key: str
    signature: str
    step: VenueStep | None
    """``None`` if the report has a signature of its own."""

    @classmethod
    def read(cls, text: str) -> VenueReport:
        """The report of these hexadecimal digits, in either form."""
        try:
            data = raw(text)
        except ValueError as error:
            raise ProofError(f"a report of a fill is hexadecimal digits: {error}") from None
        if len(data) == _SINGLE_BYTES:
            return cls._of(data, None)
        if len(data) < _STEP_BYTES or data[0] != 1:
            raise ProofError(f"{len(data)} bytes are no report of a fill")
        step, told = data[1 + _SINGLE_BYTES :], data[1 : 1 + _SINGLE_BYTES]
        number, clock_ms = (int.from_bytes(step[at : at + 8], "little") for at in (0, 8))
        size, place, count = (int.from_bytes(step[at : at + 4], "little") for at in (16, 20, 24))
        path = tuple(step[at : at + 32] for at in range(28, len(step), 32))
        fits = place < size <= _LEAVES_MAX and len(path) == count == len(_sides(size, place))
        if not fits or len(step) != 28 + 32 * count:
            raise ProofError("the path of the report does not fit the number of leaves and the place")
        return cls._of(told, VenueStep(number, clock_ms, size, place, path))

    @classmethod
    def _of(cls, told: bytes, step: VenueStep | None) -> VenueReport:
        venue, incarnation, index = (int.from_bytes(told[at:to], "little") for at, to in ((0, 4), (4, 8), (8, 16)))
        spans = ((16, 48), (48, 68), (68, 100), (100, 164))
        leaf, account, key, signature = ("0x" + told[at:to].hex() for at, to in spans)
        return cls(venue, incarnation, index, leaf, account, key, signature, step)

    def is_signed(self, network: str) -> bool:
        """Whether the key that it names signed it for this network. Whether the venue has that key, the ledger says."""
        place = raw(network) + u32(self.venue) + u32(self.incarnation)
        told = u64(self.index) + raw(self.leaf) + raw(self.account)
        if self.step is None:
            message = b"walras venue report v1\0" + place + told
        else:
            step = self.step
            times = u64(step.number) + u64(step.clock_ms)
            message = b"walras venue step v1\0" + place + times + u32(step.size) + step.root(told)
        try:
            VerifyKey(raw(self.key)).verify(message, raw(self.signature))
        except (BadSignatureError, ValueError):
            return False
        return True
