"""What can be asked of a node, each question a flow. Nothing that a node says is verified here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import quote as escaped

from walras.client import operations
from walras.client.amounts import Asset, Assets, Number, assets_of, limit_of, plain
from walras.client.encoding import address_bytes
from walras.client.errors import ForeignAnswerError, OtherNetworkError, UnknownAssetError
from walras.client.flow import Flow, get
from walras.client.history import OrderFate
from walras.client.models import (
    Account,
    Batch,
    Block,
    Book,
    Candle,
    Limits,
    Market,
    Offer,
    PricePoint,
    Quote,
    Status,
    Ticker,
)
from walras.client.purchase import Quoted
from walras.client.references import PaymentReference
from walras.client.venue import VenueMarket, VenueTrade

__all__ = ["Session", "place_of"]

T = TypeVar("T")
PAGE = 1_000
_HEIGHT_LASTS_S = 1.0
"""A height is asked for again after this time."""


class Session:
    """What a client knows of a node: network, assets, height. It is shared by threads and tasks.

    `network` is the identity that the node must have; without one, the first that it names stays.
    """

    def __init__(self, server: str, network: str | None) -> None:
        self.server = server.rstrip("/")
        self.network = network
        self.is_network_named = network is not None
        self._limits: Limits | None = None
        self._assets: Assets | None = None
        self._height: tuple[int, float] | None = None
        self._lock = threading.Lock()

    def get(self, path: str, decode: Callable[[Any], T], **params: str | int | None) -> Flow[T]:
        try:
            return (yield from get(self.server, path, decode, **params))
        except UnknownAssetError as error:
            # It may have been listed since the assets were asked for.
            if self._assets is None or not (yield from self._learn(self._assets)):
                why = f"its answer names an asset that it does not list: {error}"
                raise ForeignAnswerError(self.server, why) from error
        return (yield from get(self.server, path, decode, **params))

    def limits(self) -> Flow[Limits]:
        """What signing needs of the chain, of the expected network. It is asked for once."""
        return self._limits or (yield from self.limits_now())

    def limits_now(self) -> Flow[Limits]:
        """The same as it is now: validators can vote another fee, and a longer life of transactions."""
        limits = yield from self.get("/v1/limits", Limits.of)
        with self._lock:
            self.network = self.network or limits.network
        if limits.network != self.network:
            raise OtherNetworkError(self.server, limits.network, self.network)
        self._limits = limits
        return limits

    def assets(self, *named: str) -> Flow[Assets]:
        """The assets. They are asked for once, and again if one of these symbols is not among them: it may have
        been listed since."""
        if self._assets is None:
            yield from self.limits()
            self._assets = yield from self.get("/v1/assets", assets_of)
        if not all(symbol in self._assets for symbol in named):
            yield from self._learn(self._assets)
        return self._assets

    def _learn(self, assets: Assets) -> Flow[bool]:
        """Adds what was listed since to the assets that everybody shares; whether there was something."""
        known = len(assets)
        assets.learn((yield from get(self.server, "/v1/assets", assets_of)))
        return len(assets) > known

    @property
    def known_assets(self) -> Assets | None:
        """The assets, once they were asked for."""
        return self._assets

    def status(self) -> Flow[Status]:
        status = yield from self.get("/v1/status", Status.of)
        self.saw(status.height)
        return status

    def saw(self, height: int) -> None:
        """Remembers the height of a block that was seen."""
        with self._lock:
            if self._height is None or height >= self._height[0]:
                self._height = (height, time.monotonic())

    def forget_height(self) -> None:
        """The height is asked for again: blocks came faster than thought."""
        with self._lock:
            self._height = None

    def height(self) -> Flow[int]:
        """The node's height, at most a second old."""
        known = self._height
        if known is not None and time.monotonic() - known[1] < _HEIGHT_LASTS_S:
            return known[0]
        return (yield from self.status()).height

    def account(self, address: str) -> Flow[Account]:
        address_bytes(address)
        assets = yield from self.assets()
        return (yield from self.get(f"/v1/accounts/{address}", lambda body: Account.of(body, assets)))

    def offers_page(self, address: str, cursor: str | None, limit: int) -> Flow[tuple[list[Offer], str | None]]:
        address_bytes(address)
        assets = yield from self.assets()

        def decode(body: Any) -> tuple[list[Offer], str | None]:
            return [Offer.of(one, assets) for one in body["offers"]], body.get("next")

        return (yield from self.get(f"/v1/accounts/{address}/offers", decode, cursor=cursor, limit=limit))

    def offers(self, address: str) -> Flow[list[Offer]]:
        """All resting offers of an account, page by page."""
        found, cursor = yield from self.offers_page(address, None, PAGE)
        while cursor is not None:
            more, cursor = yield from self.offers_page(address, cursor, PAGE)
            found += more
        return found

    def past(
        self, address: str, what: str, read: Callable[[Any, Assets], T], limit: int, since: int | None,
        said: PaymentReference | None = None,
    ) -> Flow[list[T]]:
        """The newest rows of a history, page by page."""
        address_bytes(address)
        assets = yield from self.assets()

        def decode(body: Any) -> tuple[list[T], str | None]:
            return [read(one, assets) for one in body[what]], body["next"]

        found: list[T] = []
        cursor: str | None = None
        while len(found) < limit:
            path, count = f"/v1/accounts/{address}/{what}", min(limit - len(found), PAGE)
            asked = {"limit": count, "cursor": cursor, "since": since} | (
                {"reference": said.value, "reference_kind": said.kind} if said else {}
            )
            rows, cursor = yield from self.get(path, decode, **asked)
            found += rows
            if cursor is None:
                break
        return found

    def past_page(
        self, address: str, what: str, read: Callable[[Any, Assets], T], cursor: str | None, offer: int | None = None
    ) -> Flow[tuple[list[T], str | None]]:
        """A page of a history, the newest first, and the cursor of the next one."""
        address_bytes(address)
        assets = yield from self.assets()

        def decode(body: Any) -> tuple[list[T], str | None]:
            return [read(one, assets) for one in body[what]], body["next"]

        return (yield from self.get(f"/v1/accounts/{address}/{what}", decode, limit=PAGE, cursor=cursor, offer=offer))

    def order_fate(self, address: str, number: int | None, client: str | None) -> Flow[OrderFate]:
        address_bytes(address)
        assets = yield from self.assets()
        place = f"orders/{number}" if client is None else f"clients/{escaped(client, '')}"
        return (yield from self.get(f"/v1/accounts/{address}/{place}", lambda body: OrderFate.of(body, assets)))

    def offer(self, address: str, id: int) -> Flow[Offer | None]:
        """A resting offer; None if it has traded, or was cancelled, or never was."""
        # Ids from this one on: the first is the offer, if it rests.
        found, _ = yield from self.offers_page(address, str(id), 1)
        return next((offer for offer in found if offer.id == id), None)

    def markets(self) -> Flow[list[Market]]:
        assets = yield from self.assets()
        return (yield from self.get("/v1/markets", lambda body: [Market.of(one, assets) for one in body["markets"]]))

    def _market_path(self, market: str, what: str) -> Flow[tuple[Assets, str]]:
        assets = yield from self.assets()
        base, quote = assets.market(market)
        return assets, f"/v1/markets/{escaped(base.symbol, '')}/{escaped(quote.symbol, '')}/{what}"

    def book(self, market: str, levels: int | None) -> Flow[Book]:
        assets, path = yield from self._market_path(market, "book")
        return (yield from self.get(path, lambda body: Book.of(body, assets), levels=levels))

    def quote(self, sell: str, buy: str, amount: Number, price: Number | None) -> Flow[Quote]:
        assets = yield from self.assets()
        sold, bought = assets[sell], assets[buy]
        limit = None if price is None else plain(limit_of(price, sold, bought))
        asked: dict[str, str | int | None] = {"sell": sell, "buy": buy, "amount": sold.units(amount), "limit": limit}
        return (yield from self.get("/v1/quote", lambda body: Quote.of(body, assets), **asked))

    def quote_exact(self, side: str, market: str, amount: Number, bound: Number) -> Flow[Quote]:
        assets = yield from self.assets()
        base, quote = assets.market(market)
        sell, buy = (base, quote) if side == "sell" else (quote, base)
        asked: dict[str, str | int | None] = {
            "sell": sell.symbol, "buy": buy.symbol, "exact": side,
            "amount": base.units(amount), "bound": quote.units(bound),
        }
        return (yield from self.get("/v1/quote", lambda body: Quote.of(body, assets), **asked))

    def quoted(self, sell: Asset, buy: Asset, units: int, limit: Decimal) -> Flow[Quoted]:
        """What the next batch would do with an offer, if nothing else came, in units."""

        def decode(body: Any) -> Quoted:
            return Quoted(int(body["amount"]), int(body["sold"]), int(body["bought"]))

        asked: dict[str, str | int | None] = {
            "sell": sell.symbol, "buy": buy.symbol, "amount": units, "limit": plain(limit)
        }
        return (yield from self.get("/v1/quote", decode, **asked))

    def ticker(self, market: str) -> Flow[Ticker]:
        assets, path = yield from self._market_path(market, "ticker")
        return (yield from self.get(path, lambda body: Ticker.of(body, assets)))

    def candles(
        self, market: str, interval: str, limit: int | None, before_ms: int | None, since_ms: int | None = None
    ) -> Flow[list[Candle]]:
        assets, path = yield from self._market_path(market, "candles")

        def decode(body: Any) -> list[Candle]:
            return [Candle.of(one, assets, market, interval) for one in body["candles"]]

        times = {"before_ms": before_ms, "since_ms": since_ms}
        return (yield from self.get(path, decode, interval=interval, limit=limit, **times))

    def history(
        self, market: str, limit: int | None, before: int | None, since_ms: int | None = None
    ) -> Flow[list[PricePoint]]:
        assets, path = yield from self._market_path(market, "history")

        def decode(body: Any) -> list[PricePoint]:
            return [PricePoint.of(one, assets, market) for one in body["points"]]

        return (yield from self.get(path, decode, limit=limit, before=before, since_ms=since_ms))

    def market_offers(self, market: str, limit: int | None) -> Flow[list[Offer]]:
        assets, path = yield from self._market_path(market, "offers")
        pair = market.split("/")

        def decode(body: Any) -> list[Offer]:
            return [Offer.of({"sell": pair[0], "buy": pair[1], **one}, assets) for one in body["offers"]]

        return (yield from self.get(path, decode, limit=limit))

    def venue_markets(self) -> Flow[list[VenueMarket]]:
        def decode(body: Any) -> list[VenueMarket]:
            return [VenueMarket.of(one) for one in body["markets"]]

        return (yield from self.get("/v1/venue/markets", decode))

    def venue_trades(
        self, market: int, cursor: str | None, limit: int, since_ms: int | None
    ) -> Flow[tuple[list[VenueTrade], str | None]]:
        def decode(body: Any) -> tuple[list[VenueTrade], str | None]:
            return [VenueTrade.of(one) for one in body["trades"]], body["next"]

        asked: dict[str, str | int | None] = {"limit": limit, "cursor": cursor, "since_ms": since_ms}
        return (yield from self.get(f"/v1/venue/markets/{int(market)}/trades", decode, **asked))

    def batch(self, height: int) -> Flow[Batch]:
        assets = yield from self.assets()
        return (yield from self.get(f"/v1/blocks/{height}/batch", lambda body: Batch.of(body, assets)))

    def block(self, height: int) -> Flow[Block]:
        return (yield from self.get(f"/v1/blocks/{height}", Block.of, limit=1))

    def blocks(self, limit: int | None, before: int | None) -> Flow[list[Block]]:
        def decode(body: Any) -> list[Block]:
            return [Block.of(one) for one in body["blocks"]]

        return (yield from self.get("/v1/blocks", decode, limit=limit, before=before))


def place_of(offer: Offer, assets: Assets) -> operations.OfferPlace:
    """How a cancel or a replacement names an offer."""
    return operations.OfferPlace(assets[offer.sell].number, assets[offer.buy].number, offer.limit, offer.id)
