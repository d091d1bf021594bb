"""Walras as an exchange of `ccxt`: bots that speak ccxt trade here unchanged.

    exchange = walras.ccxt.walras({"privateKey": "0x…", "urls": {"api": "http://127.0.0.1:8080"}})

An order is an offer of the batch exchange. What follows from that:

- **Only limit orders**, which trade at the batch's price or rest. An order to *buy* spends what its amount costs at its
  price; at a better price it buys more, never dearer.
- `id` is the number of the offer. An order's transaction is in ``info["transaction"]``, and `fetchOrder` takes its id,
  too.
- ``clientOrderId`` is the `reference` of `walras.client`: an order with one is placed once, however often it is sent.
- A public trade is what a market traded in one batch, at one price. It has no side.
- Each transaction has a fee in the fee asset, and trades have none.

Past orders and trades are those of the node's index: they end where it begins. `walras.ccxt_async` is the same class for
event loops, with `watchOrderBook`, `watchTicker`, `watchOrders` and `watchMyTrades`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import ccxt

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
    PastFill,
    PastOrder,
    RefusedError,
    UndecidedError,
    UnknownAssetError,
    checked_address,
)
from walras.client.amounts import plain
from walras.client.models import Outcome

__all__ = ["walras"]

DAY_MS = 86_400_000
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
        no = ["createMarketOrder", "editOrder"]
        yes = ["fetchMarkets", "fetchCurrencies", "fetchTicker", "fetchTickers", "fetchOrderBook", "fetchTrades"]
        yes += ["fetchOHLCV", "fetchBalance", "fetchOrder", "fetchOpenOrders", "createOrder", "cancelOrder"]
        yes += ["fetchMyTrades", "fetchOrders", "fetchClosedOrders", "fetchOrderTrades"]
        yes += ["cancelAllOrders", "fetchTime", "fetchStatus", "createLimitOrder", "spot"]
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
                "fees": {"trading": {"tierBased": False, "percentage": True, "maker": 0.0, "taker": 0.0}},
                "options": {"keyType": "ethereum", "store": None, "network": None, "patience": 60.0, "slot": 0},
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
                made = Client(self.urls["api"], key=key, account=own, **settings)
            self.__dict__["_walras_client"] = made
        return made

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
        return {"status": word, "updated": status.time_ms, "eta": None, "url": None, "info": status}

    def fetch_currencies(self, params: Any = None) -> Any:
        with _translated():
            assets = self.client.assets()
        return {
            symbol: {
                "id": symbol,
                "numericId": asset.number,
                "code": symbol,
                "precision": float(Decimal(1).scaleb(-asset.decimals)),
                "active": True,
                "deposit": None,
                "withdraw": None,
                "fee": None,
                "fees": {},
                "networks": {},
                "limits": {"amount": {"min": float(asset.least), "max": None}, "withdraw": {"min": None, "max": None}},
                "info": asset,
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
                    # Prices have no tick: the ledger's have 17 digits.
                    "precision": {"amount": float(Decimal(1).scaleb(-base.decimals)), "price": 1e-17},
                    "limits": {
                        "amount": {"min": float(base.least), "max": None},
                        "price": {"min": None, "max": None},
                        "cost": {"min": float(quote.least), "max": None},
                        "leverage": {"min": None, "max": None},
                    },
                    "info": {"base": base, "quote": quote},
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
            "info": {"book": book, "indicative": _text(book.indicative)},
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
            "timestamp": None,
            "datetime": None,
            "nonce": book.height,
        }

    def fetch_trades(self, symbol: str, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        self.load_markets()
        market = self.market(symbol)
        with _translated():
            points = self.client.history(market["symbol"], 1000 if since is not None else limit)
        trades = [
            self.safe_trade(
                {
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
                    "info": point,
                },
                market,
            )
            for point in points
        ]
        return self.filter_by_symbol_since_limit(trades, market["symbol"], since, limit)

    def fetch_ohlcv(
        self, symbol: str, timeframe: Any = "1m", since: Any = None, limit: Any = None, params: Any = None
    ) -> Any:
        self.load_markets()
        if timeframe not in self.timeframes:
            raise ccxt.BadRequest(f"no timeframe {timeframe!r}; there are {', '.join(self.timeframes)}")
        count = min(limit or 500, 1000)
        before = None if since is None else since + count * self.parse_timeframe(timeframe) * 1000
        with _translated():
            candles = self.client.candles(self.market(symbol)["symbol"], timeframe, count, before)
        rows = [
            [one.time_ms, *map(float, (one.open, one.high, one.low, one.close, one.base_volume))] for one in candles
        ]
        return self.filter_by_since_limit(rows, since, limit, 0, since is None)

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
        return self.safe_balance({"info": account, **held})

    def create_order(
        self, symbol: str, type: Any, side: Any, amount: Any, price: Any = None, params: Any = None
    ) -> Any:
        self.load_markets()
        market, given = self.market(symbol), dict(params or {})
        if type != "limit":
            raise ccxt.InvalidOrder(f"walras has limit orders only, not {type!r}: give a price that you accept")
        if price is None:
            raise ccxt.ArgumentsRequired("a limit order needs a price")
        if side not in ("buy", "sell"):
            raise ccxt.InvalidOrder(f"a side is buy or sell, not {side!r}")
        reference = given.pop("clientOrderId", None)
        if given:
            unknown = ", ".join(given)
            raise ccxt.NotSupported(f"walras has no {unknown}: a limit order rests until it is filled or cancelled")
        client = self._sender()
        exact = (self.amount_to_precision(symbol, amount), self.price_to_precision(symbol, price))
        with _translated():
            send = client.buy if side == "buy" else client.sell
            fate = send(market["symbol"], *exact, reference=reference)
        return self._placed(fate, market, side, Decimal(exact[0]), Decimal(exact[1]), reference)

    def _placed(
        self, fate: Fate, market: Any, side: str, amount: Decimal, price: Decimal, reference: str | None
    ) -> Any:
        """An order from the outcome of its first batch."""
        told = fate.outcome or Outcome("applied")
        zero = Decimal(0)
        sold, bought, left = told.sold or zero, told.bought or zero, told.left
        filled, cost = (bought, sold) if side == "buy" else (sold, bought)
        return self._order(
            market,
            side,
            amount,
            price,
            filled,
            cost,
            "closed" if left == 0 else "open",
            {
                "id": str(fate.sequence),
                "clientOrderId": reference,
                "info": {"transaction": fate.id, "fate": fate},
            },
        )

    def _order(
        self,
        market: Any,
        side: str,
        amount: Decimal,
        price: Decimal,
        filled: Decimal,
        cost: Decimal,
        status: str,
        more: dict[str, Any],
    ) -> Any:
        return self.safe_order(
            {
                "symbol": market["symbol"],
                "type": "limit",
                "timeInForce": "GTC",
                "side": side,
                "price": plain(price),
                # What was bought beyond the amount, at a better price than asked for, belongs to it.
                "amount": plain(max(amount, filled)),
                "filled": plain(filled),
                "cost": plain(cost),
                "average": plain(cost / filled) if filled else None,
                "status": status,
                "timestamp": None,
                "datetime": None,
                "fee": None,
                "trades": [],
                **more,
            },
            market,
        )

    def _resting(self, offer: Offer) -> Any:
        """An order from an offer that rests: what it sold before is not known of it."""
        sells_base = f"{offer.sell}/{offer.buy}" in self.markets
        name = f"{offer.sell}/{offer.buy}" if sells_base else f"{offer.buy}/{offer.sell}"
        zero = Decimal(0)
        price = offer.price if sells_base else 1 / offer.price
        amount = offer.amount if sells_base else offer.amount * offer.price
        side = "sell" if sells_base else "buy"
        return self._order(
            self.market(name),
            side,
            amount,
            price,
            zero,
            zero,
            "open",
            {
                "id": str(offer.id),
                "clientOrderId": None,
                "info": {"offer": offer},
            },
        )

    def fetch_open_orders(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        self.load_markets()
        client = self._sender()
        with _translated():
            offers = client.offers()
        orders = [self._resting(offer) for offer in offers]
        name = self.market(symbol)["symbol"] if symbol else None
        return [order for order in orders if name in (None, order["symbol"])][: limit or len(orders)]

    def fetch_order(self, id: str, symbol: Any = None, params: Any = None) -> Any:
        self.load_markets()
        client = self._sender()
        with _translated():
            if not id.startswith("0x"):
                offer = client.offer_of(int(id))
                if offer is not None:
                    return self._resting(offer)
                return self._ended(int(id))
            told = client.run(client._core.placed_offer(id))
        if told is None:
            raise ccxt.OrderNotFound(f"the node knows no order with transaction {id}")
        fate, sell, buy, amount, price, rests = told
        name = f"{sell}/{buy}" if f"{sell}/{buy}" in self.markets else f"{buy}/{sell}"
        is_sell = name == f"{sell}/{buy}"
        shown = (amount, price) if is_sell else (amount * price, 1 / price)
        order = self._placed(fate, self.market(name), "sell" if is_sell else "buy", *shown, None)
        if order["status"] == "open" and rests is None:
            # It traded in later batches or was cancelled: nodes do not keep which.
            unknown = dict.fromkeys(["filled", "remaining", "cost", "average"])
            return self.extend(order, {"status": "closed", **unknown})
        if rests is not None and is_sell:
            filled = amount - rests
            known = {"filled": float(filled), "remaining": float(rests)}
            return self.extend(order, {**known, "cost": None, "average": None})
        return order

    def _ended(self, number: int) -> Any:
        """An order that no longer rests, from the node's index."""
        try:
            fate = self._sender().order_fate(number)
        except NotFoundError as error:
            raise ccxt.OrderNotFound(str(error)) from error
        if fate.order is None:
            raise ccxt.OrderNotFound(f"order {number} is {fate.status} until block {fate.until}, and in no block yet")
        order = self._past_order(fate.order)
        filled = fate.sold if order["side"] == "sell" else fate.bought
        cost = fate.bought if order["side"] == "sell" else fate.sold
        known = {"filled": filled and float(filled), "cost": cost and float(cost)}
        average = float(cost / filled) if cost and filled else None
        return self.extend(order, {**known, "average": average, "info": fate})

    def cancel_order(self, id: str, symbol: Any = None, params: Any = None) -> Any:
        self.load_markets()
        client = self._sender()
        with _translated():
            number = client.fate(id).sequence if id.startswith("0x") else int(id)
            if number is None:
                raise ccxt.OrderNotFound(f"the node knows no order with transaction {id}")
            fate = client.cancel(number)
        return self.safe_order({"id": str(number), "status": "canceled", "symbol": symbol, "info": fate})

    def cancel_all_orders(self, symbol: Any = None, params: Any = None) -> Any:
        self.load_markets()
        client = self._sender()
        orders = self.fetch_open_orders(symbol)
        with _translated():
            fates = client.cancel_all(self.market(symbol)["symbol"] if symbol else None)
        # What traded meanwhile was not there to be cancelled; a list of cancels does not say which.
        whole = all(fate.outcome is not None and not fate.outcome.missing for fate in fates)
        status = "canceled" if whole else None
        return [self.safe_order({**order, "status": status, "info": fates}) for order in orders]

    def _own_trade(self, fill: PastFill) -> Any:
        """A trade from a fill: offers of the base sell it, offers of the quote buy it."""
        is_sell = f"{fill.sell}/{fill.buy}" in self.markets
        name = f"{fill.sell}/{fill.buy}" if is_sell else f"{fill.buy}/{fill.sell}"
        amount, cost = (fill.sold, fill.bought) if is_sell else (fill.bought, fill.sold)
        return self.safe_trade(
            {
                "id": f"{fill.height}-{fill.offer}",
                "order": str(fill.offer),
                "symbol": name,
                "timestamp": fill.time_ms,
                "datetime": self.iso8601(fill.time_ms),
                "side": "sell" if is_sell else "buy",
                "type": "limit",
                "price": plain(cost / amount) if amount else None,
                "amount": plain(amount),
                "cost": plain(cost),
                "takerOrMaker": None,
                "fee": None,
                "info": fill,
            },
            self.market(name),
        )

    def fetch_my_trades(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        """The newest thousand, or as many as `limit` says."""
        self.load_markets()
        client = self._sender()
        with _translated():
            fills = client.fills(limit=max(limit or 0, 1000))
        trades = [self._own_trade(fill) for fill in reversed(fills)]
        name = self.market(symbol)["symbol"] if symbol else None
        return self.filter_by_symbol_since_limit(trades, name, since, limit)

    def fetch_order_trades(
        self, id: str, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None
    ) -> Any:
        trades = self.fetch_my_trades(symbol)
        return self.filter_by_since_limit([one for one in trades if one["order"] == id], since, limit)

    def _past_order(self, past: PastOrder) -> Any:
        """An order from the node's index. An offer of the quote is a purchase at the inverse of its price."""
        is_sell = f"{past.sell}/{past.buy}" in self.markets
        name = f"{past.sell}/{past.buy}" if is_sell else f"{past.buy}/{past.sell}"
        amount, price = past.amount or Decimal(0), past.price or Decimal(0)
        statuses = {"resting": "open", "refused": "rejected", "void": "rejected"}
        closed = "closed" if past.why in ("filled", "returned") else "canceled"
        # An exact order is filled whole in its batch or not at all.
        in_force = "FOK" if past.exact_side else "GTC" if past.life == "rests" else None
        shown = amount if is_sell else amount * price
        if past.exact_units is not None and (past.exact_side == "sell") == is_sell:
            shown = past.exact_units
        return self.safe_order(
            {
                "id": str(past.sequence),
                "clientOrderId": past.client,
                "symbol": name,
                "type": "limit",
                "timeInForce": in_force,
                "side": "sell" if is_sell else "buy",
                "price": plain(price if is_sell else 1 / price) if price else None,
                "amount": plain(shown),
                "remaining": plain(past.left or Decimal(0)) if is_sell else None,
                "status": statuses.get(past.status, closed),
                "timestamp": past.time_ms,
                "datetime": self.iso8601(past.time_ms),
                "fee": None,
                "trades": [],
                "info": past,
            },
            self.market(name),
        )

    def fetch_orders(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        """The newest thousand that name assets of this network, or as many as `limit` says."""
        self.load_markets()
        client = self._sender()
        with _translated():
            found = client.orders(limit=max(limit or 0, 1000))
        orders = [self._past_order(one) for one in reversed(found) if one.amount is not None and one.price is not None]
        name = self.market(symbol)["symbol"] if symbol else None
        return self.filter_by_symbol_since_limit(orders, name, since, limit)

    def fetch_closed_orders(self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None) -> Any:
        orders = self.fetch_orders(symbol)
        closed = [order for order in orders if order["status"] in ("closed", "canceled")]
        return self.filter_by_since_limit(closed, since, limit)

    def account_address(self) -> str:
        """The address to pay, with its checksum."""
        return checked_address(self._sender().address)


def _text(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)
