#!/bin/sh
# quickfix-tls 1.16.0.1rc1 (PyPI, QuickFIX 1.16 as a wheel): a large quantity is written with an exponent, which it cannot read.
#
# `OrderQty(9007199254740993)` becomes `38=9.00719925474099e15`: fifteen digits and an exponent. FIX permits neither, and the
# package's own reader answers IncorrectDataFormat. Small numbers have no exponent (1e-12 is `0.000000000001`).
# A text that is set instead (`setString`, or `setField` of a number and a text) passes unchanged.
# Seen on 30 November 2026:
#   quickfix-tls 1.16.0.1rc1: 9007199254740993 is written as 9.00719925474099e15, and read back as IncorrectDataFormat; as a text
#   it stays 9007199254740993
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check quickfix-tls==1.16.0.1rc1
cat >"$folder/run.py" <<'PYTHON'
import sys

import quickfix

QUANTITY = 9007199254740993
written = quickfix.OrderQty(QUANTITY).getString()


def read_back(text):
    field = quickfix.OrderQty()
    field.setString(text)
    try:
        return f"{field.getValue():.0f}"
    except Exception as error:
        return type(error).__name__


message = quickfix.Message()
message.setField(38, str(QUANTITY))
as_text = message.getField(38)
print(f"quickfix-tls 1.16.0.1rc1: {QUANTITY} is written as {written}, and read back as {read_back(written)}; as a text")
print(f"it stays {as_text}")
is_so = "e" in written and read_back(written) == "IncorrectDataFormat" and as_text == str(QUANTITY)
sys.exit(0 if is_so else 1)
PYTHON
"$folder/venv/bin/python" "$folder/run.py"
