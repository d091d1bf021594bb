/** Levels that go through one other asset, against a walk unit by unit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Asset, Level } from "../src/bodies.js";
import { bestRoutes, impliedBook } from "../src/implied.js";

const asset = (number: number, symbol: string, decimals = 0): Asset => ({ asset: number, symbol, decimals, issuer: "0x", least_units: "1", issued: "0", valuation: null });
const [USD, EUR, JPY] = [asset(0, "USD", 2), asset(1, "EUR", 4), asset(2, "JPY")];
const level = (price_units: string | number, amount: number): Level => ({ price: "0", price_units: String(price_units), amount: String(amount), offers: 1 });
const told = ({ price_units, amount, through }: { price_units: string; amount: string; through: string }) => [price_units, amount, through];

test("sells of both markets sell through the middle asset, as much as the smaller has", () => {
  // A unit of JPY costs 2 of EUR, and one of EUR 3 of USD.
  const books = [
    { market: "JPY/EUR", sells: [level(2, 5), level(4, 10)], buys: [level(1, 6)] },
    { market: "EUR/USD", sells: [level(3, 12), level(5, 100)], buys: [level("0.5", 4)] },
  ];
  const { sells, buys } = impliedBook(JPY, USD, books, 10);
  // Five units take ten EUR at 3, two EUR at 3 are too few for one at 4, and the rest is paid at 5.
  assert.deepEqual(sells.map(told), [["6", "5", "EUR"], ["20", "10", "EUR"]]);
  assert.deepEqual(buys.map(told), [["0.5", "4", "EUR"]]);
  // In whole assets: one JPY is a unit, one USD a hundred.
  assert.equal(sells[0]!.price, "0.06");
  assert.deepEqual(impliedBook(JPY, USD, books, 1).sells.length, 1);
  assert.deepEqual(impliedBook(JPY, USD, books.slice(0, 1), 10), { sells: [], buys: [] });
});

test("a book the other way round is turned: offers of its base buy the other asset", () => {
  const books = [
    { market: "JPY/EUR", sells: [level("0.5", 8)], buys: [level("0.25", 40)] },
    { market: "JPY/USD", sells: [level(2, 7)], buys: [level(1, 9)] },
  ];
  const { sells, buys } = impliedBook(EUR, USD, books, 10);
  // The buys of JPY/EUR pay 10 EUR for 40 JPY: they sell EUR at 4 JPY each. The seven JPY for sale cost 2 USD each.
  assert.deepEqual(sells.map(told), [["8", "1", "JPY"]]);
  // The sells of JPY/EUR sell 8 JPY at half an EUR: they buy 4 EUR at 2 JPY. Nine JPY are bought at 1 USD.
  assert.deepEqual(buys.map(told), [["2", "4", "JPY"]]);
});

/** The same by single units of the base: each takes the best offers that are left, or the ladder ends. */
function walked(first: [number, number][], second: [number, number][]): Map<number, number> {
  const [near, far] = [first.map((one) => [...one]), second.map((one) => [...one])];
  const found = new Map<number, number>();
  for (;;) {
    const one = near.find(([, left]) => left! > 0);
    const other = one && far.find(([, left]) => left! >= one[0]!);
    // What is too little for a unit is passed over, as the ladder does.
    if (!one || !other) return found;
    for (const passed of far.slice(0, far.indexOf(other))) passed[1] = 0;
    one[1]! -= 1;
    other[1]! -= one[0]!;
    found.set(one[0]! * other[0]!, (found.get(one[0]! * other[0]!) ?? 0) + 1);
  }
}

test("the levels are those of a walk unit by unit, whatever the books", () => {
  let seed = 7;
  const roll = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let turn = 0; turn < 500; turn += 1) {
    const ladder = (): [number, number][] => Array.from({ length: roll(5) }, (_, at): [number, number] => [1 + 2 * at + roll(2), 1 + roll(30)]);
    const [first, second] = [ladder(), ladder()];
    const books = [
      { market: "JPY/EUR", sells: first.map(([price, amount]) => level(price, amount)), buys: [] },
      { market: "EUR/USD", sells: second.map(([price, amount]) => level(price, amount)), buys: [] },
    ];
    const sums = new Map<number, number>();
    for (const { price_units, amount } of impliedBook(JPY, USD, books, 100).sells) sums.set(Number(price_units), (sums.get(Number(price_units)) ?? 0) + Number(amount));
    assert.deepEqual([...sums].sort(), [...walked(first, second)].sort(), `turn ${turn}`);
  }
});

test("the routes are those of the best prices on either side", () => {
  const market = (name: string, best_sell_units: string | null, best_buy_units: string | null) => {
    const [base, quote] = name.split("/") as [string, string];
    return { base, quote, best_sell_units, best_buy_units };
  };
  const markets = [
    market("EUR/USD", "1", "1"),
    // Through JPY a unit costs 6 and brings 2; through GBP it costs 5 and brings 1; through CHF nobody buys or sells both.
    market("JPY/EUR", "0.5", "0.25"), market("JPY/USD", "1.5", "1"),
    market("GBP/EUR", "1", "0.5"), market("GBP/USD", "2.5", "1"),
    market("CHF/EUR", null, null), market("CHF/USD", "1", "1"),
  ];
  assert.deepEqual(bestRoutes("EUR", "USD", markets, 1), ["GBP", "JPY"]);
  assert.deepEqual(bestRoutes("EUR", "USD", markets, 5).sort(), ["GBP", "JPY"]);
});
