/** The client without a node: bytes, amounts, numbers, stores and the stream's logic. */
import assert from "node:assert/strict";
import { ed25519 } from "@noble/curves/ed25519.js";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AssetInfo, Assets, inverseLimit, limitOf } from "../src/assets.js";
import { crc32 } from "../src/book.js";
import { multiply, plainText } from "../src/decimal.js";
import { checkedAddress, encodeBody, plainAddress, poolKeeps, signingBytes, typedDataOf, type Body, type Operation } from "../src/encoding.js";
import { LISTED, OPERATIONS, type OperationField } from "../src/operations.js";
import { addressOf, signTyped } from "../src/ethereum.js";
import { fateOf, told } from "../src/fate.js";
import { Feed } from "../src/feed.js";
import { Http, retryAfterMs, type Fetch } from "../src/http.js";
import { AddressError, AmountError, Ed25519Key, ForeignAnswerError, EthereumKey, KeyError, MemoryStore, ProofError, SentBeforeError, StoreError, UnknownAssetError, type Store } from "../src/index.js";
import { openKey, sealKey } from "../src/keystore.js";
import { FolderStore } from "../src/node-store.js";
import { PolicyRequest, changeId, consentBytes, encodedChange, policySalt, type AccountKeys, type KeyChange } from "../src/policy.js";
import { isFree, proveHolder, proveKeys, proveParameters, windowOf, type ProvedParameters } from "../src/proof.js";
import { orderFate } from "../src/models.js";
import { Numbers, Sender } from "../src/sending.js";
import { Session } from "../src/session.js";
import { slotOf, slotSequence } from "../src/slot.js";
import type { Message } from "../src/stream.js";
import { fromHex, hashTypedData, toHex, type TypedData } from "../src/typed.js";
import { TradingKey, isReportSigned, orderBytes, readReport, type OrderNumber, type VenueOrder } from "../src/venue.js";

const published = JSON.parse(readFileSync(new URL("../../../../docs/vectors.json", import.meta.url), "utf8")) as {
  vectors: Record<string, unknown>[];
  typed_data: { key: string; network: string; sequence: string; until: string; hash: string; transaction: string; id: string; typed_data: TypedData }[];
  requests: { seeds: string[]; wallet: string; account: string; network: string; last: string; sequence: string; until: string; salt: string; typed_data: TypedData; hash: string; signing_bytes: string; transaction: string; id: string }[];
  holder_proofs: { asset: number; account: string; root: string; proof: string; control: string; is_open: boolean; since: number | null }[];
  key_proofs: { account: string; root: string; proof: string; keys: AccountKeys | null }[];
  parameter_proofs: { root: string; proof: string; parameters: ProvedParameters | null }[];
  consents: { seed: string; network: string; by: string; change: string; change_id: string; signing_bytes: string; typed_data: TypedData; key_signature: string }[];
};

/** A value of a vector, which is text or a number, as a program gives it. */
const valueOf = (field: OperationField, given: unknown): unknown => {
  if (field.form === "list") return (given as object[]).map((one) => valuesOf(LISTED[field.of ?? ""] ?? [], one));
  if (field.type === "uint64") return BigInt(given as string);
  return field.type.startsWith("uint") ? Number(given) : given;
};

const valuesOf = (fields: readonly OperationField[], given: object): object =>
  Object.fromEntries(fields.map((field) => [field.name, valueOf(field, (given as Record<string, unknown>)[field.name])]));

/** The operation of a structure's name and the values of its fields; null for one that this client does not make. */
function operationOf(kind: string, given: object): Operation | null {
  const row = OPERATIONS[kind as Operation["kind"]];
  return row ? ({ kind, ...valuesOf(row.fields, given) } as Operation) : null;
}

test("transactions are signed as the published vectors are", async () => {
  const checked = new Set();
  for (const vector of published.vectors) {
    const asked = vector["operation"] as Record<string, string>;
    const kind = (asked["type"] ?? "").replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
    // Vectors name these two as JSON does.
    const operation = operationOf(kind, { ...asked, registered: asked["account"], host: asked["address"] });
    if (!operation) continue;
    const key = new Ed25519Key(String(vector["seed"]));
    const numbers = { sequence: BigInt(String(vector["sequence"])), until: BigInt(String(vector["until"])) };
    const body: Body = { chain: BigInt(String(vector["chain"])), account: key.address, ...numbers, operation };
    assert.equal(toHex(encodeBody(body)), vector["body"]);
    assert.equal(toHex(signingBytes(body, String(vector["network"]))), vector["signing_bytes"]);
    const signed = await key.sign(body, String(vector["network"]));
    assert.equal(toHex(signed.bytes), vector["transaction"]);
    assert.deepEqual([signed.id, signed.account, signed.sequence, signed.until], [vector["id"], vector["account"], numbers.sequence, numbers.until]);
    checked.add(operation.kind);
  }
  assert.equal(checked.size, 36);
});

test("typed data is made and signed as the published vectors are", async () => {
  let checked = 0;
  for (const vector of published.typed_data) {
    const { primaryType, message } = vector.typed_data;
    const operation = operationOf(primaryType, message);
    if (!operation) continue;
    const key = new EthereumKey(vector.key);
    const body: Body = { chain: 31337n, account: key.address, sequence: BigInt(vector.sequence), until: BigInt(vector.until), operation };
    assert.deepEqual(typedDataOf(body, vector.network), vector.typed_data);
    assert.equal(toHex(hashTypedData(typedDataOf(body, vector.network))), vector.hash);
    const signed = await key.sign(body, vector.network);
    assert.deepEqual([toHex(signed.bytes), signed.id], [vector.transaction, vector.id]);
    checked += 1;
  }
  assert.equal(checked, 48);
});

test("requests of a policy are signed as the published vectors are", () => {
  for (const vector of published.requests) {
    const { primaryType, message, domain } = vector.typed_data;
    const operation = operationOf(primaryType, message);
    assert.ok(operation);
    const body: Body = { chain: BigInt(domain["chainId"] as number), account: vector.account, sequence: BigInt(vector.sequence), until: BigInt(vector.until), operation };
    assert.equal(policySalt(vector.network, vector.account, vector.last), vector.salt);
    let request = new PolicyRequest(body, vector.last, vector.network);
    assert.equal(toHex(request.signingBytes), vector.signing_bytes);
    assert.deepEqual(request.typedData, vector.typed_data);
    assert.equal(toHex(hashTypedData(request.typedData)), vector.hash);
    for (const seed of [...vector.seeds].reverse()) request = request.signedBy(new Ed25519Key(seed));
    const wallet = fromHex(vector.wallet);
    request = request.withWallet(addressOf(wallet), signTyped(wallet, request.typedData));
    assert.deepEqual([toHex(request.encode()), request.id, request.isValid()], [vector.transaction, vector.id, true]);
    const stale = new PolicyRequest(body, "0x" + "00".repeat(32), vector.network, request.keys);
    assert.equal(stale.isValid(), false, "signatures name the last change of keys");
    const key = Object.keys(request.keys)[0] ?? "";
    const policy = { keys: [{ key, weight: 2 }], wallets: [], move: 3, govern: 5, guardian_keys: [], guardian_wallets: [], guardians: 0, delay: 0 };
    assert.deepEqual([request.missing(policy), request.missing(policy, "govern")], [1, 3]);
  }
  assert.equal(published.requests.length, 4);
});

test("consents to changes of keys are signed as the published vectors are", () => {
  for (const vector of published.consents) {
    const kind = vector.by === "signers" ? "SetKeys" : "RecoverKeys";
    const change = operationOf(kind, { ...vector.typed_data.message, first: "0x" + "11".repeat(32), keySignatures: [], walletSignatures: [] }) as KeyChange;
    assert.deepEqual([toHex(encodedChange(change)), changeId(change)], [vector.change, vector.change_id]);
    assert.equal(toHex(consentBytes(change, vector.network)), vector.signing_bytes);
    assert.equal(toHex(new Ed25519Key(vector.seed).agree(consentBytes(change, vector.network))), vector.key_signature);
  }
});

test("a holder is proved frozen, admitted or free, and a changed proof proves nothing", () => {
  const vectors = published.holder_proofs;
  assert.deepEqual(vectors.map((one) => [one.control, one.is_open]), [["open", true], ["recoverable", false], ["recoverable", true], ["admitted", true], ["admitted", false]]);
  for (const { asset, account, root, proof, control, is_open: isOpen, since } of vectors) {
    const bytes = fromHex(proof);
    const proved = (shown: Uint8Array) => proveHolder(asset, fromHex(account), fromHex(root), shown);
    assert.deepEqual(proved(bytes), { control, isOpen, since });
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      // What a chain without controls fills the place of its trie with means nothing.
      if (control !== "open") assert.throws(() => proved(changed), ProofError, `byte ${at}`);
    }
    assert.throws(() => proved(bytes.slice(0, -1)), ProofError);
  }
  const [, frozen, free] = vectors;
  assert.ok(frozen && free);
  // The attack: that nothing was said of somebody else is shown for the frozen holder.
  assert.throws(() => proveHolder(frozen.asset, fromHex(frozen.account), fromHex(free.root), fromHex(free.proof)), ProofError);
});

test("a policy is proved, and a changed proof proves none", () => {
  const vectors = published.key_proofs;
  assert.deepEqual(vectors.map((one) => one.keys === null), [true, false, true]);
  for (const { account, root, proof, keys } of vectors) {
    const bytes = fromHex(proof);
    const proved = (shown: Uint8Array) => proveKeys(fromHex(account), fromHex(root), shown);
    assert.deepEqual(proved(bytes), keys);
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.throws(() => proved(changed), ProofError);
    }
    assert.throws(() => proved(bytes.slice(0, -1)), ProofError);
  }
  const [, policy, absence] = vectors;
  assert.ok(policy && absence);
  // The attack: the proof of another account's policy, or of its absence, is shown for this one.
  assert.throws(() => proveKeys(fromHex(absence.account), fromHex(policy.root), fromHex(policy.proof)), ProofError);
  assert.throws(() => proveKeys(fromHex(policy.account), fromHex(absence.root), fromHex(absence.proof)), ProofError);
});

test("parameters are proved, and a changed proof proves none", () => {
  const vectors = published.parameter_proofs;
  assert.deepEqual(vectors.map((one) => one.parameters === null), [true, false]);
  for (const { root, proof, parameters } of vectors) {
    const bytes = fromHex(proof);
    const proved = (shown: Uint8Array) => proveParameters(fromHex(root), shown);
    assert.deepEqual(proved(bytes), parameters);
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.throws(() => proved(changed), ProofError);
    }
    assert.throws(() => proved(bytes.slice(0, -1)), ProofError);
  }
  const [none, some] = vectors;
  assert.ok(none && some);
  // The attack: the proof that nothing was ever proposed is shown for a state in which a dearer fee waits.
  assert.throws(() => proveParameters(fromHex(some.root), fromHex(none.proof)), ProofError);
  assert.equal(some.parameters?.coming[0]?.values.fee, "9");
});

test("a checksum is in the capitals of an address", () => {
  const right = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
  assert.equal(checkedAddress(right.toLowerCase()), right);
  assert.equal(plainAddress(right), right.toLowerCase());
  for (const wrong of [right.replace("F6F", "f6F"), right.slice(0, -1), right.slice(2), "0x" + "g".repeat(40)]) {
    assert.throws(() => plainAddress(wrong), AddressError);
  }
});

const asset = (number: number, symbol: string, decimals: number) => ({
  asset: number,
  symbol,
  decimals,
  issuer: "0x",
  least_units: "1",
  issued: "0",
  valuation: null,
});
const listed = { assets: [asset(0, "USD", 2), asset(1, "EUR", 4), asset(2, "JPY", 0)] };
const [USD, EUR, JPY] = listed.assets.map((one) => new AssetInfo(one)) as [AssetInfo, AssetInfo, AssetInfo];

test("an opening says what stays in its pool for ever", () => {
  assert.deepEqual(poolKeeps(1_000_000_000n, 900_000_000n), [3_906_250n, 3_515_625n]);
  assert.deepEqual(poolKeeps(257n, 1n), [2n, 1n]);
});

test("amounts lose nothing", () => {
  assert.deepEqual([USD.units("12.50"), USD.units(7n), JPY.units("7")], [1250n, 700n, 7n]);
  assert.equal(USD.units("92233720368547758.07"), 2n ** 63n - 1n);
  assert.equal(USD.amount(2n ** 63n - 1n), "92233720368547758.07");
  for (const wrong of ["12.505", 12.5, "", "NaN", "1e3", "-1", "0", "92233720368547758.08", "9".repeat(1000), null]) {
    assert.throws(() => USD.units(wrong as string), AmountError, String(wrong));
  }
  assert.throws(() => new Assets(listed).get("XYZ"), UnknownAssetError);
  assert.throws(() => new Assets(listed).market("EURUSD"), UnknownAssetError);
  // What was listed since joins what is known.
  const grown = new Assets(listed);
  grown.learn({ assets: [asset(3, "GBP.3", 2)] });
  assert.deepEqual([grown.get("GBP.3").number, grown.has("USD"), grown.market("GBP.3/USD")[0].symbol], [3, true, "GBP.3"]);
});

test("prices move only the point, and to buy never costs more than was written", () => {
  assert.equal(plainText(limitOf("1.05", EUR, USD)), "0.0105");
  assert.equal(plainText(limitOf("1250", USD, JPY)), "12.5");
  for (const wrong of ["0", "-1", "1.23456789012345678"]) assert.throws(() => limitOf(wrong, EUR, USD), AmountError);
  const { cost, limit } = inverseLimit(3333n, limitOf("1.07", EUR, USD));
  assert.equal(cost, 36n);
  assert.ok(multiply(limit, limitOf("1.07", EUR, USD)).digits >= 10n ** BigInt(multiply(limit, limitOf("1.07", EUR, USD)).scale));
});

test("numbers are handed out once, and those of refused transactions again", () => {
  const numbers = new Numbers();
  numbers.learn(10n, 11n);
  const taken = Array.from({ length: 64 }, () => numbers.take(0n)?.sequence);
  assert.deepEqual(taken, Array.from({ length: 64 }, (_, at) => BigInt(11 + at)));
  assert.equal(numbers.take(0n), null);
  numbers.release(20n, 300n);
  numbers.release(20n, 200n);
  // The substitute ends later, so that the refused one can never count.
  assert.deepEqual(numbers.take(0n), { sequence: 20n, least: 301n });
  numbers.release(12n, 300n);
  numbers.learn(80n, 81n);
  assert.equal(numbers.take(0n)?.sequence, 81n, "a number that is too old is not used again");
  assert.deepEqual([numbers.take(90n)?.sequence, numbers.take(10_000n)], [91n, null]);
});

const KEY = new EthereumKey("07".repeat(32));
const NETWORK = "0x" + "4e".repeat(32);
const stores: [string, () => Store][] = [
  ["memory", () => new MemoryStore()],
  ["a folder", () => new FolderStore(mkdtempSync(join(tmpdir(), "walras-")))],
];

for (const [name, made] of stores) {
  test(`a transaction in ${name} stays until it is forgotten`, async () => {
    const store = made();
    const sign = (sequence: bigint) =>
      KEY.sign({ chain: 1n, account: KEY.address, sequence, until: 100n, operation: { kind: "Burn", asset: 0, amount: 5n } }, NETWORK);
    const [one, two] = [await sign(1n), await sign(2n)];
    const reference = "invoice ".repeat(100);
    await store.keep(one, reference);
    await store.keep(two, null);
    assert.deepEqual(new Set((await store.all()).map((signed) => signed.id)), new Set([one.id, two.id]));
    await store.forget(one.id);
    assert.equal(await store.get(one.id), null);
    assert.equal((await store.get(two.id))?.id, two.id);
    assert.equal((await store.referenced(reference))?.id, one.id, "the record of a reference outlives its transaction");
    await store.release(reference, two.id);
    assert.equal((await store.referenced(reference))?.id, one.id, "the record is of another transaction");
    await store.release(reference, one.id);
    assert.equal(await store.referenced(reference), null);
    await store.took("a", 7n);
    await store.took("a", 5n);
    assert.equal(await store.highest("a"), 7n);
  });
}

/** A node that exists here alone: it knows no transaction, has kept blocks from `kept` on, and `user` used number 1 in block 1000. */
function session({ height = 1000, highest = 0, used = 0, kept = 1, user = "" } = {}): Session {
  const proof = new Uint8Array([0, 0, 0, 0, 1, ...new Array<number>(20).fill(7), 0, highest, 0, 0, 0, 0, 0, 0, 0, used, ...new Array<number>(13).fill(0)]);
  const answers: [RegExp, unknown][] = [
    [/limits$/, { chain: "1", network: NETWORK, sequence_window: 64, block_interval_ms: 1, fee_asset: "USD", fee: "1" }],
    [/assets$/, listed],
    [/status$/, { height }],
    [/proof$/, { height, proof: toHex(proof) }],
    [/accounts\/0x\w+$/, { address: KEY.address, height, sequence: { highest: String(highest), next: String(highest + 1) }, balances: [] }],
    [/readyz$/, {}],
    [/history/, { points: [8, 11, 14].map((at) => ({ height: at, time_ms: 0, price: "1", base_volume: "20000" })) }],
  ];
  const fetch: Fetch = async (url) => {
    const path = String(url);
    const block = /blocks\/(\d+)/.exec(path);
    const of = { account: KEY.address, sequence: "1", operation: { type: "burn" } };
    const outcomes = [{ id: "0x00", outcome: { result: "refused" }, ...of }, { id: user, outcome: { result: "applied" }, ...of }];
    const content = { changed: block?.[1] === "1000" && user !== "", outcomes, next: null };
    const isKept = block && Number(block[1]) >= kept;
    const found = block ? isKept && content : answers.find(([form]) => form.test(path))?.[1];
    const before = /blocks\?limit=1000&before=(\d+)/.exec(path);
    if (before) return Response.json({ blocks: range(Math.max(7, Number(before[1]) - 4), Number(before[1]) - 1).reverse() });
    return found ? Response.json(found) : Response.json({ error: { code: "not_found", message: "it is not kept" } }, { status: 404 });
  };
  return new Session(new Http("http://here", null, fetch), null);
}

const burn: Operation = { kind: "Burn", asset: 0, amount: 5n };
const sender = (store: Store, node = session()) => new Sender(node, KEY.address, KEY, store, 1000, 256);

test("senders with one store take different numbers, whatever the node says", async () => {
  const store = new MemoryStore();
  const taken: bigint[] = [];
  for (let at = 0; at < 3; at += 1) {
    const { signed } = await sender(store).sign(burn, null);
    await store.forget(signed.id);
    taken.push(signed.sequence);
  }
  assert.deepEqual(taken, [1n, 2n, 3n]);
  const many = await Promise.all(Array.from({ length: 40 }, (_, at) => sender(store).sign({ ...burn, amount: BigInt(10 + at) }, null)));
  assert.equal(new Set(many.map(({ signed }) => signed.sequence)).size, 40);
});

test("a reference stands for one operation", async () => {
  const store = new MemoryStore();
  const { signed } = await sender(store).sign(burn, "invoice 7");
  assert.equal((await sender(store).sign(burn, "invoice 7")).signed.id, signed.id);
  await assert.rejects(sender(store).sign({ ...burn, amount: 6n }, "invoice 7"), StoreError);
});

test("what was sent without a result is not signed again without a reference", async () => {
  const store = new MemoryStore();
  const { signed: first } = await sender(store).sign(burn, null);
  const again = sender(store);
  await assert.rejects(again.sign(burn, null), SentBeforeError);
  assert.equal((await again.sign({ ...burn, amount: 6n }, null)).signed.sequence, 2n);
  assert.equal((await again.sign(burn, "the second one")).signed.sequence, 3n);
  // When it can never count, its number is used again, with a later end.
  const { signed, isNew } = await sender(store, session({ height: 2000 })).sign(burn, null);
  assert.ok(isNew && signed.sequence === 1n && signed.until > first.until && signed.until > 2000n);
});

test("a torn record of a pending transaction stops no later one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "walras-torn-"));
  const { signed } = await sender(new FolderStore(folder)).sign(burn, "invoice 7");
  const places = () => readdirSync(folder).map((name) => [join(folder, name), Buffer.from(name, "base64url").toString()] as const);
  const [file] = places().find(([, name]) => name.includes(".pending."))!;
  for (const text of ["", toHex(signed.bytes).slice(0, 90), "0x" + "00".repeat(200), "nonsense"]) {
    writeFileSync(file, text);
    const store = new FolderStore(folder);
    assert.deepEqual([await store.all(), await store.get(signed.id), await store.torn()], [[], null, [signed.id]]);
    const next = await sender(store).sign({ ...burn, amount: 6n }, null);
    assert.deepEqual([await store.torn(), next.signed.sequence > signed.sequence], [[], true]);
    await store.forget(next.signed.id);
  }
  for (const [path, name] of places()) if (!name.includes(".network.")) writeFileSync(path, "");
  const store = new FolderStore(folder);
  assert.equal(await store.highest("0x00"), 0n);
  // Whether an invoice was paid is never guessed.
  await assert.rejects(sender(store).sign(burn, "invoice 7"), StoreError);
});

test("a transaction that nobody knows is void only when it can never count", async () => {
  const { signed } = await sender(new MemoryStore()).sign(burn, null);
  assert.ok(signed.until > 1000n && signed.until <= 1256n);
  const fate = async (node: Parameters<typeof session>[0]) => {
    const { state, code } = await fateOf(session(node), signed.id, signed);
    return [state, code];
  };
  assert.deepEqual(await fate({ height: Number(signed.until) - 1 }), ["unknown", undefined]);
  assert.deepEqual(await fate({ height: Number(signed.until) }), ["void", "ended"]);
  assert.deepEqual(await fate({ highest: 1, used: 1 }), ["void", "number_taken"]);
  assert.deepEqual(await fate({ highest: 65, used: 1 }), ["void", "number_taken"]);
  assert.deepEqual(await fate({ highest: 1, used: 1, user: "0x" + "77".repeat(32) }), ["void", "number_taken"]);
  // The index has forgotten it, the blocks have not.
  assert.deepEqual(await fate({ highest: 1, used: 1, user: signed.id }), ["executed", undefined]);
  // Another number was used, this one may still count.
  assert.deepEqual(await fate({ highest: 2, used: 1 }), ["unknown", undefined]);
  // The node began from a later snapshot: it may have forgotten that the transaction was executed.
  assert.deepEqual(await fate({ highest: 1, used: 1, kept: 1001 }), ["unknown", undefined]);
  assert.throws(() => windowOf(new Uint8Array([0, 0, 0, 0, 1]), 1n));
  assert.ok(isFree({ highest: 70n, used: 1n }, 7n) && !isFree({ highest: 71n, used: 1n }, 7n));
});

test("a session key has a window of its own in its account's proof", () => {
  const little = (value: bigint, count = 8) => Uint8Array.from({ length: count }, (_, at) => Number((value >> BigInt(8 * at)) & 255n));
  // Three slots were given; the second one's key is there: it has used 5 and 3 of its numbers.
  const record = [little(2n, 4), new Uint8Array(50), little(5n), little(0b101n), little(1n, 4), new Uint8Array(20)];
  const account = [new Uint8Array(21), little(7n), little(1n), new Uint8Array(5), little(1n, 1), little(3n, 4), little(1n, 4), ...record];
  const proof = Uint8Array.from([new Uint8Array(4), little(1n, 1), ...account].flatMap((part) => [...part]));
  const free = (slot: number, n: bigint) => isFree(windowOf(proof, slotSequence(slot, n)), slotSequence(slot, n));
  assert.deepEqual([6n, 7n, 8n].map((n) => free(0, n)), [true, false, true]);
  assert.deepEqual([1n, 2n, 3n, 4n, 5n, 6n].map((n) => free(2, n)), [true, true, false, true, false, true]);
  // No number of a slot that is gone is free, all of one that was not given yet are.
  for (const slot of [1, 3]) assert.ok([1n, 64n, 2n ** 43n - 1n].every((n) => !free(slot, n)));
  assert.ok(free(4, 1n) && slotOf(2n ** 63n + 5n) === 0 && slotOf(slotSequence(9, 5n)) === 9);
});

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, at) => ({ height: first + at, applied: 0, fills: 0, ethereum: 0 }));

test("a stream resumes without a gap and without doubles", async () => {
  const feed = new Feed(session(), ["blocks"], null);
  const message = (more: object) => feed.receive(more as Message);
  const heights = async (more: object) => (await message(more)).map((event) => (event.type === "block" ? event.block.height : event));
  const snapshot = (first: number, last: number) => ({ type: "snapshot", channel: "blocks", blocks: range(first, last).reverse() });
  assert.deepEqual(await heights(snapshot(1, 3)), [1, 2, 3]);
  // On its way when the snapshot was read.
  assert.deepEqual(await heights({ type: "block", height: 3 }), []);
  assert.deepEqual(await heights({ type: "block", height: 4 }), [4]);
  const missed = { type: "missed", channel: "blocks", first: 5, last: 6 };
  assert.deepEqual(await heights(snapshot(20, 21)), [missed, ...range(7, 21).map((block) => block.height)]);
});

test("a stream of trades resumes from the history", async () => {
  const feed = new Feed(session(), ["trades:EUR/USD"], 10);
  const trade = { market: "EUR/USD", height: 14, price: "1.1", base_volume: "10000", quote_volume: "110" };
  const events = await feed.receive({ type: "snapshot", channel: "trades:EUR/USD", trades: [trade] } as unknown as Message);
  assert.deepEqual(
    events.map((event) => event.type === "trade" && [event.trade.height, event.trade.quote_volume]),
    [[11, null], [14, "1.1"]],
  );
});

test("a stream keeps a book whose checksum is the node's, and goes on where it was", async () => {
  const feed = new Feed(session(), ["book:EUR/USD"], null);
  const hear = async (message: object) => (await feed.receive(message as unknown as Message))[0];
  const level = (units: string, amount: string, offers = 1) => ({ price: units, price_units: units, amount, offers });
  const buys = [level("100", "70000")];
  const snapshot = { type: "snapshot", channel: "book:EUR/USD", market: "EUR/USD", height: 5, buys, checksum: 981593380 };
  const sells = [level("110", "100000"), level("120", "50000", 2)];
  const first = await hear({ ...snapshot, sells });
  assert.ok(first?.type === "book" && first.changes.length === 3 && first.height === 5);
  assert.deepEqual(first.book.sells[0], { price: "110", amount: "10", offers: 1 });
  const more = { type: "book", market: "EUR/USD", height: 9, previous: 7 };
  await assert.rejects(hear({ ...more, buys: [], sells: [], checksum: 981593380 }), /leads on from block 7/);
  assert.deepEqual(feed.heights(), {}, "what was given up is not resumed");
  await hear({ ...snapshot, sells });
  assert.deepEqual(feed.heights(), { "book:EUR/USD": 5 });
  const change = { ...more, previous: 5, buys: [], sells: [level("110", "0", 0), level("120", "40000")], checksum: 4203873026 };
  const second = await hear(change);
  assert.deepEqual(second?.type === "book" && second.changes, [
    { side: "sell", price: "110", amount: "0" },
    { side: "sell", price: "120", amount: "4" },
  ]);
  assert.equal(await hear(change), undefined, "it is known already");
  await assert.rejects(hear({ ...change, height: 10, previous: 9, checksum: 1 }), /another one than the node's/);
  assert.equal(await hear({ type: "error", code: "resume_gone", message: "…" }), undefined);
  assert.equal(crc32("123456789"), 0xcbf43926);
});

test("a key file of the command line's form opens with its passphrase alone", async () => {
  const kept = readFileSync(new URL("../../tests/key.json", import.meta.url), "utf8");
  assert.equal((await openKey(kept, "correct horse")).address, JSON.parse(kept).address);
  await assert.rejects(openKey(kept, "wrong"), KeyError);
  await assert.rejects(openKey(kept.replace(/"memory_kib": \d+/, '"memory_kib": 99999999'), "correct horse"), /at most/);
  await assert.rejects(openKey("{}", "correct horse"), KeyError);
  const seed = new Uint8Array(32).fill(7);
  const text = await sealKey(seed, "secret", [1 << 10, 1]);
  assert.equal((await openKey(text, "secret")).address, new Ed25519Key(seed).address);
});

test("orders at venues have the published bytes, and their keys sign them", () => {
  type Published = { number: OrderNumber; floor: OrderNumber; side: number; life: number; self_trade: number; expiry: string; signing_bytes: string };
  const told = JSON.parse(readFileSync(new URL("../../../../docs/venue-vectors.json", import.meta.url), "utf8")) as {
    network: string;
    venue: number;
    orders: (Published & Pick<VenueOrder, "market" | "tick" | "lots" | "fee_cap_ppm"> & { until_ms: string | null })[];
    possession: string;
  };
  const lives = ["rests", "post_only", "immediate_or_cancel", "fill_or_kill"] as const;
  const rules = ["expire_maker", "expire_taker", "expire_both"] as const;
  for (const { side, life, self_trade, expiry, until_ms, signing_bytes, ...rest } of told.orders) {
    const order: VenueOrder = {
      ...{ ...rest, side: side === 0 ? "buy" : "sell", life: lives[life]!, self_trade: rules[self_trade]! },
      ...{ expiry: Number(expiry), until_ms: until_ms == null ? null : Number(until_ms) },
    };
    const head = "0x" + Buffer.from("walras venue order v1\0").toString("hex") + told.network.slice(2);
    assert.equal(head + "0" + String(told.venue) + "000000" + toHex(orderBytes(order)).slice(2), signing_bytes);
    const key = new TradingKey(new Uint8Array(32).fill(7));
    const signed = key.order(order, { network: told.network, venue: told.venue, incarnation: 2 });
    assert.ok(ed25519.verify(fromHex(signed.signature), fromHex(signing_bytes), fromHex(key.public)));
  }
});

test("reports of fills of both forms are read and verified, and no spoiled one is", () => {
  const told = JSON.parse(readFileSync(new URL("../../../../docs/venue-vectors.json", import.meta.url), "utf8")) as {
    network: string;
    report: { bytes: string };
    step: { number: string; clock_ms: string; size: number; signature: string; leaves: { index: string; leaf: string; account: string }[]; reports: string[]; refused: { why: string; bytes: string }[] };
  };
  const { network, step } = told;
  const single = readReport(told.report.bytes);
  assert.ok(single.step === null && isReportSigned(single, network) && !isReportSigned(single, "0x" + "11".repeat(32)));
  assert.ok(!isReportSigned({ ...single, index: single.index + 1n }, network));
  assert.equal(step.reports.length, step.size);
  for (const [place, bytes] of step.reports.entries()) {
    const report = readReport(bytes);
    const { index, leaf, account } = step.leaves[place]!;
    assert.deepEqual([String(report.index), report.leaf, report.account, report.signature], [index, leaf, account, step.signature]);
    assert.deepEqual([String(report.step!.number), String(report.step!.clock_ms), report.step!.place], [step.number, step.clock_ms, place]);
    assert.ok(isReportSigned(report, network) && !isReportSigned(report, "0x" + "11".repeat(32)), String(place));
  }
  const isTaken = (bytes: string): boolean => {
    try {
      return isReportSigned(readReport(bytes), network);
    } catch (error) {
      assert.ok(error instanceof ProofError, String(error));
      return false;
    }
  };
  assert.ok(step.refused.length > 15);
  for (const { why, bytes } of step.refused) assert.ok(!isTaken(bytes), why);
  for (const bytes of ["0x", "0x01", step.reports[0]!.slice(0, -2), step.reports[0]! + "00", "0x00" + step.reports[0]!.slice(4)]) assert.ok(!isTaken(bytes));
});

test("a status that this client does not know is an error that names it", async () => {
  const { signed } = await sender(new MemoryStore()).sign(burn, null);
  const body = (more: object) => ({ id: signed.id, height: 7, outcome: { result: "applied" }, ...more }) as unknown as Parameters<typeof told>[1];
  assert.equal((await told(session(), body({ status: "committed" }), signed)).state, "executed");
  assert.equal((await told(session(), body({ status: "pending" }), signed)).state, "pending");
  for (const status of ["reverted", "Committed", "", undefined]) {
    const named = (error: Error) => error instanceof ForeignAnswerError && error.message.includes(`the status ${JSON.stringify(status)} of a transaction`);
    await assert.rejects(told(session(), body({ status }), signed), named, String(status));
  }
  await assert.rejects(told(session(), body({ status: "committed", outcome: undefined }), signed), /without its outcome/);
  const assets = await session().assets();
  const fate = { account: KEY.address, height: 7, known_from: 1, until: "9", why: null, id: signed.id, sequence: "1", order: null, sold: "0", bought: "0", returned: "0", fills: [], others: [] };
  assert.equal(orderFate({ ...fate, status: "pending" }, assets).status, "pending");
  assert.throws(() => orderFate({ ...fate, status: "paused" }, assets), /the status "paused" of an order/);
});

test("the pause that a busy node asks for is kept, in seconds or until a date", async () => {
  const now = Date.parse("Fri, 02 Jan 2026 03:04:05 GMT");
  assert.equal(retryAfterMs("3", now), 3000);
  assert.equal(retryAfterMs("Fri, 02 Jan 2026 03:04:15 GMT", now), 10_000);
  assert.equal(retryAfterMs("Fri, 02 Jan 2026 03:04:00 GMT", now), 0);
  for (const nothing of [null, "", "-5", "soon", "1e9", "9".repeat(40)]) assert.equal(retryAfterMs(nothing, now), 1000, String(nothing));
  // A question is asked again after the pause, and no sooner.
  const asked: number[] = [];
  const fetch: Fetch = async () => {
    asked.push(performance.now());
    if (asked.length > 1) return Response.json({ height: 1 });
    return Response.json({ error: { code: "too_many_requests", message: "later" } }, { status: 429, headers: { "retry-after": "1" } });
  };
  assert.deepEqual(await new Http("http://here", null, fetch).get("/v1/status"), { height: 1 });
  assert.ok(asked.length === 2 && asked[1]! - asked[0]! >= 990);
});
