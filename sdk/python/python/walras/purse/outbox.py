"""Payments that a purse has sent and must finish; each is durable before it is first sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from walras.purse.disk import faults_of, read_bytes, remove, write
from walras.purse.errors import PurseError, PurseFileError
from walras.purse.lane.certificate import Certificate, parse_certificate
from walras.purse.lane.collect import SignedPayment, restored
from walras.purse.lane.layout import Refused

__all__ = ["Outbox", "SentPayment"]

PAYMENT, CERTIFICATE, ACKNOWLEDGEMENT = "payment-", "certificate-", "acknowledgement-"
DAMAGED = "it is damaged: restore it from a copy, or ask the validators which payment spends its money"


@dataclass(frozen=True)
class SentPayment:
    """A payment, and how far it has come."""

    payment: SignedPayment
    certificate: Certificate | None
    is_settled: bool

    @property
    def id(self) -> str:
        return "0x" + self.payment.digest.hex()


class Outbox:
    """A folder of payments, each with its certificate once there is one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def insert(self, payment: SignedPayment) -> None:
        """Makes a payment durable, so that it may be sent. Refuses one whose money another stored one spends."""
        inputs = {one.id for one in payment.payment.inputs}
        for earlier in self.all():
            if earlier.payment.digest == payment.digest:
                return
            spent = inputs & {one.id for one in earlier.payment.payment.inputs}
            if spent:
                raise PurseError(
                    f"output 0x{min(spent).hex()} is spent by payment {earlier.id}, which was begun before: finish "
                    "that one with `settle()`, or its money is frozen"
                )
        write(self._folder / f"{PAYMENT}0x{payment.digest.hex()}", payment.stored())

    def finish(self, digest: bytes, certificate: Certificate) -> None:
        write(self._folder / f"{CERTIFICATE}0x{digest.hex()}", certificate.encode())

    def settle(self, digest: bytes, acknowledgement: Certificate) -> None:
        write(self._folder / f"{ACKNOWLEDGEMENT}0x{digest.hex()}", acknowledgement.encode())

    def all(self) -> list[SentPayment]:
        """Every payment, by digest."""
        with faults_of(self._folder):
            names = sorted(path.name for path in self._folder.iterdir() if not path.name.endswith(".unfinished"))
        return [self._sent(name.removeprefix(PAYMENT), set(names)) for name in names if name.startswith(PAYMENT)]

    def _sent(self, digest: str, names: set[str]) -> SentPayment:
        certified = CERTIFICATE + digest
        paths = [self._folder / (PAYMENT + digest), self._folder / certified]
        try:
            payment = restored(read_bytes(paths[0]))
            certificate = parse_certificate(read_bytes(paths[1])) if certified in names else None
        except Refused as refused:
            raise PurseFileError(paths[0], f"{DAMAGED} ({refused})") from refused
        return SentPayment(payment, certificate, ACKNOWLEDGEMENT + digest in names)

    def forget(self, digests: set[str]) -> None:
        """Removes payments that are over. The payment goes first: without its certificate it would look unfinished."""
        with faults_of(self._folder):
            names = {path.name for path in self._folder.iterdir() if not path.name.endswith(".unfinished")}
        for kind in (PAYMENT, CERTIFICATE, ACKNOWLEDGEMENT):
            for name in names:
                digest = name.removeprefix(kind)
                if name.startswith(kind) and (digest in digests or PAYMENT + digest not in names):
                    remove(self._folder / name)
