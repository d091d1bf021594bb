# Runs a peer's order book and ours in turn, for books of 1,000 and 20,000 orders with long and with short levels, and prints
# the medians. Read by the scripts of peers, which define `theirs FLOW` and the folder `work`.
# usage: . turns.sh NAME [COMMANDS [RUNS]]
peer=$1 commands=${2:-2000000} runs=${3:-5}
walras=${WALRAS_LAB:-$here/../../target/release/walras-lab}
nanoseconds() { sed -nE 's/.*"ns_per_command":([0-9.]+).*/\1/p'; }
median() { sort -n "$1" | sed -n "$((runs / 2 + 1))p"; }

for prices in near wide; do
  for depth in 1000 20000; do
    same=(--prices "$prices" --depths "$depth" --commands "$commands")
    "$walras" bench matching "${same[@]}" --flow "$work" >/dev/null
    rm -f "$work/ours" "$work/theirs"
    for ((turn = 0; turn < runs; turn++)); do
      theirs "$work/flow-$depth.txt" | nanoseconds >>"$work/theirs"
      "$walras" bench matching "${same[@]}" --runs 1 --json 2>/dev/null | nanoseconds >>"$work/ours"
    done
    ours=$(median "$work/ours") other=$(median "$work/theirs")
    times=$(awk "BEGIN { printf \"%.2f\", $other / $ours }")
    echo "{\"prices\":\"$prices\",\"resting\":$depth,\"walras_ns\":$ours,\"${peer}_ns\":$other,\"times\":$times}"
  done
done
