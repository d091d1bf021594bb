"""A purse for the payment lane, with the same folder as `walras pay`.

    from walras.client import Client
    from walras.purse import Purse

    with Purse.open("walras-purse", passphrase, Client("http://127.0.0.1:8080")) as purse:
        sent = purse.send("lane:5b01…", "EUR", "12.50", receipt="coffee.txt")

What a payment promises: *fast*, a quorum of validators has signed it, and no other payment of this money can be
confirmed; it can lapse if the payer contests it and nobody settles it for a lane epoch. *Settled*, a quorum has stored
its certificate: it is final.
"""

from walras.purse.errors import (
    LaneError,
    MissingMoneyError,
    OtherLaneError,
    PurseError,
    PurseFileError,
    PurseInUseError,
    ReceiptError,
    UnconfirmedError,
    UnprovedError,
)
from walras.purse.purse import Purse
from walras.purse.results import (
    Balance,
    Bill,
    Deposited,
    Entry,
    Paid,
    Proved,
    Received,
    Redeemed,
    Repaired,
    Scheme,
    Sent,
    Settled,
)

__all__ = [
    "Balance",
    "Bill",
    "Deposited",
    "Entry",
    "LaneError",
    "MissingMoneyError",
    "OtherLaneError",
    "Paid",
    "Proved",
    "Purse",
    "PurseError",
    "PurseFileError",
    "PurseInUseError",
    "ReceiptError",
    "Received",
    "Redeemed",
    "Repaired",
    "Scheme",
    "Sent",
    "Settled",
    "UnconfirmedError",
    "UnprovedError",
]
