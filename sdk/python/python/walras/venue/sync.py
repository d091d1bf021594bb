"""Trading at a venue's continuous markets with a thread: every call returns when the answer is there."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Generator, Mapping, Sequence
from types import TracebackType

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from walras.client.amounts import Number
from walras.client.errors import ForeignAnswerError, NoAnswerError
from walras.client.models import Fate
from walras.client.stream import SILENCE_S, Disconnected
from walras.client.sync import Client
from walras.venue.custody import Custody
from walras.venue.feed import VenueFeed
from walras.venue.journal import OrderJournal
from walras.venue.known import KnownVenue
from walras.venue.orders import Life, OrderNumber, SelfTrade, Side, TradingKey
from walras.venue.reports import ExecutionsPage, OrderReport, OrderStanding, PlacedOrder, VenueStatus
from walras.venue.terms import VenueTerms
from walras.venue.trading import LASTS, Numbered, Trading, VenueQuote

__all__ = ["VenueTrader"]


class VenueTrader:
    """A trading key at the venue of a client's node. It may be shared by threads.

    `file` stores numbers and orders before they are sent, so that a program that starts again never uses a number twice
    and knows its orders; signed reports of fills lie in ``FILE.reports``. It belongs to one program at a time. Without
    one all of it ends with the process. `patience` is the longest wait for an answer in seconds. Deposits, collections
    and keys are transactions of the client's account, and need its key.
    """

    def __init__(
        self, client: Client, key: TradingKey, *, file: str | os.PathLike[str] | None = None, patience: float = 30.0
    ) -> None:
        self._client = client
        self._journal = OrderJournal(file)
        self._known = KnownVenue(client._core.session, key, self._journal)
        self._trading = Trading(self._known, patience)
        self._custody = Custody(client._core, self._known, patience)
        self._url = client._core.stream_url().replace("/v1/stream", "/v1/venue/stream")
        self.key = key

    def __enter__(self) -> VenueTrader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. Orders stay open."""
        self._journal.close()

    def status(self) -> VenueStatus:
        """How the venue stands. Raises a `RefusedError` if the node runs none."""
        return self._client.run(self._known.status())

    def markets(self) -> list[VenueTerms]:
        """The continuous markets, with steps of prices and amounts."""
        return self._client.run(self._known.markets())

    def market(self, name: str | int) -> VenueTerms:
        """A market by name (``EUR/USD``), symbol (``M0``) or number, with its best prices now."""
        return self._client.run(self._known.market(name, is_fresh=True))

    # On the ledger.

    def deposit(self, asset: str, amount: Number, *, reference: str | None = None, wait: bool = True) -> Fate:
        """Deposits with the venue; the ledger keeps it."""
        return self._client.run(self._custody.deposit(asset, amount, reference, wait))

    def collect(
        self, asset: str, amount: Number | None = None, *, reference: str | None = None, wait: bool = True,
    ) -> Fate:
        """Takes back an amount of the deposit, by default all. The ledger pays it once no fill of before can count."""
        return self._client.run(self._custody.collect(asset, amount, reference, wait))

    def authorize(
        self, bands: Mapping[str | int, tuple[Number, Number]], lose: Mapping[str, Number], *, wait: bool = True,
    ) -> Fate | None:
        """Lets the trading key trade for the account: in which markets between which prices, and the most that it may
        lose on balance of each asset, over its whole life. None if it may already; a mandate never changes."""
        return self._client.run(self._custody.authorize(bands, lose, wait))

    def revoke(self, *, wait: bool = True) -> Fate:
        """Ends the trading key for ever."""
        return self._client.run(self._custody.revoke(wait))

    def raise_floor(self, number: OrderNumber, *, wait: bool = True) -> Fate:
        """Ends all orders with lower numbers once the delay is past, whatever the venue does."""
        return self._client.run(self._custody.raise_floor(number, wait))

    # Orders.

    def place(
        self, market: str | int, side: Side, amount: Number, price: Number, *, life: Life = "rests",
        self_trade: SelfTrade = "expire_taker", lasts: int = LASTS, until_ms: int | None = None,
        fee_cap_ppm: int | None = None,
    ) -> PlacedOrder:
        """Places an order in whole assets; a price between ticks is refused with the nearest ones. It lives for `lasts`
        heights, and until a block time if there is one. Raises an `OrderRefusedError` with the venue's reason, and an
        `UndecidedOrdersError` if no answer came."""
        quote = VenueQuote(side, amount, price, life=life)
        flow = self._trading.place_one(market, quote, self_trade, lasts, until_ms, fee_cap_ppm)
        return self._client.run(flow)

    def place_ladder(
        self, market: str | int, quotes: Sequence[VenueQuote], *, self_trade: SelfTrade = "expire_taker",
        lasts: int = LASTS, until_ms: int | None = None, fee_cap_ppm: int | None = None,
    ) -> list[PlacedOrder]:
        """Places up to 64 orders under one signature, or puts them into the places of others. Each is taken or refused
        by itself: look at its `refusal`."""
        return self._client.run(self._trading.place(market, quotes, self_trade, lasts, until_ms, fee_cap_ppm))

    def replace(self, order: Numbered, amount: Number, price: Number, *, lasts: int = LASTS) -> PlacedOrder:
        """Puts another order into the place of one; `amount` is the total, what has executed included. With the same
        price and no more than before it keeps its place in the queue."""
        return self._client.run(self._trading.replace(order, amount, price, lasts))

    def cancel(self, order: Numbered, *, keep: Number | None = None) -> OrderReport:
        """Cancels an order, or all of it but a total of `keep`, what has executed included. An order that has ended
        before says so (``status``), and one that never came cannot come later (``overtaken``)."""
        return self._client.run(self._trading.cancel(order, keep))

    def cancel_all(self, market: str | int | None = None, side: Side | None = None) -> list[OrderReport]:
        """Cancels all open orders of the key, or those of a market or side."""
        return self._client.run(self._trading.cancel_all(market, side))

    def order(self, order: Numbered) -> OrderStanding:
        """The definite answer about an order: how it stands, and what of it is settled."""
        return self._client.run(self._trading.order(order))

    def orders(self) -> list[OrderStanding]:
        """The open orders of the file, each as the venue says."""
        return self._client.run(self._trading.orders())

    def resume(self) -> list[OrderStanding]:
        """What a program does that starts again: its open orders. One whose answer was lost, and that never came, is
        cancelled by its number."""
        return self._client.run(self._trading.resume())

    def retry(self, order: Numbered) -> list[PlacedOrder]:
        """Sends an undecided order again, with those of its list: the same bytes, of which none is placed twice."""
        return self._client.run(self._trading.retry(order))

    def executions(self, from_index: int = 0) -> ExecutionsPage:
        """Own executions of the incarnation from an index on, with the reports that were told."""
        return self._client.run(self._trading.executions(from_index))

    # What is followed.

    def reports(
        self, *, session: int = 1, from_index: int | None = None
    ) -> Generator[OrderReport | Disconnected, None, None]:
        """What happens to the key's orders, without end. A broken connection is made again, and each execution comes
        once and in order, from `from_index` on. What else happened meanwhile, `orders` says. A session has one
        connection: give each program a number of its own."""
        feed, core = VenueFeed(self._trading, session, from_index), self._client._core
        while True:
            try:
                hello = self._client.run(feed.hello())
                with connect(self._url, additional_headers=core.headers(self._client._token)) as socket:
                    socket.send(hello)
                    while True:
                        yield from self._client.run(feed.receive(str(socket.recv(timeout=SILENCE_S))))
            except TimeoutError:
                lost = feed.broken(f"the venue has been silent for {SILENCE_S:.0f} seconds", random.random)
            except (OSError, WebSocketException, ForeignAnswerError, NoAnswerError) as error:
                lost = feed.broken(str(error), random.random)
            yield lost
            time.sleep(lost.retry_s)
