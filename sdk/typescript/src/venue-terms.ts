/**
 * A continuous market as people count it: amounts and prices in whole assets, exactly lots and ticks. What is no whole number of
 * lots or ticks is refused, with the nearest valid values.
 */
import { exact, type Amount, type AssetInfo } from "./assets.js";
import type { VenueMarket } from "./bodies.js";
import { plainText } from "./decimal.js";
import { AmountError } from "./errors.js";
import { TICK_MAX } from "./venue.js";

type Ratio = { top: bigint; bottom: bigint };

/** The decimal that a ratio is, exactly; null if it has no end. */
export function decimalOf({ top, bottom }: Ratio): string | null {
  // Each factor of two or five of the denominator is one more place.
  let [rest, scale] = [bottom, 0];
  for (const factor of [10n, 5n, 2n]) for (; rest % factor === 0n; rest /= factor) scale += 1;
  // What is left is common to both, or the decimal has no end.
  const digits = top * 10n ** BigInt(scale);
  if (digits % bottom !== 0n) return null;
  return plainText({ digits: digits / bottom, scale });
}

const clamp = (value: bigint, least: bigint, most: bigint): bigint => (value < least ? least : value > most ? most : value);

/** A market with its assets. */
export class VenueTerms {
  constructor(
    readonly market: VenueMarket,
    readonly base: AssetInfo,
    readonly quote: AssetInfo,
  ) {}

  /** Such as `EUR/USD`. */
  get name(): string {
    return `${this.base.symbol}/${this.quote.symbol}`;
  }
  get number(): number {
    return this.market.market;
  }
  /** The price of one tick. */
  get priceStep(): string {
    return this.price(1);
  }
  /** The amount of one lot. */
  get amountStep(): string {
    return this.amount(1);
  }
  /** Whole quote assets for a whole base asset, of one tick. */
  private get step(): Ratio {
    const top = BigInt(this.market.tick_units) * 10n ** BigInt(this.base.decimals);
    return { top, bottom: BigInt(this.market.lot_units) * 10n ** BigInt(this.quote.decimals) };
  }

  /** The price of a tick, in whole quote assets for a whole base asset. */
  price(tick: number): string {
    const { top, bottom } = this.step;
    const price = decimalOf({ top: BigInt(tick) * top, bottom });
    if (price === null) throw new AmountError(`ticks of ${this.name} are no decimal prices: sign its orders with TradingKey.order`);
    return price;
  }
  /** An amount of the base asset. */
  amount(lots: number): string {
    return this.base.amount(BigInt(lots) * BigInt(this.market.lot_units));
  }

  /** The tick of a price; an `AmountError` has the nearest valid prices. */
  tick(price: Amount): number {
    const { digits, scale } = exact(price, "the price");
    const { top, bottom } = this.step;
    const [over, under] = [digits * bottom, top * 10n ** BigInt(scale)];
    const prices = { what: "price", step: this.priceStep, text: (tick: number) => this.price(tick) };
    return this.whole(price, { top: over, bottom: under }, [1n, BigInt(TICK_MAX)], prices);
  }

  /** The lots of an amount of the base asset; an `AmountError` has the nearest valid amounts. */
  lots(amount: Amount): number {
    const [least, most] = [BigInt(Math.max(this.market.lots_min ?? 1, 1)), BigInt(this.market.lots_max)];
    const ratio = { top: this.base.units(amount), bottom: BigInt(this.market.lot_units) };
    const step = `${this.amountStep} ${this.base.symbol}`;
    return this.whole(amount, ratio, [least, most], { what: "amount", step, text: (lots) => this.amount(lots) });
  }

  private whole(
    given: Amount,
    { top, bottom }: Ratio,
    [least, most]: [bigint, bigint],
    { what, step, text }: { what: string; step: string; text: (count: number) => string },
  ): number {
    const isInside = top >= least * bottom && top <= most * bottom;
    if (isInside && top % bottom === 0n) return Number(top / bottom);
    const below = clamp(top / bottom, least, most);
    const near = isInside ? [below, clamp(below + 1n, least, most)] : [below];
    const valid = [...new Set(near)].map((count) => text(Number(count))).join(" or ");
    throw new AmountError(`the ${what} is ${given}; ${what}s of ${this.name} are multiples of ${step}: write ${valid}`);
  }

  /** The least fee cap that its orders may have, in millionths. */
  get feeCap(): number {
    const { maker_ppm, taker_ppm, fee_cap_ppm } = this.market;
    return maker_ppm === null || taker_ppm === null ? fee_cap_ppm : Math.max(0, maker_ppm, taker_ppm);
  }
}
