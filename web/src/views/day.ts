/** The figures of a market's last day, from its candles of an hour. */
import { parseDecimal, subtract, toNumber, type Decimal } from "@walras/client/decimal";
import type { Candle } from "@walras/client/bodies";

export const HOURS = 24;
const HOUR_MS = 3_600_000;

export type Day = { open: Decimal; high: Decimal; low: Decimal; change: number; volume: string };

/** The figures of the candles that began within the last 24 hours; null if none did. */
export function dayOf(hours: Candle[], now_ms: number): Day | null {
  const recent = hours.filter((candle) => candle.time_ms > now_ms - HOURS * HOUR_MS);
  const [first, last] = [recent[0], recent.at(-1)];
  if (!first || !last) return null;
  const prices = (name: "high" | "low") => recent.flatMap((candle) => parseDecimal(candle[name]) ?? []);
  const [open, close] = [parseDecimal(first.open), parseDecimal(last.close)];
  if (!open || !close || toNumber(open) === 0) return null;
  const by = (pick: (a: number, b: number) => boolean) => (best: Decimal, one: Decimal) => (pick(toNumber(one), toNumber(best)) ? one : best);
  const units = recent.reduce((sum, candle) => sum + BigInt(candle.base_volume), 0n);
  return {
    open,
    high: prices("high").reduce(by((a, b) => a > b)),
    low: prices("low").reduce(by((a, b) => a < b)),
    change: toNumber(subtract(close, open)) / toNumber(open),
    volume: String(units),
  };
}
