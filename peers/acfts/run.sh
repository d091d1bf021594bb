#!/usr/bin/env bash
# acfts, the authors' code of Accept, and `walras-lab bench payments-lane` in turn: four validators of one shard each, trees of 64
# payments on both sides, and clients that sign as they pay, all on this machine. Medians of several runs, with the processor
# time of both sides.
# Its servers listen on every address, so that everything runs in a network of its own, which has loopback only.
# usage: peers/acfts/run.sh FOLDER [PAYMENTS [RUNS [CLIENTS [SECONDS]]]]      (FOLDER: acfts 376d9a7 with the programs `server` and, of
# its tests, `agents`, as peers/README.md says)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ -n ${ALONE:-} ]] || ALONE=yes exec unshare --map-root-user --net bash "$0" "$@"
ip link set lo up
acfts=$(realpath "${1:?a folder with acfts and its programs; see peers/README.md}")
shift
payments=${1:-20000} runs=${2:-3} clients=${3:-1200} seconds=${4:-30}
walras=${WALRAS_LAB:-$here/../../target/release/walras-lab}
work=$(mktemp -d)
servers=() agents=
end() { kill "${servers[@]}" $agents 2>/dev/null || true; }
trap 'end; rm -rf "$work"' EXIT

cd "$acfts"
python3 - topologies/merkleAWS4.json "$work/topology.json" >"$work/addresses" <<'PY'
import json, sys

topology = json.load(open(sys.argv[1]))
for place, server in enumerate(topology["Servers"]):
    server["Instances"] = [{"Net": "127.0.0.1", "Port": 6666 + place}]
    print(server["Key"]["PublicKey"])
json.dump(topology, open(sys.argv[2], "w"))
PY

# Clock ticks that a process has used.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
all_ticks() { local sum=0; for server in "${servers[@]}"; do sum=$((sum + $(ticks "$server"))); done; echo "$sum"; }

# One run of theirs. A server prints now and then: time in ms, signatures since it printed last.
theirs() {
  servers=()
  local number=0
  while read -r address; do
    bin/server --address "$address" --topology "$work/topology.json" --benchmark --merkle-pooling --merkle-pool-size 64 \
      >"$work/server-$number" 2>"$work/server-$number.err" &
    servers+=($!)
    until (: <"/dev/tcp/127.0.0.1/$((6666 + number))") 2>/dev/null; do kill -0 "${servers[@]}" || exit 1; sleep 0.1; done
    number=$((number + 1))
  done <"$work/addresses"
  bin/agents -test.run TestAgentsRPCFixed -test.timeout 0 "$work/topology.json" "$clients" >"$work/agents.log" 2>&1 &
  agents=$!
  # A third of the time to get going, and then what counts.
  sleep $((seconds / 3))
  local before client_before lines
  before=$(all_ticks) client_before=$(ticks "$agents") lines=$(cat "$work"/server-? | wc -l)
  sleep $((seconds * 2 / 3))
  echo "$(($(all_ticks) - before)) $(($(ticks "$agents") - client_before))" >"$work/ticks-$1"
  end; wait "${servers[@]}" "$agents" 2>/dev/null || true
  [[ $lines -gt 0 ]] || { tail -3 "$work/agents.log" >&2; exit 1; }
  mkdir "$work/theirs-$1"; mv "$work"/server-? "$work/theirs-$1"
  agents=
}

for ((turn = 0; turn < runs; turn++)); do
  theirs "$turn"
  "$walras" bench payments-lane --validators 4 --payments "$payments" --window "$clients" --leaves 64 --tls off --json \
    >"$work/ours-$turn.json" 2>/dev/null
done

python3 - "$work" "$runs" "$(getconf CLK_TCK)" "$seconds" "$clients" "$payments" <<'PY'
import json, statistics, sys

work = sys.argv[1]
runs, clock, seconds, clients, payments = map(int, sys.argv[2:])
ours = [json.load(open(f"{work}/ours-{turn}.json"))["runs"] for turn in range(runs)]


def signatures(turn):
    """Signatures a second of all servers, each between its first and its last line."""
    rate = 0
    for server in range(4):
        lines = [line.split(",") for line in open(f"{work}/theirs-{turn}/server-{server}") if line.count(",") == 2]
        assert "=" not in lines[0][0], "a line of figures"
        times, counts = [int(line[0]) for line in lines], [int(line[1]) for line in lines]
        rate += sum(counts[1:]) * 1e3 / (times[-1] - times[0])
    return rate


def used(run):
    times = run["from_certificates"]["processor_us_per_payment"]
    return 4 * sum(time for name, time in times.items() if name != "client"), times["client"]


def of(load):
    found = [next(run for run in all if run["load"] == load) for all in ours]
    median = lambda value: round(statistics.median(map(value, found)))
    return {
        "load": load,
        "payments_per_second": median(lambda run: run["from_certificates"]["payments_per_second"]),
        "validators_us": median(lambda run: used(run)[0]),
        "client_us": median(lambda run: used(run)[1]),
    }


# A payment of theirs has three signatures.
rates = [signatures(turn) / 3 for turn in range(runs)]
ticks = [list(map(int, open(f"{work}/ticks-{turn}").read().split())) for turn in range(runs)]
spent = lambda side: round(statistics.median(t[side] / clock / (seconds * 2 // 3) / r * 1e6 for t, r in zip(ticks, rates)))
acfts = {"load": "live", "payments_per_second": round(statistics.median(rates)), "validators_us": spent(0), "client_us": spent(1)}
print(json.dumps({"runs": runs, "clients": clients, "leaves": 64, "acfts": acfts, "walras": [of("live"), of("presigned")]}))
PY
