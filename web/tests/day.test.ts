import { describe, expect, it } from "vitest";
import type { Candle } from "@walras/client/bodies";
import { plainText } from "@walras/client/decimal";
import { dayOf } from "../src/views/day";

const HOUR = 3_600_000;
const NOW = 100 * HOUR;
const hour = (ago: number, open: string, high: string, low: string, close: string, base_volume: string): Candle => ({
  time_ms: NOW - ago * HOUR,
  complete: true,
  open,
  high,
  low,
  close,
  base_volume,
  quote_volume: "0",
  batches: 1,
});

describe("the figures of a day", () => {
  it("are those of the last 24 hours, exact in their amounts", () => {
    const candles = [hour(30, "9", "99", "1", "9", "7"), hour(23, "2", "3", "1.5", "2.5", "9007199254740993"), hour(1, "2.5", "4", "2", "3", "1")];
    const day = dayOf(candles, NOW)!;
    expect([plainText(day.open), plainText(day.high), plainText(day.low), day.change, day.volume]).toEqual(["2", "4", "1.5", 0.5, "9007199254740994"]);
  });
  it("are none without a trade, or with a price that cannot be read", () => {
    expect(dayOf([], NOW)).toBeNull();
    expect(dayOf([hour(30, "9", "99", "1", "9", "7")], NOW)).toBeNull();
    expect(dayOf([hour(1, "?", "1", "1", "1", "1")], NOW)).toBeNull();
  });
});
