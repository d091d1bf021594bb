import { describe, expect, it } from "vitest";
import type { Block, Candle, Curves } from "@walras/client/bodies";
import { rates, stagesOf, sums, total } from "../src/charts/series";
import { candlesOf, drawn } from "../src/charts/bodies";
import { aligned, amountsAt, heightOf, shapeOf, windowOf } from "../src/charts/shape";

const point = (price: string, price_units: string, amount: string) => ({ price, price_units, amount });
const curves: Curves = {
  height: 9,
  market: "BTC/USD",
  price: "63000",
  price_units: "0.063",
  indicative: "63000",
  supply: [point("62000", "0.062", "100000000"), point("63000", "0.063", "300000000"), point("200000", "0.2", "90000000000")],
  demand: [point("60000", "0.06", "500000000"), point("64000", "0.064", "200000000")],
  sold: "300000000",
  bought: "200000000",
};
const shape = shapeOf(curves, 8);

describe("the curves of a batch", () => {
  it("are in the units that people count", () => {
    expect(shape.price).toBe(63000);
    expect(shape.label).toBe("63,000.00");
    expect(shape.supply[0]).toEqual({ x: 62000, y: 1 });
  });
  it("step: supply holds to the right, demand to the left", () => {
    expect(amountsAt(shape, 61999)).toEqual({ supply: 0, demand: 2 });
    expect(amountsAt(shape, 62000)).toEqual({ supply: 1, demand: 2 });
    expect(amountsAt(shape, 63500)).toEqual({ supply: 3, demand: 2 });
    expect(amountsAt(shape, 64001)).toEqual({ supply: 3, demand: 0 });
    expect(amountsAt(shape, 60000).demand).toBe(5);
  });
  it("share one rising list of prices from edge to edge of the window", () => {
    expect(aligned(shape, [61000, 65000])).toEqual([
      [61000, 62000, 63000, 64000, 65000],
      [0, 1, 3, 3, 3],
      [2, 2, 2, 2, 0],
    ]);
  });
  it("show most points, not beyond those known, and not the far giant", () => {
    const [low, high] = windowOf(shape, "auto");
    expect(low).toBe(60000);
    expect(high).toBeLessThan(67000);
    expect(heightOf(shape, "auto")).toBeLessThanOrEqual(9);
    expect(windowOf(shape, "all")).toEqual([60000, 200000]);
    expect(heightOf(shape, "all")).toBe(900);
    expect(windowOf(shape, "±1 %")).toEqual([62370, 63630]);
  });
  it("stand when there is nothing", () => {
    const none = shapeOf({ ...curves, supply: [], demand: [] }, 8);
    for (const window of ["auto", "±5 %", "all"] as const) {
      const [low, high] = windowOf(none, window);
      expect(low).toBeLessThan(high);
      expect(aligned(none, [low, high])[1]).toEqual([0, 0]);
    }
    const unpriced = shapeOf({ ...curves, price: null, indicative: null }, 8);
    expect(windowOf(unpriced, "auto")).toEqual([60000, 200000]);
    const untraded = shapeOf({ ...curves, price: null }, 8);
    expect([untraded.price, untraded.label]).toEqual([63000, "indicative 63,000.00"]);
  });
});

describe("the bars of blocks", () => {
  const block = (height: number, time_ms: number, transactions: number, stages_ms: Record<string, number>) =>
    ({ height, time_ms, transactions, stages_ms }) as Block;
  const blocks = [block(1, 1000, 50, {}), block(2, 1500, 100, { log: 1, clearing: 2 }), block(3, 3000, 300, { log: 4, extra: 1, signatures: 8 })];

  it("put stages into the pipeline's order, unknown ones last", () => {
    expect(stagesOf(blocks)).toEqual(["signatures", "clearing", "log", "extra"]);
  });
  it("stack the stages", () => {
    expect(sums(blocks, ["signatures", "clearing", "log"])).toEqual([[0, 0, 8], [0, 2, 8], [0, 3, 12]]);
    expect(total(blocks[2]!)).toBe(13);
  });
  it("average the rate over time, without the first block's own transactions", () => {
    expect(rates(blocks)).toEqual([null, 200, 200]);
  });
});

const candle = (time_ms: number, prices: [string, string, string, string], base_volume: string): Candle => {
  const [open, high, low, close] = prices;
  return { time_ms, complete: true, open, high, low, close, base_volume, quote_volume: "0", batches: 1 };
};

describe("candles", () => {
  it("are drawn in whole assets, and one with a price that is no number is left out", () => {
    const candles = [candle(60_000, ["1.1", "1.3", "1.0", "1.2"], "12345"), candle(120_000, ["x", "1.3", "1.0", "1.2"], "1")];
    expect(drawn(candles, 2)).toEqual([{ at: 60_000, open: 1.1, high: 1.3, low: 1, close: 1.2, volume: 123.45 }]);
  });

  it("of trades begin where their interval does, and take each trade in its order", () => {
    const trade = (at: number, price: number, volume = 1) => ({ at, price, volume });
    expect(candlesOf([trade(5_100, 2), trade(5_900, 3, 2), trade(9_999, 1), trade(20_000, 4)], 5_000)).toEqual([
      { at: 5_000, open: 2, high: 3, low: 1, close: 1, volume: 4 },
      { at: 20_000, open: 4, high: 4, low: 4, close: 4, volume: 1 },
    ]);
    expect(candlesOf([], 5_000)).toEqual([]);
  });
});
