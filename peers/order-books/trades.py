"""Gives order-book libraries two sales of 5, at 100 and then at 99, and a purchase of 7 at 101, and prints what traded."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from importlib.metadata import version

SALES = ((100, 5), (99, 5))
Trades = list[tuple[float, float]]


def by_lightmatchingengine() -> Trades:
    from lightmatchingengine.lightmatchingengine import LightMatchingEngine, Side

    engine = LightMatchingEngine()
    for price, size in SALES:
        engine.add_order("A", price, size, Side.SELL)
    _, trades = engine.add_order("A", 101, 7, Side.BUY)
    return [(trade.trade_price, trade.trade_qty) for trade in trades if trade.trade_side == Side.SELL]


def by_order_matching() -> Trades:
    from order_matching.enums import Side
    from order_matching.matching_engine import MatchingEngine
    from order_matching.order import LimitOrder
    from order_matching.orders import Orders

    engine, start = MatchingEngine(seed=1), datetime(2026, 11, 27)
    orders = [(Side.SELL, *sale) for sale in SALES] + [(Side.BUY, 101, 7)]
    trades = []
    for at, (side, price, size) in enumerate(orders):
        time, name = start + timedelta(minutes=at), str(at)
        order = LimitOrder(side=side, price=float(price), size=float(size), timestamp=time, order_id=name, trader_id=name)
        engine.place(orders=Orders([order]))
        trades += engine.match(timestamp=time + timedelta(seconds=1)).trades
    return [(trade.price, trade.size) for trade in trades]


def by_pyorderbook() -> Trades:
    from pyorderbook import Book, ask, bid

    book = Book()
    for price, size in SALES:
        book.match(ask("A", price, size))
    return [(trade.fill_price, trade.fill_quantity) for trade in book.match(bid("A", 101, 7)).trades]


def by_cython_orderbook() -> Trades:
    from cython_orderbook import Order, OrderBook, OrderSide

    book = OrderBook()
    for price, size in SALES:
        book.add_limit_order(Order(side=OrderSide.ASK, price=Decimal(price), original_quantity=size))
    book.add_limit_order(Order(side=OrderSide.BID, price=Decimal(101), original_quantity=7))
    return [(trade.price, trade.quantity_filled) for trade in book.trade_log]


def by_litebook() -> Trades:
    import litebook

    book = litebook.OrderBook(tick_size=0.01)
    for price, size in SALES:
        book.add(book.create_order(litebook.OrderType.Sell, price=price, quantity=size))
    fills = book.add(book.create_order(litebook.OrderType.Buy, price=101, quantity=7))
    return [(fill.price, fill.quantity) for fill in fills]


def by_orderly_chaos() -> Trades:
    from orderly_chaos import LimitOrderBook, Side

    trades: list = []
    book = LimitOrderBook(on_trade=trades.append)
    for number, (price, size) in enumerate(SALES, 1):
        book.limit(Side.SELL, order_id=number, quantity=size, price=price)
    book.limit(Side.BUY, order_id=9, quantity=7, price=101)
    return [(trade.price, trade.quantity) for trade in trades]


def by_akhil4n_orderbook() -> Trades:
    from orderbook import Order, OrderBook, OrderSide

    book = OrderBook()
    for price, size in SALES:
        book.add_limit_order(Order(OrderSide.ASK, Decimal(price), size))
    book.add_limit_order(Order(OrderSide.BID, Decimal(101), 7))
    return [(trade.price, trade.quantity_filled) for trade in book.trade_log]


def by_convexpi_arena() -> Trades:
    from convexpi.arena.engine import Order, OrderBook, Side

    book = OrderBook()
    for price, size in SALES:
        book.submit(Order("seller", Side.SELL, size, price), 0)
    return [(trade.price, trade.qty) for trade in book.submit(Order("buyer", Side.BUY, 7, 101), 1)]


def by_cleolob() -> Trades:
    from lob.engine import Order, OrderBook, OrderType, Side

    book = OrderBook()
    for number, (price, size) in enumerate(SALES, 1):
        book.process(Order(number, Side.SELL, size, OrderType.LIMIT, "seller", 0.0, price=price), 0.0)
    trades = book.process(Order(9, Side.BUY, 7, OrderType.LIMIT, "buyer", 1.0, price=101), 1.0)
    return [(trade.price, trade.qty) for trade in trades]


def left_by_limit_order_book() -> str:
    from limit_order_book import LimitOrderBook

    book = LimitOrderBook()
    for number, (price, size) in enumerate(SALES, 1):
        book.limit_sell(number, size, price)
    book.limit_buy(9, 7, 101)
    return f"leaves {book.volume_sell()} at {book.best_sell()}, tells of no trades"


def row(package: str, trades: Callable[[], Trades | str]) -> None:
    done = trades()
    text = done if isinstance(done, str) else "trades " + ", then ".join(f"{float(size):g} at {float(price):g}" for price, size in done)
    print(f"| {package} {version(package)} | {text} |")


print("| tool | what it does |\n|---|---|")
row("lightmatchingengine", by_lightmatchingengine)
row("order-matching", by_order_matching)
row("pyorderbook", by_pyorderbook)
row("cython-orderbook", by_cython_orderbook)
row("litebook", by_litebook)
row("orderly-chaos", by_orderly_chaos)
row("limit-order-book", left_by_limit_order_book)
row("akhil4n-orderbook", by_akhil4n_orderbook)
row("convexpi-arena", by_convexpi_arena)
row("cleolob", by_cleolob)
