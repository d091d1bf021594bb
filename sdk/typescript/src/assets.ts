/**
 * Amounts and prices, exactly: decimal text in whole assets for people, units for the ledger. Nothing is rounded in
 * silence: an amount with more places than its asset has is refused, as are numbers, which cannot write most decimals.
 */
import type * as bodies from "./bodies.js";
import { multiply, parseDecimal, plainText, round, shift, subtract, trimZeros, type Decimal } from "./decimal.js";
import { AmountError, UnknownAssetError } from "./errors.js";
import { DIGITS, UNITS_MAX, ceiling, inverse } from "./terms.js";

/** A number without loss, such as `"12.5"`. */
export type Amount = string | bigint;

const TEXT_MOST = 100;

/** The decimal that an amount writes. */
export function exact(amount: Amount, what: string): Decimal {
  if (typeof amount !== "string" && typeof amount !== "bigint") {
    throw new AmountError(`${what} is ${String(amount)}; write it as text, such as "12.5": numbers are not exact`);
  }
  const number = String(amount).length > TEXT_MOST ? null : parseDecimal(String(amount).trim());
  if (!number) throw new AmountError(`${what} is ${JSON.stringify(String(amount))}, which is no number; write it such as "12.5"`);
  if (number.digits <= 0n) throw new AmountError(`${what} is ${plainText(number)}; it must be above 0`);
  return number;
}

/** An asset with exact amounts. */
export class AssetInfo {
  constructor(readonly body: bodies.Asset) {}

  get symbol(): string {
    return this.body.symbol;
  }
  get number(): number {
    return this.body.asset;
  }
  get decimals(): number {
    return this.body.decimals;
  }
  /** The least that an offer sells or asks for. */
  get least(): bigint {
    return BigInt(this.body.least_units);
  }

  /** An amount in units; refused if a part of a unit would be lost. */
  units(amount: Amount, what = "the amount"): bigint {
    const number = exact(amount, what);
    const units = round(shift(number, this.decimals), 0);
    if (subtract(shift(number, this.decimals), units).digits !== 0n) {
      throw new AmountError(
        `${what} is ${plainText(number)} ${this.symbol}, but ${this.symbol} has ${this.decimals} places after the point: write fewer`,
      );
    }
    if (units.digits > UNITS_MAX) throw new AmountError(`${what} is ${plainText(number)} ${this.symbol}; the most is ${this.amount(UNITS_MAX)}`);
    return units.digits;
  }

  /** Units in whole assets, as the shortest decimal. */
  amount(units: bigint | string): string {
    return plainText({ digits: BigInt(units), scale: this.decimals });
  }
}

/** The assets of a network, by symbol. */
export class Assets {
  private readonly bySymbol = new Map<string, AssetInfo>();

  constructor(body: { assets: bodies.Asset[] }) {
    this.learn(body);
  }

  /** Adds assets that were listed since; what is known of the others is renewed. */
  learn(body: { assets: bodies.Asset[] }): void {
    for (const asset of body.assets) this.bySymbol.set(asset.symbol, new AssetInfo(asset));
  }

  has(symbol: string): boolean {
    return this.bySymbol.has(symbol);
  }

  get symbols(): string[] {
    return [...this.bySymbol.keys()];
  }

  get(symbol: string): AssetInfo {
    const found = this.bySymbol.get(symbol);
    if (!found) throw new UnknownAssetError(`no asset ${JSON.stringify(symbol)}; there are ${this.symbols.join(", ")}`);
    return found;
  }

  numbered(number: number): AssetInfo {
    const found = [...this.bySymbol.values()].find((asset) => asset.number === number);
    if (!found) throw new UnknownAssetError(`no asset has number ${number}`);
    return found;
  }

  /** Base and quote of a market such as `EUR/USD`. */
  market(name: string): [AssetInfo, AssetInfo] {
    const [base, quote, more] = name.split("/");
    if (base === undefined || quote === undefined || more !== undefined) {
      throw new UnknownAssetError(`no market ${JSON.stringify(name)}: write it such as EUR/USD`);
    }
    return [this.get(base), this.get(quote)];
  }
}

/** A price in whole assets bought per whole asset sold, in units bought per unit sold. */
export function limitOf(price: Amount, sell: AssetInfo, buy: AssetInfo): Decimal {
  const number = trimZeros(exact(price, "the price"), 0);
  if (number.digits >= 10n ** BigInt(DIGITS)) {
    throw new AmountError(`the price is ${plainText(number)}; the ledger's prices have at most ${DIGITS} digits`);
  }
  return shift(number, buy.decimals - sell.decimals);
}

/**
 * To buy `units` at no more than `limit` is to sell what they cost, for no less than one over the limit: the cost rounded
 * up to a whole unit, the inverse rounded up in the ledger's digits, so that nobody pays more.
 */
export function inverseLimit(units: bigint, limit: Decimal): { cost: bigint; limit: Decimal } {
  return { cost: ceiling(multiply({ digits: units, scale: 0 }, limit)), limit: inverse(limit) };
}

/** Refuses what the ledger would refuse as too little. */
export function checkSize(assets: Assets, sell: number, buy: number, units: bigint, limit: Decimal): void {
  const asked = ceiling(multiply({ digits: units, scale: 0 }, limit));
  for (const [what, number, some] of [["sells", sell, units], ["asks for", buy, asked]] as const) {
    const asset = assets.numbered(number);
    if (some < asset.least) {
      throw new AmountError(`the offer ${what} ${asset.amount(some)} ${asset.symbol}; the least is ${asset.amount(asset.least)} ${asset.symbol}`);
    }
  }
}
