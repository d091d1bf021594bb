"""The package from the outside: the same answers from every kind of table, and errors that name the row."""

import copy
import decimal
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import walras

ROWS = [
    ("EUR", "USD", 1_000_000, "1.08"),
    ("USD", "EUR", 1_200_000, "0.90"),
    ("USD", "JPY", 500_000, "148.5"),
    ("JPY", "EUR", 50_000_000, "0.0060"),
    ("EUR", "JPY", 300_000, "161.123456789012345678"),
    ("GBP", "EUR", 1_000, "1.1"),
]


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=["sell", "buy", "amount", "min_price"])


def market(offers: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Offers among ten assets whose limits lie about true prices."""
    random = np.random.default_rng(seed)
    values = random.uniform(1, 1000, 10)
    sell = random.integers(0, 10, offers)
    buy = (sell + random.integers(1, 10, offers)) % 10
    symbols = np.array([f"A{asset}" for asset in range(10)])
    return {
        "sell": symbols[sell],
        "buy": symbols[buy],
        "amount": (random.uniform(1e7, 1e9, offers) / values[sell]).astype(np.int64),
        "min_price": values[sell] / values[buy] * random.uniform(0.98, 1.01, offers),
    }


def same(a: walras.Clearing, b: walras.Clearing) -> bool:
    texts = [json.loads(clearing.to_json()) | {"solver": None} for clearing in (a, b)]
    return texts[0] == texts[1]


def test_clears_verifies_and_explains() -> None:
    offers = frame()
    clearing = walras.clear(offers)
    assert clearing.full and clearing.short == []
    assert list(clearing.prices) == ["EUR", "JPY", "USD"]
    assert all(isinstance(price, Decimal) for price in clearing.prices.values())
    assert 1.08 < clearing.rate("EUR", "USD") < 1 / 0.9
    for row, sold, bought in clearing.fills.itertuples(index=False):
        _, _, amount, limit = ROWS[row - 1]
        assert sold <= amount and bought >= sold * Decimal(limit)
    verified = walras.verify(offers, clearing)
    assert verified.executed == len(clearing.fills) and verified.full
    sold = dict(zip(clearing.fills["row"], clearing.fills["sold"], strict=True))
    for row in range(1, len(ROWS) + 1):
        why = walras.explain(clearing, row)
        assert why.sold == sold.get(row, 0) and (why.row, why.amount) == (row, ROWS[row - 1][2])
        assert (why.sold == why.amount) == (why.why == "full")
        assert str(why).startswith(f"{why.amount} {why.sell} at ")


def test_every_kind_of_table_gives_the_same_clearing() -> None:
    columns = market(2_000)
    pandas = walras.clear(pd.DataFrame(columns))
    arrow = walras.clear(pa.table(columns))
    numpy = walras.clear(columns)
    lists = walras.clear({name: column.tolist() for name, column in columns.items()})
    coded = pd.DataFrame(columns).astype({"sell": "category", "buy": "category"})
    dictionary = pa.table(columns).set_column(0, "sell", pa.array(columns["sell"]).dictionary_encode())
    texts = columns | {"min_price": [repr(float(price)) for price in columns["min_price"]]}
    decimals = columns | {"min_price": [Decimal(repr(float(price))) for price in columns["min_price"]]}
    for other in (arrow, numpy, lists, walras.clear(coded), walras.clear(dictionary)):
        assert same(pandas, other)
    assert same(pandas, walras.clear(texts)) and same(pandas, walras.clear(decimals))
    assert isinstance(pandas.fills, pd.DataFrame) and isinstance(pandas.trades, pd.DataFrame)
    assert isinstance(arrow.fills, pa.Table) and arrow.trades.schema.field("sell").type == pa.string()
    assert isinstance(numpy.fills, dict) and numpy.fills["row"].dtype == np.int64
    assert pandas.fills.equals(arrow.fills.to_pandas()) and pandas.fills.equals(pd.DataFrame(numpy.fills))
    assert len(pandas.fills) > 500 and pandas.full


def test_pools_and_buy_orders_take_part() -> None:
    offers = frame()
    pools = pd.DataFrame({"a": ["EUR", "USD"], "b": ["USD", "CHF"], "reserve_a": 10_000_000, "reserve_b": 10_000_000})
    pools["fee"] = [0.003, 0]
    buys = {"buy": ["USD", "USD"], "sell": ["EUR", "EUR"], "bought": [1_000, 1_000], "most": [2_000, 1]}
    clearing = walras.clear(offers, pools=pools, buys=buys)
    assert clearing.full and "CHF" in clearing.prices
    assert clearing.pools[["row", "sell", "buy"]].to_numpy().tolist() == [[1, "EUR", "USD"]]
    sold, bought = clearing.pools.loc[0, ["sold", "bought"]]
    assert (10_000_000 - sold) * (10_000_000 + bought) >= 10_000_000**2
    assert clearing.buys["row"].tolist() == [1]
    assert clearing.buys.loc[0, "paid"] * clearing.rate("EUR", "USD") >= 1_000
    assert walras.verify(offers, clearing, pools=pools, buys=buys).full
    assert walras.verify(offers, clearing.to_json(), pools=pa.table(pools), buys=pd.DataFrame(buys)).full
    arrow = walras.clear(pa.table(dict(offers.items())), pools=pools, buys=buys)
    assert arrow.pools.to_pylist() == clearing.pools.to_dict("records")
    claim = json.loads(clearing.to_json())
    for changes, text in [
        ({"pools": []}, "pools, row 1: "),
        ({"pools": [claim["pools"][0] | {"bought": "1"}]}, "pools, row 1: does not trade as the rule"),
        ({"buys": [{"row": 1, "paid": "7"}]}, "buys, row 1: does not cost"),
        ({"buys": [{"row": 0, "paid": "7"}]}, ""),
        ({"buys": [{"row": 1}]}, "a row of it lacks 'paid'"),
    ]:
        with pytest.raises(walras.ViolationError, match=text or None):
            walras.verify(offers, claim | changes, pools=pools, buys=buys)
    with pytest.raises(walras.ViolationError):
        walras.verify(offers, clearing)
    for wrong, text in [
        ({"pools": pools.assign(reserve_a=[0, 1])}, "row 1, column pools.reserve_a: 0 is out of range"),
        ({"pools": pools.assign(b=["EUR", "USD"])}, "pools, row 1: give two different assets"),
        ({"pools": pools.assign(fee=["x", "0"])}, "row 1, column pools.fee: "),
        ({"pools": pools.drop(columns="fee")}, "no column 'fee': pools have the columns a, b, reserve_a, reserve_b, fee"),
        ({"buys": buys | {"most": [0.5, 1]}}, "row 1, column buys.most: 0.5 is not a whole number"),
        ({"buys": buys | {"sell": ["USD", "EUR"]}}, "buys, row 1: give two different assets"),
        ({"buys": 7}, "buys are a int: give"),
    ]:
        with pytest.raises(walras.OfferError, match=text):
            walras.clear(offers, **wrong)


def test_an_asset_without_a_way_back_has_no_price() -> None:
    offers = frame()
    lone = pd.DataFrame({"sell": ["XAU"], "buy": ["EUR"], "amount": [1_000_000], "min_price": ["1.5"]})
    both = pd.concat([offers, lone], ignore_index=True)
    clearing, without = walras.clear(both), walras.clear(offers)
    assert "XAU" not in clearing.prices and "XAU" not in json.loads(clearing.to_json())["prices"]
    assert clearing.unrealized_utility_ratio == without.unrealized_utility_ratio
    assert walras.verify(both, clearing).full and walras.verify(both, clearing.to_json()).full
    with pytest.raises(KeyError, match="no price"):
        clearing.rate("XAU", "EUR")


def test_other_integer_types_and_no_offers() -> None:
    columns = market(500)
    expected = walras.clear(columns)
    for dtype in ("uint64", "int32", "float64", "object"):
        assert same(expected, walras.clear(columns | {"amount": columns["amount"].astype(dtype)}))
    assert same(expected, walras.clear(pd.DataFrame(columns, index=range(500, 0, -1))))
    empty = walras.clear(frame().iloc[:0])
    assert empty.full and empty.prices == {} and len(empty.fills) == 0


def test_parameters() -> None:
    columns = market(2_000)
    clearing = walras.clear(columns, epsilon=0, mu=Fraction(1, 512))
    assert Fraction(clearing.epsilon) == 0 and clearing.mu == walras.clear(columns, mu="2^-9").mu
    assert walras.clear(columns, solver="tatonnement").solver.name == "tatonnement"
    assert same(walras.clear(columns, threads=1), walras.clear(columns, threads=3))
    warm = walras.clear(columns, last_prices=clearing.prices)
    assert warm.full and warm.solver.iterations <= walras.clear(columns).solver.iterations
    for wrong, text in [
        ({"mu": "2^-20"}, "mu, epsilon: mu .* must be greater than epsilon"),
        ({"epsilon": "x"}, "epsilon: "),
        ({"solver": "simplex"}, "solver: \"simplex\" is neither"),
        ({"last_prices": {"A1": "-1"}}, "prices: "),
    ]:
        with pytest.raises(walras.OfferError, match=text):
            walras.clear(columns, **wrong)


@pytest.mark.parametrize(
    ("column", "row", "value", "text"),
    [
        ("amount", 3, 0, "row 4, column amount: 0 is out of range: give 1 to 9223372036854775807 whole units"),
        ("amount", 0, -5, "row 1, column amount: -5 is out of range"),
        ("amount", 2, 1.5, "row 3, column amount: 1.5 is not a whole number of units: give integers"),
        ("amount", 2, float("nan"), "row 3, column amount: nan is not a whole number"),
        ("amount", 2, None, "row 3, column amount: .* is not a whole number"),
        ("amount", 2, "many", "row 3, column amount: 'many' is not a whole number of units: give integers"),
        ("amount", 2, 2**63, "row 3, column amount: 9223372036854775808 is out of range"),
        ("amount", 5, 2**63 - 1, "more than 9223372036854775807 units of GBP are offered in all"),
        ("min_price", 1, "1e5x", "row 2, column min_price: price \"1e5x\" is not a plain decimal"),
        ("min_price", 1, "0", "row 2, column min_price: price 0 is out of range"),
        ("min_price", 1, None, "row 2, column min_price: .* is not a price"),
        ("min_price", 1, Decimal("NaN"), "row 2, column min_price: .* is not a price"),
        ("sell", 4, "JPY", "row 5, column buy: JPY is offered for itself: name another asset to buy"),
        ("sell", 4, "", "row 5, column sell: '' is not an asset symbol"),
        ("buy", 4, None, "row 5, column buy: .* is not an asset symbol"),
    ],
)
def test_bad_offers_are_named(column: str, row: int, value: object, text: str) -> None:
    offers = {name: list(values) for name, values in frame().items()}
    offers[column][row] = value
    if column == "amount" and row == 5:
        offers["sell"][0], offers["sell"][5] = "GBP", "GBP"
    tables = [offers, pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in offers.items()})]
    for table in tables:
        with pytest.raises(walras.OfferError, match=text):
            walras.clear(table)


def two(**changes: object) -> dict[str, object]:
    """Two offers that meet."""
    offers: dict[str, object] = {"sell": ["EUR", "USD"], "buy": ["USD", "EUR"]}
    return offers | {"amount": [10_000, 20_000], "min_price": [1.0, 0.9]} | changes


def test_a_masked_value_is_missing() -> None:
    for column, values in (("amount", [10_000, 20_000]), ("min_price", [1.0, 0.9]), ("sell", ["EUR", "USD"])):
        with pytest.raises(walras.OfferError, match=f"row 2, column {column}"):
            walras.clear(two(**{column: np.ma.array(values, mask=[False, True])}))
    unmasked = two(amount=np.ma.array([10_000, 20_000], mask=[False, False]))
    assert walras.clear(unmasked) == walras.clear(two())


@pytest.mark.parametrize(("kind", "bits"), [("float64", 53), ("float32", 24), ("float16", 11)])
def test_an_amount_that_floating_point_may_have_rounded_is_refused(kind: str, bits: int) -> None:
    rounded, exact = 2**bits, 2**bits - 1
    for amounts in (np.array([exact, rounded], kind), list(np.array([exact, rounded], kind)), pd.Series([exact, rounded], dtype=kind)):
        with pytest.raises(walras.OfferError, match="row 2, column amount: .* is too large for floating point to be exact"):
            walras.clear(two(amount=amounts))
    assert walras.clear(two(amount=np.array([exact, exact], kind))) == walras.clear(two(amount=[exact, exact]))
    assert walras.clear(two(amount=[exact, rounded + 1])).fills is not None


def test_times_are_neither_amounts_nor_prices() -> None:
    for unit in ("datetime64[ns]", "timedelta64[ns]"):
        for column in ("amount", "min_price"):
            with pytest.raises(walras.OfferError, match=f"column {column}: .* holds times"):
                walras.clear(two(**{column: np.array([10_000, 20_000], unit)}))
    with pytest.raises(walras.OfferError, match="row 1, column amount"):
        walras.clear(two(amount=[np.timedelta64(10_000), 20_000]))


def test_the_decimal_context_of_the_caller_changes_nothing() -> None:
    amounts = two(amount=[Decimal(1_000_000_000), Decimal(2_000_000_000)])
    share = Fraction(1, 32768)
    expected = walras.clear(amounts, epsilon=share)
    with decimal.localcontext() as context:
        context.prec = 3
        found = walras.clear(amounts, epsilon=share)
        assert found == expected and found.epsilon == expected.epsilon
        assert found.rate("EUR", "USD") == expected.rate("EUR", "USD")
    for value in ("1e40", "1e999999", "Infinity", "-Infinity", "NaN", "sNaN", "1.5"):
        with pytest.raises(walras.OfferError, match="row 1, column amount"):
            walras.clear(two(amount=[Decimal(value), Decimal(1)]))
        if value not in ("1e40", "1.5"):
            with pytest.raises(walras.OfferError, match="row 1, column min_price"):
                walras.clear(two(min_price=[Decimal(value), Decimal(1)]))


def test_threads_are_bounded_and_senseless_parameters_are_offer_errors() -> None:
    expected = walras.clear(two())
    begun = time.perf_counter()
    assert walras.clear(two(), threads=10**6) == expected
    assert time.perf_counter() - begun < 30
    wrong: list[dict[str, object]] = [{"threads": n} for n in (0, -1, 1.5, True, "many")]
    wrong += [{"epsilon": value} for value in (None, [], float("nan"), -1, 2, np.float64("inf"))]
    wrong += [{"mu": object()}, {"solver": 7}, {"last_prices": [1]}, {"last_prices": {"EUR": None}}]
    for parameters in wrong:
        with pytest.raises(walras.OfferError):
            walras.clear(two(), **parameters)
    for column, value in (("sell", [["EUR"], "USD"]), ("sell", [7, "USD"]), ("amount", [{}, 1])):
        for table in (two(**{column: value}), pd.DataFrame(two(**{column: value}))):
            with pytest.raises(walras.OfferError, match=f"row 1, column {column}"):
                walras.clear(table)


def test_a_clearing_is_compared_copied_and_pickled() -> None:
    columns = market(500)
    pools = {"a": ["A1"], "b": ["A2"], "reserve_a": [10**9], "reserve_b": [10**9], "fee": ["0.003"]}
    buys = {"buy": ["A1"], "sell": ["A2"], "bought": [1000], "most": [10**9]}
    for table in (columns, pd.DataFrame(columns), pa.table(columns)):
        clearing = walras.clear(table, pools=pools, buys=buys)
        assert clearing == walras.clear(table, pools=pools, buys=buys)
        assert clearing != walras.clear(table) and clearing != 5
        for other in (copy.deepcopy(clearing), pickle.loads(pickle.dumps(clearing))):
            assert other == clearing and hash(other) == hash(clearing)
            assert other.to_json() == clearing.to_json()
            assert str(walras.explain(other, 1)) == str(walras.explain(clearing, 1))
            assert walras.verify(table, other, pools=pools, buys=buys).full == clearing.full


def test_dictionary_columns_are_not_looked_at_row_by_row() -> None:
    columns = market(200_000)
    frame = pd.DataFrame(columns).astype({"sell": "category", "buy": "category"})
    chunks = pa.Table.from_pandas(frame).slice(0, 150_000), pa.Table.from_pandas(frame).slice(150_000)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    for table in (frame, pa.concat_tables(chunks), pa.table(columns)):
        calls = 0
        sys.setprofile(count)
        try:
            walras._read(table, None, None)
        finally:
            sys.setprofile(None)
        assert calls < 50_000, f"{calls} calls for {len(columns['sell'])} rows"
    unused = frame.assign(sell=frame["sell"].cat.add_categories(["NOBODY"]))
    assert walras.clear(unused.iloc[:100]) == walras.clear(frame.iloc[:100])
    with pytest.raises(walras.OfferError, match="row 3, column sell"):
        walras.clear(frame.iloc[:100].assign(sell=frame["sell"].iloc[:100].where(np.arange(100) != 2)))


def test_bad_tables_are_named() -> None:
    for table, text in [
        (frame().drop(columns="buy"), "no column 'buy': offers have the columns sell, buy, amount, min_price"),
        ([1, 2], "offers are a list: give a pandas DataFrame"),
        ({name: [1] for name in ("sell", "buy", "amount")} | {"min_price": [1, 2]}, "columns of offers differ in length"),
        (frame().assign(min_price=float("inf")), "row 1, column min_price: inf is not a price"),
        (pa.table({"sell": ["A"], "buy": ["B"], "amount": pa.array([None], pa.int64()), "min_price": [1.0]}), "row 1"),
    ]:
        with pytest.raises(walras.OfferError, match=text):
            walras.clear(table)
    with pytest.raises(IndexError, match="row 7 is outside 1..6"):
        walras.explain(walras.clear(frame()), 7)
    with pytest.raises(KeyError, match="CHF"):
        walras.clear(frame()).rate("EUR", "CHF")


def test_verify_finds_what_is_wrong() -> None:
    offers = frame()
    good = json.loads(walras.clear(offers).to_json())
    assert walras.verify(offers, json.dumps(good)).full

    def bad(**changes: object) -> dict[str, object]:
        return json.loads(json.dumps(good)) | changes

    trades, fills = good["trades"], good["fills"]
    lost = {key: value for key, value in good["prices"].items() if key != "USD"}
    for claim, text in [
        (bad(trades=[]), "is below \\(1-mu\\) of the rate but not filled in full"),
        (bad(trades=[trades[0] | {"sold": "999999999"}, *trades[1:]]), "trade EUR/JPY sells 999999999 units"),
        (bad(trades=[trades[0] | {"sold": "-1"}, *trades[1:]]), "trades: EUR/JPY sells '-1'"),
        (bad(fills=[fills[0] | {"bought": "2000000"}, *fills[1:]]), "fills: row 1 sells 1000000"),
        (bad(trades=[{"sell": "EUR"}]), "not a clearing: a row of it lacks 'buy'"),
        (bad(fills=[*fills, {"row": 99, "sold": "1", "bought": "1"}]), "fills: row 99 does not trade"),
        (bad(prices=good["prices"] | {"CHF": "1"}), "prices: asset CHF is in none of the offers"),
        (bad(prices=lost), "prices: none for asset USD"),
        (bad(prices=good["prices"] | {"EUR": "1e5"}), "prices: price \"1e5\""),
        ({key: value for key, value in good.items() if key != "mu"}, "not a clearing: mu is missing"),
    ]:
        with pytest.raises(walras.ViolationError, match=text):
            walras.verify(offers, claim)
    with pytest.raises(walras.ViolationError):
        walras.verify(frame().assign(amount=5), walras.clear(offers))


def test_solving_leaves_the_interpreter_free() -> None:
    book, _ = walras._read(market(300_000), None, None)
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0)

    # No thread is made to give way, so the other one runs only where this one lets it: within the call.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        # One solve takes milliseconds, in which a busy machine may not come to the other thread.
        for _ in range(1_000):
            before = ticks
            book.clear("2^-15", "2^-10", "tatonnement", None, 1)
            free = ticks > before
            if free:
                break
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert free, "1,000 solves, and another thread ran in none"


def test_parquet_of_pandas_and_arrow_reads_like_the_table(tmp_path: Path) -> None:
    """The command line clears what pandas writes as the package does."""
    binary = Path(__file__).parents[3] / "target" / os.environ.get("WALRAS_PROFILE", "debug") / "walras"
    if not binary.exists():
        pytest.skip(f"{binary} is not built")
    columns = market(2_000)
    expected = json.loads(walras.clear(columns).to_json()) | {"solver": None}
    decimals = pa.array([Decimal(f"{price:.12f}") for price in columns["min_price"]], pa.decimal128(30, 12))
    rounded = columns | {"min_price": decimals.to_pylist()}
    for name, table, of in [
        ("plain", pa.table(columns), expected),
        ("dictionary", pa.Table.from_pandas(pd.DataFrame(columns).astype({"sell": "category"})), expected),
        ("decimal", pa.table(columns | {"min_price": decimals}), json.loads(walras.clear(rounded).to_json())),
    ]:
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path)
        printed = subprocess.run(
            [binary, "clear", "--json", "--offers", path], check=True, capture_output=True, text=True
        ).stdout
        assert json.loads(printed) | {"solver": None} == of | {"solver": None}
        assert walras.verify(table, printed).full


def test_proofs_that_no_whole_units_exist_are_checked(tmp_path: Path) -> None:
    # 5,164 C must sell and are worth 10.9 B; the two others can trade 10 B or 11.
    rows = [("B", "C", 2_934, "473.8"), ("C", "A", 5_164, "0.5"), ("A", "B", 3_000_000, "0.0021")]
    offers = pd.DataFrame(rows, columns=["sell", "buy", "amount", "min_price"])
    clearing = walras.clear(offers)
    assert (clearing.full, clearing.reasons) == (False, ["units"])
    [proof] = clearing.proofs
    assert proof.assets == ("A", "B", "C")
    assert not walras.verify(offers, clearing).full
    assert pickle.loads(pickle.dumps(clearing)).to_json() == clearing.to_json()
    # The proof of this book is none for one that has a full clearing.
    full = offers.assign(amount=[2_934, 5_214, 3_000_000])
    other = walras.clear(full)
    assert other.full and other.proofs == []
    claim = json.loads(other.to_json()) | {"proofs": json.loads(clearing.to_json())["proofs"]}
    with pytest.raises(walras.ViolationError, match="proof"):
        walras.verify(full, claim)
    binary = Path(__file__).parents[3] / "target" / os.environ.get("WALRAS_PROFILE", "debug") / "walras"
    if binary.exists():
        pq.write_table(pa.Table.from_pandas(offers), tmp_path / "offers.parquet")
        (tmp_path / "clearing.json").write_text(clearing.to_json())
        files = ["--offers", tmp_path / "offers.parquet", "--clearing", tmp_path / "clearing.json"]
        subprocess.run([binary, "verify", *files], check=True)


def test_pools_and_buys_agree_with_the_command_line(tmp_path: Path) -> None:
    binary = Path(__file__).parents[3] / "target" / os.environ.get("WALRAS_PROFILE", "debug") / "walras"
    if not binary.exists():
        pytest.skip(f"{binary} is not built")
    columns = market(2_000)
    first, second = columns["sell"][0], columns["buy"][0]
    pools = {"a": [first], "b": [second], "reserve_a": [10**9], "reserve_b": [10**9], "fee": ["2^-9"]}
    buys = {"buy": [first, second], "sell": [second, first], "bought": [1000, 1000], "most": [10**7, 1]}
    files: list[str | Path] = []
    for name, table in [("offers", columns), ("pools", pools), ("buys", buys)]:
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
        files += [f"--{name}", tmp_path / f"{name}.parquet"]
    ours = walras.clear(columns, pools=pools, buys=buys).to_json()
    printed = subprocess.run([binary, "clear", "--json", *files], check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) | {"solver": None} == json.loads(ours) | {"solver": None}
    (tmp_path / "clearing.json").write_text(ours)
    subprocess.run([binary, "verify", *files, "--clearing", tmp_path / "clearing.json"], check=True)
    assert walras.verify(columns, printed, pools=pools, buys=buys).full
