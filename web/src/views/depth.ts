/** The depth of a continuous market: what all orders up to each price come to. */
import type { CurvePoint, Curves } from "@walras/client/bodies";
import { divide, plainText, type Decimal } from "@walras/client/decimal";
import { formatPrice } from "../amount";
import { curvesChart } from "../charts/curves";
import { legend } from "../charts/theme";
import { h } from "../dom";
import { priceOf, type Pair, type VenueBook, type VenueLevel, type VenueMarket } from "../trade/venue";
import { zoomChoice } from "./curves";
import type { Picture } from "./prices";

/** Levels of each side that the picture is made of. */
export const DEPTH_LEVELS = 100;

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

export function depthPicture(): Picture & { show: (book: VenueBook, market: VenueMarket, pair: Pair) => void; close: () => void } {
  const chart = curvesChart("depth", ({ supply, demand }, shape, base, quote) => {
    const middle = shape.price === null ? "" : ` about ${formatPrice({ digits: BigInt(Math.round(shape.price * 1e9)), scale: 9 })} ${quote.symbol}`;
    return `Depth of ${base.symbol} in ${quote.symbol}${middle}: ${demand.length} levels to buy, ${supply.length} to sell.`;
  });
  const key = legend([
    { name: "To sell, at this price or less", colour: "supply" },
    { name: "To buy, at this price or more", colour: "demand" },
    { name: "Middle", colour: "accent", line: true },
  ]);
  return {
    title: "Depth",
    elements: [h("div", { class: "curves" }, chart.element, key)],
    choice: zoomChoice((window) => chart.zoom(window)),
    look: () => undefined,
    show: (book, market, pair) => chart.show(depthOf(book, market, pair), pair.base, pair.quote),
    close: chart.close,
  };
}
