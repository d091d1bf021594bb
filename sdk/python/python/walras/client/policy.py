"""Accounts with a policy: several keys sign together, as docs/specification.md describes it.

A `PolicyRequest` is what signers pass on: the body, the id of the account's last change of keys, and the signatures so
far. A `KeyConsent` is what they sign to agree to a change of keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError

from walras.client.encoding import Body, address_bytes, derived, raw, u32
from walras.client.operations import RecoverKeys, SetKeys

if TYPE_CHECKING:
    from walras.client.keys import Ed25519Key, EthereumKey

__all__ = ["KeyConsent", "PolicyRequest", "missing_weight", "policy_salt"]

_REQUEST_TAG = b"walras request of a policy v1\0"
_SET_TAG = b"walras change of keys v1\0"
_RECOVER_TAG = b"walras recovery of keys v1\0"
_SIGNATURES = 2
"""Fields at the end of an operation that consents do not cover: both lists of signatures."""


def policy_salt(network: str, account: str, last: str) -> str:
    """The salt of what a wallet signs for an account with a policy."""
    message = raw(network) + address_bytes(account) + raw(last)
    return "0x" + derived("walras 2026 salt of a policy v1", message).hex()


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """A request of an account with a policy, with the signatures so far."""

    body: Body
    last: str
    """The id of the account's last change of keys."""
    network: str
    keys: dict[str, str] = field(default_factory=dict)
    """Signatures by public key."""
    wallets: dict[str, str] = field(default_factory=dict)
    """Compact signatures by the address of a wallet, in lower case."""

    @property
    def signing_bytes(self) -> bytes:
        """What ed25519 keys sign."""
        return _REQUEST_TAG + raw(self.network) + raw(self.last) + self.body.encode()

    @property
    def typed_hash(self) -> bytes:
        """What wallets sign (EIP-712)."""
        return self.body.typed_hash(policy_salt(self.network, self.body.account, self.last))

    @property
    def id(self) -> str:
        """Its id, whoever has signed."""
        return "0x" + derived("walras 2026 policy transaction id v1", self.body.encode()).hex()

    def signed(self, key: Ed25519Key | EthereumKey) -> PolicyRequest:
        """With the signature of a signer."""
        if hasattr(key, "sign_bytes"):
            return replace(self, keys=self.keys | {key.public: key.sign_bytes(self.signing_bytes)})
        return replace(self, wallets=self.wallets | {key.address: key.sign_hash(self.typed_hash)})

    def is_valid(self) -> bool:
        """Whether each signature of an ed25519 key is valid. Nodes check those of wallets, too."""
        return all(_holds(key, signature, self.signing_bytes) for key, signature in self.keys.items())

    def encode(self) -> bytes:
        """The transaction, to be submitted to ``/v1/transactions``."""
        seal = b"\2" + raw(self.last) + _listed(self.keys) + _listed(self.wallets)
        return self.body.encode() + seal


@dataclass(frozen=True, slots=True)
class KeyConsent:
    """What signers agree to: a change of keys, whatever signatures its operation has."""

    operation: SetKeys | RecoverKeys
    chain: int
    network: str

    @property
    def change(self) -> bytes:
        """The change in its wire encoding."""
        fields = self.operation.encode()[len(self.operation.CODE) :]
        lists = self.operation.FIELDS[-_SIGNATURES:]
        tail = sum(len(_entries(getattr(self.operation, one.attribute))) for one in lists)
        first = 32 if isinstance(self.operation, SetKeys) else 0
        return fields[: len(fields) - tail - first]

    @property
    def signing_bytes(self) -> bytes:
        """What ed25519 keys sign."""
        tag = _SET_TAG if isinstance(self.operation, SetKeys) else _RECOVER_TAG
        return tag + raw(self.network) + self.change

    @property
    def change_id(self) -> str:
        """What is signed for the account names it from then on."""
        kind = "change" if isinstance(self.operation, SetKeys) else "recovery"
        return "0x" + derived(f"walras 2026 {kind} of keys v1", self.change).hex()


def _holds(key: str, signature: str, message: bytes) -> bool:
    try:
        crypto_sign_open(raw(signature) + message, raw(key))
    except (BadSignatureError, ValueError):
        return False
    return True


def _entries(entries: Any) -> bytes:
    return u32(len(entries)) + b"".join(entry.encode() for entry in entries)


def _listed(signatures: dict[str, str]) -> bytes:
    pairs = sorted((raw(who), raw(signature)) for who, signature in signatures.items())
    return u32(len(pairs)) + b"".join(who + signature for who, signature in pairs)


def missing_weight(policy: dict[str, Any], request: PolicyRequest, needed: str = "move") -> int:
    """How much weight a request lacks, by the `policy` that ``/v1/accounts/…`` shows under `keys`; `needed` is ``move``
    or ``govern``."""
    signed = {*request.keys, *request.wallets}
    signers = [(one["key"], one["weight"]) for one in policy["keys"]]
    signers += [(one["wallet"].lower(), one["weight"]) for one in policy["wallets"]]
    has = sum(int(weight) for who, weight in signers if who in signed)
    return max(0, int(policy[needed]) - has)
