"""What a trader does on the ledger, by the account's own key: deposits, collections, trading keys."""

from __future__ import annotations

import time
from collections.abc import Mapping

from walras.client import operations
from walras.client.amounts import UNITS_MAX, Number
from walras.client.core import Core
from walras.client.encoding import Operation
from walras.client.errors import ClientError, NotFoundError
from walras.client.flow import Flow, Pause
from walras.client.models import Fate
from walras.venue.known import KnownVenue
from walras.venue.orders import OrderNumber

__all__ = ["Custody"]

_PAUSE_S = 0.05


class Custody:
    """An account at the venue of a node."""

    def __init__(self, core: Core, known: KnownVenue, patience: float) -> None:
        self._core = core
        self._known = known
        self._patience = patience

    def deposit(self, asset: str, amount: Number, reference: str | None, wait: bool) -> Flow[Fate]:
        of, status = (yield from self._core.session.assets(asset))[asset], (yield from self._known.now())
        operation = operations.VenueDeposit(status.venue, of.number, of.units(amount))
        return (yield from self._send(operation, wait, reference))

    def collect(self, asset: str, amount: Number | None, reference: str | None, wait: bool) -> Flow[Fate]:
        of, status = (yield from self._core.session.assets(asset))[asset], (yield from self._known.now())
        units = UNITS_MAX if amount is None else of.units(amount)
        operation = operations.VenueCollect(status.venue, of.number, units)
        return (yield from self._send(operation, wait, reference))

    def authorize(
        self, bands: Mapping[str | int, tuple[Number, Number]], lose: Mapping[str, Number], wait: bool
    ) -> Flow[Fate | None]:
        status, sender = (yield from self._known.now()), self._core.sender
        assets = yield from self._core.session.assets(*lose)
        markets = []
        for name, (low, high) in bands.items():
            terms = yield from self._known.market(name)
            markets.append(operations.MarketLimits(terms.number, terms.tick(low), terms.tick(high)))
        markets.sort(key=lambda of: of.market)
        caps = sorted((assets[symbol].number, assets[symbol].units(amount)) for symbol, amount in lose.items())
        try:
            record = yield from self._known.key_record()
        except NotFoundError:
            possession = self._known.key.possession(sender.account, status.network, status.venue)
            of_caps = tuple(operations.MandateLimit(*cap) for cap in caps)
            mandate = ("venue", tuple(markets), of_caps, possession)
            operation = operations.VenueAuthorize(status.venue, self._known.key.public, *mandate)
            return (yield from self._send(operation, wait, None))
        if record["account"].lower() != sender.account or record["revoked_height"] is not None:
            state = "is revoked" if record["revoked_height"] is not None else f"trades for {record['account']}"
            raise ClientError(f"the key {self._known.key.public} {state}, for ever: take another one")
        return None

    def revoke(self, wait: bool) -> Flow[Fate]:
        venue = (yield from self._known.now()).venue
        return (yield from self._send(operations.VenueRevoke(venue, self._known.key.public), wait, None))

    def raise_floor(self, number: OrderNumber, wait: bool) -> Flow[Fate]:
        venue = (yield from self._known.now()).venue
        floor = (number.incarnation, number.day, number.reference)
        operation = operations.VenueRaiseFloor(venue, self._known.key.public, *floor)
        return (yield from self._send(operation, wait, None))

    def _send(self, operation: Operation, wait: bool, reference: str | None) -> Flow[Fate]:
        """Sends an operation; with `wait`, the venue knows its block when it returns."""
        fate = yield from self._core.sender.send(operation, wait, reference)
        until = time.monotonic() + self._patience
        while wait and fate.height is not None and (yield from self._known.status()).height < fate.height:
            if time.monotonic() >= until:
                raise ClientError(f"it is executed in block {fate.height}, which the venue does not know yet: wait for it")
            yield Pause(_PAUSE_S)
        return fate
