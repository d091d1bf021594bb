#!/usr/bin/env bash
# pevm and the contract phase's executor on the same blocks over the same states, in turn, each beside its own sequential
# loop over revm. Medians of rounds; best blocks of 0.3 s.
# usage: peers/pevm/run.sh REPLAY [TRANSACTIONS [ROUNDS [THREADS]]]      (REPLAY: replay.rs with pevm 9cbd856, released; THREADS: 1,2)
set -euo pipefail
replay=$(realpath "${1:?the program made of replay.rs and pevm; see peers/README.md}")
shift
here=$(cd "$(dirname "$0")" && pwd)
transactions=${1:-10000} rounds=${2:-3} threads=${3:-1,2}
walras=${WALRAS_LAB:-$here/../../target/release/walras-lab}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

same=(--transactions "$transactions" --rounds "$rounds" --threads "$threads")
"$walras" bench evm "${same[@]}" --flow "$work/loads" >/dev/null
for load in payments token_transfers swaps hot_slot; do
  # shellcheck disable=SC2086
  "$replay" "$work/loads/$load.txt" "$rounds" ${threads//,/ } >"$work/$load.json"
done
"$walras" bench evm "${same[@]}" --json >"$work/ours.json" 2>/dev/null

python3 - "$work" "$threads" <<'PY'
import json, sys

work, threads = sys.argv[1], sys.argv[2].split(",")
ours = json.load(open(f"{work}/ours.json"))["runs"]
for load in ["payments", "token_transfers", "swaps", "hot_slot"]:
    theirs, mine = json.load(open(f"{work}/{load}.json")), ours[load]
    assert round(theirs["gas_per_transaction"]) == round(mine["gas_per_transaction"]), "another block"
    row = {"load": load, "gas_per_transaction": round(mine["gas_per_transaction"])}
    for name in ["sequential", *threads]:
        row[name] = {"pevm_us": theirs[name]["us"], "pevm_processor_us": theirs[name]["processor_us"],
                     "walras_us": round(mine["us_per_transaction"][name], 3)}
        spent = mine["threads"].get(name, {}).get("processor_us_per_transaction")
        row[name]["walras_processor_us"] = spent and round(spent, 3)
    row["times"] = {name: round(row[name]["pevm_us"] / row[name]["walras_us"], 2) for name in threads}
    print(json.dumps(row))
PY
