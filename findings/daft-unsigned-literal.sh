#!/bin/sh
# daft 0.7.26 (PyPI): SQL that asks for one unsigned number above 2^63 finds its neighbours, too.
#
# Of a column of UInt64, `where n = 9223372036854775813` gives that row and the one whose number is greater by one, and a third that
# is smaller by five: the text of the number becomes a floating-point number, and the column with it. The same question as an
# expression (`daft.col("n") == 9223372036854775813`) gives one row. No error and no warning tells them apart.
# Seen on 30 November 2026:
#   daft 0.7.26: SQL finds 9223372036854775808, 9223372036854775813, 9223372036854775814; an expression finds 9223372036854775813
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check daft==0.7.26 pyarrow==25.0.1
cat >"$folder/run.py" <<'PYTHON'
import sys

import daft
import pyarrow

ASKED = 2**63 + 5
table = daft.from_arrow(pyarrow.table({"n": pyarrow.array([7, 2**63, ASKED, ASKED + 1], pyarrow.uint64())}))


def numbers(frame):
    return sorted(frame.to_pydict()["n"])


by_text = numbers(daft.sql(f"select n from t where n = {ASKED}", t=table))
by_expression = numbers(table.where(daft.col("n") == ASKED))
listed = ", ".join(map(str, by_text))
print(f"daft {daft.__version__}: SQL finds {listed}; an expression finds {', '.join(map(str, by_expression))}")
sys.exit(0 if by_text == [2**63, ASKED, ASKED + 1] and by_expression == [ASKED] else 1)
PYTHON
DAFT_PROGRESS_BAR=0 DO_NOT_TRACK=true "$folder/venv/bin/python" "$folder/run.py"
