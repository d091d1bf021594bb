"""The example of the README runs as it stands."""

import contextlib
import io
import re
from pathlib import Path


def test_the_example_runs() -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert "'EUR': Decimal(" in printed.getvalue() and "500000 USD at 148.5 JPY or better: " in printed.getvalue()
