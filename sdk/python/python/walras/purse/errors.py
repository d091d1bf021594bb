"""What can go wrong with a purse: each error says what, where and what to do. Money is where it was before the call,
unless the error names a payment: that one is stored, and `settle` finishes it."""

from __future__ import annotations

from pathlib import Path

from walras.client.errors import ClientError
from walras.purse.lane.layout import Refused

__all__ = [
    "LaneError",
    "MissingMoneyError",
    "OtherLaneError",
    "PurseError",
    "PurseFileError",
    "PurseInUseError",
    "ReceiptError",
    "UnconfirmedError",
    "UnprovedError",
]


class PurseError(ClientError):
    """Every error of a purse."""


class PurseFileError(PurseError):
    """The folder or a file of it cannot be used as it is."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path


class PurseInUseError(PurseError):
    """The purse is open already, here or in another program."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder}: another program uses this purse; wait until it has ended, or close it there")
        self.folder = folder


class OtherLaneError(PurseError):
    """The node is of another lane than the purse."""


class UnprovedError(PurseError):
    """The keys of the lane are not proved by the ledger, so nothing is sent and no receipt is believed."""


class LaneError(PurseError):
    """So many members refuse, or so few answer, that there is no quorum. The same bytes may be sent again."""


class UnconfirmedError(LaneError):
    """A payment was sent, and no quorum has confirmed it yet. It is stored."""

    def __init__(self, payment: str, why: str) -> None:
        super().__init__(
            f"payment {payment} is not confirmed ({why}); `settle()` sends the same bytes again; if validators still "
            "refuse it, `walras pay contest` returns its money to the ledger"
        )
        self.payment = payment


class MissingMoneyError(PurseError):
    """The purse has not enough of an asset that it can spend now."""

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"the purse cannot make up this amount: {missing} are missing, with fees and least outputs; pending money "
            "can be spent once it is settled: `balance()` shows what there is, `settle()` ends what is pending"
        )
        self.missing = missing


class ReceiptError(PurseError):
    """A text is no receipt that this purse takes. `reason` is a word of docs/lane-specification.md."""

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(what)
        self.reason = reason


_AGAIN = "get the receipt again from the payer"
WORDS = {
    "Prefix": "the text is no receipt: a receipt begins with WALRAS:",
    "Long": "the text is longer than any receipt",
    "Digits": f"a receipt is hexadecimal after WALRAS:, and this has other characters: {_AGAIN}",
    "Short": f"the receipt ends too early: {_AGAIN}",
    "Strange": f"the receipt has a version or a kind that is not known: {_AGAIN}, or use a newer walras",
    "OtherNetwork": "the receipt is of another network than this purse: open the purse of that network",
    "Deposit": f"the deposit in the receipt is damaged: {_AGAIN}",
    "NoOutput": "the receipt is a note about a deposit, for a watcher: it proves no money",
    "PaysAccounts": "the receipt pays ledger accounts: give it to `redeem_receipts`",
    "UnknownCommittee": "the validators' keys of the receipt's lane epoch are not proved here: connect the purse to a "
    "node and call `settle()`, which learns them; a receipt of a lane epoch that is not begun or long over is "
    "worthless",
    "UnknownAsset": "the address asks for an asset that this lane did not carry when the purse was made: get another "
    "address",
    "Mistyped": "the address is mistyped or belongs to another lane: copy it again from its source",
}


def in_words(refused: Refused) -> ReceiptError:
    """Why a text is no receipt."""
    known = WORDS.get(refused.reason)
    return ReceiptError(refused.reason, known or f"the receipt proves nothing ({refused}): {_AGAIN}")
