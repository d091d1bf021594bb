"""What an exchange trades: markets, book, candles as a data frame.

WALRAS_SERVER=http://127.0.0.1:8080 python market_data.py
"""

import os

from walras.client import Client, to_pandas


def main() -> None:
    with Client(os.environ.get("WALRAS_SERVER", "http://127.0.0.1:8080")) as client:
        status = client.status()
        print(f"block {status.height}, {status.offers} offers, {', '.join(client.assets())}")
        for market in client.markets()[:5]:
            print(f"{market.market}: last {market.price}, bid {market.best_buy}, ask {market.best_sell}")
            book = client.book(market.market, levels=3)
            for level in reversed(book.sells):
                print(f"  sell {level.amount:>14} at {level.price}")
            for level in book.buys:
                print(f"  buy  {level.amount:>14} at {level.price}")
            candles = to_pandas(client.candles(market.market, "1m", limit=5), exact=False)
            print(
                candles[["time", "open", "high", "low", "close", "base_volume"]] if len(candles) else "  no candles yet"
            )


if __name__ == "__main__":
    main()
