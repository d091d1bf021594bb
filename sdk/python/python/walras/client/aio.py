"""The client on an event loop: every call is awaited. The methods are those of `sync.Client`, which describes them."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.protocol import State

from walras.client.amounts import Assets, Number
from walras.client.book import BookUpdate, LocalBook
from walras.client.certificate import Committee
from walras.client.core import Core, T
from walras.client.encoding import NO_CLIENT, RESTS, Operation, Signed
from walras.client.errors import ForeignAnswerError, NoAnswerError
from walras.client.flow import Answer, Ask, Flow, Pause
from walras.client.guards import AsyncDisconnectGuard, AsyncKeepAlive
from walras.client.history import OrderFate, OwnOrders, PastFill, PastOrder, Transfer
from walras.client.holders import Holder
from walras.client.keys import Ed25519Key, Key
from walras.client.models import (
    Account,
    Batch,
    Block,
    Book,
    Candle,
    Fate,
    Limits,
    Market,
    Offer,
    PricePoint,
    Quote,
    SessionKey,
    Status,
    Ticker,
)
from walras.client.pending import Store
from walras.client.proof import ProvedHolder
from walras.client.references import PaymentReference, Said
from walras.client.slots import HEIGHTS
from walras.client.stream import SILENCE_S, Event, Feed
from walras.client.venue import VenueMarket, VenueTrade
from walras.client.waiting import within

__all__ = ["AsyncClient"]


class AsyncClient:
    """A node, and the key that signs for an account. It may be shared by tasks of one loop.

    `key` is needed for sending; `account` names another account than the key's own, one that registered the key, or, with
    `slot`, one whose session key of that slot it is: then the client numbers in the slot.
    `network` is the identity that the node must have. `store` keeps transactions until they are final: a path is that
    of a key file, beside which they lie; without one they end with the process. `patience` is the longest wait for the
    block of a transaction in seconds, `lasts` the number of blocks for which a transaction may count.
    """

    def __init__(
        self,
        server: str = "http://127.0.0.1:8080",
        *,
        key: Key | None = None,
        account: str | None = None,
        slot: int = 0,
        network: str | None = None,
        store: Store | str | os.PathLike[str] | None = None,
        patience: float = 60.0,
        lasts: int = 256,
        token: str | None = None,
        payer: AsyncClient | None = None,
    ) -> None:
        self._core: Core = Core(server, key, account, network, store, patience, lasts, slot, payer._core if payer else None)
        self._http = httpx.AsyncClient(base_url=self._core.session.server, headers=self._core.headers(token))
        self._token = token
        self._sockets: set[ClientConnection] = set()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections, those of streams too."""
        await asyncio.gather(*(socket.close() for socket in self._sockets))
        await self._http.aclose()

    def forget_closed(self) -> None:
        """Forgets connections of streams that have ended."""
        self._sockets = {one for one in self._sockets if one.state is not State.CLOSED}

    @property
    def server(self) -> str:
        return self._core.session.server

    @property
    def address(self) -> str:
        """The account that this client sends for."""
        return self._core.sender.account

    async def _answer(self, ask: Ask) -> Answer:
        headers = {} if ask.body is None else {"content-type": ask.kind}
        try:
            answer = await self._http.request(
                ask.method, ask.path, params=dict(ask.params), content=ask.body, headers=headers, timeout=ask.wait_s
            )
        except httpx.HTTPError as error:
            raise NoAnswerError(self.server, f"{type(error).__name__}: {error}") from error
        return Core.answer(answer.status_code, answer.content, answer.headers.get("retry-after"))

    async def run(self, flow: Flow[T]) -> T:
        """Brings a flow what it needs."""
        try:
            step = next(flow)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = flow.send(None)
                    continue
                try:
                    answer = await self._answer(step)
                except NoAnswerError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            # A call that is given up in the middle is told so.
            flow.close()

    # What is asked.

    async def status(self) -> Status:
        return await self.run(self._core.session.status())

    async def limits(self) -> Limits:
        return await self.run(self._core.session.limits_now())

    async def assets(self) -> Assets:
        return await self.run(self._core.session.assets())

    async def account(self, address: str | None = None) -> Account:
        return await self.run(self._core.session.account(address or self.address))

    async def committee(self) -> Committee:
        return await self.run(self._core.committee())

    async def proved_account(self, address: str | None = None, *, committee: Committee | None = None) -> Account:
        return await self.run(self._core.proved_account(address or self.address, committee))

    async def proved_keys(
        self, address: str | None = None, *, committee: Committee | None = None
    ) -> dict[str, Any] | None:
        return await self.run(self._core.proved_keys(address or self.address, committee))

    async def holder(self, asset: str, address: str | None = None) -> Holder:
        return await self.run(self._core.holders.standing(asset, address or self.address))

    async def proved_holder(
        self, asset: str, address: str | None = None, *, committee: Committee | None = None
    ) -> ProvedHolder:
        return await self.run(self._core.proved_holder(asset, address or self.address, committee))

    async def proved_parameters(self, *, committee: Committee | None = None) -> dict[str, Any] | None:
        return await self.run(self._core.proved_parameters(committee))

    async def proved_fate(self, id: str, *, committee: Committee) -> Fate:
        return await self.run(self._core.proved_fate(id, committee))

    async def offers(self, address: str | None = None) -> list[Offer]:
        return await self.run(self._core.session.offers(address or self.address))

    async def offers_page(
        self, address: str, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[Offer], str | None]:
        return await self.run(self._core.session.offers_page(address, cursor, limit))

    async def offer_of(self, id: int, address: str | None = None) -> Offer | None:
        return await self.run(self._core.session.offer(address or self.address, id))

    async def markets(self) -> list[Market]:
        return await self.run(self._core.session.markets())

    async def orders(self, address: str | None = None, *, limit: int = 100, since: int | None = None) -> list[PastOrder]:
        past = self._core.session.past(address or self.address, "orders", PastOrder.of, limit, since)
        return await self.run(past)

    async def fills(self, address: str | None = None, *, limit: int = 100, since: int | None = None) -> list[PastFill]:
        return await self.run(self._core.session.past(address or self.address, "fills", PastFill.of, limit, since))

    async def orders_page(
        self, cursor: str | None = None, address: str | None = None
    ) -> tuple[list[PastOrder], str | None]:
        return await self.run(self._core.session.past_page(address or self.address, "orders", PastOrder.of, cursor))

    async def fills_page(
        self, cursor: str | None = None, address: str | None = None, *, offer: int | None = None
    ) -> tuple[list[PastFill], str | None]:
        page = self._core.session.past_page(address or self.address, "fills", PastFill.of, cursor, offer)
        return await self.run(page)

    async def transfers(
        self, address: str | None = None, *, limit: int = 100, since: int | None = None, remittance: Said | None = None
    ) -> list[Transfer]:
        said = None if remittance is None else PaymentReference.of(remittance)
        past = self._core.session.past(address or self.address, "transfers", Transfer.of, limit, since, said)
        return await self.run(past)

    async def order_fate(
        self, number: int | None = None, *, client: str | None = None, address: str | None = None
    ) -> OrderFate:
        if (number is None) == (client is None):
            raise ValueError("give a number or a client")
        return await self.run(self._core.session.order_fate(address or self.address, number, client))

    async def quote(self, sell: str, buy: str, amount: Number, price: Number | None = None) -> Quote:
        return await self.run(self._core.session.quote(sell, buy, amount, price))

    async def quote_exact(self, side: Literal["buy", "sell"], market: str, amount: Number, bound: Number) -> Quote:
        return await self.run(self._core.session.quote_exact(side, market, amount, bound))

    async def ticker(self, market: str) -> Ticker:
        return await self.run(self._core.session.ticker(market))

    async def book(self, market: str, levels: int | None = None) -> Book:
        return await self.run(self._core.session.book(market, levels))

    async def market_offers(self, market: str, limit: int | None = None) -> list[Offer]:
        return await self.run(self._core.session.market_offers(market, limit))

    async def candles(
        self, market: str, interval: str = "1m", limit: int | None = None, before_ms: int | None = None,
        since_ms: int | None = None,
    ) -> list[Candle]:
        return await self.run(self._core.session.candles(market, interval, limit, before_ms, since_ms))

    async def history(
        self, market: str, limit: int | None = None, before: int | None = None, since_ms: int | None = None
    ) -> list[PricePoint]:
        return await self.run(self._core.session.history(market, limit, before, since_ms))

    async def venue_markets(self) -> list[VenueMarket]:
        return await self.run(self._core.session.venue_markets())

    async def venue_trades(
        self, market: int, cursor: str | None = None, *, limit: int = 100, since_ms: int | None = None
    ) -> tuple[list[VenueTrade], str | None]:
        return await self.run(self._core.session.venue_trades(market, cursor, limit, since_ms))

    async def batch(self, height: int) -> Batch:
        return await self.run(self._core.session.batch(height))

    async def block(self, height: int) -> Block:
        return await self.run(self._core.session.block(height))

    async def blocks(self, limit: int | None = None, before: int | None = None) -> list[Block]:
        return await self.run(self._core.session.blocks(limit, before))

    # What is sent.

    async def pay(
        self, to: str, asset: str, amount: Number, *,
        remittance: Said | None = None, reference: str | None = None, wait: bool = True,
    ) -> Fate:
        return await self.run(self._core.pay(to, asset, amount, remittance, reference, wait))

    async def submit(
        self, operation: Operation, *,
        reference: str | None = None, wait: bool = True, kept: Callable[[Signed], None] | None = None,
    ) -> Fate:
        return await self.run(self._core.sender.send(operation, wait, reference, kept))

    async def submit_sealed(
        self, orders: Sequence[Operation], *, reference: str | None = None, wait: bool = True
    ) -> list[Fate]:
        return await self.run(self._core.envelopes.send(orders, wait, reference))

    async def offer(
        self, sell: str, buy: str, amount: Number, price: Number, *,
        life: str = RESTS, client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        return await self.run(self._core.offer(sell, buy, amount, price, (life, client), reference, wait, sealed))

    async def buy(
        self, market: str, amount: Number, price: Number, *,
        life: str = RESTS, client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        return await self.run(self._core.order("buy", market, amount, price, (life, client), reference, wait, sealed))

    async def sell(
        self, market: str, amount: Number, price: Number, *,
        life: str = RESTS, client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        return await self.run(self._core.order("sell", market, amount, price, (life, client), reference, wait, sealed))

    async def exact(
        self, side: Literal["buy", "sell"], market: str, amount: Number, bound: Number, *,
        client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        return await self.run(self._core.exact(side, market, amount, bound, client, reference, wait, sealed))

    async def cancel(self, offer: Offer | int, *, wait: bool = True, sealed: bool = False) -> Fate:
        return await self.run(self._core.cancel(offer, wait, sealed))

    async def replace(
        self, offer: Offer | int, amount: Number, price: Number, *, wait: bool = True, sealed: bool = False
    ) -> Fate:
        return await self.run(self._core.replace(offer, amount, price, wait, sealed))

    async def cancel_all(self, market: str | None = None, *, every: bool = False) -> list[Fate]:
        return await self.run(self._core.cancel_all(market, every))

    # Holders of an asset that this account issues.

    async def freeze(
        self, asset: str, holder: str, grounds: Said, *, reference: str | None = None, wait: bool = True
    ) -> Fate:
        said = self._core.holders.say(self._core.sender, asset, holder, "frozen", grounds, reference, wait)
        return await self.run(said)

    async def admit(
        self, asset: str, holder: str, grounds: Said, *, reference: str | None = None, wait: bool = True
    ) -> Fate:
        said = self._core.holders.say(self._core.sender, asset, holder, "open", grounds, reference, wait)
        return await self.run(said)

    async def recover(
        self, asset: str, holder: str, amount: Number, grounds: Said, *,
        to: str | None = None, reference: str | None = None, wait: bool = True,
    ) -> Fate:
        sender = self._core.sender
        return await self.run(self._core.holders.recover(sender, asset, holder, amount, grounds, to, reference, wait))

    async def recall(
        self, asset: str, holder: str, venue: int, *, reference: str | None = None, wait: bool = True
    ) -> Fate:
        return await self.run(self._core.holders.recall(self._core.sender, asset, holder, venue, reference, wait))

    # Session keys.

    async def sessions(self, address: str | None = None) -> tuple[SessionKey, ...]:
        return await self.run(self._core.slots.all(address or self.address))

    async def session(self) -> SessionKey:
        return await self.run(self._core.slots.own())

    async def add_session(
        self, key: Ed25519Key, caps: Mapping[str, Number], *,
        scope: Literal["cancel", "trade"] = "trade", lasts: int = HEIGHTS, alive: int | None = None,
    ) -> SessionKey:
        return await self.run(self._core.slots.add(key, caps, scope, lasts, alive))

    async def revoke_session(self, slot: int, *, wait: bool = True) -> Fate:
        return await self.run(self._core.slots.revoke(slot, wait))

    async def alive(self, blocks: int, *, slot: int | None = None, wait: bool = True) -> Fate:
        return await self.run(self._core.slots.alive(blocks, slot, wait))

    async def stop(self, *, slot: int | None = None, wait: bool = True) -> Fate:
        return await self.run(self._core.slots.stop(slot, wait))

    def keep_alive(self, blocks: int) -> AsyncKeepAlive:
        """A task in place of the thread."""
        return AsyncKeepAlive(self.run, lambda: self._core.slots.beat(blocks))

    def cancel_on_disconnect(self, *, slot: int | None = None) -> AsyncDisconnectGuard:
        """`async with client.cancel_on_disconnect():`."""
        headers = self._core.headers(self._token)
        return AsyncDisconnectGuard(self.run, lambda: self._core.leaving(slot), self._core.stream_url(), headers)

    async def send(self, operation: Operation, *, reference: str | None = None, wait: bool = True) -> Fate:
        return await self.run(self._core.sender.send(operation, wait, reference))

    async def fate(self, id: str) -> Fate:
        return await self.run(self._core.fate(id))

    async def retry(self, id: str, *, wait: bool = True) -> Fate:
        return await self.run(self._core.sender.retry(id, wait))

    async def settle(self) -> list[Fate]:
        return await self.run(self._core.sender.settle())

    # What is followed.

    async def stream(self, *channels: str, from_height: int | None = None) -> AsyncIterator[Event]:
        """The events of some channels, without end: ``blocks``, ``batches``, ``trades:EUR/USD``,
        ``book:EUR/USD``, ``ticker:EUR/USD``, ``candles:EUR/USD:1m``, ``account:0x…``, and ``orders:0x…`` of the own account,
        for which the key logs in. A broken connection is made again, and what was missed is asked for."""
        feed = Feed(self._core.session, channels, from_height, login=self._core.login)
        while True:
            try:
                async with connect(
                    self._core.stream_url(), additional_headers=self._core.headers(self._token)
                ) as socket:
                    self._sockets.add(socket)
                    await socket.send(feed.connected())
                    while True:
                        text = await within(socket.recv(), SILENCE_S)
                        if (reply := await self.run(feed.reply(str(text)))) is not None:
                            await socket.send(reply)
                        for event in await self.run(feed.receive(str(text))):
                            yield event
            except (TimeoutError, asyncio.TimeoutError):
                lost = feed.broken(f"the node has been silent for {SILENCE_S:.0f} seconds", random.random)
            except (OSError, WebSocketException, ForeignAnswerError, NoAnswerError) as error:
                lost = feed.broken(str(error), random.random)
            finally:
                self.forget_closed()
            yield lost
            await asyncio.sleep(lost.retry_s)

    async def follow_book(self, market: str) -> AsyncIterator[LocalBook]:
        """A local book of the best hundred levels of each side, each time that a block changed it. It is the same object
        each time, checked against the node's checksum."""
        async for event in self.stream(f"book:{market}"):
            if isinstance(event, BookUpdate):
                yield event.book

    async def follow_orders(self) -> AsyncIterator[OwnOrders]:
        """The own orders and fills as they happen: first the newest hundred, then what each block changed, and what the
        node took and no block contains yet. Another connection begins with a snapshot."""
        async for event in self.stream(f"orders:{self._core.sender.account}"):
            if isinstance(event, OwnOrders):
                yield event

    def stored(self) -> Sequence[str]:
        """The ids of the stored transactions."""
        return [signed.id for signed in self._core.sender.store.all()]
