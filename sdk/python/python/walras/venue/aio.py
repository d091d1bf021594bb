"""Trading at a venue's continuous markets on an event loop: the methods are those of `VenueTrader`."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from walras.client.aio import AsyncClient
from walras.client.amounts import Number
from walras.client.errors import ForeignAnswerError, NoAnswerError
from walras.client.models import Fate
from walras.client.stream import SILENCE_S, Disconnected
from walras.client.waiting import within
from walras.venue.custody import Custody
from walras.venue.feed import VenueFeed
from walras.venue.journal import OrderJournal
from walras.venue.known import KnownVenue
from walras.venue.orders import Life, OrderNumber, SelfTrade, Side, TradingKey
from walras.venue.reports import ExecutionsPage, OrderReport, OrderStanding, PlacedOrder, VenueStatus
from walras.venue.terms import VenueTerms
from walras.venue.trading import LASTS, Numbered, Trading, VenueQuote

__all__ = ["AsyncVenueTrader"]


class AsyncVenueTrader:
    """See `VenueTrader`: the same, awaited."""

    def __init__(
        self, client: AsyncClient, key: TradingKey, *, file: str | os.PathLike[str] | None = None,
        patience: float = 30.0,
    ) -> None:
        self._client = client
        self._journal = OrderJournal(file)
        self._known = KnownVenue(client._core.session, key, self._journal)
        self._trading = Trading(self._known, patience)
        self._custody = Custody(client._core, self._known, patience)
        self._url = client._core.stream_url().replace("/v1/stream", "/v1/venue/stream")
        self.key = key

    async def __aenter__(self) -> AsyncVenueTrader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. Orders stay open."""
        self._journal.close()

    async def status(self) -> VenueStatus:
        return await self._client.run(self._known.status())

    async def markets(self) -> list[VenueTerms]:
        return await self._client.run(self._known.markets())

    async def market(self, name: str | int) -> VenueTerms:
        return await self._client.run(self._known.market(name, is_fresh=True))

    # On the ledger.

    async def deposit(self, asset: str, amount: Number, *, reference: str | None = None, wait: bool = True) -> Fate:
        return await self._client.run(self._custody.deposit(asset, amount, reference, wait))

    async def collect(
        self, asset: str, amount: Number | None = None, *, reference: str | None = None, wait: bool = True,
    ) -> Fate:
        return await self._client.run(self._custody.collect(asset, amount, reference, wait))

    async def authorize(
        self, bands: Mapping[str | int, tuple[Number, Number]], lose: Mapping[str, Number], *, wait: bool = True,
    ) -> Fate | None:
        return await self._client.run(self._custody.authorize(bands, lose, wait))

    async def revoke(self, *, wait: bool = True) -> Fate:
        return await self._client.run(self._custody.revoke(wait))

    async def raise_floor(self, number: OrderNumber, *, wait: bool = True) -> Fate:
        return await self._client.run(self._custody.raise_floor(number, wait))

    # Orders.

    async def place(
        self, market: str | int, side: Side, amount: Number, price: Number, *, life: Life = "rests",
        self_trade: SelfTrade = "expire_taker", lasts: int = LASTS, until_ms: int | None = None,
        fee_cap_ppm: int | None = None,
    ) -> PlacedOrder:
        quote = VenueQuote(side, amount, price, life=life)
        flow = self._trading.place_one(market, quote, self_trade, lasts, until_ms, fee_cap_ppm)
        return await self._client.run(flow)

    async def place_ladder(
        self, market: str | int, quotes: Sequence[VenueQuote], *, self_trade: SelfTrade = "expire_taker",
        lasts: int = LASTS, until_ms: int | None = None, fee_cap_ppm: int | None = None,
    ) -> list[PlacedOrder]:
        return await self._client.run(self._trading.place(market, quotes, self_trade, lasts, until_ms, fee_cap_ppm))

    async def replace(self, order: Numbered, amount: Number, price: Number, *, lasts: int = LASTS) -> PlacedOrder:
        return await self._client.run(self._trading.replace(order, amount, price, lasts))

    async def cancel(self, order: Numbered, *, keep: Number | None = None) -> OrderReport:
        return await self._client.run(self._trading.cancel(order, keep))

    async def cancel_all(self, market: str | int | None = None, side: Side | None = None) -> list[OrderReport]:
        return await self._client.run(self._trading.cancel_all(market, side))

    async def order(self, order: Numbered) -> OrderStanding:
        return await self._client.run(self._trading.order(order))

    async def orders(self) -> list[OrderStanding]:
        return await self._client.run(self._trading.orders())

    async def resume(self) -> list[OrderStanding]:
        return await self._client.run(self._trading.resume())

    async def retry(self, order: Numbered) -> list[PlacedOrder]:
        return await self._client.run(self._trading.retry(order))

    async def executions(self, from_index: int = 0) -> ExecutionsPage:
        return await self._client.run(self._trading.executions(from_index))

    # What is followed.

    async def reports(
        self, *, session: int = 1, from_index: int | None = None
    ) -> AsyncGenerator[OrderReport | Disconnected, None]:
        feed, core = VenueFeed(self._trading, session, from_index), self._client._core
        while True:
            try:
                hello = await self._client.run(feed.hello())
                async with connect(self._url, additional_headers=core.headers(self._client._token)) as socket:
                    self._client._sockets.add(socket)
                    await socket.send(hello)
                    while True:
                        text = str(await within(socket.recv(), SILENCE_S))
                        for report in await self._client.run(feed.receive(text)):
                            yield report
            except (TimeoutError, asyncio.TimeoutError):
                lost = feed.broken(f"the venue has been silent for {SILENCE_S:.0f} seconds", random.random)
            except (OSError, WebSocketException, ForeignAnswerError, NoAnswerError) as error:
                lost = feed.broken(str(error), random.random)
            finally:
                self._client.forget_closed()
            yield lost
            await asyncio.sleep(lost.retry_s)
