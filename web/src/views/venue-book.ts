/** The book and the tape of a continuous market. */
import { trimZeros } from "@walras/client/decimal";
import { format, formatPrice } from "../amount";
import { h, panel, setText } from "../dom";
import { table } from "../table";
import { amountOf, priceOf, type Pair, type VenueBook, type VenueLevel, type VenueMarket } from "../trade/venue";
import type { VenueTrade } from "../trade/venue-feed";
import { clock, count } from "../words";

const LEVELS = 12;
const TRADES_SHOWN = 40;

type Row = { level: VenueLevel; market: VenueMarket; pair: Pair; part: number };

export const shown = (value: ReturnType<typeof amountOf>): string => (value ? format(trimZeros(value, 0)) : "–");

export function bookPanel() {
  const side = (name: "sells" | "buys", caption: string) =>
    table<Row>({
      caption,
      key: (row) => String(row.level[0]),
      empty: name === "sells" ? "Nobody sells." : "Nobody buys.",
      rowClass: () => name,
      depth: (row) => row.part,
      columns: [
        { name: "Price", class: "number", cell: (row) => formatPrice(priceOf(row.level[0], row.market, row.pair)) },
        { name: "Amount", class: "number", cell: (row) => shown(amountOf(row.level[1], row.market, row.pair)) },
        { name: "Orders", class: "number", cell: (row) => count(row.level[2]) },
      ],
    });
  const [sells, buys] = [side("sells", "Sell orders, the lowest price last"), side("buys", "Buy orders, the highest price first")];
  const middle = h("p", { class: "middle" }, "–");

  function show(book: VenueBook, market: VenueMarket, pair: Pair): void {
    const [asks, bids] = [book.asks.slice(0, LEVELS), book.bids.slice(0, LEVELS)];
    const most = Math.max(1, ...[...bids, ...asks].map((level) => level[1]));
    const rows = (levels: VenueLevel[]) => levels.map((level) => ({ level, market, pair, part: level[1] / most }));
    sells.show(rows(asks).reverse());
    buys.show(rows(bids));
    const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]];
    setText(middle, bid === undefined || ask === undefined ? book.phase : `Spread ${shown(priceOf(ask - bid, market, pair))} ${pair.quote.symbol}`);
  }

  return { element: panel("Book", { class: "book" }, sells.element, middle, buys.element), show };
}

type Traded = VenueTrade & { market: VenueMarket; pair: Pair; moved: string };

/** What executed of late, the newest first. */
export function tapePanel() {
  const list = table<Traded>({
    caption: "Latest trades",
    key: (row) => row.index,
    empty: "Nothing has traded here yet.",
    columns: [
      { name: "Price", class: "number first", cell: (row) => ({ text: formatPrice(priceOf(row.tick, row.market, row.pair)), class: row.moved }) },
      { name: "Amount", class: "number", cell: (row) => shown(amountOf(row.lots, row.market, row.pair)) },
      { name: "Time", class: "number", cell: (row) => ({ text: clock(row.at), title: `Execution ${row.index}` }) },
    ],
  });
  return {
    element: panel("Latest trades", {}, list.element),
    show(trades: VenueTrade[], market: VenueMarket, pair: Pair): void {
      const first = Math.max(0, trades.length - TRADES_SHOWN);
      const rows = trades.slice(first).map((trade, at) => {
        const before = trades[first + at - 1]?.tick ?? trade.tick;
        return { ...trade, market, pair, moved: trade.tick > before ? "up" : trade.tick < before ? "down" : "" };
      });
      list.show(rows.reverse());
    },
  };
}
