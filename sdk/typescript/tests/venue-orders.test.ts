/** Orders at venues without a node: published lists, exact prices, numbers and the file that stores them. */
import assert from "node:assert/strict";
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { AssetInfo } from "../src/assets.js";
import type { VenueMarket } from "../src/bodies.js";
import { AmountError, StoreError } from "../src/errors.js";
import { OrderFile } from "../src/node-store.js";
import { OrderJournal, type StoredOrder } from "../src/venue-journal.js";
import { isListSigned, signList, type ListedOrder } from "../src/venue-list.js";
import { VenueTerms, decimalOf } from "../src/venue-terms.js";
import { TradingKey, compareNumbers, numberText, readNumber, type OrderNumber } from "../src/venue.js";
import { fromHex } from "../src/typed.js";

type PublishedOrder = Omit<ListedOrder, "side" | "life" | "self_trade" | "expiry" | "until_ms"> & { side: number; life: number; self_trade: number; expiry: string; until_ms: string | null };
type PublishedList = { why?: string; key: string; seed: string; signature: string; orders: PublishedOrder[] };
const told = JSON.parse(readFileSync(new URL("../../../../docs/venue-vectors.json", import.meta.url), "utf8")) as {
  network: string;
  venue: number;
  incarnation: number;
  orders: (PublishedOrder & { key: string; signature: string | null })[];
  possession: string;
  report: { account: string };
  list: PublishedList & { refused: PublishedList[] };
};
const SCOPE = { network: told.network, venue: told.venue, incarnation: told.incarnation };
const LIVES = ["rests", "post_only", "immediate_or_cancel", "fill_or_kill"] as const;
const RULES = ["expire_maker", "expire_taker", "expire_both"] as const;

/** A published order as it is sent. */
const sent = ({ market, number, floor, side, life, self_trade, tick, lots, expiry, until_ms, fee_cap_ppm, replaces }: PublishedOrder): ListedOrder => ({
  ...{ market, number, floor, tick, lots, fee_cap_ppm, replaces, side: side === 0 ? "buy" : "sell", life: LIVES[life]!, self_trade: RULES[self_trade]! },
  ...{ expiry: Number(expiry), until_ms: until_ms === null ? null : Number(until_ms) },
});
/** The key of the vectors with this public half: its seed is one byte 32 times. */
const keyOf = (publicKey: string) =>
  Array.from({ length: 16 }, (_, seed) => new TradingKey(new Uint8Array(32).fill(seed))).find((key) => key.public === publicKey)!;

test("orders and possession are signed as they are published", () => {
  const published = told.orders.filter(({ signature }) => signature !== null);
  assert.ok(published.length >= 2);
  for (const order of published) {
    const { signature, key } = keyOf(order.key).order(sent({ ...order, replaces: null }), SCOPE);
    assert.deepEqual([signature, key], [order.signature, order.key]);
  }
  const key = new TradingKey(new Uint8Array(32).fill(9));
  // The published message names the key of the report; its place is at the end.
  const message = new Uint8Array([...fromHex(told.possession).slice(0, -32), ...fromHex(key.public)]);
  assert.equal(key.possession(told.report.account, SCOPE.network, SCOPE.venue), key.sign(message));
});

test("a list is signed as it is published and spoiled ones are none", () => {
  const { key, seed, signature, orders, refused } = told.list;
  const made = signList(keyOf(key), orders.map(sent), SCOPE, fromHex(seed));
  assert.deepEqual([made.signature, made.seed], [signature, seed]);
  assert.ok(isListSigned(made, SCOPE) && !isListSigned(made, { ...SCOPE, venue: SCOPE.venue + 1 }));
  assert.ok(refused.length >= 16);
  for (const { why, ...list } of refused) assert.ok(!isListSigned({ ...list, orders: list.orders.map(sent) }, SCOPE), why);
  const again = [1, 2].map(() => signList(keyOf(key), [sent(orders[0]!)], SCOPE));
  assert.ok(again[0]!.seed !== again[1]!.seed && again.every((one) => isListSigned(one, SCOPE)));
});

test("a list has 1 to 64 orders", () => {
  const [first, key] = [sent(told.list.orders[0]!), keyOf(told.list.key)];
  const many = (size: number) => Array.from({ length: size }, (_, at) => ({ ...first, number: { ...first.number, reference: 100 + at } }));
  for (const size of [0, 65]) assert.throws(() => signList(key, many(size), SCOPE), new RegExp(`this one has ${size}: split it`));
  for (const size of [1, 2, 3, 63, 64]) assert.ok(isListSigned(signList(key, many(size), SCOPE), SCOPE));
});

function terms(lot_units: number, tick_units: number, [base, quote] = [6, 2] as [number, number], [lots_min, lots_max] = [1, 1000] as [number, number]): VenueTerms {
  const asset = (number: number, symbol: string, decimals: number) =>
    new AssetInfo({ asset: number, symbol, decimals, issuer: "0x", least_units: "1", issued: "0", valuation: null });
  const market: VenueMarket = {
    ...{ market: 0, symbol: "M0", base: 1, quote: 0, lot_units: String(lot_units), tick_units: String(tick_units), lots_max, lots_min },
    ...{ fee_cap_ppm: 2_000, maker_ppm: -50, taker_ppm: 200, least_quote_units: "0", phase: "continuous", bid: null, ask: null, last: null, day: null },
  };
  return new VenueTerms(market, asset(1, "EUR", base), asset(0, "USD", quote));
}

test("every tick and lot is an exact decimal and comes back", () => {
  for (const decimals of [[0, 0], [6, 2], [2, 6], [18, 6], [3, 18]] as [number, number][]) {
    for (const lot of [1, 10, 1000, 64, 625]) {
      for (const tick of [1, 7, 100]) {
        const of = terms(lot, tick, decimals);
        for (const number of [1, 2, 3, 999, 123_457, 2_000_000_000]) {
          const [whole, fraction = ""] = of.price(number).split(".");
          // The oracle: quote units for a lot, without the module's own step.
          const [digits, places] = [BigInt(whole + fraction), decimals[1] - decimals[0] - fraction.length];
          const scaled = (value: bigint, by: number) => (by > 0 ? value * 10n ** BigInt(by) : value);
          assert.equal(scaled(digits * BigInt(lot), places), scaled(BigInt(number) * BigInt(tick), -places));
          assert.equal(of.tick(of.price(number)), number);
        }
        for (const number of [1, 2, 999, 1000]) assert.equal(of.lots(of.amount(number)), number);
      }
    }
  }
});

test("what is no tick or no lot is refused with the nearest ones", () => {
  const of = terms(1_000_000, 1, [6, 2], [2, 10]);
  assert.deepEqual([of.priceStep, of.amountStep, of.feeCap], ["0.01", "1", 200]);
  const refused = (act: () => unknown, says: string) =>
    assert.throws(act, (error: Error) => error instanceof AmountError && error.message.endsWith(says), says);
  for (const [price, says] of [["1.005", "write 1 or 1.01"], ["0.001", "write 0.01"], ["30000000", "write 20000000"]] as const) refused(() => of.tick(price), says);
  for (const [amount, says] of [["2.5", "write 2 or 3"], ["1", "write 2"], ["10.5", "write 10"], ["11", "write 10"]] as const) refused(() => of.lots(amount), says);
  refused(() => of.tick(1.5 as unknown as string), "numbers are not exact");
  refused(() => terms(3, 1).price(1), "sign its orders with TradingKey.order");
  assert.deepEqual([decimalOf({ top: 1n, bottom: 3n }), decimalOf({ top: 5n, bottom: 8n }), decimalOf({ top: 6n, bottom: 3n })], [null, "0.625", "2"]);
});

const order = (number: OrderNumber): StoredOrder => ({ ...sent(told.list.orders[0]!), number, floor: { ...number, day: 0, reference: 0 }, key: "0x", signature: "0x", replaces: null });
const folder = () => mkdtempSync(join(tmpdir(), "walras-"));

async function begun(path: string, key = "0x02"): Promise<OrderJournal> {
  const journal = new OrderJournal(new OrderFile(path));
  await journal.begin("0x01", 3, key);
  return journal;
}

test("numbers never come again, whatever a crash leaves", async () => {
  const [path, used] = [join(folder(), "orders"), new Set<string>()];
  for (const [round, day] of [7, 7, 8, 7, 9].entries()) {
    const journal = await begun(path);
    for (const number of journal.take({ incarnation: 2, day, first: 5, count: 3 })) {
      assert.ok(!used.has(numberText(number)), numberText(number));
      used.add(numberText(number));
      journal.sends({ orders: [order(number)] });
    }
    // Taken and not stored: it never left, and whether it comes again is nothing to anybody.
    journal.take({ incarnation: 2, day, first: 5, count: 1 });
    await journal.close();
    if (round % 2 === 1) appendFileSync(path, '{"orders":[{"cut":');
  }
  assert.equal(used.size, 15);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const journal = await begun(path);
  assert.deepEqual(new Set(journal.open().map(numberText)), used);
  assert.throws(() => journal.take({ incarnation: 1, day: 9, first: 5, count: 1 }), /incarnation 2; the venue is at 1/);
  assert.deepEqual(journal.take({ incarnation: 3, day: 1, first: 5, count: 1 }), [{ incarnation: 3, day: 1, reference: 5 }]);
  await journal.close();
});

test("the file forgets what has ended and stays short", async () => {
  const path = join(folder(), "orders");
  let journal = await begun(path);
  const taken = (count: number) => journal.take({ incarnation: 2, day: 7, first: 5, count });
  const kept = taken(2);
  const listed = kept.map((number): ListedOrder => ({ ...order(number), replaces: null }));
  journal.sends({ list: { key: "0x", seed: "0x", signature: "0x", orders: listed } });
  for (let at = 0; at < 400; at += 1) {
    const numbers = taken(16);
    journal.sends({ orders: numbers.map(order) });
    journal.ended(numbers);
  }
  journal.ended(kept.slice(0, 1));
  assert.ok(statSync(path).size < 2 << 20);
  assert.deepEqual(journal.open(), kept.slice(1));
  await journal.close();
  journal = await begun(path);
  assert.deepEqual(journal.open(), kept.slice(1));
  assert.ok(statSync(path).size < 2_000);
  assert.equal(taken(1)[0]!.reference, 5 + 2 + 400 * 16);
  await journal.close();
});

test("orders that ended unheard are forgotten once their life is over", async () => {
  const journal = await begun(join(folder(), "orders"));
  const numbers = journal.take({ incarnation: 2, day: 7, first: 5, count: 1_100 });
  for (let at = 0; at < 1_100; at += 50) {
    journal.sends({ orders: numbers.slice(at, at + 50).map((number) => ({ ...order(number), expiry: 1_000 + at })) });
  }
  // So few may all be open: the second call forgets none.
  for (const height of [1_500, 10_000]) {
    journal.expire(height);
    assert.deepEqual(journal.open(), numbers.slice(500));
  }
  await journal.close();
});

test("the file belongs to one program, one key and nobody else", async () => {
  const path = join(folder(), "orders");
  const journal = await begun(path);
  const refused = (act: () => Promise<unknown>, says: RegExp) => assert.rejects(act, (error: Error) => error instanceof StoreError && says.test(error.message));
  await refused(() => begun(path), /in use by another program/);
  await journal.close();
  assert.throws(() => journal.sends({ orders: [order({ incarnation: 2, day: 7, reference: 1 })] }), /is closed: nothing was sent/);
  await refused(() => begun(path, "0x03"), /give each key, venue and network a file/);
  chmodSync(path, 0o644);
  await refused(() => begun(path), /chmod 600/);
  chmodSync(path, 0o600);
  appendFileSync(path, "no line\n");
  await refused(() => begun(path), /is damaged/);
  // An error leaves no lock behind.
  writeFileSync(path, "");
  await refused(() => begun(path), /is damaged/);
});

test("reports are stored once", async () => {
  const path = join(folder(), "orders");
  const journal = await begun(path);
  for (const [incarnation, report] of [[2, "0xaa"], [2, "0xaa"], [3, "0xbb"]] as const) journal.saw(incarnation, "7", report);
  assert.equal(readFileSync(`${path}.reports`, "utf8"), "0xaa\n0xbb\n");
  assert.equal(statSync(`${path}.reports`).mode & 0o777, 0o600);
  await journal.close();
});

test("a number is read as it is written, and numbers have an order", () => {
  assert.deepEqual(readNumber("0:20785:17"), { incarnation: 0, day: 20785, reference: 17 });
  for (const text of ["", "1:2", "1:2:x", "1:2:3:4"]) assert.throws(() => readNumber(text), /no number of an order/);
  const ascending = ["0:9:9", "1:0:5", "1:2:1", "1:2:10"].map(readNumber);
  assert.deepEqual([...ascending].reverse().sort(compareNumbers), ascending);
});
