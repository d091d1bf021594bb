/** Purses with a lane of four processes, in turns with those of the command line: one folder, two programs. */
import assert from "node:assert/strict";
import { cpSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pause } from "../src/http.js";
import { Client, RefusedError } from "../src/index.js";
import { openKey, openSeed } from "../src/keystore.js";
import { signedFields } from "../src/lane/committee.js";
import * as ed25519 from "../src/lane/ed25519.js";
import { join as joined } from "../src/lane/layout.js";
import { REGISTRATION, head } from "../src/lane/payment.js";
import { LaneError, MemoryFiles, OtherLaneError, Purse, PurseInUseError, ReceiptError, UnconfirmedError, UnprovedError, type Carrier } from "../src/purse/index.js";
import { FolderFiles } from "../src/purse/node.js";
import { relayOf } from "../src/purse/shards.js";
import { registrationOf, type RegistrationBody } from "../src/purse/trust.js";
import { fromHex, toHex } from "../src/typed.js";
import { LaneNetwork, PASSPHRASE, isBuilt } from "./lane/network.js";

const skip = isBuilt ? false : "walras is not built";
const PATIENCE = { passphrase: PASSPHRASE, patienceMs: 300_000 };
let network: LaneNetwork;
let client: Client;

before(async () => {
  if (skip) return;
  network = await LaneNetwork.start();
  const key = await openKey(readFileSync(join(network.folder, "issuer-key.json"), "utf8"), PASSPHRASE);
  client = new Client(network.url, { key });
});
after(() => network?.stop());

const settled = async (purse: Purse): Promise<string> => (await purse.balance()).find(({ asset }) => asset === "EUR")?.settled ?? "0";
const files = (name: string) => new FolderFiles(join(network.folder, name));

test("money goes from a purse to the command line and back in one folder", { skip }, async () => {
  // The command line makes a purse and fills it; this package opens it and pays from it, through a node's relay.
  await network.pay("alice", "new");
  await network.pay("alice", "deposit", "--key", "issuer-key.json", "--asset", "EUR", "--amount", "100");
  const { network: id } = await client.ask<{ network: string }>("/v1/lane");
  const bob = await Purse.create(files("bob"), { client, ...PATIENCE }, { network: id });
  const to = await bob.address();
  const alice = await Purse.open(files("alice"), { client, ...PATIENCE });
  const sent = await alice.send(to, "EUR", "30.25");
  assert.ok(sent.payments[0] && sent.payments[0].settledMs !== null && (await settled(alice)) === "69.75");
  assert.equal(await alice.export(sent.payments[0].payment.slice(0, 12)), sent.receipt);
  await alice.close();
  const [balance] = (await network.pay("alice", "balance"))["balances"] as { settled: string }[];
  assert.equal(balance?.settled, "6975");

  // The payee checks the receipt with the proved keys of the lane alone, and takes it once.
  assert.deepEqual((await bob.verify(sent.receipt)).map(({ to, amount }) => [to, amount]), [[to, "30.25"]]);
  assert.deepEqual((await bob.receive(sent.receipt)).map(({ isNew, isSettled }) => [isNew, isSettled]), [[true, true]]);
  assert.deepEqual((await bob.receive(`${sent.receipt}\n${sent.receipt}`)).map(({ isNew }) => isNew), [false]);
  assert.equal(await settled(bob), "30.25", "taken again, it is the same money");

  // A purse of this package, filled by this package, is opened by the command line, which pays from it.
  const done = await bob.deposit("EUR", "9.75");
  assert.ok(done.isSpendable && (await settled(bob)) === "40");
  await bob.close();
  const { address } = (await network.pay("alice", "address")) as { address: string };
  await network.pay("bob", "send", "--to", address, "--asset", "EUR", "--amount", "35", "--receipt", "back.txt");
  const received = (await network.pay("alice", "receive", "back.txt"))["received"] as { settled: boolean }[];
  assert.ok(received.length === 2 && received.every((one) => one.settled), "of two owners");

  // And back to the ledger, each by the other program.
  const again = await Purse.open(files("alice"), { client, ...PATIENCE });
  const available = async () => Number((await client.account()).balances.find(({ asset }) => asset === "EUR")?.available);
  const had = await available();
  assert.equal((await again.redeem({ asset: "EUR", amount: "104.75" })).waitingClaims, 0);
  assert.equal(await available(), had + 104.75);
  assert.deepEqual((await again.history()).map(({ kind }) => kind), ["deposited", "sent", "received", "received", "sent", "sent"]);
  await again.close();
  await network.pay("bob", "redeem", "--key", "issuer-key.json", "--asset", "EUR", "--amount", "5");
  const last = await Purse.open(files("bob"), { client, ...PATIENCE });
  assert.equal(await settled(last), "0");
  await last.close();
});

test("a purse that is open is not opened twice by any program", { skip }, async () => {
  const purse = await Purse.create(files("once"), { client, ...PATIENCE });
  await assert.rejects(Purse.open(files("once"), PATIENCE), PurseInUseError);
  await assert.rejects(network.pay("once", "address"), /another command uses this purse/);
  assert.match(await purse.address(), /^lane:/);
  await purse.close();
  assert.match(String((await network.pay("once", "address"))["address"]), /^lane:/);
});

test("a copied purse learns from a quorum what it has spent and pays nothing twice", { skip }, async () => {
  const purse = await Purse.create(files("p"), { client, ...PATIENCE });
  await purse.deposit("EUR", "20");
  await purse.close();
  cpSync(join(network.folder, "p"), join(network.folder, "copy"), { recursive: true });
  const original = await Purse.open(files("p"), { client, ...PATIENCE });
  assert.ok(!(await original.isCopy()));
  const other = await Purse.create(new MemoryFiles(), { client, ...PATIENCE });
  const first = await original.send(await other.address(), "EUR", "12");
  const copy = await Purse.open(files("copy"), { client, ...PATIENCE });
  assert.ok((await copy.isCopy()) && (await settled(copy)) === "20", "it does not know yet");
  const second = await copy.send(await other.address(), "EUR", "3");
  assert.ok(!(await copy.isCopy()) && (await settled(copy)) === "5", "the lost payment was found, with its change");
  const known = (await copy.history()).map(({ id }) => id);
  for (const { payments } of [first, second]) assert.ok(known.includes(payments[0]?.payment ?? ""));
  await Promise.all([original.close(), copy.close(), other.close()]);
});

test("a payment is stored before it is sent and finished with the same bytes although a relay withholds", { skip }, async () => {
  const folder = files("stored");
  const purse = await Purse.create(folder, { client, ...PATIENCE });
  await purse.deposit("EUR", "7");
  await purse.close();
  const seen: Uint8Array[] = [];
  // A relay that carries the requests and keeps back what two members reply.
  const withholds: Carrier = async (to, request) => {
    if (to.member < 2) throw new RefusedError("relay", 502, "no_shard", "shard 0 does not answer this node");
    const reply = await relayOf(client)(to, request);
    seen.push(request);
    return reply;
  };
  const held = await Purse.open(folder, { client, passphrase: PASSPHRASE, patienceMs: 1_500, carrier: withholds });
  const failed = await held.send(await held.address(), "EUR", "7").then(() => null, (error: unknown) => error);
  assert.ok(failed instanceof UnconfirmedError && failed instanceof LaneError, String(failed));
  assert.match(failed.message, /2 of 3 needed answers in time \(member 0, 1: .*does not answer.*`settle\(\)` sends the same bytes again/);
  await held.close();
  const stored = readFileSync(join(network.folder, "stored", "outbox", `payment-${failed.payment}`));
  assert.ok(seen.length > 0 && seen.every((request) => stored.subarray(stored.length - request.length).equals(request)));
  const again = await Purse.open(folder, { client, ...PATIENCE });
  await assert.rejects(again.send(await again.address(), "EUR", "7"), /7 EUR are missing/, "its money is spent for nothing else");
  const done = await again.settle();
  assert.deepEqual([done.finished, done.failed, await settled(again)], [1, [], "7"]);
  await again.close();
});

test("a node that lies about the lane is not believed, and receipts of others are refused in words", { skip }, async () => {
  await assert.rejects(Purse.create(files("none"), { client, ...PATIENCE }, { network: "0x" + "ab".repeat(32) }), OtherLaneError);
  await assert.rejects(Purse.create(files("none"), { client, ...PATIENCE }, { validators: ["0x" + "ab".repeat(32)] }), /other validators than those given/);
  assert.ok(!readdirSync(network.folder).includes("none"));
  const lies = async (changed: (path: string, text: string) => string) =>
    new Client(network.url, {
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        const body = changed(new URL(String(url)).pathname, await answer.clone().text());
        return String(url).includes("/relay") ? answer : new Response(body, { status: answer.status });
      },
    });
  const [first, second] = [new MemoryFiles(), new MemoryFiles()];
  const [purse, other] = [await Purse.create(first, { client, ...PATIENCE }), await Purse.create(second, { client, ...PATIENCE })];
  const { network: id } = await client.ask<{ network: string }>("/v1/lane");
  const elsewhere = await Purse.open(first.copy(), { ...PATIENCE, client: await lies((_, text) => text.replaceAll(id, "0x" + "cd".repeat(32))) });
  await assert.rejects(elsewhere.balance(), OtherLaneError);
  await purse.deposit("EUR", "2");
  const { receipt } = await purse.send(await other.address(), "EUR", "1");
  const refused = async (act: Promise<unknown>, reason: string) => {
    const error = await act.then(() => null, (one: unknown) => one);
    assert.ok(error instanceof ReceiptError && error.reason === reason, String(error));
    return error.message;
  };
  assert.match(await refused(purse.receive(receipt), "OtherOwner"), /does not belong to this purse/);
  const foreign = receipt.replace(id.slice(2).toUpperCase(), "00".repeat(32));
  assert.match(await refused(other.receive(foreign), "OtherNetwork"), /of another network/);
  assert.match(await refused(other.receive(receipt.slice(0, -2) + (receipt.endsWith("00") ? "01" : "00")), "WrongSignature"), /proves nothing/);
  assert.match(await refused(other.receive("EUR 1"), "Prefix"), /begins with WALRAS/);
  assert.match(await refused(purse.send((await other.address()).replace(/.$/, "x"), "EUR", "0.1"), "Mistyped"), /copy it again/);
  assert.equal(await settled(other), "0", "all of them, or none");
  const { receipt: account } = await purse.send(client.address, "EUR", "0.5");
  assert.match(await refused(other.receive(account), "PaysAccounts"), /redeemReceipts/);
  assert.equal((await other.redeemReceipts(account)).waitingClaims, 0);
  await Promise.all([purse.close(), other.close(), elsewhere.close()]);
});

test("a relay names a shard that it does not know and bounds what it carries", { skip }, async () => {
  const relay = relayOf(client);
  const asked = (member: number, shard: number, home = 0n, request = new Uint8Array([4])) => relay({ home, member, shard }, request);
  await assert.rejects(asked(9, 0), /knows no shard 0 of member 9 in lane epoch 0/);
  await assert.rejects(asked(0, 7), /knows no shard 7 of member 0/);
  await assert.rejects(asked(0, 0, 1_000n), /lane epoch 1000/);
  await assert.rejects(asked(0, 0, 0n, new Uint8Array()), /1 to 1048576 bytes; this has 0/);
  await assert.rejects(asked(0, 0, 0n, new Uint8Array((1 << 20) + 1)), /1 to 1048576 bytes/);
  // A malformed request is refused by the shard, whose words come back as they are.
  assert.equal((await asked(0, 0))[0], 2);
});

type Lane = { network: string; epoch: number; registrations: RegistrationBody[] };

/** The lane once its members have registered keys for an epoch. */
async function registered(): Promise<Lane> {
  for (;;) {
    const body = await client.ask<Lane>("/v1/lane");
    if (body.registrations.length === 4) return body;
    await pause(50);
  }
}

/** A second list of keys for the same epoch, which the registrar itself has signed: it lies to a purse. */
async function forged(body: RegistrationBody, id: string): Promise<RegistrationBody> {
  const file = readFileSync(join(network.folder, `validator-${body.member}`, "lane-key.json"), "utf8");
  const made = { ...registrationOf(body), keys: [ed25519.publicOf(new Uint8Array(32).fill(7))], bls: [] };
  const message = joined(head(REGISTRATION, fromHex(id), made.epoch), signedFields(made));
  const signature = ed25519.sign(await openSeed(file, PASSPHRASE), message);
  return { ...body, keys: made.keys.map(toHex), bls: [], signature: toHex(signature).slice(2) };
}

test("a list of keys that a registrar signed and the ledger has not is not believed", { skip }, async () => {
  const files = new MemoryFiles();
  const purse = await Purse.create(files, { client, ...PATIENCE });
  const { registrations, network: id } = await registered();
  const [first] = registrations as [RegistrationBody];
  const second = await forged(first, id);
  // The node says that the epoch has begun, so that the purse needs its keys now.
  const answering = (mends: (list: RegistrationBody[]) => RegistrationBody[]) =>
    new Client(network.url, {
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        if (!new URL(String(url)).pathname.startsWith("/v1/lane")) return answer;
        const told = (await answer.json()) as Partial<Lane>;
        const begun = told.epoch === undefined ? {} : { epoch: first.epoch };
        return Response.json({ ...told, ...begun, ...(told.registrations ? { registrations: mends(told.registrations) } : {}) });
      },
    });
  const lies = answering((list) => list.map((one) => (one.member === first.member && one.epoch === first.epoch ? second : one)));
  const led = await Purse.open(files.copy(), { ...PATIENCE, client: lies });
  await assert.rejects(led.balance(), (error) => error instanceof UnprovedError && /the ledger has other keys of member 0/.test(error.message));
  const honest = await Purse.open(files.copy(), { ...PATIENCE, client: answering((list) => list) });
  assert.deepEqual(await honest.balance(), []);
  await Promise.all([purse.close(), led.close(), honest.close()]);
});
