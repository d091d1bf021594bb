#!/usr/bin/env bash
# FastPay's own benchmark and `walras-lab bench payments-lane` in turn: four validators of one shard each and a load generator
# that signed everything beforehand, all on this machine. Medians of several runs, with the processor time of both sides. Of
# the lane those of payments of settled money, and of settlements: FastPay's accounts have settled money alone.
# Its servers listen on every address, so that everything runs in a network of its own, which has loopback only.
# usage: peers/fastpay/run.sh FOLDER [PAYMENTS [RUNS [IN_FLIGHT]]]      (FOLDER: with the programs `server` and `client` of FastPay db39bb0)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ -n ${ALONE:-} ]] || ALONE=yes exec unshare --map-root-user --net bash "$0" "$@"
ip link set lo up
bin=$(realpath "${1:?a folder with the programs server and client of FastPay; see peers/README.md}")
shift
payments=${1:-3000} runs=${2:-3} window=${3:-200}
walras=${WALRAS_LAB:-$here/../../target/release/walras-lab}
work=$(mktemp -d)
servers=()
end() { kill "${servers[@]}" 2>/dev/null || true; }
trap 'end; rm -rf "$work"' EXIT

# Clock ticks that a process has used.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
all_ticks() { local sum=0; for server in "${servers[@]}"; do sum=$((sum + $(ticks "$server"))); done; echo "$sum"; }

# One run of theirs in an empty folder: orders/s, confirmations/s, ticks of the servers, seconds of the client.
theirs() {
  local at=$work/run; rm -rf "$at"; mkdir "$at"; cd "$at"; servers=()
  for one in 1 2 3 4; do
    "$bin/server" --server "server$one.json" generate --protocol Tcp --host 127.0.0.1 --port "9${one}00" --shards 1 \
      >>committee.json 2>>log
  done
  "$bin/client" --committee committee.json --accounts accounts.json create_accounts "$payments" --initial-funding 100 \
    >accounts.txt 2>>log
  for one in 1 2 3 4; do
    "$bin/server" --server "server$one.json" run --initial-accounts accounts.txt --committee committee.json 2>>log &
    servers+=($!)
  done
  for one in 1 2 3 4; do
    until (: <"/dev/tcp/127.0.0.1/9${one}00") 2>/dev/null; do kill -0 "${servers[@]}" || exit 1; sleep 0.1; done
  done
  local before; before=$(all_ticks)
  TIMEFORMAT='client %U %S'
  { time "$bin/client" --committee committee.json --accounts accounts.json benchmark --max-in-flight "$window" 2>client.log
  } 2>client.time
  local used=$(($(all_ticks) - before))
  end; wait "${servers[@]}" 2>/dev/null || true
  grep -q "valid confirmations for $payments transfers" client.log || { tail -5 client.log >&2; exit 1; }
  local order confirm client
  order=$(sed -nE 's/.*throughput: ([0-9]+) transfer orders.*/\1/p' client.log)
  confirm=$(sed -nE 's/.*throughput: ([0-9]+) confirmation orders.*/\1/p' client.log)
  client=$(awk '/^client/ { print $2 + $3 }' client.time)
  echo "$order $confirm $used $client" >>"$work/theirs"
  cd "$here"
}

for ((turn = 0; turn < runs; turn++)); do
  theirs
  "$walras" bench payments-lane --validators 4 --payments "$payments" --window "$window" --leaves 1,256 --tls off --json \
    >"$work/ours-$turn.json" 2>/dev/null
done

python3 - "$work" "$payments" "$runs" "$(getconf CLK_TCK)" "$window" <<'PY'
import json, statistics, sys

work, payments, runs, clock, window = sys.argv[1], *map(int, sys.argv[2:])
theirs = [list(map(float, line.split())) for line in open(f"{work}/theirs")]
ours = [json.load(open(f"{work}/ours-{turn}.json"))["runs"] for turn in range(runs)]
together = lambda *rates: 1 / sum(1 / rate for rate in rates)


def used(phase):
    times = phase["processor_us_per_payment"]
    return 4 * sum(time for name, time in times.items() if name != "client"), times["client"]


def of(leaves):
    # A plain run: the other variants repeat the last number of leaves.
    found = [next(run for run in all if run["leaves"] == leaves and run["load"] == "presigned" and run["roots"] == "warm")
             for all in ours]
    median = lambda value: round(statistics.median(map(value, found)))
    # As theirs: an order of money that is settled, and its confirmation.
    both = [lambda run, side=side: used(run["from_settled"])[side] + used(run["settlement"])[side] for side in (0, 1)]
    rate = lambda run: together(run["from_settled"]["payments_per_second"], run["settlement"]["payments_per_second"])
    return {
        "leaves": leaves,
        "payments_per_second": median(lambda run: run["from_settled"]["payments_per_second"]),
        "settled_per_second": median(rate),
        "validators_us": median(both[0]),
        "client_us": median(both[1]),
    }


fastpay = {
    "settled_per_second": round(statistics.median(together(run[0], run[1]) for run in theirs)),
    "orders_per_second": round(statistics.median(run[0] for run in theirs)),
    "confirmations_per_second": round(statistics.median(run[1] for run in theirs)),
    "validators_us": round(statistics.median(run[2] / clock * 1e6 / payments for run in theirs)),
    "client_us": round(statistics.median(run[3] * 1e6 / payments for run in theirs)),
}
print(json.dumps({"payments": payments, "runs": runs, "in_flight": window, "fastpay": fastpay, "walras": [of(1), of(256)]}))
PY
