/** The depth of a continuous market: what all orders up to each price come to. */
import { formatPrice } from "../amount";
import { curvesChart } from "../charts/curves";
import { legend } from "../charts/theme";
import { h } from "../dom";
import type { Pair, VenueBook, VenueMarket } from "../trade/venue";
import { depthOf } from "../trade/venue-sums";
import { zoomChoice } from "./curves";
import type { Picture } from "./prices";

/** Levels of each side that the picture is made of. */
export const DEPTH_LEVELS = 100;

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
