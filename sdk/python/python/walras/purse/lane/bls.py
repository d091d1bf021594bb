"""BLS12-381 with keys in G2 and signatures in G1, under our tags, by one of the libraries that can.

Each backend parses points (in the subgroup, not the identity), adds them, multiplies them, and compares two pairings.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Protocol

from walras.purse.lane.layout import Refused, u8, u64

SIGNATURES = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
POSSESSIONS = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_"
GENERATOR = bytes.fromhex(
    "93e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
)
ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


class Backend(Protocol):
    """Points are opaque; `None` is no point."""

    def key(self, data: bytes) -> Any: ...
    def signature(self, data: bytes) -> Any: ...
    def add(self, one: Any, other: Any) -> Any: ...
    def multiply(self, point: Any, scalar: int) -> Any: ...
    def key_bytes(self, point: Any) -> bytes: ...
    def signature_bytes(self, point: Any) -> bytes: ...
    def holds(self, key: Any, message: bytes, tag: bytes, signature: Any) -> bool: ...


def is_identity(data: bytes) -> bool:
    return data[0] & 0x40 != 0


class Blst:
    """`pyblst`: blst in Rust."""

    def __init__(self) -> None:
        self.lib: Any = importlib.import_module("pyblst")
        self.generator = self.lib.BlstP2Element().uncompress(GENERATOR)

    def _parse(self, kind: Any, data: bytes) -> Any:
        try:
            return None if is_identity(data) else kind().uncompress(data)
        except ValueError:
            return None

    def key(self, data: bytes) -> Any:
        return self._parse(self.lib.BlstP2Element, data)

    def signature(self, data: bytes) -> Any:
        return self._parse(self.lib.BlstP1Element, data)

    def add(self, one: Any, other: Any) -> Any:
        return one + other

    def multiply(self, point: Any, scalar: int) -> Any:
        return point.scalar_mul(scalar)

    def key_bytes(self, point: Any) -> bytes:
        return bytes(point.compress())

    signature_bytes = key_bytes

    def holds(self, key: Any, message: bytes, tag: bytes, signature: Any) -> bool:
        hashed = self.lib.BlstP1Element().hash_to_group(message, tag)
        pair = self.lib.miller_loop
        return bool(self.lib.final_verify(pair(hashed, key), pair(signature, self.generator)))


class Arkworks:
    """`py-arkworks-bls12381`: arkworks in Rust."""

    def __init__(self) -> None:
        self.lib: Any = importlib.import_module("py_arkworks_bls12381")
        self.generator = self.lib.G2Point.from_compressed_bytes(GENERATOR)

    def _parse(self, kind: Any, data: bytes) -> Any:
        try:
            return None if is_identity(data) else kind.from_compressed_bytes(data)
        except ValueError:
            return None

    def key(self, data: bytes) -> Any:
        return self._parse(self.lib.G2Point, data)

    def signature(self, data: bytes) -> Any:
        return self._parse(self.lib.G1Point, data)

    def add(self, one: Any, other: Any) -> Any:
        return one + other

    def multiply(self, point: Any, scalar: int) -> Any:
        return point * self.lib.Scalar.from_le_bytes((scalar % ORDER).to_bytes(32, "little"))

    def key_bytes(self, point: Any) -> bytes:
        return bytes(point.to_compressed_bytes())

    signature_bytes = key_bytes

    def holds(self, key: Any, message: bytes, tag: bytes, signature: Any) -> bool:
        hashed = self.lib.G1Point.hash_to_curve(message, tag)
        one = self.lib.GT.pairing(hashed, key)
        return bool(one == self.lib.GT.pairing(signature, self.generator))


class PyEcc:
    """`py_ecc`: Python alone."""

    def __init__(self) -> None:
        self.curve: Any = importlib.import_module("py_ecc.optimized_bls12_381")
        self.hashes: Any = importlib.import_module("py_ecc.bls.hash_to_curve")
        self.points: Any = importlib.import_module("py_ecc.bls.point_compression")

    def _checked(self, point: Any, equation: Any) -> Any:
        is_on = self.curve.is_on_curve(point, equation) and not self.curve.is_inf(point)
        return point if is_on and self.curve.is_inf(self.curve.multiply(point, ORDER)) else None

    def key(self, data: bytes) -> Any:
        try:
            halves = int.from_bytes(data[:48], "big"), int.from_bytes(data[48:], "big")
            return self._checked(self.points.decompress_G2(halves), self.curve.b2)
        except ValueError:
            return None

    def signature(self, data: bytes) -> Any:
        try:
            return self._checked(self.points.decompress_G1(int.from_bytes(data, "big")), self.curve.b)
        except ValueError:
            return None

    def add(self, one: Any, other: Any) -> Any:
        return self.curve.add(one, other)

    def multiply(self, point: Any, scalar: int) -> Any:
        return self.curve.multiply(point, scalar % ORDER)

    def key_bytes(self, point: Any) -> bytes:
        return b"".join(int(half).to_bytes(48, "big") for half in self.points.compress_G2(point))

    def signature_bytes(self, point: Any) -> bytes:
        return int(self.points.compress_G1(point)).to_bytes(48, "big")

    def holds(self, key: Any, message: bytes, tag: bytes, signature: Any) -> bool:
        hashed = self.hashes.hash_to_G1(message, tag, sha256)
        one = self.curve.pairing(key, hashed)
        return bool(one == self.curve.pairing(self.curve.G2, signature))


BACKENDS: dict[str, Callable[[], Backend]] = {"pyblst": Blst, "py_arkworks_bls12381": Arkworks, "py_ecc": PyEcc}
_chosen: list[Backend] = []


def installed() -> list[str]:
    """The libraries that are here, the fastest one first."""
    return [name for name in BACKENDS if importlib.util.find_spec(name)]


def use(name: str) -> Backend:
    """Chooses a library for everything that follows."""
    _chosen[:] = [BACKENDS[name]()]
    return _chosen[0]


def library() -> Backend:
    if not _chosen:
        found = installed()
        if not found:
            raise ImportError(f"BLS needs one of {', '.join(BACKENDS)}: pip install pyblst")
        use(found[0])
    return _chosen[0]


def key(data: bytes) -> Any:
    """A key in the subgroup that is not the identity."""
    point = library().key(data)
    if point is None:
        raise Refused("WrongBlsKey", "no key")
    return point


def total(points: list[Any]) -> Any:
    result = points[0]
    for point in points[1:]:
        result = library().add(result, point)
    return result


def holds(key: Any, message: bytes, signature: bytes, tag: bytes = SIGNATURES) -> bool:
    point = library().signature(signature)
    return point is not None and library().holds(key, message, tag, point)


def signed(network: bytes, epoch: int, kind: int, scheme: int, digest: bytes) -> bytes:
    """The bytes that a member signs."""
    return b"walras-lane\x01" + network + u64(epoch) + u8(kind) + u8(scheme) + digest
