"""A small market maker: an offer on each side of the price, moved when the price moves.

    WALRAS_KEY=0x… python market_maker.py EUR/USD --size 100 --spread 0.004 --blocks 1000

It reads the price of each batch from the stream. Its offers are cancelled when it ends, also when it fails. It holds a
key of its own account: whoever runs two of them gives each an account.
"""

import argparse
import asyncio
import os
from decimal import ROUND_DOWN, Decimal

from walras.client import AsyncClient, Block, EthereumKey, Fate, Heartbeat, Trade, TransactionRefusedError

DIGITS = Decimal("1e-6")


def quotes(price: Decimal, spread: Decimal, base: Decimal, quote: Decimal) -> tuple[Decimal, Decimal]:
    """A bid and an ask around the price, both lower the more of the base asset it holds, by value."""
    worth = base * price
    share = worth / (worth + quote) if worth + quote else Decimal("0.5")
    middle = price * (1 + (Decimal("0.5") - share) * spread)
    return (middle * (1 - spread / 2)).quantize(DIGITS), (middle * (1 + spread / 2)).quantize(DIGITS)


class Maker:
    """Its offers in one market."""

    def __init__(self, client: AsyncClient, market: str, size: Decimal, spread: Decimal) -> None:
        self.client, self.market, self.size, self.spread = client, market, size, spread
        self.base, self.quote = market.split("/")
        self.around: Decimal | None = None

    async def move(self, price: Decimal) -> None:
        """Quotes anew if the price has moved by a quarter of the spread."""
        if self.around is not None and abs(price / self.around - 1) < self.spread / 4:
            return
        await self.client.cancel_all(self.market)
        account = await self.client.account()
        base, quote = account.balance(self.base).available, account.balance(self.quote).available
        bid, ask = quotes(price, self.spread, base, quote)
        # A tenth of the money stays for fees and for what trades meanwhile.
        sells = min(self.size, base * 9 / 10).quantize(DIGITS, ROUND_DOWN)
        buys = min(self.size, quote * 9 / 10 / bid).quantize(DIGITS, ROUND_DOWN)
        placed = await asyncio.gather(
            self.client.sell(self.market, sells, ask), self.client.buy(self.market, buys, bid), return_exceptions=True
        )
        for one in placed:
            if isinstance(one, TransactionRefusedError):
                print(f"refused: {one.message}")
            elif not isinstance(one, Fate):
                raise one
        self.around = price
        print(f"buys {buys} at {bid}, sells {sells} at {ask}")


async def run(market: str, size: Decimal, spread: Decimal, blocks: int) -> None:
    server = os.environ.get("WALRAS_SERVER", "http://127.0.0.1:8080")
    async with AsyncClient(server, key=EthereumKey(os.environ["WALRAS_KEY"])) as client:
        maker = Maker(client, market, size, spread)
        try:
            book = await client.book(market, levels=1)
            if (price := book.price or book.indicative) is not None:
                await maker.move(price)
            last = (await client.status()).height + blocks
            async for event in client.stream("blocks", f"trades:{market}"):
                if isinstance(event, Trade):
                    await maker.move(event.price)
                if isinstance(event, Block | Heartbeat) and event.height >= last:
                    break
        finally:
            await client.cancel_all(market)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("market")
    arguments.add_argument("--size", type=Decimal, default=Decimal(100), help="most of the base that a side offers")
    arguments.add_argument(
        "--spread", type=Decimal, default=Decimal("0.004"), help="ask over bid, as a part of the price"
    )
    arguments.add_argument("--blocks", type=int, default=1000, help="ends after so many blocks")
    given = arguments.parse_args()
    asyncio.run(run(given.market, given.size, given.spread, given.blocks))
