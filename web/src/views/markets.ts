/** Every pair that has offers or traded. */
import type { View } from "./view";
import { fromUnits, parseDecimal, round, toNumber } from "@walras/client/decimal";
import { format, formatAmount, formatPrice, formatShort, shorten } from "../amount";
import type { Market } from "@walras/client/bodies";
import { sparkline } from "../charts/sparkline";
import { h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table, type Cell } from "../table";
import { approximate, numeraire, recentPrices, worth } from "../value";
import { count, percent, tells } from "../words";
import { marketNames } from "./controls";

const PAUSE_MS = 1_000;

export function marketsView(live: Live): View {
  const problem = notice();
  const shown = h("output", { class: "quiet" });
  const filter = h("input", { type: "search", id: "filter", placeholder: "EUR, or EUR/USD", autocomplete: "off", input: update });
  const lines = new Map<string, ReturnType<typeof sparkline>>();
  const list = marketsTable(live, lines);
  const element = h(
    "div",
    { class: "view" },
    h("h1", { tabindex: -1 }, "Markets"),
    problem.element,
    panel(
      "All pairs, at the prices of the latest batch",
      { aside: h("div", { class: "filter" }, shown, h("label", { for: "filter", class: "unseen" }, "Show only"), filter) },
      list.element,
    ),
  );

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => loading.request());
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    await live.loadMarkets(signal);
  }

  function update(): void {
    const markets = live.markets ?? [];
    const wanted = markets.filter((market) => matches(market, filter.value));
    drawLines(live, wanted, lines);
    list.show(wanted);
    const number = wanted.length === markets.length ? count(markets.length) : `${count(wanted.length)} of ${count(markets.length)}`;
    if (live.markets) setText(shown, `${number} pairs, worth in ${numeraire(live.assets)?.symbol ?? "units"}`);
  }

  return {
    title: "Markets",
    element,
    update,
    close() {
      stop();
      loading.close();
    },
  };
}

/** Every word that was typed names one of the pair's assets, at least its beginning. */
function matches(market: Market, typed: string): boolean {
  const words = typed.toLowerCase().split(/[\s/]+/).filter(Boolean);
  const names = [market.base.toLowerCase(), market.quote.toLowerCase()];
  return words.every((word) => names.some((name) => name.startsWith(word)));
}

function marketsTable(live: Live, lines: Map<string, ReturnType<typeof sparkline>>) {
  const priceCell = (text: string | null, units: string | null): Cell => ({
    text: formatPrice(parseDecimal(text ?? "")),
    title: units ? `${units} units per unit` : "",
  });
  const volume = (units: string, symbol: string): Cell => ({
    text: formatShort(units, live.decimals(symbol)),
    title: `${formatAmount(units, live.decimals(symbol))} ${symbol}`,
  });
  const name = marketNames(live);
  return table<Market>({
    caption: "Markets",
    key: (market) => market.market,
    empty: "No pair matches.",
    columns: [
      { name: "Market", class: "strong", cell: (m) => name(m.market, href.market(m.base, m.quote), [m.base, m.quote]), order: (a, b) => a.market.localeCompare(b.market) },
      { name: "Batch price", class: "number strong", cell: (m) => priceCell(m.price, m.price_units) },
      { name: "Recent", class: "wide", cell: (m) => lines.get(m.market)?.element ?? "" },
      { name: "Change", class: "number", cell: (m) => change(live, m), order: (a, b) => recentChange(live, a) - recentChange(live, b) },
      { name: "Best sell", class: "number wide", cell: (m) => priceCell(m.best_sell, m.best_sell_units) },
      { name: "Best buy", class: "number wide", cell: (m) => priceCell(m.best_buy, m.best_buy_units) },
      { name: "Volume, base", class: "number wide", cell: (m) => volume(m.base_volume, m.base) },
      { name: "Volume, quote", class: "number wide", cell: (m) => volume(m.quote_volume, m.quote) },
      { name: "Worth", class: "number wide", cell: (m) => worthCell(live, m), order: (a, b) => aboutWorth(live, a) - aboutWorth(live, b) },
      { name: "Offers", class: "number wide", cell: (m) => count(m.offers), order: (a, b) => a.offers - b.offers },
    ],
  });
}

function worthCell(live: Live, market: Market): Cell {
  const batch = live.batches.at(-1);
  const value = batch && worth(batch, live.assets, market.quote, market.quote_volume);
  return value ? { text: shorten(value, 0), title: `${format(round(value, 2))} ${numeraire(live.assets)?.symbol}` } : "–";
}

/** The worth as a double, to sort by. */
function aboutWorth(live: Live, market: Market): number {
  const batch = live.batches.at(-1);
  const valuation = batch && approximate(batch, live.assets).get(market.quote);
  const amount = fromUnits(market.quote_volume, live.decimals(market.quote));
  return valuation && amount ? valuation * toNumber(amount) : 0;
}

const seen = (live: Live, { base, quote }: Market) => recentPrices(live.batches, live.assets, base, quote);

function recentChange(live: Live, market: Market): number {
  const prices = seen(live, market);
  const [first, last] = [prices[0], prices.at(-1)];
  return first && last ? last / first - 1 : 0;
}

function change(live: Live, market: Market): Cell {
  const { text, direction } = percent(recentChange(live, market));
  return { text, class: direction, title: `over the latest ${live.batches.length} batches` };
}

function drawLines(live: Live, markets: Market[], lines: Map<string, ReturnType<typeof sparkline>>): void {
  for (const market of markets) {
    const line = lines.get(market.market) ?? sparkline();
    lines.set(market.market, line);
    line.show(seen(live, market));
  }
}
