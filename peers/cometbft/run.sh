#!/usr/bin/env bash
# CometBFT with its key-value store under its own load generator, and `walras-lab bench consensus`, in turn: four validators on
# this machine, blocks at least 50 ms apart, transactions of 250 bytes there and signed payments here, offered to all four.
# Medians of several runs for each rate, with the processor time of the validators. Their store checks no signatures and
# its transactions do nothing but set a key; ours are verified and applied, and the client's part counts for neither.
# usage: peers/cometbft/run.sh [RATES [SECONDS [RUNS]]]      (RATES: 1000,2000,4000)
set -euo pipefail
version=v0.38.26
here=$(cd "$(dirname "$0")" && pwd)
rates=${1:-1000,2000,4000} seconds=${2:-10} runs=${3:-3}
walras=$(realpath "${WALRAS_LAB:-$here/../../target/release/walras-lab}")
work=$(mktemp -d)
nodes=()
end() { [[ ${#nodes[@]} -eq 0 ]] || { kill "${nodes[@]}" && wait "${nodes[@]}"; } 2>/dev/null || true; nodes=(); }
trap 'end; rm -rf "$work"' EXIT

for program in cmd/cometbft test/loadtime/cmd/load test/loadtime/cmd/report; do
  GOBIN=$work go install "github.com/cometbft/cometbft/$program@$version" 2>"$work/build.log" ||
    { tail -20 "$work/build.log" >&2; exit 1; }
done

# Clock ticks that the nodes have used.
ticks() { for node in "${nodes[@]}"; do awk '{ print $14 + $15 }' "/proc/$node/stat"; done | awk '{ sum += $1 } END { print sum }'; }

# One run of theirs at a rate: transactions committed, seconds, ticks, and what their report says of latency.
theirs() {
  local home=$work/net peers='' one
  rm -rf "$home"
  "$work/cometbft" testnet --v 4 --o "$home" >/dev/null 2>&1
  for one in 0 1 2 3; do
    peers+=,$("$work/cometbft" show-node-id --home "$home/node$one")@127.0.0.1:$((27000 + one))
  done
  nodes=()
  for one in 0 1 2 3; do
    sed -i -e "s|tcp://127.0.0.1:26657|tcp://127.0.0.1:$((27100 + one))|" -e "s|tcp://0.0.0.0:26656|tcp://127.0.0.1:$((27000 + one))|" \
      -e "s|^persistent_peers = .*|persistent_peers = \"${peers#,}\"|" -e 's|^size = 5000|size = 200000|' \
      -e 's|^cache_size = .*|cache_size = 400000|' -e 's|^timeout_commit = .*|timeout_commit = "50ms"|' "$home/node$one/config/config.toml"
    "$work/cometbft" node --home "$home/node$one" --proxy_app kvstore --log_level error >"$work/node$one.log" 2>&1 &
    nodes+=($!)
  done
  until curl -fs http://127.0.0.1:27103/status | grep -q '"latest_block_height":"[2-9]'; do kill -0 "${nodes[@]}"; sleep 0.2; done
  local before; before=$(ticks)
  local ends=ws://127.0.0.1:27100/websocket
  for one in 1 2 3; do ends+=,ws://127.0.0.1:$((27100 + one))/websocket; done
  "$work/load" -c 1 -T "$seconds" -r $((${1} / 4)) -s 250 --endpoints "$ends" >"$work/load.log" 2>&1 || { tail "$work/load.log" >&2; exit 1; }
  # What is left is committed, until ten blocks in a row have no transaction, or for half a minute: what is not committed
  # by then counts as not committed.
  python3 - "$work/committed" <<'PY'
import json, sys, time, urllib.request
from datetime import datetime

ask = lambda path: json.load(urllib.request.urlopen(f"http://127.0.0.1:27100/{path}"))["result"]
height = lambda: int(ask("status")["sync_info"]["latest_block_height"])
blocks, next_height, quiet, end = [], 1, 0, time.monotonic() + 30
while quiet < 10 and time.monotonic() < end:
    time.sleep(0.1)
    last, found = height(), []
    while next_height <= last:
        top = min(last, next_height + 19)
        metas = ask(f"blockchain?minHeight={next_height}&maxHeight={top}")["block_metas"]
        found += [(meta["header"]["time"], int(meta["num_txs"])) for meta in metas]
        next_height = top + 1
    blocks += found
    for _, count in found:
        quiet = 0 if count else quiet + 1
full = sorted((datetime.fromisoformat(time[:26].rstrip("Z") + "+00:00"), count) for time, count in blocks if count)
print(sum(count for _, count in full), (full[-1][0] - full[0][0]).total_seconds(), file=open(sys.argv[1], "w"))
PY
  local used=$(($(ticks) - before))
  end
  local average; average=$("$work/report" --data-dir "$home/node0/data" | awk '/Average Latency/ { print $3 }')
  echo "$(cat "$work/committed") $used $average" >>"$work/theirs-$1"
}

for ((turn = 0; turn < runs; turn++)); do
  for rate in ${rates//,/ }; do
    theirs "$rate"
    "$walras" bench consensus --validators 4 --rate "$rate" --seconds "$seconds" --json >"$work/ours-$rate-$turn.json" 2>/dev/null
  done
done

python3 - "$work" "$rates" "$runs" "$(getconf CLK_TCK)" "$seconds" <<'PY'
import json, re, statistics, sys

work, rates = sys.argv[1], sys.argv[2].split(",")
runs, clock, seconds = map(int, sys.argv[3:])
median = lambda values: round(statistics.median(values), 1)


def milliseconds(text):
    number, unit = re.fullmatch(r"([0-9.]+)(ms|s|µs|m.*)", text).groups()
    return float(number) * {"ms": 1, "s": 1e3, "µs": 1e-3}[unit]


for rate in rates:
    theirs = [line.split() for line in open(f"{work}/theirs-{rate}")]
    ours = [json.load(open(f"{work}/ours-{rate}-{turn}.json"))["runs"][0] for turn in range(runs)]
    spent = lambda run: 4 * sum(run["processor_us_per_transaction_and_validator"].values())
    print(json.dumps({
        "offered_per_second": int(rate),
        "cometbft": {
            "committed_per_second": median(int(run[0]) / max(float(run[1]), seconds) for run in theirs),
            "validators_us": median(int(run[2]) / clock * 1e6 / int(run[0]) for run in theirs),
            "average_ms": median(milliseconds(run[3]) for run in theirs),
        },
        "walras": {
            "committed_per_second": median(run["transactions_per_second"] for run in ours),
            "validators_us": median(map(spent, ours)),
            "p50_ms": median(run["commit_ms"]["p50"] for run in ours),
        },
    }))
PY
