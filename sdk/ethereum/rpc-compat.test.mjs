// The vectors of execution-apis (https://github.com/ethereum/execution-apis, folder tests/), as far as they apply to a chain
// that is another one than theirs. WALRAS_RPC_COMPAT names the folder; without it nothing is tested, which is said.
//
// Where an answer does not depend on the chain (an error, or that there is nothing) it must be theirs, code and all. Where it
// does, the request is asked of things of this chain, and the answer must have their shape: the same fields with values of
// the same kind. README.md lists what does not apply, and why.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { JsonRpcProvider, Wallet } from "ethers";

const url = process.env.WALRAS_ETHEREUM;
const folder = process.env.WALRAS_RPC_COMPAT;
if (!folder) console.error("NOT TESTED: WALRAS_RPC_COMPAT does not name the folder tests/ of execution-apis");

/** Vectors that do not apply, and why. README.md says the same. */
const NOT_HERE = [
  [/^eth_(capabilities|baseFee|getStorageValues)\//, "the method is not offered"],
  [/^eth_(simulateV1|config)\//, "their blocks, accounts and forks are those of their chain"],
  [/^testing_/, "blocks are made by validators"],
  [/^txpool_|^eth_createAccessList\/|^debug_traceBlock/, "of their pool, contracts and blocks"],
  [/^debug_getRaw/, "blocks are superblocks and have no RLP"],
  [/blob|eip4844/i, "there are no blobs"],
  [/^eth_sendRawTransaction\//, "signed for their chain: refused by its number"],
  [/^eth_call\/call-revert|^eth_estimateGas\/estimate-(call-abi-error|failed-call)$/, "calls a contract of their chain"],
  [/^eth_getLogs\/filter-error-future-block-range$/, "beyond their newest block, not beyond ours"],
  [/^eth_getProof\/get-account-proof-blockhash$/, "proofs are given for the newest block alone"],
];
/** Fields that are not compared, and why. */
const FIELDS = [
  [/blob|^parentBeaconBlockRoot$/i, "there are no blobs and no beacon chain"],
  [/^(withdrawals|withdrawalsRoot|requestsHash)$/, "there is no beacon chain"],
  [/^(root|status)$/, "receipts before Byzantium had a root"],
  [/^(accessList|authorizationList|chainId|max\w*PerGas|yParity)$/, "their transaction is of another type"],
  [/^baseFeePerGas$/, "blocks before London had none"],
  [/^(blockNumber|stateRoot)$/, "a proof says what it is of; elsewhere both have them"],
];

const ask = async (request) => {
  const headers = { "content-type": "application/json" };
  return (await fetch(url, { method: "POST", headers, body: JSON.stringify(request) })).json();
};
const call = async (method, ...params) => (await ask({ jsonrpc: "2.0", id: 1, method, params })).result;

function vectorsOf(method) {
  const files = readdirSync(join(folder, method)).filter((file) => file.endsWith(".io"));
  return files.map((file) => {
    const lines = readFileSync(join(folder, method, file), "utf8").split("\n");
    const of = (mark) => lines.filter((line) => line.startsWith(mark)).map((line) => JSON.parse(line.slice(mark.length)));
    return { name: `${method}/${file.replace(/\.io$/, "")}`, asked: of(">> "), answered: of("<< ") };
  });
}

const isHex = (value) => typeof value === "string" && /^0x[0-9a-f]*$/i.test(value);
/** What kind a value is of: hashes, addresses and blooms have their lengths, numbers no leading zeros. */
function kind(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (!isHex(value)) return typeof value;
  const lengths = { 66: "hash", 42: "address", 514: "bloom" };
  return lengths[value.length] ?? (/^0x(0|[1-9a-f][0-9a-f]*)$/i.test(value) ? "number or data" : "data");
}

/** Where two answers differ in shape. Nulls and data may be anything: they depend on the chain. */
function differences(theirs, ours, at = "result") {
  const [a, b] = [kind(theirs), kind(ours)];
  if (a === "list" && b === "list") return theirs.length > 0 && ours.length > 0 ? differences(theirs[0], ours[0], `${at}[0]`) : [];
  if (a === "object" && b === "object") {
    return [...new Set([...Object.keys(theirs), ...Object.keys(ours)])].flatMap((field) => {
      if (FIELDS.some(([pattern]) => pattern.test(field))) return [];
      if (!(field in ours)) return [`${at}.${field} is missing`];
      if (!(field in theirs)) return [`${at}.${field} is not theirs`];
      return differences(theirs[field], ours[field], `${at}.${field}`);
    });
  }
  const hex = ["number or data", "data", "hash", "address", "bloom"];
  const isData = hex.includes(a) && hex.includes(b) && [a, b].some((one) => one.endsWith("data"));
  return a === b || a === "null" || b === "null" || isData ? [] : [`${at} is ${b}, theirs is ${a}`];
}

/** A transaction of this chain and its block, to ask about: that of an account that no other test has. */
async function world() {
  const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 50 });
  const wallet = new Wallet("0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97", provider);
  const { hash } = await (await wallet.sendTransaction({ to: wallet.address, value: 1n })).wait();
  provider.destroy();
  const sent = await call("eth_getTransactionByHash", hash);
  return { sent, block: await call("eth_getBlockByHash", sent.blockHash, true) };
}

/** The parameters with a block, a transaction and an account of this chain in the places of theirs. */
function translated({ method, params = [] }, { block, sent }) {
  const ofTransaction = /^(eth_getTransaction(ByHash|Receipt)|debug_traceTransaction)$/.test(method);
  const place = (value, at) => {
    if (Array.isArray(value)) return /Proof|Logs|feeHistory/.test(method) ? value : value.map((one) => place(one, at));
    if (value && typeof value === "object") {
      const field = ([name, one]) => [name, name === "blockHash" ? block.hash : /Block$|blockNumber/.test(name) ? block.number : one];
      const fields = Object.entries(value).filter(([name]) => !/^(gas.*|max.*|nonce)$/.test(name)).map(field);
      return "from" in value ? { ...Object.fromEntries(fields), from: sent.from } : Object.fromEntries(fields);
    }
    if (!isHex(value)) return value;
    const isSlot = /Storage/.test(method) && at === 1;
    if (value.length === 66) return isSlot ? value : ofTransaction ? sent.hash : block.hash;
    if (value.length === 42) return sent.from;
    const isNumber = /BlockByNumber|BlockReceipts|CountByNumber|BlockNumberAndIndex/.test(method) ? at === 0 : at > 0 && !isSlot;
    return /Index$/.test(method) && at === 1 ? sent.transactionIndex : isNumber ? block.number : value;
  };
  return params.map(place);
}

/** What is true of every chain: an error, or that there is nothing. */
const isAnywhere = (answer) => "error" in answer || answer.result === null || (Array.isArray(answer.result) && answer.result.length === 0);

async function faultsOf({ asked, answered }, here) {
  const faults = [];
  for (const [at, request] of asked.entries()) {
    const theirs = answered[at];
    const ours = await ask(isAnywhere(theirs) ? request : { ...request, params: translated(request, here) });
    const said = ours.error && `${ours.error.code} (${ours.error.message})`;
    if (theirs.error && ours.error?.code !== theirs.error.code) {
      faults.push(`${said ?? JSON.stringify(ours.result).slice(0, 100)}, theirs is error ${theirs.error.code} (${theirs.error.message})`);
    } else if (!theirs.error && ours.error) faults.push(`error ${said}`);
    else if (!theirs.error && theirs.result !== null) faults.push(...differences(theirs.result, ours.result));
    else if (theirs.result === null && ours.result !== null) faults.push(`${JSON.stringify(ours.result).slice(0, 100)}, theirs is null`);
  }
  return faults;
}

test("requests of execution-apis are answered as their vectors say", { skip: !folder }, async (all) => {
  const here = await world();
  const methods = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name: method } of methods) {
    for (const vector of vectorsOf(method)) {
      const why = NOT_HERE.find(([pattern]) => pattern.test(vector.name))?.[1];
      await all.test(vector.name, { skip: why ?? false }, async () => assert.deepEqual(await faultsOf(vector, here), []));
    }
  }
});
