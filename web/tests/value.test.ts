import { describe, expect, it } from "vitest";
import { format } from "../src/amount";
import type { Asset, Batch } from "@walras/client/bodies";
import { tradedWorth } from "../src/value";

const asset = (number: number, symbol: string): [string, Asset] => [
  symbol,
  { asset: number, symbol, decimals: 2, issuer: "0x", least_units: "1", issued: "0", valuation: null },
];
const assets = new Map([asset(0, "USD"), asset(1, "EUR")]);
const batch = (sold: string, spent: string): Batch => ({
  height: 1,
  time_ms: 0,
  full: true,
  valuations: { USD: "1", EUR: "2" },
  trades: [
    { sell: "EUR", buy: "USD", sold, bought: "0" },
    { sell: "USD", buy: "EUR", sold: spent, bought: "0" },
  ],
  burnt: {},
  solver: null,
});

describe("the worth that a pair traded", () => {
  const worth = (...batches: Batch[]) => [...tradedWorth(batches, assets)].map(([pair, value]) => [pair, format(value, 2)]);
  it("counts what one side sells and the other buys once", () => {
    expect(worth(batch("1000", "2000"))).toEqual([["EUR/USD", "20.000000"]]);
  });
  it("counts the larger side of each batch, and adds batches", () => {
    expect(worth(batch("1000", "500"), batch("100", "4000"))).toEqual([["EUR/USD", "60.000000"]]);
  });
});
