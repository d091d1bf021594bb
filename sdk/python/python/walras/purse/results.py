"""What the methods of a purse return. Amounts are decimals in whole assets."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

__all__ = [
    "Balance",
    "Bill",
    "Deposited",
    "Entry",
    "Paid",
    "Proved",
    "Received",
    "Redeemed",
    "Repaired",
    "Scheme",
    "Sent",
    "Settled",
]

Scheme = Literal["merkle", "bls", "threshold"]
"""The keys with which validators sign a payment."""


@dataclass(frozen=True)
class Balance:
    """Money of one asset, by what can be done with it."""

    asset: str
    settled: Decimal
    """Final."""
    fast: Decimal
    """No other payment of this money can be confirmed; `settle` makes it final."""
    pending: Decimal
    """Deposits and payments that are not confirmed yet."""
    home_only: Decimal
    """It can only be returned to the ledger: `settle` does."""
    lost: Decimal
    """Its lane epoch is over; it stays in escrow."""


@dataclass(frozen=True)
class Bill:
    """What an address asks for."""

    asset: str
    amount: Decimal


@dataclass(frozen=True)
class Deposited:
    transaction: str
    asset: str
    amount: Decimal
    is_spendable: bool
    """Whether its block is certified; otherwise it can be spent once it is."""


@dataclass(frozen=True)
class Paid:
    """A payment of the purse."""

    payment: str
    fast_s: float
    settled_s: float | None
    """None while it is only fast."""


@dataclass(frozen=True)
class Sent:
    to: str
    asset: str
    amount: Decimal
    payments: list[Paid]
    receipt: str
    """What the recipient needs: lines of text; empty if the money stays in the purse."""
    unsettled: list[str]
    """Why payments are not settled yet."""


@dataclass(frozen=True)
class Proved:
    """What a receipt proves: that a payment is fast."""

    output: str
    to: str
    asset: str
    amount: Decimal
    home: int | None
    """The lane epoch in which it can be spent, and in the next one; None of an account's."""


@dataclass(frozen=True)
class Received:
    output: str
    asset: str
    amount: Decimal
    is_new: bool
    """False if the purse had taken this receipt before: then it counts once."""
    is_settled: bool


@dataclass(frozen=True)
class Settled:
    finished: int
    settled: int
    renewed: int
    sent_home: int
    forgotten: int
    unposted: list[str]
    """Payments to accounts that are not redeemed yet."""
    failed: list[str]


@dataclass(frozen=True)
class Redeemed:
    payments: list[str]
    waiting_claims: int
    """Claims that a limit on outflow delays; they are paid in order and do not expire."""


@dataclass(frozen=True)
class Repaired:
    removed: list[str]
    found: int


@dataclass(frozen=True)
class Entry:
    """One line of the history."""

    time_ms: int | None
    kind: Literal["received", "deposited", "sent", "moved"]
    asset: str
    amount: Decimal
    to: str | None
    state: str
    id: str
