#!/bin/sh
# camt053-loader-mt940 0.0.23 (PyPI) and mt940-js 1.0.0 (npm): a reversed credit stays a credit.
#
# An entry of MT940 marked `RC` takes a credit back, and `RD` a debit. The loader turns RC into `CRDT` with a reversal indicator,
# and mt940-js into `isCredit: true` without one. In camt.053 a reversal with `CRDT` is that of a debit, and its amount is
# added. So the entries do not lead from the opening balance to the closing one.
# Seen on 30 November 2026:
#   camt053-loader-mt940 0.0.23: 1000 and its entries make 1089.75, the closing balance is 1070.25: +100.00 +40.00 -30.25 -20.00
#   mt940-js 1.0.0: +100 +40 -30.25 -20
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check camt053-loader-mt940==0.0.23 camt053==0.0.23
# mt940-js needs tslib, and does not say so.
npm install --silent --no-audit --no-fund mt940-js@1.0.0 tslib@2.8.1 >/dev/null
cat >statement.txt <<'TEXT'
:20:R
:25:DE89370400440532013000
:28C:1/1
:60F:C261101USD1000,00
:61:2611021102C100,00NTRFa//b
:61:2611021102RC40,00NTRFc//d
:61:2611021102RD30,25NTRFe//f
:61:2611021102D20,00NTRFg//h
:62F:C261102USD1070,25
TEXT
cat >run.py <<'PYTHON'
import sys
from decimal import Decimal

from camt053_loader_mt940 import parse_mt940

statement = parse_mt940(open("statement.txt").read()).statements[0]
signed = [Decimal(entry.amount) * (1 if entry.credit_debit_indicator == "CRDT" else -1) for entry in statement.entries]
reached = Decimal(statement.balances[0].amount) + sum(signed)
closing = Decimal(statement.balances[1].amount)
listed = " ".join(f"{amount:+}" for amount in signed)
print(f"camt053-loader-mt940 0.0.23: 1000 and its entries make {reached}, the closing balance is {closing}: {listed}")
sys.exit(0 if [entry.credit_debit_indicator for entry in statement.entries] == ["CRDT", "CRDT", "DBIT", "DBIT"] else 1)
PYTHON
cat >run.cjs <<'JAVASCRIPT'
const { readFileSync } = require("fs");
require("mt940-js")
  .read(readFileSync("statement.txt"))
  .then(([statement]) => {
    const signed = statement.transactions.map(({ isCredit, amount }) => `${isCredit ? "+" : "-"}${amount}`).join(" ");
    console.log(`mt940-js 1.0.0: ${signed}`);
    process.exit(signed === "+100 +40 -30.25 -20" ? 0 : 1);
  });
JAVASCRIPT
venv/bin/python run.py
node run.cjs
