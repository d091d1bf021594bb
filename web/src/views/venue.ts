/** A continuous market of the venue that this node runs: chart, depth, book, tape, orders, deposits, and how the venue stands. */
import type { View } from "./view";
import type { VenueTrades } from "@walras/client/bodies";
import { toNumber } from "@walras/client/decimal";
import { get, getIfThere, path } from "../api";
import { formatAmount, formatPrice, formatShort } from "../amount";
import { candlesOf } from "../charts/bodies";
import { candlesChart } from "../charts/candles";
import { facts, h, notice, panel, setText, tabs } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { amountOf, priceOf, type Pair, type VenueBook, type VenueMarket, type VenueStatus } from "../trade/venue";
import { VenueFeed } from "../trade/venue-feed";
import { clock, count, percent, tells } from "../words";
import { DEPTH_LEVELS, depthPicture } from "./depth";
import { INTERVALS, intervalChoice, picturesPanel, type Interval } from "./prices";
import { terminal } from "./terminal";
import { controlsLine } from "./controls";
import { bookPanel, tapePanel } from "./venue-book";
import { deskPanels } from "./venue-desk";
import { pairOf, venueMarketsTable } from "./venue-markets";

const PAUSE_MS = 1_000;
/** Candles are made of the newest executions, so days make no sense. */
const SEEN: Interval[] = ["5s", "1m", "5m", "15m"];
/** What a trader may rely on, and what not. */
const PROMISES =
  "The venue matches; the ledger keeps the money. An execution is the venue's signed promise; it is settled when a block has applied it, or " +
  "bust, with the rule that it broke. A bad venue can stop, delay, or prefer others. It cannot take a deposit, fill an order beyond its limit, size " +
  "or key's mandate, or keep anybody from collecting: what is asked back leaves after a fixed number of blocks, without the venue. A report that " +
  "it settles otherwise convicts it, so keep your reports.";

type Shown = { market: VenueMarket; pair: Pair };

export function venueView(live: Live, wanted: number | null): View {
  const problem = notice();
  const head = marketHead(live);
  const markets = venueMarketsTable(live, wanted);
  const book = bookPanel();
  const tape = tapePanel();
  const desk = deskPanels(live);
  const prices = tradesPicture();
  const depth = depthPicture();
  const operator = operatorFacts(live);
  const venue = h("div", { class: "venue-about" }, operator.element, markets.element, h("p", { class: "quiet" }, PROMISES));
  const parts = tabs("Own orders", {
    orders: { title: "Orders", elements: [desk.orders] },
    fills: { title: "Executions", elements: [desk.fills] },
    venue: { title: "The venue", elements: [venue] },
  });
  const below = panel("Your orders", { class: "own-orders", aside: desk.asides }, desk.orders, desk.fills, venue);
  below.querySelector("h2")?.replaceWith(parts.element);
  const none = h("p", { class: "empty", hidden: true }, "This node runs no venue: other nodes of the network may.");
  const layout = terminal(
    { head: head.element, problem: problem.element, chart: picturesPanel(prices, depth, head.standing), book: book.element, tape: tape.element, ticket: desk.ticket, money: desk.money, orders: below },
    (side) => desk.take(side),
  );
  const [grid, bar] = [".terminal-grid", ".take-bar"].map((one) => layout.element.querySelector<HTMLElement>(one)!) as [HTMLElement, HTMLElement];
  grid.before(none);
  let shownMarket: Shown | null = null;
  let feed: VenueFeed | null = null;

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const timer = setInterval(() => loading.request(), PAUSE_MS);
  const stop = live.onBlock(() => loading.request());
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    if (live.assets.size === 0) return;
    const status = await getIfThere<VenueStatus>("venue", signal);
    none.hidden = status !== null;
    grid.hidden = bar.hidden = status === null;
    if (!status) return (head.none(), pause());
    head.standingOf(status);
    operator.show(status);
    const { markets: all } = await get<{ markets: VenueMarket[] }>("venue/markets", signal);
    markets.show(all);
    const market = all.find((one) => one.market === (wanted ?? all[0]?.market)) ?? null;
    const pair = market && pairOf(live, market);
    if (!market || !pair) return;
    shownMarket = { market, pair };
    feed ??= feedOf(market.market, showTrades);
    head.choices(all, market);
    const latest = await get<VenueBook>(`${path("venue", "markets", market.market)}/book?depth=${DEPTH_LEVELS}`, signal);
    book.show(latest, market, pair);
    depth.show(latest, market, pair);
    showTrades();
    await desk.show(status, all, market, pair, signal);
  }

  function showTrades(): void {
    if (!shownMarket || !feed) return;
    const { market, pair } = shownMarket;
    tape.show(feed.trades, market, pair);
    prices.show(feed, shownMarket);
    head.show(feed, shownMarket);
  }

  /** A node without a venue will have none while the page is open. */
  function pause(): void {
    clearInterval(timer);
    stop();
  }

  return {
    title: "Continuous markets",
    element: layout.element,
    update: () => desk.update(),
    close() {
      pause();
      feed?.close();
      loading.close();
      desk.close();
      prices.close();
      depth.close();
      layout.close();
    },
  };
}

const PAST_TRADES = 1_000;

function feedOf(market: number, changed: () => void): VenueFeed {
  const past = () => get<VenueTrades>(`${path("venue", "markets", market)}/trades?limit=${PAST_TRADES}`);
  return new VenueFeed(market, { connect: () => new WebSocket(streamAddress()), past }, changed);
}

function streamAddress(): string {
  const url = new URL("v1/venue/stream", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** The market's name, the choice of another, and the figures of its last day. */
function marketHead(live: Live) {
  const title = h("h1", { tabindex: -1 }, "Continuous markets");
  const price = h("strong", { class: "price", "data-price": "" }, "–");
  const quote = h("span", { class: "quiet" });
  const figures = facts({ change: "24 h", high: "High", low: "Low", volume: "Volume" });
  figures.element.classList.add("day");
  const since = h("span", { class: "quiet", "data-since": "" });
  const standing = h("p", { class: "quiet standing", "data-standing": "" });
  const controls = controlsLine(live);
  const select = h("select", { id: "venue-market", "aria-label": "Market", change: () => (location.hash = href.venue(Number(select.value))) });
  const element = h("header", { class: "market-head" }, title, controls.element, h("p", { class: "latest" }, price, " ", quote), figures.element, since, h("div", { class: "chooser" }, select));
  const middle = ({ bid, ask }: VenueMarket) => (bid === null || ask === null ? (bid ?? ask) : Math.round((bid + ask) / 2));

  return {
    element,
    standing,
    none: () => element.replaceChildren(title),
    standingOf(status: VenueStatus): void {
      const words = { runs: status.paused ? `Matching pauses: ${status.paused.message}` : "The venue matches.", waits: "The venue waits", failed: "The venue has failed", stopped: "The venue has stopped" };
      setText(standing, status.standing === "runs" ? words.runs : `${words[status.standing]}: ${status.why ?? "it does not say why"}`);
    },
    choices(all: VenueMarket[], market: VenueMarket): void {
      if (select.options.length === all.length) return;
      const name = (one: VenueMarket) => {
        const pair = pairOf(live, one);
        return pair ? `${pair.base.symbol}/${pair.quote.symbol}` : one.symbol;
      };
      select.replaceChildren(...all.map((one) => h("option", { value: one.market, selected: one === market }, name(one))));
    },
    show({ trades }: VenueFeed, { market, pair }: Shown): void {
      setText(title, `${pair.base.symbol}/${pair.quote.symbol}, continuous`);
      controls.show([pair.base.symbol, pair.quote.symbol]);
      const { day } = market;
      const tick = trades.at(-1)?.tick ?? market.last ?? middle(market);
      setText(price, tick === null ? "–" : formatPrice(priceOf(tick, market, pair)));
      setText(quote, pair.quote.symbol);
      setText(since, day === null || day.complete ? "" : `since ${clock(day.since_ms)}: the venue knows no more`);
      if (!day) return;
      const { text, direction } = percent(Number(day.change_percent) / 100);
      figures.set("change", h("span", { class: direction }, text));
      figures.set("high", formatPrice(priceOf(day.high, market, pair)));
      figures.set("low", formatPrice(priceOf(day.low, market, pair)));
      figures.set("volume", `${formatShort(day.base_volume, pair.base.decimals)} ${pair.base.symbol}`, `${formatAmount(day.base_volume, pair.base.decimals)} ${pair.base.symbol}`);
    },
  };
}

/** Candles of the newest executions. */
function tradesPicture() {
  const chart = candlesChart();
  const none = h("p", { class: "empty" }, "The chart begins with the first execution.");
  let interval: Interval = "5s";
  let latest: { feed: VenueFeed; at: Shown } | null = null;
  const choice = intervalChoice((name) => ((interval = name), draw()), SEEN);
  choice.mark(interval);

  function draw(): void {
    if (!latest) return;
    const { feed, at } = latest;
    const { market, pair } = at;
    const trades = feed.trades.map(({ at, tick, lots }) => ({ at, price: number(priceOf(tick, market, pair)), volume: number(amountOf(lots, market, pair)) }));
    none.hidden = trades.length > 0;
    chart.show(candlesOf(trades, INTERVALS[interval]), INTERVALS[interval], pair.base.symbol, pair.quote.symbol);
  }

  return {
    title: "Prices",
    elements: [h("div", { class: "prices" }, none, chart.element)],
    choice: choice.element,
    look: () => undefined,
    show(feed: VenueFeed, at: Shown): void {
      latest = { feed, at };
      draw();
    },
    close: chart.close,
  };
}

const number = (value: ReturnType<typeof priceOf>): number => (value ? toNumber(value) : 0);

function operatorFacts(live: Live) {
  const list = facts({ fills: "Executions", backlog: "Not settled yet", busts: "Busts since its start", bond: "Bond", balance: "For its fees", settle: "Settle under way", records: "Records of its journal", sessions: "Sessions" });
  const units = (text: string | null) => {
    const first = [...live.assets.values()].find((asset) => asset.asset === 0);
    return text === null || !first ? "–" : `${formatAmount(text, first.decimals)} ${first.symbol}`;
  };
  return {
    element: list.element,
    show(status: VenueStatus): void {
      list.set("fills", count(status.fills));
      list.set("backlog", count(status.fills - status.settled));
      list.set("busts", count(status.busts));
      list.set("bond", units(status.bond));
      list.set("balance", units(status.operator_balance));
      list.set("settle", status.in_flight ? `number ${count(status.in_flight.sequence)}, until block ${count(status.in_flight.until)}` : "none");
      list.set("records", count(status.records));
      list.set("sessions", count(status.sessions));
    },
  };
}
