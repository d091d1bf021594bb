"""The client with a thread: every call returns when the answer is there."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from walras.client.amounts import Assets, Number
from walras.client.book import BookUpdate, LocalBook
from walras.client.certificate import Committee
from walras.client.core import Core, T
from walras.client.encoding import NO_CLIENT, RESTS, Operation, Signed
from walras.client.errors import ForeignAnswerError, NoAnswerError
from walras.client.flow import Answer, Ask, Flow, Pause
from walras.client.guards import DisconnectGuard, KeepAlive
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

__all__ = ["Client"]


class Client:
    """A node, and the key that signs for an account. It may be shared by threads.

    `key` is needed for sending; `account` names another account than the key's own, one that registered the key, or, with
    `slot`, one whose session key of that slot it is: then the client numbers in the slot.
    `network` is the identity that the node must have. `store` keeps transactions until they are final: a path is that
    of a key file, beside which they lie; without one they end with the process. `patience` is the longest wait for the
    block of a transaction in seconds, `lasts` the number of blocks for which a transaction may count. `payer` is another
    client whose Ed25519 key signs and pays for the envelopes of `sealed` orders; by default this one's does.
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
        payer: Client | None = None,
    ) -> None:
        self._core: Core = Core(server, key, account, network, store, patience, lasts, slot, payer._core if payer else None)
        self._http = httpx.Client(base_url=self._core.session.server, headers=self._core.headers(token))
        self._token = token

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    @property
    def server(self) -> str:
        return self._core.session.server

    @property
    def address(self) -> str:
        """The account that this client sends for."""
        return self._core.sender.account

    def _answer(self, ask: Ask) -> Answer:
        headers = {} if ask.body is None else {"content-type": ask.kind}
        try:
            answer = self._http.request(
                ask.method, ask.path, params=dict(ask.params), content=ask.body, headers=headers, timeout=ask.wait_s
            )
        except httpx.HTTPError as error:
            raise NoAnswerError(self.server, f"{type(error).__name__}: {error}") from error
        return Core.answer(answer.status_code, answer.content, answer.headers.get("retry-after"))

    def run(self, flow: Flow[T]) -> T:
        """Brings a flow what it needs."""
        try:
            step = next(flow)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = flow.send(None)
                    continue
                try:
                    answer = self._answer(step)
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

    def status(self) -> Status:
        """The status of the node."""
        return self.run(self._core.session.status())

    def limits(self) -> Limits:
        """The limits of the chain as they are now: validators can vote another fee."""
        return self.run(self._core.session.limits_now())

    def assets(self) -> Assets:
        """The assets, by symbol."""
        return self.run(self._core.session.assets())

    def account(self, address: str | None = None) -> Account:
        """An account, by default the client's own. Raises `NotFoundError` where there is none."""
        return self.run(self._core.session.account(address or self.address))

    def committee(self) -> Committee:
        """The validators that decide now, as the node names them: keep them, to check certificates with them later."""
        return self.run(self._core.committee())

    def proved_account(self, address: str | None = None, *, committee: Committee | None = None) -> Account:
        """An account with a proof of its state root; with a `committee`, of one that a quorum of it has signed."""
        return self.run(self._core.proved_account(address or self.address, committee))

    def proved_keys(self, address: str | None = None, *, committee: Committee | None = None) -> dict[str, Any] | None:
        """The policy of an account with a proof, None if one key signs alone; with a `committee`, in a state that a
        quorum of it has signed."""
        return self.run(self._core.proved_keys(address or self.address, committee))

    def holder(self, asset: str, address: str | None = None) -> Holder:
        """What an account may do with an asset: whether its issuer has frozen or admitted it."""
        return self.run(self._core.holders.standing(asset, address or self.address))

    def proved_holder(
        self, asset: str, address: str | None = None, *, committee: Committee | None = None
    ) -> ProvedHolder:
        """The same with a proof; with a `committee`, in a state that a quorum of it has signed."""
        return self.run(self._core.proved_holder(asset, address or self.address, committee))

    def proved_parameters(self, *, committee: Committee | None = None) -> dict[str, Any] | None:
        """The parameters of the chain with a proof, None while nothing was ever proposed; with a `committee`, in a state
        that a quorum of it has signed."""
        return self.run(self._core.proved_parameters(committee))

    def proved_fate(self, id: str, *, committee: Committee) -> Fate:
        """What a block did with a transaction, proved against a receipts root that a quorum of the committee signed."""
        return self.run(self._core.proved_fate(id, committee))

    def offers(self, address: str | None = None) -> list[Offer]:
        """All resting offers of an account, by id."""
        return self.run(self._core.session.offers(address or self.address))

    def offers_page(self, address: str, cursor: str | None = None, limit: int = 100) -> tuple[list[Offer], str | None]:
        """A page of them, and the cursor of the next one."""
        return self.run(self._core.session.offers_page(address, cursor, limit))

    def offer_of(self, id: int, address: str | None = None) -> Offer | None:
        """A resting offer by its id; None where it no longer rests."""
        return self.run(self._core.session.offer(address or self.address, id))

    def markets(self) -> list[Market]:
        """The pairs with offers or trades."""
        return self.run(self._core.session.markets())

    def orders(self, address: str | None = None, *, limit: int = 100, since: int | None = None) -> list[PastOrder]:
        """The newest orders of an account, as far back as the node's index goes, or as a height."""
        past = self._core.session.past(address or self.address, "orders", PastOrder.of, limit, since)
        return self.run(past)

    def fills(self, address: str | None = None, *, limit: int = 100, since: int | None = None) -> list[PastFill]:
        """The newest fills of an account."""
        return self.run(self._core.session.past(address or self.address, "fills", PastFill.of, limit, since))

    def orders_page(self, cursor: str | None = None, address: str | None = None) -> tuple[list[PastOrder], str | None]:
        """A thousand orders of an account, the newest first, and the cursor of the next page."""
        return self.run(self._core.session.past_page(address or self.address, "orders", PastOrder.of, cursor))

    def fills_page(
        self, cursor: str | None = None, address: str | None = None, *, offer: int | None = None
    ) -> tuple[list[PastFill], str | None]:
        """A thousand fills of an account or of one of its orders, the newest first, and the cursor of the next page."""
        return self.run(self._core.session.past_page(address or self.address, "fills", PastFill.of, cursor, offer))

    def transfers(
        self, address: str | None = None, *, limit: int = 100, since: int | None = None, remittance: Said | None = None
    ) -> list[Transfer]:
        """The newest transfers of an account by native operations; of all, or those with one reference."""
        said = None if remittance is None else PaymentReference.of(remittance)
        past = self._core.session.past(address or self.address, "transfers", Transfer.of, limit, since, said)
        return self.run(past)

    def order_fate(
        self, number: int | None = None, *, client: str | None = None, address: str | None = None
    ) -> OrderFate:
        """The definite answer about an order, by its number or by the `client` that it was signed with."""
        if (number is None) == (client is None):
            raise ValueError("give a number or a client")
        return self.run(self._core.session.order_fate(address or self.address, number, client))

    def quote(self, sell: str, buy: str, amount: Number, price: Number | None = None) -> Quote:
        """What the next batch would do with an offer of `amount` of `sell` for at least `price` of `buy` each, or at any
        price, if nothing else came. All pairs of the book take part."""
        return self.run(self._core.session.quote(sell, buy, amount, price))

    def quote_exact(self, side: Literal["buy", "sell"], market: str, amount: Number, bound: Number) -> Quote:
        """What the next batch would do with an exact order of these parts, if nothing else came: `why` is ``filled`` where
        there is room for it. Exact orders of others may come first."""
        return self.run(self._core.session.quote_exact(side, market, amount, bound))

    def ticker(self, market: str) -> Ticker:
        """Last price, best limits, and the 24 hours up to the last block."""
        return self.run(self._core.session.ticker(market))

    def book(self, market: str, levels: int | None = None) -> Book:
        """The resting offers of a market such as ``EUR/USD``, by price."""
        return self.run(self._core.session.book(market, levels))

    def market_offers(self, market: str, limit: int | None = None) -> list[Offer]:
        """The offers that sell the base for the quote, one by one in order of execution."""
        return self.run(self._core.session.market_offers(market, limit))

    def candles(
        self, market: str, interval: str = "1m", limit: int | None = None, before_ms: int | None = None,
        since_ms: int | None = None,
    ) -> list[Candle]:
        """Candles, the oldest first: 1m, 5m, 15m, 1h, 4h or 1d. The last ones, or the first ones from `since_ms` on."""
        return self.run(self._core.session.candles(market, interval, limit, before_ms, since_ms))

    def history(
        self, market: str, limit: int | None = None, before: int | None = None, since_ms: int | None = None
    ) -> list[PricePoint]:
        """The batches in which a market traded, the oldest first: the last ones, or the first ones from `since_ms` on."""
        return self.run(self._core.session.history(market, limit, before, since_ms))

    def venue_markets(self) -> list[VenueMarket]:
        """The continuous markets of the node's venue: terms, best prices, the last trade and the last 24 hours."""
        return self.run(self._core.session.venue_markets())

    def venue_trades(
        self, market: int, cursor: str | None = None, *, limit: int = 100, since_ms: int | None = None
    ) -> tuple[list[VenueTrade], str | None]:
        """A page of what executed in one of them of late, the newest first, and the cursor of the next page."""
        return self.run(self._core.session.venue_trades(market, cursor, limit, since_ms))

    def batch(self, height: int) -> Batch:
        """The clearing of a block."""
        return self.run(self._core.session.batch(height))

    def block(self, height: int) -> Block:
        """The summary of a block."""
        return self.run(self._core.session.block(height))

    def blocks(self, limit: int | None = None, before: int | None = None) -> list[Block]:
        """Recent blocks, the newest first."""
        return self.run(self._core.session.blocks(limit, before))

    # What is sent.

    def pay(
        self, to: str, asset: str, amount: Number, *,
        remittance: Said | None = None, reference: str | None = None, wait: bool = True,
    ) -> Fate:
        """Pays an account. With a `reference` of the caller's it is paid once, however often this is called.

        `remittance` says what for: the receiver's own reference, such as the number of an invoice. It is signed and
        public for ever. Chains have it since rules 12.
        """
        return self.run(self._core.pay(to, asset, amount, remittance, reference, wait))

    def submit(
        self, operation: Operation, *,
        reference: str | None = None, wait: bool = True, kept: Callable[[Signed], None] | None = None,
    ) -> Fate:
        """Sends any operation of `walras.client.operations`. `kept` is told of each transaction that is signed for it,
        before that is sent."""
        return self.run(self._core.sender.send(operation, wait, reference, kept))

    def submit_sealed(self, orders: Sequence[Operation], *, reference: str | None = None, wait: bool = True) -> list[Fate]:
        """Sends orders of `walras.client.operations` in one envelope, at most 32: their fates, in order."""
        return self.run(self._core.envelopes.send(orders, wait, reference))

    def offer(
        self, sell: str, buy: str, amount: Number, price: Number, *,
        life: str = RESTS, client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        """Offers `amount` of `sell` for at least `price` of `buy` each.

        `life` says what becomes of the part that is not sold at once: it ``rests``, or rests ``until`` a height, or
        returns after ``one batch``. `client` is the caller's own name of it, 16 bytes in hexadecimal. `sealed` orders go in
        an envelope, see `walras.client.envelopes`: a `SealError` says why one cannot, and nothing is sent then.
        """
        return self.run(self._core.offer(sell, buy, amount, price, (life, client), reference, wait, sealed))

    def buy(
        self, market: str, amount: Number, price: Number, *,
        life: str = RESTS, client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        """Buys `amount` of a market's base for at most `price` of its quote each. What the next batch would fill whole stops
        at the amount: it goes as an exact order or, where that finds no room, as an offer at the price that the batch
        would charge. The rest goes as an offer of what the amount costs, which a later batch at a better price fills with
        more, never dearer. Without `wait` nobody looks whether the exact order was filled."""
        return self.run(self._core.order("buy", market, amount, price, (life, client), reference, wait, sealed))

    def sell(
        self, market: str, amount: Number, price: Number, *,
        life: str = RESTS, client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        """Sells up to `amount` of a market's base for at least `price` of its quote each."""
        return self.run(self._core.order("sell", market, amount, price, (life, client), reference, wait, sealed))

    def exact(
        self, side: Literal["buy", "sell"], market: str, amount: Number, bound: Number, *,
        client: str = NO_CLIENT, reference: str | None = None, wait: bool = True, sealed: bool = False,
    ) -> Fate:
        """Buys exactly `amount` of a market's base for at most `bound` of its quote in all, or sells exactly `amount` for
        at least `bound`, in the batch of the next block; or nothing happens (`outcome.why` says why not)."""
        return self.run(self._core.exact(side, market, amount, bound, client, reference, wait, sealed))

    def cancel(self, offer: Offer | int, *, wait: bool = True, sealed: bool = False) -> Fate:
        """Cancels what rests of an own offer."""
        return self.run(self._core.cancel(offer, wait, sealed))

    def replace(self, offer: Offer | int, amount: Number, price: Number, *, wait: bool = True, sealed: bool = False) -> Fate:
        """Replaces an own offer by one of another size or price. What is sold of it meanwhile makes the new one
        smaller: both together never sell more than `amount` of what rests now."""
        return self.run(self._core.replace(offer, amount, price, wait, sealed))

    def cancel_all(self, market: str | None = None, *, every: bool = False) -> list[Fate]:
        """Cancels all own offers, or those of a market, 32 in a transaction. Those that trade meanwhile are left. A client
        of a session key cancels those of its slot, with `every` all of the account."""
        return self.run(self._core.cancel_all(market, every))

    # Holders of an asset that this account issues.

    def freeze(
        self, asset: str, holder: str, grounds: Said, *, reference: str | None = None, wait: bool = True
    ) -> Fate:
        """Freezes a holder: from the next block on it neither spends, buys nor receives the asset; its offers end and its
        shares of pools are paid out to it. At venues the freeze counts after their delay. `grounds` say why, for ever and
        in public: no personal data."""
        return self.run(self._core.holders.say(self._core.sender, asset, holder, "frozen", grounds, reference, wait))

    def admit(
        self, asset: str, holder: str, grounds: Said, *, reference: str | None = None, wait: bool = True
    ) -> Fate:
        """Admits a holder to an asset that is for admitted holders, or opens one that was frozen."""
        return self.run(self._core.holders.say(self._core.sender, asset, holder, "open", grounds, reference, wait))

    def recover(
        self, asset: str, holder: str, amount: Number, grounds: Said, *,
        to: str | None = None, reference: str | None = None, wait: bool = True,
    ) -> Fate:
        """Moves units of a holder who has been frozen for 86,400 heights, to the issuer or to an open holder."""
        sender = self._core.sender
        return self.run(self._core.holders.recover(sender, asset, holder, amount, grounds, to, reference, wait))

    def recall(self, asset: str, holder: str, venue: int, *, reference: str | None = None, wait: bool = True) -> Fate:
        """Collects all that such a holder has at a venue, for the holder: then it can be recovered."""
        return self.run(self._core.holders.recall(self._core.sender, asset, holder, venue, reference, wait))

    # Session keys.

    def sessions(self, address: str | None = None) -> tuple[SessionKey, ...]:
        """The session keys of an account, by slot: how they stand, and what they have used."""
        return self.run(self._core.slots.all(address or self.address))

    def session(self) -> SessionKey:
        """The session key that this client signs with, as the chain has it."""
        return self.run(self._core.slots.own())

    def add_session(
        self, key: Ed25519Key, caps: Mapping[str, Number], *,
        scope: Literal["cancel", "trade"] = "trade", lasts: int = HEIGHTS, alive: int | None = None,
    ) -> SessionKey:
        """Lets a key cancel, or cancel and trade, for the account, and returns its slot. `caps` are the most that it may
        use of each asset, locked and sold less bought, fees included; it `lasts` so many heights, and its offers end
        after `alive` heights unless it is heard before. A key that is added already is left as it is."""
        return self.run(self._core.slots.add(key, caps, scope, lasts, alive))

    def revoke_session(self, slot: int, *, wait: bool = True) -> Fate:
        """Ends a session key and its offers."""
        return self.run(self._core.slots.revoke(slot, wait))

    def alive(self, blocks: int, *, slot: int | None = None, wait: bool = True) -> Fate:
        """Keeps the offers of a slot, by default the own one, for so many blocks from now."""
        return self.run(self._core.slots.alive(blocks, slot, wait))

    def stop(self, *, slot: int | None = None, wait: bool = True) -> Fate:
        """Ends all offers of a slot, by default the own one, with the next block. It does not trade until `alive` is said.
        Calls of this client that are under way are void, unless their order came first."""
        return self.run(self._core.slots.stop(slot, wait))

    def keep_alive(self, blocks: int) -> KeepAlive:
        """Says `alive` for the own slot whenever less than half of `blocks` is left, in a thread, until it is closed. It
        does not bring back a slot that was stopped."""
        return KeepAlive(self.run, lambda: self._core.slots.beat(blocks))

    def cancel_on_disconnect(self, *, slot: int | None = None) -> DisconnectGuard:
        """A connection that ends all offers of a slot, by default the own one, when it breaks: the node has a signed stop
        and submits it then. `with client.cancel_on_disconnect():` withdraws it at a regular end, and leaves it where an
        error ends the block. A node that fails does nothing: then the timer of the slot ends the offers.

        An account's own key without a `slot` leaves a cancel of its resting offers, the newest 32 of them: the cancel
        follows the account block by block, an offer of the last moment is not in it, and no timer stands behind it."""
        headers = self._core.headers(self._token)
        return DisconnectGuard(self.run, lambda: self._core.leaving(slot), self._core.stream_url(), headers)

    def send(self, operation: Operation, *, reference: str | None = None, wait: bool = True) -> Fate:
        """Signs any operation of `walras.client.encoding` and sends it."""
        return self.run(self._core.sender.send(operation, wait, reference))

    def fate(self, id: str) -> Fate:
        """What became of a transaction."""
        return self.run(self._core.fate(id))

    def retry(self, id: str, *, wait: bool = True) -> Fate:
        """Sends a stored transaction again, unchanged."""
        return self.run(self._core.sender.retry(id, wait))

    def settle(self) -> list[Fate]:
        """The fates of all stored transactions; those that are final are no longer stored."""
        return self.run(self._core.sender.settle())

    # What is followed.

    def stream(self, *channels: str, from_height: int | None = None) -> Iterator[Event]:
        """The events of some channels, without end: ``blocks``, ``batches``, ``trades:EUR/USD``,
        ``book:EUR/USD``, ``ticker:EUR/USD``, ``candles:EUR/USD:1m``, ``account:0x…``, and ``orders:0x…`` of the own account,
        for which the key logs in. A broken connection is made again, and what was missed is asked for."""
        feed = Feed(self._core.session, channels, from_height, login=self._core.login)
        while True:
            try:
                with connect(self._core.stream_url(), additional_headers=self._core.headers(self._token)) as socket:
                    socket.send(feed.connected())
                    while True:
                        text = str(socket.recv(timeout=SILENCE_S))
                        if (reply := self.run(feed.reply(text))) is not None:
                            socket.send(reply)
                        yield from self.run(feed.receive(text))
            except TimeoutError:
                lost = feed.broken(f"the node has been silent for {SILENCE_S:.0f} seconds", random.random)
            except (OSError, WebSocketException, ForeignAnswerError, NoAnswerError) as error:
                lost = feed.broken(str(error), random.random)
            yield lost
            time.sleep(lost.retry_s)

    def follow_book(self, market: str) -> Iterator[LocalBook]:
        """A local book of the best hundred levels of each side, each time that a block changed it. It is the same object
        each time, checked against the node's checksum."""
        for event in self.stream(f"book:{market}"):
            if isinstance(event, BookUpdate):
                yield event.book

    def follow_orders(self) -> Iterator[OwnOrders]:
        """The own orders and fills as they happen: first the newest hundred, then what each block changed, and what the
        node took and no block contains yet. Another connection begins with a snapshot."""
        for event in self.stream(f"orders:{self._core.sender.account}"):
            if isinstance(event, OwnOrders):
                yield event

    def stored(self) -> Sequence[str]:
        """The ids of the stored transactions."""
        return [signed.id for signed in self._core.sender.store.all()]
