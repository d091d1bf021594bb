"""Data frames of what the client returns: a row for each entry, a column for each field. Fields of a field, such as
`asked.price`, are columns of both names: `asked_price`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["to_pandas", "to_polars"]


def _columns(entries: Iterable[Any], exact: bool) -> dict[str, list[Any]]:
    rows = list(entries)
    if not rows:
        return {}

    def cell(value: Any) -> Any:
        return float(value) if isinstance(value, Decimal) and not exact else value

    columns: dict[str, list[Any]] = {}
    for one in fields(rows[0]):
        values = [getattr(row, one.name) for row in rows]
        inner = next((value for value in values if is_dataclass(value)), None)
        if inner is None:
            columns[one.name] = [cell(value) for value in values]
            continue
        for part in fields(inner):
            parts = [None if value is None else cell(getattr(value, part.name)) for value in values]
            columns[f"{one.name}_{part.name}"] = parts
    return columns


def to_pandas(entries: Iterable[Any], exact: bool = True) -> pandas.DataFrame:
    """A pandas data frame of candles, offers, balances, trades or other entries. Times in milliseconds become
    timestamps in a column `time`. With `exact=False` decimals become floats, for plotting."""
    import pandas

    frame = pandas.DataFrame(_columns(entries, exact))
    if "time_ms" in frame:
        frame["time"] = pandas.to_datetime(frame["time_ms"], unit="ms", utc=True)
    return frame


def to_polars(entries: Iterable[Any], exact: bool = True) -> polars.DataFrame:
    """The same for polars; decimals become its decimals of 18 places, or floats."""
    import polars

    columns = _columns(entries, exact)
    places = polars.Decimal(38, 18)
    made = []
    for name, cells in columns.items():
        is_decimal = any(isinstance(cell, Decimal) for cell in cells)
        made.append(polars.Series(name, cells, dtype=places) if is_decimal else polars.Series(name, cells))
    frame = polars.DataFrame(made)
    if "time_ms" in columns:
        frame = frame.with_columns(polars.from_epoch("time_ms", time_unit="ms").alias("time"))
    return frame
