#!/bin/sh
# beancount 3.2.3 (PyPI): an exchange of whole units at a total price does not balance.
#
# `3 EUR @@ 10 USD` against `-10 USD` is refused: "Transaction does not balance: (-0.000000000000000000000000001 USD)". The total
# becomes a price of one unit, 3.333333333333333333333333333, and the weight of the posting is its product with 3. Whole amounts
# leave no tolerance. With cents written (`10.00 USD`) half a cent is tolerated, and the same exchange passes.
# Seen on 30 November 2026:
#   beancount 3.2.3: 3 EUR @@ 10 USD weighs 9.999999999999999999999999999 USD, 1 error; with 10.00 USD: 0 errors
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check beancount==3.2.3
cat >"$folder/run.py" <<'PYTHON'
import sys

import beancount
from beancount import loader
from beancount.core import convert


def errors_and_weight(dollars):
    text = f"""
2026-01-01 open Assets:Euros
2026-01-01 open Assets:Dollars
2026-01-02 * "exchange"
  Assets:Euros     3 EUR @@ {dollars} USD
  Assets:Dollars  -{dollars} USD
"""
    entries, errors, _ = loader.load_string(text)
    return len(errors), convert.get_weight(entries[-1].postings[0])


(errors, weight), (with_cents, _) = errors_and_weight("10"), errors_and_weight("10.00")
print(
    f"beancount {beancount.__version__}: 3 EUR @@ 10 USD weighs {weight}, {errors} error; with 10.00 USD: {with_cents} errors"
)
sys.exit(0 if (errors, with_cents) == (1, 0) and str(weight).startswith("9.999") else 1)
PYTHON
"$folder/venv/bin/python" "$folder/run.py"
