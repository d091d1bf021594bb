"""Committees of the chain: who signs its states, and how a client that knows one committee learns the next.

Pure: bytes in, a committee or a `ProofError` out. The layouts are those of `/v1/handovers` and `/v1/validators/proof`.
"""

from __future__ import annotations

from dataclasses import dataclass

from walras.client.proof import ProofError, Reader
from walras.purse.lane import ed25519
from walras.purse.lane.committee import Quorums
from walras.purse.lane.layout import derived, u64

__all__ = [
    "Certificate",
    "Chain",
    "Handover",
    "Registry",
    "Schedule",
    "outcome_of",
    "read_certificate",
    "read_handover",
    "read_parts",
    "read_validators",
]

FOREVER = (1 << 64) - 1
MEMBERS_MAX = 256
ESCROW, STAKES, CHARTER = 4, 5, 8
"""Tags of parts of the state root."""


@dataclass(frozen=True)
class Schedule:
    """The heights at which committees change; 0 heights where they never do."""

    epoch_heights: int
    delay: int

    @property
    def is_fixed(self) -> bool:
        return self.epoch_heights == 0

    def epoch_of(self, height: int) -> int:
        return 0 if self.is_fixed else max(0, height - self.delay - 1) // self.epoch_heights

    def last_height(self, epoch: int) -> int:
        return FOREVER if self.is_fixed else (epoch + 1) * self.epoch_heights + self.delay

    def decides(self, epoch: int, height: int) -> bool:
        first = 1 if epoch == 0 else self.last_height(epoch - 1) + 1
        return first <= height <= self.last_height(epoch)


@dataclass(frozen=True)
class Chain:
    """An epoch of a chain, and the keys of its validators by index."""

    network: bytes
    schedule: Schedule
    epoch: int
    keys: tuple[bytes, ...]


@dataclass(frozen=True)
class Certificate:
    """What a quorum signed: that a height has ended, and the outcome of one some heights below."""

    epoch: int
    height: int
    block: bytes
    outcome: bytes
    signatures: tuple[tuple[int, bytes], ...]

    def verify(self, chain: Chain) -> None:
        if self.epoch != chain.epoch or not chain.schedule.decides(self.epoch, self.height):
            raise ProofError(f"height {self.height} of the certificate is not of epoch {chain.epoch}")
        signers, needed = [signer for signer, _ in self.signatures], Quorums(len(chain.keys)).certificate
        if len(signers) < needed:
            raise ProofError(f"{len(signers)} validators signed, and {needed} are needed")
        if signers != sorted(set(signers)):
            raise ProofError("the signers are not in ascending order, each once")
        statement = chain.network + u64(self.epoch) + u64(self.height) + self.block + self.outcome
        digest = derived("walras 2026 consensus commit v1", statement)
        for signer, signature in self.signatures:
            if signer >= len(chain.keys) or not ed25519.holds(chain.keys[signer], digest, signature):
                raise ProofError(f"the signature of validator {signer} is wrong")


def read_certificate(reader: Reader) -> Certificate:
    epoch, height = reader.number(8), reader.number(8)
    block, outcome = reader.take(32), reader.take(32)
    count = reader.number(4)
    signatures = tuple((reader.number(1), reader.take(64)) for _ in range(min(count, MEMBERS_MAX + 1)))
    return Certificate(epoch, height, block, outcome, signatures)


def outcome_of(state: bytes, receipts: bytes) -> bytes:
    """What a certificate signs of a block."""
    return derived("walras 2026 outcome of a block v1", state + receipts)


def read_parts(reader: Reader) -> tuple[bytes, dict[int, bytes]]:
    """The state root, and its parts by tag."""
    begun, tags = reader.at, []
    parts = {}
    for _ in range(reader.number(4)):
        tags.append(reader.number(1))
        parts[tags[-1]] = reader.take(32)
    if tags != sorted(set(tags)):
        raise ProofError("the parts of the root are not in the order of their tags")
    return derived("walras 2026 state root v4", reader.data[begun : reader.at]), parts


@dataclass(frozen=True)
class Registry:
    """The validators of a chain, as a state has them."""

    digest: bytes
    network: bytes
    schedule: Schedule
    unbonding_epochs: int
    first_epoch: int
    committees: tuple[tuple[bytes, ...], ...]

    def committee(self, epoch: int) -> tuple[bytes, ...] | None:
        at = epoch - self.first_epoch
        return self.committees[at] if 0 <= at < len(self.committees) else None


def _read_member(reader: Reader) -> bytes:
    reader.take(20)
    key = reader.take(32)
    reader.take(reader.number(4))
    reader.take(8)
    return key


def _skip_validator(reader: Reader) -> None:
    _read_member(reader)
    reader.take(16 * reader.number(4))
    reader.take(1 + 8)


def _read_registry(reader: Reader) -> Registry:
    begun = reader.at
    network, schedule = reader.take(32), Schedule(reader.number(8), reader.number(8))
    reader.take(4 + 8)
    unbonding_epochs = reader.number(8)
    reader.take(8 + 4 + 8)
    for _ in range(reader.number(4)):
        _skip_validator(reader)
    first_epoch, committees = reader.number(8), []
    for _ in range(reader.number(4)):
        committees.append(tuple(_read_member(reader) for _ in range(reader.number(4))))
    digest = derived("walras 2026 validators v2", reader.data[begun : reader.at])
    return Registry(digest, network, schedule, unbonding_epochs, first_epoch, tuple(committees))


def _read_charter(reader: Reader) -> bytes:
    """The root of the charter: its rules, and the digest of the rest."""
    begun = reader.at
    reader.take(4 + 32 + 8 + 4 + 32)
    if reader.number(1):
        reader.take(4 + 32 + 8 + 8 + 1 + 1)
    reader.take(32)
    return derived("walras 2026 charter v1", reader.data[begun : reader.at])


def read_validators(reader: Reader) -> tuple[bytes, Registry]:
    """A state root, and the registry of validators in it."""
    state, parts = read_parts(reader)
    registry, charter = _read_registry(reader), _read_charter(reader)
    if parts.get(STAKES) != registry.digest or parts.get(CHARTER) != charter:
        raise ProofError("the registry of validators is not that of the state")
    return state, registry


@dataclass(frozen=True)
class Handover:
    """The proof of an epoch's committee, for a client that trusts the committee of the epoch before."""

    certificate: Certificate
    receipts: bytes
    state: bytes
    registry: Registry

    def follow(self, chain: Chain) -> Chain:
        """The next epoch."""
        epoch = chain.epoch + 1
        self.certificate.verify(chain)
        if self.certificate.outcome != outcome_of(self.state, self.receipts):
            raise ProofError(f"the handover to epoch {epoch} contains another outcome than the signed one")
        if (self.registry.network, self.registry.schedule) != (chain.network, chain.schedule):
            raise ProofError(f"the handover to epoch {epoch} belongs to another network")
        keys = self.registry.committee(epoch)
        if keys is None or not 1 <= len(keys) <= MEMBERS_MAX:
            raise ProofError(f"the handover to epoch {epoch} contains a state without its committee")
        return Chain(chain.network, chain.schedule, epoch, keys)


def read_handover(data: bytes) -> Handover:
    reader = Reader(data)
    certificate, receipts = read_certificate(reader), reader.take(32)
    state, registry = read_validators(reader)
    reader.end()
    return Handover(certificate, receipts, state, registry)
