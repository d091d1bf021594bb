/** The first view: what the place is, what trades, and the way to a first order. */
import type { View } from "./view";
import type { Ticker } from "@walras/client/bodies";
import { parseDecimal, round, toNumber, trimZeros, type Decimal } from "@walras/client/decimal";
import { format, formatAmount, formatPrice, formatShort, shorten } from "../amount";
import { get, getIfThere } from "../api";
import { sparkline } from "../charts/sparkline";
import { h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table, type Cell } from "../table";
import { choose } from "../trade/session";
import { publicAccounts } from "../trade/demo";
import type { Trader } from "../trade/keys";
import type { VenueMarket } from "../trade/venue";
import { numeraire, recentPrices, worth } from "../value";
import { count, duration, percent, tells } from "../words";
import { controlBadges } from "./controls";
import { pairOf, venueMarketsTable } from "./venue-markets";

const SENTENCE =
  "Walras is an exchange that several institutions run together: every asset trades with every other, at one price per batch, " +
  "so nobody profits from being faster.";
const SHOWN = 12;
const PAUSE_MS = 3_000;

/** A market at a glance, and what it traded in its last day as worth of the numeraire. */
type Row = { ticker: Ticker; base: string; quote: string; worth: Decimal | null };

export function homeView(live: Live): View {
  const problem = notice();
  const trade = h("a", { class: "button primary", href: href.markets }, "Trade");
  const attempt = h("button", { type: "button", class: "button", hidden: true, click: tryIt }, "Try it with a public account");
  const figures = h("p", { class: "quiet figures", "data-figures": "" });
  const lines = new Map<string, ReturnType<typeof sparkline>>();
  const top = topTable(live, lines);
  const venue = venueMarketsTable(live, null);
  const continuous = panel("Continuous markets, by price and time", { aside: more("Open", href.venues) }, venue.element);
  continuous.hidden = true;
  const element = h(
    "div",
    { class: "view home" },
    h("section", { class: "hero", "aria-label": "What this is" }, h("h1", { tabindex: -1 }, SENTENCE), h("p", { class: "actions" }, trade, attempt), figures),
    problem.element,
    panel("Top markets", { aside: more("All markets", href.markets) }, top.element),
    continuous,
  );
  let tickers: Ticker[] | null = null;
  let publics: Trader[] | null = null;
  let runsVenue: boolean | null = null;

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const venueLoading = refresh(loadVenue, () => undefined, PAUSE_MS);
  const finding = refresh(findPublics, () => undefined, PAUSE_MS);
  const stop = live.onBlock(() => (loading.request(), venueLoading.request()));
  loading.request();
  venueLoading.request();

  async function load(signal: AbortSignal): Promise<void> {
    tickers = (await get<{ tickers: Ticker[] }>("tickers", signal)).tickers;
    update();
  }

  /** Not every chain has a venue, and not every node runs one: such a node is asked no more. */
  async function loadVenue(signal: AbortSignal): Promise<void> {
    if (live.assets.size === 0 || runsVenue === false) return;
    runsVenue ??= (await get<{ venues: unknown[] }>("venues", signal)).venues.length > 0;
    const answer = runsVenue ? await getIfThere<{ markets: VenueMarket[] }>("venue/markets", signal) : null;
    runsVenue = answer !== null;
    const markets = (answer?.markets ?? []).filter((market) => pairOf(live, market) !== null);
    continuous.hidden = markets.length === 0;
    venue.show(markets);
  }

  async function findPublics(signal: AbortSignal): Promise<void> {
    publics ??= await publicAccounts(live, signal);
    attempt.hidden = (publics?.length ?? 0) === 0;
  }

  /** A public account has the first two assets: their market is where it can trade at once. */
  function tryIt(): void {
    const [quote, base] = [0, 1].map((number) => [...live.assets.values()].find((asset) => asset.asset === number)?.symbol);
    const first = publics?.[0];
    if (!first || !base || !quote) return;
    choose(first);
    location.hash = href.market(base, quote);
  }

  function update(): void {
    if (publics === null && live.status !== null) finding.request();
    if (live.assets.size === 0 || tickers === null) return;
    const rows = rowsOf(live, tickers);
    for (const { ticker, base, quote } of rows.slice(0, SHOWN)) {
      const line = lines.get(ticker.market) ?? sparkline();
      lines.set(ticker.market, line);
      line.show(recentPrices(live.batches, live.assets, base, quote));
    }
    top.show(rows.slice(0, SHOWN));
    const first = rows[0];
    if (first) trade.href = href.market(first.base, first.quote);
    showFigures(rows);
  }

  function showFigures(rows: Row[]): void {
    if (rows.length === 0) return;
    const total = rows.reduce((sum, row) => sum + (row.worth ? round(row.worth, 0).digits : 0n), 0n);
    const symbol = numeraire(live.assets)?.symbol ?? "";
    const pace = format(trimZeros(round(parseDecimal((live.pace_ms / 1000).toFixed(3))!, 1), 0));
    setText(figures, `${count(rows.length)} markets, ${shorten({ digits: total, scale: 0 }, 0)} ${symbol} traded in 24 h, a batch about every ${pace} s`);
    figures.title = live.status ? `This node is up for ${duration(live.status.uptime_ms)}` : "";
  }

  return {
    title: "Every asset against every other",
    element,
    update,
    close() {
      stop();
      loading.close();
      venueLoading.close();
      finding.close();
    },
  };
}

const more = (text: string, to: string) => h("a", { href: to, class: "more" }, text);

/** The markets by what they traded in their last day. */
function rowsOf(live: Live, tickers: Ticker[]): Row[] {
  const batch = live.batches.at(-1);
  const rows = tickers.map((ticker): Row => {
    const [base, quote] = ticker.market.split("/") as [string, string];
    return { ticker, base, quote, worth: batch && ticker.day ? worth(batch, live.assets, quote, ticker.day.quote_volume) : null };
  });
  const about = ({ worth }: Row) => (worth ? toNumber(worth) : 0);
  return rows.sort((a, b) => about(b) - about(a));
}

function topTable(live: Live, lines: Map<string, ReturnType<typeof sparkline>>) {
  const volume = (row: Row) => (row.worth ? `${shorten(row.worth, 0)} ${numeraire(live.assets)?.symbol ?? ""}` : "–");
  const names = new Map<string, HTMLElement>();
  /** Where there is no room for a column of it, the volume stands below the name. */
  function name(row: Row): HTMLElement {
    const { market } = row.ticker;
    const made = () => h("div", {}, h("a", { href: href.market(row.base, row.quote), class: "strong" }, market), h("small", { class: "quiet" }));
    const known = names.get(market) ?? made();
    if (!names.has(market) && live.assets.size > 0) known.append(...controlBadges(live, [row.base, row.quote]));
    if (live.assets.size > 0) names.set(market, known);
    setText(known.querySelector("small")!, volume(row));
    return known;
  }
  const price = (text: string | null | undefined) => formatPrice(parseDecimal(text ?? ""));
  const exact = ({ ticker, base }: Row) => (ticker.day ? `${formatAmount(ticker.day.base_volume, live.decimals(base))} ${base}` : "");
  return table<Row>({
    caption: "Top markets",
    key: ({ ticker }) => ticker.market,
    empty: "Nothing has traded yet.",
    columns: [
      { name: "Market", class: "named", cell: name },
      { name: "Price", class: "number strong", cell: ({ ticker, base, quote }) => ({ text: price(ticker.price), title: `${quote} per ${base}` }) },
      { name: "24 h", class: "number", cell: ({ ticker }) => change(ticker) },
      { name: "Recent", cell: ({ ticker }) => lines.get(ticker.market)?.element ?? "" },
      { name: "High", class: "number wide", cell: ({ ticker }) => price(ticker.day?.high) },
      { name: "Low", class: "number wide", cell: ({ ticker }) => price(ticker.day?.low) },
      { name: "Volume, base", class: "number wide", cell: (row) => ({ text: row.ticker.day ? formatShort(row.ticker.day.base_volume, live.decimals(row.base)) : "–", title: exact(row) }) },
      { name: "Volume, 24 h", class: "number wide", cell: (row) => ({ text: volume(row), title: exact(row) }) },
      { name: "Trade", class: "wide", cell: ({ base, quote }) => ({ text: "Trade", href: href.market(base, quote) }) },
    ],
  });
}

function change({ day }: Ticker): Cell {
  if (!day) return "–";
  const { text, direction } = percent(Number(day.change_percent) / 100);
  return { text, class: direction, title: `since ${formatPrice(parseDecimal(day.open))}` };
}
