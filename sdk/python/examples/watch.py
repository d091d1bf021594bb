"""Follows batches and an account, from some blocks ago, through lost connections.

python watch.py [ADDRESS] [SECONDS]
"""

import asyncio
import os
import sys

from walras.client import AccountSnapshot, AccountUpdate, AsyncClient, Batch, Disconnected, Missed


async def watch(address: str | None) -> None:
    async with AsyncClient(os.environ.get("WALRAS_SERVER", "http://127.0.0.1:8080")) as client:
        channels = ["batches", *([f"account:{address}"] if address else [])]
        begin = max(1, (await client.status()).height - 20)
        async for event in client.stream(*channels, from_height=begin):
            match event:
                case Batch(height=height, trades=trades):
                    traded = ", ".join(f"{one.sold} {one.sell} for {one.bought} {one.buy}" for one in trades)
                    print(f"batch {height}: {traded or 'no trade'}")
                case AccountSnapshot(account=account) if account:
                    print(f"holds {', '.join(f'{one.total} {one.asset}' for one in account.balances)}")
                case AccountUpdate(fills=fills):
                    for fill in fills:
                        print(f"offer {fill.id} sold {fill.sold} {fill.sell} for {fill.bought} {fill.buy}")
                case Missed(channel, first, last):
                    print(f"blocks {first} to {last} of {channel} cannot be had any more")
                case Disconnected(reason, retry_s):
                    print(f"{reason}; again in {retry_s:.1f} s")


async def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else None
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        await asyncio.wait_for(watch(address), seconds)
    except asyncio.TimeoutError:
        print("done")


if __name__ == "__main__":
    asyncio.run(main())
