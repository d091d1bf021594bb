"""Gives readers and writers of formats in Python what Walras writes, prints a row for each, and leaves files for JavaScript.

usage: by_python.py FOLDER
"""

import sys
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(sys.argv[1])
LARGE = 9_007_199_254_740_993


def row(tool: str, told: str, do: str) -> None:
    print(f"| {tool} {version(tool)} (Python) | {told} | {do} |")


def by_nautilus_trader() -> None:
    from nautilus_trader.model.objects import Price, Quantity

    def read(kind: type, text: str) -> str:
        try:
            return "exact" if str(kind.from_str(text)) == text else f"{kind.from_str(text)}"
        except ValueError:
            return "ValueError"

    asked = [(Quantity, "9223372036854775807"), (Quantity, "9007199254740.993"), (Price, "0.12345678901234567")]
    told = ", ".join(f"`{kind.__name__}.from_str('{text}')`: {read(kind, text)}" for kind, text in asked)
    row("nautilus_trader", told, "give decimals of the asset, not units, and prices of at most 16 places")


def by_simplefix() -> None:
    import simplefix

    message = simplefix.FixMessage()
    for value in (1e-7, 1e16):
        message.append_pair(38, value)
    floats = " and ".join(message.get(38, nth=nth).decode() for nth in (1, 2))
    message = simplefix.FixMessage()
    message.append_pair(8, "FIX.4.4")
    message.append_pair(35, "B")
    message.append_data(95, 96, "a\x01b")
    parser = simplefix.FixParser()
    parser.append_buffer(message.encode())
    is_read = parser.get_message().get(96) == b"a\x01b"
    reads = "reads" if is_read else "does not read"
    row("simplefix", f"{reads} data with separators in it; writes the floats 1e-7 and 1e16 as {floats}", "give numbers as text")


def by_opentelemetry() -> None:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from opentelemetry.sdk.metrics import MeterProvider
    from prometheus_client import REGISTRY, generate_latest

    meter = MeterProvider([PrometheusMetricReader()]).get_meter("x")
    meter.create_counter("units").add(LARGE)
    shown = [line.split()[-1] for line in generate_latest(REGISTRY).decode().splitlines() if line.startswith("units_total")]
    told = f"a counter of {LARGE} is shown as {shown[0]}"
    row("opentelemetry-exporter-prometheus", told, "take exact sums from the interface")


def by_hdrhistogram() -> None:
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(1, 3_600_000_000, 3)
    for value in range(1, 10_001):
        histogram.record_value(value * 17)
    (FOLDER / "histogram").write_bytes(histogram.encode())
    figures = [histogram.get_value_at_percentile(at) for at in (50, 99, 99.9)] + [histogram.get_max_value()]
    (FOLDER / "figures").write_text(" ".join(str(figure) for figure in figures))


def write_parquet() -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {
        "signed": pyarrow.array([LARGE, -LARGE], pyarrow.int64()),
        "unsigned": pyarrow.array([2**63 + 5, LARGE], pyarrow.uint64()),
        "decimal": pyarrow.array([Decimal("0.10"), Decimal("90071992547409.93")], pyarrow.decimal128(38, 2)),
    }
    parquet.write_table(pyarrow.table(columns), FOLDER / "numbers.parquet", compression="snappy")


print("| tool | what it does | what to do |")
print("|---|---|---|")
for tool in (by_nautilus_trader, by_simplefix, by_opentelemetry, by_hdrhistogram, write_parquet):
    tool()
