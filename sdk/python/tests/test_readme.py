"""The examples of the README run as they stand, those of the client against a running exchange."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import Demo, venue_of

CODE = re.findall(r"```python\n(.*?)```", (Path(__file__).parent.parent / "README.md").read_text(), re.DOTALL)


def printed(code: str, known: dict[str, Any]) -> str:
    """What a piece of code prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), known)
    return out.getvalue()


def test_the_example_of_the_solver_runs() -> None:
    told = printed(CODE[0], {})
    assert "'EUR': Decimal(" in told and "500000 USD at 148.5 JPY or better: " in told


def test_the_examples_of_the_client_run(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Any] = {}
    venue_of(demo)
    monkeypatch.chdir(tmp_path)
    told = [printed(code.replace("http://127.0.0.1:8080", demo.url), known) for code in CODE[1:]]
    assert len(told) == 6
    assert "executed" in told[0] and "overdraft the account cannot pay" in told[1] and "6 places" in told[1]
    assert re.fullmatch(r"live \d+\.?\d*\n\[1\] executed\n", told[2]), told[2]
    # A demo that has run for long keeps its first blocks no more, and says so.
    from_the_first, from_the_kept = r"1 \[.*\n2 \[.*\n3 \[", r"the node no longer keeps 1 \d+\n\d+ \["
    assert re.search(f"^({from_the_first}|{from_the_kept})", told[3], re.MULTILINE), told[3]
    assert told[4] == "['open', 'open', 'open'] 10.000000\n3 cancelled; executed\n", told[4]
    assert told[5].startswith("open [[")
