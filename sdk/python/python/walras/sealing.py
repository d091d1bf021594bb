"""Envelopes: orders that nobody reads before the block that holds them is decided.

The scheme is that of the crate ``sealing``; ``docs/sealed-vectors.json`` has each intermediate value.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from walras import _walras

__all__ = ["Envelope", "EnvelopeTerms", "is_opening_key", "label_of", "open_envelope", "seal"]


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
