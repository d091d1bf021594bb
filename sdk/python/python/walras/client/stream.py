"""The live stream as pure logic: messages in, events out, and what was missed asked for over HTTP.

**Protocol.** A connection sends each channel's snapshot first, then increments, and a heartbeat every second. Messages
are numbered from 0. A gap in the numbers, a message that is none, or five seconds of silence break the connection; it
is made again after a pause that grows.

**Resuming.** The node sends no increments of before. So after a reconnection, or from a height that the caller names,
a `Feed` asks for the blocks, batches and trades between the last event and the snapshot, and hands them out in order,
each once. A book goes on from its height where the node can tell what
follows, and otherwise begins again with a snapshot. What the node no longer keeps, or never offers again, is a `Missed` event: fills and outcomes of an account,
and trades of all markets at once. An `AccountSnapshot` follows it, which is whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from walras.client.amounts import Assets
from walras.client.book import BookUpdate, LocalBook
from walras.client.calls import PAGE, Session
from walras.client.errors import ClientError, ForeignAnswerError, NotFoundError, StreamError
from walras.client.flow import Flow
from walras.client.history import OwnOrders
from walras.client.models import Account, Balance, Batch, Block, Candle, Fill, Offer, Outcome, Ticker, Trade

__all__ = [
    "AccountSnapshot",
    "AccountUpdate",
    "Disconnected",
    "Event",
    "Feed",
    "Heartbeat",
    "Missed",
    "SILENCE_S",
]

SILENCE_S = 5.0
PAUSES_S = (0.5, 15.0)
BACKFILL_MAX = 10_000
"""The most heights that are asked for one by one."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The node lives; its newest block."""

    height: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection broke, with the reason; it is made again."""

    reason: str
    retry_s: float


@dataclass(frozen=True, slots=True)
class Missed:
    """What a channel brought between two heights cannot be had any more."""

    channel: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class AccountSnapshot:
    """An account with its resting offers; None for one that does not exist yet."""

    address: str
    height: int
    account: Account | None
    offers: tuple[Offer, ...]
    more: bool
    """Whether it has more offers than these: ask for all."""


@dataclass(frozen=True, slots=True)
class AccountUpdate:
    """What a block did to an account."""

    address: str
    height: int
    outcomes: dict[str, Outcome]
    """By transaction id. The amounts of an offer in its first batch, and of an exact order, are in its fill."""
    fills: tuple[Fill, ...]
    """Of offers, then of exact orders, of which nothing is left: what they locked beyond it has returned."""
    balances: tuple[Balance, ...]


Event: TypeAlias = (
    "Block | Batch | Trade | Candle | Ticker | BookUpdate | AccountSnapshot | AccountUpdate | OwnOrders | Heartbeat | "
    "Disconnected | Missed"
)


def channel_of_message(message: Any) -> str | None:
    """The channel of an increment; of trades, that of one market."""
    match message["type"]:
        case "snapshot":
            return str(message["channel"])
        case "block":
            return "blocks"
        case "batch":
            return "batches"
        case "trade":
            return f"trades:{message['market']}"
        case "candle":
            return f"candles:{message['market']}:{message['interval']}"
        case "book" | "ticker" as kind:
            return f"{kind}:{message['market']}"
        case "account":
            return f"account:{message['address']}"
        case "orders":
            return f"orders:{message['account']}"
    return None


@dataclass
class Feed:
    """The events of some channels."""

    session: Session
    channels: tuple[str, ...]
    from_height: int | None = None
    _last: dict[str, int] = field(default_factory=dict)
    """The last height of each channel that was handed out; of candles, the last time."""
    _snapshot: dict[str, int] = field(default_factory=dict)
    """The last height of each channel at its snapshot: increments up to it are in it."""
    _books: dict[str, LocalBook] = field(default_factory=dict)
    _sequence: int | None = None
    _tries: int = 0
    login: Callable[[str, str], Flow[dict[str, str]]] | None = None
    """Signs a challenge's nonce for a network; needed for channels of own orders."""

    def __post_init__(self) -> None:
        # The node names addresses in lower case.
        named = [one.lower() if one.startswith(("account:", "orders:")) else one for one in self.channels]
        every = "trades" in named
        self.channels = tuple(one for one in named if not (every and one.startswith("trades:")))
        if self.from_height is not None:
            self._last = {channel: self.from_height - 1 for channel in self.channels}

    def connected(self) -> str:
        """The first message to a new connection. Channels of own orders wait for the login."""
        self._sequence = None
        known = {channel: book.height for channel, book in self._books.items() if book.height >= 0}
        channels = [channel for channel in self.channels if not channel.startswith("orders:")]
        asks = {"challenge": True} if len(channels) < len(self.channels) else {}
        return json.dumps({"subscribe": channels, **({"resume": known} if known else {}), **asks})

    def reply(self, text: str) -> Flow[str | None]:
        """What the node is told upon a message: the login upon its challenge, and after it the channels of own orders.
        Call it before `receive` with each message."""
        try:
            message = json.loads(text)
            kind, nonce, network = message["type"], message.get("nonce"), message.get("network")
        except (ValueError, KeyError, TypeError, AttributeError):
            # `receive` says what is wrong with it.
            return None
        if kind == "challenge":
            if self.login is None:
                raise ClientError("own orders need a key: give the client one")
            return json.dumps({"login": (yield from self.login(str(nonce), str(network)))})
        own = [channel for channel in self.channels if channel.startswith("orders:")]
        return json.dumps({"subscribe": own}) if kind == "login" else None

    def broken(self, reason: str, random: Callable[[], float]) -> Disconnected:
        """The connection broke: when to make it again."""
        pause = min(PAUSES_S[0] * 2**self._tries, PAUSES_S[1])
        self._tries = min(self._tries + 1, 10)
        # Up to a quarter less, so that many clients do not return in the same instant.
        return Disconnected(reason, pause * (1 - random() / 4))

    def receive(self, text: str) -> Flow[list[Event]]:
        """The events of a message. Raises a `ForeignAnswerError` where the connection is of no use any more."""
        server = self.session.server
        assets = yield from self.session.assets()
        try:
            message = json.loads(text)
            number = int(message["sequence"])
        except (ValueError, KeyError, TypeError):
            raise ForeignAnswerError(server, "a message of its stream cannot be read") from None
        if number != (0 if self._sequence is None else self._sequence + 1):
            raise ForeignAnswerError(server, "messages of its stream were missed")
        self._sequence, self._tries = number, 0
        if message["type"] == "error" and message["code"] == "resume_gone":
            # A snapshot follows.
            return []
        if message["type"] == "error":
            raise StreamError(server, str(message["code"]), str(message["message"]))
        try:
            return (yield from self._events(message, assets))
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise ForeignAnswerError(server, f"a message of its stream cannot be decoded: {error}") from error

    def _events(self, message: Any, assets: Assets) -> Flow[list[Event]]:
        if message["type"] == "heartbeat":
            self.session.saw(int(message["height"]))
            return [Heartbeat(int(message["height"]), int(message["time_ms"]))]
        channel = channel_of_message(message)
        if channel is None:
            # A kind of message that a later node has.
            return []
        if channel.startswith("book:"):
            return self._book(channel, message, assets)
        if channel.startswith("orders:"):
            orders = OwnOrders.of(message, assets)
            self.session.saw(orders.height)
            return [orders]
        if channel.startswith("ticker:"):
            return [Ticker.of(message["ticker"] if message["type"] == "snapshot" else message, assets)]
        if message["type"] != "snapshot":
            return self._increment(channel, message, assets)
        events = yield from self._resumed(channel, message, assets)
        self._snapshot[channel] = self._last.get(channel, -1)
        return events

    def _book(self, channel: str, message: Any, assets: Assets) -> list[Event]:
        """Takes a snapshot or a change of a book. One that is broken begins again over a new connection."""
        book = self._books.setdefault(channel, LocalBook(message["market"]))
        before = book.height
        changes = (book.snapshot if message["type"] == "snapshot" else book.change)(message, assets)
        self.session.saw(book.height)
        return [BookUpdate(book.market, book.height, tuple(changes), book)] if book.height != before else []

    def _resumed(self, channel: str, message: Any, assets: Assets) -> Flow[list[Event]]:
        """The events from the last one to the snapshot's."""
        match channel.partition(":"):
            case "blocks", _, _:
                found = [Block.of(one) for one in message["blocks"]]
                return (yield from self._blocks(sorted(found, key=lambda block: block.height)))
            case "batches", _, _:
                body = message["batch"]
                return (yield from self._batches(Batch.of(body, assets))) if body else []
            case "trades", _, market:
                return (yield from self._trades(channel, market, [Trade.of(one, assets) for one in message["trades"]]))
            case "candles", _, name:
                market, _, interval = name.partition(":")
                candles = [Candle.of(one, assets, market, interval) for one in message["candles"]]
                return self._fresh(channel, candles, lambda candle: candle.time_ms, again=True)
            case "account", _, address:
                return self._account(channel, address, message, assets)
        return []

    def _increment(self, channel: str, message: Any, assets: Assets) -> list[Event]:
        if message["type"] == "trade" and "trades" in self.channels:
            channel = "trades"
        if message["type"] == "candle":
            candle = Candle.of(message["candle"], assets, message["market"], message["interval"])
            return self._fresh(channel, [candle], lambda candle: candle.time_ms, again=True)
        height = int(message["height"])
        if height <= self._snapshot.get(channel, -1):
            # It was on its way when the snapshot was read.
            return []
        self._last[channel] = height
        self.session.saw(height)
        match message["type"]:
            case "block":
                return [Block.of(message)]
            case "batch":
                return [Batch.of(message, assets)]
            case "trade":
                return [Trade.of(message, assets)]
        return [account_update(message, assets)]

    def _fresh(
        self, channel: str, found: Iterable[Any], height: Callable[[Any], int], again: bool = False
    ) -> list[Event]:
        """Those above the last one; with `again` the last one too, since it changes."""
        last = self._last.get(channel, -1)
        fresh = [one for one in found if height(one) > last or (again and height(one) == last)]
        if fresh:
            self._last[channel] = height(fresh[-1])
        return fresh

    def _blocks(self, found: list[Block]) -> Flow[list[Event]]:
        """The blocks since the last one, the oldest first."""
        last = self._last.get("blocks")
        while found and last is not None and found[0].height > last + 1:
            older = yield from self.session.blocks(PAGE, found[0].height)
            if not older:
                break
            found = sorted(older, key=lambda block: block.height) + found
        return self._gap("blocks", found[0].height if found else None) + self._fresh(
            "blocks", found, lambda block: block.height
        )

    def _batches(self, newest: Batch) -> Flow[list[Event]]:
        last = self._last.get("batches")
        found = [newest]
        # From the newest down, so that a bound cuts the oldest.
        while last is not None and last + 1 < found[0].height and len(found) < BACKFILL_MAX:
            try:
                found.insert(0, (yield from self.session.batch(found[0].height - 1)))
            except NotFoundError:
                break
        return self._gap("batches", found[0].height) + self._fresh("batches", found, lambda batch: batch.height)

    def _trades(self, channel: str, market: str, newest: list[Trade]) -> Flow[list[Event]]:
        last = self._last.get(channel)
        if last is None or not market:
            height = max((trade.height for trade in newest), default=None)
            gap = self._gap(channel, height) if last is not None else []
            return gap + self._fresh(channel, newest, lambda trade: trade.height)
        found: list[Trade] = []
        before: int | None = None
        known = {trade.height: trade for trade in newest}
        while True:
            points = yield from self.session.history(market, PAGE, before)
            trades = [Trade(market, one.height, one.price, one.base_volume, None) for one in points]
            found = [known.get(trade.height, trade) for trade in trades if trade.height > last] + found
            if len(points) < PAGE or points[0].height <= last:
                return self._fresh(channel, found, lambda trade: trade.height)
            before = points[0].height

    def _account(self, channel: str, address: str, message: Any, assets: Assets) -> list[Event]:
        body = message["account"]
        account = Account.of(body, assets) if body else None
        offers = tuple(Offer.of(one, assets) for one in message["offers"])
        height = account.height if account else 0
        gap = self._gap(channel, height + 1) if account else []
        self._last[channel] = height
        return [*gap, AccountSnapshot(address, height, account, offers, bool(message["more"]))]

    def _gap(self, channel: str, first: int | None) -> list[Event]:
        """What is missing between the last event and the first one now."""
        last = self._last.get(channel)
        if last is None or first is None or first <= last + 1:
            return []
        return [Missed(channel, last + 1, first - 1)]


def account_update(message: Any, assets: Assets) -> AccountUpdate:
    return AccountUpdate(
        address=message["address"],
        height=int(message["height"]),
        outcomes={one["id"]: Outcome.of(one["outcome"], None) for one in message["outcomes"]},
        fills=tuple(Fill.of(one, assets) for one in (*message["fills"], *message.get("exacts", ()))),
        balances=tuple(Balance.of(one, assets) for one in message["balances"]),
    )
