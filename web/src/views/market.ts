/** One pair: its prices, its book, its trades, the ticket, and what the trader has and has ordered. */
import { controlsLine } from "./controls";
import { curvesPart } from "./curves";
import { impliedPart } from "./implied";
import { moneyPanel } from "./money";
import { pricesPanel } from "./prices";
import { terminal } from "./terminal";
import { ticketPanels } from "./ticket";
import type { View } from "./view";
import { fromUnits, parseDecimal, round, toNumber, trimZeros, type Decimal } from "@walras/client/decimal";
import { formatAmount, formatPrice, formatShort, placesFor } from "../amount";
import type { Book, HistoryPoint, Level, Ticker } from "@walras/client/bodies";
import { get, path } from "../api";
import { copyable, facts, h, notice, panel, setText, tabs } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import type { Message } from "@walras/client/stream";
import { table } from "../table";
import { brief, clock, count, percent, tells } from "../words";

const PAUSE_MS = 1_000;
const HISTORY_PAUSE_MS = 5_000;
const HISTORY_POINTS = 500;
const LEVELS = 12;
const TRADES_SHOWN = 40;

export function marketView(live: Live, base: string, quote: string): View {
  const market = `${base}/${quote}`;
  const head = marketHead(live, base, quote);
  const problem = notice();
  const picture = curvesPart(live, base, quote);
  const prices = pricesPanel(live, base, quote, { title: "Supply and demand", ...picture }, head.tokens);
  const book = bookPanel(live, base, quote);
  const trades = tradesTable(live, base, quote);
  const money = moneyPanel(live, base, quote);
  const ticket = ticketPanels(live, base, quote, (balances) => money.show(balances));
  let points: HistoryPoint[] = [];
  let latest: Traded | null = null;
  let drawn: HistoryPoint[] | null = null;

  const layout = terminal(
    {
      head: head.element,
      problem: problem.element,
      chart: prices.element,
      book: book.element,
      tape: panel("Latest trades", {}, trades.element),
      ticket: ticket.element,
      money: money.element,
      orders: ticket.orders,
    },
    (side) => ticket.take(side),
  );

  const bookLoading = refresh(loadBook, tells(problem), PAUSE_MS);
  const historyLoading = refresh(loadHistory, tells(problem), HISTORY_PAUSE_MS);
  const stops = [
    live.onBlock(() => {
      bookLoading.request();
      historyLoading.request();
    }),
    live.stream.subscribe(`trades:${market}`, receive),
    live.stream.subscribe(`ticker:${market}`, (message) => {
      const ticker = message.type === "snapshot" ? message.ticker : message.type === "ticker" ? message : undefined;
      if (ticker) head.day(ticker);
    }),
  ];
  bookLoading.request();
  historyLoading.request();

  async function loadBook(signal: AbortSignal): Promise<void> {
    const answer = await get<Book>(`${path("markets", base, quote)}/book?levels=${LEVELS}`, signal);
    if (answer.price !== null && answer.price_height !== null) saw(answer.price_height, answer.price);
    book.show(answer);
    ticket.show(answer);
  }

  async function loadHistory(signal: AbortSignal): Promise<void> {
    const answer = await get<{ points: HistoryPoint[] }>(`${path("markets", base, quote)}/history?limit=${HISTORY_POINTS}`, signal);
    const newest = answer.points.at(-1)?.height ?? 0;
    points = [...answer.points, ...points.filter((point) => point.height > newest)];
    update();
  }

  /** The head and the book show one price: that of the newest trade that any answer named. */
  function saw(height: number, price: string): void {
    if (height < (latest?.height ?? 0)) return;
    latest = { height, price };
    head.price(latest);
    book.price(latest);
  }

  /** A trade of the newest batch continues the history before the next load. */
  function receive(message: Message): void {
    if (message.type !== "trade" || message.height <= (points.at(-1)?.height ?? 0)) return;
    const time_ms = live.block(message.height)?.time_ms ?? live.now_ms;
    const { height, price, price_units, base_volume } = message;
    points = [...points, { height, time_ms, price, price_units, base_volume }].slice(-HISTORY_POINTS);
    update();
  }

  function update(): void {
    const newest = points.at(-1);
    if (newest) saw(newest.height, newest.price);
    head.update();
    ticket.update();
    money.update();
    prices.update();
    if (drawn === points || live.assets.size === 0) return;
    drawn = points;
    prices.show(points);
    trades.show(points.filter((point) => !/^0*$/.test(point.base_volume)).slice(-TRADES_SHOWN).reverse());
  }

  return {
    title: market,
    element: layout.element,
    update,
    close() {
      stops.forEach((stop) => stop());
      bookLoading.close();
      historyLoading.close();
      book.close();
      picture.close();
      ticket.close();
      prices.close();
      layout.close();
    },
  };
}

/** The newest trade of the pair that the page knows. */
type Traded = { height: number; price: string };

/** The pair's name, the choice of another, and the figures of its last day. */
function marketHead(live: Live, base: string, quote: string) {
  const price = h("strong", { class: "price", "data-price": "" }, "–");
  const chooser = pairChooser(live, base, quote);
  const tokens = h("p", { class: "quiet tokens", hidden: true });
  const controls = controlsLine(live);
  const day = facts({ change: "24 h", high: "High", low: "Low", volume: "Volume" });
  day.element.classList.add("day");
  const element = h(
    "header",
    { class: "market-head" },
    h("h1", { tabindex: -1 }, `${base}/${quote}`),
    controls.element,
    h("p", { class: "latest", title: `${quote} per ${base}` }, price, " ", h("span", { class: "quiet" }, quote)),
    day.element,
    chooser.element,
  );

  /** The tokens of both assets, once it is known whether the chain has contracts. */
  function showTokens(): void {
    if (!tokens.hidden) return;
    for (const symbol of [base, quote]) {
      const address = live.assets.get(symbol)?.token;
      if (address === undefined) return;
      tokens.append(h("span", {}, `${symbol} token `, copyable(address, brief(address, 4), href.account(address))));
    }
    tokens.hidden = false;
  }

  function showDay({ day: figures }: Ticker): void {
    if (!figures || live.assets.size === 0) return;
    const { text, direction } = percent(Number(figures.change_percent) / 100);
    day.set("change", h("span", { class: direction }, text), `since ${formatPrice(parseDecimal(figures.open))} ${quote}, ${clock(figures.since_ms)}`);
    day.set("high", formatPrice(parseDecimal(figures.high)));
    day.set("low", formatPrice(parseDecimal(figures.low)));
    day.set("volume", `${formatShort(figures.base_volume, live.decimals(base))} ${base}`, `${formatAmount(figures.base_volume, live.decimals(base))} ${base}`);
  }

  let latest: Ticker | null = null;
  return {
    element,
    tokens,
    update(): void {
      chooser.update();
      showTokens();
      controls.show([base, quote]);
      if (latest) showDay(latest);
    },
    day(ticker: Ticker): void {
      latest = ticker;
      showDay(ticker);
    },
    price: (traded: Traded) => setText(price, formatPrice(parseDecimal(traded.price))),
  };
}

function pairChooser(live: Live, base: string, quote: string) {
  const go = () => {
    if (bases.value !== quotes.value) location.hash = href.market(bases.value, quotes.value);
  };
  const bases = h("select", { id: "base", "aria-label": "Base asset", change: go });
  const quotes = h("select", { id: "quote", "aria-label": "Quote asset", change: go });
  const element = h(
    "div",
    { class: "chooser" },
    bases,
    h("a", { href: href.market(quote, base), class: "swap", title: "Swap base and quote", "aria-label": `Show ${quote}/${base}` }, "⇄"),
    quotes,
  );

  function update(): void {
    const symbols = [...live.assets.keys()];
    if (bases.options.length === symbols.length) return;
    for (const [select, chosen, other] of [[bases, base, quote], [quotes, quote, base]] as const) {
      select.replaceChildren(...symbols.map((symbol) => h("option", { value: symbol, disabled: symbol === other, selected: symbol === chosen }, symbol)));
    }
  }

  return { element, update };
}

type Row = { price: Decimal; amount: Decimal; level: Level; part: number };

function bookPanel(live: Live, base: string, quote: string) {
  const side = (name: "sells" | "buys", caption: string) =>
    table<Row>({
      caption,
      key: (row) => row.level.price,
      empty: name === "sells" ? `Nobody sells ${base}.` : `Nobody buys ${base}.`,
      rowClass: () => name,
      depth: (row) => row.part,
      columns: [
        { name: `Price, ${quote}`, class: "number", cell: (row) => ({ text: formatPrice(row.price, places), title: `${row.level.price_units} units per unit` }) },
        {
          name: `Amount, ${base}`,
          class: "number",
          cell: (row) => ({ text: formatPrice(row.amount, amountPlaces), title: `${formatAmount(row.level.amount, live.decimals(base))} ${base}` }),
        },
        { name: "Offers", class: "number", cell: (row) => count(row.level.offers) },
      ],
    });
  let [places, amountPlaces] = [2, 0];
  const [sells, buys] = [side("sells", "Sell offers, the lowest price last"), side("buys", "Buy offers, the highest price first")];
  const middle = h("p", { class: "middle" }, "–");

  function show(book: Book): void {
    if (live.assets.size === 0) return;
    const price = parseDecimal(book.price ?? "");
    const rows = (levels: Level[]) => levels.slice(0, LEVELS).flatMap((level) => rowOf(level, parseDecimal(level.price), live.decimals(base)));
    const [above, below] = [rows(book.sells), rows(book.buys)];
    places = placesOf([...above, ...below], price);
    amountPlaces = placesOfAmounts([...above, ...below], live.decimals(base));
    const most = Math.max(...[...above, ...below].map((row) => row.part), 1e-300);
    for (const row of [...above, ...below]) row.part /= most;
    sells.show(above.reverse());
    buys.show(below);
    if (!price) setText(middle, "No batch price yet");
  }

  function price(traded: Traded): void {
    setText(middle, `Batch price ${formatPrice(parseDecimal(traded.price))}`);
  }

  const implied = impliedPart(live, base, quote);
  const parts = tabs("Book", { direct: { title: "Book", elements: [sells.element, middle, buys.element] }, implied: { title: "Through others", elements: [implied.element] } }, (name) => implied.look(name === "implied"));
  const element = panel("Book after the batch", { class: "book" }, sells.element, middle, buys.element, implied.element);
  element.querySelector("h2")?.replaceWith(parts.element);
  return { element, show, price, close: implied.close };
}

/** Places that show every level's price, but no more than seven significant digits of the batch price and at least two. */
function placesOf(rows: Row[], price: Decimal | null): number {
  const most = price ? placesFor(price, 7) : 9;
  return Math.max(2, ...rows.map((row) => trimZeros(round(row.price, most), 0).scale));
}

/** A level with its amount as a double, which becomes the length of its bar. */
function rowOf(level: Level, price: Decimal | null, decimals: number): Row[] {
  const amount = fromUnits(level.amount, decimals);
  return price && amount ? [{ price, amount, level, part: toNumber(amount) }] : [];
}

/** Places that show the least amount to four digits, while the largest takes nine at most. */
function placesOfAmounts(rows: Row[], decimals: number): number {
  const amounts = rows.map((row) => row.amount).filter((amount) => amount.digits > 0n).sort((a, b) => toNumber(a) - toNumber(b));
  const [least, most] = [amounts[0], amounts.at(-1)];
  return least && most ? Math.min(decimals, placesFor(least, 4), placesFor(most, 9)) : 0;
}

/** The tape: the price is coloured by its change from the batch before. */
function tradesTable(live: Live, base: string, quote: string) {
  let before = new Map<number, number>();
  const moved = (point: HistoryPoint): string => {
    const [price, last] = [Number(point.price), before.get(point.height)];
    return last === undefined || price === last ? "" : price > last ? "up" : "down";
  };
  const made = table<HistoryPoint>({
    caption: "Latest trades, one row per batch",
    key: (point) => String(point.height),
    empty: "No batch has traded this pair yet.",
    columns: [
      { name: `Price, ${quote}`, class: "number first", cell: (p) => ({ text: formatPrice(parseDecimal(p.price)), class: moved(p), title: `${p.price_units} units per unit` }) },
      { name: `Volume, ${base}`, class: "number", cell: (p) => ({ text: formatShort(p.base_volume, live.decimals(base)), title: `${formatAmount(p.base_volume, live.decimals(base))} ${base}` }) },
      { name: "Time", class: "number", cell: (p) => ({ text: clock(p.time_ms), href: href.block(p.height), title: `Block ${count(p.height)}` }) },
    ],
  });
  return {
    element: made.element,
    show(newestFirst: HistoryPoint[]): void {
      before = new Map(newestFirst.slice(0, -1).map((point, at) => [point.height, Number(newestFirst[at + 1]!.price)]));
      made.show(newestFirst);
    },
  };
}
