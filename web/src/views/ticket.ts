/** Orders from the page: who trades, the order with a look at what it would do, and what became of earlier ones. */
import { plainText, roundSignificant, parseDecimal, trimZeros } from "@walras/client/decimal";
import { format, formatPrice } from "../amount";
import type { Book, Offer, Quote } from "@walras/client/bodies";
import { get, path } from "../api";
import { h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { exactTermsOf, termsOf, type ExactOrder, type ExactTerms, type Order, type Side, type Terms } from "@walras/client/terms";
import { OrderBook, balances, boundsOf, exactPreviewOf, filledOf } from "../trade/orders";
import { current, onChoice } from "../trade/session";
import { explain, tells } from "../words";
import { ordersTable, whole } from "./own-orders";
import { traderChoice } from "./trader";

const PAUSE_MS = 1_000;
const OFFERS_MOST = 1_000;
/** Digits of the price that is proposed. */
const PRICE_DIGITS = 7;

type Kind = "limit" | "exact";
type Written = { kind: "limit"; order: Order } | { kind: "exact"; order: ExactOrder };
type Termed = { kind: "limit"; order: Order; terms: Terms } | { kind: "exact"; order: ExactOrder; terms: ExactTerms };

/** What is written with what the ledger is asked for, or a sentence that says what is wrong. */
function termed(asked: Written, assets: Live["assets"]): Termed | string {
  if (asked.kind === "limit") {
    const terms = termsOf(asked.order, assets);
    return typeof terms === "string" ? terms : { ...asked, terms };
  }
  const terms = exactTermsOf(asked.order, assets);
  return typeof terms === "string" ? terms : { ...asked, terms };
}

/** The question what the next batch would do with an order. */
const questionOf = ({ sell, buy, amount, limit }: Terms) => `quote?${new URLSearchParams({ sell, buy, amount, limit })}`;

export function ticketPanels(live: Live, base: string, quote: string) {
  const choice = traderChoice(live);
  const problem = notice();
  const money = h("p", { class: "quiet", "data-balances": "" });
  const radio = (name: "side" | "kind", value: Side | Kind, text: string) =>
    h("label", {}, h("input", { type: "radio", name, value, checked: value === "buy" || value === "limit", change: draw }), h("span", {}, text));
  const amount = field("order-amount", `Amount, ${base}`);
  const price = field("order-price", `Limit, ${quote}`);
  const bound = field("order-bound", `At most, ${quote}`);
  const once = h("input", { type: "checkbox", id: "order-once", change: draw });
  const life = h("label", { class: "once" }, once, h("span", {}, "One batch only: what is not filled returns"));
  const preview = h("p", { class: "preview quiet", "aria-live": "polite" });
  const button = h("button", { type: "submit", class: "place" }, "Buy");
  const choices = (legend: string, ...labels: HTMLElement[]) => h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, legend), ...labels);
  const sides = choices("Side", radio("side", "buy", "Buy"), radio("side", "sell", "Sell"));
  const kinds = choices("Kind of order", radio("kind", "limit", "Limit"), radio("kind", "exact", "Exact amount"));
  const form = h("form", { class: "ticket", submit: place }, h("div", { class: "choices" }, sides, kinds), amount.element, price.element, bound.element, life, preview, button);
  const orders = ordersTable(live, base, quote, (row) => void cancel([row]));
  const all = h("button", { type: "button", class: "plain", hidden: true, click: () => void cancel(orders.resting()) }, "Cancel all");
  const ticket = panel("Place an order", { class: "order" }, choice.element, money, form, problem.element);
  const history = h("a", { href: href.accounts, hidden: true, "data-history": "" }, "All your orders, fills and transfers");
  const ownPanel = panel("Your orders", { class: "own-orders", aside: all }, orders.element, history);

  let book: Book | null = null;
  let own: OrderBook | null = null;
  let network: string | null = null;
  let available = new Map<string, string>();
  let busy = false;
  /** The last question about the written order, and its answer: a quote, or why there is none. */
  let asked: string | null = null;
  let quoted: { asked: string; quote: Quote } | null = null;
  let noQuote: string | null = null;

  const quoting = refresh(loadQuote, tells({ say: (why) => ((noQuote = why), draw()) }), PAUSE_MS);
  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stops = [onChoice(changed), live.onBlock(() => (loading.request(), asked && quoting.request()))];
  changed();

  function field(id: string, label: string) {
    const input = h("input", { id, inputmode: "decimal", autocomplete: "off", spellcheck: "false", required: true, input: draw });
    const named = h("label", { for: id }, label);
    return { input, label: named, element: h("div", { class: "field" }, named, input) };
  }

  function chosen(name: "side" | "kind"): string | undefined {
    return form.querySelector<HTMLInputElement>(`input[name=${name}]:checked`)?.value;
  }

  function written(): Written {
    const common = { side: chosen("side") === "sell" ? ("sell" as const) : ("buy" as const), base, quote, amount: amount.input.value.trim() };
    if (chosen("kind") !== "exact") return { kind: "limit", order: { ...common, price: price.input.value.trim() } };
    return { kind: "exact", order: { ...common, bound: bound.input.value.trim() } };
  }

  function changed(): void {
    own = null;
    available = new Map();
    const trader = current();
    history.hidden = trader === null;
    if (trader) history.href = href.account(trader.address);
    choice.draw();
    draw();
    loading.request();
  }

  /** The orders that this browser keeps of an account. */
  async function ownOf(address: string): Promise<OrderBook> {
    network ??= (await get<{ network: string }>("limits")).network;
    own ??= OrderBook.of(network, address);
    return own;
  }

  /** Balances, what became of the orders, and what rests. */
  async function load(signal: AbortSignal): Promise<void> {
    const trader = current();
    if (!trader) return orders.show([], []);
    const kept = await ownOf(trader.address);
    const seen = live.height;
    // In this order: an offer that the look finds placed is in the list unless it has ended.
    await kept.look(seen, signal);
    available = await balances(trader.address, signal);
    const { offers } = available.size === 0 ? { offers: [] } : await get<{ offers: Offer[] }>(`${path("accounts", trader.address)}/offers?limit=${OFFERS_MOST}`, signal);
    if (own !== kept) return;
    orders.show(kept.orders, offers);
    all.hidden = orders.resting().length < 2;
    draw();
  }

  /** What the next batch would do with the order as it is written. */
  async function loadQuote(signal: AbortSignal): Promise<void> {
    const question = asked;
    if (question === null) return;
    const quote = await get<Quote>(question, signal);
    quoted = { asked: question, quote };
    draw();
  }

  function draw(): void {
    const says = written();
    const { order } = says;
    const trader = current();
    const isExact = says.kind === "exact";
    price.element.hidden = life.hidden = isExact;
    bound.element.hidden = !isExact;
    // What is hidden cannot be filled in, so it must not be asked for.
    [price.input.required, bound.input.required] = [!isExact, isExact];
    setText(amount.label, `${isExact ? "Exactly" : "Amount"}, ${base}`);
    setText(bound.label, `${order.side === "buy" ? "Pay at most" : "Get at least"}, ${quote}`);
    setText(button, `${order.side === "buy" ? "Buy" : "Sell"} ${base}`);
    button.disabled = trader === null || busy;
    const of = (symbol: string) => `${whole(available.get(symbol) ?? "0", live.decimals(symbol))} ${symbol}`;
    setText(money, trader ? `Available: ${of(base)}, ${of(quote)}` : "Choose who trades: a demo has public accounts, or keep a key in this browser.");
    setText(preview, says.kind === "exact" ? exactWords(says.order) : limitWords(says.order));
  }

  function limitWords(order: Order): string {
    if (order.amount === "" || order.price === "") return `${once.checked ? "The order takes part in one batch." : "An order waits in the book until it is filled or cancelled."} All orders of a batch trade at one price.`;
    const terms = termsOf(order, live.assets);
    if (typeof terms === "string") return terms;
    const bounds = boundsOf(terms, live.assets);
    if (!bounds) return "";
    const [gives, gets] = [`${format(trimZeros(bounds.gives, 0))} ${terms.sell}`, `${format(trimZeros(bounds.gets, 0))} ${terms.buy}`];
    return `You sell ${gives} and get at least ${gets}, or more at a better price. ${quoteWords(order, terms)}`;
  }

  /** What the next batch would do with it; the node is asked when the order or the book changes. */
  function quoteWords(order: Order, terms: Terms): string {
    const question = questionOf(terms);
    if (asked !== question) {
      [asked, noQuote] = [question, null];
      quoting.request();
    }
    const filled = quoted?.asked === question ? filledOf(quoted.quote, order, terms, live.assets) : null;
    if (!filled) return noQuote ?? "The node works out what the next batch would do with it.";
    const rest = once.checked ? "return" : "wait";
    if (filled.share === 0) return `In the next batch nobody would take it at this price: it would ${rest}.`;
    const percent = filled.share >= 1 ? "all of it" : `${(100 * filled.share).toPrecision(3)}\u202f% of it`;
    const about = `${format(trimZeros(filled.bought, 0))} ${terms.buy}, ${formatPrice(parseDecimal(filled.price.toPrecision(PRICE_DIGITS)))} ${quote} each`;
    return `If nothing else came, the next batch would fill ${percent}: you get ${about}.${filled.share < 1 ? ` The rest would ${rest}.` : ""}`;
  }

  /** What an exact order would do, and what it would have cost in the last batch. */
  function exactWords(order: ExactOrder): string {
    const verbs = order.side === "buy" ? { does: "buy", other: "pay", bound: "at most", guess: "it costs" } : { does: "sell", other: "get", bound: "at least", guess: "it brings" };
    const guess = book && order.amount !== "" ? exactPreviewOf(order, book, live.assets) : null;
    const about = guess && `${format(trimZeros(guess.other, 0))} ${quote}`;
    if (order.amount === "" || order.bound === "") {
      const rule = "Exactly this amount trades in the next batch within your bound, or nothing does.";
      return about ? `${rule} At the last price ${verbs.guess} about ${about}.` : `${rule} It takes what other orders leave.`;
    }
    const terms = exactTermsOf(order, live.assets);
    if (typeof terms === "string") return terms;
    const does = `You ${verbs.does} exactly ${order.amount} ${base} and ${verbs.other} ${verbs.bound} ${order.bound} ${quote}, or nothing happens.`;
    if (!about) return `${does} There is no price between the two yet: it would find nobody.`;
    const fits = guess.isWithin ? "within your bound; it trades if other orders leave room for it" : "beyond your bound: it would not trade";
    return `${does} At the last price ${verbs.guess} about ${about}, ${fits}.`;
  }

  async function place(event: Event): Promise<void> {
    event.preventDefault();
    const trader = current();
    const asks = termed(written(), live.assets);
    if (typeof asks === "string") return problem.say(asks);
    if (!trader || busy) return;
    busy = true;
    draw();
    problem.say(null);
    try {
      await (await ownOf(trader.address)).place(trader, asks, once.checked ? "one batch" : "rests", live.assets, live.height);
      amount.input.value = "";
    } catch (error) {
      problem.say(explain(error));
    }
    busy = false;
    if (own) orders.show(own.orders, orders.offers());
    draw();
    loading.request();
  }

  async function cancel(offers: Offer[]): Promise<void> {
    const trader = current();
    if (!trader) return;
    problem.say(null);
    try {
      const kept = await ownOf(trader.address);
      await kept.cancel(trader, offers, live.assets, live.height);
    } catch (error) {
      problem.say(explain(error));
    }
    loading.request();
  }

  return {
    element: ticket,
    orders: ownPanel,
    /** A new book: the guess changes, and an empty price becomes that of the last batch. */
    show(latest: Book): void {
      book = latest;
      const known = parseDecimal(latest.price ?? "");
      if (price.input.value === "" && known && document.activeElement !== price.input) price.input.value = plainText(roundSignificant(known, PRICE_DIGITS));
      draw();
    },
    update(): void {
      choice.update();
      draw();
    },
    close(): void {
      choice.close();
      stops.forEach((stop) => stop());
      loading.close();
      quoting.close();
    },
  };
}
