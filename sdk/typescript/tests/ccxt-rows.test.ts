/** What an order, a trade and a page of the ccxt class are, for any history. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pageOf, pastRow, sumsOf, tradeRow } from "../src/ccxt-rows.js";
import { divide, multiply, parseDecimal, plainText, subtract, type Decimal } from "../src/decimal.js";
import type { OrderTerms, PastFill, PastOrder } from "../src/models.js";

const MARKETS = { "EUR/USD": {} };
const ONE: Decimal = { digits: 1n, scale: 0 };
const exact = (text: unknown): Decimal => parseDecimal(String(text))!;
const sum = (texts: unknown[]): string => texts.reduce<string>((all, one) => plainText(subtract(exact(all), { ...exact(one), digits: -exact(one).digits })), "0");

/** A linear congruential generator: the same histories each time. */
function dice(seed: number): (below: number) => number {
  let state = BigInt(seed) * 2n + 1n;
  return (below) => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n);
    return Number((state >> 33n) % BigInt(below));
  };
}

/** An order as a node tells it, what it asks for, and its fills. */
function history(seed: number): { past: PastOrder; fills: PastFill[]; terms: OrderTerms } {
  const roll = dice(seed);
  const [sell, buy] = roll(2) === 0 ? ["EUR", "USD"] : ["USD", "EUR"];
  const price: Decimal = { digits: BigInt(1 + roll(1_000_000)), scale: 3 };
  const limit = sell === "EUR" ? price : divide(ONE, price)!;
  const amount = 1 + roll(1_000_000_000);
  let left = amount;
  const fills: PastFill[] = [];
  for (let at = roll(9); at > 0 && left > 0; at -= 1) {
    const sold: Decimal = { digits: BigInt(1 + roll(left)), scale: 6 };
    const better: Decimal = { digits: BigInt(1000 + roll(500)), scale: 3 };
    const bought = multiply(multiply(sold, limit), better);
    left -= Number(sold.digits);
    const row = { height: at, time_ms: at, limit: "1", offer: 7n, left: "0", returned: "0" };
    fills.push({ ...row, sell, buy, sold: plainText(sold), bought: plainText({ digits: bought.digits / 10n ** BigInt(Math.max(0, bought.scale - 6)), scale: Math.min(6, bought.scale) }) } as PastFill);
  }
  const [status, why] = left === 0 ? ["ended", "filled"] : roll(2) === 0 ? ["resting", null] : ["ended", "cancelled"];
  const sums = sumsOf(fills);
  const past = { sequence: 7n, until: 99n, time_ms: 9, sell, buy, life: "rests", client: null, status, why, exact: null, ...sums } as unknown as PastOrder;
  // A purchase of so much of the base; its money may buy more.
  const base = sell === "EUR" ? amount : Math.max(1, Math.floor((amount * 1000) / Number(price.digits)));
  const text = (units: number) => plainText({ digits: BigInt(units), scale: 6 });
  const terms: OrderTerms = { side: sell === "EUR" ? "sell" : "buy", base: "EUR", quote: "USD", amount: text(base), price: plainText(price) };
  return { past: { ...past, amount: text(amount) }, fills, terms };
}

test("the trades of an order sum to it in any history", () => {
  for (let seed = 0; seed < 2_000; seed += 1) {
    const { past, fills, terms } = history(seed);
    const row = pastRow(past, terms, { sold: past.sold!, bought: past.bought! }, past);
    const trades = fills.map((fill) => tradeRow(MARKETS, fill));
    assert.equal(row["filled"], sum(trades.map((one) => one["amount"])), `seed ${seed}`);
    assert.equal(row["cost"], sum(trades.map((one) => one["cost"])), `seed ${seed}`);
    assert.equal(plainText(exact(row["amount"])), sum([row["filled"], row["remaining"]]), `seed ${seed}`);
    assert.ok(exact(row["remaining"]).digits >= 0n, `seed ${seed}`);
    assert.equal(row["average"] === undefined, exact(row["filled"]).digits === 0n, `seed ${seed}`);
    assert.ok(trades.every((one) => one["side"] === row["side"] && one["order"] === row["id"]));
    assert.deepEqual([row["symbol"], row["side"], row["price"]], ["EUR/USD", terms.side, terms.price]);
    if (row["side"] === "sell") assert.equal(row["amount"], past.amount);
  }
});

test("pages from since on join without hole or repetition over ten thousand rows", () => {
  const roll = dice(3);
  const rows = Array.from({ length: 10_000 }, () => roll(6_000)).sort((a, b) => a - b).map((time, at) => ({ time, at }));
  for (const limit of [1, 7, 100, 1_000]) {
    const found: typeof rows = [];
    for (let since = 0; ; ) {
      const page = pageOf(rows, (row) => row.time, since, limit);
      if (page.length === 0) break;
      assert.ok(page.length >= Math.min(limit, rows.length - found.length));
      found.push(...page);
      since = page.at(-1)!.time + 1;
    }
    assert.deepEqual(found, rows);
  }
  assert.deepEqual(pageOf(rows, (row) => row.time, undefined, 5), rows.slice(-5));
  assert.equal(pageOf(rows, (row) => row.time).length, rows.length);
});
