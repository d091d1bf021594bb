/** Sums of a continuous market: how far a market order reaches, what a part of a deposit buys, and the depth of the book. */
import type { CurvePoint, Curves } from "@walras/client/bodies";
import { divide, multiply, parseDecimal, plainText, type Decimal } from "@walras/client/decimal";
import type { VenueSide } from "@walras/client/venue";
import { priceOf, type Pair, type VenueBook, type VenueLevel, type VenueMarket } from "./venue";

/** How far beyond the best price a market order reaches, in hundredths. */
const ROOM = 3;

/** The limit of a market order: the best price of the other side with some room, in whole ticks; null where nobody is there. */
export function reachOf(side: VenueSide, { bid, ask }: Pick<VenueMarket, "bid" | "ask">): number | null {
  const best = side === "buy" ? ask : bid;
  if (best === null) return null;
  return side === "buy" ? Math.floor((best * (100 + ROOM)) / 100) : Math.max(1, Math.ceil((best * (100 - ROOM)) / 100));
}

/** Lots that a part of a deposit sells, or buys at a tick with fees. */
export function lotsOf(side: VenueSide, free: string, percent: number, tick: number, { lot_units, tick_units, fee_cap_ppm, lots_max }: VenueMarket): number {
  const units = (BigInt(free) * BigInt(percent)) / 100n;
  const each = side === "sell" ? BigInt(lot_units) : BigInt(tick) * BigInt(tick_units);
  const dear = side === "sell" ? each * 1_000_000n : each * BigInt(1_000_000 + fee_cap_ppm);
  const lots = dear > 0n ? (units * 1_000_000n) / dear : 0n;
  return Number(lots > BigInt(lots_max) ? BigInt(lots_max) : lots);
}

/** The tick of a written price, rounded down; null where it is none. */
export function tickOf(text: string, market: VenueMarket, pair: Pair): number | null {
  const [limit, one] = [parseDecimal(text), priceOf(1, market, pair)];
  if (!limit || !one || limit.digits <= 0n) return null;
  const scaled = multiply(limit, ten(one.scale));
  const ticks = scaled.digits / (one.digits * 10n ** BigInt(Math.max(0, scaled.scale)));
  return ticks > 0n ? Number(ticks) : null;
}

const ten = (power: number): Decimal => ({ digits: 10n ** BigInt(Math.max(0, power)), scale: 0 });

/** The book as curves: its levels added up from the best price on. */
export function depthOf(book: VenueBook, market: VenueMarket, pair: Pair): Curves {
  const text = (value: Decimal | null) => (value ? plainText(value) : "0");
  const summed = (levels: VenueLevel[]): CurvePoint[] => {
    let units = 0n;
    return levels.map(([tick, lots]) => {
      units += BigInt(lots) * BigInt(market.lot_units);
      return { price: text(priceOf(tick, market, pair)), price_units: "0", amount: units.toString() };
    });
  };
  const [bid, ask] = [book.bids[0]?.[0], book.asks[0]?.[0]];
  const middle = bid === undefined || ask === undefined ? null : divide(priceOf(bid + ask, market, pair) ?? { digits: 0n, scale: 0 }, { digits: 2n, scale: 0 });
  const name = `${pair.base.symbol}/${pair.quote.symbol}`;
  return { height: 0, market: name, price: middle && plainText(middle), price_units: null, indicative: null, supply: summed(book.asks), demand: summed(book.bids).reverse(), sold: "0", bought: "0" };
}
