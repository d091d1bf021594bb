#!/bin/sh
# Runs the clients' developers' methods against the node at WALRAS_ETHEREUM, one after another: each goes back to states
# of its own.
set -eu
cd "$(dirname "$0")"

node --test developer.test.mjs
.venv/bin/python -m pytest --quiet -p no:cacheprovider web3_developer_test.py
.boa/bin/python -m pytest --quiet -p no:cacheprovider boa_test.py
if command -v go >/dev/null; then
    (cd go && go test -count=1 ./...)
else
    echo "Go is missing: go-ethereum's client is not tested."
fi
