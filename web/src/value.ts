/** Valuations turned into prices and worth that people count: only their ratios mean anything. */
import { divide, fromUnits, multiply, parseDecimal, round, shift, toNumber, type Decimal } from "@walras/client/decimal";
import type { Asset, Batch } from "@walras/client/bodies";

type Assets = ReadonlyMap<string, Asset>;

/** The asset that worth is counted in: the first of the ledger, which also pays fees. */
export function numeraire(assets: Assets): Asset | undefined {
  return [...assets.values()].find((asset) => asset.asset === 0);
}

/** How many whole `quote` one whole `base` was worth in the batch; `null` where one of them has no valuation. */
export function batchPrice(batch: Batch, assets: Assets, base: string, quote: string): Decimal | null {
  const [b, q] = [whole(batch, assets, base), whole(batch, assets, quote)];
  return b && q && divide(b, q, 12);
}

/** What `units` of an asset were worth in the batch, in whole units of the numeraire. */
export function worth(batch: Batch, assets: Assets, symbol: string, units: string): Decimal | null {
  const first = numeraire(assets);
  const price = first && batchPrice(batch, assets, symbol, first.symbol);
  const amount = fromUnits(units, assets.get(symbol)?.decimals ?? 0);
  return price && amount ? multiply(price, amount) : null;
}

/** Places after the point of a worth that is summed. */
const WORTH_PLACES = 6;
const traded = new WeakMap<Batch, Map<string, bigint>>();

/** The key of a pair in either order. */
export function pairKey(a: string, b: string): string {
  return a < b ? `${a}/${b}` : `${b}/${a}`;
}

/**
 * What each pair traded in these batches, by the worth of the numeraire at each batch's valuations. What one side sells and
 * the other buys counts once: a batch counts with the direction that sold more.
 */
export function tradedWorth(batches: Batch[], assets: Assets): Map<string, Decimal> {
  const sums = new Map<string, bigint>();
  for (const batch of batches) for (const [key, value] of tradedIn(batch, assets)) sums.set(key, (sums.get(key) ?? 0n) + value);
  return new Map([...sums].map(([key, digits]) => [key, { digits, scale: WORTH_PLACES }]));
}

function tradedIn(batch: Batch, assets: Assets): Map<string, bigint> {
  const known = traded.get(batch);
  if (known) return known;
  const sums = new Map<string, bigint>();
  for (const { sell, buy, sold } of batch.trades) {
    const value = worth(batch, assets, sell, sold);
    const key = pairKey(sell, buy);
    const digits = value ? round(value, WORTH_PLACES).digits : 0n;
    if (digits > (sums.get(key) ?? 0n)) sums.set(key, digits);
  }
  if (assets.size > 0) traded.set(batch, sums);
  return sums;
}

/** The valuation of one whole of an asset. */
function whole(batch: Batch, assets: Assets, symbol: string): Decimal | null {
  const valuation = parseDecimal(batch.valuations[symbol] ?? "");
  const asset = assets.get(symbol);
  return valuation && asset ? shift(valuation, asset.decimals) : null;
}

const approximations = new WeakMap<Batch, Map<string, number>>();

/** The valuation of one whole of each asset as a double: for lines, percentages and sorting, never for text of money. */
export function approximate(batch: Batch, assets: Assets): Map<string, number> {
  const known = approximations.get(batch);
  if (known) return known;
  const symbols = Object.keys(batch.valuations);
  const values = symbols.flatMap((symbol): [string, number][] => {
    const value = whole(batch, assets, symbol);
    return value ? [[symbol, toNumber(value)]] : [];
  });
  if (assets.size > 0) approximations.set(batch, new Map(values));
  return new Map(values);
}

/** The batch prices of a pair in these batches, as doubles for a line. */
export function recentPrices(batches: Batch[], assets: Assets, base: string, quote: string): number[] {
  return batches.flatMap((batch) => {
    const values = approximate(batch, assets);
    const [one, other] = [values.get(base), values.get(quote)];
    return one && other ? [one / other] : [];
  });
}
