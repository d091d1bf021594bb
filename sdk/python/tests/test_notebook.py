"""The notebook runs from top to bottom: small, with the package alone, and on what `walras-lab bench` has measured."""

import json
import os
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
SOLVERS = ["newton", "tatonnement"]
FOLDER = ROOT / "sdk" / "python" / "notebooks"
DATA = Path(os.environ.get("WALRAS_DATA", ROOT.parent / "shared" / "data")) / "coingecko"


def columns(table: str) -> dict[str, list[str]]:
    """The cells of a printed table by their columns, which pandas folds into blocks."""
    cells = {}
    for block in table.split("\n\n"):
        head, *rows = [line.rstrip(" \\").split() for line in block.splitlines() if line.strip()]
        cells |= {name: [row[place + 1] for row in rows] for place, name in enumerate(head)}
    return cells


def run(results: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[nbformat.NotebookNode, list[str]]:
    """The notebook after it has run, and the tables that it shows."""
    monkeypatch.setenv("WALRAS_RESULTS", str(results))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(FOLDER / "figures.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    return notebook, [output["data"]["text/plain"] for output in outputs if output.output_type == "execute_result"]


@pytest.mark.filterwarnings("ignore")
def test_with_the_package_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook, tables = run(tmp_path, monkeypatch)
    scaling = columns(tables[0])
    assert [float(offers) for offers in scaling["offers"]] == [300, 1_000, 3_000, 10_000]
    assert scaling["newton.full"] == ["1"] * 4, "Newton clears every batch of the workload"
    assert all(float(time) > 0 for solver in SOLVERS for time in scaling[f"{solver}.cold_ms.p50"])
    assert ("unrealized" in tables[-1]) == DATA.is_dir(), tables[-1]
    if os.environ.get("WALRAS_KEEP_NOTEBOOK"):
        nbformat.write(notebook, FOLDER / "figures.ipynb")


@pytest.mark.filterwarnings("ignore")
def test_on_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = ROOT / "target" / "debug" / "walras-lab"
    if not binary.exists():
        pytest.skip(f"{binary} is not built")
    suites = {"scaling": ["--most", "1000"], "figure2": ["--most", "100"]}
    if DATA.is_dir():
        suites["coingecko"] = ["--data", str(DATA)]
    for suite, more in suites.items():
        bench = [binary, "bench", "clearing", "--json", "--books", "2", "--suite", suite, *more]
        (tmp_path / f"{suite}.json").write_bytes(subprocess.run(bench, check=True, capture_output=True).stdout)
    _, tables = run(tmp_path, monkeypatch)
    measured = {suite: json.loads((tmp_path / f"{suite}.json").read_text())["rows"] for suite in suites}
    scaling = columns(tables[0])
    assert [float(offers) for offers in scaling["offers"]] == [row["offers"] for row in measured["scaling"]]
    for solver in SOLVERS:
        times = [row[solver]["cold_ms"]["p50"] for row in measured["scaling"]]
        shown = [float(time) for time in scaling[f"{solver}.cold_ms.p50"]]
        assert shown == pytest.approx(times, abs=0.001), "the table shows what was measured"
    assert ("clear_ms" in tables[-1]) == DATA.is_dir(), tables[-1]
