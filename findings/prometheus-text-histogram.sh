#!/bin/sh
# parse-prometheus-text-format 1.1.1 (npm) loses histograms that have a label, or whose sum comes first.
#
# Of a histogram with a label besides `le` it keeps the buckets, but neither the label nor the sum nor the count. If the sum and
# the count stand before the buckets, as the text format permits, it raises TypeError.
# Seen on 29 November 2026:
#   parse-prometheus-text-format 1.1.1: plain has buckets, count, sum; with a label: buckets; sum first: TypeError
# Exits 0 while that is so, and 1 when the behaviour has changed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund parse-prometheus-text-format@1.1.1 >/dev/null
cat >run.mjs <<'JAVASCRIPT'
import parse from "parse-prometheus-text-format";

const histogram = (label, order) => {
  const buckets = ["0.1", "+Inf"].map((le, at) => `t_bucket{${label}le="${le}"} ${at + 1}`);
  const labels = label && `{${label.slice(0, -1)}}`;
  const sums = [`t_sum${labels} 0.3`, `t_count${labels} 2`];
  return ["# TYPE t histogram", ...(order === "sum first" ? [...sums, ...buckets] : [...buckets, ...sums]), ""].join("\n");
};
const fate = (text) => {
  try {
    return Object.keys(parse(text)[0].metrics[0]).sort().join(", ");
  } catch (error) {
    return error.name;
  }
};
const seen = [fate(histogram("", "")), fate(histogram('stage="a",', "")), fate(histogram("", "sum first"))];
console.log(`parse-prometheus-text-format 1.1.1: plain has ${seen[0]}; with a label: ${seen[1]}; sum first: ${seen[2]}`);
process.exit(seen.join("; ") === "buckets, count, sum; buckets; TypeError" ? 0 : 1);
JAVASCRIPT
node run.mjs
