"""Between the ledger and a purse: withdrawals that become outputs, and certificates that are posted."""

from __future__ import annotations

import time
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from walras.client import operations
from walras.client.encoding import Signed, raw
from walras.client.errors import StoreError, VoidError
from walras.client.models import Fate
from walras.purse.errors import OtherLaneError, PurseError
from walras.purse.folder import REDEEM_EPOCHS, Deposit, hexadecimal
from walras.purse.lane.layout import u8
from walras.purse.lane.payment import long_payment
from walras.purse.lane.receipt import ToAccounts
from walras.purse.terms import Money
from walras.purse.results import Redeemed
from walras.purse.trust import ask, find

if TYPE_CHECKING:
    from walras.purse.session import Session

__all__ = ["CERTIFIED_S", "posted", "resolve", "sent_again", "withdraw"]

CERTIFIED_S, PAUSE_S = 60.0, 0.05
REDEEM = 2
"""The kind of a post with a certified payment."""


def sent_again(session: Session, deposit: Deposit) -> str | None:
    """Sends the bytes of an earlier deposit; None if it can never count, so that a new one may be made."""
    try:
        return session.node.retry(deposit.transaction).id
    except VoidError:
        session.folder.forget_deposit(deposit)
        return None
    except StoreError as error:
        raise PurseError(
            f"the same deposit was sent before as {deposit.transaction}, and its result is unknown: `settle()` takes "
            "it into the purse. To do it twice, give `again=True`"
        ) from error


def withdraw(session: Session, money: Money, units: int, account: str) -> str:
    to = hexadecimal(session.folder.keys.make(session.seed))
    signed: list[Deposit] = []

    def kept(transaction: Signed) -> None:
        made = Deposit(transaction.id, account, transaction.sequence, to, money.asset, units)
        session.folder.keep_deposit(made)
        # Another transaction has the number of the one before, which can never count.
        for earlier in signed:
            session.folder.forget_deposit(earlier)
        signed[:] = [made]

    return session.node.submit(operations.Withdraw(to, money.asset, units), kept=kept).id


def resolve(session: Session, patience: float) -> None:
    """Asks what became of deposits; waits for their blocks to be certified."""
    until = time.monotonic() + patience
    for deposit in session.folder.contents().waiting:
        fate = session.node.fate(deposit.transaction)
        if fate.state == "void" or _is_over(session, fate):
            session.folder.forget_deposit(deposit)
        elif fate.state == "executed" and _is_certified(session, fate, until):
            home = _home_of(session, deposit)
            if home is not None:
                session.folder.keep_deposit(replace(deposit, home=home))


def _is_over(session: Session, fate: Fate) -> bool:
    """Whether what a block refused can count no more: until it ends anybody may send it again."""
    ends = fate.state == "refused" and fate.height is not None and fate.until is not None
    return ends and session.node.status().height > (fate.until or 0)


def _is_certified(session: Session, fate: Fate, until: float) -> bool:
    """Whether validators of the lane accept outputs of the block. A single node certifies nothing."""
    while True:
        status = find(session.node, "/v1/validator")
        if status is None or int(status["certified_anywhere"]) >= (fate.height or 0):
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE_S)


def _home_of(session: Session, deposit: Deposit) -> int | None:
    """The epoch in which the ledger knows the deposit's output. The output's id is computed here."""
    now = session.network.learn(session.node).epoch
    for home in range(now, max(0, now - REDEEM_EPOCHS) - 1, -1):
        id = hexadecimal(deposit.id(session.network.id, home))
        found = find(session.node, f"/v1/lane/outputs/{id}")
        if found is not None:
            if (raw(found["to"]), str(found["amount"])) != (raw(deposit.to), str(deposit.amount)):
                raise OtherLaneError(
                    f"the node's output {id}, at {session.node.server}, differs from the deposit: give another node"
                )
            return home
    return None


def posted(session: Session, payments: list[ToAccounts]) -> Redeemed:
    for slip in payments:
        post = u8(REDEEM) + long_payment(slip.payment) + slip.certificate.encode()
        # Named by its bytes: asked again after a crash, it is the same transaction.
        reference = f"redeem {sha256(post).hexdigest()}"
        fate = session.node.submit(operations.Lane(hexadecimal(post)), reference=reference)
        session.folder.keep_posted(slip.payment.digest(), fate.id)
    waiting = int(ask(session.node, "/v1/lane")["waiting_claims"])
    return Redeemed([hexadecimal(slip.payment.digest()) for slip in payments], waiting)
