/** Orders as people write them, and as the ledger keeps them. */
import { divide, multiply, parseDecimal, plainText, round, shift, subtract, trimZeros, type Decimal } from "./decimal.js";
import type { Asset } from "./bodies.js";

export type Side = "buy" | "sell";
/** An order for `base`, as written: amount of base, and quote per base, in whole assets. */
export type Order = { side: Side; base: string; quote: string; amount: string; price: string };
/** An offer that the ledger keeps: what is sold, in units, and the least rate, in units of `buy` per unit of `sell`. */
export type Terms = { sell: string; buy: string; amount: string; limit: string };

/** An order for exactly `amount` of `base`, for at most (to buy) or at least (to sell) `bound` of `quote` in all. */
export type ExactOrder = { side: Side; base: string; quote: string; amount: string; bound: string };
/** An exact order as the ledger takes it, in units: what is sold and bought, which of the two is exact, and the bound. */
export type ExactTerms = { sell: string; buy: string; side: Side; units: string; bound: string };

/** Digits of the ledger's prices. */
export const DIGITS = 17;
/** The most units that an account can have of an asset. */
export const UNITS_MAX = 2n ** 63n - 1n;

/** What the ledger is asked for, or a sentence that says what is wrong. */
export function termsOf(order: Order, assets: Map<string, Asset>): Terms | string {
  const [base, quote] = [assets.get(order.base), assets.get(order.quote)];
  const [amount, price] = [parseDecimal(order.amount.trim()), parseDecimal(order.price.trim())];
  if (!base || !quote) return `${base ? order.quote : order.base} is not an asset of this exchange.`;
  if (!amount || amount.digits <= 0n) return `Write the amount of ${order.base} as a number above 0, such as 12.5.`;
  if (!price || price.digits <= 0n) return `Write the price in ${order.quote} for one ${order.base} as a number above 0, such as 1.05.`;
  const units = unitsOf(amount, base.decimals);
  if (units === null) return `${order.base} has ${base.decimals} places after the point: write fewer.`;
  if (trimZeros(price, 0).digits >= 10n ** BigInt(DIGITS)) return `Write the price with at most ${DIGITS} digits.`;
  const perUnit = shift(price, quote.decimals - base.decimals);
  const terms = order.side === "sell" ? selling(order, units, perUnit) : buying(order, units, perUnit);
  const [gives, asset] = order.side === "sell" ? [units, base] : [BigInt(terms.amount), quote];
  const takes = order.side === "sell" ? ceiling(multiply({ digits: units, scale: 0 }, perUnit)) : units;
  for (const [some, of] of [[gives, asset], [units, base]] as const) {
    if (some > UNITS_MAX) return `The order is for more than an account can have: the most is ${plainText({ digits: UNITS_MAX, scale: of.decimals })} ${of.symbol}.`;
  }
  const least = BigInt(asset.least_units);
  if (gives < least) return `The order sells ${plainText({ digits: gives, scale: asset.decimals })} ${asset.symbol}; the least is ${plainText({ digits: least, scale: asset.decimals })} ${asset.symbol}.`;
  const other = order.side === "sell" ? quote : base;
  const leastOther = BigInt(other.least_units);
  if (takes < leastOther) return `The order asks for ${plainText({ digits: takes, scale: other.decimals })} ${other.symbol}; the least is ${plainText({ digits: leastOther, scale: other.decimals })} ${other.symbol}.`;
  return terms;
}

/** What the ledger is asked for by an exact order, or a sentence that says what is wrong. */
export function exactTermsOf(order: ExactOrder, assets: Map<string, Asset>): ExactTerms | string {
  const [base, quote] = [assets.get(order.base), assets.get(order.quote)];
  const [amount, bound] = [parseDecimal(order.amount.trim()), parseDecimal(order.bound.trim())];
  if (!base || !quote) return `${base ? order.quote : order.base} is not an asset of this exchange.`;
  if (!amount || amount.digits <= 0n) return `Write the exact amount of ${order.base} as a number above 0, such as 12.5.`;
  const most = order.side === "buy" ? "the most that you pay" : "the least that you receive";
  if (!bound || bound.digits <= 0n) return `Write ${most} in all, in ${order.quote}, as a number above 0, such as 250.`;
  const [units, limit] = [unitsOf(amount, base.decimals), unitsOf(bound, quote.decimals)];
  if (units === null) return `${order.base} has ${base.decimals} places after the point: write fewer.`;
  if (limit === null) return `${order.quote} has ${quote.decimals} places after the point: write fewer.`;
  for (const [what, value, asset] of [["amount", units, base], ["bound", limit, quote]] as const) {
    if (value > UNITS_MAX) return `The ${what} is more than an account can have: the most is ${plainText({ digits: UNITS_MAX, scale: asset.decimals })} ${asset.symbol}.`;
  }
  const least = BigInt(base.least_units);
  if (units < least) return `An exact order is for at least ${plainText({ digits: least, scale: base.decimals })} ${base.symbol}.`;
  const [sell, buy] = order.side === "sell" ? [order.base, order.quote] : [order.quote, order.base];
  return { sell, buy, side: order.side, units: units.toString(), bound: limit.toString() };
}

/** The exact order that buys the amount of an order at its price or better, or sells it so, or does nothing. */
export function exactly({ price, ...order }: Order, assets: Map<string, Asset>): ExactOrder | string {
  const terms = termsOf({ price, ...order }, assets);
  const quote = assets.get(order.quote);
  if (typeof terms === "string" || !quote) return typeof terms === "string" ? terms : `${order.quote} is not an asset of this exchange.`;
  const [amount, each] = [parseDecimal(order.amount.trim()), parseDecimal(price.trim())];
  if (!amount || !each) return "Write amount and price as numbers above 0.";
  const units = boundOf(order.side, shift(multiply(amount, each), quote.decimals));
  return { ...order, bound: plainText({ digits: units, scale: quote.decimals }) };
}

/** What an exact order costs at the most or brings at the least, in units: nobody pays more than was written, and nobody gets less. */
export const boundOf = (side: Side, total: Decimal): bigint => (side === "buy" ? floor(total) : ceiling(total));

/** What terms ask for, whether of an offer or of an exact order. */
export type Asked = { sell: string; buy: string; amount: string; limit: string; exact?: { side: Side; units: string; bound: string } | null };

/**
 * The order that terms mean, as it was written: the inverse of `termsOf` and `exactTermsOf`. Of all amounts and prices that have
 * these terms it takes those with the fewest digits. `null` where the terms are of none of the two assets.
 */
export function orderOf(asked: Asked, base: Asset, quote: Asset): Order | null {
  const side = asked.sell === base.symbol ? "sell" : "buy";
  const limit = parseDecimal(asked.limit);
  if (![base.symbol, quote.symbol].includes(asked.sell) || ![base.symbol, quote.symbol].includes(asked.buy) || !limit || limit.digits <= 0n) return null;
  const named = { side, base: base.symbol, quote: quote.symbol } as const;
  if (asked.exact) return exactOf(asked.exact, named, base, quote);
  const nearest = divide(ONE, limit, DIGITS);
  // Not every limit is that of a price in the ledger's digits: offers of programs may have any.
  const perUnit = side === "sell" ? limit : (simplest(nearest, "up", (price) => subtract(inverse(price), limit).digits === 0n) ?? nearest);
  if (!perUnit) return null;
  const units = parseDecimal(asked.amount);
  const cost = BigInt(asked.amount);
  const fits = (amount: Decimal) => amount.scale <= 0 && ceiling(multiply(amount, perUnit)) === cost;
  // Where no whole number of units costs just that, it is as much as is asked for at the least.
  const least = units && { digits: floor(multiply(units, limit)), scale: 0 };
  const amount = side === "sell" ? units : (simplest(units && divide(units, perUnit), "down", fits) ?? least);
  if (!amount) return null;
  return { ...named, amount: plainText(shift(amount, -base.decimals)), price: plainText(shift(perUnit, base.decimals - quote.decimals)) };
}

function exactOf(exact: NonNullable<Asked["exact"]>, named: Omit<Order, "amount" | "price">, base: Asset, quote: Asset): Order | null {
  const [units, bound] = [parseDecimal(exact.units), parseDecimal(exact.bound)];
  // Sides of exact orders that were made for the pair the other way round: the exact amount is one of the quote.
  if (!units || !bound || units.digits <= 0n) return null;
  const isOfBase = exact.side === named.side;
  const [amount, total] = isOfBase ? [units, bound] : [bound, units];
  const [rounded, toward] = exact.side === "buy" ? ([floor, "up"] as const) : ([ceiling, "down"] as const);
  const perUnit = simplest(divide(total, amount, DIGITS), toward, (price) => rounded(multiply(amount, price)) === total.digits) ?? divide(total, amount, DIGITS);
  if (!perUnit) return null;
  return { ...named, amount: plainText(shift(amount, -base.decimals)), price: plainText(shift(perUnit, base.decimals - quote.decimals)) };
}

const ONE: Decimal = { digits: 1n, scale: 0 };

/** The decimal with the fewest digits for which `holds`, where all of these lie on one side of `value`. */
function simplest(value: Decimal | null, toward: "up" | "down", holds: (candidate: Decimal) => boolean): Decimal | null {
  for (let digits = 1; value && digits <= DIGITS; digits += 1) {
    const places = value.scale - Math.max(0, value.digits.toString().length - digits);
    const scaled = shift(value, places);
    const candidate = trimZeros({ digits: toward === "up" ? ceiling(scaled) : floor(scaled), scale: places }, 0);
    if (candidate.digits > 0n && holds(candidate)) return candidate;
  }
  return null;
}

/** Units of the asset sold that an exact order locks for the batch of its block. */
export const lockedBy = (terms: ExactTerms): string => (terms.side === "buy" ? terms.bound : terms.units);

function selling(order: Order, units: bigint, perUnit: Decimal): Terms {
  return { sell: order.base, buy: order.quote, amount: units.toString(), limit: plainText(perUnit) };
}

/** To buy is to sell the quote asset: as much as the amount costs at the price, for no less of the base than the inverse. */
function buying(order: Order, units: bigint, perUnit: Decimal): Terms {
  const cost = ceiling(multiply({ digits: units, scale: 0 }, perUnit));
  return { sell: order.quote, buy: order.base, amount: cost.toString(), limit: plainText(inverse(perUnit)) };
}

/** 1 ÷ `price` in the ledger's digits, rounded up: nobody pays more than was written. */
export function inverse(price: Decimal): Decimal {
  const nearest = divide({ digits: 1n, scale: 0 }, price, DIGITS) ?? { digits: 0n, scale: 0 };
  const short = subtract({ digits: 1n, scale: 0 }, multiply(nearest, price)).digits > 0n;
  return short ? { digits: nearest.digits + 1n, scale: nearest.scale } : nearest;
}

/** An exact number of units, or null where there are parts of one. */
export function unitsOf(amount: Decimal, decimals: number): bigint | null {
  const units = round(shift(amount, decimals), 0);
  return subtract(shift(amount, decimals), units).digits === 0n ? units.digits : null;
}

function floor(value: Decimal): bigint {
  return value.scale <= 0 ? value.digits * 10n ** BigInt(-value.scale) : value.digits / 10n ** BigInt(value.scale);
}

export function ceiling(value: Decimal): bigint {
  if (value.scale <= 0) return value.digits * 10n ** BigInt(-value.scale);
  const one = 10n ** BigInt(value.scale);
  return (value.digits + one - 1n) / one;
}
