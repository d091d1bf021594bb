"""Every example runs, against a running exchange."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import KEYS, Demo, venue_of
from walras.client import Client, Ed25519Key, EthereumKey
from walras.venue import TradingKey, VenueTrader

EXAMPLES = Path(__file__).parent.parent / "examples"
CHECKED = set()


def example(demo: Demo, name: str, *arguments: str, **environment: str) -> str:
    """What an example prints."""
    CHECKED.add(name)
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    setting = {**os.environ, "WALRAS_SERVER": demo.url, **environment}
    told = subprocess.run(command, env=setting, capture_output=True, text=True, timeout=600)
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_the_example_of_market_data_shows_a_market(demo: Demo) -> None:
    with Client(demo.url, key=EthereumKey(KEYS[2])) as client:
        client.sell("EUR/USD", "20", "2.5")
        client.buy("EUR/USD", "2", "3")
        told = example(demo, "market_data.py")
        client.cancel_all()
    assert "EUR/USD: last " in told and "close" in told


def test_the_example_of_a_payment_pays_once(demo: Demo, tmp_path: Path) -> None:
    key = Ed25519Key.generate()
    key.save(tmp_path / "key.json", "secret")
    secret = {"WALRAS_KEY": str(tmp_path / "key.json"), "WALRAS_PASSPHRASE": "secret"}
    to = EthereumKey(KEYS[3]).address
    with Client(demo.url, key=EthereumKey(KEYS[2])) as client:
        for asset in ("EUR", "USD"):
            client.pay(key.address, asset, "20")
        told = [example(demo, "pay_once.py", to, "EUR", "12.50", "invoice 7", **secret) for _ in range(2)]
        assert told[0] == told[1] and told[0].startswith("Paid 12.50 EUR in block ")
        assert client.account(key.address).balance("EUR").available == 7.5


def test_the_example_of_the_stream_sees_past_and_present(demo: Demo) -> None:
    # A busy machine may take longer to connect than others to follow the past.
    for seconds in ("0.5", "8", "120"):
        told = example(demo, "watch.py", EthereumKey(KEYS[2]).address, seconds)
        if "batch " in told and "holds " in told:
            break
    assert re.search(r"batch \d+: ", told) and "holds " in told and told.endswith("done\n")


def test_the_market_maker_quotes_both_sides_and_leaves_nothing(demo: Demo) -> None:
    told = example(demo, "market_maker.py", "EUR/USD", "--size", "5", "--blocks", "4", WALRAS_KEY=KEYS[2])
    assert re.search(r"buys 5\.0+ at 1\.\d+, sells 5\.0+ at 1\.\d+|buys .* at .*, sells .* at ", told), told
    with Client(demo.url, key=EthereumKey(KEYS[2])) as client:
        assert client.offers() == []


def test_the_example_of_ccxt_places_and_cancels(demo: Demo) -> None:
    told = example(demo, "ccxt_bot.py", WALRAS_KEY=KEYS[2])
    assert "is open, 1.0 remain" in told and "free: {" in told


def test_the_market_maker_at_a_venue_quotes_and_leaves_nothing(demo: Demo, tmp_path: Path) -> None:
    file, secret = tmp_path / "trading.json", {"WALRAS_KEY": KEYS[2], "WALRAS_PASSPHRASE": "secret"}
    venue_of(demo)
    for _ in range(2):
        told = example(demo, "venue_market_maker.py", str(file), "EUR/USD", "--seconds", "3", **secret)
        assert re.search(r"8 orders around \d\.\d+; refused: \[\]", told), told
    with Client(demo.url) as client, VenueTrader(
        client, TradingKey.open(file, "secret"), file=file.with_suffix(".orders")
    ) as trader:
        assert trader.resume() == [] and trader.cancel_all() == []


def test_no_example_is_forgotten() -> None:
    assert CHECKED == {path.name for path in EXAMPLES.glob("*.py")}
