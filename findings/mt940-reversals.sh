#!/bin/sh
# mt-940 5.1.1 (PyPI): a reversed credit of a bank's statement adds to the account, and a reversed debit adds, too.
#
# In field 61 of SWIFT's MT940 the mark RC is the reversal of a credit, which takes money out, and RD the reversal of a
# debit, which brings it back. The amounts of D are negative here, and those of RC are not. So the amounts of a statement
# do not lead from its opening balance to its closing one.
# Seen on 29 November 2026:
#   mt-940 5.1.1: C 10.00, D -3.00, RC 10.00, RD 3.00; the sum is 20.00, and the balance rose by 0.00
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mt-940==5.1.1
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import mt940

statement = mt940.parse(
    """:20:START
:25:10020030/1234567
:28C:1/1
:60F:C261101EUR1000,00
:61:2611021102C10,00NTRFNONREF//A1
:61:2611021102D3,00NTRFNONREF//A2
:61:2611021102RC10,00NTRFNONREF//A3
:61:2611021102RD3,00NTRFNONREF//A4
:62F:C261102EUR1000,00
"""
)
amounts = [(line.data["status"], line.data["amount"].amount) for line in statement]
total = sum(amount for _, amount in amounts)
opening, closing = (statement.data[f"final_{which}_balance"].amount.amount for which in ("opening", "closing"))
told = ", ".join(f"{mark} {amount}" for mark, amount in amounts)
print(f"mt-940 5.1.1: {told}; the sum is {total}, and the balance rose by {closing - opening}")
sys.exit(0 if (total, closing) == (20, opening) and dict(amounts)["RC"] == 10 else 1)
PYTHON
