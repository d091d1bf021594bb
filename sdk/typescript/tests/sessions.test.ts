/** Session keys against a running exchange: a program trades for an account within its caps, in numbers of its own. */
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket as TcpSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import WebSocket from "ws";
import { AmountError, Client, Ed25519Key, EthereumKey, SessionKeyError, StreamError, TransactionRefusedError, VoidError, type Options } from "../src/index.js";
import { slotOf, slotSequence } from "../src/slot.js";
import { FolderStore } from "../src/node-store.js";
import type { Socket } from "../src/stream.js";

const SERVER = process.env["WALRAS_HTTP"] ?? "";
const skip = SERVER === "" ? "WALRAS_HTTP is not set: run `make test-typescript`" : false;
const RICH = new EthereumKey("0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba");
const CAPS = { USD: "50", EUR: "100" };
const lasts = 50_000;
const socket = (url: string) => new WebSocket(url) as unknown as Socket;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const refused = (code: string, words = /./) => (error: unknown) =>
  error instanceof TransactionRefusedError && error.code === code && words.test(error.remedy);

/** An account of its own for each test, and a client of a session key of it. */
async function world(terms: object = { lasts }) {
  const key = Ed25519Key.generate();
  const rich = new Client(SERVER, { key: RICH });
  await rich.pay(key.address, "USD", "200");
  await rich.pay(key.address, "EUR", "200");
  const owner = new Client(SERVER, { key, socket });
  const bot = Ed25519Key.generate();
  const { slot } = await owner.addSession(bot, CAPS, terms);
  assert.equal(slot, 1);
  const made = (more: Options = {}, server = SERVER) => new Client(server, { key: bot, account: owner.address, slot, socket, ...more });
  return { owner, made, bot: made(), key: bot };
}

/** Waits until an account has so many offers. */
async function left(client: Client, offers: number): Promise<void> {
  while ((await client.offers()).length !== offers) await pause(20);
}

test("a bot trades within its caps and its owner ends it", { skip }, async () => {
  const { owner, bot, made, key } = await world();
  const [added] = await owner.sessions();
  assert.deepEqual([added?.status, added?.scope, added?.key, added?.caps], ["live", "trade", key.public, [{ asset: "USD", cap: "50", used: "0" }, { asset: "EUR", cap: "100", used: "0" }]]);
  assert.equal((await owner.addSession(key, CAPS, { lasts })).slot, 1, "it is added once");
  const byOwner = await owner.sell("EUR/USD", "10", "400");
  const placed = await bot.sell("EUR/USD", "60", "500");
  assert.equal(slotOf(placed.sequence!), 1);
  assert.deepEqual((await owner.offers()).map((one) => [one.id, one.slot]), [[byOwner.sequence, 0], [placed.sequence, 1]]);
  await assert.rejects(bot.sell("EUR/USD", "41", "500"), refused("session_cap", /needs 41 EUR and its cap leaves 40 EUR/));
  await assert.rejects(bot.pay(RICH.address, "EUR", "1"), refused("session_scope"));
  await assert.rejects(bot.replace(byOwner.sequence!, "5", "400"), refused("session_replaces"));
  await bot.replace(placed.sequence!, "70", "510");
  assert.equal((await bot.sessionKey()).caps[1]?.used, "70");
  assert.equal((await bot.exact("buy", "EUR/USD", "1", "0.5")).state, "executed");
  assert.equal((await bot.cancelAll()).length, 1);
  assert.deepEqual((await bot.offers()).map((one) => one.slot), [0]);
  assert.equal((await bot.cancelAll(undefined, { every: true })).length, 1);
  await bot.sell("EUR/USD", "5", "500");
  assert.equal((await owner.revokeSession(1)).state, "executed");
  assert.deepEqual([await owner.offers(), await owner.sessions()], [[], []]);
  await assert.rejects(made().sell("EUR/USD", "5", "500"), (error) => error instanceof SessionKeyError && /no session key in slot 1/.test(error.message));
});

test("what cannot work is said before anything is signed", { skip }, async () => {
  const { owner, made, key } = await world();
  await assert.rejects(owner.addSession(Ed25519Key.generate(), { EUR: "1" }), AmountError);
  assert.throws(() => new Client(SERVER, { key, slot: 1 }), /give its `account`/);
  await assert.rejects(owner.stop(), /name the slot/);
  const other = Ed25519Key.generate();
  await assert.rejects(made({ key: other }).sell("EUR/USD", "5", "500"), new RegExp(`is ${key.public}, and not ${other.public}`));
  await owner.addSession(other, CAPS, { lasts, scope: "cancel" });
  const desk = made({ key: other, slot: 2 });
  await assert.rejects(desk.sell("EUR/USD", "5", "500"), refused("session_scope", /with scope `trade`/));
  await owner.sell("EUR/USD", "5", "500");
  assert.equal((await desk.cancelAll(undefined, { every: true })).length, 1);
});

test("parallel senders of a slot take each number once and resume", { skip }, async () => {
  const { owner, bot, made } = await world();
  const folder = mkdtempSync(join(tmpdir(), "walras-"));
  const store = new FolderStore(folder);
  const shared = [made({ store }), made({ store })];
  const fates = await Promise.all(Array.from({ length: 24 }, (_, n) => shared[n % 2]!.sell("EUR/USD", "1", String(500 + n))));
  const numbers = fates.map((fate) => Number(fate.sequence! - slotSequence(1, 0n))).sort((a, b) => a - b);
  assert.deepEqual(numbers, Array.from({ length: 24 }, (_, n) => n + 1));
  assert.equal((await made().sell("EUR/USD", "1", "600")).sequence, slotSequence(1, 25n), "after a restart");
  assert.ok((await owner.sell("EUR/USD", "1", "600")).sequence! < slotSequence(1, 0n));
  // Two processes that share nothing: the slower one takes another number.
  await bot.sell("EUR/USD", "1", "601");
  assert.equal((await made().sell("EUR/USD", "1", "602")).sequence, slotSequence(1, 27n));
  assert.equal((await bot.sell("EUR/USD", "1", "603")).sequence, slotSequence(1, 28n));
  const again = new FolderStore(folder);
  const ids = [];
  for (const one of [store, again]) ids.push((await made({ store: one }).sell("EUR/USD", "1", "604", { reference: "r" })).id);
  assert.equal(ids[0], ids[1]);
});

test("a stop ends the offers, and calls under way do not come after it", { skip }, async () => {
  const { owner, bot, made } = await world();
  await bot.sell("EUR/USD", "5", "500");
  // Its order is signed and about to be sent when the stop, whose number is higher, comes first.
  let release = () => {};
  const stopped = new Promise<void>((resolve) => (release = resolve));
  let waits = true;
  const reached = deferred();
  const held = made({
    fetch: async (url, init) => {
      if (waits && init?.method === "POST") {
        waits = false;
        reached.resolve();
        await stopped;
      }
      return fetch(url, init);
    },
  });
  const late = held.sell("EUR/USD", "6", "600");
  await reached.promise;
  assert.equal((await held.stop()).state, "executed");
  assert.deepEqual([(await owner.offers()).length, (await bot.sessionKey()).status], [0, "lapsed"]);
  await assert.rejects(bot.sell("EUR/USD", "5", "500"), refused("session_lapsed", /the key of slot 1 is/));
  assert.equal((await held.alive(5_000)).state, "executed");
  release();
  await assert.rejects(late, (error) => error instanceof VoidError && /slot 1 was stopped after it was sent/.test(error.message));
  assert.equal((await bot.sell("EUR/USD", "7", "500")).state, "executed");
  assert.equal((await owner.offers()).length, 1);
  assert.equal((await owner.stop({ slot: 1 })).state, "executed");
  assert.deepEqual(await owner.offers(), []);
});

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

test("a timer keeps a slot alive and does not bring it back", { skip }, async () => {
  const { owner, bot } = await world({ lasts, alive: 40 });
  const { alive } = await bot.sessionKey();
  const timer = bot.keepAlive(30);
  await bot.sell("EUR/USD", "5", "500");
  while ((await bot.sessionKey()).alive <= alive + 20) {
    assert.ok(timer.isRunning && (await owner.offers()).length === 1);
    await pause(50);
  }
  await owner.stop({ slot: 1 });
  while (timer.isRunning) await pause(20);
  assert.ok(timer.error instanceof SessionKeyError);
  await timer.close();
  assert.deepEqual([(await bot.sessionKey()).status, await owner.offers()], ["lapsed", []]);
});

/** Passes connections on to the node, until it is cut. */
async function relay() {
  const to = new URL(SERVER);
  const open = new Set<TcpSocket>();
  const server = createServer((inner) => {
    const outer = connect(Number(to.port), to.hostname);
    for (const one of [inner, outer]) {
      open.add(one);
      one.on("error", () => undefined);
    }
    inner.pipe(outer).pipe(inner);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => open.forEach((one) => one.destroy());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut, close: () => server.close() };
}

test("offers end when the connection is cut, and others stay", { skip }, async () => {
  const { owner, made } = await world();
  const kept = await owner.sell("EUR/USD", "1", "700");
  const between = await relay();
  const bot = made({}, between.url);
  const guard = await bot.cancelOnDisconnect();
  assert.ok(guard.isHeld);
  await bot.sell("EUR/USD", "5", "500");
  between.cut();
  await left(owner, 1);
  await guard.ended;
  assert.ok(guard.error && !guard.isHeld);
  between.close();
  assert.equal((await owner.offers())[0]?.id, kept.sequence);
  const again = made();
  assert.equal((await again.sessionKey()).status, "lapsed");
  await again.alive(5_000);
  assert.equal((await again.sell("EUR/USD", "5", "500")).state, "executed");
});

test("offers stay when the stop is withdrawn, and of two guards the last one holds", { skip }, async () => {
  const { owner, bot, made } = await world();
  const guard = await bot.cancelOnDisconnect();
  await bot.sell("EUR/USD", "5", "500");
  await guard.withdraw();
  // The number of the stop is that of the next transaction.
  const next = await bot.sell("EUR/USD", "5", "501");
  assert.equal(next.sequence, slotSequence(1, 1n));
  assert.equal((await owner.offers()).length, 2);
  const first = await bot.cancelOnDisconnect();
  const second = await made().cancelOnDisconnect();
  await first.ended;
  assert.ok(first.error instanceof StreamError && first.error.code === "taken_over");
  assert.equal((await owner.offers()).length, 2);
  await second.close();
  await left(owner, 0);
  await bot.alive(5_000);
  await bot.sell("EUR/USD", "5", "500");
  const ofOwner = await owner.cancelOnDisconnect({ slot: 1 });
  await ofOwner.close();
  await left(owner, 0);
});

test("an owner without a session key leaves a cancel that follows his offers", { skip }, async () => {
  const { owner, bot } = await world();
  await bot.sell("EUR/USD", "5", "700");
  const between = await relay();
  const own = new Client(between.url, { key: owner["options"].key!, socket });
  const guard = await own.cancelOnDisconnect();
  assert.ok(guard.isHeld && guard["left"] === null, "none of his offers rests, so nothing is left");
  const placed = [];
  for (const price of ["500", "501", "502"]) placed.push((await own.sell("EUR/USD", "1", price)).sequence!);
  const named = async (offers: bigint[]) => {
    while (guard["listed"] !== [...offers].reverse().join() || guard["left"] === null || guard["isAwaited"]) {
      assert.equal(guard.error, null);
      await pause(20);
    }
  };
  await named(placed);
  await own.cancel(placed[0]!);
  await named(placed.slice(1));
  await guard.withdraw();
  assert.equal((await own.offers()).length, 3, "a regular end leaves the offers");
  // One cancel names 32 offers: the newest.
  for (let n = 0; n < 31; n += 1) await own.sell("EUR/USD", "1", String(600 + n), { wait: false });
  await left(own, 34);
  const again = await own.cancelOnDisconnect();
  assert.deepEqual([again.isHeld, again.beyond, again["listed"]?.split(",").includes(String(placed[1]))], [true, 1, false]);
  between.cut();
  await left(owner, 2);
  await again.ended;
  assert.ok(again.error && !again.isHeld);
  between.close();
  assert.deepEqual((await owner.offers()).map((one) => one.slot).sort(), [0, 1], "those of session keys are not his key's");
});

test("a stop is renewed as numbers pass", { skip }, async () => {
  const { owner, bot } = await world();
  const guard = await bot.cancelOnDisconnect();
  // More numbers than a window has.
  for (let n = 0; n < 100; n += 1) {
    await bot.sell("EUR/USD", "1", "500", { life: "one batch" });
    assert.equal(guard.error, null);
  }
  await bot.sell("EUR/USD", "5", "500");
  await guard.close();
  await left(owner, 0);
});
