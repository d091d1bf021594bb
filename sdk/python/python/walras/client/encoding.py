"""Transactions byte by byte, as docs/specification.md describes them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple, TypeAlias

from blake3 import blake3
from Crypto.Hash import keccak

from walras.client.amounts import DIGITS, plain
from walras.client.errors import AddressError, AmountError

__all__ = [
    "Body",
    "Operation",
    "Signed",
    "Structure",
    "address_bytes",
    "checked_address",
    "derived",
    "keccak256",
    "pool_keeps",
    "raw",
    "session_possession_bytes",
    "slot_of",
    "slot_sequence",
]

SIGNED_TAG = b"walras native transaction v3\0"
SEAL_BYTES = 1 + 32 + 64
"""The kind, then a key or a network, then the signature: the same for both kinds."""


def raw(text: str) -> bytes:
    """The bytes of hexadecimal digits after ``0x``."""
    return bytes.fromhex(text.removeprefix("0x"))


def derived(context: str, message: bytes) -> bytes:
    """BLAKE3 in its key derivation mode."""
    return blake3(message, derive_key_context=context).digest()


def keccak256(data: bytes) -> bytes:
    """Ethereum's hash."""
    return keccak.new(digest_bits=256, data=data).digest()


def checked_address(address: str) -> str:
    """An address with its checksum in its capitals (EIP-55)."""
    digits = address.removeprefix("0x").lower()
    pattern = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(mark, 16) >= 8 else digit for digit, mark in zip(digits, pattern, strict=False)
    )


def address_bytes(address: str) -> bytes:
    """The 20 bytes of an address. Mixed case must be its checksum."""
    digits = address.removeprefix("0x")
    try:
        made = bytes.fromhex(digits)
    except ValueError:
        made = b""
    if not address.startswith("0x") or len(digits) != 40 or len(made) != 20:
        raise AddressError(f"{address!r} is no address: write 0x and 40 hexadecimal digits")
    if digits not in (digits.lower(), digits.upper()) and checked_address(address) != address:
        raise AddressError(
            f"{address!r} has a wrong checksum in its capitals: copy it again, or write it in lower case"
        )
    return made


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


def price_bytes(limit: Decimal) -> bytes:
    """A price of the ledger: mantissa and decade, big-endian."""
    sign, digits, exponent = limit.as_tuple()
    significant = "".join(map(str, digits)).lstrip("0")
    if sign or not significant or not isinstance(exponent, int):
        raise AmountError(f"{limit} is no price")
    decade = len(significant) - 1 + exponent
    mantissa = significant.rstrip("0").ljust(DIGITS, "0")
    if len(mantissa) > DIGITS or not -18 <= decade <= 17:
        raise AmountError(f"{limit} is no price of the ledger: at most {DIGITS} digits, from 1e-18 to below 1e18")
    return ((decade + 18) << 57 | int(mantissa)).to_bytes(8, "big")


NO_CLIENT = "0x" + 16 * "00"
RESTS = "rests"
"""The name of orders that their client does not name."""


def life_bytes(life: str) -> bytes:
    """How long an offer rests."""
    if life == "rests":
        return b"\0"
    if life == "one batch":
        return b"\2"
    word, _, height = life.partition(" ")
    if word != "until" or not height.isdecimal() or str(int(height)) != height:
        raise AmountError(f"{life!r} is no life of an offer: write 'rests', 'until' and a height, or 'one batch'")
    return b"\1" + u64(int(height))


Fields: TypeAlias = "list[tuple[str, str, str]]"
"""Name, type and value of each field of typed data (EIP-712)."""

CANCELS_MAX = 32
"""The most offers that one cancel names."""


def pool_keeps(x: int, y: int) -> tuple[int, int]:
    """Units of both assets that an opening with these amounts leaves in its pool for ever: nobody has the shares to
    which they belong."""
    return -(-x // 256), -(-y // 256)


class Field(NamedTuple):
    """A field of an operation: its attribute, its name and type in typed data, and how it is encoded."""

    attribute: str
    name: str
    kind: str
    form: str
    more: tuple[Any, ...] = ()
    """The texts of a choice, or the structure of a list."""


def _encoded(field: Field, value: Any) -> bytes:
    match field.form:
        case "u8" | "u16" | "u32" | "u64":
            return int(value).to_bytes(int(field.form[1:]) // 8, "little")
        case "address":
            return address_bytes(value)
        case "price":
            return price_bytes(value)
        case "life":
            return life_bytes(value)
        case "choice":
            if value not in field.more:
                raise AmountError(f"{value!r} is no {field.attribute}: write one of {', '.join(field.more)}")
            return bytes([field.more.index(value)])
        case "text" | "bytes":
            content = value.encode() if field.form == "text" else raw(value)
            return u32(len(content)) + content
        case "list":
            return u32(len(value)) + b"".join(entry.encode() for entry in value)
        case _:
            return raw(value)


class Structure:
    """What consists of fields in the order in which they are encoded and hashed."""

    __slots__ = ()
    NAME: ClassVar[str]
    FIELDS: ClassVar[tuple[Field, ...]]

    def encode(self) -> bytes:
        return b"".join(_encoded(field, getattr(self, field.attribute)) for field in self.FIELDS)

    @classmethod
    def form(cls, head: str = "") -> str:
        """Its type as it is hashed, and those of its lists."""
        inner = sorted((field.more[0] for field in cls.FIELDS if field.form == "list"), key=lambda one: str(one.NAME))
        fields = ",".join(f"{field.kind} {field.name}" for field in cls.FIELDS)
        return f"{cls.NAME}({head}{fields}){''.join(one.form() for one in inner)}"

    def digest(self, head: str = "", words: bytes = b"") -> bytes:
        """Its hash as typed data; `head` and `words` are types and values of fields that come first."""
        words += b"".join(_word(field, getattr(self, field.attribute)) for field in self.FIELDS)
        return keccak256(keccak256(self.form(head).encode()) + words)


def _word(field: Field, value: Any) -> bytes:
    if field.form == "list":
        return keccak256(b"".join(entry.digest() for entry in value))
    return word(field.kind, plain(value) if isinstance(value, Decimal) else str(value))


class Operation(Structure):
    """What the ledger is asked for: one of :mod:`walras.client.operations`."""

    __slots__ = ()
    CODE: ClassVar[bytes]

    def encode(self) -> bytes:
        return self.CODE + Structure.encode(self)


SLOT_BITS = 43
"""Bits of a number below the slot of its session key."""


def slot_sequence(slot: int, number: int) -> int:
    """The number of a session key's transaction; `number` is counted from 1 in each slot."""
    return slot << SLOT_BITS | number


def slot_of(sequence: int) -> int:
    """The slot of a number: 0 of the account's own ones, and of those of contracts' offers."""
    return sequence >> SLOT_BITS if sequence < 1 << 63 else 0


def session_possession_bytes(network: str, account: str, slot: int, key: str) -> bytes:
    """What a key signs to agree that it acts for an account in a slot."""
    return b"walras session key possession v1\0" + raw(network) + address_bytes(account) + u32(slot) + raw(key)


def word(kind: str, value: str) -> bytes:
    """A value of typed data, as it is hashed."""
    match kind:
        case "string":
            return keccak256(value.encode())
        case "bytes32":
            return raw(value)
        case "bytes":
            return keccak256(raw(value))
        case "bytes16":
            return raw(value).ljust(32, b"\0")
        case "address":
            return address_bytes(value).rjust(32, b"\0")
        case _:
            return int(value).to_bytes(32, "big")


def hash_struct(name: str, fields: Fields) -> bytes:
    """The hash of a structure without lists."""
    form = f"{name}({','.join(f'{kind} {field}' for field, kind, _ in fields)})"
    return keccak256(keccak256(form.encode()) + b"".join(word(kind, value) for _, kind, value in fields))


@dataclass(frozen=True, slots=True)
class Body:
    """What is signed, but for the network."""

    chain: int
    account: str
    sequence: int
    until: int
    operation: Operation

    def encode(self) -> bytes:
        head = u64(self.chain) + address_bytes(self.account) + u64(self.sequence) + u64(self.until)
        return head + self.operation.encode()

    def typed_hash(self, network: str, name: str = "Walras") -> bytes:
        """What an Ethereum wallet's key signs (EIP-712)."""
        names: Fields = [("name", "string", name), ("version", "string", "1")]
        domain: Fields = [*names, ("chainId", "uint256", str(self.chain)), ("salt", "bytes32", network)]
        numbers = int(self.sequence).to_bytes(32, "big") + int(self.until).to_bytes(32, "big")
        words = address_bytes(self.account).rjust(32, b"\0") + numbers
        message = self.operation.digest("address account,uint64 sequence,uint64 until,", words)
        return keccak256(b"\x19\x01" + hash_struct("EIP712Domain", domain) + message)


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed transaction."""

    encoded: bytes

    @property
    def body(self) -> bytes:
        return self.encoded[:-SEAL_BYTES]

    @property
    def id(self) -> str:
        """Its id, which the signature is no part of."""
        kind, who = self.encoded[-SEAL_BYTES], self.encoded[1 - SEAL_BYTES : -64]
        contexts = ["walras 2026 native transaction id v4", "walras 2026 typed data transaction id v3"]
        return "0x" + derived(contexts[kind], self.body + who).hex()

    @property
    def account(self) -> str:
        return "0x" + self.encoded[8:28].hex()

    @property
    def sequence(self) -> int:
        return int.from_bytes(self.encoded[28:36], "little")

    @property
    def slot(self) -> int:
        """The slot of the session key that signed it; 0 of the account's own key."""
        return slot_of(self.sequence)

    @property
    def until(self) -> int:
        return int.from_bytes(self.encoded[36:44], "little")

    def is_whole(self) -> bool:
        """Whether the bytes can be a transaction."""
        return len(self.encoded) > 44 + SEAL_BYTES and self.encoded[-SEAL_BYTES] in (0, 1)
