/** Purses without a node: what they choose, keep and refuse. Receipts and keys are those of docs/lane-vectors.json. */
import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AmountError, KeyError, ProofError, UnknownAssetError } from "../src/index.js";
import { sealKey } from "../src/keystore.js";
import * as ed25519 from "../src/lane/ed25519.js";
import { readRegistration } from "../src/lane/committee.js";
import { derived, hex, join as joined, parsed, u32, u64 } from "../src/lane/layout.js";
import { laneAddress, laneBill, parsePayable, parseSlip } from "../src/lane/receipt.js";
import { Reader } from "../src/proof.js";
import { DatabaseFiles } from "../src/purse/browser.js";
import { Money, type TermsBody, ToldTerms } from "../src/purse/terms.js";
import { choose } from "../src/purse/choose.js";
import { createContents, PurseContents } from "../src/purse/contents.js";
import { readJson, writeJson } from "../src/purse/files.js";
import { MemoryFiles, Purse, PurseError, PurseFileError, PurseInUseError, ReceiptError, type PurseFiles } from "../src/purse/index.js";
import { follow, outcomeOf, readParts, verifyCertificate, type Certificate, type Chain, type Handover } from "../src/purse/lineage.js";
import { LaneNetwork } from "../src/purse/network.js";
import { FolderFiles } from "../src/purse/node.js";
import { checked } from "../src/purse/receipts.js";
import { checkEntries, registrationBody } from "../src/purse/trust.js";
import { fromHex } from "../src/typed.js";

type Vector = { form: string; name: string; bytes: string; reason: string };
const ALL = JSON.parse(readFileSync(new URL("../../../../docs/lane-vectors.json", import.meta.url), "utf8")) as {
  world: { network: string; registrars: string[]; registrations: string[] };
  verified: Vector[];
  refused: Vector[];
};
const REGISTERED = ALL.world.registrations.map((one) => parsed(readRegistration, fromHex(one)));
const PASSPHRASE = "a passphrase";
// Few passes: what a passphrase withstands is not tested here.
const SEED_FILE = sealKey(new Uint8Array(32).fill(3), PASSPHRASE, [64, 1]);

const network = () =>
  new LaneNetwork({
    network: ALL.world.network,
    members: ALL.world.registrars.map(() => ["0x" + hex(REGISTERED[0]?.keys[0] ?? new Uint8Array())]),
    registrars: ALL.world.registrars,
    assets: [
      { asset: 0, symbol: "USD", decimals: 2, least_units: 1, fee: 0 },
      { asset: 1, symbol: "EUR", decimals: 2, least_units: 10, fee: 3 },
    ],
    validators: null,
  });

/** A purse of the vectors' world, which knows the keys of its epochs. */
async function made<F extends PurseFiles>(files: F): Promise<F> {
  await createContents(files, network(), () => SEED_FILE);
  await writeJson(files, "proved-epochs.json", REGISTERED.map(registrationBody));
  return files;
}
const folder = () => new FolderFiles(join(mkdtempSync(join(tmpdir(), "walras-purse-")), "purse"));
const opened = async () => Purse.open(await made(new MemoryFiles()), { passphrase: PASSPHRASE });

async function refusal(act: Promise<unknown>): Promise<ReceiptError> {
  const error = await act.then(() => null, (one: unknown) => one);
  assert.ok(error instanceof ReceiptError, String(error));
  return error;
}

test("a purse verifies each slip of the vectors, and refuses each changed one with its reason in words", async () => {
  const purse = await opened();
  for (const { name, bytes } of ALL.verified.filter(({ form }) => form === "slip")) {
    if (name === "a slip of a deposit") assert.match((await refusal(purse.verify(bytes))).message, /proves no money/);
    else assert.ok((await purse.verify(bytes)).length > 0, name);
  }
  for (const { name, bytes, reason } of ALL.refused.filter(({ form }) => form === "slip")) {
    const error = await refusal(purse.verify(bytes));
    assert.ok(error.reason === reason && error.message.length > reason.length + 10, `${name}: ${error.message}`);
  }
  const files = await made(new MemoryFiles());
  await files.remove("proved-epochs.json");
  const without = await Purse.open(files);
  const good = ALL.verified.find(({ name }) => name === "a slip of a receipt")?.bytes ?? "";
  assert.equal((await refusal(without.verify(good))).reason, "UnknownCommittee");
});

test("what is asked wrongly is refused before anything is stored", async () => {
  const purse = await opened();
  const to = await purse.address();
  await assert.rejects(purse.send(to, "XYZ", "1"), UnknownAssetError);
  await assert.rejects(purse.bill("USD", "0.001"), AmountError);
  await assert.rejects(purse.deposit("EUR", "0.05"), /give it one, such as new Client/);
  await assert.rejects(purse.send(to, "USD", "1"), /give it one, such as new Client/);
  await assert.rejects(purse.export("0x12"), /is no payment of this purse/);
  assert.equal((await refusal(purse.send(laneAddress(new Uint8Array(32), new Uint8Array(32)), "USD", "1"))).reason, "Mistyped");
  assert.equal((await refusal(purse.receive(" \n"))).reason, "Short");
  assert.deepEqual([await purse.balance({ offline: true }), await purse.history()], [[], []]);
  const shown = await Purse.open(await made(new MemoryFiles()));
  await assert.rejects(shown.address(), /without its passphrase/);
});

test("a bill is that of the specification, and is paid as it asks or not at all", async () => {
  const page = readFileSync(new URL("../../../../docs/lane-specification.md", import.meta.url), "utf8").replaceAll("\n", "");
  const [here, key, asked] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(0xab), { asset: 1, amount: 1_250n }];
  const text = laneBill(here, key, asked);
  assert.ok(page.includes(text), text);
  assert.deepEqual(parsePayable(` ${text.toUpperCase()} `, here), { key, asked });
  for (let at = "lane:".length; at < text.length; at += 1) {
    const changed = text.slice(0, at) + (text[at] === "0" ? "1" : "0") + text.slice(at + 1);
    assert.throws(() => parsePayable(changed, here), /Mistyped/, `digit ${at}`);
  }
  const purse = await opened();
  const bill = await purse.bill("EUR", "12.50");
  assert.deepEqual([purse.asked(bill.toUpperCase()), purse.asked(await purse.address())], [{ asset: "EUR", amount: "12.5" }, null]);
  for (const [asset, amount] of [["EUR", "12.49"], ["USD", "12.5"]] as const) await assert.rejects(purse.send(bill, asset, amount), /the address asks for 12.5 EUR, not 12/);
  await assert.rejects(purse.bill("EUR", "0.05"), /asks for at least 0.1 EUR/);
  assert.throws(() => purse.asked(text), /mistyped or belongs to another lane/);
  assert.throws(() => purse.asked(laneBill(fromHex(ALL.world.network), key, { asset: 9, amount: 1n })), /did not carry/);
});

test("a receipt of a lane epoch that is over is refused with both epochs, and one of the epoch before is taken", async () => {
  const line = ALL.verified.find(({ name }) => name === "a slip of a receipt")?.bytes ?? "";
  const slip = parseSlip(line, fromHex(ALL.world.network));
  assert.ok(slip.kind === "receipt");
  const { output, proof } = slip.receipt;
  const files = await made(new MemoryFiles());
  await writeJson(files, "keys.json", { salt: "", keys: [{ public: "0x" + hex(output.to), salt: "", index: 0 }] });
  const contents = await PurseContents.open(files);
  const { into } = proof.summary;
  assert.equal(checked(contents, slip, into + 1n).receipt, slip.receipt);
  assert.throws(() => checked(contents, slip, into + 2n), new RegExp(`of lane epoch ${into}, and now is ${into + 2n}: too late to spend it. Ask the payer`));
});

test("a folder is opened once, made once, and a damaged file is named with what to do", async () => {
  const files = await made(folder());
  const purse = await Purse.open(files, { passphrase: PASSPHRASE });
  await assert.rejects(Purse.open(new FolderFiles(files.place), { passphrase: PASSPHRASE }), PurseInUseError);
  await assert.rejects(createContents(files, network(), () => SEED_FILE), /is a purse already/);
  await purse.close();
  await assert.rejects(Purse.open(files, { passphrase: "another" }), KeyError);
  for (const name of ["lane.json", "keys.json", "proved-epochs.json", "boards.json"]) {
    const other = await made(folder());
    writeFileSync(join(other.place, name), '[{"network": 1}]');
    if (name === "boards.json") writeFileSync(join(other.place, name), "{");
    const error = await Purse.open(other, { passphrase: PASSPHRASE }).then(() => null, (one: unknown) => one);
    assert.ok(error instanceof PurseFileError && /it is damaged \(.*\): (restore|remove)/.test(error.message) && error.message.includes(name), String(error));
  }
  await assert.rejects(Purse.open(folder(), { passphrase: PASSPHRASE }), /is not a purse/);
});

test("a copy of a folder is told apart and makes other keys", async () => {
  const files = await made(folder());
  const copied = new FolderFiles(`${files.place}-copy`);
  cpSync(files.place, copied.place, { recursive: true });
  assert.deepEqual([await files.isCopy(), await copied.isCopy()], [false, true]);
  const copy = await PurseContents.open(copied);
  await copy.settleIn();
  assert.ok(!(await copied.isCopy()));
  const [original, seed] = [await PurseContents.open(files), new Uint8Array(32).fill(3)];
  const [one, other] = [await original.keys.make(seed), await copy.keys.make(seed)];
  assert.notEqual(hex(one), hex(other));
  // A ring that lost its newest keys finds them again by the seed.
  const kept = await files.read("keys.json");
  const lost = await original.keys.make(seed);
  await files.write("keys.json", kept ?? new Uint8Array());
  await Promise.all([original.close(), copy.close()]);
  const restored = await PurseContents.open(files);
  assert.ok(!restored.keys.has(lost));
  await restored.keys.findLost(seed, [lost]);
  assert.equal(hex(ed25519.publicOf(restored.keys.secret(seed, lost))), hex(lost));
  assert.throws(() => restored.keys.secret(new Uint8Array(32), lost), /belong to different purses/);
  await restored.close();
});

test("a disk that refuses names the file, and the file is as it was", async () => {
  const files = await made(folder());
  const before = readFileSync(join(files.place, "keys.json"), "utf8");
  await assert.rejects(files.write("keys.json/under", new Uint8Array()), PurseFileError);
  assert.equal(readFileSync(join(files.place, "keys.json"), "utf8"), before);
  chmodSync(files.place, 0o700);
});

test("units beyond the numbers of JavaScript are read and written exactly", async () => {
  const files = new MemoryFiles();
  await writeJson(files, "x.json", { amount: 9223372036854775807n, few: 5, list: [9007199254740993n], text: "9223372036854775807" });
  const text = new TextDecoder().decode((await files.read("x.json")) ?? new Uint8Array());
  assert.ok(text.includes('"amount": 9223372036854775807,') && text.includes('"text": "9223372036854775807"'));
  assert.deepEqual(await readJson(files, "x.json"), { amount: 9223372036854775807n, few: 5, list: [9007199254740993n], text: "9223372036854775807" });
});

const held = (owner: number, home: bigint, amount: bigint, number: number) => ({
  id: new Uint8Array(32).fill(number),
  output: { kind: 0 as const, to: new Uint8Array(32).fill(owner), asset: 0, amount },
  home,
  proof: null,
});

test("outputs of one owner and home make one payment, fees are paid, and no output is too small", () => {
  const chosen = (of: ReturnType<typeof held>[], least: bigint, fee: bigint, amount: bigint) => {
    const parts = choose(of, 0, () => ({ least, fee }), amount, 5n);
    return typeof parts === "bigint" ? parts : parts.map(({ inputs, paid, change }) => [inputs.length, paid, change]);
  };
  const purse = [held(1, 5n, 40n, 1), held(1, 5n, 30n, 2), held(2, 5n, 100n, 3), held(3, 4n, 60n, 4), held(4, 3n, 500n, 5)];
  assert.deepEqual(chosen(purse, 1n, 0n, 55n), [[1, 55n, 5n]]);
  assert.deepEqual(chosen(purse, 1n, 0n, 65n), [[2, 65n, 5n]], "the smallest group that suffices");
  assert.deepEqual(chosen(purse, 1n, 0n, 165n), [[1, 100n, 0n], [2, 65n, 5n]]);
  assert.equal(chosen(purse, 1n, 0n, 231n), 1n, "what is too old is not spent");
  const two = [held(1, 5n, 40n, 1), held(2, 5n, 100n, 3)];
  assert.deepEqual(chosen(two, 1n, 3n, 98n), [[1, 97n, 0n], [1, 1n, 36n]]);
  assert.equal(chosen(two, 1n, 3n, 135n), 1n, "a fee for each of two payments");
  assert.deepEqual(chosen(two, 10n, 0n, 95n), [[1, 85n, 15n], [1, 10n, 30n]]);
  for (let amount = 1n; amount < 200n; amount += 1n) {
    const parts = choose(two, 0, () => ({ least: 7n, fee: 2n }), amount, 5n);
    if (typeof parts === "bigint") continue;
    assert.equal(parts.reduce((sum, { paid }) => sum + paid, 0n), amount);
    assert.ok(parts.every(({ paid, change }) => paid >= 7n && (change === 0n || change >= 7n)));
  }
});

test("a payment pays the fee of its home", () => {
  const of = [held(1, 5n, 100n, 1), held(2, 4n, 100n, 2)];
  const parts = choose(of, 0, (home) => ({ least: 1n, fee: home === 5n ? 9n : 2n }), 150n, 5n);
  assert.ok(typeof parts !== "bigint");
  assert.deepEqual(parts.map(({ inputs, paid, change }) => [inputs[0]?.home, paid + change]).sort(), [[4n, 98n], [5n, 91n]]);
});

const termsOf = (number: number, asset: string, from: number, fee: number, more: object = {}): TermsBody =>
  ({ asset, number, decimals: 2, from, least_units: "10", fee: `${fee}`, deposits: "taken", ...more });

test("a home has the last terms before it", () => {
  const told = new ToldTerms([termsOf(7, "GBP.7", 6, 3, { deposits: "refused" }), termsOf(0, "USD", 0, 1), termsOf(7, "GBP.7", 4, 2)]);
  assert.deepEqual([3n, 4n, 5n, 6n].map((home) => told.rule(7, home)?.fee), [undefined, 2n, 2n, 3n]);
  assert.deepEqual([5n, 6n].map((epoch) => told.takesDeposits(7, epoch)), [true, false]);
  assert.ok(!told.takesDeposits(8, 9n) && new ToldTerms([]).takesDeposits(8, 9n), "a node of an older version tells nothing");
  assert.deepEqual(told.assets().map(({ symbol, fee }) => [symbol, fee]), [["USD", 1n], ["GBP.7", 3n]]);
});

test("no node renames an asset that the purse knows", () => {
  const known = [new Money(0, "USD", 2, 1n, 0n)];
  const other = (...told: TermsBody[]) => new ToldTerms(told).renamed(known)?.asset;
  assert.equal(other(termsOf(0, "USD", 0, 1), termsOf(7, "GBP.7", 4, 2)), undefined);
  assert.equal(other(termsOf(7, "USD", 0, 1)), 7);
  assert.equal(other(termsOf(0, "GBP", 0, 1)), 0);
  assert.equal(other(termsOf(0, "USD", 0, 1, { decimals: 0 })), 0);
  assert.equal(other(termsOf(7, "X", 0, 1), termsOf(8, "X", 0, 1)), 7);
});

const NETWORK = new Uint8Array(32).fill(7);
const SEEDS = [1, 2, 3, 4].map((byte) => new Uint8Array(32).fill(byte));
const CHAIN: Chain = { network: NETWORK, schedule: { heights: 10n, delay: 2n }, epoch: 0n, keys: SEEDS.map(ed25519.publicOf) };

function certified(signers: number[], outcome: Uint8Array, { epoch = 0n, height = 5n, seeds = SEEDS } = {}): Certificate {
  const block = new Uint8Array(32).fill(5);
  const digest = derived("walras 2026 consensus commit v1", joined(NETWORK, u64(epoch), u64(height), block, outcome));
  return { epoch, height, block, outcome, signatures: signers.map((signer) => ({ signer, signature: ed25519.sign(seeds[signer] as Uint8Array, digest) })) };
}

test("a certificate needs a quorum of known validators in order, and a handover shows the next committee as they signed it", () => {
  const outcome = new Uint8Array(32).fill(8);
  verifyCertificate(certified([0, 2, 3], outcome), CHAIN);
  const others = SEEDS.map((seed) => seed.map((byte) => byte + 9));
  for (const [wrong, why] of [
    [certified([0, 1], outcome), /3 are needed/],
    [certified([0, 0, 1], outcome), /ascending/],
    [certified([2, 1, 0], outcome), /ascending/],
    [certified([0, 1, 2], outcome, { seeds: others }), /validator 0 is wrong/],
    [certified([0, 1, 2], outcome, { height: 13n }), /not of epoch/],
    [certified([0, 1, 2], outcome, { epoch: 1n, height: 14n }), /not of epoch/],
    [{ ...certified([0, 1, 2], outcome), outcome: new Uint8Array(32) }, /wrong/],
  ] as const) assert.throws(() => verifyCertificate(wrong, CHAIN), (error) => error instanceof ProofError && why.test(error.message));

  const [state, receipts] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const next = others.map(ed25519.publicOf);
  const registry = { digest: new Uint8Array(32), network: NETWORK, schedule: CHAIN.schedule, unbondingEpochs: 2n, firstEpoch: 0n, committees: [CHAIN.keys, next] };
  const good: Handover = { certificate: certified([0, 1, 2], outcomeOf(state, receipts), { height: 12n }), receipts, state, registry };
  assert.deepEqual(follow(good, CHAIN), { ...CHAIN, epoch: 1n, keys: next });
  for (const [wrong, why] of [
    [{ ...good, state: receipts }, /another outcome/],
    [{ ...good, registry: { ...registry, network: state } }, /another network/],
    [{ ...good, registry: { ...registry, committees: [CHAIN.keys] } }, /without its committee/],
    [{ ...good, certificate: certified([0, 1], outcomeOf(state, receipts)) }, /are needed/],
  ] as [Handover, RegExp][]) assert.throws(() => follow(wrong, CHAIN), (error) => error instanceof ProofError && why.test(error.message));
});

test("a proof of keys is of this state, and of as many keys as it tells", () => {
  const parts = joined(u32(1), new Uint8Array([4]), derived("walras 2026 bridge root v1", new Uint8Array(64)));
  const { root } = readParts(new Reader(parts));
  const proof = joined(parts, new Uint8Array(64), u32(0));
  checkEntries(root, proof, []);
  assert.throws(() => checkEntries(new Uint8Array(32), proof, []), /another state root/);
  assert.throws(() => checkEntries(root, proof, REGISTERED.slice(0, 1)), /another number/);
  assert.throws(() => checkEntries(root, joined(parts, new Uint8Array(64), u32(1), u32(0)), REGISTERED.slice(0, 1)), ProofError);
});

test("what walras pay follow began is finished when the purse is opened", async () => {
  const files = await made(folder());
  const deposit = { transaction: "0x" + "11".repeat(32), account: "0x" + "22".repeat(20), sequence: 0n, to: "0x" + "33".repeat(32), asset: 0, amount: 9223372036854775807n, home: 0n, carried: "0x" + "44".repeat(32) };
  await files.write("received/old", new TextEncoder().encode("evidence"));
  await writeJson(files, "follow.json", { lane: await readJson(files, "lane.json"), before: "before-1", deposits: [deposit] });
  const purse = await PurseContents.open(files);
  assert.deepEqual(await purse.deposits(), [deposit]);
  await purse.close();
  assert.equal(readFileSync(join(files.place, "before-1", "received", "old"), "utf8"), "evidence");
  assert.deepEqual([await files.read("follow.json"), await files.list("received")], [null, []]);
});

/** As much of a browser's database as a purse uses. */
function databases(): IDBFactory {
  const kept = new Map<string, Map<string, unknown>>();
  const later = <T>(result: T) => {
    const request = { result } as IDBRequest<T>;
    queueMicrotask(() => request.onsuccess?.call(request, new Event("success")));
    return request;
  };
  const open = (name: string) => {
    const isNew = !kept.has(name);
    const rows = kept.get(name) ?? new Map<string, unknown>();
    kept.set(name, rows);
    const store = {
      get: (key: string) => later(rows.get(key)),
      getAllKeys: () => later([...rows.keys()]),
      put: (value: unknown, key: string) => later(rows.set(key, structuredClone(value))),
      delete: (key: string) => later(rows.delete(key)),
    };
    const transaction = () => {
      const one = { objectStore: () => store } as unknown as IDBTransaction;
      setTimeout(() => one.oncomplete?.call(one, new Event("complete")));
      return one;
    };
    const request = { result: { createObjectStore: () => store, transaction, close: () => undefined } } as unknown as IDBOpenDBRequest;
    queueMicrotask(() => {
      if (isNew) request.onupgradeneeded?.call(request, new Event("upgradeneeded") as IDBVersionChangeEvent);
      request.onsuccess?.call(request, new Event("success"));
    });
    return request;
  };
  return { open } as unknown as IDBFactory;
}

test("a purse in a browser's database counts as a copy when it is opened, is locked, exported and imported", async () => {
  const held = new Set<string>();
  const locks = {
    request: async (name: string, _: LockOptions, act: (lock: Lock | null) => Promise<void> | void) => {
      if (held.has(name)) return act(null);
      held.add(name);
      await act({ name, mode: "exclusive" });
      held.delete(name);
    },
  };
  Object.defineProperty(globalThis, "navigator", { value: { locks }, configurable: true });
  const factory = databases();
  const files = await made(await DatabaseFiles.open("till", factory));
  const purse = await Purse.open(files, { passphrase: PASSPHRASE });
  await assert.rejects(Purse.open(await DatabaseFiles.open("till", factory)), PurseInUseError);
  const address = await purse.address();
  assert.match(address, /^lane:/);
  await purse.close();
  const again = await DatabaseFiles.open("till", factory);
  assert.ok(await again.isCopy(), "nothing shows that it was not rolled back");
  const text = await again.exported();
  const other = await DatabaseFiles.open("other", factory);
  await assert.rejects(other.imported("{}"), /the text is no purse/);
  await other.imported(text);
  await assert.rejects(other.imported(text), /not overwritten/);
  const moved = await Purse.open(other, { passphrase: PASSPHRASE });
  assert.notEqual(await moved.address(), address);
  await moved.close();
  assert.ok((await again.writtenMs("lane.json")) !== null && (await again.list("keys")).length === 0);
  assert.ok(new PurseError("x") instanceof Error);
});
