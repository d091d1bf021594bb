/** Continuous markets of the venue that this node runs: books, orders, deposits, and how the venue stands. */
import type { View } from "./view";
import type { Asset } from "@walras/client/bodies";
import { parseDecimal, trimZeros } from "@walras/client/decimal";
import { ApiError, get, getIfThere, path } from "../api";
import { format, formatAmount, formatPrice } from "../amount";
import { facts, h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table } from "../table";
import { current, onChoice } from "../trade/session";
import { amountOf, lotsAndTick, priceOf, tooLittle, VenueDesk, type KeptVenueOrder, type Pair, type VenueBook, type VenueFill, type VenueLevel, type VenueMarket, type VenueStatus } from "../trade/venue";
import type { OrderLife, VenueSide } from "@walras/client/venue";
import { clock, count, explain, tells } from "../words";
import { traderChoice } from "./trader";

const PAUSE_MS = 1_000;
const LEVELS = 10;
const LIVES: [OrderLife, string][] = [
  ["rests", "Rests until cancelled"],
  ["post_only", "Rests, never takes"],
  ["immediate_or_cancel", "At once what it can"],
  ["fill_or_kill", "At once, whole or nothing"],
];
/** What a trader may rely on, and what not. */
const PROMISES =
  "The venue matches; the ledger keeps the money. An execution is the venue's signed promise; it is settled when a block has applied it, or " +
  "bust, with the rule that it broke. A bad venue can stop, delay, or prefer others. It cannot take a deposit, fill an order beyond its limit, size " +
  "or key's mandate, or keep anybody from collecting: what is asked back leaves after a fixed number of blocks, without the venue. A report that " +
  "it settles otherwise convicts it, so keep your reports.";

export function venueView(live: Live, wanted: number | null): View {
  const problem = notice();
  const standing = h("p", { class: "quiet", "data-standing": "" });
  const markets = marketsTable(live, wanted);
  const title = h("h1", { tabindex: -1 }, "Continuous markets");
  const book = bookPanel();
  const desk = deskPanels(live);
  const operator = facts({ fills: "Executions", backlog: "Not settled yet", busts: "Busts since its start", bond: "Bond", balance: "For its fees", settle: "Settle under way", records: "Records of its journal", sessions: "Sessions" });
  const none = h("p", { class: "empty", hidden: true }, "This node runs no venue: other nodes of the network may.");
  const body = h(
    "div",
    { class: "market-grid" },
    h("div", {}, panel("Markets", {}, markets.element), desk.orders, desk.fills, panel("What the venue promises", {}, h("p", { class: "quiet" }, PROMISES))),
    h("div", {}, desk.ticket, book.element, desk.money, panel("The venue", {}, operator.element)),
  );
  const element = h("div", { class: "view market venue" }, title, standing, problem.element, none, body);

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const timer = setInterval(() => loading.request(), PAUSE_MS);
  const stop = live.onBlock(() => loading.request());
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    if (live.assets.size === 0) return;
    const status = await getIfThere<VenueStatus>("venue", signal);
    [none.hidden, body.hidden] = [status !== null, status === null];
    if (!status) return pause();
    show(status);
    const { markets: all } = await get<{ markets: VenueMarket[] }>("venue/markets", signal);
    markets.show(all);
    const market = all.find((one) => one.market === (wanted ?? all[0]?.market)) ?? null;
    const pair = market && pairOf(live, market);
    if (market && pair) {
      setText(title, `${pair.base.symbol}/${pair.quote.symbol}, continuous`);
      book.show(await get<VenueBook>(`${path("venue", "markets", market.market)}/book?depth=${LEVELS}`, signal), market, pair);
      await desk.show(status, all, market, pair, signal);
    }
  }

  function show(status: VenueStatus): void {
    const words = { runs: status.paused ? `Matching pauses: ${status.paused.message}` : "The venue matches.", waits: "The venue waits", failed: "The venue has failed", stopped: "The venue has stopped" };
    setText(standing, status.standing === "runs" ? words.runs : `${words[status.standing]}: ${status.why ?? "it does not say why"}`);
    const units = (text: string | null) => {
      const first = [...live.assets.values()].find((asset) => asset.asset === 0);
      return text === null || !first ? "–" : `${formatAmount(text, first.decimals)} ${first.symbol}`;
    };
    operator.set("fills", count(status.fills));
    operator.set("backlog", count(status.fills - status.settled));
    operator.set("busts", count(status.busts));
    operator.set("bond", units(status.bond));
    operator.set("balance", units(status.operator_balance));
    operator.set("settle", status.in_flight ? `number ${count(status.in_flight.sequence)}, until block ${count(status.in_flight.until)}` : "none");
    operator.set("records", count(status.records));
    operator.set("sessions", count(status.sessions));
  }

  /** A node without a venue will have none while the page is open. */
  function pause(): void {
    clearInterval(timer);
    stop();
  }

  return {
    title: "Continuous markets",
    element,
    update: () => desk.update(),
    close() {
      pause();
      loading.close();
      desk.close();
    },
  };
}

function pairOf(live: Live, market: VenueMarket): Pair | null {
  const of = (number: number): Asset | undefined => [...live.assets.values()].find((asset) => asset.asset === number);
  const [base, quote] = [of(market.base), of(market.quote)];
  return base && quote ? { base, quote } : null;
}

function marketsTable(live: Live, wanted: number | null) {
  const price = (market: VenueMarket, tick: number | null) => {
    const pair = pairOf(live, market);
    return tick === null || !pair ? "–" : formatPrice(priceOf(tick, market, pair));
  };
  const name = (market: VenueMarket) => {
    const pair = pairOf(live, market);
    return pair ? `${pair.base.symbol}/${pair.quote.symbol}` : market.symbol;
  };
  return table<VenueMarket>({
    caption: "Markets of the venue",
    key: (row) => String(row.market),
    empty: "The venue has listed no market.",
    rowClass: (row) => (row.market === wanted ? "strong" : ""),
    columns: [
      { name: "Market", class: "strong", cell: (row) => ({ text: name(row), href: href.venue(row.market) }) },
      { name: "Phase", cell: (row) => row.phase },
      { name: "Bid", class: "number", cell: (row) => price(row, row.bid) },
      { name: "Ask", class: "number", cell: (row) => price(row, row.ask) },
      { name: "OUCH", class: "wide", cell: (row) => row.symbol },
    ],
  });
}

type Row = { level: VenueLevel; market: VenueMarket; pair: Pair; part: number };

function bookPanel() {
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
    const most = Math.max(1, ...[...book.bids, ...book.asks].map((level) => level[1]));
    const rows = (levels: VenueLevel[]) => levels.map((level) => ({ level, market, pair, part: level[1] / most }));
    sells.show(rows(book.asks).reverse());
    buys.show(rows(book.bids));
    const [bid, ask] = [book.bids[0]?.[0], book.asks[0]?.[0]];
    setText(middle, bid === undefined || ask === undefined ? book.phase : `Spread ${shown(priceOf(ask - bid, market, pair))} ${pair.quote.symbol}`);
  }

  return { element: panel("Book", { class: "book" }, sells.element, middle, buys.element), show };
}

const shown = (value: ReturnType<typeof amountOf>): string => (value ? format(trimZeros(value, 0)) : "–");

/** Who trades, the order, what became of earlier ones, and the deposit. */
function deskPanels(live: Live) {
  const choice = traderChoice(live);
  const problem = notice();
  const radio = (value: VenueSide, text: string) => h("label", {}, h("input", { type: "radio", name: "venue-side", value, checked: value === "buy", change: draw }), h("span", {}, text));
  const [amount, price] = [input("venue-amount", "Amount"), input("venue-price", "Limit")];
  const life = h("select", { id: "venue-life" }, ...LIVES.map(([value, text]) => h("option", { value }, text)));
  const preview = h("p", { class: "preview quiet", "aria-live": "polite" });
  const button = h("button", { type: "submit", class: "place" }, "Buy");
  const authorise = h("button", { type: "button", class: "place", click: () => void run(letTrade) }, "Let this page trade here");
  const lifeRow = h("div", { class: "field" }, h("label", { for: "venue-life" }, "Life"), life);
  const sides = h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Side"), radio("buy", "Buy"), radio("sell", "Sell"));
  const form = h("form", { class: "ticket", submit: (event: Event) => (event.preventDefault(), void run(place)) }, sides, amount.element, price.element, lifeRow, preview, button);
  const ticket = panel("Place an order", { class: "order" }, choice.element, authorise, form, problem.element);

  const [moved, asset] = [input("venue-units", "Amount"), h("select", { id: "venue-asset", "aria-label": "Asset" })];
  const held = h("p", { class: "quiet", "data-deposits": "" });
  const collect = h("button", { type: "button", class: "plain", click: () => void run(() => move("collect")) }, "Collect");
  const mover = h("form", { class: "ticket", submit: (event: Event) => (event.preventDefault(), void run(() => move("deposit"))) }, asset, moved.element, h("button", { type: "submit" }, "Deposit"), collect);
  const money = panel("Your deposit", {}, held, mover);

  const all = h("button", { type: "button", class: "plain", hidden: true, click: () => void run(async (desk) => desk.cancelAll()) }, "Cancel all");
  const orders = ordersTable((order) => void run((desk) => desk.cancel(order)));
  const fills = fillsTable();
  const keep = h("button", { type: "button", class: "plain", hidden: true, click: download }, "Keep the reports");

  let known: { status: VenueStatus; all: VenueMarket[]; market: VenueMarket; pair: Pair } | null = null;
  let desk: VenueDesk | null = null;
  let opening = false;
  let isAuthorised: boolean | null = null;
  let busy = false;
  const stops = [onChoice(changed)];

  function input(id: string, label: string) {
    const of = h("input", { id, inputmode: "decimal", autocomplete: "off", spellcheck: "false", required: true, input: draw });
    return { input: of, element: h("div", { class: "field" }, h("label", { for: id }, label), of) };
  }

  function changed(): void {
    [desk, isAuthorised] = [null, null];
    orders.show([], null);
    fills.show([], 0, null);
    choice.draw();
    draw();
  }

  /** Keys of this page sign at once; a wallet is asked only when its owner presses the button. */
  async function find(byHand: boolean): Promise<VenueDesk | null> {
    const trader = current();
    if (!trader || !known || opening || (trader.kind === "wallet" && !byHand && !desk)) return desk;
    if (desk && desk.trader === trader && desk.scope.incarnation === known.status.incarnation) return desk;
    opening = true;
    try {
      const opened = await VenueDesk.open(trader, known.status);
      if (current() === trader) [desk, isAuthorised] = [opened, null];
    } finally {
      opening = false;
    }
    return desk;
  }

  async function letTrade(): Promise<void> {
    const found = await find(true);
    if (!found || !known || (await found.isAuthorised(new AbortController().signal))) return;
    const symbol = (number: number) => [...live.assets.values()].find((one) => one.asset === number)?.symbol ?? "";
    await found.authorise(known.all.slice(0, 16), symbol, live.height);
  }

  async function place(of: VenueDesk): Promise<void> {
    if (!known) return;
    const written = { amount: amount.input.value.trim(), price: price.input.value.trim() };
    const size = lotsAndTick(written.amount, written.price, known.market, known.pair);
    if (typeof size === "string") return problem.say(size);
    await of.place(known.market, side(), life.value as OrderLife, written, size);
    amount.input.value = "";
  }

  async function move(action: "deposit" | "collect"): Promise<void> {
    const of = await find(true);
    const one = live.assets.get(asset.value);
    const value = parseDecimal(moved.input.value.trim());
    if (!of || !one) return;
    const scale = value?.scale ?? 0;
    if (!value || value.digits <= 0n || scale > one.decimals) return problem.say(`Write an amount above zero with at most ${one.decimals} places.`);
    await of.move(action, one, (value.digits * 10n ** BigInt(one.decimals - scale)).toString(), live.height);
    moved.input.value = "";
  }

  /** Does one thing at a time, and says what went wrong with it. */
  async function run(act: (desk: VenueDesk) => Promise<void>): Promise<void> {
    if (busy) return;
    busy = true;
    draw();
    problem.say(null);
    try {
      const found = await find(true);
      if (found) await act(found);
      if (found && isAuthorised) await look(found);
    } catch (error) {
      problem.say(explain(error));
    }
    busy = false;
    draw();
  }

  const side = (): VenueSide => (form.querySelector<HTMLInputElement>("input[name=venue-side]:checked")?.value === "sell" ? "sell" : "buy");

  function draw(): void {
    const trader = current();
    authorise.hidden = !trader || isAuthorised === true;
    form.hidden = !trader || isAuthorised !== true;
    mover.hidden = !trader;
    for (const one of [authorise, button, collect]) one.disabled = busy;
    if (!known) return;
    const { base, quote } = known.pair;
    setText(button, `${side() === "buy" ? "Buy" : "Sell"} ${base.symbol}`);
    const written = amount.input.value.trim() !== "" && price.input.value.trim() !== "";
    const size = written ? lotsAndTick(amount.input.value.trim(), price.input.value.trim(), known.market, known.pair) : null;
    if (size === null) return setText(preview, "The best price goes first, and at one price who came first.");
    if (typeof size === "string") return setText(preview, size);
    const best = side() === "buy" ? known.market.ask : known.market.bid;
    const takes = best !== null && (side() === "buy" ? size.tick >= best : size.tick <= best);
    const least = tooLittle(size, known.market);
    const small = least ? ` It is worth less than ${formatAmount(least, quote.decimals)} ${quote.symbol}: of orders that small the venue takes a few a day.` : "";
    setText(preview, takes ? `It meets the best price, ${formatPrice(priceOf(best, known.market, known.pair))} ${quote.symbol}, and executes at once as far as it reaches.${small}` : `It would wait in the book.${small}`);
  }

  async function look(of: VenueDesk): Promise<void> {
    await of.lookAll();
    if (desk !== of || !known) return;
    orders.show(of.orders.filter((order) => order.signed.market === known?.market.market), known);
    fills.show(of.fills.filter((fill) => fill.market === known?.market.market), of.settled, known);
    keep.hidden = of.fills.length === 0;
    all.hidden = of.orders.filter((order) => order.standing.standing === "open").length < 2;
  }

  function download(): void {
    if (!desk) return;
    const text = JSON.stringify({ venue: desk.scope.venue, key: desk.key.public, fills: desk.fills }, null, 2);
    const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: `walras-reports-${desk.scope.venue}.json` });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  async function show(status: VenueStatus, markets: VenueMarket[], market: VenueMarket, pair: Pair, signal: AbortSignal): Promise<void> {
    known = { status, all: markets, market, pair };
    setText(amount.element.querySelector("label")!, `Amount, ${pair.base.symbol}`);
    setText(price.element.querySelector("label")!, `Limit, ${pair.quote.symbol}`);
    if (asset.options.length === 0) asset.replaceChildren(...[pair.quote, pair.base].map((one) => h("option", { value: one.symbol }, one.symbol)));
    const best = market.ask ?? market.bid;
    if (price.input.value === "" && best !== null && document.activeElement !== price.input) price.input.value = formatPrice(priceOf(best, market, pair)).replace(/,/g, "");
    draw();
    if (busy) return;
    try {
      const found = await find(false);
      if (!found) return;
      isAuthorised = await found.isAuthorised(signal);
      const deposits = await found.deposits(signal);
      const text = [...deposits.values()].map((one) => `${formatAmount(one.free, live.decimals(one.asset))} ${one.asset}${one.leaving ? ` (and ${formatAmount(one.leaving.units, live.decimals(one.asset))} on the way back)` : ""}`);
      setText(held, text.length > 0 ? text.join(", ") : "Nothing yet: deposit what you sell, and what you pay with.");
      if (isAuthorised) await look(found);
    } catch (error) {
      // An account that nobody has paid yet has neither keys nor deposits.
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    }
    draw();
  }

  changed();
  return {
    ticket,
    money,
    orders: panel("Your orders", { class: "own-orders", aside: all }, orders.element),
    fills: panel("Your executions", { aside: keep }, fills.element),
    show,
    update(): void {
      choice.update();
    },
    close(): void {
      choice.close();
      stops.forEach((stop) => stop());
    },
  };
}

type Where = { market: VenueMarket; pair: Pair } | null;

function ordersTable(cancel: (order: KeptVenueOrder) => void) {
  let where: Where = null;
  const lots = (value: number | undefined) => (where ? shown(amountOf(value ?? 0, where.market, where.pair)) : String(value));
  function state({ standing, ahead }: KeptVenueOrder): string {
    const { executed = 0, settled = 0, bust = 0, open = 0 } = standing;
    if (standing.standing === "sent") return "Sent, without an answer yet";
    if (standing.standing === "refused") return `Refused: ${standing.message ?? ""}`;
    if (standing.standing === "overtaken") return "Void: a higher number was filled";
    const parts = [
      ...(executed > 0 ? [`${lots(executed)} executed, ${lots(settled)} of it settled${bust > 0 ? `, ${lots(bust)} bust` : ""}`] : []),
      ...(standing.standing === "open" ? [`${lots(open)} open${ahead === null ? "" : ahead === 0 ? ", first in its queue" : `, ${count(ahead)} ahead in the queue`}`] : [`ended${standing.why ? `: ${standing.why.replace(/_/g, " ")}` : ""}`]),
    ];
    return parts.join("; ");
  }
  const made = table<KeptVenueOrder>({
    caption: "Your orders, the newest first",
    key: (row) => `${row.signed.number.day} ${row.signed.number.reference}`,
    empty: "No orders of this page in this market.",
    columns: [
      { name: "Placed", class: "number first", cell: (row) => clock(row.placed_ms) },
      { name: "Order", cell: (row) => `${row.signed.side === "buy" ? "Buy" : "Sell"} ${row.amount} at ${row.price}` },
      { name: "State", cell: (row) => state(row) },
      { name: "Action", cell: (row) => (row.standing.standing === "open" ? button(row) : "") },
    ],
  });
  const buttons = new Map<number, HTMLElement>();
  function button(order: KeptVenueOrder): HTMLElement {
    const { reference } = order.signed.number;
    const known = buttons.get(reference) ?? h("button", { type: "button", class: "plain", "aria-label": `Cancel order ${reference}`, click: () => cancel(order) }, "Cancel");
    buttons.set(reference, known);
    return known;
  }
  return {
    element: made.element,
    show(rows: KeptVenueOrder[], at: Where): void {
      where = at;
      made.show(rows);
    },
  };
}

function fillsTable() {
  let [where, settled]: [Where, number] = [null, 0];
  const made = table<VenueFill>({
    caption: "Your executions, the newest first",
    key: (row) => `${row.index} ${row.side}`,
    empty: "No executions yet.",
    columns: [
      { name: "Number", class: "number first", cell: (row) => count(row.index) },
      { name: "Side", cell: (row) => (row.side === "buy" ? "Bought" : "Sold") },
      { name: "Amount", class: "number", cell: (row) => (where ? shown(amountOf(row.lots, where.market, where.pair)) : "–") },
      { name: "Price", class: "number", cell: (row) => (where ? formatPrice(priceOf(row.tick, where.market, where.pair)) : "–") },
      { name: "Fee", class: "number wide", cell: (row) => (where ? `${formatAmount(row.fee, where.pair.quote.decimals)} ${where.pair.quote.symbol}` : "–") },
      { name: "State", cell: (row) => (Number(row.index) < settled ? "in a block" : "executed") },
    ],
  });
  return {
    element: made.element,
    show(rows: VenueFill[], until: number, at: Where): void {
      [where, settled] = [at, until];
      made.show(rows.slice(0, 50));
    },
  };
}
