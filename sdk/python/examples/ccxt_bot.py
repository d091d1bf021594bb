"""The same exchange through ccxt, as existing bots use it.

WALRAS_KEY=0x… python ccxt_bot.py
"""

import os

import walras.ccxt


def main() -> None:
    server = os.environ.get("WALRAS_SERVER", "http://127.0.0.1:8080")
    exchange = walras.ccxt.walras({"privateKey": os.environ["WALRAS_KEY"], "urls": {"api": server}})
    exchange.load_markets()
    symbol = exchange.symbols[0]
    ticker = exchange.fetch_ticker(symbol)
    print(f"{symbol}: last {ticker['last']}, bid {ticker['bid']}, ask {ticker['ask']}")
    far = exchange.price_to_precision(symbol, (ticker["last"] or 1) * 10)
    order = exchange.create_order(symbol, "limit", "sell", 1, far)
    print(f"order {order['id']} is {order['status']}, {order['remaining']} remain")
    print(f"open: {[one['id'] for one in exchange.fetch_open_orders(symbol)]}")
    exchange.cancel_order(order["id"])
    print(f"free: {exchange.fetch_balance()['free']}")
    exchange.close()


if __name__ == "__main__":
    main()
