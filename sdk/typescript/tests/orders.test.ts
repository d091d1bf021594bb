/** What an order asks for, held against the published vectors, and how a purchase is placed, against a node of the test's own. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Asset } from "../src/bodies.js";
import { marketOf } from "../src/placing.js";
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
