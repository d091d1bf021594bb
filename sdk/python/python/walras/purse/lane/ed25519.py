"""Ed25519 by the one rule: ZIP-215. The library answers fast; what it refuses is checked again by the wider rule."""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from walras.purse.lane.layout import derived

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)

Point = tuple[int, int]
NEUTRAL: Point = (0, 1)


def add(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    product = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, P - 2, P) % P
    y = (y1 * y2 + x1 * x2) * pow(1 - product, P - 2, P) % P
    return x, y


def multiply(scalar: int, point: Point) -> Point:
    result = NEUTRAL
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def decode(data: bytes) -> Point | None:
    """A point, also of a y that is not reduced, and of x = 0 with its sign set."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, (number & (1 << 255) - 1) % P
    numerator, denominator = (y * y - 1) % P, (D * y * y + 1) % P
    square = numerator * pow(denominator, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        return None
    return (-x % P if x & 1 != sign else x), y


BASE = decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def holds_by_zip215(key: bytes, message: bytes, signature: bytes) -> bool:
    a, r, s = decode(key), decode(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= ORDER or BASE is None:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    return multiply(8 * s, BASE) == add(multiply(8, r), multiply(8 * k, a))


def holds(key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return holds_by_zip215(key, message, signature)


def public(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def sign(seed: bytes, message: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


def account(key: bytes) -> bytes:
    return derived("walras 2026 ed25519 address v1", key)[:20]
