"""What a node answers, typed: amounts and prices are decimals in whole assets, heights and times are integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from walras.client.amounts import Asset, Assets
from walras.client.encoding import slot_of

__all__ = [
    "Account",
    "Balance",
    "Batch",
    "BatchTrade",
    "Block",
    "Book",
    "Candle",
    "Day",
    "Fate",
    "Fill",
    "Level",
    "Limits",
    "Market",
    "Offer",
    "OrderTerms",
    "Outcome",
    "PricePoint",
    "SessionCap",
    "SessionKey",
    "Status",
    "Ticker",
    "Trade",
]

Json: TypeAlias = "Mapping[str, Any]"
"""The body of an answer."""


def decimal(value: str | None) -> Decimal | None:
    return None if value is None else Decimal(value)


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a node."""

    version: str
    chain: int
    engine: str
    height: int
    time_ms: int
    accounts: int
    offers: int
    pending: int
    stalled: str | None
    """Why no block can be decided, in words."""
    transactions_per_second: float

    @staticmethod
    def of(body: Json) -> Status:
        return Status(
            version=body["version"],
            chain=int(body["chain"]),
            engine=body["engine"],
            height=int(body["height"]),
            time_ms=int(body["time_ms"]),
            accounts=int(body["accounts"]),
            offers=int(body["offers"]),
            pending=int(body["mempool"]["transactions"]),
            stalled=body["stalled"],
            transactions_per_second=float(body["transactions_per_second"]),
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What signing and sending need of the chain."""

    chain: int
    network: str
    fee_units: int
    """The fee of a transaction, in units of `fee_asset`."""
    fee_asset: str
    sequence_window: int
    until_max: int
    block_interval_ms: int
    stream_channels: int

    @staticmethod
    def of(body: Json) -> Limits:
        return Limits(
            chain=int(body["chain"]),
            network=str(body["network"]),
            fee_units=int(body["fee"]),
            fee_asset=str(body["fee_asset"]),
            sequence_window=int(body["sequence_window"]),
            until_max=int(body["until_max"]),
            block_interval_ms=int(body["block_interval_ms"]),
            stream_channels=int(body["stream_channels"]),
        )


@dataclass(frozen=True, slots=True)
class Balance:
    """An account's holding of one asset."""

    asset: str
    available: Decimal
    locked: Decimal
    """In its offers."""

    @property
    def total(self) -> Decimal:
        return self.available + self.locked

    @staticmethod
    def of(body: Json, assets: Assets) -> Balance:
        asset = assets[body["asset"]]
        return Balance(asset.symbol, asset.amount(int(body["available"])), asset.amount(int(body["locked"])))


@dataclass(frozen=True, slots=True)
class SessionCap:
    """What a session key may use of an asset."""

    asset: str
    cap: Decimal
    used: Decimal
    """Locked and sold less bought, fees included; below zero if it bought more."""

    @property
    def left(self) -> Decimal:
        return self.cap - self.used

    @staticmethod
    def of(body: Json, assets: Assets) -> SessionCap:
        asset = assets[body["asset"]]
        return SessionCap(asset.symbol, asset.amount(int(body["units"])), asset.amount(int(body["used"])))


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session key of an account, as the chain has it."""

    slot: int
    key: str
    """The public key."""
    scope: str
    """``cancel`` or ``trade``."""
    status: str
    """``live``; ``lapsed``, if it may only cancel until its timer is raised; or ``ended``."""
    ends: int
    """The last height at which its transactions count."""
    alive: int
    """Its offers end with this block, unless the height is raised before."""
    highest: int
    """Its highest sequence number that is committed, with the slot in the upper bits."""
    next: int
    """A free one, as the node sees it."""
    caps: tuple[SessionCap, ...]

    def cap(self, symbol: str) -> SessionCap:
        """What it may use of an asset: nothing without a cap."""
        found = (cap for cap in self.caps if cap.asset == symbol)
        return next(found, SessionCap(symbol, Decimal(0), Decimal(0)))

    @staticmethod
    def of(body: Json, assets: Assets) -> SessionKey:
        return SessionKey(
            slot=int(body["slot"]),
            key=body["key"],
            scope=body["scope"],
            status=body["status"],
            ends=int(body["ends"]),
            alive=int(body["alive"]),
            highest=int(body["sequence"]["highest"]),
            next=int(body["sequence"]["next"]),
            caps=tuple(SessionCap.of(one, assets) for one in body["caps"]),
        )


@dataclass(frozen=True, slots=True)
class Account:
    """An account."""

    address: str
    height: int
    """Of the state that was read."""
    key: str | None
    highest: int
    """The highest sequence number that is committed."""
    next: int
    """A free one, as the node sees it."""
    balances: tuple[Balance, ...]
    session_slots: int = 0
    """The slots that it has given to session keys; the next one is one above."""
    sessions: tuple[SessionKey, ...] = ()
    needs_reference: bool = False
    """Whether payments to it need a reference; others are refused."""
    keys: Json | None = None
    """Its policy of several keys, as ``/v1/accounts/…`` shows it; none if one key signs alone."""

    def balance(self, symbol: str) -> Balance:
        """The holding of an asset; zero if it holds none."""
        found = (balance for balance in self.balances if balance.asset == symbol)
        return next(found, Balance(symbol, Decimal(0), Decimal(0)))

    @staticmethod
    def of(body: Json, assets: Assets) -> Account:
        return Account(
            address=body["address"],
            height=int(body["height"]),
            key=body.get("key"),
            highest=int(body["sequence"]["highest"]),
            next=int(body["sequence"]["next"]),
            balances=tuple(Balance.of(one, assets) for one in body["balances"]),
            session_slots=int(body.get("session_slots", 0)),
            sessions=tuple(SessionKey.of(one, assets) for one in body.get("sessions", ())),
            needs_reference=bool(body.get("needs_reference", False)),
            keys=body.get("keys"),
        )


@dataclass(frozen=True, slots=True)
class OrderTerms:
    """What an order asks for in its market, as it was placed: the asset with the higher number is the base."""

    side: Literal["buy", "sell"]
    base: str
    quote: str
    amount: Decimal
    """Of the base."""
    price: Decimal
    """The limit, quote per base."""

    @property
    def market(self) -> str:
        return f"{self.base}/{self.quote}"

    @staticmethod
    def of(body: Json | None, assets: Assets) -> OrderTerms | None:
        if body is None:
            return None
        base, quote = assets[body["base"]], assets[body["quote"]]
        amount = base.amount(int(body["amount"]))
        return OrderTerms(body["side"], base.symbol, quote.symbol, amount, Decimal(body["price"]))


@dataclass(frozen=True, slots=True)
class Offer:
    """A resting offer."""

    id: int
    """The sequence number of the transaction that made it, or from 2^63 on the number of a contract's offer."""
    sell: str
    buy: str
    amount: Decimal
    """Still for sale."""
    price: Decimal
    """The least of the asset bought for one of the asset sold."""
    limit: Decimal
    """The same in units, which a cancellation signs."""
    account: str | None = None
    """Its owner, in lists of a market."""
    asked: OrderTerms | None = None
    """What rests of it, as an order of its market."""

    @property
    def slot(self) -> int:
        """The slot of the session key that placed it; 0 if the account's own key did, or a contract."""
        return slot_of(self.id)

    @staticmethod
    def of(body: Json, assets: Assets) -> Offer:
        return Offer(
            id=int(body["id"]),
            sell=body["sell"],
            buy=body["buy"],
            amount=assets[body["sell"]].amount(int(body["amount"])),
            price=Decimal(body["price"]),
            limit=Decimal(body["limit"]),
            account=body.get("account"),
            asked=OrderTerms.of(body.get("asked"), assets),
        )


@dataclass(frozen=True, slots=True)
class Market:
    """An unordered pair of assets."""

    market: str
    base: str
    quote: str
    price: Decimal | None
    """At which it last traded."""
    price_height: int | None
    indicative: Decimal | None
    """The ratio of the latest valuations; nobody traded at it."""
    best_sell: Decimal | None
    best_buy: Decimal | None
    base_volume: Decimal
    """Of the last batch."""
    quote_volume: Decimal
    offers: int

    @staticmethod
    def of(body: Json, assets: Assets) -> Market:
        base, quote = assets[body["base"]], assets[body["quote"]]
        return Market(
            market=body["market"],
            base=base.symbol,
            quote=quote.symbol,
            price=decimal(body["price"]),
            price_height=body["price_height"],
            indicative=decimal(body["indicative"]),
            best_sell=decimal(body["best_sell"]),
            best_buy=decimal(body["best_buy"]),
            base_volume=base.amount(int(body["base_volume"])),
            quote_volume=quote.amount(int(body["quote_volume"])),
            offers=int(body["offers"]),
        )


@dataclass(frozen=True, slots=True)
class Level:
    """The offers at one price."""

    price: Decimal
    amount: Decimal
    """In the base asset."""
    offers: int

    @staticmethod
    def of(body: Json, base: Asset) -> Level:
        return Level(Decimal(body["price"]), base.amount(int(body["amount"])), int(body["offers"]))


@dataclass(frozen=True, slots=True)
class Book:
    """The resting offers of a market by price, after the block of `height`."""

    market: str
    height: int
    time_ms: int | None
    """Of that block; None where it is not known."""
    price: Decimal | None
    indicative: Decimal | None
    sells: tuple[Level, ...]
    """Cheapest first."""
    buys: tuple[Level, ...]
    """Highest price first."""

    @staticmethod
    def of(body: Json, assets: Assets) -> Book:
        base, _ = assets.market(body["market"])
        return Book(
            market=body["market"],
            height=int(body["height"]),
            time_ms=int(body["time_ms"]) or None,
            price=decimal(body["price"]),
            indicative=decimal(body["indicative"]),
            sells=tuple(Level.of(one, base) for one in body["sells"]),
            buys=tuple(Level.of(one, base) for one in body["buys"]),
        )


@dataclass(frozen=True, slots=True)
class Candle:
    """The trades of a market in one interval."""

    market: str
    interval: str
    time_ms: int
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    base_volume: Decimal
    quote_volume: Decimal
    batches: int
    complete: bool

    @staticmethod
    def of(body: Json, assets: Assets, market: str, interval: str) -> Candle:
        base, quote = assets.market(market)
        return Candle(
            market=market,
            interval=interval,
            time_ms=int(body["time_ms"]),
            open=Decimal(body["open"]),
            high=Decimal(body["high"]),
            low=Decimal(body["low"]),
            close=Decimal(body["close"]),
            base_volume=base.amount(int(body["base_volume"])),
            quote_volume=quote.amount(int(body["quote_volume"])),
            batches=int(body["batches"]),
            complete=bool(body["complete"]),
        )


@dataclass(frozen=True, slots=True)
class PricePoint:
    """A batch in which a market traded."""

    market: str
    height: int
    time_ms: int
    price: Decimal
    base_volume: Decimal

    @staticmethod
    def of(body: Json, assets: Assets, market: str) -> PricePoint:
        base, _ = assets.market(market)
        volume = base.amount(int(body["base_volume"]))
        return PricePoint(market, int(body["height"]), int(body["time_ms"]), Decimal(body["price"]), volume)


@dataclass(frozen=True, slots=True)
class Trade:
    """What a market traded in one batch, at one price."""

    market: str
    height: int
    price: Decimal
    base_volume: Decimal
    quote_volume: Decimal | None
    """None where only the market's history told of the trade."""

    @staticmethod
    def of(body: Json, assets: Assets) -> Trade:
        base, quote = assets.market(body["market"])
        return Trade(
            market=body["market"],
            height=int(body["height"]),
            price=Decimal(body["price"]),
            base_volume=base.amount(int(body["base_volume"])),
            quote_volume=quote.amount(int(body["quote_volume"])),
        )


@dataclass(frozen=True, slots=True)
class Day:
    """What a market traded in the 24 hours up to the last block."""

    since_ms: int
    complete: bool
    """Whether the node has every batch of them."""
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    change_percent: Decimal
    base_volume: Decimal
    quote_volume: Decimal
    batches: int


@dataclass(frozen=True, slots=True)
class Ticker:
    """A market at a glance."""

    market: str
    height: int
    time_ms: int
    price: Decimal | None
    best_sell: Decimal | None
    best_buy: Decimal | None
    day: Day | None
    """None if the market did not trade in them."""

    @staticmethod
    def of(body: Json, assets: Assets) -> Ticker:
        base, quote = assets.market(body["market"])
        day = body["day"]
        prices = {name: Decimal(day[name]) for name in ("open", "high", "low", "close", "change_percent")} if day else {}
        return Ticker(
            market=body["market"],
            height=int(body["height"]),
            time_ms=int(body["time_ms"]),
            price=decimal(body["price"]),
            best_sell=decimal(body["best_sell"]),
            best_buy=decimal(body["best_buy"]),
            day=Day(
                since_ms=int(day["since_ms"]),
                complete=bool(day["complete"]),
                **prices,
                base_volume=base.amount(int(day["base_volume"])),
                quote_volume=quote.amount(int(day["quote_volume"])),
                batches=int(day["batches"]),
            )
            if day
            else None,
        )


@dataclass(frozen=True, slots=True)
class Quote:
    """What the next batch would do with an offer if nothing else came: no promise, since others' orders may come first."""

    height: int
    """Of the state that was asked."""
    sell: str
    buy: str
    sold: Decimal
    bought: Decimal
    """Net of commission."""
    left: Decimal
    """What would rest in the book."""
    returned: Decimal
    why: str
    price: Decimal | None
    """Of that batch, before commission; None if it would clear nothing."""
    last_price: Decimal | None
    asked: OrderTerms | None = None
    """The order in its market; None without a limit."""

    @staticmethod
    def of(body: Json, assets: Assets) -> Quote:
        sell, buy = assets[body["sell"]], assets[body["buy"]]
        return Quote(
            height=int(body["height"]),
            sell=sell.symbol,
            buy=buy.symbol,
            sold=sell.amount(int(body["sold"])),
            bought=buy.amount(int(body["bought"])),
            left=sell.amount(int(body["left"])),
            returned=sell.amount(int(body["returned"])),
            why=body["why"],
            price=decimal(body["price"]),
            last_price=decimal(body["last_price"]),
            asked=OrderTerms.of(body.get("asked"), assets),
        )


@dataclass(frozen=True, slots=True)
class BatchTrade:
    """What one ordered pair traded in a batch."""

    sell: str
    buy: str
    sold: Decimal
    bought: Decimal

    @staticmethod
    def of(body: Json, assets: Assets) -> BatchTrade:
        sell, buy = assets[body["sell"]], assets[body["buy"]]
        return BatchTrade(sell.symbol, buy.symbol, sell.amount(int(body["sold"])), buy.amount(int(body["bought"])))


@dataclass(frozen=True, slots=True)
class Batch:
    """The clearing of a block."""

    height: int
    time_ms: int
    full: bool
    """Whether every offer that had to fill was filled."""
    valuations: Mapping[str, Decimal]
    """Per unit; only their ratios mean anything."""
    trades: tuple[BatchTrade, ...]
    burnt: Mapping[str, Decimal]

    @staticmethod
    def of(body: Json, assets: Assets) -> Batch:
        return Batch(
            height=int(body["height"]),
            time_ms=int(body["time_ms"]),
            full=bool(body["full"]),
            valuations={symbol: Decimal(text) for symbol, text in body["valuations"].items()},
            trades=tuple(BatchTrade.of(one, assets) for one in body["trades"]),
            burnt={symbol: assets[symbol].amount(int(units)) for symbol, units in body["burnt"].items()},
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The summary of a block."""

    height: int
    digest: str
    parent: str
    time_ms: int
    transactions: int
    applied: int
    refused: int
    fills: int
    pairs: int
    full: bool

    @staticmethod
    def of(body: Json) -> Block:
        return Block(
            height=int(body["height"]),
            digest=body["block"],
            parent=body["parent"],
            time_ms=int(body["time_ms"]),
            transactions=int(body["transactions"]),
            applied=int(body["applied"]),
            refused=int(body["refused"]),
            fills=int(body["fills"]),
            pairs=int(body["pairs"]),
            full=bool(body["full"]),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a block did with a transaction. The amounts are those of an offer in its first batch, or of
    an exact order."""

    result: Literal["applied", "void", "offered", "replaced", "cancelled", "pooled", "exact", "listed", "sealed", "refused"]
    sold: Decimal | None = None
    bought: Decimal | None = None
    left: Decimal | None = None
    """Rests in the book."""
    returned: Decimal | None = None
    """Went back to the account: it was for one batch, or is too little for an offer."""
    why: str | None = None
    found: int | None = None
    """How many of the offers that a cancel names rested."""
    missing: int | None = None
    """How many of them did not: they had traded or ended."""
    code: str | None = None
    message: str | None = None
    number: int | None = None
    """The number of the asset that was listed. Use it once this is certified."""

    @staticmethod
    def of(body: Json, pair: tuple[Asset, Asset] | None) -> Outcome:
        """`pair` is sold and bought, if the operation is known."""
        match body["result"]:
            case "offered" | "replaced" as result if pair is not None:
                sell, buy = pair
                return Outcome(
                    result,
                    sold=sell.amount(int(body["sold"])),
                    bought=buy.amount(int(body["bought"])),
                    left=sell.amount(int(body["left"])),
                    returned=sell.amount(int(body["returned"])),
                    why=body["why"],
                )
            case "exact" if pair is not None:
                sell, buy = pair
                return Outcome(
                    "exact",
                    sold=sell.amount(int(body["sold"])),
                    bought=buy.amount(int(body["bought"])),
                    returned=sell.amount(int(body["returned"])),
                    why=body["why"],
                )
            case "refused":
                return Outcome("refused", code=body["code"], message=body["message"])
            case "sealed":
                # `opened`, `garbage` or `unpaid`.
                return Outcome("sealed", why=body["became"], code=body.get("code"), message=body.get("message"))
            case "listed":
                return Outcome("listed", number=body["number"])
            case "cancelled":
                return Outcome("cancelled", found=body["found"], missing=body["missing"])
            case result:
                return Outcome(result, why=body.get("why"))


@dataclass(frozen=True, slots=True)
class Fill:
    """What one of an account's offers or exact orders traded in a batch."""

    id: int
    sell: str
    buy: str
    price: Decimal
    """Of the trade: bought for one sold."""
    sold: Decimal
    bought: Decimal
    left: Decimal
    returned: Decimal

    @staticmethod
    def of(body: Json, assets: Assets) -> Fill:
        sell, buy = assets[body["sell"]], assets[body["buy"]]
        sold, bought = sell.amount(int(body["sold"])), buy.amount(int(body["bought"]))
        return Fill(
            id=int(body["id"]),
            sell=sell.symbol,
            buy=buy.symbol,
            price=bought / sold if sold else Decimal(0),
            sold=sold,
            bought=bought,
            left=sell.amount(int(body.get("left", 0))),
            returned=sell.amount(int(body.get("returned", 0))),
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a transaction.

    ========  =========================================================================================
    pending   in a node's pool; it may count up to block `until`
    executed  in a block, with its outcome
    refused   without effect, with `code` and `message`; anybody who has the bytes may send them again up
              to block `until`, unless another transaction takes its number
    void      it can never count any more
    unknown   the node knows nothing of it; it may count up to block `until`
    ========  =========================================================================================
    """

    id: str
    state: Literal["pending", "executed", "refused", "void", "unknown"]
    sequence: int | None = None
    until: int | None = None
    height: int | None = None
    outcome: Outcome | None = None
    code: str | None = None
    message: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing can change it."""
        return self.state in ("executed", "void")
