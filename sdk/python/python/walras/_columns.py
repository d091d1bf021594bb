"""Columns of NumPy, Arrow and pandas, in and out.

Pandas and Arrow are imported only where a caller already uses them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
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
DIGITS_MAX = 400
"""Zeros of the longest plain decimal that an exponent may make."""


class OfferError(ValueError):
    """Offers or parameters that cannot be cleared; the text names row, column and remedy."""


@dataclass(frozen=True)
class Coded:
    """A column of few texts: each row is a position in `texts`, or negative where the value is missing."""

    texts: list[Any]
    codes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)


Column: TypeAlias = "npt.NDArray[Any] | Coded"


def read(offers: Any, pools: Any, buys: Any) -> tuple[Columns, Kind]:
    """The columns of a batch as the compiled half wants them, and the kind of table that the offers came in."""
    kind = _kind(offers, "offers")
    sell, buy, amount, min_price = _table(offers, "offers", OFFERS)
    of_pools: list[Any]
    of_buys: list[Any]
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


def _table(table: Any, what: str, names: tuple[str, ...]) -> list[Any]:
    """The columns `names` of a table, in that order; those of symbols may be coded."""
    kind = _kind(table, what)
    present = list(table.column_names) if kind == "arrow" else list(table)
    for name in names:
        if name not in present:
            raise OfferError(f"no column {name!r}: {what} have the columns {', '.join(names)}, not {present}")
    symbols = {"offers": 2, "pools": 2, "buys": 2}[what]
    columns: list[Column] = [
        _symbol_column(table[name], kind) if at < symbols else _plain(table[name], kind, name)
        for at, name in enumerate(names)
    ]
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


def _symbol_column(values: Any, kind: Kind) -> Column:
    """A column of symbols, coded where its library does that faster than one could look at each row."""
    if kind == "arrow":
        import pyarrow as pa

        text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        coded = values.dictionary_encode() if text else values
        if pa.types.is_dictionary(coded.type):
            return _arrow_codes(coded)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.Series):
        if isinstance(values.dtype, pandas.CategoricalDtype):
            return Coded(list(values.cat.categories), values.cat.codes.to_numpy(dtype=np.int64))
        try:
            codes, texts = pandas.factorize(values)
        except TypeError:  # a list in a cell has no hash; it is refused below
            return _plain(values, kind, "")
        return Coded(list(texts), codes.astype(np.int64))
    return _plain(values, kind, "")


def _arrow_codes(values: Any) -> Coded:
    """The codes of a dictionary column, over all its chunks."""
    values = values.unify_dictionaries()
    if values.num_chunks == 0:
        return Coded([], np.zeros(0, np.int64))
    chunks = [chunk.indices.fill_null(-1) if chunk.null_count else chunk.indices for chunk in values.chunks]
    codes = [np.asarray(chunk.cast("int64").to_numpy(zero_copy_only=False)) for chunk in chunks]
    return Coded(values.chunk(0).dictionary.to_pylist(), np.concatenate(codes))


def _plain(values: Any, kind: Kind, name: str) -> npt.NDArray[Any]:
    """One column as a NumPy array; text and decimals as objects, and None where a value is missing or masked."""
    if kind == "arrow":
        import pyarrow as pa

        number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
        if number and values.null_count == 0:
            return np.asarray(values.to_numpy())
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        return _objects(values.to_pylist())
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        array = _objects(values.data.tolist())
        array[np.ma.getmaskarray(values)] = None
        return array
    array = _array(values)
    if array.ndim != 1:
        raise OfferError(f"a column has {array.ndim} dimensions: give one value for each offer")
    if array.dtype.kind in "mM":
        raise OfferError(f"column {name}: {array.dtype} holds times, which are neither amounts nor prices")
    return array


def _array(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, list | tuple):
        return _objects(list(values))
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise OfferError(f"a column cannot be read as an array: {error}") from None


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _refuse(row: int, column: str, problem: str) -> OfferError:
    return OfferError(f"row {row + 1}, column {column}: {problem}")


def _symbols(columns: dict[str, Column]) -> tuple[list[str], dict[str, npt.NDArray[np.uint32]]]:
    """All symbols, sorted, and the positions of those of each column."""
    coded = {name: column if isinstance(column, Coded) else _coded(name, column) for name, column in columns.items()}
    seen: set[str] = set()
    for name, column in coded.items():
        seen.update(_used(name, column))
    symbols = sorted(seen)
    place = {symbol: at for at, symbol in enumerate(symbols)}
    # Texts that no row has may be of any type.
    places = {
        name: np.array([place.get(t, 0) if isinstance(t, str) else 0 for t in column.texts], "<u4")
        for name, column in coded.items()
    }
    return symbols, {name: places[name][column.codes].astype("<u4") for name, column in coded.items()}


def _coded(name: str, column: npt.NDArray[Any]) -> Coded:
    place: dict[str, int] = {}
    codes = np.empty(len(column), np.int64)
    for row, symbol in enumerate(column.tolist()):
        if not isinstance(symbol, str) or not symbol:
            raise _no_symbol(row, name, symbol)
        codes[row] = place.setdefault(symbol, len(place))
    return Coded(list(place), codes)


def _used(name: str, column: Coded) -> list[str]:
    """The texts that rows of a column have, which must be symbols."""
    missing = column.codes < 0
    if missing.any():
        raise _no_symbol(int(np.argmax(missing)), name, None)
    used = np.flatnonzero(np.bincount(column.codes, minlength=len(column.texts)))
    for code in used.tolist():
        if not isinstance(column.texts[code], str) or not column.texts[code]:
            raise _no_symbol(int(np.argmax(column.codes == code)), name, column.texts[code])
    return [column.texts[code] for code in used.tolist()]


def _no_symbol(row: int, name: str, value: Any) -> OfferError:
    return _refuse(row, name, f"{value!r} is not an asset symbol: give a text such as 'EUR'")


def _amounts(values: npt.NDArray[Any]) -> bytes:
    if values.dtype.kind == "i":
        return values.astype("<i8").tobytes()
    if values.dtype.kind == "f":
        whole = (values == np.floor(values)) & (np.abs(values) < _exact_below(values.dtype))
        if not whole.all():
            _amount(int(np.argmin(whole)), values[np.argmin(whole)])
        return values.astype("<i8").tobytes()
    amounts = (_amount(row, value) for row, value in enumerate(values.tolist()))
    return np.fromiter(amounts, dtype="<i8", count=len(values)).tobytes()


def _amount(row: int, value: Any, column: str = "amount") -> int:
    """A whole amount, whatever its type; the sign is left to the compiled half."""
    if not _is_whole(value):
        raise _refuse(row, column, f"{value!r} is not a whole number of units: give integers such as 1500")
    if isinstance(value, float | np.floating) and abs(float(value)) >= _exact_below(np.dtype(type(value))):
        raise _refuse(
            row, column, f"{value} is too large for floating point to be exact: give integers, Decimal or text"
        )
    # A decimal such as 1e999999 must not become that many digits.
    amount = MOST + 1 if isinstance(value, Decimal) and value.adjusted() > DIGITS_MAX else int(value)
    if abs(amount) > MOST:
        raise _refuse(row, column, f"{value} is out of range: give 1 to {MOST} whole units")
    return amount


def _exact_below(kind: np.dtype[Any]) -> float:
    """Below this, a floating-point type has a number for every whole one; from it on, rounding cannot be seen."""
    return float(2.0 ** (np.finfo(kind).nmant + 1))


def _is_whole(value: Any) -> bool:
    """Whether a value counts units. The caller's decimal context has no say in it."""
    if isinstance(value, bool | np.timedelta64):
        return False
    if isinstance(value, int | np.integer):
        return True
    if isinstance(value, str):
        return value.isascii() and value.isdigit()
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return isinstance(value, float | np.floating) and bool(np.isfinite(value)) and value == np.floor(value)


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
    is_number = isinstance(value, int | float | Decimal | np.integer | np.floating)
    if isinstance(value, bool | np.timedelta64) or not is_number:
        raise _refuse(row, column, f"{value!r} is not a price: give a number, a Decimal or a text such as '1.25'")
    number = value if isinstance(value, Decimal) else Decimal(str(value))
    if not number.is_finite():
        raise _refuse(row, column, f"{value!r} is not a price: give a number above 0")
    if number and abs(number.adjusted()) > DIGITS_MAX:
        raise _refuse(row, column, f"{value!r} is out of range of any price")
    return format(number, "f")


def same(a: Any, b: Any) -> bool:
    """Whether two tables have the same columns and values, whatever their kind."""
    return _lists(a) == _lists(b)


def _lists(table: Any) -> dict[str, list[Any]]:
    names = getattr(table, "column_names", None) or list(table)
    columns = {name: table[name] for name in names}
    return {
        name: values.to_pylist() if hasattr(values, "to_pylist") else values.tolist() for name, values in columns.items()
    }
