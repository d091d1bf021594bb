/** The markets of the venue that this node runs. */
import type { Asset } from "@walras/client/bodies";
import { formatPrice, formatShort } from "../amount";
import type { Live } from "../live";
import { href } from "../router";
import { table, type Cell } from "../table";
import { priceOf, type Pair, type VenueMarket } from "../trade/venue";
import { percent } from "../words";
import { marketNames } from "./controls";

/** Both assets of a market; null while they are not known. */
export function pairOf(live: Live, market: VenueMarket): Pair | null {
  const of = (number: number): Asset | undefined => [...live.assets.values()].find((asset) => asset.asset === number);
  const [base, quote] = [of(market.base), of(market.quote)];
  return base && quote ? { base, quote } : null;
}

export function venueMarketsTable(live: Live, wanted: number | null) {
  const price = (market: VenueMarket, tick: number | null) => {
    const pair = pairOf(live, market);
    return tick === null || !pair ? "–" : formatPrice(priceOf(tick, market, pair));
  };
  const named = marketNames(live);
  const name = (market: VenueMarket) => {
    const pair = pairOf(live, market);
    const symbols = pair ? [pair.base.symbol, pair.quote.symbol] : [];
    return named(pair ? symbols.join("/") : market.symbol, href.venue(market.market), symbols);
  };
  const volume = (market: VenueMarket) => {
    const base = pairOf(live, market)?.base;
    return base && market.day ? `${formatShort(market.day.base_volume, base.decimals)} ${base.symbol}` : "–";
  };
  return table<VenueMarket>({
    caption: "Markets of the venue",
    key: (row) => String(row.market),
    empty: "The venue has listed no market.",
    rowClass: (row) => (row.market === wanted ? "strong" : ""),
    columns: [
      { name: "Market", class: "strong", cell: name },
      { name: "Phase", cell: (row) => row.phase },
      { name: "Last", class: "number strong", cell: (row) => price(row, row.last) },
      { name: "24 h", class: "number", cell: (row) => change(row.day) },
      { name: "Volume, 24 h", class: "number wide", cell: (row) => volume(row) },
      { name: "Bid", class: "number", cell: (row) => price(row, row.bid) },
      { name: "Ask", class: "number", cell: (row) => price(row, row.ask) },
      { name: "OUCH", class: "wide", cell: (row) => row.symbol },
    ],
  });
}

function change(day: VenueMarket["day"]): Cell {
  if (!day) return "–";
  const { text, direction } = percent(Number(day.change_percent) / 100);
  return { text, class: direction };
}
