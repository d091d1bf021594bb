"""What the two ccxt classes share: what an order, a trade and a page are. Pure: nothing is asked here.

An order has the same numbers in every call and stream. They follow from what the node says that it moved in all (`sold`
and `bought` of its index), so the trades of an order sum to the order:

==============  ======================================================================================================
``amount``      as it was placed; of a purchase that waited in the book and got more for its money, what it got
``filled``      what it traded of the base
``remaining``   ``amount`` less ``filled``
``cost``        what it traded of the quote
``average``     ``cost`` over ``filled``; None if it did not trade
``status``      ``open``, ``closed`` (traded whole, but for a rest too small for an offer), ``canceled``, ``expired`` or
                ``rejected``
==============  ======================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, TypeVar

from walras.client import OrderTerms, PastFill, PastOrder
from walras.client.amounts import plain

__all__ = ["market_of", "order_row", "page", "past_row", "told", "trade_row"]

T = TypeVar("T")
_ENDED = {"filled": "closed", "returned": "closed", "expired": "expired"}
_STATUSES = {"resting": "open", "pending": "open", "refused": "rejected", "void": "rejected"}


def told(info: Any) -> Any:
    """What is below, as JSON: amounts as exact text."""
    if is_dataclass(info) and not isinstance(info, type):
        return {field.name: told(getattr(info, field.name)) for field in fields(info)}
    if isinstance(info, Decimal):
        return plain(info)
    if isinstance(info, Mapping):
        return {str(name): told(value) for name, value in info.items()}
    return [told(one) for one in info] if isinstance(info, list | tuple) else info


def market_of(markets: Mapping[str, Any], sell: str, buy: str) -> tuple[str, bool]:
    """The market of an offer, and whether it sells the base: offers of the quote buy it."""
    is_sell = f"{sell}/{buy}" in markets
    return (f"{sell}/{buy}" if is_sell else f"{buy}/{sell}"), is_sell


def _no_fee(symbol: str) -> dict[str, Any]:
    """What a trade costs: only transactions have fees. Said in numbers, since freqtrade asks for ever where none are."""
    return {"currency": symbol.partition("/")[2], "cost": 0.0, "rate": 0.0}


def order_row(terms: OrderTerms, moved: tuple[Decimal, Decimal] | None, status: str, more: dict[str, Any]) -> dict[str, Any]:
    """An order that has sold and bought so much; None where nobody knows how much."""
    filled = cost = None
    if moved is not None:
        filled, cost = moved if terms.side == "sell" else moved[::-1]
    amount = max(terms.amount, filled or Decimal(0))
    return {
        "symbol": terms.market,
        "type": "limit",
        "timeInForce": "GTC",
        "postOnly": False,
        "side": terms.side,
        "price": plain(terms.price),
        "amount": plain(amount),
        "filled": _text(filled),
        "remaining": None if filled is None else plain(amount - filled),
        "cost": _text(cost),
        "average": plain(cost / filled) if cost is not None and filled else None,
        "status": status,
        "timestamp": None,
        "datetime": None,
        "fee": _no_fee(terms.market),
        "trades": None,
        **more,
    }


def past_row(past: PastOrder, terms: OrderTerms, moved: tuple[Decimal, Decimal], info: Any) -> dict[str, Any]:
    """An order of the node's index."""
    # An exact order is filled whole in its batch or not at all.
    in_force = "FOK" if past.exact_side else "IOC" if past.life == "one batch" else "GTC"
    status = _STATUSES.get(past.status) or _ENDED.get(past.why or "", "canceled")
    more = {
        "id": str(past.sequence),
        "clientOrderId": past.client,
        "timeInForce": in_force,
        "timestamp": past.time_ms,
        "info": told(info),
    }
    return order_row(terms, moved, status, more)


def trade_row(markets: Mapping[str, Any], fill: PastFill) -> dict[str, Any]:
    """A trade from a fill."""
    symbol, is_sell = market_of(markets, fill.sell, fill.buy)
    amount, cost = (fill.sold, fill.bought) if is_sell else (fill.bought, fill.sold)
    return {
        "id": f"{fill.height}-{fill.offer}",
        "order": str(fill.offer),
        "symbol": symbol,
        "timestamp": fill.time_ms,
        "side": "sell" if is_sell else "buy",
        "type": "limit",
        "price": plain(cost / amount) if amount else None,
        "amount": plain(amount),
        "cost": plain(cost),
        "takerOrMaker": None,
        "fee": _no_fee(symbol),
        "info": told(fill),
    }


def page(rows: list[T], time_of: Callable[[T], int], since: int | None, limit: int | None) -> list[T]:
    """Of rows, the oldest first: the last `limit`, or from `since` on the first `limit`.

    Rows of one time, which are of one block, stay together: so a page may have more than `limit`, and the next one, from
    the time after its last row, leaves none out and repeats none."""
    if since is None:
        return rows[len(rows) - limit :] if limit is not None and limit < len(rows) else rows
    rows = [row for row in rows if time_of(row) >= since]
    if limit is None or limit >= len(rows):
        return rows
    end = limit
    while 0 < end < len(rows) and time_of(rows[end]) == time_of(rows[end - 1]):
        end += 1
    return rows[:end]


def _text(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)
