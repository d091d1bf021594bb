"""What Python's libraries do with the signatures and hashes of made.py, as rows of a table."""

import json
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version

KNOWN, VECTORS = (json.load(open(path)) for path in sys.argv[1:3])


def row(package: str, what: str, did: str) -> None:
    print(f"| {package} {version(package)} (Python) | {what} | {did} |")


def accepted(check: Callable[[bytes, bytes, bytes], object]) -> str:
    names = []
    for name, made in KNOWN["ed25519"].items():
        try:
            check(*(bytes.fromhex(made[part]) for part in ("key", "message", "signature")))
            names.append(name)
        except Exception:  # Each library has its own word for a signature that it refuses.
            continue
    return "accepts " + ", ".join(names)


def by_nacl(key: bytes, message: bytes, signature: bytes) -> None:
    from nacl.signing import VerifyKey

    VerifyKey(key).verify(message, signature)


def by_cryptography(key: bytes, message: bytes, signature: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    Ed25519PublicKey.from_public_bytes(key).verify(signature, message)


def by_pycryptodome(key: bytes, message: bytes, signature: bytes) -> None:
    from Crypto.Signature import eddsa

    eddsa.new(eddsa.import_public_key(key), "rfc8032").verify(message, signature)


def derived() -> str:
    from blake3 import blake3

    all_right = all(
        blake3(bytes([7]) * int(length), derive_key_context=KNOWN["context"]).hexdigest() == digest
        for length, digest in KNOWN["derived"].items()
    )
    return "derives the same keys" if all_right else "derives other keys"


def beacon_by_py_ecc() -> str:
    from py_ecc.bls.g2_primitives import pubkey_to_G1, signature_to_G2
    from py_ecc.bls.hash_to_curve import hash_to_G1
    from py_ecc.optimized_bls12_381 import G2, pairing

    made = KNOWN["bls"]
    key, signature = signature_to_G2(bytes.fromhex(made["key"])), pubkey_to_G1(bytes.fromhex(made["signature"]))
    point = hash_to_G1(bytes.fromhex(made["message"]), made["tag"].encode(), sha256)
    verifies = pairing(G2, signature) == pairing(key, point)
    return "verifies, by `hash_to_G1` and `pairing`; its ciphersuites do not" if verifies else "does not verify"


def beacon_by_blspy() -> str:
    import blspy

    try:
        blspy.G1Element.from_bytes(bytes.fromhex(KNOWN["bls"]["key"]))
        return "reads the key"
    except Exception as error:
        return f"has keys of 48 bytes only: {type(error).__name__}"


def hashed(hash_of: Callable[[dict], bytes]) -> str:
    right = sum("0x" + hash_of(one["typed_data"]).hex().removeprefix("0x") == one["hash"] for one in VECTORS)
    return f"hashes {right} of {len(VECTORS)} right"


def by_eth_account(typed: dict) -> bytes:
    from eth_account.messages import _hash_eip191_message, encode_typed_data

    return _hash_eip191_message(encode_typed_data(full_message=typed))


def by_structs(typed: dict) -> bytes:
    from eip712_structs import EIP712Struct
    from eth_hash.auto import keccak

    kinds = {field["name"]: field["type"] for field in typed["types"][typed["primaryType"]]}
    numbers = {name: int(value) if kinds[name].startswith("uint") else value for name, value in typed["message"].items()}
    try:
        message, domain = EIP712Struct.from_message({**typed, "message": numbers})
        return keccak(message.signable_bytes(domain))
    except AttributeError:
        return b""


row("PyNaCl", "Ed25519", accepted(by_nacl))
row("cryptography", "Ed25519", accepted(by_cryptography))
row("pycryptodome", "Ed25519", accepted(by_pycryptodome))
row("blake3", "BLAKE3 `derive_key`", derived())
row("py_ecc", "BLS", beacon_by_py_ecc())
row("blspy", "BLS", beacon_by_blspy())
row("eth-account", "typed data", hashed(by_eth_account))
structs = f"{hashed(by_structs)}, if numbers are no text; a list of structures raises AttributeError"
row("eip712-structs-ng", "typed data", structs)
