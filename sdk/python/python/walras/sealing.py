"""Envelopes: orders that nobody reads before the block that holds them is decided.

The scheme is that of the crate ``sealing``; ``docs/sealed-vectors.json`` has each intermediate value.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from walras import _walras
from walras.client.encoding import Body, Signed, derived

__all__ = [
    "Enclosure",
    "Envelope",
    "EnvelopeTerms",
    "is_opening_key",
    "label_of",
    "open_envelope",
    "seal",
]


@dataclass(frozen=True)
class EnvelopeTerms:
    """What everybody sees of an envelope beside its point and box; its sender signs all of it."""

    network: bytes
    """The identity of the network, 32 bytes."""
    signer: bytes
    """The ed25519 key that signs the envelope, 32 bytes."""
    key: int
    """The number of the committee's key."""
    payer: bytes
    """The account that pays for it, 20 bytes."""
    sequence: int
    """Its number among the transactions of the signer."""
    until: int
    """The last height that may hold it."""

    def _fields(self) -> _walras.Terms:
        return (self.network, self.signer, self.key, self.payer, self.sequence, self.until)


@dataclass(frozen=True)
class Enclosure:
    """The envelope for which an operation in it is signed. The signature is valid nowhere else."""

    network: bytes
    """The identity of the network, 32 bytes."""
    payer: bytes
    """The account that pays for the envelope, 20 bytes."""
    sequence: int
    """The number of the envelope."""

    def _bytes(self) -> bytes:
        return self.network + self.payer + self.sequence.to_bytes(8, "little")

    def signing_bytes(self, body: Body) -> bytes:
        """What an ed25519 key signs of an operation in the envelope."""
        return b"walras native sealed transaction v1\0" + self._bytes() + body.encode()

    def typed_hash(self, body: Body) -> bytes:
        """What an Ethereum wallet's key signs of it (EIP-712)."""
        return body.typed_hash("0x" + self.salt().hex(), "Walras sealed")

    def salt(self) -> bytes:
        """The salt in the domain of that typed data."""
        return derived("walras 2026 sealed salt v1", self._bytes())

    def id_of(self, signed: Signed) -> str:
        """The id of an operation in the envelope, which its signature is no part of."""
        kind, who = signed.encoded[len(signed.body)], signed.encoded[len(signed.body) + 1 : -64]
        typed = "walras 2026 sealed typed data transaction id v1"
        context = "walras 2026 sealed transaction id v1" if kind == 0 else typed
        bound = self.payer + self.sequence.to_bytes(8, "little")
        return "0x" + derived(context, bound + signed.body + who).hex()


@dataclass(frozen=True)
class Envelope:
    """A sealed text."""

    size: int
    """0, 1 or 2: a box of 512, 2,048 or 8,192 bytes."""
    point: bytes
    """A point of G2, 96 bytes."""
    box: bytes
    """The sealed text."""


def label_of(terms: EnvelopeTerms, size: int, point: bytes) -> bytes:
    """The identity of an envelope, 32 bytes, which the committee signs to open it."""
    return bytes(_walras.sealed_label(terms._fields(), size, point))


def seal(
    committee: bytes,
    terms: EnvelopeTerms,
    operations: Sequence[bytes],
    drawn: bytes | None = None,
) -> Envelope:
    """Seals whole signed operations, at most 32, to a committee's key of 96 bytes.

    ``drawn`` is 32 random bytes for this envelope alone. Sealing again with them makes the same envelope.

    Raises:
        ValueError: the key is no point, an operation is none, or there are too many.
    """
    drawn = secrets.token_bytes(32) if drawn is None else drawn
    size, point, box = _walras.seal(committee, terms._fields(), list(operations), drawn)
    return Envelope(size, bytes(point), bytes(box))


def is_opening_key(committee: bytes, label: bytes, key: bytes) -> bool:
    """Whether a key opens the envelope of a label that is sealed to a committee."""
    return _walras.opens(committee, label, key)


def open_envelope(envelope: Envelope, label: bytes, key: bytes) -> list[bytes]:
    """The operations of an envelope, by a key that :func:`is_opening_key` has checked.

    Raises:
        ValueError: a point is none, the box has another size, or it holds no operations.
    """
    opened = _walras.open_sealed(envelope.size, envelope.point, envelope.box, label, key)
    return [bytes(operation) for operation in opened]
