"""The folder of a purse. `walras pay` has the same files in the same form.

===================  =============================================================================================
`lane.json`          the lane that the purse is for, pinned when it was made
`proved-epochs.json` the keys of lane epochs, which the ledger has proved
`boards.json`        boards on which members made group keys
`validators.json`    the chain's newest validators that were proved, where they change
`seed.json`          the seed, encrypted like other keys
`keys.json`          the public keys made of the seed: one for each deposit, address and change
`deposits/`          withdrawals from the ledger that become outputs
`received/`          receipts of others' payments, and proofs that they are settled
`outbox/`            payments, durable before they are first sent, with their certificates
`posted/`            marks of payments whose certificate is in the ledger
`contested/`         marks of payments whose money the ledger was asked to decide about
`device`             a file that copies of the folder do not match: it shows a purse that it was restored
===================  =============================================================================================

The balance follows from these files: outputs of deposits, of received receipts and of own payments, minus what own
payments spend. A file gets its name once it is durable.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from walras.client.encoding import raw
from walras.purse.disk import faults_of, make_folder, read_bytes, read_json, remove, write, write_json
from walras.purse.errors import PurseError, PurseFileError, PurseInUseError
from walras.purse.keyring import KeyRing
from walras.purse.lane.certificate import Certificate
from walras.purse.lane.collect import Holding
from walras.purse.lane.layout import Refused
from walras.purse.lane.payment import Output, carried_id, deposit_id
from walras.purse.lane.receipt import Receipt, parse_slip, receipt_of, slip_text
from walras.purse.network import BOARDS, EPOCHS, LANE, PROVED, LaneNetwork
from walras.purse.outbox import Outbox, SentPayment

__all__ = ["Contents", "Deposit", "Folder", "Held"]

SEED, KEYS, DEVICE, DEVICE_MARK, PLAN = "seed.json", "keys.json", "device", "device.json", "follow.json"
PARTS = DEPOSITS, RECEIVED, POSTED, CONTESTED, OUTBOX = "deposits", "received", "posted", "contested", "outbox"
SETTLED, ASIDE = ".settled", "removed"
REDEEM_EPOCHS = 3
"""Lane epochs after its own in which a payment's outputs can be redeemed."""


@dataclass(frozen=True)
class Held:
    """Money of a purse."""

    holding: Holding
    is_settled: bool
    receipt: Receipt | None = None
    """The receipt of the payment that created it; None for a deposit."""
    is_received: bool = False

    @property
    def id(self) -> bytes:
        return self.holding.id


@dataclass(frozen=True)
class Deposit:
    """A withdrawal from the ledger that becomes an output of the purse."""

    transaction: str
    account: str
    sequence: int
    to: str
    asset: int
    amount: int
    home: int | None = None
    carried: str | None = None
    """The output of the network before a restart whose place it takes."""

    def body(self) -> dict[str, Any]:
        names = ("transaction", "account", "sequence", "to", "asset", "amount", "home")
        of = {name: getattr(self, name) for name in names}
        return of if self.carried is None else {**of, "carried": self.carried}

    def id(self, network: bytes, home: int) -> bytes:
        if self.carried is not None:
            return carried_id(network, raw(self.carried))
        return deposit_id(network, home, raw(self.account), self.sequence)

    def held(self, network: bytes) -> Held | None:
        """The output, if its home is known."""
        if self.home is None:
            return None
        output = Output(0, raw(self.to), self.asset, self.amount)
        return Held(Holding(self.id(network, self.home), output, self.home), True)


@dataclass
class Contents:
    """What is in a purse."""

    held: dict[bytes, Held] = field(default_factory=dict)
    """Outputs that no own payment spends."""
    spent: dict[bytes, Held] = field(default_factory=dict)
    sent: list[SentPayment] = field(default_factory=list)
    waiting: list[Deposit] = field(default_factory=list)
    """Deposits that are not outputs yet."""

    @property
    def holdings(self) -> list[Holding]:
        return [one.holding for one in self.held.values()]


def hexadecimal(data: bytes) -> str:
    return "0x" + data.hex()


def _locked(folder: Path) -> int:
    with faults_of(folder):
        descriptor = os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise PurseInUseError(folder) from None
    return descriptor


class Folder:
    """A folder that is open: no other program uses it meanwhile."""

    def __init__(self, path: Path) -> None:
        if not (path / LANE).exists():
            raise PurseFileError(path, f"is not a purse. Make one with Purse.new({os.fspath(path)!r}, …)")
        self.path, self._lock = path, _locked(path)
        try:
            _finish(path)
            self.network = LaneNetwork.read(path)
            self.keys = KeyRing(path / KEYS)
            self.outbox = Outbox(path / OUTBOX)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path, network: LaneNetwork, make_seed: Any) -> None:
        """Makes a purse for a lane; `make_seed` writes the seed's key file, if there is none."""
        if (path / LANE).exists():
            raise PurseFileError(path, "is a purse already: choose another folder")
        make_folder(path)
        lock = _locked(path)
        try:
            for part in PARTS:
                make_folder(path / part)
            if not (path / SEED).exists():
                make_seed(path / SEED)
            KeyRing.create(path / KEYS)
            _mark_device(path)
            # The last file makes it a purse.
            network.write(path)
        finally:
            os.close(lock)

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    @property
    def is_copy(self) -> bool:
        """Whether the folder is a copy, or was restored from one."""
        try:
            return bool(read_json(self.path / DEVICE_MARK) != _device(self.path))
        except (PurseError, OSError):
            return True

    def settle_in(self) -> None:
        """The purse knows what was spent, so it is no copy any more. New keys use another salt."""
        self.keys.renew_salt()
        _mark_device(self.path)

    def is_own(self, output: Output) -> bool:
        return output.kind == 0 and output.to in self.keys

    def _files(self, part: str) -> list[Path]:
        with faults_of(self.path / part):
            paths = sorted((self.path / part).iterdir())
        return [path for path in paths if path.suffix != ".unfinished" and path.name != "lock"]

    def deposits(self) -> list[Deposit]:
        return [_read_deposit(path) for path in self._files(DEPOSITS)]

    def keep_deposit(self, deposit: Deposit) -> None:
        write_json(self.path / DEPOSITS / f"{deposit.transaction}.json", deposit.body())

    def forget_deposit(self, deposit: Deposit) -> None:
        remove(self.path / DEPOSITS / f"{deposit.transaction}.json")

    def keep_receipt(self, id: bytes, receipt: Receipt) -> bool:
        """Stores a verified receipt; False if it was already there."""
        path = self.path / RECEIVED / hexadecimal(id)
        is_new = not path.exists()
        if is_new:
            write(path, slip_text(receipt, self.network.id).encode())
        return is_new

    def keep_settled(self, held: Held, digest: bytes, proof: Certificate) -> None:
        """Records that the payment behind an output is settled."""
        if held.is_received:
            write(self.path / RECEIVED / (hexadecimal(held.id) + SETTLED), proof.encode())
        else:
            self.outbox.settle(digest, proof)

    def keep_posted(self, digest: bytes, transaction: str) -> None:
        write(self.path / POSTED / hexadecimal(digest), transaction.encode())

    def is_posted(self, digest: bytes) -> bool:
        return (self.path / POSTED / hexadecimal(digest)).exists()

    def is_contested(self, digest: bytes) -> bool:
        return (self.path / CONTESTED / hexadecimal(digest)).exists()

    def put_aside(self, sent: SentPayment) -> None:
        """A payment that nothing verifies counts no more; its bytes stay in the folder."""
        make_folder(self.path / ASIDE)
        write(self.path / ASIDE / sent.id, sent.payment.request)
        self.outbox.forget({sent.id})

    def written_ms(self, part: str, id: str) -> int | None:
        """When the first file of a part was written whose name contains an id, milliseconds since 1970."""
        times = [path.stat().st_mtime_ns // 1_000_000 for path in self._files(part) if id in path.name]
        return min(times, default=None)

    def _of_receipt(self, receipt: Receipt, is_settled: bool, is_received: bool) -> Held | None:
        output = receipt.output
        if not self.is_own(output):
            return None
        id = receipt.proof.id_of(self.network.id, output)
        holding = Holding(id, output, receipt.proof.summary.into, receipt.proof)
        return Held(holding, is_settled, receipt, is_received)

    def _received(self) -> list[Held]:
        names = {path.name for path in self._files(RECEIVED)}
        found = []
        for path in self._files(RECEIVED):
            if path.name.endswith(SETTLED):
                continue
            try:
                slip = parse_slip(read_bytes(path).decode(), self.network.id)
                if isinstance(slip, Receipt):
                    found.append(self._of_receipt(slip, path.name + SETTLED in names, is_received=True))
            except (Refused, UnicodeDecodeError) as error:
                raise PurseFileError(path, f"it is damaged ({error}): get the receipt again from the payer") from error
        return [held for held in found if held is not None]

    def _made(self, sent: SentPayment) -> list[Held]:
        """What a confirmed payment of the purse leaves in it."""
        if sent.certificate is None:
            return []
        of = sent.payment.payment
        receipts = [receipt_of(of, index, sent.certificate) for index in range(len(of.outputs))]
        found = [self._of_receipt(one, sent.is_settled, is_received=False) for one in receipts]
        return [held for held in found if held is not None]

    def contents(self) -> Contents:
        contents, deposits = Contents(sent=self.outbox.all()), self.deposits()
        made = [deposit.held(self.network.id) for deposit in deposits]
        contents.waiting = [one for one, held in zip(deposits, made, strict=True) if held is None]
        own = [held for sent in contents.sent for held in self._made(sent)]
        for held in [*(one for one in made if one is not None), *self._received(), *own]:
            contents.held[held.id] = held
        for sent in contents.sent:
            for one in sent.payment.payment.inputs:
                if one.id in contents.held:
                    contents.spent[one.id] = contents.held.pop(one.id)
        return contents

    def forget_old(self, now: int) -> int:
        """Removes confirmed payments that can have no further effect, with what they spent."""
        over = {}
        for sent in self.contents().sent:
            of = sent.payment.payment
            if sent.certificate is not None and now - of.into > REDEEM_EPOCHS:
                over[sent.id] = {one.id for one in of.inputs}
        spent = set().union(*over.values())
        # Spent outputs are removed first, so that none ever seems unspent.
        for id in spent:
            remove(self.path / RECEIVED / hexadecimal(id))
            remove(self.path / RECEIVED / (hexadecimal(id) + SETTLED))
        for deposit in self.deposits():
            held = deposit.held(self.network.id)
            if held is not None and held.id in spent:
                self.forget_deposit(deposit)
        self.outbox.forget(set(over))
        for digest in over:
            remove(self.path / POSTED / digest)
            remove(self.path / CONTESTED / digest)
        return len(over)


def _read_deposit(path: Path) -> Deposit:
    body = read_json(path)
    try:
        numbers = {name: int(body[name]) for name in ("sequence", "asset", "amount")}
        texts = {name: str(body[name]) for name in ("transaction", "account", "to")}
        home = None if body["home"] is None else int(body["home"])
        return replace(Deposit(**texts, **numbers), home=home, carried=body.get("carried"))  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        raise PurseFileError(path, f"it is damaged ({error}): restore it from a copy") from error


def _device(folder: Path) -> dict[str, Any]:
    """The properties that distinguish the file `device` from its copies."""
    of = (folder / DEVICE).stat()
    return {"inode": of.st_ino, "changed": [of.st_ctime_ns // 1_000_000_000, of.st_ctime_ns % 1_000_000_000]}


def _mark_device(folder: Path) -> None:
    # A new file is needed: the mark in the earlier file, which may be a copy, must not match.
    write(folder / DEVICE, b"")
    with faults_of(folder / DEVICE):
        mark = _device(folder)
    write_json(folder / DEVICE_MARK, mark)


def _finish(folder: Path) -> None:
    """Does what is left to do, if `walras pay follow` began to follow a restart."""
    if not (folder / PLAN).exists():
        return
    plan = read_json(folder / PLAN)
    before = folder / str(plan["before"])
    make_folder(before)
    with faults_of(before):
        for part in (*PARTS, EPOCHS, PROVED, BOARDS):
            if (folder / part).exists() and not (before / part).exists():
                (folder / part).rename(before / part)
    for part in PARTS:
        make_folder(folder / part)
    for deposit in plan["deposits"]:
        write_json(folder / DEPOSITS / f"{deposit['transaction']}.json", deposit)
    write_json(folder / LANE, plan["lane"])
    remove(folder / PLAN)
