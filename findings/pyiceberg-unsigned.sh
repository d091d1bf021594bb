#!/bin/sh
# PyIceberg 0.12.0 with PyArrow 26.0.1 (PyPI) makes a signed column of an unsigned one, and then refuses its rows without a name.
#
# Apache Iceberg has no unsigned integers. `create_table` takes a column of 64 bits without a sign as `long`, without a word. Rows
# above 2^63 - 1 are refused when they are appended, by an error that names neither the column nor the value, and so is
# a finished file (`add_files`). A reader of the error cannot tell which of the columns it is about.
# Seen on 29 November 2026:
#   PyIceberg 0.12.0: uint64 becomes long; append: error 'argument out of range'; add_files: error 'argument out of range'
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'pyiceberg[sql-sqlite]==0.12.0' pyarrow==26.0.1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys

import pyarrow
import pyarrow.parquet
from pyiceberg.catalog.sql import SqlCatalog

FOLDER = sys.argv[1]
ROWS = pyarrow.table({"offer": pyarrow.array([2**63 + 5, 7], pyarrow.uint64())})


def fate(action, argument):
    try:
        action(argument)
        return "done"
    except Exception as error:
        return f"{type(error).__name__} '{error}'"


catalog = SqlCatalog("local", uri=f"sqlite:///{FOLDER}/catalog.db", warehouse=f"file://{FOLDER}")
catalog.create_namespace("n")
table = catalog.create_table("n.appended", schema=ROWS.schema)
kind = str(table.schema().find_type("offer"))
appended = fate(table.append, ROWS)
pyarrow.parquet.write_table(ROWS, f"{FOLDER}/rows.parquet")
added = fate(catalog.create_table("n.added", schema=ROWS.schema).add_files, [f"{FOLDER}/rows.parquet"])
print(f"PyIceberg 0.12.0: uint64 becomes {kind}; append: {appended}; add_files: {added}")
wanted = "error 'argument out of range'"
sys.exit(0 if (kind, appended, added) == ("long", wanted, wanted) else 1)
PYTHON
