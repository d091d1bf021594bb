#!/bin/sh
# Starts a demo exchange on a free port, drives its page in the browser, and stops it.
# Usage: web/tests/with-demo.sh path/to/walras
set -eu

walras=$(realpath "${1:?usage: with-demo.sh path/to/walras}")
cd "$(dirname "$0")/.."
log=$(mktemp)

"$walras" demo --listen 127.0.0.1:0 >"$log" 2>&1 &
demo=$!
stop() {
    # Tests that fail because nobody answers do not say why the demo ended.
    if ! kill -0 "$demo" 2>/dev/null; then
        echo "the demo ended before its tests did; its last words:" >&2
        tail -n 40 "$log" >&2
    fi
    kill -INT "$demo" 2>/dev/null || true
    wait "$demo" 2>/dev/null || true
    rm -f "$log"
}
trap stop EXIT
trap 'exit 130' INT TERM

address() { sed -n 's|^Walras is running: \(http://[^ ]*\).*|\1|p' "$log"; }
until [ -n "$(address)" ]; do
    if ! kill -0 "$demo" 2>/dev/null; then
        echo "the demo ended before it was running:" >&2
        cat "$log" >&2
        exit 1
    fi
    sleep 0.2
done
if grep -q "page is not in this binary" "$log"; then
    echo "$walras was built without the page: run 'make page' and build it again" >&2
    exit 1
fi

WALRAS_URL=$(address) npx vitest run tests/page.test.ts tests/terminal.test.ts tests/trading.test.ts
