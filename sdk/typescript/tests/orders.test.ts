/** What an order asks for, held against the published vectors, and how a purchase is placed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { AssetInfo } from "../src/assets.js";
import type { Asset, Quote } from "../src/bodies.js";
import { encodeOperation } from "../src/encoding.js";
import { marketOf } from "../src/placing.js";
import { exactOf, isFormOf, offerOf, tightened, type Purchase } from "../src/purchase.js";
import { orderOf, termsOf, type Asked, type Order } from "../src/terms.js";

type Vector = { order: Order; terms: Asked; is_written: boolean };
const told = JSON.parse(readFileSync(new URL("../../../../docs/order-vectors.json", import.meta.url), "utf8")) as {
  assets: { symbol: string; decimals: number }[];
  orders: Vector[];
};
const ASSETS = new Map(told.assets.map(({ symbol, decimals }, asset): [string, Asset] => [symbol, { asset, symbol, decimals, issuer: "0x", least_units: "1", issued: "0", valuation: null }]));

test("an order is told as it was placed, in the market of the asset with the higher number", () => {
  for (const { order, terms, is_written } of told.orders) {
    const [base, quote] = marketOf(terms.sell, terms.buy, ASSETS)!;
    assert.deepEqual(orderOf(terms, ASSETS.get(base)!, ASSETS.get(quote)!), order);
    const { exact: _, ...limit } = terms;
    if (is_written) assert.deepEqual(termsOf(order, ASSETS), limit);
  }
  assert.equal(marketOf("EUR", "EUR", ASSETS), null);
  assert.equal(marketOf("EUR", "XYZ", ASSETS), null);
});

const [USD, EUR] = ["USD", "EUR"].map((symbol, asset) => new AssetInfo({ asset, symbol, decimals: 2, issuer: "0x", least_units: "1", issued: "0", valuation: null }));
/** 50 EUR for at most 1.2 USD each. */
const PURCHASE: Purchase = { base: EUR!, quote: USD!, units: 5_000n, limit: { digits: 12n, scale: 1 }, named: {} };

/** A batch that takes all of an offer, and charges so much. */
const charging = (cents: bigint) => async ({ amount }: { amount: bigint }) => ({ amount: String(amount), sold: String(amount), bought: String((amount * 100n) / cents) }) as Quote;

test("where there is no room for an exact order an offer has what the batch would charge, and room below the limit", async () => {
  const usual = offerOf(PURCHASE);
  assert.deepEqual([usual.amount, usual.limit], [6_000n, "0.83333333333333334"]);
  const tight = await tightened(PURCHASE, charging(100n));
  assert.ok(tight.amount >= 5_000n && tight.amount <= 5_005n && Math.abs(Number(tight.limit) - 1 / 1.05) < 0.001, JSON.stringify([String(tight.amount), tight.limit]));
  assert.deepEqual(await tightened(PURCHASE, charging(120n)), usual, "it charges the limit");
  const half = async ({ amount }: { amount: bigint }) => ({ amount: String(amount), sold: String(amount / 2n), bought: "5000" }) as Quote;
  assert.deepEqual(await tightened(PURCHASE, half), usual, "it would not fill it whole");
});

test("the forms of a purchase are its exact order and offers for no more at no worse a limit", async () => {
  const isForm = isFormOf(PURCHASE);
  const forms = [exactOf(PURCHASE)!, offerOf(PURCHASE), await tightened(PURCHASE, charging(100n))];
  for (const form of forms) assert.ok(isForm(encodeOperation(form)), form.kind);
  const larger = { ...PURCHASE, units: 5_001n };
  const others = [exactOf(larger)!, offerOf(larger), offerOf({ ...PURCHASE, limit: { digits: 13n, scale: 1 } }), offerOf({ ...PURCHASE, named: { life: "one batch" } })];
  for (const other of others) assert.ok(!isForm(encodeOperation(other)), JSON.stringify(other, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)));
  assert.equal(exactOf({ ...PURCHASE, units: 1n, limit: { digits: 5n, scale: 1 } }), null, "it costs less than a unit");
});
