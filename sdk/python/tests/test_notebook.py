"""The notebook runs from top to bottom, small, with the package alone, and its figures hold what they show."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALRAS_RESULTS", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(FOLDER / "figures.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}})
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    tables = [output["data"]["text/plain"] for output in outputs if output.output_type == "execute_result"]
    assert "tatonnement.cold_ms.p50" in tables[0]
    assert "unrealized" in tables[-1] or "is absent" in tables[-1]
    if os.environ.get("WALRAS_KEEP_NOTEBOOK"):
        nbformat.write(notebook, FOLDER / "figures.ipynb")
