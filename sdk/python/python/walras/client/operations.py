"""Operations of transactions, from the table of operations.

Written by `make operations`, not by hand. Assets are numbers, amounts units, and limits decimals in units. Keys,
signatures and bytes are hexadecimal after ``0x``.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from walras.client.encoding import NO_CLIENT, RESTS, Field, Operation, Structure

__all__ = [
    "Approve",
    "AuthorizeSession",
    "Burn",
    "Cancel",
    "CloseAsset",
    "CompleteKeys",
    "CreateAccount",
    "CreateOffer",
    "Exact",
    "GuardianKey",
    "GuardianWallet",
    "Issue",
    "IssueReferenced",
    "KeySignature",
    "KeySigner",
    "Lane",
    "Leave",
    "ListAsset",
    "MandateLimit",
    "MarketLimits",
    "OfferPlace",
    "OpenPool",
    "Pay",
    "PayReferenced",
    "ProposeClosing",
    "ProposeLaneTerms",
    "ProposeListing",
    "ProposeParameter",
    "Provide",
    "Recover",
    "RecoverKeys",
    "Replace",
    "RevokeSession",
    "Sealed",
    "SessionAlive",
    "SessionLimit",
    "SetHolder",
    "SetKeys",
    "SetReceiving",
    "Stake",
    "Unapprove",
    "Unstake",
    "VenueAuthorize",
    "VenueBond",
    "VenueChangeOperator",
    "VenueCollect",
    "VenueDeposit",
    "VenueFence",
    "VenueList",
    "VenueOpen",
    "VenueRaiseFloor",
    "VenueRecall",
    "VenueRevoke",
    "VenueUnbond",
    "Vote",
    "WalletSigned",
    "WalletSigner",
    "Withdraw",
]


@dataclass(frozen=True, slots=True)
class OfferPlace(Structure):
    """Where an offer of the sender rests."""
    sell: int
    """Symbol sold."""
    buy: int
    """Symbol bought."""
    limit: Decimal
    """Its limit."""
    offer: int
    """Its id."""
    NAME: ClassVar[str] = "Offer"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("sell", "sell", "uint32", "u32"),
        Field("buy", "buy", "uint32", "u32"),
        Field("limit", "limit", "string", "price"),
        Field("offer", "offer", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class SessionLimit(Structure):
    """The most units of an asset that a session key may use."""
    asset: int
    """Symbol."""
    units: int
    """Units."""
    NAME: ClassVar[str] = "SessionCap"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
        Field("units", "units", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class KeySigner(Structure):
    """An ed25519 key that signs with a weight."""
    key: str
    """The key."""
    weight: int
    """Its weight, 1 to 255."""
    NAME: ClassVar[str] = "KeySigner"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "key", "bytes32", "raw"),
        Field("weight", "weight", "uint8", "u8"),
    )


@dataclass(frozen=True, slots=True)
class WalletSigner(Structure):
    """A wallet that signs with a weight."""
    wallet: str
    """The wallet's address."""
    weight: int
    """Its weight, 1 to 255."""
    NAME: ClassVar[str] = "WalletSigner"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("wallet", "wallet", "address", "address"),
        Field("weight", "weight", "uint8", "u8"),
    )


@dataclass(frozen=True, slots=True)
class GuardianKey(Structure):
    """A guardian with an ed25519 key."""
    key: str
    """The key."""
    NAME: ClassVar[str] = "GuardianKey"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "key", "bytes32", "raw"),
    )


@dataclass(frozen=True, slots=True)
class GuardianWallet(Structure):
    """A guardian with a wallet."""
    wallet: str
    """The wallet's address."""
    NAME: ClassVar[str] = "GuardianWallet"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("wallet", "wallet", "address", "address"),
    )


@dataclass(frozen=True, slots=True)
class KeySignature(Structure):
    """The signature of an ed25519 key."""
    key: str
    """The key."""
    signature: str
    """Its signature."""
    NAME: ClassVar[str] = "KeySignature"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "key", "bytes32", "raw"),
        Field("signature", "signature", "bytes", "raw"),
    )


@dataclass(frozen=True, slots=True)
class WalletSigned(Structure):
    """The signature of a wallet: 64 bytes, in the form of EIP-2098."""
    wallet: str
    """The wallet's address."""
    signature: str
    """Its signature."""
    NAME: ClassVar[str] = "WalletSigned"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("wallet", "wallet", "address", "address"),
        Field("signature", "signature", "bytes", "raw"),
    )


@dataclass(frozen=True, slots=True)
class MarketLimits(Structure):
    """A market that a key may trade in, and at which prices."""
    market: int
    """The market."""
    lowest: int
    """The lowest price in ticks."""
    highest: int
    """The highest price in ticks."""
    NAME: ClassVar[str] = "VenueMarket"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("market", "market", "uint32", "u32"),
        Field("lowest", "lowest", "uint32", "u32"),
        Field("highest", "highest", "uint32", "u32"),
    )


@dataclass(frozen=True, slots=True)
class MandateLimit(Structure):
    """The most that a key may lose of an asset."""
    asset: int
    """Symbol."""
    units: int
    """Units."""
    NAME: ClassVar[str] = "VenueCap"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
        Field("units", "units", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class CreateAccount(Operation):
    """Registers an account, or rotates the account's own key."""
    registered: str
    """The account."""
    key: str
    """The key that controls it from the next block on."""
    NAME: ClassVar[str] = "CreateAccount"
    CODE: ClassVar[bytes] = bytes([0])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("registered", "registered", "address", "address"),
        Field("key", "key", "bytes32", "raw"),
    )


@dataclass(frozen=True, slots=True)
class CreateOffer(Operation):
    """Offers an asset for another."""
    sell: int
    """Symbol sold."""
    buy: int
    """Symbol bought."""
    amount: int
    """Maximum units to sell."""
    limit: Decimal
    """Minimum units bought per unit sold."""
    life: str = RESTS
    """How long it rests: ``rests`` until it is sold or cancelled, ``until`` and the last height whose batch it
    is in, or ``one batch``."""
    client: str = NO_CLIENT
    """What its client calls it: 16 bytes in hexadecimal. No state has it."""
    NAME: ClassVar[str] = "CreateOffer"
    CODE: ClassVar[bytes] = bytes([1])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("sell", "sell", "uint32", "u32"),
        Field("buy", "buy", "uint32", "u32"),
        Field("amount", "amount", "uint64", "u64"),
        Field("limit", "limit", "string", "price"),
        Field("life", "life", "string", "life"),
        Field("client", "client", "bytes16", "raw"),
    )


@dataclass(frozen=True, slots=True)
class Cancel(Operation):
    """Cancels offers."""
    offers: tuple[OfferPlace, ...]
    """Where they rest, 1 to 32 different places. What does not rest is skipped; one must."""
    NAME: ClassVar[str] = "Cancel"
    CODE: ClassVar[bytes] = bytes([2])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("offers", "offers", "Offer[]", "list", (OfferPlace,)),
    )


@dataclass(frozen=True, slots=True)
class Pay(Operation):
    """Moves units to another account."""
    to: str
    """Receiving account."""
    asset: int
    """Symbol."""
    amount: int
    """Units."""
    NAME: ClassVar[str] = "Pay"
    CODE: ClassVar[bytes] = bytes([3])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("to", "to", "address", "address"),
        Field("asset", "asset", "uint32", "u32"),
        Field("amount", "amount", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Issue(Operation):
    """Creates units, for their issuer."""
    to: str
    """Receiving account."""
    asset: int
    """Symbol."""
    amount: int
    """Units."""
    NAME: ClassVar[str] = "Issue"
    CODE: ClassVar[bytes] = bytes([4])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("to", "to", "address", "address"),
        Field("asset", "asset", "uint32", "u32"),
        Field("amount", "amount", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Burn(Operation):
    """Destroys units, for their issuer."""
    asset: int
    """Symbol."""
    amount: int
    """Units."""
    NAME: ClassVar[str] = "Burn"
    CODE: ClassVar[bytes] = bytes([5])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
        Field("amount", "amount", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Stake(Operation):
    """Registers a validator, adds to its stake, or changes its key or address."""
    units: int
    """Units of the first asset to add."""
    key: str
    """The validator's key."""
    host: str
    """Host and port."""
    possession: str
    """The validator key's proof of possession."""
    NAME: ClassVar[str] = "Stake"
    CODE: ClassVar[bytes] = bytes([6])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("units", "units", "uint64", "u64"),
        Field("key", "key", "bytes32", "raw"),
        Field("host", "host", "string", "text"),
        Field("possession", "possession", "bytes", "raw"),
    )


@dataclass(frozen=True, slots=True)
class Unstake(Operation):
    """Withdraws units from the account's own stake."""
    units: int
    """Units of the first asset."""
    NAME: ClassVar[str] = "Unstake"
    CODE: ClassVar[bytes] = bytes([7])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("units", "units", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Withdraw(Operation):
    """Moves units into the payment lane."""
    to: str
    """The key that may spend them there."""
    asset: int
    """Symbol."""
    amount: int
    """Units."""
    NAME: ClassVar[str] = "Withdraw"
    CODE: ClassVar[bytes] = bytes([9])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("to", "to", "bytes32", "raw"),
        Field("asset", "asset", "uint32", "u32"),
        Field("amount", "amount", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Lane(Operation):
    """Posts something about the payment lane."""
    post: str
    """The bytes posted, in hexadecimal; at most 131,072."""
    NAME: ClassVar[str] = "Lane"
    CODE: ClassVar[bytes] = bytes([10])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("post", "post", "bytes", "bytes"),
    )


@dataclass(frozen=True, slots=True)
class Replace(Operation):
    """Cancels an offer and places another one of the same pair."""
    sell: int
    """Symbol sold."""
    buy: int
    """Symbol bought."""
    old_limit: Decimal
    """Limit of the old offer."""
    offer: int
    """Id of the old offer."""
    remains: int
    """Units that the sender believes rest of it; no more do. The new offer is smaller by what was sold
    meanwhile."""
    amount: int
    """Units that the new offer sells if ``remains`` rest."""
    limit: Decimal
    """Limit of the new offer."""
    life: str = RESTS
    """How long it rests: ``rests`` until it is sold or cancelled, ``until`` and the last height whose batch it
    is in, or ``one batch``."""
    client: str = NO_CLIENT
    """What its client calls it: 16 bytes in hexadecimal. No state has it."""
    NAME: ClassVar[str] = "Replace"
    CODE: ClassVar[bytes] = bytes([12])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("sell", "sell", "uint32", "u32"),
        Field("buy", "buy", "uint32", "u32"),
        Field("old_limit", "oldLimit", "string", "price"),
        Field("offer", "offer", "uint64", "u64"),
        Field("remains", "remains", "uint64", "u64"),
        Field("amount", "amount", "uint64", "u64"),
        Field("limit", "limit", "string", "price"),
        Field("life", "life", "string", "life"),
        Field("client", "client", "bytes16", "raw"),
    )


@dataclass(frozen=True, slots=True)
class OpenPool(Operation):
    """Opens a constant-product pool. A 256th of both amounts can never be taken out again."""
    a: int
    """Symbol of the asset with the lower number."""
    b: int
    """Symbol of the other asset."""
    fee_class: int
    """Fee class."""
    x: int
    """Units of ``a``."""
    y: int
    """Units of ``b``."""
    NAME: ClassVar[str] = "OpenPool"
    CODE: ClassVar[bytes] = bytes([13, 0])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("a", "a", "uint32", "u32"),
        Field("b", "b", "uint32", "u32"),
        Field("fee_class", "class", "uint8", "u8"),
        Field("x", "x", "uint64", "u64"),
        Field("y", "y", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Provide(Operation):
    """Buys shares of a pool."""
    a: int
    """Symbol of the asset with the lower number."""
    b: int
    """Symbol of the other asset."""
    fee_class: int
    """Fee class."""
    shares: int
    """Shares to buy."""
    most_a: int
    """The most units of ``a`` to pay; what is not needed returns."""
    most_b: int
    """The most units of ``b``."""
    NAME: ClassVar[str] = "Provide"
    CODE: ClassVar[bytes] = bytes([13, 1])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("a", "a", "uint32", "u32"),
        Field("b", "b", "uint32", "u32"),
        Field("fee_class", "class", "uint8", "u8"),
        Field("shares", "shares", "uint64", "u64"),
        Field("most_a", "mostA", "uint64", "u64"),
        Field("most_b", "mostB", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Leave(Operation):
    """Gives shares of a pool back."""
    a: int
    """Symbol of the asset with the lower number."""
    b: int
    """Symbol of the other asset."""
    fee_class: int
    """Fee class."""
    shares: int
    """Shares to give back."""
    least_a: int
    """The fewest units of ``a`` to receive."""
    least_b: int
    """The fewest units of ``b``."""
    NAME: ClassVar[str] = "Leave"
    CODE: ClassVar[bytes] = bytes([13, 2])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("a", "a", "uint32", "u32"),
        Field("b", "b", "uint32", "u32"),
        Field("fee_class", "class", "uint8", "u8"),
        Field("shares", "shares", "uint64", "u64"),
        Field("least_a", "leastA", "uint64", "u64"),
        Field("least_b", "leastB", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Exact(Operation):
    """In the batch of its block, buys or sells exactly so many units within its bound; otherwise nothing
    happens."""
    sell: int
    """Symbol sold."""
    buy: int
    """Symbol bought."""
    side: str
    """``buy``: exactly ``units`` of ``buy`` are bought; ``sell``: exactly ``units`` of ``sell`` are sold."""
    units: int
    """Units to buy or to sell."""
    bound: int
    """The most units of ``sell`` to pay, which it locks for the block, or the fewest of ``buy`` to receive."""
    client: str = NO_CLIENT
    """What its client calls it: 16 bytes in hexadecimal. No state has it."""
    NAME: ClassVar[str] = "Exact"
    CODE: ClassVar[bytes] = bytes([14])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("sell", "sell", "uint32", "u32"),
        Field("buy", "buy", "uint32", "u32"),
        Field("side", "side", "string", "choice", ("buy", "sell")),
        Field("units", "units", "uint64", "u64"),
        Field("bound", "bound", "uint64", "u64"),
        Field("client", "client", "bytes16", "raw"),
    )


@dataclass(frozen=True, slots=True)
class AuthorizeSession(Operation):
    """Lets a key cancel or trade for the account."""
    slot: int
    """The slot: one above the last one that the account has given."""
    key: str
    """The key."""
    scope: str
    """``cancel``, ``trade``, ``duty`` since rules 14, or ``control`` since rules 17: it freezes as many holders
    of an asset as its cap of it has units."""
    ends: int
    """The last height at which its transactions count."""
    alive: int
    """Its offers end with this block, unless the height is raised before."""
    caps: tuple[SessionLimit, ...]
    """Units that it may use of each asset, fees included; at most 8. Of others it may use nothing."""
    possession: str
    """The key's signature that it agrees."""
    NAME: ClassVar[str] = "AuthorizeSession"
    CODE: ClassVar[bytes] = bytes([15, 0])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("slot", "slot", "uint32", "u32"),
        Field("key", "key", "bytes32", "raw"),
        Field("scope", "scope", "string", "choice", ("cancel", "trade", "duty", "control")),
        Field("ends", "ends", "uint64", "u64"),
        Field("alive", "alive", "uint64", "u64"),
        Field("caps", "caps", "SessionCap[]", "list", (SessionLimit,)),
        Field("possession", "possession", "bytes", "raw"),
    )


@dataclass(frozen=True, slots=True)
class RevokeSession(Operation):
    """Ends a session key and its offers."""
    slot: int
    """The slot."""
    NAME: ClassVar[str] = "RevokeSession"
    CODE: ClassVar[bytes] = bytes([15, 1])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("slot", "slot", "uint32", "u32"),
    )


@dataclass(frozen=True, slots=True)
class SessionAlive(Operation):
    """Raises the height at whose end a session key's offers end; 0 ends them now."""
    slot: int
    """The slot."""
    through: int
    """The height, or 0."""
    NAME: ClassVar[str] = "SessionAlive"
    CODE: ClassVar[bytes] = bytes([15, 2])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("slot", "slot", "uint32", "u32"),
        Field("through", "through", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Approve(Operation):
    """Says that the validator's node can decide under these rules, and that its operator wants them. A
    validating node posts it by itself, for nothing."""
    rules: int
    """The number of the rules: those in force, or the next ones."""
    manifest: str
    """The digest of what the program means by them."""
    notice: int
    """The fewest heights from the agreement until they act."""
    at: int
    """A past height, above that of the account's last approval or withdrawal: an older one counts no more."""
    NAME: ClassVar[str] = "Approve"
    CODE: ClassVar[bytes] = bytes([17])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("rules", "rules", "uint32", "u32"),
        Field("manifest", "manifest", "bytes32", "raw"),
        Field("notice", "notice", "uint64", "u64"),
        Field("at", "at", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Unapprove(Operation):
    """Withdraws an approval of rules."""
    rules: int
    """The number of the rules."""
    at: int
    """A past height, above that of the account's last approval or withdrawal: an older one counts no more."""
    NAME: ClassVar[str] = "Unapprove"
    CODE: ClassVar[bytes] = bytes([18])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("rules", "rules", "uint32", "u32"),
        Field("at", "at", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class PayReferenced(Operation):
    """Moves units to another account, and says what for. Since rules 12."""
    to: str
    """Receiving account."""
    asset: int
    """Symbol."""
    amount: int
    """Units."""
    reference_kind: str
    """What the reference is."""
    reference: str
    """The reference: 1 to 35 printable ASCII characters, 16 bytes of a UUID, 32 of the SHA-256 of a message, or
    8 of a number, big-endian."""
    NAME: ClassVar[str] = "PayReferenced"
    CODE: ClassVar[bytes] = bytes([19])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("to", "to", "address", "address"),
        Field("asset", "asset", "uint32", "u32"),
        Field("amount", "amount", "uint64", "u64"),
        Field("reference_kind", "referenceKind", "string", "choice", ("text", "uuid", "message", "number")),
        Field("reference", "reference", "bytes", "bytes"),
    )


@dataclass(frozen=True, slots=True)
class IssueReferenced(Operation):
    """Creates units of an asset; only its issuer can. It says what for. Since rules 12."""
    to: str
    """Receiving account."""
    asset: int
    """Symbol."""
    amount: int
    """Units."""
    reference_kind: str
    """What the reference is."""
    reference: str
    """The reference: 1 to 35 printable ASCII characters, 16 bytes of a UUID, 32 of the SHA-256 of a message, or
    8 of a number, big-endian."""
    NAME: ClassVar[str] = "IssueReferenced"
    CODE: ClassVar[bytes] = bytes([20])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("to", "to", "address", "address"),
        Field("asset", "asset", "uint32", "u32"),
        Field("amount", "amount", "uint64", "u64"),
        Field("reference_kind", "referenceKind", "string", "choice", ("text", "uuid", "message", "number")),
        Field("reference", "reference", "bytes", "bytes"),
    )


@dataclass(frozen=True, slots=True)
class SetKeys(Operation):
    """Gives an account a policy of several keys, or another one. Any account sends it; those sign who govern the
    account, and those who will. Since rules 14."""
    changed: str
    """The account."""
    last: str
    """The id of its last change of keys, waiting or done; zero for the first one."""
    keys: tuple[KeySigner, ...]
    """Signers with ed25519 keys, by key; 1 to 16 with those with wallets."""
    wallets: tuple[WalletSigner, ...]
    """Signers with wallets, by address."""
    move: int
    """The weight that spends."""
    govern: int
    """The weight that changes who may spend; at least ``move``, at most all weights."""
    guardian_keys: tuple[GuardianKey, ...]
    """Guardians with ed25519 keys, by key; at most 8 in all."""
    guardian_wallets: tuple[GuardianWallet, ...]
    """Guardians with wallets, by address."""
    guardians: int
    """How many guardians recover the account; 0 if it has none."""
    delay: int
    """Heights that a later change waits; at most 1048576."""
    sessions: str
    """Whether the account's session keys ``close`` when the change acts, or it ``keep``s them."""
    first: str
    """The ed25519 key whose hash is the account's address."""
    key_signatures: tuple[KeySignature, ...]
    """Signatures of ed25519 keys, by key."""
    wallet_signatures: tuple[WalletSigned, ...]
    """Signatures of wallets, by address."""
    NAME: ClassVar[str] = "SetKeys"
    CODE: ClassVar[bytes] = bytes([21])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("changed", "changed", "address", "address"),
        Field("last", "last", "bytes32", "raw"),
        Field("keys", "keys", "KeySigner[]", "list", (KeySigner,)),
        Field("wallets", "wallets", "WalletSigner[]", "list", (WalletSigner,)),
        Field("move", "move", "uint32", "u16"),
        Field("govern", "govern", "uint32", "u16"),
        Field("guardian_keys", "guardianKeys", "GuardianKey[]", "list", (GuardianKey,)),
        Field("guardian_wallets", "guardianWallets", "GuardianWallet[]", "list", (GuardianWallet,)),
        Field("guardians", "guardians", "uint8", "u8"),
        Field("delay", "delay", "uint32", "u32"),
        Field("sessions", "sessions", "string", "choice", ("close", "keep")),
        Field("first", "first", "bytes32", "raw"),
        Field("key_signatures", "keySignatures", "KeySignature[]", "list", (KeySignature,)),
        Field("wallet_signatures", "walletSignatures", "WalletSigned[]", "list", (WalletSigned,)),
    )


@dataclass(frozen=True, slots=True)
class RecoverKeys(Operation):
    """Gives an account whose keys are lost another policy. Any account sends it; its guardians sign, and those
    who will govern it. Since rules 14."""
    changed: str
    """The account."""
    last: str
    """The id of its last change of keys, waiting or done; zero for the first one."""
    keys: tuple[KeySigner, ...]
    """Signers with ed25519 keys, by key; 1 to 16 with those with wallets."""
    wallets: tuple[WalletSigner, ...]
    """Signers with wallets, by address."""
    move: int
    """The weight that spends."""
    govern: int
    """The weight that changes who may spend; at least ``move``, at most all weights."""
    guardian_keys: tuple[GuardianKey, ...]
    """Guardians with ed25519 keys, by key; at most 8 in all."""
    guardian_wallets: tuple[GuardianWallet, ...]
    """Guardians with wallets, by address."""
    guardians: int
    """How many guardians recover the account; 0 if it has none."""
    delay: int
    """Heights that a later change waits; at most 1048576."""
    sessions: str
    """Whether the account's session keys ``close`` when the change acts, or it ``keep``s them."""
    key_signatures: tuple[KeySignature, ...]
    """Signatures of ed25519 keys, by key."""
    wallet_signatures: tuple[WalletSigned, ...]
    """Signatures of wallets, by address."""
    NAME: ClassVar[str] = "RecoverKeys"
    CODE: ClassVar[bytes] = bytes([22])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("changed", "changed", "address", "address"),
        Field("last", "last", "bytes32", "raw"),
        Field("keys", "keys", "KeySigner[]", "list", (KeySigner,)),
        Field("wallets", "wallets", "WalletSigner[]", "list", (WalletSigner,)),
        Field("move", "move", "uint32", "u16"),
        Field("govern", "govern", "uint32", "u16"),
        Field("guardian_keys", "guardianKeys", "GuardianKey[]", "list", (GuardianKey,)),
        Field("guardian_wallets", "guardianWallets", "GuardianWallet[]", "list", (GuardianWallet,)),
        Field("guardians", "guardians", "uint8", "u8"),
        Field("delay", "delay", "uint32", "u32"),
        Field("sessions", "sessions", "string", "choice", ("close", "keep")),
        Field("key_signatures", "keySignatures", "KeySignature[]", "list", (KeySignature,)),
        Field("wallet_signatures", "walletSignatures", "WalletSigned[]", "list", (WalletSigned,)),
    )


@dataclass(frozen=True, slots=True)
class CompleteKeys(Operation):
    """Makes a change of keys act whose wait is over. Any account sends it. Since rules 14."""
    changed: str
    """The account."""
    NAME: ClassVar[str] = "CompleteKeys"
    CODE: ClassVar[bytes] = bytes([23])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("changed", "changed", "address", "address"),
    )


@dataclass(frozen=True, slots=True)
class SetReceiving(Operation):
    """Says whether payments and issues to the account need a reference, from the next block on. Since rules 14."""
    references: str
    """``optional``, or ``required``: then ``pay`` and ``issue`` to it are refused, and ``pay_referenced``
    counts."""
    NAME: ClassVar[str] = "SetReceiving"
    CODE: ClassVar[bytes] = bytes([24])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("references", "references", "string", "choice", ("optional", "required")),
    )


@dataclass(frozen=True, slots=True)
class ListAsset(Operation):
    """Lists an asset, which its sender issues. Its name is the symbol, a point and its number. Since rules 15."""
    symbol: str
    """What its name begins with: 1 to 6 letters, digits, ``-`` or ``_``, a letter first."""
    decimals: int
    """Decimal places for display, at most 18."""
    control: str
    """What its issuer controls in the hands of others. ``open``: nothing. Since rules 17 it freezes holders
    (``freezable``), and only those hold it that it admits (``admitted``), or it recovers units of those that
    have been frozen for long (``recoverable``), or all of it (``admitted_recoverable``)."""
    least_units: int
    """The least units of it that an offer sells or asks for."""
    supply_max: int
    """The most units of it that may exist at one time."""
    document: str
    """The digest of a document that says what it is; zero for none."""
    fees: int
    """The fees that it pays for being listed: exactly ``listing.fees`` of ``/v1/limits``, or nothing happens."""
    NAME: ClassVar[str] = "ListAsset"
    CODE: ClassVar[bytes] = bytes([25])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("symbol", "symbol", "string", "text"),
        Field("decimals", "decimals", "uint8", "u8"),
        Field("control", "control", "string", "choice", ("open", "freezable", "admitted", "recoverable", "admitted_recoverable")),
        Field("least_units", "leastUnits", "uint64", "u64"),
        Field("supply_max", "supplyMax", "uint64", "u64"),
        Field("document", "document", "bytes32", "raw"),
        Field("fees", "fees", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class CloseAsset(Operation):
    """Announces that an asset closes, or takes that back; only its issuer can. Since rules 15."""
    asset: int
    """Symbol."""
    closing: str
    """``announce`` that it closes when the notice is over, or ``revoke`` that before."""
    NAME: ClassVar[str] = "CloseAsset"
    CODE: ClassVar[bytes] = bytes([26])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
        Field("closing", "closing", "string", "choice", ("announce", "revoke")),
    )


@dataclass(frozen=True, slots=True)
class ProposeParameter(Operation):
    """Proposes another value of a parameter of the chain, on which validators vote. Since rules 16."""
    parameter: str
    """Which one; ``/v1/parameters`` lists them."""
    value: int
    """Its value: at most twice as much as will be in force, at least half."""
    NAME: ClassVar[str] = "ProposeParameter"
    CODE: ClassVar[bytes] = bytes([27, 0])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("parameter", "parameter", "string", "choice", ("fee", "least_base_fee", "resting_offers", "open_pairs", "validators", "until_max", "minimum_stake", "reward", "assets_max", "listing_fees", "listing_policy")),
        Field("value", "value", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class ProposeListing(Operation):
    """Proposes an asset with a plain name, on which validators vote. Since rules 16."""
    issuer: str
    """The account that issues it."""
    symbol: str
    """Its name: 1 to 12 letters, digits, ``-`` or ``_``, a letter first."""
    decimals: int
    """Decimal places for display, at most 18."""
    control: str
    """What its issuer controls in the hands of others. ``open``: nothing. Since rules 17 it freezes holders
    (``freezable``), and only those hold it that it admits (``admitted``), or it recovers units of those that
    have been frozen for long (``recoverable``), or all of it (``admitted_recoverable``)."""
    least_units: int
    """The least units of it that an offer sells or asks for."""
    supply_max: int
    """The most units of it that may exist at one time."""
    document: str
    """The digest of a document that says what it is; zero for none."""
    NAME: ClassVar[str] = "ProposeListing"
    CODE: ClassVar[bytes] = bytes([27, 1])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("issuer", "issuer", "address", "address"),
        Field("symbol", "symbol", "string", "text"),
        Field("decimals", "decimals", "uint8", "u8"),
        Field("control", "control", "string", "choice", ("open", "freezable", "admitted", "recoverable", "admitted_recoverable")),
        Field("least_units", "leastUnits", "uint64", "u64"),
        Field("supply_max", "supplyMax", "uint64", "u64"),
        Field("document", "document", "bytes32", "raw"),
    )


@dataclass(frozen=True, slots=True)
class ProposeClosing(Operation):
    """Proposes that an asset closes, whatever its issuer says; validators vote on it. Since rules 16."""
    asset: int
    """Symbol."""
    NAME: ClassVar[str] = "ProposeClosing"
    CODE: ClassVar[bytes] = bytes([27, 2])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
    )


@dataclass(frozen=True, slots=True)
class ProposeLaneTerms(Operation):
    """Proposes the terms of an asset in the payment lane, on which validators vote. Since rules 19."""
    asset: int
    """Symbol."""
    least_units: int
    """The smallest output and the smallest deposit."""
    fee: int
    """What each payment leaves in escrow; zero stays zero."""
    deposits: str
    """``taken``, or ``refused``: then nothing enters, and what is in the lane is paid and leaves as ever."""
    outflow_most: int
    """The most that leaves at once beyond what enters; 0 for no limit."""
    outflow_per_height: int
    """What of that limit is regained at each height; 0 for no limit."""
    NAME: ClassVar[str] = "ProposeLaneTerms"
    CODE: ClassVar[bytes] = bytes([27, 3])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
        Field("least_units", "leastUnits", "uint64", "u64"),
        Field("fee", "fee", "uint64", "u64"),
        Field("deposits", "deposits", "string", "choice", ("refused", "taken")),
        Field("outflow_most", "outflowMost", "uint64", "u64"),
        Field("outflow_per_height", "outflowPerHeight", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class Vote(Operation):
    """Says whether the account wants what was proposed; of several words the last one counts. Since rules 16."""
    proposal: str
    """The id of the transaction that proposed it."""
    word: str
    """``yes`` or ``no``."""
    NAME: ClassVar[str] = "Vote"
    CODE: ClassVar[bytes] = bytes([28])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("proposal", "proposal", "bytes32", "raw"),
        Field("word", "word", "string", "choice", ("no", "yes")),
    )


@dataclass(frozen=True, slots=True)
class SetHolder(Operation):
    """Freezes or opens a holder of an asset; only its issuer can. Since rules 17."""
    asset: int
    """Symbol."""
    holder: str
    """The holder."""
    state: str
    """``frozen``: from the next block on it neither spends, buys nor receives the asset, and its offers end with
    this one; or ``open``."""
    reference_kind: str
    """What the reference is."""
    reference: str
    """The reference: 1 to 35 printable ASCII characters, 16 bytes of a UUID, 32 of the SHA-256 of a message, or
    8 of a number, big-endian."""
    NAME: ClassVar[str] = "SetHolder"
    CODE: ClassVar[bytes] = bytes([29])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
        Field("holder", "holder", "address", "address"),
        Field("state", "state", "string", "choice", ("frozen", "open")),
        Field("reference_kind", "referenceKind", "string", "choice", ("text", "uuid", "message", "number")),
        Field("reference", "reference", "bytes", "bytes"),
    )


@dataclass(frozen=True, slots=True)
class Recover(Operation):
    """Moves units of a holder who has been frozen for 86400 heights; only the issuer of a recoverable asset can.
    Since rules 17."""
    asset: int
    """Symbol."""
    from_: str
    """The frozen holder."""
    to: str
    """The account that receives them: the issuer, or an open holder."""
    amount: int
    """Units."""
    reference_kind: str
    """What the reference is."""
    reference: str
    """The reference: 1 to 35 printable ASCII characters, 16 bytes of a UUID, 32 of the SHA-256 of a message, or
    8 of a number, big-endian."""
    NAME: ClassVar[str] = "Recover"
    CODE: ClassVar[bytes] = bytes([30])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("asset", "asset", "uint32", "u32"),
        Field("from_", "from", "address", "address"),
        Field("to", "to", "address", "address"),
        Field("amount", "amount", "uint64", "u64"),
        Field("reference_kind", "referenceKind", "string", "choice", ("text", "uuid", "message", "number")),
        Field("reference", "reference", "bytes", "bytes"),
    )


@dataclass(frozen=True, slots=True)
class Sealed(Operation):
    """Brings an envelope: signed orders that nobody reads before their block is decided. An ed25519 key signs
    it. Since rules 21."""
    key: int
    """The number of the committee's key that opens it."""
    size: int
    """The size of its box: 0 for 512 bytes, 1 for 2048, 2 for 8192."""
    point: str
    """A point of G2, compressed: 96 bytes."""
    sealed: str
    """Its box."""
    NAME: ClassVar[str] = "Sealed"
    CODE: ClassVar[bytes] = bytes([32])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "key", "uint64", "u64"),
        Field("size", "size", "uint8", "u8"),
        Field("point", "point", "bytes", "bytes"),
        Field("sealed", "sealed", "bytes", "bytes"),
    )


@dataclass(frozen=True, slots=True)
class VenueOpen(Operation):
    """Opens a venue, which the sender owns."""
    venue: int
    """Its number: the next free one."""
    operator: str
    """The account."""
    report_key: str
    """The report key."""
    fee_cap_ppm: int
    """The most that an order pays in fees, in millionths of the quote units that it trades."""
    bond: int
    """Units of the first asset that become its bond."""
    NAME: ClassVar[str] = "VenueOpen"
    CODE: ClassVar[bytes] = bytes([11, 0])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("operator", "operator", "address", "address"),
        Field("report_key", "reportKey", "bytes32", "raw"),
        Field("fee_cap_ppm", "feeCapPpm", "uint32", "u32"),
        Field("bond", "bond", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class VenueList(Operation):
    """Lists a market."""
    venue: int
    """The venue."""
    market: int
    """The market's number: the next free one of the venue."""
    base: int
    """Symbol of the asset that is traded."""
    quote: int
    """Symbol of the asset in which it is paid."""
    lot_units: int
    """Base units of a lot."""
    tick_units: int
    """Quote units of a lot for one tick."""
    lots_max: int
    """The most lots of an order."""
    fee_cap_ppm: int
    """The most that an order pays in fees, in millionths of the quote units that it trades."""
    penalty: int
    """What a bust costs the bond, in units of the first asset for each lot."""
    NAME: ClassVar[str] = "VenueList"
    CODE: ClassVar[bytes] = bytes([11, 1])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("market", "market", "uint32", "u32"),
        Field("base", "base", "uint32", "u32"),
        Field("quote", "quote", "uint32", "u32"),
        Field("lot_units", "lotUnits", "uint64", "u64"),
        Field("tick_units", "tickUnits", "uint64", "u64"),
        Field("lots_max", "lotsMax", "uint32", "u32"),
        Field("fee_cap_ppm", "feeCapPpm", "uint32", "u32"),
        Field("penalty", "penalty", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class VenueFence(Operation):
    """Ends an incarnation."""
    venue: int
    """The venue."""
    incarnation: int
    """The incarnation."""
    NAME: ClassVar[str] = "VenueFence"
    CODE: ClassVar[bytes] = bytes([11, 2])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("incarnation", "incarnation", "uint32", "u32"),
    )


@dataclass(frozen=True, slots=True)
class VenueChangeOperator(Operation):
    """Replaces the operator."""
    venue: int
    """The venue."""
    from_: str
    """The account."""
    from_report_key: str
    """The report key."""
    to: str
    """The account."""
    to_report_key: str
    """The report key."""
    NAME: ClassVar[str] = "VenueChangeOperator"
    CODE: ClassVar[bytes] = bytes([11, 3])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("from_", "from", "address", "address"),
        Field("from_report_key", "fromReportKey", "bytes32", "raw"),
        Field("to", "to", "address", "address"),
        Field("to_report_key", "toReportKey", "bytes32", "raw"),
    )


@dataclass(frozen=True, slots=True)
class VenueBond(Operation):
    """Adds to the bond."""
    venue: int
    """The venue."""
    units: int
    """Units of the first asset."""
    NAME: ClassVar[str] = "VenueBond"
    CODE: ClassVar[bytes] = bytes([11, 4])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("units", "units", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class VenueUnbond(Operation):
    """Withdraws from the bond."""
    venue: int
    """The venue."""
    units: int
    """Units of the first asset."""
    NAME: ClassVar[str] = "VenueUnbond"
    CODE: ClassVar[bytes] = bytes([11, 5])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("units", "units", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class VenueDeposit(Operation):
    """Deposits units of the sender."""
    venue: int
    """The venue."""
    asset: int
    """Symbol."""
    units: int
    """Units."""
    NAME: ClassVar[str] = "VenueDeposit"
    CODE: ClassVar[bytes] = bytes([11, 7])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("asset", "asset", "uint32", "u32"),
        Field("units", "units", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class VenueCollect(Operation):
    """Asks for units of the sender's deposit, or for all if it has fewer."""
    venue: int
    """The venue."""
    asset: int
    """Symbol."""
    units: int
    """Units."""
    NAME: ClassVar[str] = "VenueCollect"
    CODE: ClassVar[bytes] = bytes([11, 8])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("asset", "asset", "uint32", "u32"),
        Field("units", "units", "uint64", "u64"),
    )


@dataclass(frozen=True, slots=True)
class VenueAuthorize(Operation):
    """Lets a key trade for the sender."""
    venue: int
    """The venue."""
    key: str
    """The key."""
    scope: str
    """``venue``: it trades at the venue. Others are not accepted yet."""
    markets: tuple[MarketLimits, ...]
    """The markets, by number; 1 to 16."""
    caps: tuple[MandateLimit, ...]
    """The most that it may lose on balance, by asset, at most 32; of an asset that is missing nothing."""
    possession: str
    """The key's signature that it agrees."""
    NAME: ClassVar[str] = "VenueAuthorize"
    CODE: ClassVar[bytes] = bytes([11, 9])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("key", "key", "bytes32", "raw"),
        Field("scope", "scope", "string", "choice", ("venue", "batch", "cancel")),
        Field("markets", "markets", "VenueMarket[]", "list", (MarketLimits,)),
        Field("caps", "caps", "VenueCap[]", "list", (MandateLimit,)),
        Field("possession", "possession", "bytes", "raw"),
    )


@dataclass(frozen=True, slots=True)
class VenueRevoke(Operation):
    """Ends a key of the sender for ever."""
    venue: int
    """The venue."""
    key: str
    """The key."""
    NAME: ClassVar[str] = "VenueRevoke"
    CODE: ClassVar[bytes] = bytes([11, 10])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("key", "key", "bytes32", "raw"),
    )


@dataclass(frozen=True, slots=True)
class VenueRaiseFloor(Operation):
    """Lower numbers of a key of the sender are dead."""
    venue: int
    """The venue."""
    key: str
    """The key."""
    incarnation: int
    """The incarnation of the venue that the order is for."""
    day: int
    """The day of the session."""
    reference: int
    """The client's reference."""
    NAME: ClassVar[str] = "VenueRaiseFloor"
    CODE: ClassVar[bytes] = bytes([11, 11])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("key", "key", "bytes32", "raw"),
        Field("incarnation", "incarnation", "uint32", "u32"),
        Field("day", "day", "uint32", "u16"),
        Field("reference", "reference", "uint32", "u32"),
    )


@dataclass(frozen=True, slots=True)
class VenueRecall(Operation):
    """Asks for all that a frozen holder has at a venue, for the issuer of a recoverable asset. Since rules 17."""
    venue: int
    """The venue."""
    asset: int
    """Symbol."""
    holder: str
    """The frozen holder, to whom the units return."""
    NAME: ClassVar[str] = "VenueRecall"
    CODE: ClassVar[bytes] = bytes([11, 16])
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("venue", "venue", "uint32", "u32"),
        Field("asset", "asset", "uint32", "u32"),
        Field("holder", "holder", "address", "address"),
    )
