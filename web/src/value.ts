/** Valuations turned into prices and worth that people count: only their ratios mean anything. */
import { divide, fromUnits, multiply, parseDecimal, shift, toNumber, type Decimal } from "./amount";
import type { Asset, Batch } from "./api";

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
