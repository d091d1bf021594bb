"""Pays an invoice once, however often this runs.

    WALRAS_KEY=alice.json WALRAS_PASSPHRASE=… python pay_once.py 0x7099… EUR 12.50 "invoice 7"

The key file is one of `walras wallet new`. The transaction is stored beside it before it is sent; a second run with the
same reference finds it and says what became of it.
"""

import os
import sys

from walras.client import Client, Ed25519Key, TransactionRefusedError, UndecidedError


def main(to: str, asset: str, amount: str, reference: str) -> int:
    key_file = os.environ["WALRAS_KEY"]
    key = Ed25519Key.open(key_file, os.environ["WALRAS_PASSPHRASE"])
    server = os.environ.get("WALRAS_SERVER", "http://127.0.0.1:8080")
    with Client(server, key=key, store=key_file) as client:
        try:
            fate = client.pay(to, asset, amount, reference=reference)
        except UndecidedError as error:
            print(f"Nobody knows yet: run this again. {error}")
            return 3
        except TransactionRefusedError as error:
            print(f"Refused: {error.message}. Once that is mended, run this again.")
            return 1
        print(f"Paid {amount} {asset} in block {fate.height}: {fate.id}")
        return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
