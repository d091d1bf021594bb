"""Transactions byte by byte, as docs/specification.md describes them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, TypeAlias

from blake3 import blake3
from Crypto.Hash import keccak

from walras.client.amounts import DIGITS, plain
from walras.client.errors import AddressError, AmountError

__all__ = [
    "AuthorizeSession",
    "Body",
    "Burn",
    "Cancel",
    "CreateAccount",
    "CreateOffer",
    "Exact",
    "Issue",
    "Leave",
    "OfferPlace",
    "OpenPool",
    "Operation",
    "Pay",
    "PoolKey",
    "Provide",
    "Replace",
    "RevokeSession",
    "SessionAlive",
    "Signed",
    "Unstake",
    "Withdraw",
    "address_bytes",
    "checked_address",
    "derived",
    "keccak256",
    "raw",
    "session_possession_bytes",
    "slot_of",
    "slot_sequence",
]

SIGNED_TAG = b"walras native transaction v3\0"
_SEAL_BYTES = 1 + 32 + 64
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


Fields: TypeAlias = "list[tuple[str, str, str | list[Fields]]]"
"""Name, type and value of each field of typed data (EIP-712); the value of a list is that of its structures."""

CANCELS_MAX = 32
"""The most offers that one cancel names."""


@dataclass(frozen=True, slots=True)
class CreateAccount:
    """Registers an account, or rotates the account's own key."""

    account: str
    key: str
    NAME: ClassVar[str] = "CreateAccount"

    def encode(self) -> bytes:
        return b"\0" + address_bytes(self.account) + raw(self.key)

    def fields(self) -> Fields:
        return [("registered", "address", self.account), ("key", "bytes32", self.key)]


@dataclass(frozen=True, slots=True)
class CreateOffer:
    """Sells up to `amount` units, for at least `limit` units bought per unit sold. Assets are numbers."""

    sell: int
    buy: int
    amount: int
    limit: Decimal
    life: str = RESTS
    """How long it rests: ``rests`` until it is sold or cancelled, ``until`` and the last height whose batch it is in,
    or ``one batch``."""
    client: str = NO_CLIENT
    """The client's own name of the order, 16 bytes in hexadecimal. It is signed, and no state has it."""
    NAME: ClassVar[str] = "CreateOffer"

    def encode(self) -> bytes:
        terms = u64(self.amount) + price_bytes(self.limit)
        return b"\1" + u32(self.sell) + u32(self.buy) + terms + life_bytes(self.life) + raw(self.client)

    def fields(self) -> Fields:
        pair: Fields = [("sell", "uint32", str(self.sell)), ("buy", "uint32", str(self.buy))]
        terms: Fields = [("amount", "uint64", str(self.amount)), ("limit", "string", plain(self.limit))]
        return [*pair, *terms, ("life", "string", self.life), ("client", "bytes16", self.client)]


@dataclass(frozen=True, slots=True)
class OfferPlace:
    """Where an own offer rests."""

    sell: int
    buy: int
    limit: Decimal
    offer: int

    def encode(self) -> bytes:
        return u32(self.sell) + u32(self.buy) + price_bytes(self.limit) + u64(self.offer)

    def fields(self) -> Fields:
        pair: Fields = [("sell", "uint32", str(self.sell)), ("buy", "uint32", str(self.buy))]
        return [*pair, ("limit", "string", plain(self.limit)), ("offer", "uint64", str(self.offer))]


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancels what rests of up to 32 offers; those that do not rest are skipped."""

    offers: tuple[OfferPlace, ...]
    NAME: ClassVar[str] = "Cancel"

    def encode(self) -> bytes:
        return b"\2" + u32(len(self.offers)) + b"".join(offer.encode() for offer in self.offers)

    def fields(self) -> Fields:
        return [("offers", "Offer[]", [offer.fields() for offer in self.offers])]


@dataclass(frozen=True, slots=True)
class Replace:
    """Cancels an own offer and places another one of the same pair. `remains` is what is believed to rest of the old
    one, and not less than does; the new one sells `amount` less what was sold meanwhile."""

    old: OfferPlace
    remains: int
    amount: int
    limit: Decimal
    life: str = RESTS
    client: str = NO_CLIENT
    NAME: ClassVar[str] = "Replace"

    def encode(self) -> bytes:
        terms = u64(self.remains) + u64(self.amount) + price_bytes(self.limit)
        return b"\x0c" + self.old.encode() + terms + life_bytes(self.life) + raw(self.client)

    def fields(self) -> Fields:
        old, sizes = self.old, (("remains", self.remains), ("amount", self.amount))
        pair: Fields = [("sell", "uint32", str(old.sell)), ("buy", "uint32", str(old.buy))]
        place: Fields = [("oldLimit", "string", plain(old.limit)), ("offer", "uint64", str(old.offer))]
        units: Fields = [(name, "uint64", str(value)) for name, value in sizes]
        terms: Fields = [("limit", "string", plain(self.limit)), ("life", "string", self.life)]
        return [*pair, *place, *units, *terms, ("client", "bytes16", self.client)]


@dataclass(frozen=True, slots=True)
class Exact:
    """Buys exactly `units` of `buy` for at most `bound`, or sells exactly `units` of `sell` for at least `bound`, at the
    rate of the batch of its block; or nothing happens, and what it locked returns."""

    sell: int
    buy: int
    side: str
    """``buy`` or ``sell``."""
    units: int
    bound: int
    client: str = NO_CLIENT
    NAME: ClassVar[str] = "Exact"

    def encode(self) -> bytes:
        if self.side not in ("buy", "sell"):
            raise AmountError(f"{self.side!r} is no side of an exact order: write 'buy' or 'sell'")
        terms = bytes([("buy", "sell").index(self.side)]) + u64(self.units) + u64(self.bound)
        return b"\x0e" + u32(self.sell) + u32(self.buy) + terms + raw(self.client)

    def fields(self) -> Fields:
        pair: Fields = [("sell", "uint32", str(self.sell)), ("buy", "uint32", str(self.buy))]
        terms: Fields = [("units", "uint64", str(self.units)), ("bound", "uint64", str(self.bound))]
        return [*pair, ("side", "string", self.side), *terms, ("client", "bytes16", self.client)]


@dataclass(frozen=True, slots=True)
class Pay:
    """Moves units to another account."""

    to: str
    asset: int
    amount: int
    NAME: ClassVar[str] = "Pay"

    def encode(self) -> bytes:
        return b"\3" + address_bytes(self.to) + u32(self.asset) + u64(self.amount)

    def fields(self) -> Fields:
        return [
            ("to", "address", self.to),
            ("asset", "uint32", str(self.asset)),
            ("amount", "uint64", str(self.amount)),
        ]


@dataclass(frozen=True, slots=True)
class Issue:
    """Creates units, for their issuer."""

    to: str
    asset: int
    amount: int
    NAME: ClassVar[str] = "Issue"

    def encode(self) -> bytes:
        return b"\4" + address_bytes(self.to) + u32(self.asset) + u64(self.amount)

    def fields(self) -> Fields:
        return [
            ("to", "address", self.to),
            ("asset", "uint32", str(self.asset)),
            ("amount", "uint64", str(self.amount)),
        ]


@dataclass(frozen=True, slots=True)
class Burn:
    """Destroys units, for their issuer."""

    asset: int
    amount: int
    NAME: ClassVar[str] = "Burn"

    def encode(self) -> bytes:
        return b"\5" + u32(self.asset) + u64(self.amount)

    def fields(self) -> Fields:
        return [("asset", "uint32", str(self.asset)), ("amount", "uint64", str(self.amount))]


@dataclass(frozen=True, slots=True)
class Unstake:
    """Withdraws units of the first asset from the account's own stake."""

    units: int
    NAME: ClassVar[str] = "Unstake"

    def encode(self) -> bytes:
        return b"\7" + u64(self.units)

    def fields(self) -> Fields:
        return [("units", "uint64", str(self.units))]


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Moves units into the payment lane, where the key `to` spends them."""

    to: str
    asset: int
    amount: int
    NAME: ClassVar[str] = "Withdraw"

    def encode(self) -> bytes:
        return b"\x09" + raw(self.to) + u32(self.asset) + u64(self.amount)

    def fields(self) -> Fields:
        return [
            ("to", "bytes32", self.to),
            ("asset", "uint32", str(self.asset)),
            ("amount", "uint64", str(self.amount)),
        ]


@dataclass(frozen=True, slots=True)
class PoolKey:
    """A constant-product pool: the number of the lower asset, that of the higher one, and the fee class."""

    a: int
    b: int
    fee_class: int = 0

    def encode(self) -> bytes:
        return u32(self.a) + u32(self.b) + bytes([self.fee_class])

    def fields(self) -> Fields:
        assets: Fields = [("a", "uint32", str(self.a)), ("b", "uint32", str(self.b))]
        return [*assets, ("class", "uint8", str(self.fee_class))]


def _on_pool(kind: int, pool: PoolKey, *numbers: int) -> bytes:
    return bytes([13, kind]) + pool.encode() + b"".join(u64(number) for number in numbers)


@dataclass(frozen=True, slots=True)
class OpenPool:
    """Opens a pool with so many units of both assets. A 256th of both, `stays`, can never be taken out again."""

    pool: PoolKey
    x: int
    y: int
    NAME: ClassVar[str] = "OpenPool"

    @property
    def stays(self) -> tuple[int, int]:
        """Units of both assets that stay in the pool for ever: nobody has the shares to which they belong."""
        return -(-self.x // 256), -(-self.y // 256)

    def encode(self) -> bytes:
        return _on_pool(0, self.pool, self.x, self.y)

    def fields(self) -> Fields:
        return [*self.pool.fields(), ("x", "uint64", str(self.x)), ("y", "uint64", str(self.y))]


@dataclass(frozen=True, slots=True)
class Provide:
    """Buys shares of a pool for at most so many units of both assets; what is not needed returns."""

    pool: PoolKey
    shares: int
    most_a: int
    most_b: int
    NAME: ClassVar[str] = "Provide"

    def encode(self) -> bytes:
        return _on_pool(1, self.pool, self.shares, self.most_a, self.most_b)

    def fields(self) -> Fields:
        most: Fields = [("mostA", "uint64", str(self.most_a)), ("mostB", "uint64", str(self.most_b))]
        return [*self.pool.fields(), ("shares", "uint64", str(self.shares)), *most]


@dataclass(frozen=True, slots=True)
class Leave:
    """Gives shares of a pool back for at least so many units of both assets."""

    pool: PoolKey
    shares: int
    least_a: int
    least_b: int
    NAME: ClassVar[str] = "Leave"

    def encode(self) -> bytes:
        return _on_pool(2, self.pool, self.shares, self.least_a, self.least_b)

    def fields(self) -> Fields:
        least: Fields = [("leastA", "uint64", str(self.least_a)), ("leastB", "uint64", str(self.least_b))]
        return [*self.pool.fields(), ("shares", "uint64", str(self.shares)), *least]


@dataclass(frozen=True, slots=True)
class AuthorizeSession:
    """Lets a key cancel or trade for the account, in its next slot."""

    slot: int
    key: str
    scope: str
    """``cancel`` or ``trade``."""
    ends: int
    alive: int
    caps: tuple[tuple[int, int], ...]
    """Numbers of assets, rising, with the most units that it may use, fees included: at least one, for the fees."""
    possession: str
    """The key's signature on :func:`session_possession_bytes`."""
    NAME: ClassVar[str] = "AuthorizeSession"

    def encode(self) -> bytes:
        if self.scope not in ("cancel", "trade"):
            raise AmountError(f"{self.scope!r} is no scope of a session key: write 'cancel' or 'trade'")
        terms = u32(self.slot) + raw(self.key) + bytes([("cancel", "trade").index(self.scope)])
        caps = u32(len(self.caps)) + b"".join(u32(asset) + u64(units) for asset, units in self.caps)
        return b"\x0f\0" + terms + u64(self.ends) + u64(self.alive) + caps + raw(self.possession)

    def fields(self) -> Fields:
        if not self.caps:
            raise AmountError("a session key needs a cap for the first asset, to pay its fees")
        terms: Fields = [("slot", "uint32", str(self.slot)), ("key", "bytes32", self.key)]
        heights: Fields = [("ends", "uint64", str(self.ends)), ("alive", "uint64", str(self.alive))]
        caps: list[Fields] = [
            [("asset", "uint32", str(asset)), ("units", "uint64", str(units))] for asset, units in self.caps
        ]
        rest: Fields = [("caps", "SessionCap[]", caps), ("possession", "bytes", self.possession)]
        return [*terms, ("scope", "string", self.scope), *heights, *rest]


@dataclass(frozen=True, slots=True)
class RevokeSession:
    """Ends a session key and its offers."""

    slot: int
    NAME: ClassVar[str] = "RevokeSession"

    def encode(self) -> bytes:
        return b"\x0f\1" + u32(self.slot)

    def fields(self) -> Fields:
        return [("slot", "uint32", str(self.slot))]


@dataclass(frozen=True, slots=True)
class SessionAlive:
    """Raises the height at whose end a session key's offers end; 0 ends them at once."""

    slot: int
    through: int
    NAME: ClassVar[str] = "SessionAlive"

    def encode(self) -> bytes:
        return b"\x0f\2" + u32(self.slot) + u64(self.through)

    def fields(self) -> Fields:
        return [("slot", "uint32", str(self.slot)), ("through", "uint64", str(self.through))]


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


Operation: TypeAlias = (
    "CreateAccount | CreateOffer | Cancel | Replace | Pay | Issue | Burn | Unstake | Withdraw"
    " | OpenPool | Provide | Leave | Exact | AuthorizeSession | RevokeSession | SessionAlive"
)


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


def form_of(name: str, fields: Fields) -> str:
    """A structure's name and fields, and after them the structures of its lists."""
    lists = [(kind.removesuffix("[]"), value) for _, kind, value in fields if not isinstance(value, str)]
    inner = "".join(form_of(structure, entries[0]) for structure, entries in sorted(lists, key=lambda one: one[0]))
    return f"{name}({','.join(f'{kind} {field}' for field, kind, _ in fields)}){inner}"


def hash_struct(name: str, fields: Fields) -> bytes:
    def one(kind: str, value: str | list[Fields]) -> bytes:
        if isinstance(value, str):
            return word(kind, value)
        return keccak256(b"".join(hash_struct(kind.removesuffix("[]"), entry) for entry in value))

    form = form_of(name, fields)
    return keccak256(keccak256(form.encode()) + b"".join(one(kind, value) for _, kind, value in fields))


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

    def typed_hash(self, network: str) -> bytes:
        """What an Ethereum wallet's key signs (EIP-712)."""
        names: Fields = [("name", "string", "Walras"), ("version", "string", "1")]
        domain: Fields = [*names, ("chainId", "uint256", str(self.chain)), ("salt", "bytes32", network)]
        numbers: Fields = [("sequence", "uint64", str(self.sequence)), ("until", "uint64", str(self.until))]
        message: Fields = [("account", "address", self.account), *numbers, *self.operation.fields()]
        return keccak256(b"\x19\x01" + hash_struct("EIP712Domain", domain) + hash_struct(self.operation.NAME, message))


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed transaction."""

    encoded: bytes

    @property
    def body(self) -> bytes:
        return self.encoded[:-_SEAL_BYTES]

    @property
    def id(self) -> str:
        """Its id, which the signature is no part of."""
        kind, who = self.encoded[-_SEAL_BYTES], self.encoded[1 - _SEAL_BYTES : -64]
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
        return len(self.encoded) > 44 + _SEAL_BYTES and self.encoded[-_SEAL_BYTES] in (0, 1)
