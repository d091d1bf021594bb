"""Certificates: what a quorum of validators signed, so that no node has to be believed.

Validators sign for each height a digest of the state root and the receipts root of a block some heights below. Whoever
knows the keys of an epoch's committee (`Committee`) checks with them that a balance or an outcome is one that the
network certified. Keys come from the operators, or from a node on first use: they are as good as their source. A
committee that is replaced is not followed here (`/v1/handovers`): a certificate of another epoch is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from walras.client.encoding import derived, raw
from walras.client.proof import ProofError, Reader, prove, read_outcome

__all__ = ["Committee", "check_certificate", "outcome_bytes", "prove_outcome"]

_EXACT_REASONS = ["filled", "no_price", "beyond_bound", "group_not_full", "no_room"]
_REASONS = ["filled", "part", "at_the_margin", "above_the_rate", "rounding", "not_taken", "not_placed"]


@dataclass(frozen=True, slots=True)
class Committee:
    """The validators of an epoch, by index."""

    keys: tuple[str, ...]
    epoch: int = 0

    @property
    def quorum(self) -> int:
        """As many signers that any two quorums share a correct one."""
        faulty = (len(self.keys) - 1) // 3
        return (len(self.keys) + faulty) // 2 + 1


def check_certificate(certificate: bytes, network: str, committee: Committee, state: bytes, receipts: bytes) -> int:
    """Checks that a quorum signed the roots of a block; returns the height at which it did. Raises a `ProofError`."""
    reader = Reader(certificate)
    head = reader.take(8 + 8 + 32 + 32)
    epoch, height = (int.from_bytes(head[at : at + 8], "little") for at in (0, 8))
    if epoch != committee.epoch:
        raise ProofError(f"the certificate is of epoch {epoch}, and the known committee of epoch {committee.epoch}")
    if head[48:] != derived("walras 2026 outcome of a block v1", state + receipts):
        raise ProofError("the certificate is for other roots")
    digest = derived("walras 2026 consensus commit v1", raw(network) + head)
    signers: list[int] = []
    for _ in range(reader.number(4)):
        signer, signature = reader.number(1), reader.take(64)
        if signers and signer <= signers[-1]:
            raise ProofError("the signers are not in ascending order, each once")
        signers.append(signer)
        try:
            VerifyKey(raw(committee.keys[signer])).verify(digest, signature)
        except (BadSignatureError, IndexError, ValueError) as error:
            raise ProofError(f"the signature of validator {signer} is wrong") from error
    reader.end()
    if len(signers) < committee.quorum:
        raise ProofError(f"{len(signers)} validators signed, and {committee.quorum} are needed")
    return height


def prove_outcome(id: bytes, root: bytes, proof: bytes) -> bytes | None:
    """The encoded outcome of a transaction in the block with this receipts root; None if it is proved to have none."""
    reader = Reader(proof)
    outcome = read_outcome(reader)
    parts = reader.take(5 * 32)
    if derived("walras 2026 receipts root v4", parts) != root:
        raise ProofError("the proof is for another receipts root")
    path = reader.take(reader.number(4))
    reader.end()
    found = prove(id, parts[:32], path)
    if found != (derived("walras 2026 receipt v1", outcome) if outcome is not None else None):
        raise ProofError("the proof states another outcome than its path proves")
    return outcome


def outcome_bytes(stated: Any, proved: bytes | None) -> bytes | None:
    """The encoding of an outcome as a node states it. The codes of refusals are words of the node, so of a refusal only
    that it is one is compared."""
    match stated["result"]:
        case "applied":
            return b"\0"
        case "offered":
            amounts = [int(stated[name]) for name in ("sold", "bought", "left", "returned")]
            reason = _REASONS.index(stated["why"])
            return b"\1" + b"".join(amount.to_bytes(8, "little") for amount in amounts) + bytes([reason])
        case "refused" if proved is not None and proved[0] == 2:
            return proved
        case "void":
            return b"\3"
        case "replaced":
            amounts = [int(stated[name]) for name in ("remained", "sold", "bought", "left", "returned")]
            reason = _REASONS.index(stated["why"])
            return b"\5" + b"".join(amount.to_bytes(8, "little") for amount in amounts) + bytes([reason])
        case "pooled":
            return b"\6" + b"".join(int(stated[name]).to_bytes(8, "little") for name in ("a", "b", "shares"))
        case "exact":
            amounts = [int(stated[name]) for name in ("sold", "bought", "returned")]
            reason = _EXACT_REASONS.index(stated["why"])
            return b"\7" + b"".join(amount.to_bytes(8, "little") for amount in amounts) + bytes([reason])
        case "listed":
            return b"\x08" + int(stated["number"]).to_bytes(4, "little")
        case "sealed":
            match stated["became"]:
                case "opened":
                    return bytes([9, 0, stated["operations"]])
                case "garbage":
                    return b"\x09\1"
                case _ if proved is not None and proved[:2] == b"\x09\2":
                    return proved
            return None
        case "cancelled":
            return bytes([4, stated["found"], stated["missing"]])
    return None
