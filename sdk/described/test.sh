#!/bin/sh
# The node at WALRAS_HTTP against what it says of itself: documents that validate, clients that public generators make of
# them, and requests that schemathesis makes, the same ones each time.
set -eu
cd "$(dirname "$0")"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
.venv/bin/schemathesis --config-file ../../docs/schemathesis.toml run "$WALRAS_HTTP/v1/openapi.json" \
    --max-examples 3 --generation-deterministic --no-color --suppress-health-check all >"$log" 2>&1 &
requests=$!
failed=0
node --test --test-reporter=spec described.test.mjs || failed=1
wait "$requests" || { failed=1; cat "$log"; }
grep -E "Tested|generated" "$log"
exit "$failed"
