/** Who trades in a continuous market, the order, what became of earlier ones, and the deposit. */
import { fromUnits, parseDecimal, plainText, trimZeros } from "@walras/client/decimal";
import type { OrderLife, VenueSide } from "@walras/client/venue";
import { format, formatAmount, formatPrice } from "../amount";
import { ApiError } from "../api";
import { h, notice, panel, setText, spending } from "../dom";
import type { Live } from "../live";
import { table } from "../table";
import { orderText, sideWord } from "../trade/placing";
import { current, onChoice } from "../trade/session";
import { Told } from "../trade/told";
import { amountOf, lotsAndTick, priceOf, tooLittle, VenueDesk, type KeptVenueOrder, type Pair, type VenueFill, type VenueMarket, type VenueStatus } from "../trade/venue";
import { lotsOf, reachOf, tickOf } from "../trade/venue-sums";
import { clock, count, explain } from "../words";
import { traderChoice } from "./trader";
import { shown } from "./venue-book";

const LIVES: [OrderLife, string][] = [
  ["rests", "Until cancelled"],
  ["post_only", "Until cancelled, never takes"],
  ["immediate_or_cancel", "At once what it can"],
  ["fill_or_kill", "At once, whole or nothing"],
];
const PERCENTS = [25, 50, 75, 100];
const FILLS_SHOWN = 50;

/** A market, and where it is. */
type Known = { status: VenueStatus; all: VenueMarket[]; market: VenueMarket; pair: Pair };

export function deskPanels(live: Live) {
  const choice = traderChoice(live);
  const problem = notice();
  const radio = (name: string, value: string, text: string, checked: boolean) => h("label", {}, h("input", { type: "radio", name, value, checked, change: draw }), h("span", {}, text));
  const [amount, price] = [input("venue-amount", "Amount"), input("venue-price", "Limit")];
  const percents = h("div", { class: "percents", role: "group", "aria-label": "Part of the deposit" }, ...PERCENTS.map((part) => h("button", { type: "button", click: () => takePart(part) }, `${part}\u202f%`)));
  const life = h("select", { id: "venue-life", change: draw }, ...LIVES.map(([value, text]) => h("option", { value }, text)));
  const preview = h("p", { class: "preview quiet", "aria-live": "polite" });
  const button = h("button", { type: "submit", class: "place" }, "Buy");
  const authorise = h("button", { type: "button", class: "place", click: () => void run(letTrade) }, "Let this page trade here");
  const lifeRow = h("div", { class: "field" }, h("label", { for: "venue-life" }, "Lasts"), life);
  const choices = (legend: string, ...labels: HTMLElement[]) => h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, legend), ...labels);
  const sides = choices("Side", radio("venue-side", "buy", "Buy", true), radio("venue-side", "sell", "Sell", false));
  const kinds = choices("Kind of order", radio("venue-kind", "limit", "Limit", true), radio("venue-kind", "market", "Market", false));
  const leave = h("button", { type: "button", class: "plain", click: () => replaceOrder(null) }, "Keep it");
  const replacing = h("p", { class: "replacing", role: "status", hidden: true });
  const form = h("form", { class: "ticket", submit: (event: Event) => (event.preventDefault(), void run(place)) }, h("div", { class: "choices" }, sides, kinds), replacing, amount.element, percents, price.element, lifeRow, preview, button);
  const ticket = panel("Place an order", { class: "order" }, choice.element, authorise, form, problem.element);

  const [moved, asset] = [input("venue-units", "Amount"), h("select", { id: "venue-asset", "aria-label": "Asset" })];
  const held = h("p", { class: "quiet", "data-deposits": "" });
  const collect = h("button", { type: "button", class: "plain", click: () => void run(() => move("collect")) }, "Collect");
  const deposit = h("button", { type: "submit", class: "plain" }, "Deposit");
  const mover = h("form", { class: "ticket mover", submit: (event: Event) => (event.preventDefault(), void run(() => move("deposit"))) }, asset, moved.element, deposit, collect);
  const money = panel("Your deposit", { class: "money" }, held, mover);

  const all = h("button", { type: "button", class: "plain", hidden: true, click: () => void run(async (desk) => desk.cancelAll()) }, "Cancel all");
  const orders = ordersTable({ cancel: (order) => void run((desk) => desk.cancel(order)), replace: replaceOrder });
  const fills = fillsTable();
  const keep = h("button", { type: "button", class: "plain", hidden: true, click: download }, "Keep the reports");

  let known: Known | null = null;
  let desk: VenueDesk | null = null;
  let free = new Map<string, string>();
  let opening: Promise<VenueDesk> | null = null;
  let isAuthorised: boolean | null = null;
  let busy = false;
  /** The order in whose place the next one goes. */
  let old: KeptVenueOrder | null = null;
  const stops = [onChoice(changed)];

  function input(id: string, label: string) {
    const of = h("input", { id, inputmode: "decimal", autocomplete: "off", spellcheck: "false", required: true, input: draw });
    return { input: of, element: h("div", { class: "field" }, h("label", { for: id }, label), of) };
  }

  function changed(): void {
    [desk, isAuthorised, free] = [null, null, new Map()];
    orders.show([], null);
    fills.show([], 0, null);
    choice.draw();
    replaceOrder(null);
  }

  /** Keys of this page sign at once; a wallet is asked only when its owner presses the button, which waits while it opens. */
  async function find(byHand: boolean): Promise<VenueDesk | null> {
    while (opening) await opening;
    const trader = current();
    if (!trader || !known || (trader.kind === "wallet" && !byHand && !desk)) return desk;
    if (desk && desk.trader === trader && desk.scope.incarnation === known.status.incarnation) return desk;
    opening = VenueDesk.open(trader, known.status);
    try {
      const opened = await opening;
      if (current() === trader) [desk, isAuthorised] = [opened, null];
    } finally {
      opening = null;
    }
    return desk;
  }

  async function letTrade(): Promise<void> {
    const found = await find(true);
    if (!found || !known || (await found.isAuthorised(new AbortController().signal))) return;
    const symbol = (number: number) => [...live.assets.values()].find((one) => one.asset === number)?.symbol ?? "";
    await found.authorise(known.all.slice(0, 16), symbol, live.height);
  }

  const chosen = (name: string) => form.querySelector<HTMLInputElement>(`input[name=${name}]:checked`)?.value;
  const side = (): VenueSide => (chosen("venue-side") === "sell" ? "sell" : "buy");
  const isMarket = () => chosen("venue-kind") === "market";
  const lasts = (): OrderLife => (isMarket() ? "immediate_or_cancel" : (life.value as OrderLife));

  /** What is written; the limit of a market order reaches a little beyond the best price. */
  function written(): { amount: string; price: string } {
    const reach = known && isMarket() ? reachOf(side(), known.market) : null;
    const limit = known && reach !== null ? plainText(priceOf(reach, known.market, known.pair) ?? { digits: 0n, scale: 0 }) : "";
    return { amount: amount.input.value.trim(), price: isMarket() ? limit : price.input.value.trim() };
  }

  function takePart(percent: number): void {
    if (!known) return;
    const { market, pair } = known;
    const limit = tickOf(written().price, market, pair);
    if (side() === "buy" && limit === null) return problem.say("Write a limit first: it says how much your money buys.");
    const symbol = side() === "sell" ? pair.base.symbol : pair.quote.symbol;
    const lots = lotsOf(side(), free.get(symbol) ?? "0", percent, limit ?? 1, market);
    amount.input.value = plainText(amountOf(lots, market, pair) ?? { digits: 0n, scale: 0 });
    draw();
  }

  async function place(of: VenueDesk): Promise<void> {
    if (!known) return;
    const order = written();
    if (isMarket() && order.price === "") return problem.say(`Nobody ${side() === "buy" ? "sells" : "buys"} here now: write a limit.`);
    const size = lotsAndTick(order.amount, order.price, known.market, known.pair);
    if (typeof size === "string") return problem.say(size);
    const [{ market }, replaced] = [known, old];
    await spending([amount.input], () => of.place(market, side(), lasts(), order, size, replaced));
    if (old === replaced) replaceOrder(null);
  }

  /** The next order goes into the place of this one; null for none. */
  function replaceOrder(order: KeptVenueOrder | null): void {
    old = order;
    replacing.hidden = order === null;
    for (const one of form.querySelectorAll<HTMLInputElement>("input[type=radio]")) {
      if (order && one.value === (one.name === "venue-side" ? order.signed.side : "limit")) one.checked = true;
      one.disabled = order !== null;
    }
    if (order) {
      replacing.replaceChildren(`In the place of order ${order.signed.number.reference}; the amount is the total, what has executed included `, leave);
      [amount.input.value, price.input.value] = [order.amount, order.price];
      amount.input.focus();
    }
    draw();
  }

  async function move(action: "deposit" | "collect"): Promise<void> {
    const of = await find(true);
    const one = live.assets.get(asset.value);
    const value = parseDecimal(moved.input.value.trim());
    if (!of || !one) return;
    const scale = value?.scale ?? 0;
    if (!value || value.digits <= 0n || scale > one.decimals) return problem.say(`Write an amount above zero with at most ${one.decimals} places.`);
    const units = (value.digits * 10n ** BigInt(one.decimals - scale)).toString();
    await spending([moved.input], () => of.move(action, one, units, live.height));
  }

  /** Does one thing at a time, and says what went wrong with it. */
  async function run(act: (desk: VenueDesk) => Promise<void>): Promise<void> {
    if (busy) return;
    busy = true;
    draw();
    problem.say(null);
    try {
      const found = await find(true);
      if (!found) throw new Told("The page knows neither who trades nor this venue yet: try again in a moment.");
      await act(found);
      if (isAuthorised) await look(found);
    } catch (error) {
      problem.say(explain(error));
    }
    busy = false;
    draw();
  }

  function draw(): void {
    const trader = current();
    authorise.hidden = !trader || isAuthorised === true;
    form.hidden = !trader || isAuthorised !== true;
    mover.hidden = !trader;
    price.element.hidden = lifeRow.hidden = isMarket();
    price.input.required = !isMarket();
    button.className = `place ${side()}`;
    for (const one of [authorise, button, deposit, collect]) one.disabled = busy;
    if (!known) return;
    const { base } = known.pair;
    const order = written();
    const size = order.amount !== "" && order.price !== "" ? lotsAndTick(order.amount, order.price, known.market, known.pair) : null;
    const what = size !== null && typeof size !== "string" ? `${order.amount} ${base.symbol}` : base.symbol;
    setText(button, old ? `Replace: ${side()} ${what}` : `${sideWord({ side: side() })} ${what}`);
    setText(preview, size === null ? "The best price goes first, and at one price who came first." : typeof size === "string" ? size : sizeWords(size, known));
  }

  /** What an order of this size would do now. */
  function sizeWords(size: { lots: number; tick: number }, { market, pair }: Known): string {
    const best = side() === "buy" ? market.ask : market.bid;
    const takes = best !== null && (side() === "buy" ? size.tick >= best : size.tick <= best);
    const least = tooLittle(size, market);
    const small = least ? ` It is worth less than ${formatAmount(least, pair.quote.decimals)} ${pair.quote.symbol}: of orders that small the venue takes a few a day.` : "";
    const limit = isMarket() ? ` No worse than ${formatPrice(priceOf(size.tick, market, pair))} ${pair.quote.symbol}; what is left ends.` : "";
    if (!takes) return `It would wait in the book.${small}`;
    return `It meets the best price, ${formatPrice(priceOf(best, market, pair))} ${pair.quote.symbol}, and executes at once as far as it reaches.${limit}${small}`;
  }

  async function look(of: VenueDesk): Promise<void> {
    await of.lookAll();
    if (desk !== of || !known) return;
    orders.show(of.orders.filter((order) => order.signed.market === known?.market.market), known);
    fills.show(of.fills.filter((fill) => fill.market === known?.market.market), of.settled, known);
    keep.hidden = of.fills.length === 0;
    all.hidden = of.orders.filter((order) => order.standing.standing === "open").length < 2;
    if (old && old.standing.standing !== "open") replaceOrder(null);
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
      free = new Map([...deposits.values()].map((one) => [one.asset, one.free]));
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
    orders: orders.element,
    fills: fills.element,
    asides: h("span", { class: "asides" }, all, keep),
    show,
    take(wanted: VenueSide): void {
      const one = form.querySelector<HTMLInputElement>(`input[name=venue-side][value=${wanted}]`);
      if (one && !one.disabled) one.checked = true;
      draw();
    },
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
type Acts = { cancel: (order: KeptVenueOrder) => void; replace: (order: KeptVenueOrder) => void };

function ordersTable(acts: Acts) {
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
  const words = ({ signed, amount, price }: KeptVenueOrder): string =>
    where ? orderText({ side: signed.side, base: where.pair.base.symbol, quote: where.pair.quote.symbol, amount, price }) : "–";
  const made = table<KeptVenueOrder>({
    caption: "Your orders, the newest first",
    key: (row) => `${row.signed.number.day} ${row.signed.number.reference}`,
    empty: "No orders of this page in this market.",
    columns: [
      { name: "Placed", class: "number first wide", cell: (row) => clock(row.placed_ms) },
      { name: "Order", class: "prose", cell: words },
      { name: "State", class: "prose", cell: (row) => state(row) },
      { name: "Action", class: "acts", cell: (row) => (row.standing.standing === "open" ? actsOn(row) : "") },
    ],
  });
  const buttons = new Map<number, { element: HTMLElement; order: KeptVenueOrder }>();
  function actsOn(order: KeptVenueOrder): HTMLElement {
    const { reference } = order.signed.number;
    const known = buttons.get(reference);
    if (known) return ((known.order = order), known.element);
    const one = (text: string, act: (order: KeptVenueOrder) => void) => h("button", { type: "button", class: "plain", "aria-label": `${text} order ${reference}`, click: () => act(buttons.get(reference)?.order ?? order) }, text);
    const element = h("span", { class: "actions" }, one("Replace", acts.replace), one("Cancel", acts.cancel));
    buttons.set(reference, { element, order });
    return element;
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
      { name: "Side", cell: (row) => ({ text: row.side === "buy" ? "Bought" : "Sold", class: row.side === "buy" ? "up" : "down" }) },
      { name: "Amount", class: "number", cell: (row) => (where ? `${shown(amountOf(row.lots, where.market, where.pair))} ${where.pair.base.symbol}` : "–") },
      { name: "Price", class: "number", cell: (row) => (where ? formatPrice(priceOf(row.tick, where.market, where.pair)) : "–") },
      { name: "Fee", class: "number wide", cell: (row) => (where ? `${feeText(row.fee, where.pair.quote.decimals)} ${where.pair.quote.symbol}` : "–") },
      { name: "State", cell: (row) => (Number(row.index) < settled ? "in a block" : "executed") },
    ],
  });
  return {
    element: made.element,
    show(rows: VenueFill[], until: number, at: Where): void {
      [where, settled] = [at, until];
      made.show(rows.slice(0, FILLS_SHOWN));
    },
  };
}

const feeText = (units: string, decimals: number): string => {
  const fee = fromUnits(units, decimals);
  return fee ? format(trimZeros(fee, 0)) : units;
};
