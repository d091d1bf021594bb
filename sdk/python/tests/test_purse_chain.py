"""Money through all purses: from an account of the page to the page's purse, to one of the package, to one of the command
line, and back to an account."""

from __future__ import annotations

import secrets
import subprocess
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from shutil import which

import pytest
from conftest import BINARY, PASSPHRASE
from lane_network import Network

from walras.client import Client, Ed25519Key, EthereumKey
from walras.purse import Purse

WEB = Path(__file__).resolve().parents[3] / "web"


@pytest.mark.parametrize("shards", [1, 2])
def test_money_goes_from_the_page_to_the_package_to_the_command_line_and_back_to_the_ledger(
    tmp_path: Path, shards: int
) -> None:
    if not BINARY.exists() or which("node") is None or not (WEB / "node_modules" / "playwright-core").exists():
        pytest.skip("the binary, Node.js or the page's packages are missing")
    with ExitStack() as nodes:
        (tmp_path / "lane").mkdir()
        network = Network(tmp_path / "lane", nodes, shards=shards)
        secret = secrets.token_bytes(32)
        account = EthereumKey(secret).address
        issuer = str(network.folder / "issuer-key.json")
        for asset in ("USD", "EUR"):
            network.said("wallet", "pay", "--key", issuer, "--to", account, "--asset", asset, "--amount", "50")
        with Client(network.url) as client:
            holder = Ed25519Key.open(issuer, PASSPHRASE).address
            had = client.account(holder).balance("EUR").available
            with Purse.new(tmp_path / "bob", PASSPHRASE, client, patience=300) as bob:
                from_page = paid_by_page(network, secret, deposit="20.50", to=bob.address(), amount="12.25")
                (taken,) = bob.receive(from_page)
                assert (taken.amount, taken.is_new, taken.is_settled) == (Decimal("12.25"), True, True)
                network.pay("new", purse="carol")
                there = network.pay("address", purse="carol")["address"]
                sent = bob.send(there, "EUR", "12.25", receipt=network.folder / "to-carol.txt")
                assert sent.payments[0].settled_s is not None and not bob.balance()
            (received,) = network.pay("receive", "to-carol.txt", purse="carol")["received"]
            assert (received["amount"], received["settled"]) == ("1225", True)
            back = network.pay("redeem", "--key", issuer, "--asset", "EUR", "--amount", "12.25", purse="carol")
            assert back["waiting_claims"] == 0
            assert client.account(holder).balance("EUR").available == had + Decimal("12.25")
            assert client.account(account).balance("EUR").available == 50 - Decimal("20.50")
            # Taken again anywhere, it is the same money.
            assert network.pay("balance", purse="carol")["balances"] == []


def paid_by_page(network: Network, secret: bytes, *, deposit: str, to: str, amount: str) -> str:
    """The receipt of a payment by a new purse of the page, which holds what its account deposited."""
    arguments = [network.url, "0x" + secret.hex(), "a long passphrase", "EUR", deposit, to, amount]
    told = subprocess.run(
        ["node", "tests/paying.mjs", *arguments], cwd=WEB, capture_output=True, text=True, timeout=600, check=False
    )
    assert told.returncode == 0, told.stderr
    return told.stdout.strip()
