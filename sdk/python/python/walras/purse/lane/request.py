"""Requests of clients to shards."""

from __future__ import annotations

from walras.purse.lane import ed25519
from walras.purse.lane.certificate import Certificate
from walras.purse.lane.layout import u8, u16, u32, u64
from walras.purse.lane.payment import QUESTION, Payment, Summary, head
from walras.purse.lane.receipt import PaidProof, encode_proof

SPEND, SETTLE, BATCH, ASK, UNDER_BLS = 1, 2, 3, 4, 5


def spend(payment: Payment, signature: bytes, proofs: list[PaidProof | None]) -> bytes:
    return u8(SPEND) + payment.encode() + signature + b"".join(map(encode_proof, proofs))


def settle(summary: Summary, certificate: Certificate) -> bytes:
    return u8(SETTLE) + summary.encode() + certificate.encode()


def batch(requests: list[bytes]) -> bytes:
    return u8(BATCH) + u16(len(requests)) + b"".join(u32(len(one)) + one for one in requests)


def question_bytes(network: bytes, home: int, output: bytes) -> bytes:
    return head(QUESTION, network, home) + output


def question(network: bytes, home: int, seed: bytes, output: bytes) -> bytes:
    signature = ed25519.sign(seed, question_bytes(network, home, output))
    return u8(ASK) + u64(home) + ed25519.public(seed) + output + signature


def under(scheme: int, request: bytes) -> bytes:
    """The request for an answer under a scheme; answers in trees are asked for as they are."""
    return u8(UNDER_BLS) + u8(scheme) + request if scheme else request
