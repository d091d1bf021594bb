"""Columns of NumPy, Arrow and pandas, in and out.

Pandas and Arrow are imported only where a caller already uses them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Kind: TypeAlias = Literal["pandas", "arrow", "numpy"]
PoolRow: TypeAlias = "tuple[int, int, int, int, str]"
BuyRow: TypeAlias = "tuple[int, int, int, int]"
OfferColumns: TypeAlias = "tuple[bytes, bytes, bytes, bytes | list[str]]"
Columns: TypeAlias = "tuple[list[str], OfferColumns, list[PoolRow], list[BuyRow]]"

OFFERS = ("sell", "buy", "amount", "min_price")
POOLS = ("a", "b", "reserve_a", "reserve_b", "fee")
BUYS = ("buy", "sell", "bought", "most")
MOST = 2**63 - 1


class OfferError(ValueError):
    """Offers or parameters that cannot be cleared; the text names row, column and remedy."""


def read(offers: Any, pools: Any, buys: Any) -> tuple[Columns, Kind]:
    """The columns of a batch as the compiled half wants them, and the kind of table that the offers came in."""
    kind = _kind(offers, "offers")
    sell, buy, amount, min_price = _table(offers, "offers", OFFERS)
    of_pools = _table(pools, "pools", POOLS) if pools is not None else [_objects([])] * len(POOLS)
    of_buys = _table(buys, "buys", BUYS) if buys is not None else [_objects([])] * len(BUYS)
    assets = {"sell": sell, "buy": buy, "pools.a": of_pools[0], "pools.b": of_pools[1]}
    symbols, codes = _symbols(assets | {"buys.buy": of_buys[0], "buys.sell": of_buys[1]})
    reserves = [_counts(column, name) for column, name in zip(of_pools[2:4], ("pools.reserve_a", "pools.reserve_b"), strict=True)]
    fees = [_limit(row, fee, "pools.fee") for row, fee in enumerate(of_pools[4].tolist())]
    pool_rows = list(zip(codes["pools.a"].tolist(), codes["pools.b"].tolist(), *reserves, fees, strict=True))
    sizes = [_counts(column, name) for column, name in zip(of_buys[2:], ("buys.bought", "buys.most"), strict=True)]
    buy_rows = list(zip(codes["buys.buy"].tolist(), codes["buys.sell"].tolist(), *sizes, strict=True))
    columns = (codes["sell"].tobytes(), codes["buy"].tobytes(), _amounts(amount), _limits(min_price))
    return (symbols, columns, pool_rows, buy_rows), kind


def _table(table: Any, what: str, names: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    """The columns `names` of a table, in that order."""
    kind = _kind(table, what)
    present = list(table.column_names) if kind == "arrow" else list(table)
    for name in names:
        if name not in present:
            raise OfferError(f"no column {name!r}: {what} have the columns {', '.join(names)}, not {present}")
    columns = [_plain(table[name], kind) for name in names]
    lengths = {name: len(values) for name, values in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise OfferError(f"columns of {what} differ in length: {lengths}")
    return columns


def _counts(values: npt.NDArray[Any], name: str) -> list[int]:
    """Whole amounts of at least 1."""
    counts = [_amount(row, value, name) for row, value in enumerate(values.tolist())]
    for row, count in enumerate(counts):
        if count < 1:
            raise _refuse(row, name, f"{count} is out of range: give 1 to {MOST} whole units")
    return counts


def written(columns: dict[str, npt.NDArray[Any]], kind: Kind) -> Any:
    """`columns` as a table of `kind`."""
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    if kind == "arrow":
        import pyarrow as pa

        types = {name: pa.string() if values.dtype == object else pa.int64() for name, values in columns.items()}
        return pa.table({name: pa.array(values, type=types[name]) for name, values in columns.items()})
    return columns


def _kind(table: Any, what: str) -> Kind:
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return "pandas"
    if arrow is not None and isinstance(table, arrow.Table):
        return "arrow"
    if isinstance(table, Mapping):
        return "numpy"
    raise OfferError(
        f"{what} are a {type(table).__name__}: give a pandas DataFrame, an Arrow Table or a mapping of columns"
    )


def _plain(values: Any, kind: Kind) -> npt.NDArray[Any]:
    """One column as a NumPy array; text and decimals as objects, and None where a value is missing."""
    if kind == "arrow":
        import pyarrow as pa

        number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        if number and values.null_count == 0:
            return np.asarray(values.to_numpy())
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        return _objects(values.to_pylist())
    array = _objects(list(values)) if isinstance(values, list | tuple) else np.asarray(values)
    if array.ndim != 1:
        raise OfferError(f"a column has {array.ndim} dimensions: give one value for each offer")
    return array


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _refuse(row: int, column: str, problem: str) -> OfferError:
    return OfferError(f"row {row + 1}, column {column}: {problem}")


def _symbols(columns: dict[str, npt.NDArray[Any]]) -> tuple[list[str], dict[str, npt.NDArray[np.uint32]]]:
    """All symbols, sorted, and the positions of those of each column."""
    seen: set[Any] = set()
    lists = {name: column.tolist() for name, column in columns.items()}
    for name, column in lists.items():
        for row, symbol in enumerate(column):
            if symbol not in seen:
                if not isinstance(symbol, str) or not symbol:
                    raise _refuse(row, name, f"{symbol!r} is not an asset symbol: give a text such as 'EUR'")
                seen.add(symbol)
    symbols = sorted(seen)
    place = {symbol: at for at, symbol in enumerate(symbols)}
    codes = {name: np.fromiter((place[s] for s in column), "<u4", len(column)) for name, column in lists.items()}
    return symbols, codes


def _amounts(values: npt.NDArray[Any]) -> bytes:
    if values.dtype.kind == "i":
        return values.astype("<i8").tobytes()
    if values.dtype.kind == "f":
        whole = (values == np.floor(values)) & (np.abs(values) <= 2.0**53)
        if not whole.all():
            _amount(int(np.argmin(whole)), values[np.argmin(whole)].item())
        return values.astype("<i8").tobytes()
    amounts = (_amount(row, value) for row, value in enumerate(values.tolist()))
    return np.fromiter(amounts, dtype="<i8", count=len(values)).tobytes()


def _amount(row: int, value: Any, column: str = "amount") -> int:
    """A whole amount, whatever its type; the sign is left to the compiled half."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, float | Decimal) and value % 1 == 0)
    if isinstance(value, bool) or not (whole or (isinstance(value, str) and value.isascii() and value.isdigit())):
        raise _refuse(row, column, f"{value!r} is not a whole number of units: give integers such as 1500")
    if isinstance(value, float) and abs(value) > 2.0**53:
        raise _refuse(row, column, f"{value!r} is too large for floating point: give integers")
    amount = int(value)
    if abs(amount) > MOST:
        raise _refuse(row, column, f"{amount} is out of range: give 1 to {MOST} whole units")
    return amount


def _limits(values: npt.NDArray[Any]) -> bytes | list[str]:
    if values.dtype.kind == "f":
        row = next(iter(np.flatnonzero(~np.isfinite(values))), None)
        if row is not None:
            raise _refuse(int(row), "min_price", f"{values[row]} is not a price: give a number above 0")
        return values.astype("<f8").tobytes()
    return [_limit(row, value) for row, value in enumerate(values)]


def _limit(row: int, value: Any, column: str = "min_price") -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | np.integer):
        raise _refuse(row, column, f"{value!r} is not a price: give a number, a Decimal or a text such as '1.25'")
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        raise _refuse(row, column, f"{value!r} is not a price: give a number above 0")
    return format(number, "f")
