/** Levels of a market that go through one other asset, kept while somebody looks at them. */
import type { Book, Market } from "@walras/client/bodies";
import { fromUnits, parseDecimal, roundSignificant } from "@walras/client/decimal";
import { bestRoutes, impliedBook, type ImpliedLevel } from "@walras/client/implied";
import { formatAmount, formatPrice } from "../amount";
import { get, path } from "../api";
import { h, notice } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { table } from "../table";
import { tells } from "../words";

/** All markets are read for the routes, so not with each block. */
const PAUSE_MS = 5_000;
/** Assets of each side whose books are read, and levels of a book. */
const ROUTES = 3;
const LEVELS = 6;
const DIGITS = 7;

export function impliedPart(live: Live, base: string, quote: string) {
  const problem = notice();
  const about = h("p", { class: "quiet" }, "Offers of two other markets, one after the other. A batch trades through them by itself.");
  const side = (name: "sells" | "buys", caption: string) =>
    table<ImpliedLevel & { at: number }>({
      caption,
      key: (row) => String(row.at),
      empty: name === "sells" ? `Nobody sells ${base} through one other asset.` : `Nobody buys ${base} through one other asset.`,
      rowClass: () => name,
      columns: [
        { name: `Price, ${quote}`, class: "number", cell: ({ price, price_units }) => ({ text: shown(price), title: `${price_units} units per unit` }) },
        { name: `Amount, ${base}`, class: "number", cell: ({ amount }) => ({ text: rounded(amount), title: `${formatAmount(amount, live.decimals(base))} ${base}` }) },
        { name: "Via", cell: ({ through }) => ({ text: through, title: `${base}/${through} and ${through}/${quote}` }) },
      ],
    });
  const [sells, buys] = [side("sells", "Sells through another asset, the lowest price last"), side("buys", "Buys through another asset, the highest price first")];
  const element = h("div", { class: "implied" }, problem.element, sells.element, buys.element, about);
  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => isLooked && loading.request());
  let isLooked = false;

  const rounded = (units: string) => {
    const amount = fromUnits(units, live.decimals(base));
    return amount ? formatPrice(roundSignificant(amount, DIGITS)) : "–";
  };

  async function load(signal: AbortSignal): Promise<void> {
    const [one, other] = [live.assets.get(base), live.assets.get(quote)];
    if (!one || !other) return;
    const { markets } = await get<{ markets: Market[] }>("markets", signal);
    const pairs = bestRoutes(base, quote, markets, ROUTES).flatMap((through) => [[base, through], [through, quote]] as const);
    const books = await Promise.all(pairs.map(([a, b]) => get<Book>(`${path("markets", a, b)}/book?levels=${LEVELS}`, signal)));
    const found = impliedBook(one, other, books, LEVELS);
    const rows = (levels: ImpliedLevel[]) => levels.map((level, at) => ({ ...level, at }));
    sells.show(rows(found.sells).reverse());
    buys.show(rows(found.buys));
  }

  return {
    element,
    look(wanted: boolean): void {
      isLooked = wanted;
      if (wanted) loading.hurry();
    },
    close(): void {
      stop();
      loading.close();
    },
  };
}

const shown = (price: string): string => {
  const value = parseDecimal(price);
  return value ? formatPrice(roundSignificant(value, DIGITS)) : "–";
};
