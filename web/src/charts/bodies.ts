/** The numbers behind candles. */
import { fromUnits, parseDecimal, toNumber } from "@walras/client/decimal";
import type { Candle } from "@walras/client/bodies";

/** A candle in whole assets. */
export type Drawn = { at: number; open: number; high: number; low: number; close: number; volume: number };
/** A trade in whole assets. */
export type Traded = { at: number; price: number; volume: number };

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

/** Candles of trades in ascending order, each `wide` milliseconds. */
export function candlesOf(trades: Traded[], wide: number): Drawn[] {
  const candles: Drawn[] = [];
  for (const { at, price, volume } of trades) {
    const begins = Math.floor(at / wide) * wide;
    const last = candles.at(-1);
    if (!last || last.at < begins) candles.push({ at: begins, open: price, high: price, low: price, close: price, volume });
    else Object.assign(last, { high: Math.max(last.high, price), low: Math.min(last.low, price), close: price, volume: last.volume + volume });
  }
  return candles;
}

