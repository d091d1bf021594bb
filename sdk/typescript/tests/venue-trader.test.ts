/** Programs trade at a running venue: ladders by one signature, lost answers, a killed program, reports and evidence. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import {
  AmountError,
  Client,
  ClientError,
  Ed25519Key,
  EthereumKey,
  OrderRefusedError,
  TradingKey,
  UndecidedOrdersError,
  UnsignedReportError,
  VenueTrader,
  numberText,
  readNumber,
  type Execution,
  type OrderNumber,
  type PlacedOrder,
  type SignedOrder,
  type TraderEvent,
  type VenueQuote,
} from "../src/index.js";
import { OrderFile } from "../src/node-store.js";
import type { Socket } from "../src/stream.js";
import { toHex } from "../src/typed.js";

const SERVER = process.env["WALRAS_HTTP"] ?? "";
const skip = SERVER === "" ? "WALRAS_HTTP is not set: run `make test-typescript`" : false;
const MARKET = "EUR/USD";
// Accounts that every tool for development knows, used by no other test.
const BANKS = ["0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97", "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356"];
const socket = (url: string) => new WebSocket(url) as unknown as Socket;
const pause = (ms: number) => new Promise((resume) => setTimeout(resume, ms));
const file = () => join(mkdtempSync(join(tmpdir(), "walras-")), "orders");

/** What `find` finds; a net of minutes says what stood still. */
async function until<T>(find: () => Promise<T | null | undefined | false>, what: string): Promise<T> {
  for (let tries = 0; tries < 1200; tries += 1) {
    const found = await find();
    if (found !== null && found !== undefined && found !== false) return found;
    await pause(100);
  }
  throw new Error(`nothing came of: ${what}`);
}

type Asked = { path: string; body: string };
/** Loses or changes answers, after the venue has heard the question. */
type Meddle = (asked: Asked, answer: () => Promise<Response>) => Promise<Response>;

type Account = { account: Ed25519Key; seed: Uint8Array };
const traders: VenueTrader[] = [];
let [maker, taker]: (Account | null)[] = [null, null];

function made({ account, seed }: Account, { path = file(), patienceMs = 30_000 } = {}) {
  const asked: Asked[] = [];
  const meddling = { with: null as Meddle | null };
  const fetching = async (input: string | URL | Request, init?: RequestInit) => {
    const question = { path: new URL(String(input)).pathname, body: String(init?.body ?? "") };
    asked.push(question);
    const answer = () => fetch(input, init);
    return meddling.with ? meddling.with(question, answer) : answer();
  };
  const client = new Client(SERVER, { key: account, socket, fetch: fetching as typeof fetch });
  const trader = new VenueTrader(client, new TradingKey(seed), { file: new OrderFile(path), patienceMs });
  traders.push(trader);
  const bodies = (to: string) => asked.filter(({ path }) => path === to).map(({ body }) => JSON.parse(body) as { lists: { orders: { number: object }[] }[]; orders: object[] });
  return { trader, client, meddling, bodies, path };
}

/** An account and a trading key that it authorises, with a deposit of both assets. */
async function funded(bank: string): Promise<Account> {
  const [account, seed] = [Ed25519Key.generate(), crypto.getRandomValues(new Uint8Array(32))];
  const payer = new Client(SERVER, { key: new EthereumKey(bank) });
  for (const asset of ["EUR", "USD"]) await payer.pay(account.address, asset, "900");
  const { trader } = made({ account, seed });
  for (const asset of ["EUR", "USD"]) assert.equal((await trader.deposit(asset, "800")).state, "executed");
  const [bands, lose] = [{ [MARKET]: ["0.1", "10"] as [string, string] }, { EUR: "800", USD: "800" }];
  assert.equal((await trader.authorize(bands, lose))?.state, "executed");
  assert.equal(await trader.authorize(bands, lose), null);
  // The venue knows the key and its deposit when the call returns.
  await trader.cancel(await trader.place(MARKET, quote("0.1")));
  return { account, seed };
}

before(async () => {
  if (skip) return;
  const client = new Client(SERVER);
  await until(async () => (await client.venueMarkets().catch(() => [])).some(({ last }) => last !== null), "a trade at the demo's venue");
  [maker, taker] = [await funded(BANKS[0]!), await funded(BANKS[1]!)];
});
after(async () => {
  for (const trader of traders) await trader.close();
});

const quote = (price: string, amount = "1", side: "buy" | "sell" = "buy"): VenueQuote => ({ side, amount, price });
/** The price of so many ticks from what the demo's makers ask. */
async function priceAt(trader: VenueTrader, ticks: number): Promise<string> {
  const terms = await until(async () => (await trader.markets()).find(({ market }) => market.ask !== null), "an ask of the demo's makers");
  return terms.price(terms.market.ask! + ticks);
}

test("a ladder of 16 is placed, moved, traded and settled by two signatures", { skip }, async () => {
  const { trader, bodies, path } = made(maker!);
  const terms = await trader.market(MARKET);
  const [low, high] = [terms.tick(await priceAt(trader, -3_000)), terms.tick(await priceAt(trader, 3_000))];
  const quotes = Array.from({ length: 16 }, (_, at) => (at < 8 ? quote(terms.price(low - 10 * at)) : quote(terms.price(high + 10 * at), "1", "sell")));
  const placed = await trader.placeLadder(MARKET, quotes);
  assert.ok(placed.every(({ state, left }) => state === "open" && left === "1"));
  assert.deepEqual((await trader.orders()).map(({ number }) => number), placed.map(({ number }) => number));
  // All of it comes closer, with more at the best bid than one sale below takes.
  const closer = placed.map((old, at): VenueQuote => ({ side: old.order.side, amount: at === 0 ? "150" : "2", price: terms.price(old.order.tick + (at < 8 ? 100 : -100)), replaces: old }));
  const moved = await trader.placeLadder(MARKET, closer);
  assert.ok(moved.every(({ state }) => state === "open"), JSON.stringify(moved.map(({ refusal }) => refusal?.message)));
  for (const old of placed) assert.equal((await trader.order(old)).why, "replaced");
  assert.deepEqual(bodies("/v1/venue/lists").map(({ lists }) => lists[0]!.orders.length), [16, 16]);
  assert.equal(bodies("/v1/venue/orders").length, 0);
  const best = moved[0]!;
  const { trader: other } = made(taker!);
  const sold = await until(async () => {
    await other.place(MARKET, { ...quote(best.price, "100", "sell"), life: "immediate_or_cancel" });
    const { open } = await trader.order(best);
    return open !== null && open !== "150" && 150 - Number(open);
  }, "a sale down to the ladder");
  assert.ok(sold > 0 && sold <= 100);
  await until(async () => Number((await trader.order(best)).settled) > 0, "the settle of a fill of the ladder");
  const ofBest = (await trader.executions()).executions.filter(({ number }) => numberText(number) === numberText(best.number));
  assert.ok(ofBest.every(({ price, isTaker }) => price === best.price && !isTaker));
  assert.equal(ofBest.reduce((sum, { amount }) => sum + Number(amount), 0), sold);
  const kept = readFileSync(`${path}.reports`, "utf8").split("\n");
  assert.ok(ofBest.every(({ evidence }) => kept.includes(evidence)));
  assert.ok((await trader.cancelAll({ side: "sell" })).length >= 8);
  assert.ok((await trader.orders()).every(({ side }) => side === "buy"));
  await trader.cancelAll();
});

test("a price between ticks and a refusal of the venue place nothing", { skip }, async () => {
  const { trader, bodies } = made(maker!);
  await assert.rejects(trader.place(MARKET, quote("0.90001")), (error: Error) => error instanceof AmountError && /write 0.9 or 0.9001$/.test(error.message));
  await assert.rejects(trader.placeLadder(MARKET, [quote("0.9"), quote("0.9", "1.5")]), /write 1 or 2$/);
  await assert.rejects(trader.placeLadder(MARKET, []), /1 to 64 orders/);
  assert.equal(bodies("/v1/venue/orders").length + bodies("/v1/venue/lists").length, 0);
  const refused = await trader.place(MARKET, quote("0.9", "9000")).catch((error: unknown) => error);
  assert.ok(refused instanceof OrderRefusedError && ["funds", "drawdown"].includes(refused.code), String(refused));
  assert.equal((await trader.order(refused.number)).standing, "refused");
  const [good, bad] = await trader.placeLadder(MARKET, [quote("0.5"), quote("0.5", "9000")]);
  assert.ok(good!.state === "open" && bad!.state === "refused" && bad!.refusal);
  // A cancel that is asked for twice, as after a lost answer, says how the order stands.
  assert.deepEqual([(await trader.cancel(good!)).kind, (await trader.cancel(good!)).kind], ["ended", "status"]);
  assert.deepEqual(await trader.orders(), []);
});

test("a lost answer is asked for with the same bytes and places nothing twice", { skip }, async () => {
  const { trader, meddling, bodies } = made(maker!);
  let lost = 2;
  meddling.with = async ({ path }, answer) => {
    const made = await answer();
    if (!["/v1/venue/orders", "/v1/venue/lists"].includes(path) || lost === 0) return made;
    lost -= 1;
    throw new TypeError("lost");
  };
  const one = await trader.place(MARKET, quote("0.5", "3"));
  assert.ok(one.state === "open" && one.left === "3");
  assert.equal(bodies("/v1/venue/orders").length, 3);
  assert.equal(new Set(bodies("/v1/venue/orders").map((body) => JSON.stringify(body))).size, 1);
  lost = 1;
  const replaced = await trader.replace(one, "2", "0.5");
  assert.ok(replaced.state === "open" && replaced.left === "2" && bodies("/v1/venue/lists").length === 2);
  lost = 1;
  const both = await trader.placeLadder(MARKET, [quote("0.5"), quote("0.51")]);
  assert.deepEqual(both.map(({ state }) => state), ["open", "open"]);
  assert.equal((await trader.orders()).length, 3);
  assert.equal((await trader.cancelAll()).length, 3);
  // The first answer to an order that has traded and ended since says nothing of that.
  const bought = await until(async () => {
    lost = 1;
    const done = await trader.place(MARKET, { ...quote(await priceAt(trader, 2_000)), life: "immediate_or_cancel" });
    assert.deepEqual([done.state, done.left, await trader.orders()], ["ended", "0", []]);
    return (await trader.order(done)).why === "filled" && done;
  }, "a purchase from the demo's makers");
  const { executions } = await trader.executions();
  assert.ok(executions.some(({ number }) => numberText(number) === numberText(bought.number)));
});

test("an answer that never comes leaves orders undecided until they are asked for", { skip }, async () => {
  const { trader, meddling } = made(maker!, { patienceMs: 200 });
  const undecided = [];
  for (const isHeard of [true, false, false]) {
    meddling.with = async ({ path }, answer) => {
      if (path !== "/v1/venue/orders") return answer();
      if (isHeard) await answer();
      throw new TypeError("lost");
    };
    const error = await trader.place(MARKET, quote("0.5")).catch((error: unknown) => error);
    assert.ok(error instanceof UndecidedOrdersError && error.leavesDoubt, String(error));
    undecided.push(...error.numbers);
  }
  meddling.with = null;
  const [heard, never, later] = undecided as [typeof undecided[0], typeof undecided[0], typeof undecided[0]];
  const standings = async () => Promise.all([heard, never, later].map(async (one) => (await trader.order(one!)).standing));
  assert.deepEqual(await standings(), ["open", "unknown", "unknown"]);
  assert.equal((await trader.retry(later!))[0]!.state, "open");
  assert.deepEqual((await trader.resume()).map(({ number }) => number), [heard, later]);
  // What never came cannot come later.
  assert.deepEqual(await standings(), ["open", "overtaken", "open"]);
  await assert.rejects(trader.retry(never!), /not stored as open/);
  assert.equal((await trader.cancelAll()).length, 2);
  assert.deepEqual(await trader.resume(), []);
});

test("whatever answers are lost the file has every open order and a number names one", { skip }, async () => {
  const path = file();
  let state = 7;
  const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  let begun = made(maker!, { path, patienceMs: 20 });
  await begun.trader.status();
  const sent = new Map<string, Set<string>>();
  const named: OrderNumber[] = [{ incarnation: 0, day: 0, reference: 0 }];
  const lose: Meddle = async ({ body, path: to }, answer) => {
    if (to === "/v1/venue/lists" || to === "/v1/venue/orders") {
      const { lists, orders } = JSON.parse(body) as { lists?: { orders: SignedOrder[] }[]; orders?: SignedOrder[] };
      for (const { replaces: _, key: __, signature: ___, ...order } of orders ?? lists![0]!.orders) {
        const fields = JSON.stringify(order, Object.keys(order).sort());
        sent.set(numberText(order.number), (sent.get(numberText(order.number)) ?? new Set()).add(fields));
      }
    }
    const isLost = body !== "" && random() < 0.6;
    if (isLost && random() < 0.5) throw new TypeError("it never heard");
    const given = await answer();
    if (isLost && random() < 0.5) throw new TypeError("nobody heard it");
    // What stands in between may answer by itself.
    return isLost ? new Response("<html>", { status: 502 }) : given;
  };
  const dice = (most: number) => Math.floor(random() * most);
  const one = () => named[dice(named.length)]!;
  const rung = (replaces?: OrderNumber): VenueQuote => ({ ...quote(`0.${40 + dice(20)}`, String(1 + dice(5))), ...(replaces ? { replaces } : {}) });
  const steps = [
    async () => (await begun.trader.placeLadder(MARKET, Array.from({ length: 1 + dice(4) }, () => rung()))).map(({ number }) => number),
    async () => (await begun.trader.placeLadder(MARKET, [rung(one())])).map(({ number }) => number),
    async () => [(await begun.trader.cancel(one())).number],
    async () => (await begun.trader.retry(one())).map(({ number }) => number),
    async () => (await begun.trader.resume()).map(({ number }) => number),
    async () => {
      await begun.trader.close();
      begun = made(maker!, { path, patienceMs: 20 });
      begun.meddling.with = lose;
      return [];
    },
  ];
  begun.meddling.with = lose;
  for (let step = 0; step < 40; step += 1) {
    try {
      named.push(...(await steps[dice(steps.length)]!()));
    } catch (error) {
      if (error instanceof UndecidedOrdersError) named.push(...error.numbers);
      else assert.ok(error instanceof ClientError, String(error));
    }
  }
  begun.meddling.with = null;
  const known = (await begun.trader.resume()).map(({ number }) => numberText(number));
  // The venue's own answer: all of the key's orders that were open.
  const open = (await begun.trader.cancelAll()).map(({ number }) => numberText(number));
  assert.deepEqual(open.sort(), known.sort());
  assert.ok(sent.size > 5 && [...sent.values()].every(({ size }) => size === 1));
});

test("orders of a ladder are signed one by one while the ledger counts no lists", { skip }, async () => {
  const { trader, meddling, bodies } = made(maker!);
  meddling.with = async ({ path, body }, answer) => {
    if (path !== "/v1/venue/lists") return answer();
    const { orders } = (JSON.parse(body) as { lists: { orders: { number: object }[] }[] }).lists[0]!;
    const refused = { type: "refused", refused: { code: "lists_to_come", message: "sign each order by itself" } };
    return Response.json({ results: orders.map(({ number }) => ({ reports: [{ key: "0x", number, ...refused }] })) });
  };
  const placed = await trader.placeLadder(MARKET, [quote("0.5"), quote("0.51")]);
  assert.deepEqual(placed.map(({ state }) => state), ["open", "open"]);
  assert.deepEqual(bodies("/v1/venue/lists")[0]!.lists[0]!.orders.map(({ number }) => number), placed.map(({ number }) => number));
  const moved = await trader.placeLadder(MARKET, placed.map((old) => ({ ...quote("0.52", "2"), replaces: old })));
  assert.deepEqual(moved.map(({ state }) => state), ["open", "open"]);
  assert.deepEqual([bodies("/v1/venue/lists").length, bodies("/v1/venue/orders").length], [1, 2]);
  for (const old of placed) assert.equal((await trader.order(old)).why, "replaced");
  assert.deepEqual((await trader.orders()).map(({ amount }) => amount), ["2", "2"]);
  assert.equal((await trader.cancel(moved[0]!, { keep: "1" })).kind, "reduced");
  assert.equal((await trader.order(moved[0]!)).open, "1");
  await trader.cancelAll();
});

/** A purchase from the demo's makers. */
const buy = (trader: VenueTrader): Promise<Execution> =>
  until(async () => {
    const bought: PlacedOrder = await trader.place(MARKET, { ...quote(await priceAt(trader, 2_000)), life: "immediate_or_cancel" });
    return bought.executions[0];
  }, "a purchase from the demo's makers");

test("a report that the venue did not sign is no fill", { skip }, async () => {
  const { trader, meddling } = made(maker!);
  const genuine = await buy(trader);
  // A byte of the leaf, of the account, of the key and of the signature; one byte less; the report of another fill.
  const spoils: Record<string, (report: string) => string> = Object.fromEntries(
    [40, 110, 150, 220].map((at) => [`digit ${at}`, (report: string) => report.slice(0, at) + (report[at] === "0" ? "1" : "0") + report.slice(at + 1)]),
  );
  spoils["cut"] = (report) => report.slice(0, -2);
  for (const change of [...Object.keys(spoils), "index"]) {
    meddling.with = async ({ path }, answer) => {
      const made = await answer();
      if (path !== "/v1/venue/requests") return made;
      const body = (await made.json()) as { fills?: { index: string; report: string }[] };
      for (const fill of body.fills ?? []) {
        if (change === "index") fill.index = String(BigInt(fill.index) + 1n);
        else fill.report = spoils[change]!(fill.report);
      }
      return Response.json(body);
    };
    await assert.rejects(trader.executions(genuine.index), (error) => error instanceof UnsignedReportError && error.report !== "", change);
  }
  meddling.with = null;
  assert.deepEqual((await trader.executions(genuine.index)).executions[0], genuine);
});

const KILLED = `
import { Client, TradingKey, VenueTrader, numberText } from "@walras/client";
import { OrderFile } from "@walras/client/node";
const [server, seed, file] = process.argv.slice(1);
const trader = new VenueTrader(new Client(server), new TradingKey(Buffer.from(seed.slice(2), "hex")), { file: new OrderFile(file) });
// The lock of a killed program is free once its holder has seen the end.
for (;;) {
  try {
    await trader.resume();
    break;
  } catch (error) {
    if (!/in use by another program/.test(error.message)) throw error;
  }
}
console.log("resumed");
for (let turn = 0; ; turn += 1) {
  const placed = await trader.placeLadder("EUR/USD", [{ side: "buy", amount: "1", price: "0.5" }, { side: "buy", amount: "1", price: "0.4" }]);
  console.log("placed", ...placed.map(({ number }) => numberText(number)));
  if (turn % 2) for (const one of placed) await trader.cancel(one);
}
`;

test("a killed program goes on with its orders and uses no number twice", { skip }, async () => {
  const [path, placed] = [file(), [] as string[]];
  const cwd = fileURLToPath(new URL("../..", import.meta.url));
  for (const round of [0, 1, 2]) {
    const command = ["--input-type=module", "-e", KILLED, SERVER, toHex(maker!.seed), path];
    const program = spawn(process.execPath, command, { cwd, stdio: ["ignore", "pipe", "inherit"] });
    let lines = 0;
    for await (const line of createInterface({ input: program.stdout })) {
      placed.push(...line.split(" ").slice(1));
      if ((lines += 1) === 4 + round) program.kill("SIGKILL");
    }
    assert.ok(lines >= 4 + round, `round ${round} ended after ${lines} lines`);
  }
  assert.ok(placed.length >= 24 && new Set(placed).size === placed.length);
  const { trader } = made(maker!, { path });
  await until(() => trader.status().then(() => true, (error: Error) => !/in use/.test(error.message)), "the lock of a killed program");
  // Nothing is open that the file does not know: after these are cancelled, no order of the key is left.
  for (const { number } of await trader.resume()) await trader.cancel(number);
  assert.deepEqual([await trader.cancelAll(), await trader.resume()], [[], []]);
  const { number } = await trader.place(MARKET, quote("0.5"));
  assert.ok(placed.map(readNumber).every((one) => one.day < number.day || one.reference < number.reference), numberText(number));
  await trader.cancelAll();
});

test("reports come once and in order over broken connections", { skip }, async () => {
  const { trader } = made(maker!);
  const first = await buy(trader);
  // One that happened before the stream began, asked for by its index.
  const seen: bigint[] = [];
  const through = async (reports: AsyncGenerator<TraderEvent, void, undefined>, is: (event: TraderEvent) => boolean) => {
    for (;;) {
      const event = (await reports.next()).value!;
      if ("execution" in event && event.execution) seen.push(event.execution.index);
      if (is(event)) return;
    }
  };
  const reports = trader.reports({ session: 7, from: first.index });
  await through(reports, ({ kind }) => kind === "executed");
  const second = await buy(trader);
  await through(reports, (event) => "fate" in event && event.fate?.index === second.index && event.fate.fate === "applied");
  await reports.return();
  const third = await buy(trader);
  const again = trader.reports({ session: 7, from: second.index + 1n });
  await through(again, () => seen.at(-1) === third.index);
  await again.return();
  assert.deepEqual(seen, [...new Set(seen)].sort((a, b) => Number(a - b)));
  for (const { index } of [first, second, third]) assert.ok(seen.includes(index), `fill ${index} among ${seen}`);
});

test("a deposit comes back and a revoked key is dead", { skip }, async () => {
  const { account, seed } = await funded(BANKS[0]!);
  const { trader, client } = made({ account, seed });
  const held = async () => (await client.account()).balances.find(({ asset }) => asset === "EUR")?.available;
  const before = Number(await held());
  assert.equal((await trader.collect("EUR")).state, "executed");
  assert.equal((await trader.raiseFloor({ incarnation: (await trader.status()).incarnation, day: 65_535, reference: 0 })).state, "executed");
  assert.equal((await trader.revoke()).state, "executed");
  await assert.rejects(trader.authorize({ [MARKET]: ["0.1", "10"] }, {}), /is revoked, for ever/);
  await until(async () => Number(await held()) >= before + 799, "the payout of a collection");
  await until(
    () =>
      trader.place(MARKET, quote("0.1")).then(
        async (one) => (await trader.cancel(one), false),
        (error: unknown) => error instanceof OrderRefusedError && ["key_revoked", "below_floor"].includes(error.code),
      ),
    "the end of a revoked key",
  );
  const nobody = new VenueTrader(new Client(SERVER), new TradingKey(crypto.getRandomValues(new Uint8Array(32))));
  await assert.rejects(nobody.place(MARKET, quote("0.1")), /no account has authorised it/);
  await assert.rejects(nobody.deposit("EUR", "1"), (error) => error instanceof ClientError && /has no key/.test(error.message));
});
