"""Keys, and the files that keep them.

An `Ed25519Key` signs native transactions. An `EthereumKey` signs the same as typed data (EIP-712): its account is the
one that an Ethereum wallet shows. A key file is the one of ``walras wallet``: encrypted with a passphrase (Argon2id,
XChaCha20-Poly1305), readable only by its owner.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from coincurve import PrivateKey
from nacl import bindings, exceptions, pwhash
from nacl.signing import SigningKey
from nacl.utils import random

from walras.client.encoding import (
    SIGNED_TAG,
    Body,
    Fields,
    Signed,
    derived,
    hash_struct,
    keccak256,
    raw,
    session_possession_bytes,
)
from walras.client.errors import KeyFileError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Ed25519Key", "EthereumKey", "Key", "LoginTerms"]

_LOGIN_TAG = b"walras stream login v1\0"
_MEMORY_KIB, _PASSES = 64 << 10, 3
_MEMORY_KIB_MAX, _PASSES_MAX = 1 << 20, 16
"""The most that a file may request, so that none makes a program use gigabytes."""


class Within(Protocol):
    """An envelope that an operation is signed for: `walras.sealing.Enclosure`."""

    @property
    def network(self) -> bytes:
        """The identity of the network."""

    def signing_bytes(self, body: Body) -> bytes:
        """What an ed25519 key signs."""

    def typed_hash(self, body: Body) -> bytes:
        """What a wallet signs."""


class Key(Protocol):
    """What signs."""

    @property
    def address(self) -> str:
        """The address of the account that it controls from the start."""

    @property
    def public(self) -> str:
        """The public key, of which session keys are known; that of a wallet is its address."""

    def sign(self, body: Body, network: str) -> Signed:
        """A body, signed for a network."""

    def sign_inside(self, body: Body, within: Within) -> Signed:
        """A body, signed for an envelope: the signature is valid nowhere else."""

    def login(self, terms: LoginTerms) -> dict[str, str]:
        """What a login on the stream says beside the account: `signature`, and the `key` of an ed25519 key."""


@dataclass(frozen=True, slots=True)
class LoginTerms:
    """What a login on the stream signs: the nonce of a connection's challenge, and the server as the client called it."""

    account: str
    nonce: str
    server: str
    chain: int
    network: str

    @property
    def signed_bytes(self) -> bytes:
        """What an ed25519 key signs."""
        return _LOGIN_TAG + raw(self.network) + raw(self.account) + raw(self.nonce) + self.server.encode()

    @property
    def typed_hash(self) -> bytes:
        """What a wallet signs: typed data (EIP-712)."""
        names: Fields = [("name", "string", "Walras"), ("version", "string", "1")]
        domain: Fields = [*names, ("chainId", "uint256", str(self.chain)), ("salt", "bytes32", self.network)]
        message: Fields = [("account", "address", self.account), ("nonce", "bytes32", self.nonce)]
        message.append(("server", "string", self.server))
        return keccak256(b"\x19\x01" + hash_struct("EIP712Domain", domain) + hash_struct("StreamLogin", message))


class Ed25519Key:
    """A key of the ledger's own kind."""

    def __init__(self, seed: bytes | str) -> None:
        bytes_of = raw(seed) if isinstance(seed, str) else seed
        if len(bytes_of) != 32:
            raise KeyFileError(f"an Ed25519 key is a seed of 32 bytes; this has {len(bytes_of)}")
        self._key = SigningKey(bytes_of)

    @classmethod
    def generate(cls) -> Self:
        return cls(random(32))

    @classmethod
    def open(cls, path: str | os.PathLike[str], passphrase: str) -> Self:
        """The key in a file of ``walras wallet``, or of `save`."""
        path = Path(path)
        try:
            if path.stat().st_mode & 0o077:
                raise KeyFileError(f"{path} can be read by other users: run chmod 600 on it first")
            file = json.loads(path.read_bytes())
            if file["version"] != 1:
                raise KeyFileError(f"{path}: key file version {file['version']} is newer than this software")
            kdf, sealed = file["argon2id"], file["xchacha20poly1305"]
            lock = _lock(path, passphrase, raw(kdf["salt"]), int(kdf["memory_kib"]), int(kdf["passes"]))
            address = str(file["address"])
            ciphertext, nonce = raw(sealed["ciphertext"]), raw(sealed["nonce"])
            seed = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(ciphertext, address.encode(), nonce, lock)
        except OSError as error:
            raise KeyFileError(f"{path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise KeyFileError(f"{path} is not a key file: {error}") from error
        except exceptions.CryptoError as error:
            raise KeyFileError(f"{path}: the passphrase is wrong, or the file is damaged") from error
        key = cls(seed)
        if key.address != address:
            raise KeyFileError(f"{path}: the address in the file does not belong to the key")
        return key

    def save(self, path: str | os.PathLike[str], passphrase: str) -> None:
        """Writes the key to a new file; none is overwritten."""
        path = Path(path)
        salt, nonce = random(16), random(24)
        lock = _lock(path, passphrase, salt, _MEMORY_KIB, _PASSES)
        address = self.address
        sealed = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(bytes(self._key), address.encode(), nonce, lock)
        file = {
            "version": 1,
            "address": address,
            "public_key": self.public,
            "argon2id": {"memory_kib": _MEMORY_KIB, "passes": _PASSES, "salt": "0x" + salt.hex()},
            "xchacha20poly1305": {"nonce": "0x" + nonce.hex(), "ciphertext": "0x" + sealed.hex()},
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as out:
                out.write(json.dumps(file, indent=2) + "\n")
                out.flush()
                os.fsync(out.fileno())
        except FileExistsError:
            raise KeyFileError(f"{path} exists; a key is never overwritten") from None
        except OSError as error:
            raise KeyFileError(f"{path}: {error.strerror}") from error

    @property
    def seed(self) -> bytes:
        """The secret: whoever has it has the key."""
        return bytes(self._key)

    @property
    def public(self) -> str:
        """The public key."""
        return "0x" + bytes(self._key.verify_key).hex()

    @property
    def address(self) -> str:
        return "0x" + derived("walras 2026 ed25519 address v1", raw(self.public))[:20].hex()

    def sign(self, body: Body, network: str) -> Signed:
        made = body.encode()
        signature = self._key.sign(SIGNED_TAG + raw(network) + made).signature
        return Signed(made + b"\0" + raw(self.public) + signature)

    def sign_inside(self, body: Body, within: Within) -> Signed:
        """Signs an operation for an envelope: the signature is valid nowhere else."""
        return Signed(body.encode() + b"\0" + raw(self.public) + self._key.sign(within.signing_bytes(body)).signature)

    def sign_bytes(self, message: bytes) -> str:
        """The signature on bytes, such as those of a `PolicyRequest` or a `KeyConsent`."""
        return "0x" + self._key.sign(message).signature.hex()

    def agree(self, network: str, account: str, slot: int) -> str:
        """The signature by which it agrees to act for an account in a slot, as its session key."""
        message = session_possession_bytes(network, account, slot, self.public)
        return "0x" + self._key.sign(message).signature.hex()

    def login(self, terms: LoginTerms) -> dict[str, str]:
        signature = self._key.sign(terms.signed_bytes).signature
        return {"key": self.public, "signature": "0x" + signature.hex()}

    def __repr__(self) -> str:
        return f"Ed25519Key({self.address})"


class EthereumKey:
    """A key of an Ethereum wallet."""

    def __init__(self, secret: bytes | str) -> None:
        bytes_of = raw(secret) if isinstance(secret, str) else secret
        try:
            self._key = PrivateKey(bytes_of)
        except ValueError as error:
            raise KeyFileError("an Ethereum key is 32 bytes, a number below the order of secp256k1") from error

    @classmethod
    def generate(cls) -> EthereumKey:
        return cls(PrivateKey().secret)

    @property
    def public(self) -> str:
        return self.address

    @property
    def address(self) -> str:
        return "0x" + keccak256(self._key.public_key.format(compressed=False)[1:])[12:].hex()

    def sign(self, body: Body, network: str) -> Signed:
        return Signed(body.encode() + b"\1" + raw(network) + self._compact(body.typed_hash(network)))

    def sign_inside(self, body: Body, within: Within) -> Signed:
        """Signs an operation for an envelope: the signature is valid nowhere else."""
        return Signed(body.encode() + b"\1" + within.network + self._compact(within.typed_hash(body)))

    def sign_hash(self, digest: bytes) -> str:
        """The compact signature on the hash of typed data, such as that of a `PolicyRequest`."""
        return "0x" + self._compact(digest).hex()

    def login(self, terms: LoginTerms) -> dict[str, str]:
        return {"signature": "0x" + self._compact(terms.typed_hash).hex()}

    def _compact(self, hash: bytes) -> bytes:
        """A signature in the form of EIP-2098: the parity of the point is the highest bit of s."""
        full = self._key.sign_recoverable(hash, hasher=None)
        compact = bytearray(full[:64])
        compact[32] |= full[64] << 7
        return bytes(compact)

    def __repr__(self) -> str:
        return f"EthereumKey({self.address})"


def _lock(path: Path, passphrase: str, salt: bytes, memory_kib: int, passes: int) -> bytes:
    """The key of the file's cipher."""
    if memory_kib > _MEMORY_KIB_MAX or passes > _PASSES_MAX:
        asks, most = f"{memory_kib} KiB and {passes} passes", f"{_MEMORY_KIB_MAX} and {_PASSES_MAX}"
        raise KeyFileError(f"{path} requests {asks}; at most {most} are allowed")
    return pwhash.argon2id.kdf(32, passphrase.encode(), salt, passes, memory_kib << 10)
