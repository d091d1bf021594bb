"""Walras as an exchange of `ccxt`: bots that speak ccxt trade here unchanged.

    exchange = walras.ccxt.walras({"privateKey": "0x…", "urls": {"api": "http://127.0.0.1:8080"}})

An order is an offer of the batch exchange. What follows from that:

- **Limit orders** trade at the batch's price or rest (``GTC``), or with ``timeInForce`` ``IOC`` trade in the batch of the
  next block alone. An order to *buy* stops at its amount where the next batch fills it whole; what waits in the book spends
  what it costs at its price, and buys more at a better one, never dearer. A **market order** is a limit order for the next
  batch alone, with 5 % of room from the last price, and is told as that. There is no post-only order, since a batch has no
  maker, and no ``FOK`` (`Client.exact` has one).
- `id` is the number of the offer. An order's transaction is in ``info``, and `fetchOrder` takes its id, too.
- An order's ``amount``, ``filled``, ``remaining``, ``cost``, ``average`` and ``status`` are the same in every call and
  stream, and its trades sum to it (see `walras._ccxt_rows`).
- ``clientOrderId`` is the `reference` of `walras.client`: an order with one is placed once, however often it is sent.
- A public trade is what a market traded in one batch, at one price. It has no side.
- Each transaction has a fee in the fee asset. A trade has none: its ``fee`` is 0.
- Numbers are floats and ints; ``info`` has the exact text.
- ``since`` with ``limit`` begins with the first row at or after ``since``. Rows of one block stay together, so a page may
  have more than ``limit``, and the next one begins a millisecond after its last row.

Continuous markets do not appear: they are traded by `walras.venue.VenueTrader`.

Past orders and trades are those of the node's index: they end where it begins. `walras.ccxt_async` is the same class for
event loops, with `watchOrderBook`, `watchTicker`, `watchOrders` and `watchMyTrades`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

import ccxt

from walras._ccxt_rows import market_of, order_row, page, past_row, told, trade_row
from walras.client import (
    AddressError,
    AmountError,
    BusyError,
    Client,
    ClientError,
    Ed25519Key,
    EthereumKey,
    Fate,
    ForeignAnswerError,
    NoAnswerError,
    NotFoundError,
    NumbersError,
    Offer,
    OrderFate,
    OrderTerms,
    PastFill,
    PastOrder,
    PricePoint,
    RefusedError,
    UndecidedError,
    UnknownAssetError,
    checked_address,
)
from walras.client.amounts import market_limit, plain
from walras.client.encoding import RESTS
from walras.client.models import Outcome

__all__ = ["walras"]

R = TypeVar("R", PastFill, PastOrder)
ZERO = Decimal(0)
DAY_MS = 86_400_000
PAGE = 1_000
"""Rows that the node tells at once."""
INDEX_TRIES, INDEX_PAUSE_S = 200, 0.02
"""How often the index is looked at until it has a block."""
_ANY = {"min": None, "max": None}
_HAS_NOT = {"marginMode": False, "trigger": False, "trailing": False, "symbolRequired": False}
_WINDOW = {"limit": PAGE, "daysBack": None, "untilDays": None}
_FEATURES = {
    "sandbox": False,
    "createOrder": {
        **dict.fromkeys(("marginMode", "triggerPrice", "triggerDirection", "stopLossPrice", "takeProfitPrice"), False),
        **dict.fromkeys(("hedged", "trailing", "leverage", "marketBuyByCost", "marketBuyRequiresPrice"), False),
        **dict.fromkeys(("selfTradePrevention", "iceberg"), False),
        "triggerPriceType": None,
        "attachedStopLossTakeProfit": None,
        "timeInForce": {"GTC": True, "IOC": True, "FOK": False, "PO": False, "GTD": False},
    },
    "createOrders": None,
    "fetchMyTrades": {"marginMode": False, "symbolRequired": False, **_WINDOW},
    "fetchOrder": _HAS_NOT,
    "fetchOpenOrders": {**_HAS_NOT, "limit": PAGE},
    "fetchOrders": {**_HAS_NOT, **_WINDOW},
    "fetchClosedOrders": {**_HAS_NOT, **_WINDOW, "daysBackCanceled": None},
    "fetchOHLCV": {"limit": PAGE},
}
"""What an order and a call can say, in ccxt's words."""
_PAYER: dict[str, Any] = {"payer": None, "payerAccount": None, "payerSlot": 0}
_LOST_OFFERS = ("unknown_offer", "not_your_offer")
_TOO_LITTLE = ("sells_too_little", "asks_too_little", "same_asset", "zero_amount", "amount_too_large")


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the client as ccxt's, with the same words."""
    try:
        yield
    except UnknownAssetError as error:
        raise ccxt.BadSymbol(str(error)) from error
    except AmountError as error:
        raise ccxt.InvalidOrder(str(error)) from error
    except AddressError as error:
        raise ccxt.InvalidAddress(str(error)) from error
    except UndecidedError as error:
        raise ccxt.RequestTimeout(str(error)) from error
    except (NoAnswerError, ForeignAnswerError) as error:
        raise ccxt.ExchangeNotAvailable(str(error)) from error
    except BusyError as error:
        raise ccxt.RateLimitExceeded(str(error)) from error
    except RefusedError as error:
        raise _refusal(error)(str(error)) from error
    except NumbersError as error:
        raise ccxt.RateLimitExceeded(str(error)) from error
    except ClientError as error:
        raise ccxt.ExchangeError(str(error)) from error


def _refusal(error: RefusedError) -> type[Exception]:
    kind: type[Exception] = ccxt.ExchangeError
    if error.code in ("overdraft", "session_cap"):
        kind = ccxt.InsufficientFunds
    elif error.code in _LOST_OFFERS:
        kind = ccxt.OrderNotFound
    elif error.code == "no_history":
        kind = ccxt.NotSupported
    elif error.code in _TOO_LITTLE:
        kind = ccxt.InvalidOrder
    elif error.code in ("malformed", "unknown_parameter"):
        kind = ccxt.BadRequest
    elif error.code == "unauthorized":
        kind = ccxt.AuthenticationError
    elif error.status >= 500:
        kind = ccxt.ExchangeNotAvailable
    return kind


class walras(ccxt.Exchange):  # type: ignore[misc]
    """The exchange. ``privateKey`` is a secp256k1 key, or with ``options["keyType"] = "ed25519"`` a seed. ``store``
    among the options is a key file beside which transactions are kept until they are final, ``network`` the identity of
    the network. With ``slot`` the key is the session key of that slot of the account ``walletAddress``."""

    def describe(self) -> Any:
        no = ["editOrder"]
        yes = ["fetchMarkets", "fetchCurrencies", "fetchTicker", "fetchTickers", "fetchOrderBook", "fetchTrades"]
        yes += ["fetchOHLCV", "fetchBalance", "fetchOrder", "fetchOpenOrders", "createOrder", "cancelOrder"]
        yes += ["fetchMyTrades", "fetchOrders", "fetchClosedOrders", "fetchOrderTrades"]
        yes += ["cancelAllOrders", "fetchTime", "fetchStatus", "createLimitOrder", "createMarketOrder", "spot"]
        yes += ["fetchL2OrderBook", "fetchOrderBooks", "fetchTradingFee", "fetchTradingFees"]
        intervals = ["1m", "5m", "15m", "1h", "4h", "1d"]
        return self.deep_extend(
            super().describe(),
            {
                "id": "walras",
                "name": "Walras",
                "countries": [],
                "rateLimit": 50,
                "certified": False,
                "pro": False,
                "dex": True,
                "has": {"CORS": None, **dict.fromkeys(no, False), **dict.fromkeys(yes, True)},
                "timeframes": {one: one for one in intervals},
                "urls": {"api": "http://127.0.0.1:8080", "www": "http://127.0.0.1:8080", "doc": []},
                "requiredCredentials": {"apiKey": False, "secret": False, "privateKey": True},
                "precisionMode": ccxt.TICK_SIZE,
                "features": {"spot": _FEATURES},
                "fees": {"trading": {"tierBased": False, "percentage": True, "maker": 0.0, "taker": 0.0}},
                "options": {"keyType": "ethereum", "store": None, "network": None, "patience": 60.0, "slot": 0, **_PAYER},
            },
        )

    @property
    def client(self) -> Client:
        """The client below, which knows more than ccxt asks for."""
        made: Client | None = self.__dict__.get("_walras_client")
        if made is None:
            options = self.options
            kind = Ed25519Key if options["keyType"] == "ed25519" else EthereumKey
            with _translated():
                key = kind(self.privateKey) if self.privateKey else None
                own = self.walletAddress or None
                settings = {name: options[name] for name in ("network", "store", "patience", "slot")}
                made = Client(self.urls["api"], key=key, account=own, payer=self._payer(), **settings)
            self.__dict__["_walras_client"] = made
        return made

    def _payer(self) -> Client | None:
        """Who signs and pays for the envelopes of ``sealed`` orders: an ed25519 key, of its own account or of a slot."""
        seed, account, slot = (self.options[name] for name in _PAYER)
        if seed is None:
            return None
        return Client(self.urls["api"], key=Ed25519Key(seed), account=account, slot=slot, network=self.options["network"])

    def close(self) -> None:
        """Closes the client's connections."""
        made = self.__dict__.pop("_walras_client", None)
        if made is not None:
            made.close()

    def _sender(self) -> Client:
        self.check_required_credentials()
        return self.client

    # Markets.

    def fetch_time(self, params: Any = None) -> Any:
        with _translated():
            return self.client.status().time_ms

    def fetch_status(self, params: Any = None) -> Any:
        with _translated():
            status = self.client.status()
        word = "ok" if status.stalled is None else "error"
        return {"status": word, "updated": status.time_ms, "eta": None, "url": None, "info": told(status)}

    def fetch_currencies(self, params: Any = None) -> Any:
        with _translated():
            assets = self.client.assets()
        return {
            symbol: {
                "id": symbol,
                "numericId": asset.number,
                "code": symbol,
                "type": "crypto",
                "precision": float(Decimal(1).scaleb(-asset.decimals)),
                "active": True,
                # Money comes and goes by payments.
                "deposit": True,
                "withdraw": True,
                "fee": None,
                "fees": {},
                "networks": {},
                "limits": {"amount": {"min": float(asset.least), "max": None}, "deposit": _ANY, "withdraw": _ANY},
                "info": told(asset),
            }
            for symbol, asset in assets.items()
        }

    def fetch_markets(self, params: Any = None) -> Any:
        with _translated():
            assets = sorted(self.client.assets().values(), key=lambda asset: asset.number)
        # The base has the higher number, as in the node's list of markets.
        pairs = [(base, quote) for at, base in enumerate(assets) for quote in assets[:at]]
        return [
            self.safe_market_structure(
                {
                    "id": f"{base.symbol}/{quote.symbol}",
                    "symbol": f"{base.symbol}/{quote.symbol}",
                    "base": base.symbol,
                    "quote": quote.symbol,
                    "baseId": base.symbol,
                    "quoteId": quote.symbol,
                    "type": "spot",
                    "spot": True,
                    "active": True,
                    "maker": 0.0,
                    "taker": 0.0,
                    # Prices have no tick, and none is rounded here. freqtrade refuses markets that say less than this.
                    "precision": {"amount": float(Decimal(1).scaleb(-base.decimals)), "price": 1e-10},
                    "limits": {
                        "amount": {"min": float(base.least), "max": None},
                        "price": {"min": None, "max": None},
                        "cost": {"min": float(quote.least), "max": None},
                        "leverage": {"min": None, "max": None},
                    },
                    "info": {"base": told(base), "quote": told(quote)},
                }
            )
            for base, quote in pairs
        ]

    def price_to_precision(self, symbol: Any, price: Any) -> Any:
        # The shortest decimal of a float is what was meant by it.
        return plain(Decimal(str(price)))

    def fetch_ticker(self, symbol: str, params: Any = None) -> Any:
        self.load_markets()
        symbol = self.market(symbol)["symbol"]
        return self.fetch_tickers([symbol])[symbol]

    def fetch_tickers(self, symbols: Any = None, params: Any = None) -> Any:
        """Of some markets, or of all with offers or trades."""
        self.load_markets()
        with _translated():
            names = self.market_symbols(symbols) or [market.market for market in self.client.markets()]
            now = self.client.status().time_ms
            return {name: self._ticker(name, now) for name in names}

    def _ticker(self, symbol: str, now: int) -> Any:
        book = self.client.book(symbol, 1)
        day = [one for one in self.client.candles(symbol, "15m", 97) if one.time_ms > now - DAY_MS]
        ticker = {
            "symbol": symbol,
            "timestamp": now,
            "datetime": self.iso8601(now),
            "last": _text(book.price),
            "close": _text(book.price),
            "bid": _text(book.buys[0].price if book.buys else None),
            "bidVolume": _text(book.buys[0].amount if book.buys else None),
            "ask": _text(book.sells[0].price if book.sells else None),
            "askVolume": _text(book.sells[0].amount if book.sells else None),
            "open": _text(day[0].open if day else None),
            "high": _text(max((one.high for one in day), default=None)),
            "low": _text(min((one.low for one in day), default=None)),
            "baseVolume": _text(sum((one.base_volume for one in day), Decimal(0))),
            "quoteVolume": _text(sum((one.quote_volume for one in day), Decimal(0))),
            "info": told({"book": book, "indicative": book.indicative}),
        }
        return self.safe_ticker(ticker, self.market(symbol))

    def fetch_order_book(self, symbol: str, limit: Any = None, params: Any = None) -> Any:
        self.load_markets()
        with _translated():
            book = self.client.book(self.market(symbol)["symbol"], limit)
        return {
            "symbol": symbol,
            "bids": [[float(level.price), float(level.amount)] for level in book.buys],
            "asks": [[float(level.price), float(level.amount)] for level in book.sells],
            "timestamp": book.time_ms,
            "datetime": self.iso8601(book.time_ms),
            "nonce": book.height,
        }

    def fetch_order_books(self, symbols: Any = None, limit: Any = None, params: Any = None) -> Any:
        """Of some markets, or of all."""
        self.load_markets()
        return {name: self.fetch_order_book(name, limit) for name in self.market_symbols(symbols) or self.symbols}

    def fetch_trading_fees(self, params: Any = None) -> Any:
        """No market has one: each transaction has a fee in the fee asset."""
        self.load_markets()
        free = {"maker": 0.0, "taker": 0.0, "percentage": True, "tierBased": False}
        return {name: {"symbol": name, **free, "info": market["info"]} for name, market in self.markets.items()}

    def fetch_trades(self, symbol: str, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        """Of the blocks whose batches the node keeps, two thousand."""
        self.load_markets()
        market = self.market(symbol)
        with _translated():
            points = self.client.history(market["symbol"], min(limit or PAGE, PAGE), None, since)
        return [self._public_trade(point, market) for point in points]

    def _public_trade(self, point: PricePoint, market: Any) -> Any:
        row = {
            "id": str(point.height),
            "symbol": market["symbol"],
            "timestamp": point.time_ms,
            "datetime": self.iso8601(point.time_ms),
            "price": plain(point.price),
            "amount": plain(point.base_volume),
            "side": None,
            "takerOrMaker": None,
            "order": None,
            "type": None,
            "fee": None,
            "info": told(point),
        }
        return self.safe_trade(row, market)

    def fetch_ohlcv(
        self, symbol: str, timeframe: Any = "1m", since: Any = None, limit: Any = None, params: Any = None
    ) -> Any:
        self.load_markets()
        if timeframe not in self.timeframes:
            raise ccxt.BadRequest(f"no timeframe {timeframe!r}; there are {', '.join(self.timeframes)}")
        name = self.market(symbol)["symbol"]
        with _translated():
            candles = self.client.candles(name, timeframe, min(limit or 500, PAGE), None, since)
        return [[one.time_ms, *map(float, (one.open, one.high, one.low, one.close, one.base_volume))] for one in candles]

    # The account.

    def fetch_balance(self, params: Any = None) -> Any:
        client = self._sender()
        with _translated():
            try:
                account = client.account()
            except NotFoundError:
                # An account begins with the first payment to it.
                return self.safe_balance({"info": None})
        held = {one.asset: {"free": plain(one.available), "used": plain(one.locked)} for one in account.balances}
        return self.safe_balance({"info": told(account), **held})

    def create_order(
        self, symbol: str, type: Any, side: Any, amount: Any, price: Any = None, params: Any = None
    ) -> Any:
        self.load_markets()
        market = self.market(symbol)
        if type not in ("limit", "market"):
            raise ccxt.InvalidOrder(f"walras has limit and market orders, not {type!r}")
        if side not in ("buy", "sell"):
            raise ccxt.InvalidOrder(f"a side is buy or sell, not {side!r}")
        life, reference = _asked(params)
        units = self.amount_to_precision(symbol, _positive(amount, "an amount"))
        client, sealed = self._sender(), bool((params or {}).get("sealed"))
        if type == "market":
            life, limit = "one batch", self._reach(market["symbol"], side)
        else:
            limit = self.price_to_precision(symbol, _positive(price, "a price"))
        with _translated():
            send = client.buy if side == "buy" else client.sell
            fate = send(market["symbol"], units, limit, life=life, reference=reference, sealed=sealed)
        terms = OrderTerms(side, market["base"], market["quote"], Decimal(units), Decimal(limit))
        return self._placed(fate, self._bought_as(fate, terms) if side == "buy" else terms, life, reference)

    def _bought_as(self, fate: Fate, written: OrderTerms) -> OrderTerms:
        """What a purchase was placed as, which may be at a better limit than was written; as written where no index says it."""
        if fate.sequence is None or fate.height is None:
            return written
        with _translated():
            try:
                told = self._known(fate.sequence, fate.height).order
            except (ccxt.OrderNotFound, NotFoundError):
                return written
        return (told and told.asked) or written

    def _reach(self, name: str, side: str) -> str:
        """The limit of a market order: the last price with some room."""
        with _translated():
            last = self.client.ticker(name).price
        if last is None:
            raise ccxt.InvalidOrder(
                f"nobody has traded {name} yet, so a market order has no price: send a limit order"
            )
        return plain(market_limit(side, last))

    def _placed(self, fate: Fate, terms: OrderTerms, life: str, reference: str | None) -> Any:
        """An order from the outcome of its first batch."""
        outcome = fate.outcome or Outcome("applied")
        is_exact = outcome.result == "exact"
        whole = (is_exact or outcome.left == 0) and outcome.why in ("filled", "returned")
        status = "open" if outcome.left != 0 and not is_exact else "closed" if whole else "canceled"
        more = {
            "id": str(fate.sequence),
            "clientOrderId": reference,
            "timeInForce": "FOK" if is_exact else "GTC" if life == RESTS else "IOC",
            "info": {"transaction": fate.id, "fate": told(fate)},
        }
        return self._order(order_row(terms, (outcome.sold or ZERO, outcome.bought or ZERO), status, more))

    def _order(self, row: dict[str, Any]) -> Any:
        row["datetime"] = self.iso8601(row["timestamp"])
        return self.safe_order(row, self.market(row["symbol"]))

    def _past_order(self, past: PastOrder, info: Any = None) -> Any:
        """An order of the node's index, with what it moved in all."""
        assert past.asked is not None, "who asks looks whether it is known"
        row = past_row(past, past.asked, self._moved(past), info or {"transaction": past.id, "order": past})
        return self._order(row)

    def _moved(self, past: PastOrder) -> tuple[Decimal, Decimal]:
        """What an order sold and bought in all: as the node says, or as its fills sum to where they are too many."""
        if past.status in ("refused", "void"):
            return ZERO, ZERO
        if past.sold is not None and past.bought is not None:
            return past.sold, past.bought
        fills = [fill for page in self._pages_of(past.sequence) for fill in page]
        return sum((fill.sold for fill in fills), ZERO), sum((fill.bought for fill in fills), ZERO)

    def _pages_of(self, number: int) -> Iterator[list[PastFill]]:
        """All fills of an order, the newest first."""
        cursor: str | None = None
        while True:
            fills, cursor = self._sender().fills_page(cursor, offer=number)
            yield fills
            if cursor is None:
                return

    def fetch_open_orders(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        self.load_markets()
        client = self._sender()
        name = self.market(symbol)["symbol"] if symbol else None
        with _translated():
            resting = [offer for offer in client.offers() if name in (None, self._market_of(offer))]
            newest = client.orders_page()[0] if resting else []
            known = {one.sequence: one for one in newest if one.status == "resting" and is_known(one)}
            orders = [
                self._past_order(known[offer.id]) if offer.id in known else self._resting(offer) for offer in resting
            ]
        # What ended meanwhile is open no more.
        orders = sorted((one for one in orders if one["status"] == "open"), key=_time_of)
        return page(orders, _time_of, since, limit)

    def _resting(self, offer: Offer) -> Any:
        """An order of which the first page does not tell; where no index does, nobody knows what it traded."""
        try:
            return self._told(self._known(offer.id))
        except (ccxt.OrderNotFound, NotFoundError):
            if offer.asked is None:
                raise
            return self._order(order_row(offer.asked, None, "open", {"id": str(offer.id), "info": {"offer": told(offer)}}))

    def _market_of(self, row: Offer | PastFill | PastOrder) -> str:
        return market_of(self.markets, row.sell, row.buy)[0]

    def _number(self, id: Any) -> int:
        """The number of the order that an id names: its own, or that of its transaction."""
        text = str(id)
        if re.fullmatch(r"[0-9]{1,20}", text) and int(text) < 1 << 64:
            return int(text)
        if re.fullmatch(r"0x[0-9a-fA-F]{64}", text):
            number = self._sender().fate(text.lower()).sequence
            if number is not None:
                return number
        raise ccxt.OrderNotFound(f"walras knows no order {text!r}: an id is a number, or 0x and 64 digits")

    def _known(self, number: int, height: int = 0) -> OrderFate:
        """What the node's index knows of an order, once it has a block."""
        for _ in range(INDEX_TRIES):
            try:
                fate = self._sender().order_fate(number)
            except NotFoundError as error:
                if error.code != "order_unknown":
                    raise
                raise ccxt.OrderNotFound(str(error)) from error
            executed = height or (fate.order is None and self._sender().fate(fate.id).height) or 0
            if fate.height >= executed:
                return fate
            # Blocks come first, and their index follows.
            time.sleep(INDEX_PAUSE_S)
        return fate

    def fetch_order(self, id: str, symbol: Any = None, params: Any = None) -> Any:
        self.load_markets()
        self._sender()
        with _translated():
            return self._told(self._known(self._number(id)))

    def _told(self, fate: OrderFate) -> Any:
        if fate.order is not None and is_known(fate.order):
            return self._past_order(fate.order, fate)
        # No block has it, or it names no assets of this network: nobody tells what it asks for.
        status = "open" if fate.status == "pending" else "rejected"
        return self.safe_order(
            {"id": str(fate.sequence), "status": status, "filled": "0", "cost": "0", "trades": None, "info": told(fate)}
        )

    def cancel_order(self, id: str, symbol: Any = None, params: Any = None) -> Any:
        self.load_markets()
        client = self._sender()
        with _translated():
            number = self._number(id)
            fate = client.cancel(number, sealed=bool((params or {}).get("sealed")))
            return self._told(self._known(number, fate.height or 0))

    def cancel_all_orders(self, symbol: Any = None, params: Any = None) -> Any:
        self.load_markets()
        client = self._sender()
        orders = self.fetch_open_orders(symbol)
        with _translated():
            fates = client.cancel_all(self.market(symbol)["symbol"] if symbol else None)
            height = max((fate.height or 0 for fate in fates), default=0)
            # What traded meanwhile was not there to be cancelled.
            return [self._told(self._known(int(order["id"]), height)) for order in orders]

    def _own_trade(self, fill: PastFill) -> Any:
        row = trade_row(self.markets, fill)
        return self.safe_trade({**row, "datetime": self.iso8601(row["timestamp"])}, self.market(row["symbol"]))

    def _history(self, ask: Callable[[str | None], tuple[list[R], str | None]], is_wanted: Callable[[R], bool],
                 since: Any, limit: Any) -> list[R]:
        """Rows of a history, the oldest first: the last `limit` (a thousand without one), or the first from `since`."""
        rows: list[R] = []
        cursor: str | None = None
        with _translated():
            while True:
                found, cursor = ask(cursor)
                rows += [row for row in found if is_wanted(row)]
                is_enough = len(rows) >= (limit or PAGE) if since is None else found and found[-1].time_ms < since
                if cursor is None or is_enough:
                    return page(rows[::-1], lambda row: row.time_ms, since, limit)

    def fetch_my_trades(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        self.load_markets()
        name, client = self.market(symbol)["symbol"] if symbol else None, self._sender()
        fills = self._history(client.fills_page, lambda one: name in (None, self._market_of(one)), since, limit)
        return [self._own_trade(fill) for fill in fills]

    def fetch_order_trades(
        self, id: str, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None
    ) -> Any:
        """All of them, if no limit is given."""
        self.load_markets()
        client = self._sender()
        with _translated():
            number = self._number(id)
        first = 0 if since is None and limit is None else since
        fills = self._history(lambda cursor: client.fills_page(cursor, offer=number), lambda _: True, first, limit)
        return [self._own_trade(fill) for fill in fills]

    def fetch_orders(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        """Those that name assets of this network: with a since all from then on, else the newest thousand."""
        return self._orders(symbol, since, limit, lambda _: True)

    def fetch_closed_orders(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        return self._orders(symbol, since, limit, lambda past: past.status == "ended")

    def _orders(self, symbol: Any, since: Any, limit: Any, is_wanted: Callable[[PastOrder], bool]) -> Any:
        self.load_markets()
        name, client = self.market(symbol)["symbol"] if symbol else None, self._sender()

        def is_here(past: PastOrder) -> bool:
            return is_known(past) and name in (None, self._market_of(past)) and is_wanted(past)

        found = self._history(client.orders_page, is_here, since, limit)
        with _translated():
            return [self._past_order(past) for past in found]

    def account_address(self) -> str:
        """The address to pay, with its checksum."""
        return checked_address(self._sender().address)


def is_known(past: PastOrder) -> bool:
    """An order may name assets that there are not; it was refused."""
    return past.asked is not None


def _time_of(row: Any) -> int:
    return int(row["timestamp"] or 0)


def _asked(params: Any) -> tuple[str, str | None]:
    """The life of an order and its reference, of ccxt's parameters."""
    given = dict(params or {})
    reference, in_force = given.pop("clientOrderId", None), given.pop("timeInForce", None) or "GTC"
    given.pop("sealed", None)
    if given.pop("postOnly", False) or in_force == "PO":
        raise ccxt.NotSupported("walras has no post-only order: all of a batch trade at one price, and none is the maker")
    if in_force == "FOK":
        raise ccxt.NotSupported("walras has no FOK of a price: `client.exact` fills an amount whole or not at all")
    if in_force not in ("GTC", "IOC"):
        raise ccxt.NotSupported(f"walras has no timeInForce {in_force!r}: GTC rests, IOC is for one batch")
    # What is off by default asks for nothing.
    unknown = ", ".join(name for name, value in given.items() if value not in (None, False))
    if unknown:
        raise ccxt.NotSupported(f"walras has no {unknown}: a limit order rests until it is filled or cancelled")
    return (RESTS if in_force == "GTC" else "one batch"), None if reference is None else str(reference)


def _positive(value: Any, what: str) -> Any:
    if value is None:
        raise ccxt.ArgumentsRequired(f"a limit order needs {what}")
    try:
        number = Decimal(str(value))
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite() or number <= 0:
        raise ccxt.InvalidOrder(f"{what} is a number above 0, not {value!r}")
    return value


def _text(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)
