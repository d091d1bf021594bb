/**
 * Levels of a market that two other markets imply. Whoever buys EUR with JPY may buy USD with JPY and EUR with USD, and a batch, in
 * which all pairs clear at one set of prices, does so by itself. So the sells of EUR/USD and of USD/JPY are together a sell of
 * EUR/JPY, at the product of their prices, for as much as the smaller of both has.
 *
 * They are a picture and no promise: each hop keeps its commission, and whoever trades in one of the two markets takes their offers, too.
 */
import type { Asset, Book, Level, Market, Units } from "./bodies.js";
import { divide, multiply, parseDecimal, plainText, roundSignificant, shift, toNumber, type Decimal } from "./decimal.js";
import { DIGITS } from "./terms.js";

/** A level as the API tells one, and the asset that it goes through. */
export type ImpliedLevel = Pick<Level, "price" | "price_units" | "amount"> & { through: string };
export type ImpliedBook = { sells: ImpliedLevel[]; buys: ImpliedLevel[] };

/** A step of a ladder: units of an asset, at a price in units of another one. */
type Step = { price: Decimal; units: bigint };
/** The best first. */
type Ladder = { sells: Step[]; buys: Step[] };

const ONE: Decimal = { digits: 1n, scale: 0 };

const ten = (power: number): bigint => 10n ** BigInt(Math.max(0, power));
/** Whole units that so many cost at a price, or that so many pay for; rounded down. */
const costOf = (units: bigint, { digits, scale }: Decimal): bigint => (units * digits * ten(-scale)) / ten(scale);
const paidFor = (units: bigint, { digits, scale }: Decimal): bigint => (units * ten(scale)) / (digits * ten(-scale));
const inverse = (price: Decimal): Decimal => divide(ONE, price, DIGITS) ?? ONE;

/** The book of two assets with `base` as its base: offers of the other asset buy it. */
function ladder({ market, sells, buys }: Pick<Book, "market" | "sells" | "buys">, base: string): Ladder {
  const steps = (levels: Level[]): Step[] => levels.flatMap(({ price_units, amount }) => {
    const price = parseDecimal(price_units);
    return price && price.digits > 0n ? [{ price, units: BigInt(amount) }] : [];
  });
  if (market.startsWith(`${base}/`)) return { sells: steps(sells), buys: steps(buys) };
  const turned = (levels: Level[]) => steps(levels).map(({ price, units }): Step => ({ price: inverse(price), units: costOf(units, price) }));
  return { sells: turned(buys), buys: turned(sells) };
}

/** What two ladders give one after the other: the first is of the base in the middle asset, the second of that in the quote. */
function chained(first: Step[], second: Step[]): Step[] {
  const steps: Step[] = [];
  const [one, other] = [first.map((step) => ({ ...step })), second.map((step) => ({ ...step }))];
  for (let [i, j] = [0, 0]; i < one.length && j < other.length; ) {
    const [near, far] = [one[i]!, other[j]!];
    // As much of the base as the middle asset of the second ladder pays for.
    const most = paidFor(far.units, near.price);
    const units = near.units < most ? near.units : most;
    if (units > 0n) {
      steps.push({ price: multiply(near.price, far.price), units });
      near.units -= units;
      far.units -= costOf(units, near.price);
    }
    if (near.units === 0n) i += 1;
    else j += 1;
  }
  return steps;
}

/**
 * What the books of `base` and of `quote` with other assets imply for their market, the best first, at most `most` levels of a side.
 * Books that lead from one to the other are found by the names of their markets.
 */
export function impliedBook(base: Asset, quote: Asset, books: Pick<Book, "market" | "sells" | "buys">[], most: number): ImpliedBook {
  const sidesOf = (of: string) => new Map(books.flatMap((book) => {
    const [one, other] = book.market.split("/") as [string, string];
    return one === of ? [[other, book] as const] : other === of ? [[one, book] as const] : [];
  }));
  const [near, far] = [sidesOf(base.symbol), sidesOf(quote.symbol)];
  const found: { sells: (Step & { through: string })[]; buys: (Step & { through: string })[] } = { sells: [], buys: [] };
  for (const [through, book] of near) {
    const next = far.get(through);
    if (!next || through === quote.symbol) continue;
    const [first, second] = [ladder(book, base.symbol), ladder(next, through)];
    for (const side of ["sells", "buys"] as const) found[side].push(...chained(first[side], second[side]).map((step) => ({ ...step, through })));
  }
  const told = ({ price, units, through }: Step & { through: string }): ImpliedLevel => {
    const rounded = roundSignificant(price, DIGITS);
    return { price: plainText(shift(rounded, base.decimals - quote.decimals)), price_units: plainText(rounded), amount: String(units) as Units, through };
  };
  const order = (dear: 1 | -1) => (a: Step, b: Step) => dear * (toNumber(a.price) - toNumber(b.price));
  return { sells: found.sells.sort(order(1)).slice(0, most).map(told), buys: found.buys.sort(order(-1)).slice(0, most).map(told) };
}

/** The assets through which a market's best implied prices go, by the best prices of all markets: `most` for each side. */
export function bestRoutes(base: string, quote: string, markets: Pick<Market, "base" | "quote" | "best_sell_units" | "best_buy_units">[], most: number): string[] {
  /** The best price of `of` in `other`: to buy it, and to sell it. */
  const best = (of: string, other: string): [ask: number, bid: number] => {
    const found = markets.find((one) => [one.base, one.quote].includes(of) && [one.base, one.quote].includes(other));
    const [ask, bid] = [Number(found?.best_sell_units ?? Infinity), Number(found?.best_buy_units ?? 0)];
    return found?.base === of ? [ask, bid] : [1 / bid, 1 / ask];
  };
  const others = new Set(markets.flatMap((one) => [one.base, one.quote]).filter((one) => one !== base && one !== quote));
  const routes = [...others].map((through) => {
    const [[ask, bid], [nextAsk, nextBid]] = [best(base, through), best(through, quote)];
    return { through, ask: ask * nextAsk, bid: bid * nextBid };
  });
  const asks = routes.filter(({ ask }) => Number.isFinite(ask)).sort((a, b) => a.ask - b.ask);
  const bids = routes.filter(({ bid }) => bid > 0).sort((a, b) => b.bid - a.bid);
  return [...new Set([...asks.slice(0, most), ...bids.slice(0, most)].map(({ through }) => through))];
}
