/** The numbers behind candles. */
import { fromUnits, parseDecimal, toNumber } from "@walras/client/decimal";
import type { Candle } from "@walras/client/bodies";

/** A candle in whole assets. */
export type Drawn = { at: number; open: number; high: number; low: number; close: number; volume: number };

/** What is drawn of candles: those whose prices can be read. */
export function drawn(candles: Candle[], baseDecimals: number): Drawn[] {
  return candles.flatMap((candle) => {
    const prices = [candle.open, candle.high, candle.low, candle.close].map((price) => parseDecimal(price));
    const volume = fromUnits(candle.base_volume, baseDecimals);
    if (prices.some((price) => price === null)) return [];
    const [open, high, low, close] = prices.map((price) => toNumber(price!)) as [number, number, number, number];
    return [{ at: candle.time_ms, open, high, low, close, volume: volume ? toNumber(volume) : 0 }];
  });
}
