/** docs/lane-specification.md, followed word by word: every form that a purse makes or reads, and every change that it refuses. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as bls from "../src/lane/bls.js";
import { encodeCertificate, parseCertificate, verifyCertificate, type Answer } from "../src/lane/certificate.js";
import { Collection, Inquiry, build, restored, stored, type Holding } from "../src/lane/collect.js";
import { encodeRegistration, quorums, readRegistration, seated, shardOf, verifyRegistration, withBoard, type Committee } from "../src/lane/committee.js";
import * as ed25519 from "../src/lane/ed25519.js";
import { Refused, hex, join, parsed } from "../src/lane/layout.js";
import * as payment from "../src/lane/payment.js";
import * as receipt from "../src/lane/receipt.js";
import * as request from "../src/lane/request.js";
import * as trees from "../src/lane/trees.js";
import * as wire from "../src/lane/wire.js";
import { fromHex } from "../src/typed.js";
import { Ledger, verifyPost } from "./lane/bridge.js";
import { Shard, parseRequest } from "./lane/shard.js";

type Vector = { form: string; name: string; bytes: string; reason: string; epoch: number; kind: number; owner: string; digest: string };
type RequestVector = Vector & { member: number; shard: number; now: number; before: string[]; backed: { id: string; owner: string; asset: number; amount: string }[] };
type Made = {
  quorums: number[][];
  shards: [string, number, number][];
  accounts: [string, string][];
  ids: { deposit: string; genesis: string; carried: string };
  trees: { size: number; root: string; paths: string[][] }[];
  signatures: { name: string; key: string; message: string; signature: string; valid: boolean }[];
  payments: MadePayment[];
  child: { request: string; settle: string };
  question: string;
  group_key: string;
};
type MadePayment = {
  seed: string;
  home: number;
  into: number;
  inputs: { id: string; asset: number; amount: string }[];
  outputs: { account?: string; key?: string; asset: number; amount: string }[];
  bytes: string;
  summary: string;
  digest: string;
  ids: string[];
  is_exit: boolean;
  signing_bytes: string;
  signature: string;
};
type World = { network: string; assets: { asset: number; least_units: string; fee: string }[]; registrars: string[]; registrations: string[]; boards: Record<string, string> };

const ALL = JSON.parse(readFileSync(new URL("../../../../docs/lane-vectors.json", import.meta.url), "utf8")) as {
  world: World;
  made: Made;
  verified: Vector[];
  refused: Vector[];
};
const { world, made } = ALL;
const NETWORK = fromHex(world.network);
const REGISTRARS = world.registrars.map(fromHex);
const RULES: payment.Rules = {
  network: NETWORK,
  assets: new Map(world.assets.map((one) => [one.asset, { least: BigInt(one.least_units), fee: BigInt(one.fee) }])),
};
const REGISTRATIONS = world.registrations.map((one) => parsed(readRegistration, fromHex(one)));

const kept = new Map<string, Committee | null>();
function remembered(name: string, make: () => Committee | null): Committee | null {
  if (!kept.has(name)) kept.set(name, make());
  return kept.get(name) ?? null;
}
const plain = (epoch: bigint) =>
  remembered(`plain ${epoch}`, () => (REGISTRATIONS.some((one) => one.epoch === epoch) ? seated(NETWORK, epoch, REGISTRARS, REGISTRATIONS) : null));
const ofEpoch = (epoch: bigint) =>
  remembered(`board ${epoch}`, () => {
    const [found, board] = [plain(epoch), world.boards[String(epoch)]];
    return found && board !== undefined ? withBoard(found, fromHex(board)) : found;
  });
const known = (epoch: bigint) => receipt.known(ofEpoch, epoch);

function judgeRequest(vector: RequestVector): void {
  const backed = new Map(vector.backed.map((one) => [hex(fromHex(one.id)), { kind: 0, to: fromHex(one.owner), asset: one.asset, amount: BigInt(one.amount) } as const]));
  const shard = new Shard(RULES, known(BigInt(vector.epoch)), ofEpoch, vector.member, vector.shard, BigInt(vector.now), backed);
  for (const before of vector.before) shard.judge(fromHex(before));
  shard.judge(fromHex(vector.bytes));
}

/** Verifies a vector; returns what it encodes to, for forms that are encoded again. */
function judged(vector: Vector): Uint8Array | null {
  const data = vector.form === "slip" ? new Uint8Array() : fromHex(vector.bytes);
  switch (vector.form) {
    case "payment": {
      const paid = payment.parsePayment(data);
      payment.checkPayment(paid, RULES);
      return payment.encodePayment(paid);
    }
    case "certificate": {
      const found = parseCertificate(data);
      verifyCertificate(found, known(BigInt(vector.epoch)), { kind: vector.kind, owner: fromHex(vector.owner), digest: fromHex(vector.digest) });
      return encodeCertificate(found);
    }
    case "receipt": {
      const proved = receipt.parseReceipt(data);
      receipt.verifyReceipt(proved, NETWORK, ofEpoch);
      return receipt.encodeReceipt(proved);
    }
    case "request":
      judgeRequest(vector as RequestVector);
      return null;
    case "registration": {
      const registered = parsed(readRegistration, data);
      verifyRegistration(registered, NETWORK, REGISTRARS);
      return encodeRegistration(registered);
    }
    case "post":
      verifyPost(data, new Ledger(NETWORK, REGISTRARS, ofEpoch));
      return null;
    case "board":
      withBoard(plain(BigInt(vector.epoch)) as Committee, data);
      return null;
    case "slip": {
      const slip = receipt.parseSlip(vector.bytes, NETWORK);
      assert.equal(receipt.slipText(slip, NETWORK), vector.bytes);
      return null;
    }
    case "reply":
      return wire.encodeReply(wire.parseReply(data));
    case "frame": {
      const { frames, rest } = wire.split(data, wire.REPLY_BYTES_MAX);
      return join(...frames.map(({ number, body }) => wire.frame(number, body)), rest);
    }
    default:
      throw new Error(vector.form);
  }
}

for (const vector of ALL.verified) {
  test(`${vector.form}: ${vector.name} verifies, and has one encoding`, () => {
    const again = judged(vector);
    assert.ok(again === null || hex(again) === hex(fromHex(vector.bytes)));
  });
}

for (const vector of ALL.refused) {
  test(`${vector.form}: ${vector.name} is refused as ${vector.reason}`, () => {
    assert.throws(() => judged(vector), (error) => error instanceof Refused && error.reason === vector.reason || assert.fail(String(error)));
  });
}

test("quorums, shards, accounts, ids and trees follow from their numbers", () => {
  for (const [members, ...expected] of made.quorums) {
    const of = quorums(members as number);
    assert.deepEqual([of.faulty, of.certificate, of.binding, of.witness], expected);
  }
  for (const [owner, shards, place] of made.shards) assert.equal(shardOf(fromHex(owner), shards), place);
  for (const [key, account] of made.accounts) assert.equal(hex(ed25519.accountOf(fromHex(key))), hex(fromHex(account)));
  const bytes = (byte: number, count: number) => new Uint8Array(count).fill(byte);
  assert.equal(hex(payment.depositId(NETWORK, 3n, bytes(4, 20), 12n)), hex(fromHex(made.ids.deposit)));
  assert.equal(hex(payment.genesisId(NETWORK, 2)), hex(fromHex(made.ids.genesis)));
  assert.equal(hex(payment.carriedId(NETWORK, bytes(6, 32))), hex(fromHex(made.ids.carried)));
  for (const { size, root, paths } of made.trees) {
    const leaves = Array.from({ length: size }, (_, leaf) => trees.leaf(trees.SIGNED, bytes(leaf, 32)));
    assert.equal(hex(trees.root(trees.SIGNED, leaves)), hex(fromHex(root)));
    paths.forEach((expected, index) => {
      const path = trees.path(trees.SIGNED, leaves, index);
      assert.deepEqual(path.map(hex), expected.map((one) => hex(fromHex(one))));
      assert.equal(hex(trees.rootOf(trees.SIGNED, leaves[index] as Uint8Array, size, index, path)), hex(fromHex(root)));
    });
  }
});

for (const { name, key, message, signature, valid } of made.signatures) {
  test(`a signature by ZIP-215: ${name}`, () => {
    assert.equal(ed25519.holds(fromHex(key), fromHex(message), fromHex(signature)), valid);
  });
}

const ofFields = (vector: MadePayment): payment.Payment => ({
  network: NETWORK,
  home: BigInt(vector.home),
  into: BigInt(vector.into),
  owner: ed25519.publicOf(fromHex(vector.seed)),
  inputs: vector.inputs.map((one) => ({ id: fromHex(one.id), asset: one.asset, amount: BigInt(one.amount) })),
  outputs: vector.outputs.map((one) => ({
    kind: one.account === undefined ? 0 : 1,
    to: fromHex(one.account ?? one.key ?? ""),
    asset: one.asset,
    amount: BigInt(one.amount),
  })),
});

test("payments and requests are made of their fields", () => {
  for (const vector of made.payments) {
    const one = ofFields(vector);
    assert.equal(hex(payment.encodePayment(one)), hex(fromHex(vector.bytes)));
    assert.equal(hex(payment.encodeSummary(payment.summaryOf(one))), hex(fromHex(vector.summary)));
    assert.equal(hex(payment.digestOf(one)), hex(fromHex(vector.digest)));
    assert.deepEqual(one.outputs.map((_, at) => hex(payment.idAt(one, at))), vector.ids.map((id) => hex(fromHex(id))));
    assert.equal(payment.isExit(one), vector.is_exit);
    assert.equal(hex(payment.ownerBytes(one)), hex(fromHex(vector.signing_bytes)));
    assert.equal(hex(ed25519.sign(fromHex(vector.seed), payment.ownerBytes(one))), hex(fromHex(vector.signature)));
  }
  const [parent, child] = made.payments.slice(1, 3) as [MadePayment, MadePayment];
  const asked = parseRequest(fromHex(made.child.request));
  assert.ok(asked.request === "spend");
  const proofs = parsed((reader) => reader.times(2, receipt.readProof), asked.proofs);
  const from = ofFields(parent);
  const again = ofFields(child).inputs.map(({ id }) => {
    const index = from.outputs.findIndex((_, at) => hex(payment.idAt(from, at)) === hex(id));
    return receipt.receiptOf(from, index, (proofs[0] as receipt.PaidProof).certificate).proof;
  });
  assert.equal(hex(request.spendRequest(ofFields(child), fromHex(child.signature), again)), hex(fromHex(made.child.request)));
  const settles = parseRequest(fromHex(made.child.settle));
  assert.ok(settles.request === "settle");
  assert.equal(hex(request.settleRequest(settles.summary, settles.certificate)), hex(fromHex(made.child.settle)));
  assert.equal(hex(request.questionRequest(NETWORK, 5n, fromHex(parent.seed), new Uint8Array(32).fill(6))), hex(fromHex(made.question)));
});

test("the group key follows from the board", () => {
  assert.equal(hex((known(5n).group as { key: bls.Key }).key.toBytes(true)), hex(fromHex(made.group_key)));
});

test("a payment is fast with a quorum of answers that verify, and not before; refusals are final only if they say so", () => {
  const settles = parseRequest(fromHex(made.child.settle));
  assert.ok(settles.request === "settle" && settles.certificate.form === "answers");
  const [digest, { answers }] = [payment.summaryDigest(settles.summary, NETWORK), settles.certificate];
  const reply = (answer: Answer, kind = 2): wire.Reply => ({ reply: "answer", kind, digest, answer });
  const [first, second, third] = answers as [Answer, Answer, Answer];
  const collection = new Collection(known(5n), payment.CONFIRMATION, settles.summary);
  const lies = [
    reply(first, 3),
    { ...reply(first), digest: new Uint8Array(32) } as wire.Reply,
    reply({ ...first, validator: 1 }),
    reply({ ...first, position: first.position + 1n }),
    { reply: "bls", kind: 2, digest, validator: 0, signature: new Uint8Array(48) } as wire.Reply,
    { reply: "refusal", again: true, text: "busy" } as wire.Reply,
  ];
  for (const lie of lies) assert.ok(collection.add(0, lie) === null && collection.answered().size === 0);
  for (const one of [first, first, second]) assert.equal(collection.add(0, reply(one)), null, "a copy is no second signer");
  collection.add(3, { reply: "refusal", again: false, text: "no" });
  assert.ok(!collection.isHopeless);
  assert.deepEqual(collection.toAsk().map((one) => one.member), [2]);
  assert.equal(hex(encodeCertificate(collection.add(2, reply(third)) as NonNullable<ReturnType<typeof collection.add>>)), hex(encodeCertificate(settles.certificate)));
  const other = new Collection(known(5n), payment.CONFIRMATION, settles.summary);
  for (const member of [0, 1]) other.add(member, { reply: "refusal", again: false, text: "no" });
  assert.ok(other.isHopeless, "two of four are left, and three are needed");
});

test("what a purse stores is what it sends, and an answer about a spender counts only with the owner's signature", () => {
  const seed = new Uint8Array(32).fill(9);
  const key = ed25519.publicOf(seed);
  const held: Holding[] = [1, 2].map((number) => ({ id: new Uint8Array(32).fill(number), output: { kind: 0, to: key, asset: 9, amount: 10n * BigInt(number) }, home: 5n, proof: null }));
  const made = build(RULES, seed, held, 5n, [{ kind: 0, to: key, asset: 9, amount: 30n }]);
  assert.deepEqual(restored(stored(made)), made);
  assert.throws(() => build(RULES, seed, held, 5n, [{ kind: 0, to: key, asset: 9, amount: 31n }]), /WrongSum/);
  const [holding] = held as [Holding];
  const told = (signature: Uint8Array, data: Uint8Array): wire.Reply => ({ reply: "spender", output: holding.id, spender: { signature, payment: data } });
  const data = payment.encodePayment(made.payment);
  const inquiry = new Inquiry(known(5n), holding, seed);
  const small = { ...holding, output: { ...holding.output, amount: 9n } };
  const other = build(RULES, seed, [small], 5n, [{ kind: 0, to: key, asset: 9, amount: 9n }]);
  for (const lie of [told(new Uint8Array(64), data), told(made.signature, data.slice(1)), told(other.signature, payment.encodePayment(other.payment))]) {
    assert.equal(inquiry.add(0, lie), null);
  }
  const silent: wire.Reply = { reply: "spender", output: holding.id, spender: null };
  assert.deepEqual([0, 0, 1, 2].map((member) => inquiry.add(member, silent)), [null, null, null, "nothing"]);
  assert.deepEqual(new Inquiry(known(5n), holding, seed).add(0, told(made.signature, data)), { payment: made.payment, signature: made.signature });
});
