"""The notebook runs from top to bottom: small, with the package alone, and on what `walras bench` has measured."""

import os
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "sdk" / "python" / "notebooks"
DATA = Path(os.environ.get("WALRAS_DATA", ROOT.parent / "shared" / "data")) / "coingecko"


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
    assert "tatonnement.cold_ms.p50" in tables[0] and "10000" in tables[0]
    assert "unrealized" in tables[-1] or "is absent" in tables[-1]
    if os.environ.get("WALRAS_KEEP_NOTEBOOK"):
        nbformat.write(notebook, FOLDER / "figures.ipynb")


@pytest.mark.filterwarnings("ignore")
def test_on_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = ROOT / "target" / "debug" / "walras"
    if not binary.exists():
        pytest.skip(f"{binary} is not built")
    suites = {"scaling": ["--most", "1000"], "figure2": ["--most", "100"]}
    if DATA.is_dir():
        suites["coingecko"] = ["--data", str(DATA)]
    for suite, more in suites.items():
        bench = [binary, "bench", "clearing", "--json", "--books", "2", "--suite", suite, *more]
        (tmp_path / f"{suite}.json").write_bytes(subprocess.run(bench, check=True, capture_output=True).stdout)
    _, tables = run(tmp_path, monkeypatch)
    assert "1000 " in tables[0] and "10000" not in tables[0]
    assert "clear_ms" in tables[-1] or not DATA.is_dir()
