"""`walras.ccxt` for event loops: the class of ``ccxt.async_support``, with what ccxt's *pro* classes name `watch…`.

    exchange = walras.ccxt_async.walras({"privateKey": "0x…", "urls": {"api": "http://127.0.0.1:8080"}})
    book = await exchange.watch_order_book("EUR/USD")

Calls run in threads over one client, which threads may share; what is watched comes from the node's stream. For own
orders and trades the key logs in on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import ccxt.async_support

from walras import ccxt as blocking
from walras._ccxt_rows import told
from walras.client import AsyncClient, LocalBook, OwnOrders, Ticker

__all__ = ["walras"]

_CALLS = (
    "fetch_time fetch_status fetch_currencies fetch_markets fetch_ticker fetch_tickers fetch_order_book fetch_trades "
    "fetch_order_books fetch_trading_fees fetch_ohlcv fetch_balance create_order cancel_order cancel_all_orders fetch_order fetch_orders fetch_open_orders "
    "fetch_closed_orders fetch_my_trades fetch_order_trades"
).split()


class walras(ccxt.async_support.Exchange):  # type: ignore[misc]
    """The exchange, with the settings of `walras.ccxt.walras`."""

    def __init__(self, config: Any = None) -> None:
        self._blocking = blocking.walras(config or {})
        self._watching: AsyncClient | None = None
        self._books: dict[str, AsyncIterator[LocalBook]] = {}
        self._tickers: dict[str, AsyncIterator[Any]] = {}
        self._own: dict[tuple[str, str | None], AsyncIterator[OwnOrders]] = {}
        super().__init__(config or {})

    def describe(self) -> Any:
        described = self._blocking.describe()
        watched = dict.fromkeys(["watchOrderBook", "watchTicker", "watchOrders", "watchMyTrades"], True)
        return self.deep_extend(described, {"pro": True, "has": {**described["has"], **watched}})

    def price_to_precision(self, symbol: Any, price: Any) -> Any:
        return self._blocking.price_to_precision(symbol, price)

    @property
    def _streams(self) -> AsyncClient:
        if self._watching is None:
            sender = self._blocking.client._core.sender if self._blocking.privateKey else None
            key, account = (sender.key, sender.account) if sender else (None, None)
            network, slot = self._blocking.options["network"], sender.slot if sender else 0
            self._watching = AsyncClient(self.urls["api"], key=key, account=account, slot=slot, network=network)
        return self._watching

    async def watch_order_book(self, symbol: str, limit: Any = None, params: Any = None) -> Any:
        """The book after the next change, or at once when it is first asked for."""
        await self.load_markets()
        name = self.market(symbol)["symbol"]
        if name not in self._books:
            self._books[name] = self._streams.follow_book(name)
        book = await anext(self._books[name])
        sides = {"bids": book.buys[:limit], "asks": book.sells[:limit]}
        levels = {side: [[float(one.price), float(one.amount)] for one in found] for side, found in sides.items()}
        return {"symbol": name, **levels, "timestamp": None, "datetime": None, "nonce": book.height}

    async def watch_ticker(self, symbol: str, params: Any = None) -> Any:
        """The ticker after the next change, or at once when it is first asked for."""
        await self.load_markets()
        name = self.market(symbol)["symbol"]
        if name not in self._tickers:
            self._tickers[name] = self._streams.stream(f"ticker:{name}")
        while not isinstance(ticker := await anext(self._tickers[name]), Ticker):
            pass
        day = ticker.day
        known = {
            "symbol": name,
            "timestamp": ticker.time_ms,
            "datetime": self.iso8601(ticker.time_ms),
            "last": ticker.price,
            "close": ticker.price,
            "bid": ticker.best_buy,
            "ask": ticker.best_sell,
            **({"open": day.open, "high": day.high, "low": day.low} if day else {}),
            **({"baseVolume": day.base_volume, "quoteVolume": day.quote_volume} if day else {}),
        }
        text = {key: str(value) if value is not None and key not in ("timestamp",) else value for key, value in known.items()}
        return self.safe_ticker({**text, "info": told(ticker)}, self.market(name))

    async def watch_orders(
        self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None
    ) -> Any:
        """The own orders that the next block changed; when it is first asked for, the newest hundred."""
        name = await self._own_symbol(symbol)

        def orders(news: OwnOrders) -> list[Any]:
            return [self._blocking._past_order(one) for one in reversed(news.orders) if blocking.is_known(one)]

        return await self._own_news("orders", name, orders, since, limit)

    async def watch_my_trades(
        self, symbol: Any = None, since: Any = None, limit: Any = None, params: Any = None
    ) -> Any:
        """The own trades of the next block with some; when it is first asked for, the newest hundred."""
        name = await self._own_symbol(symbol)

        def trades(news: OwnOrders) -> list[Any]:
            return [self._blocking._own_trade(one) for one in reversed(news.fills)]

        return await self._own_news("trades", name, trades, since, limit)

    async def _own_symbol(self, symbol: Any) -> str | None:
        self.check_required_credentials()
        await self.load_markets()
        await asyncio.to_thread(self._blocking.load_markets)
        return self.market(symbol)["symbol"] if symbol else None

    async def _own_news(
        self, kind: str, symbol: str | None, rows: Callable[[OwnOrders], list[Any]], since: Any, limit: Any
    ) -> Any:
        """The next message of the own orders with rows of this kind and market. Each kind and market is followed for
        itself, so that none takes what another waits for."""
        with blocking._translated():
            if (kind, symbol) not in self._own:
                self._own[kind, symbol] = self._streams.follow_orders()
            while True:
                # The fills of a long order are asked for.
                news = await asyncio.to_thread(rows, await anext(self._own[kind, symbol]))
                found = self.filter_by_symbol_since_limit(news, symbol, since, limit, True)
                if found:
                    return found

    async def close(self) -> None:
        """Closes all connections."""
        followed: list[Any] = [*self._books.values(), *self._tickers.values(), *self._own.values()]
        for watched in followed:
            await watched.aclose()
        if self._watching is not None:
            await self._watching.close()
        await asyncio.to_thread(self._blocking.close)
        await super().close()


def _in_thread(name: str) -> Any:
    async def call(self: Any, *arguments: Any, **named: Any) -> Any:
        return await asyncio.to_thread(getattr(self._blocking, name), *arguments, **named)

    call.__name__ = name
    call.__doc__ = getattr(blocking.walras, name).__doc__
    return call


for _name in _CALLS:
    setattr(walras, _name, _in_thread(_name))
