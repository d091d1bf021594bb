/** Orders from the page: who trades, the order with a look at what it would do, and what became of earlier ones. */
import { parseDecimal, plainText, roundSignificant } from "@walras/client/decimal";
import type { Balance, Book, Offer, Quote } from "@walras/client/bodies";
import type { SealState } from "@walras/client/committee-key";
import { get, getIfThere, path } from "../api";
import { h, notice, panel, setText, spending } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { PRICE_DIGITS, insteadPrice, marketLimit, planOf, wouldFill, type OrderLife, type Plan } from "@walras/client/placing";
import { termsOf, type ExactTerms, type Order, type Side, type Terms } from "@walras/client/terms";
import type { Trader } from "../trade/keys";
import { OrderBook, holdings } from "../trade/orders";
import { sealingOf } from "../trade/sealed";
import { amountText, described, sideWord } from "../trade/placing";
import { current, onChoice } from "../trade/session";
import { Told } from "../trade/told";
import { explain, orderName, tells } from "../words";
import { standings } from "./controls";
import { ordersTable, whole } from "./own-orders";
import { emptyWords, partOf, planWords, sealedPlanWords } from "./ticket-words";
import { traderChoice } from "./trader";

const PAUSE_MS = 1_000;
const OFFERS_MOST = 1_000;
const PERCENTS = [25, 50, 75, 100];
/** Fees of the dearest order: an exact one. */
const FEES_MOST = 4n;
const LIVES: [OrderLife, string][] = [
  ["rests", "Until cancelled"],
  ["one batch", "Next batch, what there is"],
  ["whole", "Next batch, whole or nothing"],
];

type Kind = "limit" | "market";
/** What the node says of an order: of an offer, and of the exact order where it is one. */
type Said = { offer: Quote; exact: Quote | null };
type Limits = { network: string; fee: string; fee_asset: string };

/** The question what the next batch would do with an order, as an offer or as an exact one. */
const questionOf = ({ sell, buy, amount, limit }: Terms) => `quote?${new URLSearchParams({ sell, buy, amount, limit })}`;
const exactQuestionOf = ({ sell, buy, side, units, bound }: ExactTerms) => `quote?${new URLSearchParams({ sell, buy, exact: side, amount: units, bound })}`;

export function ticketPanels(live: Live, base: string, quote: string, holds: (balances: Balance[] | null) => void) {
  const choice = traderChoice(live);
  const problem = notice();
  const money = h("p", { class: "quiet available", "data-balances": "" });
  const radio = (name: "side" | "kind", value: Side | Kind, text: string) =>
    h("label", {}, h("input", { type: "radio", name, value, checked: value === "buy" || value === "limit", change: rewritten }), h("span", {}, text));
  const amount = field("order-amount", `Amount, ${base}`);
  const price = field("order-price", `Limit, ${quote}`);
  const percents = h("div", { class: "percents", role: "group", "aria-label": "Part of what is available" }, ...PERCENTS.map((part) => h("button", { type: "button", click: () => takePart(part) }, `${part}\u202f%`)));
  const life = h("select", { id: "order-life", change: rewritten }, ...LIVES.map(([value, text]) => h("option", { value }, text)));
  const lifeRow = h("div", { class: "field" }, h("label", { for: "order-life" }, "Lasts"), life);
  const sealedBox = h("input", { type: "checkbox", id: "order-sealed", checked: true, change: rewritten });
  const sealedWords = h("p", { class: "quiet sealed-words" });
  const sealedRow = h("div", { class: "field sealed", hidden: true }, h("label", { for: "order-sealed" }, sealedBox, " \u{1f512} Sealed"), sealedWords);
  const preview = h("p", { class: "preview quiet", "aria-live": "polite" });
  const instead = h("button", { type: "button", class: "plain", hidden: true, click: takeInstead });
  const button = h("button", { type: "submit", class: "place" }, "Buy");
  const leave = h("button", { type: "button", class: "plain", click: () => replaceOffer(null) }, "Keep it");
  const replacing = h("p", { class: "replacing", role: "status", hidden: true });
  const choices = (legend: string, ...labels: HTMLElement[]) => h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, legend), ...labels);
  const sides = choices("Side", radio("side", "buy", "Buy"), radio("side", "sell", "Sell"));
  const kinds = choices("Kind of order", radio("kind", "limit", "Limit"), radio("kind", "market", "Market"));
  const form = h("form", { class: "ticket", submit: place }, h("div", { class: "choices" }, sides, kinds), replacing, amount.element, percents, price.element, lifeRow, sealedRow, preview, instead, button);
  const orders = ordersTable(live, base, quote, { cancel: (row) => void cancel([row]), replace: replaceOffer, again });
  const all = h("button", { type: "button", class: "plain", hidden: true, click: () => void cancel(orders.resting()) }, "Cancel all");
  const standing = standings(live);
  const ticket = panel("Place an order", { class: "order" }, choice.element, standing.element, money, form, problem.element);
  const history = h("a", { href: href.accounts, hidden: true, class: "more", "data-history": "" }, "All orders, fills and transfers");
  const ownPanel = panel("Your orders", { class: "own-orders", aside: h("span", { class: "asides" }, all, history) }, orders.element);
  let limits: Limits | null = null;
  let sealing: SealState | null = null;
  let own: OrderBook | null = null;
  let available = new Map<string, string>();
  let book: Book | null = null;
  let busy = false;
  /** The offer in whose place the order shall go. */
  let old: Offer | null = null;
  /** An offer that stands for an exact order, and whether the order goes as an offer in any case. */
  let proposed = "";
  let offerOnly = false;
  /** What the node is asked now, what it said of which question, and why it says nothing. */
  let asked: { key: string; order: Order; terms: Terms; life: OrderLife } | null = null;
  let quoted: { asked: string; said: Said } | null = null;
  let noQuote: string | null = null;

  const quoting = refresh(loadQuote, tells({ say: (why) => ((noQuote = why), draw()) }), PAUSE_MS);
  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stops = [onChoice(changed), live.onBlock(() => (loading.request(), asked && quoting.request()))];

  function field(id: string, label: string) {
    const input = h("input", { id, inputmode: "decimal", autocomplete: "off", spellcheck: "false", required: true, input: rewritten });
    return { input, element: h("div", { class: "field" }, h("label", { for: id }, label), input) };
  }

  const chosen = (name: "side" | "kind") => form.querySelector<HTMLInputElement>(`input[name=${name}]:checked`)?.value;
  const side = (): Side => (chosen("side") === "sell" ? "sell" : "buy");
  const isMarket = () => chosen("kind") === "market";
  /** Whether the next order goes in an envelope: then the node is asked nothing about it. */
  const isSealed = () => sealedBox.checked && sealingOf(sealing, current())?.can === true;
  const lasts = (): OrderLife => (isMarket() ? "one batch" : (life.value as OrderLife));

  function written(): Order {
    const limit = isMarket() ? marketLimit(side(), book?.price ?? "") : price.input.value.trim();
    return { side: side(), base, quote, amount: amount.input.value.trim(), price: limit };
  }

  function changed(): void {
    own = null;
    available = new Map();
    const trader = current();
    history.hidden = trader === null;
    if (trader) history.href = href.account(trader.address);
    replaceOffer(null);
    choice.draw();
    loading.request();
  }

  async function known(): Promise<Limits> {
    return (limits = await get<Limits>("limits"));
  }

  /** The orders that this browser keeps of an account. */
  async function ownOf(address: string): Promise<OrderBook> {
    const { network } = await known();
    return (own ??= OrderBook.of(network, address));
  }

  /** Balances, what became of the orders, and what rests. */
  async function load(signal: AbortSignal): Promise<void> {
    const trader = current();
    if (!trader) return (holds(null), standing.show(null, []), orders.show([], []));
    const kept = await ownOf(trader.address);
    sealing = await getIfThere<SealState>("seal", signal);
    const seen = live.height;
    // In this order: an offer that the look finds placed is in the list unless it has ended.
    await kept.look(seen, signal);
    const held = await holdings(trader.address, signal);
    const { offers } = held.length === 0 ? { offers: [] } : await get<{ offers: Offer[] }>(`${path("accounts", trader.address)}/offers?limit=${OFFERS_MOST}`, signal);
    if (own !== kept) return;
    holds(held);
    standing.show(trader.address, [base, quote]);
    available = new Map(held.map((balance) => [balance.asset, balance.available]));
    orders.show(kept.orders, offers);
    all.hidden = orders.resting().length < 2;
    if (old && !offers.some((offer) => offer.id === old?.id)) replaceOffer(null);
    draw();
  }

  /** What the next batch would do with the order as it is written. */
  async function loadQuote(signal: AbortSignal): Promise<void> {
    if (asked === null) return;
    const { key, order, terms, life } = asked;
    const said = await askAbout(order, terms, life, signal);
    quoted = { asked: key, said };
    draw();
  }

  /** Where the order would be an exact one, the node is asked about that too: it needs more room than an offer. */
  async function askAbout(order: Order, terms: Terms, lifetime: OrderLife, signal?: AbortSignal): Promise<Said> {
    const offer = await get<Quote>(questionOf(terms), signal);
    const plan = planOf(order, lifetime, offer, live.assets);
    const isExact = typeof plan !== "string" && plan.kind === "exact";
    return { offer, exact: isExact ? await get<Quote>(exactQuestionOf(plan.terms), signal) : null };
  }

  /** The amount that a part of what is available sells or buys. */
  function takePart(percent: number): void {
    const order = written();
    const [pays, other] = [live.assets.get(side() === "sell" ? base : quote), live.assets.get(base)];
    if (!pays || !other) return;
    const fees = limits && limits.fee_asset === pays.symbol ? FEES_MOST * BigInt(limits.fee) : 0n;
    const at = side() === "sell" ? null : parseDecimal(order.price);
    if (side() === "buy" && at === null) return problem.say("Write a limit first: it says how much your money buys.");
    amount.input.value = partOf(available.get(pays.symbol) ?? "0", fees, percent, pays.decimals, at, other.decimals);
    draw();
  }

  /** The next order goes into the place of this offer; null for none. */
  function replaceOffer(offer: Offer | null): void {
    old = offer;
    const order = offer && described(offer, live.assets, base);
    replacing.hidden = order === null;
    for (const input of form.querySelectorAll<HTMLInputElement>("input[type=radio]")) {
      if (order && input.value === (input.name === "side" ? order.side : "limit")) input.checked = true;
      input.disabled = order !== null;
    }
    if (offer && order) {
      replacing.replaceChildren(`In the place of order ${orderName(offer.id)} `, leave);
      [amount.input.value, price.input.value, life.value] = [order.amount, order.price, "rests"];
      amount.input.focus();
    }
    draw();
  }

  /** An order is written into the ticket, to be looked at and sent. */
  function again(order: Order): void {
    replaceOffer(null);
    for (const input of form.querySelectorAll<HTMLInputElement>("input[type=radio]")) input.checked = input.value === order.side || input.value === "limit";
    [amount.input.value, price.input.value] = [order.amount, order.price];
    amount.input.focus();
    draw();
  }

  function draw(): void {
    const trader = current();
    const order = written();
    price.element.hidden = lifeRow.hidden = isMarket();
    // What is hidden cannot be filled in, so it must not be asked for.
    price.input.required = !isMarket();
    const valid = termsOf(order, live.assets);
    const what = typeof valid === "string" ? base : amountText(order);
    setText(button, old ? `Replace: ${side()} ${what}` : `${sideWord(order)} ${what}`);
    button.className = `place ${side()}`;
    button.disabled = trader === null || busy;
    percents.hidden = trader === null;
    const can = sealingOf(sealing, trader);
    sealedRow.hidden = can === null || trader === null;
    sealedBox.disabled = can?.can !== true;
    setText(sealedWords, can?.words ?? "");
    const of = (symbol: string) => `${whole(available.get(symbol) ?? "0", live.decimals(symbol))} ${symbol}`;
    setText(money, trader ? `Available: ${of(base)}, ${of(quote)}` : "Choose who trades: a demo has public accounts, or keep a key in this browser.");
    setText(preview, words(order));
  }

  function words(order: Order): string {
    instead.hidden = true;
    if (isMarket() && order.price === "") return "Nobody has traded here yet: write a limit.";
    if (order.amount === "" || order.price === "") return emptyWords(lasts());
    const terms = termsOf(order, live.assets);
    if (typeof terms === "string") return terms;
    const said = isSealed() ? askNothing() : saidOf(order, terms);
    const plan = planOf(order, lasts(), offerOnly ? null : (said?.offer ?? null), live.assets);
    if (typeof plan === "string") return plan;
    if (isSealed()) return sealedPlanWords(plan);
    proposeInstead(order, plan, said);
    return said === null && noQuote !== null ? noQuote : planWords(plan, terms, said?.offer ?? null, live.assets, said?.exact ?? null);
  }

  /** Whoever writes another order has not chosen how that one goes. */
  function rewritten(): void {
    offerOnly = false;
    draw();
  }

  /** Where there is no room for an exact purchase, an offer of about as much is proposed. */
  function proposeInstead(order: Order, plan: Plan, said: Said | null): void {
    const isRefused = plan.kind === "exact" && order.side === "buy" && said?.exact && said.exact.why !== "filled";
    proposed = isRefused ? insteadPrice(order, said.offer, live.assets) : "";
    instead.hidden = proposed === "";
    setText(instead, `Send it as an offer, at ${proposed} ${quote}`);
  }

  function takeInstead(): void {
    for (const input of form.querySelectorAll<HTMLInputElement>("input[name=kind]")) input.checked = input.value === "limit";
    [price.input.value, life.value, offerOnly] = [proposed, "rests", true];
    draw();
  }

  function askNothing(): null {
    [asked, quoted, noQuote] = [null, null, null];
    return null;
  }

  /** What the node says of terms; it is asked when the order or the book changes. */
  function saidOf(order: Order, terms: Terms): Said | null {
    const life = lasts();
    const key = `${questionOf(terms)} ${life}`;
    if (asked?.key !== key) {
      [asked, noQuote] = [{ key, order, terms, life }, null];
      quoting.request();
    }
    return quoted?.asked === key ? quoted.said : null;
  }

  async function place(event: Event): Promise<void> {
    event.preventDefault();
    const trader = current();
    const [order, lifetime, replaced] = [written(), lasts(), old];
    const terms = termsOf(order, live.assets);
    if (typeof terms === "string") return problem.say(terms);
    if (!trader || busy) return;
    busy = true;
    draw();
    problem.say(null);
    try {
      await spending([amount.input], () => send(trader, order, terms, lifetime, replaced));
    } catch (error) {
      problem.say(explain(error));
    }
    busy = false;
    if (own) orders.show(own.orders, orders.offers());
    draw();
    loading.request();
  }

  async function send(trader: Trader, order: Order, terms: Terms, lifetime: OrderLife, replaced: Offer | null): Promise<void> {
    const kept = await ownOf(trader.address);
    // How a purchase is placed depends on the book of this moment.
    const hides = isSealed();
    const said = !hides && (order.side === "buy" || replaced) ? await askAbout(order, terms, lifetime) : null;
    const plan = planOf(order, lifetime, offerOnly ? null : (said?.offer ?? null), live.assets);
    if (typeof plan === "string") throw new Told(plan);
    if (!replaced) return done(kept.place(trader, plan, live.assets, live.height, hides), replaced);
    if (plan.kind === "exact") throw new Told(wouldFill(said?.offer ?? null) ? "At this price the next batch would fill it whole. Cancel the order, and buy anew." : "A replacement waits in the book: choose how long it lasts.");
    return done(kept.replace(trader, replaced, plan, live.assets, live.height, hides), replaced);
  }

  async function done(sending: Promise<unknown>, replaced: Offer | null): Promise<void> {
    await sending;
    if (old === replaced) replaceOffer(null);
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

  changed();
  return {
    element: ticket,
    orders: ownPanel,
    /** Somebody pressed *Buy* or *Sell* outside of the ticket. */
    take(wanted: Side): void {
      const radio = form.querySelector<HTMLInputElement>(`input[name=side][value=${wanted}]`);
      if (radio && !radio.disabled) radio.checked = true;
      draw();
    },
    /** A new book: the guess changes, and an empty price becomes that of the last batch. */
    show(latest: Book): void {
      book = latest;
      const last = parseDecimal(latest.price ?? "");
      if (price.input.value === "" && last && document.activeElement !== price.input) price.input.value = plainText(roundSignificant(last, PRICE_DIGITS));
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
      standing.close();
    },
  };
}
