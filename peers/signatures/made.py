"""Signatures and hashes whose right answers are known, for tools in any language: prints them as JSON.

The owner of an Ed25519 key makes three signatures of one message: one by RFC 8032, one whose R has a part of order eight, and
one under a public key that has such a part. ZIP-215, by which Walras verifies, accepts all three. RFC 8032 lets a verifier
choose: it may multiply by the cofactor or not, and only one that does accepts the last two.
"""

import hashlib
import json

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int]


def x_of(y: int) -> int:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    return x if x * x % P == square else x * ROOT % P


def added(one: Point, other: Point) -> Point:
    (a, b), (c, d) = one, other
    both = D * a * b * c * d % P
    return (a * d + b * c) * pow(1 + both, -1, P) % P, (b * d + a * c) * pow(1 - both, -1, P) % P


def times(scalar: int, point: Point) -> Point:
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = added(result, point)
        point, scalar = added(point, point), scalar >> 1
    return result


def packed(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def of_order_eight() -> Point:
    """The first point of order eight among those with the smallest y, found by multiplying by the order of the group."""
    for y in range(2, 200):
        x = x_of(y)
        if (x * x * (D * y * y + 1) - (y * y - 1)) % P == 0:
            small = times(ORDER, (x, y))
            if times(4, small) != (0, 1):
                return small
    raise AssertionError("no point of order eight")


y = 4 * pow(5, -1, P) % P
BASE = (x_of(y) if x_of(y) % 2 == 0 else P - x_of(y), y)
EIGHTH = of_order_eight()
MESSAGE = b"walras native transaction v3\0" + bytes(32)


def number(content: bytes) -> int:
    return int.from_bytes(hashlib.sha512(content).digest(), "little")


def signature(key_part: int, r_part: int) -> dict[str, str]:
    digest = hashlib.sha512(bytes([7]) * 32).digest()
    secret = int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | 1 << 254
    key = packed(added(times(secret, BASE), times(key_part, EIGHTH)))
    nonce = number(digest[32:] + MESSAGE) % ORDER
    r = packed(added(times(nonce, BASE), times(r_part, EIGHTH)))
    s = (nonce + number(r + key + MESSAGE) * secret) % ORDER
    return {"key": key.hex(), "message": MESSAGE.hex(), "signature": (r + s.to_bytes(32, "little")).hex()}


CONTEXT = "walras 2026 ed25519 address v1"
# Keys that BLAKE3 derives from so many bytes 7: of one chunk, just one chunk, one byte more, and five chunks.
DERIVED = {
    32: "50d90ab8f870d48c6fcab6a1d551d724bbe3bda428b104ac941837c45b484a62",
    1024: "139c6a9709fb38f0727591c5cfb0fcda525309968221e190aeaa85f27a9be96a",
    1025: "3c45b88507967f90f66c93e0a6c966e22f072be39e331304b8a312ad712fe291",
    5000: "092172dbc3212ba7f287d3289d47634711442d3e2451118e06b32ad9151c1d10",
}
# Round 1,000 of the public beacon quicknet: a signature in G1 of a key in G2, as the payment lane has them.
BEACON = {
    "key": "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec75"
    "8c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a",
    "message": "f652498d092acd949bad74e40683bf3824fb817980504a0c7e6722cfc5a9c0a3",
    "signature": "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
    "tag": "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_",
}

if __name__ == "__main__":
    ed25519 = {"plain": signature(0, 0), "mixed R": signature(0, 1), "mixed key": signature(1, 0)}
    print(json.dumps({"ed25519": ed25519, "context": CONTEXT, "derived": DERIVED, "bls": BEACON}))
