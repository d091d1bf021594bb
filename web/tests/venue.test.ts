/** Orders at a venue, before they are signed. */
import { expect, it } from "vitest";
import { tooLittle, type VenueMarket } from "../src/trade/venue";

const market: VenueMarket = {
  market: 0, symbol: "EUR/USD", base: 1, quote: 0, lot_units: "1000000", tick_units: "100", lots_max: 1_000_000,
  fee_cap_ppm: 2_000, least_quote_units: "1880000000", phase: "trading", bid: null, ask: null,
};

it("says what an order must be worth to pay for its entry", () => {
  expect(tooLittle({ lots: 1_708, tick: 10_999 }, market)).toBe("1880000000");
  expect(tooLittle({ lots: 1_710, tick: 10_999 }, market)).toBeNull();
  expect(tooLittle({ lots: 1, tick: 1 }, { ...market, least_quote_units: null })).toBeNull();
});
