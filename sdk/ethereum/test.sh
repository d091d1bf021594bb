#!/bin/sh
# Runs every client against the node at WALRAS_ETHEREUM, side by side: each has accounts of its own.
set -eu
cd "$(dirname "$0")"

.venv/bin/python -m pytest --quiet -p no:cacheprovider web3_test.py &
python=$!
failed=0
node --test committed.test.mjs viem.test.mjs ethers.test.mjs offers.test.mjs || failed=1
wait "$python" || failed=1
# Their accounts are those of others.
node --test --test-concurrency=1 tutorial.test.mjs typed-data.test.mjs foundry.test.mjs rpc-compat.test.mjs || failed=1
exit "$failed"
