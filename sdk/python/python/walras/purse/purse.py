"""A purse for the payment lane: what `walras pay` does, from Python, with the same folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from walras.client.amounts import Number, plain
from walras.client.encoding import address_bytes
from walras.client.keys import Ed25519Key
from walras.client.sync import Client
from walras.purse import ledger, receipts
from walras.purse.choose import Missing, choose
from walras.purse.disk import HeldFile
from walras.purse.errors import LaneError, MissingMoneyError, PurseError, ReceiptError
from walras.purse.folder import SEED, Deposit, Folder, Held, hexadecimal
from walras.purse.lane import ed25519
from walras.purse.lane.certificate import Certificate, Claim
from walras.purse.lane.collect import AGGREGATE, SHARES, TREES, SignedPayment
from walras.purse.lane.layout import Refused
from walras.purse.lane.payment import CONFIRMATION, Output
from walras.purse.lane.receipt import ToAccounts, lane_address, lane_bill
from walras.purse.network import LaneNetwork
from walras.purse.outbox import SentPayment
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
from walras.purse.session import Session
from walras.purse.terms import Money

__all__ = ["Purse"]

P = ParamSpec("P")
T = TypeVar("T")
_SCHEMES: dict[str, int] = {"merkle": TREES, "bls": AGGREGATE, "threshold": SHARES}
RECEIPT_ROOM = 256 << 10
"""Bytes for which the disk has room before money moves: more than receipts of a payment have."""


def _alone(method: Callable[Concatenate[Purse, P], T]) -> Callable[Concatenate[Purse, P], T]:
    """One thread at a time: two could choose the same money."""

    @wraps(method)
    def held(self: Purse, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._alone:
            return method(self, *args, **kwargs)

    return held


def _is_lane(to: str) -> bool:
    return to.strip().lower().startswith("lane:")


class Purse:
    """A folder with a seed, the keys made of it, and the proofs of its money. `walras pay` opens the same folder.

    `client` is the node that is asked, with the key of a ledger account for `deposit` and `redeem`. Without one the
    purse verifies, receives and shows. Without a `passphrase` it makes no keys and spends nothing. `patience` is the
    longest wait for a quorum, in seconds.

    While it is open nobody else can use the folder: close it, or use it in a ``with`` block.
    """

    def __init__(self, folder: Folder, seed: bytes | None, client: Client | None, patience: float) -> None:
        self._folder, self._session = folder, Session(folder, seed, client, patience)
        self._alone = RLock()

    @classmethod
    def new(
        cls,
        folder: str | os.PathLike[str],
        passphrase: str,
        client: Client,
        *,
        network: str | None = None,
        validators: list[str] | None = None,
        patience: float = 30.0,
    ) -> Purse:
        """Makes a purse for the lane of a node, which is trusted with what is not given: `network` is the identity that
        the lane must have, `validators` are the keys of the chain's validators, in order."""
        path = Path(folder)
        lane = LaneNetwork.of_node(client, network, validators)
        Folder.create(path, lane, lambda seed: Ed25519Key.generate().save(seed, passphrase))
        return cls.open(path, passphrase, client, patience=patience)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        passphrase: str | None = None,
        client: Client | None = None,
        *,
        patience: float = 30.0,
    ) -> Purse:
        """Opens a purse that `new` or `walras pay new` made."""
        opened = Folder(Path(folder))
        try:
            seed = None if passphrase is None else Ed25519Key.open(opened.path / SEED, passphrase).seed
        except BaseException:
            opened.close()
            raise
        return cls(opened, seed, client, patience)

    def __enter__(self) -> Purse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections, and lets others use the folder. The client is the caller's."""
        self._session.close_shards()
        self._folder.close()

    @property
    def network(self) -> str:
        """The identity of the lane."""
        return hexadecimal(self._session.network.id)

    @property
    def is_copy(self) -> bool:
        """Whether the folder was copied or restored: then it asks a quorum what it has spent before it spends."""
        return self._folder.is_copy

    # What is shown.

    @_alone
    def address(self) -> str:
        """A new lane address, with a key of its own that is stored before it is shown."""
        return lane_address(self._session.network.id, self._folder.keys.make(self._session.seed))

    @_alone
    def bill(self, asset: str, amount: Number) -> str:
        """A new lane address that asks for an amount. Who pays it reads the amount with `asked`."""
        network = self._session.network
        money = network.money(asset)
        units = money.units(amount)
        if units < max(money.least_units, 1):
            least = network.shown(money.asset, max(money.least_units, 1))
            raise PurseError(f"a bill in this asset asks for at least {least}: ask for more")
        return lane_bill(network.id, self._folder.keys.make(self._session.seed), money.asset, units)

    def asked(self, to: str) -> Bill | None:
        """What an address asks for; None if it asks for nothing, as accounts and plain lane addresses do."""
        return receipts.payable(self._folder, to)[1] if _is_lane(to) else None

    @_alone
    def balance(self, *, offline: bool = False) -> list[Balance]:
        """The purse's money. `offline` asks no node: then it is not known what can only go home."""
        now = None
        if not offline:
            now = self._session.network.learn(self._session.node).epoch
            ledger.resolve(self._session, 0)
        contents = self._folder.contents()
        sums: dict[int, dict[str, int]] = {}

        def count(asset: int, part: str, units: int) -> None:
            of = sums.setdefault(asset, dict.fromkeys(("settled", "fast", "pending", "home_only", "lost"), 0))
            of[part] += units

        for held in contents.held.values():
            count(held.holding.output.asset, _part(held, now), held.holding.output.amount)
        for deposit in contents.waiting:
            count(deposit.asset, "pending", deposit.amount)
        for sent in contents.sent:
            if sent.certificate is None and not self._folder.is_contested(sent.payment.digest):
                for output in filter(self._folder.is_own, sent.payment.payment.outputs):
                    count(output.asset, "pending", output.amount)
        return [self._balance(asset, parts) for asset, parts in sorted(sums.items())]

    def _balance(self, asset: int, parts: dict[str, int]) -> Balance:
        money = self._session.network.numbered(asset)
        return Balance(money.symbol, **{name: money.amount(units) for name, units in parts.items()})

    @_alone
    def history(self) -> list[Entry]:
        """Deposits, receipts and payments, the oldest first. Payments that can have no further effect are forgotten
        with `settle`."""
        contents = self._folder.contents()
        entries = [self._received_entry(held) for held in (contents.held | contents.spent).values() if held.is_received]
        entries += [self._deposit_entry(deposit) for deposit in self._folder.deposits()]
        for sent in contents.sent:
            entries += self._sent_entries(sent)
        return sorted(entries, key=lambda entry: entry.time_ms or 0)

    def _entry(self, part: str, kind: Any, output: Output | Deposit, to: str | None, state: str, id: str) -> Entry:
        money = self._session.network.numbered(output.asset)
        time_ms = self._folder.written_ms(part, id)
        return Entry(time_ms, kind, money.symbol, money.amount(output.amount), to, state, id)

    def _received_entry(self, held: Held) -> Entry:
        state = "settled" if held.is_settled else "fast"
        return self._entry("received", "received", held.holding.output, None, state, hexadecimal(held.id))

    def _deposit_entry(self, deposit: Deposit) -> Entry:
        state = "pending" if deposit.home is None else "settled"
        return self._entry("deposits", "deposited", deposit, None, state, deposit.transaction)

    def _sent_entries(self, sent: SentPayment) -> list[Entry]:
        """What a payment pays others, an entry for each output; what moves within the purse is one entry."""
        if sent.certificate is None:
            state = "contested" if self._folder.is_contested(sent.payment.digest) else "not confirmed"
        else:
            state = "settled" if sent.is_settled else "fast"
        outputs = sent.payment.payment.outputs
        abroad = [output for output in outputs if not self._folder.is_own(output)]
        if not abroad:
            return [self._entry("outbox", "moved", outputs[0], None, state, sent.id)]
        to = [(output, receipts.shown(self._folder, output)) for output in abroad]
        return [self._entry("outbox", "sent", output, shown, state, sent.id) for output, shown in to]

    # Money in and out of the ledger.

    @_alone
    def deposit(self, asset: str, amount: Number, *, again: bool = False) -> Deposited:
        """Moves money from the client's account into the purse. A deposit that was sent before and whose result is
        unknown is sent as the same bytes; `again` makes a second one."""
        # The node must be of the purse's lane; otherwise the money would go to another lane. It also tells the terms.
        now = self._session.network.learn(self._session.node)
        money = self._session.network.money(asset)
        units = money.units(amount)
        self._session.network.check_deposit(money, units, now.epoch)
        ledger.resolve(self._session, 0)
        account = self._session.node.address
        place = (money.asset, units, account)
        same = [one for one in self._folder.contents().waiting if (one.asset, one.amount, one.account) == place]
        done = ledger.sent_again(self._session, same[0]) if same and not again else None
        transaction = done or ledger.withdraw(self._session, money, units, account)
        ledger.resolve(self._session, ledger.CERTIFIED_S)
        waiting = {one.transaction for one in self._folder.contents().waiting}
        return Deposited(transaction, asset, money.amount(units), transaction not in waiting)

    @_alone
    def redeem(self, asset: str | None = None, amount: Number | None = None, *, scheme: Scheme = "merkle") -> Redeemed:
        """Moves money back to the client's account, and posts whatever payments to accounts are not posted yet."""
        if (asset is None) != (amount is None):
            raise ValueError("give an asset with its amount")
        if asset is not None and amount is not None:
            account = Output(1, address_bytes(self._session.node.address), 0, 0)
            self._pay(account, self._session.network.money(asset), amount, _SCHEMES[scheme], is_settled=True)
        sent = [one for one in self._folder.contents().sent if self._is_unposted(one)]
        if not sent:
            raise PurseError(
                "there is nothing to redeem: give an asset and an amount, or receipts to `redeem_receipts`"
            )
        found = [ToAccounts(one.payment.payment, one.certificate) for one in sent if one.certificate is not None]
        return ledger.posted(self._session, found)

    @_alone
    def redeem_receipts(self, text: str) -> Redeemed:
        """Posts receipts of payments to accounts: the ledger credits those accounts. Anybody may."""
        self._session.network.learn(self._session.node)
        slips = receipts.slips_of(self._folder, text)
        for slip in slips:
            receipts.verified(self._folder, slip)
            if not isinstance(slip, ToAccounts):
                raise ReceiptError("NoAccount", "the receipt pays no ledger account: give it to `receive`")
        return ledger.posted(self._session, [slip for slip in slips if isinstance(slip, ToAccounts)])

    def _is_unposted(self, sent: SentPayment) -> bool:
        pays = any(output.kind == 1 for output in sent.payment.payment.outputs)
        return pays and sent.certificate is not None and not self._folder.is_posted(sent.payment.digest)

    # Payments.

    @_alone
    def send(
        self,
        to: str,
        asset: str,
        amount: Number,
        *,
        receipt: str | os.PathLike[str] | None = None,
        settle: bool = True,
        scheme: Scheme = "merkle",
    ) -> Sent:
        """Pays a lane address or a ledger account. Give the recipient the receipt: without it they have nothing.

        `receipt` is a new file for it, held before anything is paid; no file is overwritten. Without `settle` the
        recipient settles. Raises an `UnconfirmedError` for a payment that must be finished later, with `settle()`.
        """
        money = self._session.network.money(asset)
        payee = self._payee(to, money, amount)
        file = HeldFile(Path(receipt), RECEIPT_ROOM) if receipt is not None else None
        try:
            payments, paid, unsettled = self._pay(payee, money, amount, _SCHEMES[scheme], is_settled=settle)
        except BaseException:
            if file is not None:
                file.drop()
            raise
        text = "\n".join(slip for one in payments for slip in receipts.for_others(self._folder, *one))
        if file is not None:
            file.keep((text + "\n").encode()) if text else file.drop()
        shown = receipts.shown(self._folder, payee)
        return Sent(shown, asset, money.amount(money.units(amount)), paid, text, unsettled)

    def _payee(self, to: str, money: Money, amount: Number) -> Output:
        """A bill is paid as it asks, or not at all."""
        if not _is_lane(to):
            return Output(1, address_bytes(to), 0, 0)
        key, bill = receipts.payable(self._folder, to)
        if bill and (bill.asset, money.units(bill.amount)) != (money.symbol, money.units(amount)):
            given = self._session.network.shown(money.asset, money.units(amount))
            raise PurseError(
                f"the address asks for {plain(bill.amount)} {bill.asset}, not {given}: pay that, or get another address"
            )
        return Output(0, key, 0, 0)

    def _pay(
        self, payee: Output, money: Money, amount: Number, scheme: int, *, is_settled: bool
    ) -> tuple[list[tuple[SignedPayment, Certificate]], list[Paid], list[str]]:
        """Chooses, builds, stores, sends and settles. Once one payment is stored, all must be finished."""
        units = money.units(amount)
        now = self._session.begin()
        network, held = self._session.network, self._folder.contents().holdings
        chosen = choose(held, money.asset, lambda home: network.rule(money.asset, home), units, now.epoch)
        if isinstance(chosen, Missing):
            raise MissingMoneyError(network.shown(money.asset, chosen.units))
        # Checked before anything is signed.
        for part in chosen:
            self._session.check_scheme(part.inputs[0].home, scheme)
        payments = []
        for part in chosen:
            outputs = [replace(payee, asset=money.asset, amount=part.paid)]
            if part.change:
                outputs.append(Output(0, self._folder.keys.make(self._session.seed), money.asset, part.change))
            payments.append(self._session.built(part.inputs, now.epoch, outputs))
        for payment in payments:
            self._folder.outbox.insert(payment)
        confirmed, paid, unsettled = [], [], []
        for payment in payments:
            begun = time.monotonic()
            certificate = self._session.confirm(now, payment, scheme)
            confirmed.append((payment, certificate))
            paid.append(Paid(hexadecimal(payment.digest), time.monotonic() - begun, None))
        for at, (payment, certificate) in enumerate(confirmed if is_settled else []):
            begun = time.monotonic()
            try:
                proof = self._session.acknowledge(now, payment.payment.summary(), certificate, scheme)
                self._folder.outbox.settle(payment.digest, proof)
                paid[at] = replace(paid[at], settled_s=time.monotonic() - begun)
            except LaneError as error:
                # Its receipt is valid without, and it can be tried again.
                unsettled.append(f"payment {paid[at].payment}: {error}")
        return confirmed, paid, unsettled

    @_alone
    def export(self, payment: str) -> str:
        """The receipts of one of the purse's payments again, by its digest or the first digits of it."""
        start = "0x" + payment.lower().removeprefix("0x")
        found = [sent for sent in self._folder.outbox.all() if sent.id.startswith(start)]
        if len(found) != 1:
            none = "is no payment of this purse: see `history()`"
            raise PurseError(f"{payment} {'matches several payments: write more digits' if found else none}")
        if found[0].certificate is None:
            raise PurseError(f"payment {found[0].id} is not confirmed yet: use `settle()`")
        return "\n".join(receipts.for_others(self._folder, found[0].payment, found[0].certificate))

    # Receipts.

    @_alone
    def verify(self, text: str) -> list[Proved]:
        """Checks receipts, one on each line, with only the proved keys of the lane. This proves that a payment is fast,
        not that it is settled."""
        slips = receipts.slips_of(self._folder, text)
        return [proved for slip in slips for proved in receipts.verified(self._folder, slip)]

    @_alone
    def receive(self, text: str, *, settle: bool = True) -> list[Received]:
        """Checks receipts, one on each line, and takes their money into the purse: all of them, or none. It settles the
        payments, which makes them final; where that fails they are fast, and `settle()` tries again."""
        slips = receipts.slips_of(self._folder, text)
        now = self._session.now() if settle else None
        taken = [receipts.checked(self._folder, slip, now.epoch if now else None) for slip in slips]
        new = {id: self._folder.keep_receipt(id, receipt) for id, receipt in dict(taken).items()}
        if now is not None:
            self._session.settle_all(now)
        held = self._folder.contents().held
        rows = []
        for id, receipt in dict(taken).items():
            money = self._session.network.numbered(receipt.output.asset)
            is_settled = id not in held or held[id].is_settled
            amount = money.amount(receipt.output.amount)
            rows.append(Received(hexadecimal(id), money.symbol, amount, new[id], is_settled))
        return rows

    @_alone
    def settle(self) -> Settled:
        """Finishes and settles everything, and renews money that can be spent for the last time in this lane epoch.
        Call it at least once in each: after the next one money can only go to the ledger account of its key."""
        ledger.resolve(self._session, ledger.CERTIFIED_S)
        now, finished, failed = self._session.now(), 0, []
        for sent in self._folder.outbox.all():
            if sent.certificate is not None:
                continue
            try:
                self._session.confirm(now, sent.payment)
                finished += 1
            except LaneError as error:
                # About a contested one the ledger decides.
                if not self._folder.is_contested(sent.payment.digest):
                    failed.append(str(error))
        settled, unsettled = self._session.settle_all(now)
        renewed = sent_home = 0
        if any(now.epoch - held.holding.home in (1, 2) for held in self._folder.contents().held.values()):
            now = self._session.begin()
            renewed, sent_home = self._session.renew(now), self._session.send_home(now)
        forgotten = self._folder.forget_old(now.epoch)
        unposted = [sent.id for sent in self._folder.contents().sent if self._is_unposted(sent)]
        return Settled(finished, settled, renewed, sent_home, forgotten, unposted, failed + unsettled)

    # A copy, or a purse that was led astray.

    @_alone
    def restore(self) -> int:
        """Asks a quorum what spends each output, and finishes the payments that it learns of: their number. A purse
        that was copied or restored does so by itself before it spends."""
        return self._session.restore(self._session.now())

    @_alone
    def repair(self) -> Repaired:
        """Puts aside what nothing verifies, and asks the validators what is true instead: for a purse that a lying node
        led astray. The bytes stay in the folder ``removed``."""
        # Without it nothing is put aside.
        _ = self._session.seed
        now = self._session.now()
        removed = [sent for sent in self._folder.outbox.all() if not self._is_proved(sent)]
        for sent in removed:
            self._folder.put_aside(sent)
        return Repaired([sent.id for sent in removed], self._session.restore(now))

    def _is_proved(self, sent: SentPayment) -> bool:
        """Whether a payment is certified, or signed by a key of the purse and not confirmed yet."""
        of = sent.payment.payment
        if of.network != self._session.network.id or of.owner not in self._folder.keys:
            return False
        if sent.certificate is None:
            return ed25519.holds(of.owner, of.signing_bytes(), sent.payment.signature)
        committee = self._session.network.committee(of.home)
        if committee is None:
            # The keys of an epoch that ended long ago may be forgotten: certificates were verified when they came.
            return True
        try:
            sent.certificate.verify(committee, Claim(CONFIRMATION, of.owner, sent.payment.digest))
            return True
        except Refused:
            return False


def _part(held: Held, now: int | None) -> str:
    since = 0 if now is None else now - held.holding.home
    if since == 2:
        return "home_only"
    if since > 2:
        return "lost"
    return "settled" if held.is_settled else "fast"


