#!/bin/sh
# clientele 2.3.1 (PyPI): a client whose schemas name a choice before its members cannot be imported.
#
# A schema that is one of two others becomes the line `Answer = Order | Trade` where the schema stands. If it stands before the two,
# as in alphabetical order, the module raises NameError when it is imported. The generator says that the client is generated.
# Seen on 30 November 2026:
#   clientele 2.3.1: generated; importing it: NameError: name 'Order' is not defined; with the choice last: imported
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'clientele[cli]==2.3.1'
cat >run.py <<'PYTHON'
import json
import subprocess
import sys

choice = {"Answer": {"oneOf": [{"$ref": "#/components/schemas/Order"}, {"$ref": "#/components/schemas/Trade"}]}}
members = {
    name: {"type": "object", "required": [field], "properties": {field: {"type": "string"}}}
    for name, field in (("Order", "price"), ("Trade", "amount"))
}


def fate(name, schemas):
    answer = {"description": "x", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "x", "version": "1"},
        "paths": {"/x": {"get": {"operationId": "get_x", "responses": {"200": answer}}}},
        "components": {"schemas": schemas},
    }
    json.dump(document, open(f"{name}.json", "w"))
    command = ["venv/bin/clientele", "start-api", "-f", f"{name}.json", "-o", name, "--regen"]
    subprocess.run(command, check=True, capture_output=True)
    imported = subprocess.run([sys.executable, "-c", f"import {name}.client"], capture_output=True, text=True)
    return "imported" if imported.returncode == 0 else imported.stderr.strip().splitlines()[-1]


first, last = fate("choice_first", choice | members), fate("choice_last", members | choice)
print(f"clientele 2.3.1: generated; importing it: {first}; with the choice last: {last}")
sys.exit(0 if first.startswith("NameError") and last == "imported" else 1)
PYTHON
venv/bin/python run.py
