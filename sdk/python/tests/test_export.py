"""Files that `walras export` writes, read by the tools for which they are made: every integer exact, in the units of its
asset."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import PASSPHRASE, running, said
from walras.client import Client, Ed25519Key, Fate
from walras.client.operations import OpenPool, Provide

DECIMALS = {"USD": 2, "EUR": 4}
NAME, OTHER_NAME = "0x" + "ab" * 16, "0x" + "cd" * 16


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Client]]:
    """A chain with pools, and a client of its issuer."""
    home = tmp_path_factory.mktemp("export") / "home"
    assets = [part for symbol, decimals in DECIMALS.items() for part in ("--asset", f"{symbol}:{decimals}")]
    said("init", "--home", home, *assets, "--fee", "0.01", "--supply", str(2 * 10**12), "--pools")
    with running(home) as (url, _), Client(url, key=Ed25519Key.open(home / "issuer-key.json", PASSPHRASE)) as client:
        yield home, client


class Files:
    """The files of an export."""

    def __init__(self, home: Path, out: Path) -> None:
        said("export", "--home", home, "--out", out)
        self.out = out

    def paths(self, table: str) -> list[Path]:
        return sorted((self.out / table).rglob("*.parquet"))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows as pyarrow reads them; pandas and polars read the same."""
        read = pa.concat_tables([pq.read_table(path, partitioning=None) for path in self.paths(table)])
        rows: list[dict[str, Any]] = read.to_pylist()
        frames = [pd.read_parquet(path, engine="pyarrow", partitioning=None, dtype_backend="pyarrow") for path in self.paths(table)]
        of_pandas = pd.concat(frames).to_dict("records")
        assert [{name: None if value is pd.NA else value for name, value in row.items()} for row in of_pandas] == rows
        assert pl.read_parquet(self.paths(table), hive_partitioning=False).to_dicts() == rows
        for name, kind in zip(read.schema.names, read.schema.types, strict=True):
            # Whoever reads an amount as a double has lost it: it is an integer in every tool.
            is_price = name in ("rate", "value")
            assert not pa.types.is_floating(kind) or is_price, (table, name, kind)
        return rows

    def of(self, table: str, **wanted: Any) -> dict[str, Any]:
        (found,) = [row for row in self.rows(table) if all(row[name] == value for name, value in wanted.items())]
        return found


def met(client: Client) -> Fate:
    """An exact order that was filled: it was in one batch with an offer that made a price."""
    for n in range(200):
        client.offer("USD", "EUR", str(650 + n), "0.77", life="one batch", wait=False)
        fate = client.exact("buy", "EUR/USD", "100", "500", reference=f"exact {n}")
        if fate.outcome is not None and fate.outcome.why == "filled":
            return fate
    raise AssertionError("no exact order met another one")


def test_an_export_is_exact_in_the_units_of_its_assets(home: tuple[Path, Client], tmp_path: Path) -> None:
    folder, client = home
    # More units than a double has digits: 2^53 + 1 of EUR, whose unit is 0.0001.
    large = 2**53 + 1
    pool = (0, 1, 0)
    client.send(OpenPool(*pool, 10**9, 8 * 10**10))
    client.send(Provide(*pool, 10**6, 10**9, 8 * 10**10))
    kept = client.sell("EUR/USD", Decimal(large).scaleb(-4), "700", client=NAME)
    moved = client.sell("EUR/USD", "30", "600", life="until 50000")
    assert moved.sequence is not None and kept.sequence is not None
    replaced = client.replace(moved.sequence, "20", "650")
    gone = client.sell("EUR/USD", "2", "640")
    assert gone.sequence is not None
    cancelled = client.cancel(gone.sequence)
    once = client.offer("USD", "EUR", "450", "0.66666666666666667", life="one batch")
    maker = client.sell("EUR/USD", "50000", "1.26")
    exact = met(client)
    missed = client.exact("sell", "EUR/USD", "100", "50000", client=OTHER_NAME)
    assert exact.outcome is not None and exact.outcome.bought == 100

    files = Files(folder, tmp_path / "out")
    assert {row["symbol"]: row["decimals"] for row in files.rows("assets")} == DECIMALS
    order = files.of("orders", offer=kept.sequence)
    assert (order["amount"], order["left"], order["sold"], order["returned"]) == (large, large, 0, 0)
    assert (order["transaction"], order["height"], order["client"]) == (kept.id, kept.height, NAME)
    assert (order["sell"], order["buy"], order["sell_decimals"], order["buy_decimals"]) == ("EUR", "USD", 4, 2)
    assert (order["outcome"], order["life"], order["until"], order["replaces"]) == ("placed", "rests", None, None)
    # 700 USD for one EUR are 7 units for one.
    assert Decimal(order["min_price"]) == 7 and Decimal(order["amount"]).scaleb(-4) == Decimal(large).scaleb(-4)
    other = files.of("orders", offer=moved.sequence)
    assert (other["amount"], other["until"], other["client"]) == (300_000, 50_000, None)
    anew = files.of("orders", offer=replaced.sequence)
    assert (anew["replaces"], anew["amount"], anew["outcome"]) == (moved.sequence, 200_000, "replaced")

    # What left the book otherwise than by trading, with what returned.
    ends = {row["offer"]: row for row in files.rows("ended")}
    assert (ends[gone.sequence]["why"], ends[gone.sequence]["returned"]) == ("cancelled", 20_000)
    assert ends[gone.sequence]["height"] == cancelled.height and ends[gone.sequence]["sell_decimals"] == 4
    assert ends[moved.sequence]["why"] == "replaced"

    # What rests at the end is what the node says.
    resting = {row["offer"]: row for row in files.rows("offers")}
    told = {offer.id: offer for offer in client.offers()}
    assert resting.keys() == told.keys() == {kept.sequence, replaced.sequence, maker.sequence}
    for id, row in resting.items():
        assert Decimal(row["amount"]).scaleb(-row["sell_decimals"]) == told[id].amount
        assert Decimal(row["min_price"]) == told[id].limit
    assert resting[kept.sequence]["amount"] == large and resting[kept.sequence]["until"] is None

    # Orders for exact amounts: filled to the unit by the pool, or not at all.
    row = files.of("exacts", order=exact.sequence)
    assert (row["side"], row["units"], row["bound"], row["client"]) == ("buy", 1_000_000, 50_000, None)
    assert (row["outcome"], row["bought"], row["buy_decimals"], row["sell_decimals"]) == ("filled", 1_000_000, 4, 2)
    assert Decimal(row["sold"]).scaleb(-2) == exact.outcome.sold and row["sold"] + row["returned"] == 50_000
    row = files.of("exacts", order=missed.sequence)
    assert (row["side"], row["sold"], row["bought"], row["returned"]) == ("sell", 0, 0, 1_000_000)
    assert row["client"] == OTHER_NAME
    assert row["outcome"] != "filled"

    # Pools: what they hold is what they were given, plus what they bought, less what they sold.
    pool, trades = files.of("pools"), files.rows("pool_trades")
    assert (pool["a"], pool["b"], pool["a_decimals"], pool["b_decimals"]) == ("USD", "EUR", 2, 4)
    sold = {symbol: sum(row["sold"] for row in trades if row["sell"] == symbol) for symbol in DECIMALS}
    bought = {symbol: sum(row["bought"] for row in trades if row["buy"] == symbol) for symbol in DECIMALS}
    total = {symbol: pool[f"reserve_{side}"] + sold[symbol] - bought[symbol] for side, symbol in (("a", "USD"), ("b", "EUR"))}
    balances = {row["asset"]: row for row in files.rows("balances") if row["account"] == client.address}
    own = client.account()
    for symbol in DECIMALS:
        held = own.balance(symbol)
        assert Decimal(balances[symbol]["available"]).scaleb(-DECIMALS[symbol]) == held.available
        assert Decimal(balances[symbol]["locked"]).scaleb(-DECIMALS[symbol]) == held.locked
        assert total[symbol] > 0 and sold[symbol] + bought[symbol] > 0
    assert balances["EUR"]["locked"] == sum(row["amount"] for row in resting.values()) > large
    (holding,) = [row for row in files.rows("holdings") if row["account"] == client.address]
    assert 0 < holding["shares"] <= pool["shares"]
    # An offer for one batch that nothing sold to is in no later table.
    assert files.of("orders", offer=once.sequence)["returned"] + files.of("orders", offer=once.sequence)["sold"] == 45_000
