#!/usr/bin/env bash
# pevm and the contract phase's executor on the same blocks over the same states, in turn, each beside its own sequential
# loop over revm. Medians of rounds; best blocks of 0.3 s.
# usage: peers/pevm/run.sh [TRANSACTIONS [ROUNDS [THREADS]]]      (THREADS: 1,2)
set -euo pipefail
commit=9cbd856e7448f82a845709805e59cc7a31c2a0d4
here=$(cd "$(dirname "$0")" && pwd)
transactions=${1:-10000} rounds=${2:-3} threads=${3:-1,2}
walras=${WALRAS:-$here/../../target/release/walras}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Without its blocks of the main network.
git clone --quiet --no-checkout "${PEERS_FROM:-https://github.com}/risechain/pevm" "$work/pevm"
git -C "$work/pevm" sparse-checkout set --no-cone '/*' '!/data'
git -C "$work/pevm" checkout --quiet "$commit"
# The replay is one more member of its workspace, with its lock file, profile and processor flags.
mkdir -p "$work/pevm/bins/replay/src"
cp "$here/replay.rs" "$work/pevm/bins/replay/src/main.rs"
cat >"$work/pevm/bins/replay/Cargo.toml" <<'TOML'
[package]
edition.workspace = true
name = "replay"
version = "0.1.0"

[dependencies]
alloy-consensus.workspace = true
pevm = { path = "../../crates/pevm" }
revm.workspace = true
TOML
sed -i 's|members = \["bins/fetch", "crates/pevm"\]|members = ["bins/replay", "crates/pevm"]|' "$work/pevm/Cargo.toml"
(cd "$work/pevm" && cargo build --quiet --release -p replay 2>"$work/build.log") || { tail -20 "$work/build.log" >&2; exit 1; }

same=(--transactions "$transactions" --rounds "$rounds" --threads "$threads")
"$walras" bench evm "${same[@]}" --flow "$work/loads" >/dev/null
for load in payments token_transfers swaps hot_slot; do
  # shellcheck disable=SC2086
  "$work/pevm/target/release/replay" "$work/loads/$load.txt" "$rounds" ${threads//,/ } >"$work/$load.json"
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
