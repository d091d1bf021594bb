// Runs the vectors of execution-apis (https://github.com/ethereum/execution-apis, folder tests/) against a node, whose
// chain is another one than theirs. Where the answer does not depend on the chain it must be theirs, error code and all.
// Where it does, the request is asked of things of this chain, and the answer must have their shape: the same fields with
// values of the same kind. What is asked for in no other way is counted as not applicable, by method, with its reason.
// Usage: node rpc-compat.mjs path/to/execution-apis/tests [http://127.0.0.1:8545] [--table]

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const [folder, url = process.env.WALRAS_ETHEREUM ?? "http://127.0.0.1:8545"] = process.argv.slice(2).filter((one) => !one.startsWith("--"));
if (!folder || !statSync(folder).isDirectory()) {
  console.error("usage: node rpc-compat.mjs path/to/execution-apis/tests [http://127.0.0.1:8545] [--table]");
  process.exit(2);
}

/** Why vectors of a method, or one of them, do not apply. */
const NOT_HERE = [
  [/^eth_simulateV1\//, "the method is not offered"],
  [/^testing_/, "builds blocks by hand: a block is decided by validators"],
  [/^txpool_/, "the pool is the proposer's own"],
  [/^debug_getRaw/, "blocks are superblocks, not RLP"],
  [/^debug_traceBlock/, "traces are of one transaction at a time"],
  [/^eth_(capabilities|config|baseFee)\//, "the method is not offered"],
  [/^eth_getStorageValues\//, "the method is not offered"],
  [/blob|Blob/, "there are no blobs"],
  [/^eth_sendRawTransaction\//, "signed for another chain: refused by its number, see below"],
];

async function ask(request) {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request) });
  return answer.json();
}

const call = async (method, ...params) => (await ask({ jsonrpc: "2.0", id: 1, method, params })).result;

/** A vector: its name, and what is asked and answered in turn. */
function vectors() {
  const found = [];
  for (const method of readdirSync(folder)) {
    if (!statSync(join(folder, method)).isDirectory()) continue;
    for (const file of readdirSync(join(folder, method)).filter((one) => one.endsWith(".io"))) {
      const lines = readFileSync(join(folder, method, file), "utf8").split("\n");
      const of = (mark) => lines.filter((line) => line.startsWith(mark)).map((line) => JSON.parse(line.slice(mark.length)));
      found.push({ name: `${method}/${file.replace(/\.io$/, "")}`, method, asked: of(">> "), answered: of("<< "), spec: lines.some((line) => line.startsWith("// speconly")) });
    }
  }
  return found;
}

const isHex = (value) => typeof value === "string" && /^0x[0-9a-f]*$/i.test(value);
/** What kind of value it is: numbers have any length, hashes and addresses theirs, data any even one. */
function kind(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (!isHex(value)) return typeof value;
  if (value.length === 66) return "hash";
  if (value.length === 42) return "address";
  if (value.length === 514) return "bloom";
  return /^0x(0|[1-9a-f][0-9a-f]*)$/.test(value) ? "number or data" : "data";
}

/** The fields in which two answers differ in shape. `free` values are those that may be empty or missing on a chain. */
function differences(theirs, ours, at = "result") {
  const [a, b] = [kind(theirs), kind(ours)];
  if (a === "list" && b === "list") return theirs.length > 0 && ours.length > 0 ? differences(theirs[0], ours[0], `${at}[0]`) : [];
  if (a === "object" && b === "object") {
    const fields = new Set([...Object.keys(theirs), ...Object.keys(ours)]);
    return [...fields].flatMap((field) => {
      if (!(field in ours)) return [`${at}.${field} is missing`];
      if (!(field in theirs)) return [`${at}.${field} is not theirs`];
      return differences(theirs[field], ours[field], `${at}.${field}`);
    });
  }
  const data = ["number or data", "data", "hash", "address", "bloom"];
  const alike = a === b || a === "null" || b === "null" || (data.includes(a) && data.includes(b) && (a.includes("data") || b.includes("data")));
  return alike ? [] : [`${at} is ${b}, theirs is ${a}`];
}

/** Things of this chain to ask about, by what stands in the vectors' requests. */
async function world() {
  const latest = Number(await call("eth_blockNumber"));
  for (let height = latest; height > Math.max(0, latest - 250); height -= 1) {
    const block = await call("eth_getBlockByNumber", `0x${height.toString(16)}`, true);
    const sent = block?.transactions.find(({ r }) => BigInt(r ?? 0) > 0n);
    if (sent) return { block, sent };
  }
  throw new Error("the last 250 blocks hold no Ethereum transaction: send one first");
}

/** The request with block numbers, hashes and addresses of this chain in the places of theirs. */
function translated({ method, params = [] }, { block, sent }) {
  const byHash = /ByHash|Receipt$|traceTransaction/.test(method) && !/Block/.test(method);
  const place = (value, at) => {
    if (Array.isArray(value)) return value.map((one) => place(one, at));
    if (value && typeof value === "object") {
      const of = (field, one) => (field === "blockHash" ? block.hash : /Block$/.test(field) ? place(one, 1) : one);
      return Object.fromEntries(Object.entries(value).map(([field, one]) => [field, of(field, one)]));
    }
    if (!isHex(value)) return value;
    if (value.length === 66) return byHash ? sent.hash : /Storage|Logs|Proof/.test(method) ? value : block.hash;
    if (value.length === 42) return /getLogs/.test(method) ? value : sent.from;
    const isBlock = /BlockByNumber|BlockReceipts|CountByNumber|BlockNumberAndIndex/.test(method) ? at === 0 : at > 0 && !/Index|Storage/.test(method);
    return isBlock ? block.number : /Index$/.test(method) ? sent.transactionIndex : value;
  };
  return params.map(place);
}

/** Whether an answer is of nothing: what does not exist has the same answer everywhere. */
const isNothing = (answer) => "error" in answer || answer.result === null || (Array.isArray(answer.result) && answer.result.length === 0);

const here = await world();
const rows = [];
for (const vector of vectors()) {
  const reason = NOT_HERE.find(([pattern]) => pattern.test(vector.name))?.[1];
  if (reason) {
    rows.push({ ...vector, state: "not applicable", why: reason });
    continue;
  }
  const faults = [];
  for (const [at, request] of vector.asked.entries()) {
    const theirs = vector.answered[at];
    let ours = await ask(request);
    if ("error" in theirs) {
      if (!("error" in ours)) faults.push(`answered, theirs is error ${theirs.error.code}`);
      else if (ours.error.code !== theirs.error.code) faults.push(`error ${ours.error.code} (${ours.error.message}), theirs is ${theirs.error.code} (${theirs.error.message})`);
      continue;
    }
    if (!isNothing(theirs)) ours = await ask({ ...request, params: translated(request, here) });
    if ("error" in ours) faults.push(`error ${ours.error.code}: ${ours.error.message}`);
    else if (theirs.result !== null) faults.push(...differences(theirs.result, ours.result));
  }
  rows.push({ ...vector, state: faults.length > 0 ? "fails" : "passes", why: faults.join("; ") });
}

const count = (state) => rows.filter((row) => row.state === state).length;
if (process.argv.includes("--table")) {
  console.log("| method | passes | differs | not applicable | why |\n|---|---|---|---|---|");
  for (const method of [...new Set(rows.map((row) => row.method))].sort()) {
    const of = rows.filter((row) => row.method === method);
    const each = (state) => of.filter((row) => row.state === state).length || "";
    const why = [...new Set(of.filter((row) => row.why).map((row) => row.why))].join("; ");
    console.log(`| \`${method}\` | ${each("passes")} | ${each("fails")} | ${each("not applicable")} | ${why} |`);
  }
} else {
  for (const row of rows) if (row.state === "fails") console.log(`${row.name}: ${row.why}`);
}
console.error(`${rows.length} vectors: ${count("passes")} pass, ${count("fails")} differ, ${count("not applicable")} do not apply`);
process.exitCode = count("fails") > 0 ? 1 : 0;
