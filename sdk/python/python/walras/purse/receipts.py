"""Receipts as people exchange them: what they prove, and what a purse takes."""

from __future__ import annotations

from walras.client.encoding import checked_address, raw
from walras.purse.errors import ReceiptError, in_words
from walras.purse.folder import Folder, hexadecimal
from walras.purse.lane.certificate import Certificate
from walras.purse.lane.collect import SignedPayment
from walras.purse.lane.layout import Refused, require
from walras.purse.lane.payment import CONFIRMATION, Output
from walras.purse.lane.receipt import (
    DepositSlip,
    Receipt,
    Slip,
    ToAccounts,
    check_certified,
    lane_address,
    parse_payable,
    parse_slip,
    receipt_of,
    slip_text,
)
from walras.purse.results import Bill, Proved

__all__ = ["checked", "for_others", "payable", "shown", "slips_of", "verified"]


def slips_of(folder: Folder, receipts: str) -> list[Slip]:
    lines = [line for line in receipts.splitlines() if line.strip()]
    if not lines:
        raise ReceiptError("Short", "the text contains no receipt")
    try:
        return [parse_slip(line, folder.network.id) for line in lines]
    except Refused as refused:
        raise in_words(refused) from refused


def verified(folder: Folder, slip: Slip) -> list[Proved]:
    """What a slip proves, with nothing but proved keys of the lane."""
    network = folder.network
    try:
        match slip:
            case Receipt(output, proof):
                id = slip.verify(network.id, network.committee)
                return [_proved(folder, id, output, proof.summary.into)]
            case ToAccounts(payment, certificate):
                require(payment.network == network.id, "OtherNetwork")
                check_certified(network.committee, CONFIRMATION, payment.summary(), certificate)
                to = [(payment.id(index), output) for index, output in enumerate(payment.outputs)]
                return [_proved(folder, id, output, None) for id, output in to if output.kind == 1]
            case DepositSlip():
                raise Refused("NoOutput")
    except Refused as refused:
        raise in_words(refused) from refused


def _proved(folder: Folder, id: bytes, output: Output, home: int | None) -> Proved:
    money = folder.network.numbered(output.asset)
    return Proved(hexadecimal(id), shown(folder, output), money.symbol, money.amount(output.amount), home)


def payable(folder: Folder, to: str) -> tuple[bytes, Bill | None]:
    """The key behind a lane address, and what the address asks for."""
    try:
        key, asked = parse_payable(to, folder.network.id)
    except Refused as refused:
        raise in_words(refused) from refused
    if asked is None:
        return key, None
    found = [money for money in folder.network.carried if money.asset == asked[0]]
    if not found:
        raise in_words(Refused("UnknownAsset"))
    return key, Bill(found[0].symbol, found[0].amount(asked[1]))


def checked(folder: Folder, slip: Slip, now: int | None) -> tuple[bytes, Receipt]:
    """The output and the receipt of a slip that pays this purse. With `now`, the present lane epoch, its money must be
    spendable."""
    if isinstance(slip, ToAccounts):
        raise in_words(Refused("PaysAccounts"))
    (proved,) = verified(folder, slip)
    if not isinstance(slip, Receipt) or not folder.is_own(slip.output):
        raise ReceiptError("OtherOwner", f"the receipt pays {proved.to}, which does not belong to this purse")
    home = slip.proof.summary.into
    if now is not None and now > home + 1:
        raise ReceiptError(
            "Late", f"the receipt is of lane epoch {home}, and now is {now}: too late to spend it. Ask the payer "
            "for a new payment"
        )
    return raw(proved.output), slip


def shown(folder: Folder, output: Output) -> str:
    if output.kind == 0:
        return lane_address(folder.network.id, output.to)
    return checked_address(hexadecimal(output.to))


def for_others(folder: Folder, payment: SignedPayment, certificate: Certificate) -> list[str]:
    """The receipts of a payment for others."""
    of = payment.payment
    slips: list[Slip] = [
        receipt_of(of, index, certificate)
        for index, output in enumerate(of.outputs)
        if output.kind == 0 and not folder.is_own(output)
    ]
    if any(output.kind == 1 for output in of.outputs):
        slips.append(ToAccounts(of, certificate))
    return [slip_text(slip, folder.network.id) for slip in slips]
