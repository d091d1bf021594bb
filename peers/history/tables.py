"""What tools do with columns as `walras export` writes them, as rows of a table.

Two rows: amounts of 2^63 - 1 and 2 units, whose sum is above 64 bits with a sign; the number 2^63 + 5 of a contract's offer; a time
in UTC.
"""

import sys
from collections.abc import Callable
from importlib.metadata import version

import pyarrow
import pyarrow.compute
import pyarrow.parquet

FOLDER = sys.argv[1]
FILE = f"{FOLDER}/rows.parquet"
SUM = 2**63 + 1
OFFER = 2**63 + 5
ROWS = pyarrow.table(
    {
        "sold": pyarrow.array([2**63 - 1, 2], pyarrow.int64()),
        "offer": pyarrow.array([OFFER, 7], pyarrow.uint64()),
        "time": pyarrow.array([1_795_910_400_000, 1_795_910_400_500], pyarrow.timestamp("ms", tz="UTC")),
    }
)
pyarrow.parquet.write_table(ROWS, FILE)


def row(package: str, what: str, action: Callable[[], str]) -> None:
    try:
        did = action()
    except Exception as error:
        did = f"{type(error).__name__}: {' '.join(str(error).split())[-95:].lstrip()}"
    print(f"| {package} {version(package)} | {what} | {did} |")


def seen(total: object, offer: object) -> str:
    exact = "exact" if int(total) == SUM else f"**{int(total)}**, no error"
    return f"sum {exact}, numbers {'exact' if int(offer) == OFFER else f'**{offer}**'}"


def by_duckdb() -> str:
    import duckdb

    return seen(*duckdb.sql(f"select sum(sold), max(offer) from '{FILE}'").fetchall()[0])


def by_chdb(amount: str) -> str:
    import chdb

    answer = str(chdb.query(f"select sum({amount}), max(offer) from file('{FILE}')", "TSV").data())
    return seen(*answer.split())


def by_datafusion(amount: str) -> str:
    from datafusion import SessionContext

    context = SessionContext()
    context.register_parquet("t", FILE)
    [first] = context.sql(f"select sum({amount}) as total, max(offer) as offer from t").to_pylist()
    return seen(first["total"], first["offer"])


def by_polars(kind: str) -> str:
    import polars

    frame = polars.read_parquet(FILE)
    return seen(frame["sold"].cast(getattr(polars, kind)).sum(), frame["offer"].max())


def by_pyarrow(kind: pyarrow.DataType) -> str:
    return seen(pyarrow.compute.sum(ROWS["sold"].cast(kind)).as_py(), pyarrow.compute.max(ROWS["offer"]).as_py())


def by_pandas(kind: str) -> str:
    import pandas

    frame = pandas.read_parquet(FILE, engine="pyarrow")
    return seen(frame.sold.astype(kind).sum(), frame.offer.max())


def time_by_fastparquet() -> str:
    import fastparquet

    kind = fastparquet.ParquetFile(FILE).to_pandas()["time"].dt.tz
    return "the zone is dropped; `tz_localize('UTC')` gives it back" if kind is None else f"keeps {kind}"


def time_by_pandas() -> str:
    import pandas

    return f"keeps {pandas.read_parquet(FILE, engine='pyarrow')['time'].dt.tz}"


def found(offers: list[int]) -> str:
    return "finds it" if offers == [OFFER] else f"finds **{', '.join(map(str, offers)) or 'nothing'}**, no error"


def asked_of_lance() -> str:
    import lance

    rows = lance.write_dataset(ROWS, f"{FOLDER}/rows.lance")
    return found(rows.to_table(filter=f"offer = {OFFER}")["offer"].to_pylist())


def asked_of_pyarrow(offer: object) -> str:
    return found(pyarrow.parquet.read_table(FILE, filters=[("offer", "=", offer)])["offer"].to_pylist())


def in_delta() -> str:
    import deltalake

    deltalake.write_deltalake(f"{FOLDER}/delta", ROWS)
    return "writes it"


def in_iceberg() -> str:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("local", uri=f"sqlite:///{FOLDER}/catalog.db", warehouse=f"file://{FOLDER}")
    catalog.create_namespace("n")
    rows = ROWS.select(["offer"])
    catalog.create_table("n.t", schema=rows.schema).append(rows)
    return "writes it"


print("| tool | what | what it does |\n|---|---|---|")
row("duckdb", "`sum(sold)`", by_duckdb)
row("chdb", "`sum(sold)`", lambda: by_chdb("sold"))
row("chdb", "`sum(toInt128(sold))`", lambda: by_chdb("toInt128(sold)"))
row("datafusion", "`sum(sold)`", lambda: by_datafusion("sold"))
row("datafusion", "`sum(cast(sold as decimal(38, 0)))`", lambda: by_datafusion("cast(sold as decimal(38, 0))"))
row("polars", "`sum`", lambda: by_polars("Int64"))
row("polars", "`cast(Int128)`, `sum`", lambda: by_polars("Int128"))
row("pyarrow", "`compute.sum`", lambda: by_pyarrow(pyarrow.int64()))
row("pyarrow", "`cast(decimal128(38))`, `compute.sum`", lambda: by_pyarrow(pyarrow.decimal128(38)))
row("pandas", "`sum`", lambda: by_pandas("int64"))
row("pandas", "`astype(object)`, `sum`", lambda: by_pandas("object"))
row("fastparquet", "a time in UTC", time_by_fastparquet)
row("pandas", "a time in UTC, by pyarrow", time_by_pandas)
row("deltalake", "a table with offers of contracts", in_delta)
row("pyiceberg", "a table with offers of contracts", in_iceberg)
row("pylance", "a filter for one offer by its number", asked_of_lance)
row("pyarrow", "`filters` of `read_table` for one offer by its number", lambda: asked_of_pyarrow(OFFER))
row("pyarrow", "the same with `pyarrow.scalar(…, pyarrow.uint64())`", lambda: asked_of_pyarrow(pyarrow.scalar(OFFER, "uint64")))
