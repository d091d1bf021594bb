"""Proofs that outputs exist, receipts, and the texts that people exchange."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from walras.purse.lane import trees
from walras.purse.lane.certificate import Certificate, Claim, parse_certificate, read_certificate
from walras.purse.lane.committee import Committee
from walras.purse.lane.layout import AMOUNT_MAX, Reader, Refused, derived, parsed, require, u8, u16, u32, u64
from walras.purse.lane.payment import (
    ACKNOWLEDGEMENT,
    CONFIRMATION,
    OUTPUTS_MAX,
    Output,
    Payment,
    Summary,
    output_id,
    parse_payment,
    read_output,
    read_summary,
)

Committees = Callable[[int], Committee | None]
SLIP_BYTES_MAX = 1 << 20


def known(committees: Committees, epoch: int) -> Committee:
    committee = committees(epoch)
    if committee is None:
        raise Refused("UnknownCommittee", str(epoch))
    return committee


def check_certified(committees: Committees, kind: int, summary: Summary, certificate: Certificate) -> None:
    committee = known(committees, summary.home)
    certificate.verify(committee, Claim(kind, summary.owner, summary.digest(committee.network)))


@dataclass(frozen=True)
class PaidProof:
    summary: Summary
    index: int
    path: tuple[bytes, ...]
    certificate: Certificate

    def encode(self) -> bytes:
        return self.summary.encode() + u8(self.index) + b"".join(self.path) + self.certificate.encode()

    def id_of(self, network: bytes, output: Output) -> bytes:
        """The id of the output, if the payment created it there. No signature is checked."""
        summary = self.summary
        root = trees.root_of(trees.OUTPUTS, output.leaf(), summary.outputs, self.index, list(self.path))
        require(root == summary.root, "WrongPath", "another output")
        return output_id(summary.into, summary.digest(network), self.index)


def read_paid_proof(reader: Reader) -> PaidProof:
    summary, index = read_summary(reader), reader.u8()
    require(summary.outputs <= OUTPUTS_MAX, "Malformed", "1 to 16 outputs")
    path = trees.read_path(reader, summary.outputs, index)
    return PaidProof(summary, index, tuple(path), read_certificate(reader))


def encode_proof(proof: PaidProof | None) -> bytes:
    return u8(0) if proof is None else u8(1) + proof.encode()


def read_proof(reader: Reader) -> PaidProof | None:
    return reader.option(read_paid_proof)


@dataclass(frozen=True)
class Receipt:
    output: Output
    proof: PaidProof

    def encode(self) -> bytes:
        return self.output.encode() + self.proof.encode()

    def verify(self, network: bytes, committees: Committees) -> bytes:
        """The id of an output that exists: it is *fast*."""
        found = self.proof.id_of(network, self.output)
        check_certified(committees, CONFIRMATION, self.proof.summary, self.proof.certificate)
        return found

    def verify_settled(self, network: bytes, committees: Committees, acknowledgement: Certificate) -> bytes:
        """The same: it is *settled*."""
        found = self.verify(network, committees)
        check_certified(committees, ACKNOWLEDGEMENT, self.proof.summary, acknowledgement)
        return found


def read_receipt(reader: Reader) -> Receipt:
    return Receipt(read_output(reader), read_paid_proof(reader))


def parse_receipt(data: bytes) -> Receipt:
    return parsed(read_receipt, data)


def receipt_of(payment: Payment, index: int, certificate: Certificate) -> Receipt:
    path = trees.path(trees.OUTPUTS, payment.leaves(), index)
    return Receipt(payment.outputs[index], PaidProof(payment.summary(), index, tuple(path), certificate))


@dataclass(frozen=True)
class ToAccounts:
    """A certified payment; the ledger pays what it sends to accounts."""

    payment: Payment
    certificate: Certificate


@dataclass(frozen=True)
class DepositSlip:
    home: int
    id: bytes
    owner: bytes
    asset: int
    amount: int

    def encode(self) -> bytes:
        return u64(self.home) + self.id + self.owner + u32(self.asset) + u64(self.amount)


Slip = Receipt | ToAccounts | DepositSlip


def slip_text(slip: Slip, network: bytes) -> str:
    match slip:
        case Receipt():
            body = u8(1) + network + slip.encode()
        case ToAccounts(payment, certificate):
            data = payment.encode()
            body = u8(2) + network + u16(len(data)) + data + certificate.encode()
        case DepositSlip():
            body = u8(3) + network + slip.encode()
    return "WALRAS:" + (u8(1) + body).hex().upper()


def parse_slip(text: str, network: bytes) -> Slip:
    text = text.strip()
    require(text.startswith("WALRAS:"), "Prefix")
    digits = text.removeprefix("WALRAS:")
    require(len(digits) <= 2 * SLIP_BYTES_MAX, "Long")
    is_hex = len(digits) % 2 == 0 and all(digit in "0123456789abcdefABCDEF" for digit in digits)
    require(is_hex, "Digits")
    data = bytes.fromhex(digits)
    require(len(data) >= 2, "Short")
    require(data[0] == 1, "Strange", "version")
    require(len(data) >= 34, "Short")
    require(data[2:34] == network, "OtherNetwork")
    return slip_of(data[1], data[34:])


def slip_of(kind: int, body: bytes) -> Slip:
    if kind == 1:
        return parse_receipt(body)
    if kind == 2:
        require(len(body) >= 2, "Short")
        end = 2 + int.from_bytes(body[:2], "little")
        require(len(body) >= end, "Short")
        return ToAccounts(parse_payment(body[2:end]), parse_certificate(body[end:]))
    require(kind == 3, "Strange", "kind")
    require(len(body) == 84, "Deposit")
    amount = int.from_bytes(body[76:], "little")
    require(1 <= amount <= AMOUNT_MAX, "Deposit")
    home, asset = int.from_bytes(body[:8], "little"), int.from_bytes(body[72:76], "little")
    return DepositSlip(home, body[8:40], body[40:72], asset, amount)


def lane_address(network: bytes, key: bytes) -> str:
    checksum = derived("walras 2026 lane address v1", network + key)[:4]
    return "lane:" + (key + checksum).hex()


def _bill_sum(network: bytes, body: bytes) -> bytes:
    return derived("walras 2026 lane bill v1", network + body)[:4]


def lane_bill(network: bytes, key: bytes, asset: int, amount: int) -> str:
    """A lane address that asks for units of an asset."""
    body = key + asset.to_bytes(4, "little") + amount.to_bytes(8, "little")
    return "lane:" + (body + _bill_sum(network, body)).hex()


def parse_payable(text: str, network: bytes) -> tuple[bytes, tuple[int, int] | None]:
    """The key of a lane address or a bill; the asset and the units that a bill asks for."""
    try:
        data = bytes.fromhex(text.strip().lower().removeprefix("lane:"))
    except ValueError as error:
        raise Refused("Mistyped") from error
    key, body = data[:32], data[:-4]
    if len(data) == 36:
        require(lane_address(network, key) == "lane:" + data.hex(), "Mistyped")
        return key, None
    require(len(data) == 48 and data[-4:] == _bill_sum(network, body), "Mistyped")
    asset, amount = int.from_bytes(body[32:36], "little"), int.from_bytes(body[36:], "little")
    require(1 <= amount <= AMOUNT_MAX, "Mistyped")
    return key, (asset, amount)
