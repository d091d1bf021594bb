"""Holders of assets whose issuers control them, on chains since rules 17: what an issuer says of them.

What an issuer controls is fixed when its asset is listed. Why it acts is signed and public for ever: no personal data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from walras.client import operations
from walras.client.amounts import Number
from walras.client.calls import Session
from walras.client.encoding import address_bytes
from walras.client.flow import Flow
from walras.client.models import Fate
from walras.client.references import PaymentReference, Said
from walras.client.sending import Sender

__all__ = ["Holder", "Holders"]


@dataclass(frozen=True, slots=True)
class Holder:
    """An account as a holder of an asset, as a node says."""

    height: int
    """That of the state."""
    control: str
    """What the issuer controls: ``open``, nothing; ``freezable``, ``admitted``, ``recoverable`` or
    ``admitted_recoverable``."""
    standing: str
    """``open``: it may do everything; ``frozen`` or ``not_admitted``: nothing but bring home what it has elsewhere."""
    since: int | None
    """The height at which the issuer changed this last; None if it never said anything of the account."""


class Holders:
    """What a client asks of holders and says of them."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def standing(self, asset: str, address: str) -> Flow[Holder]:
        address_bytes(address)
        number = (yield from self.session.assets(asset))[asset].number
        body = yield from self.session.get(f"/v1/assets/{number}/holders/{address}", lambda body: body)
        since = body.get("since")
        height, control, standing = int(body["height"]), str(body["control"]), str(body["standing"])
        return Holder(height, control, standing, None if since is None else int(since))

    def say(
        self, sender: Sender, asset: str, holder: str, state: Literal["frozen", "open"], grounds: Said,
        reference: str | None, wait: bool,
    ) -> Flow[Fate]:
        address_bytes(holder)
        of, said = (yield from self.session.assets(asset))[asset], PaymentReference.of(grounds)
        operation = operations.SetHolder(of.number, holder.lower(), state, said.kind, said.encoded())
        return (yield from sender.send(operation, wait, reference))

    def recover(
        self, sender: Sender, asset: str, holder: str, amount: Number, grounds: Said, to: str | None,
        reference: str | None, wait: bool,
    ) -> Flow[Fate]:
        of, said = (yield from self.session.assets(asset))[asset], PaymentReference.of(grounds)
        receiver = to or of.issuer
        address_bytes(holder)
        address_bytes(receiver)
        parties = (of.number, holder.lower(), receiver.lower(), of.units(amount))
        return (yield from sender.send(operations.Recover(*parties, said.kind, said.encoded()), wait, reference))

    def recall(
        self, sender: Sender, asset: str, holder: str, venue: int, reference: str | None, wait: bool
    ) -> Flow[Fate]:
        address_bytes(holder)
        of = (yield from self.session.assets(asset))[asset]
        return (yield from sender.send(operations.VenueRecall(venue, of.number, holder.lower()), wait, reference))
