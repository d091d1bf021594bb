#!/usr/bin/env bash
# anvil, geth's developers' chain and `walras demo --developer` in turn, one after another on this machine, under the same
# script: a transaction that waits for its receipt, then transfers and transfers of a token, all signed beforehand, from
# ten accounts by JSON-RPC calls of fifty. Medians of several runs, with the processor time of the node.
# usage: peers/ethereum/run.sh [TRANSACTIONS [RUNS]]
set -euo pipefail
anvil_version=1.7.1 geth_version=v1.17.10
here=$(cd "$(dirname "$0")" && pwd)
transactions=${1:-5000} runs=${2:-3}
walras=$(realpath "${WALRAS:-$here/../../target/release/walras}")
clients=$here/../../sdk/ethereum
work=$(mktemp -d)
node=
end() { [[ -z $node ]] || { kill "$node" 2>/dev/null; wait "$node" 2>/dev/null; } || true; node=; }
trap 'end; rm -rf "$work"' EXIT

npm install --silent --prefix "$work" "@foundry-rs/anvil-linux-amd64@$anvil_version"
GOBIN=$work go install "github.com/ethereum/go-ethereum/cmd/geth@$geth_version" 2>"$work/build.log" ||
  { tail -20 "$work/build.log" >&2; exit 1; }
[[ -d $clients/node_modules ]] || npm ci --silent --prefix "$clients"
node --input-type=module - "$clients/compile.mjs" "$here/Token.sol" >"$work/token.json" <<'JS'
import { readFileSync } from "node:fs";
const { compile } = await import(process.argv[2]);
console.log(JSON.stringify(compile({ "Token.sol": { content: readFileSync(process.argv[3], "utf8") } }, "paris").Token));
JS

# Each node in an empty folder; blocks as transactions come. Limits of pools are raised above what is sent.
start() {
  local at=$work/$1-$2; mkdir "$at"
  case $1 in
    anvil) "$work/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil" --port 8945 --silent >"$at/log" 2>&1 & ;;
    geth) "$work/geth" --dev --http --http.port 8945 --datadir "$at/data" --ipcdisable --port 0 --nodiscover \
      --txpool.accountslots "$transactions" --txpool.globalslots $((10 * transactions)) \
      --txpool.accountqueue "$transactions" --txpool.globalqueue $((10 * transactions)) >"$at/log" 2>&1 & ;;
    walras) "$walras" demo --developer --listen 127.0.0.1:0 --ethereum-listen 127.0.0.1:8945 >"$at/log" 2>&1 & ;;
  esac
  node=$!
  until (: <"/dev/tcp/127.0.0.1/8945") 2>/dev/null; do kill -0 "$node" || { tail "$at/log" >&2; exit 1; }; sleep 0.1; done
}

for ((turn = 0; turn < runs; turn++)); do
  for one in anvil geth walras; do
    start "$one" "$turn"
    ETHERS=$(realpath "$clients")/ node "$here/load.mjs" http://127.0.0.1:8945 "$node" "$work/token.json" "$transactions" \
      >"$work/$one-$turn.json" || { tail "$work/$one-$turn/log" >&2; exit 1; }
    end
  done
done

python3 - "$work" "$runs" "$transactions" <<'PY'
import json, statistics, sys

work, runs, transactions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def median(found):
    if isinstance(found[0], dict):
        return {name: median([one[name] for one in found]) for name in found[0]}
    return round(statistics.median(found), 2)


rows = {one: median([json.load(open(f"{work}/{one}-{turn}.json")) for turn in range(runs)])
        for one in ["anvil", "geth", "walras"]}
print(json.dumps({"transactions": transactions, "runs": runs, **rows}))
PY
