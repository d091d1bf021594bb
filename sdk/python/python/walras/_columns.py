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
Columns: TypeAlias = "tuple[list[str], bytes, bytes, bytes, bytes | list[str]]"

NAMES = ("sell", "buy", "amount", "min_price")
MOST = 2**63 - 1


class OfferError(ValueError):
    """Offers or parameters that cannot be cleared; the text names row, column and remedy."""


def read(offers: Any) -> tuple[Columns, Kind]:
    """The columns of `offers` as the compiled half wants them, and the kind of table that they came in."""
    kind = _kind(offers)
    names = list(offers.column_names) if kind == "arrow" else list(offers)
    for name in NAMES:
        if name not in names:
            raise OfferError(f"no column {name!r}: offers have the columns {', '.join(NAMES)}, not {names}")
    column = {name: _plain(offers[name], kind) for name in NAMES}
    lengths = {name: len(values) for name, values in column.items()}
    if len(set(lengths.values())) > 1:
        raise OfferError(f"columns differ in length: {lengths}")
    symbols, sell, buy = _symbols(column["sell"], column["buy"])
    return (symbols, sell, buy, _amounts(column["amount"]), _limits(column["min_price"])), kind


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


def _kind(offers: Any) -> Kind:
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(offers, pandas.DataFrame):
        return "pandas"
    if arrow is not None and isinstance(offers, arrow.Table):
        return "arrow"
    if isinstance(offers, Mapping):
        return "numpy"
    raise OfferError(
        f"offers are a {type(offers).__name__}: give a pandas DataFrame, an Arrow Table or a mapping of columns"
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


def _symbols(sell: npt.NDArray[Any], buy: npt.NDArray[Any]) -> tuple[list[str], bytes, bytes]:
    """All symbols, sorted, and the positions of those of each column."""
    texts = [column.astype(object) if column.dtype.kind == "U" else column for column in (sell, buy)]
    seen: set[Any] = set()
    for name, column in zip(("sell", "buy"), texts, strict=True):
        for row, symbol in enumerate(column if column.dtype == object else column.tolist()):
            if symbol not in seen:
                if not isinstance(symbol, str) or not symbol:
                    raise _refuse(row, name, f"{symbol!r} is not an asset symbol: give a text such as 'EUR'")
                seen.add(symbol)
    symbols = sorted(seen)
    place = {symbol: at for at, symbol in enumerate(symbols)}
    codes = [np.fromiter((place[s] for s in column), dtype="<u4", count=len(column)).tobytes() for column in texts]
    return symbols, codes[0], codes[1]


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


def _amount(row: int, value: Any) -> int:
    """A whole amount, whatever its type; the sign is left to the compiled half."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, float | Decimal) and value % 1 == 0)
    if isinstance(value, bool) or not (whole or (isinstance(value, str) and value.isascii() and value.isdigit())):
        raise _refuse(row, "amount", f"{value!r} is not a whole number of units: give integers such as 1500")
    if isinstance(value, float) and abs(value) > 2.0**53:
        raise _refuse(row, "amount", f"{value!r} is too large for floating point: give integers")
    amount = int(value)
    if abs(amount) > MOST:
        raise _refuse(row, "amount", f"{amount} is out of range: give 1 to {MOST} whole units")
    return amount


def _limits(values: npt.NDArray[Any]) -> bytes | list[str]:
    if values.dtype.kind == "f":
        row = next(iter(np.flatnonzero(~np.isfinite(values))), None)
        if row is not None:
            raise _refuse(int(row), "min_price", f"{values[row]} is not a price: give a number above 0")
        return values.astype("<f8").tobytes()
    return [_limit(row, value) for row, value in enumerate(values)]


def _limit(row: int, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | np.integer):
        raise _refuse(row, "min_price", f"{value!r} is not a price: give a number, a Decimal or a text such as '1.25'")
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        raise _refuse(row, "min_price", f"{value!r} is not a price: give a number above 0")
    return format(number, "f")
