/** Orders from the page: who trades, the order with a look at what it would do, and what became of earlier ones. */
import { plainText, roundSignificant, divide, fromUnits, parseDecimal, shift, trimZeros } from "@walras/client/decimal";
import { format, formatPrice } from "../amount";
import type { Book, Offer } from "@walras/client/bodies";
import { get, path } from "../api";
import { h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table } from "../table";
import { termsOf, type Order, type Side } from "@walras/client/terms";
import { OrderBook, balances, previewOf, type KeptOrder } from "../trade/orders";
import { current, onChoice } from "../trade/session";
import { clock, explain } from "../words";
import { traderChoice } from "./trader";

const PAUSE_MS = 1_000;
const OFFERS_MOST = 1_000;
/** Digits of the price that is proposed. */
const PRICE_DIGITS = 7;

export function ticketPanels(live: Live, base: string, quote: string) {
  const choice = traderChoice(live);
  const problem = notice();
  const money = h("p", { class: "quiet", "data-balances": "" });
  const side = (value: Side, text: string) =>
    h("label", {}, h("input", { type: "radio", name: "side", value, checked: value === "buy", change: draw }), h("span", {}, text));
  const amount = field("order-amount", `Amount, ${base}`);
  const price = field("order-price", `Limit, ${quote}`);
  const once = h("input", { type: "checkbox", id: "order-once", change: draw });
  const life = h("label", { class: "once" }, once, h("span", {}, "One batch only: what is not filled returns"));
  const preview = h("p", { class: "preview quiet", "aria-live": "polite" });
  const button = h("button", { type: "submit", class: "place" }, "Buy");
  const form = h("form", { class: "ticket", submit: place }, h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Side"), side("buy", "Buy"), side("sell", "Sell")), amount.element, price.element, life, preview, button);
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

  const loading = refresh(load, (error) => problem.say(explain(error)), PAUSE_MS);
  const stops = [onChoice(changed), live.onBlock(() => loading.request())];
  changed();

  function field(id: string, label: string) {
    const input = h("input", { id, inputmode: "decimal", autocomplete: "off", spellcheck: "false", required: true, input: draw });
    return { input, element: h("div", { class: "field" }, h("label", { for: id }, label), input) };
  }

  function written(): Order {
    const chosen = form.querySelector<HTMLInputElement>("input[name=side]:checked")?.value === "sell" ? "sell" : "buy";
    return { side: chosen, base, quote, amount: amount.input.value.trim(), price: price.input.value.trim() };
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

  function draw(): void {
    const order = written();
    const trader = current();
    setText(button, `${order.side === "buy" ? "Buy" : "Sell"} ${base}`);
    button.disabled = trader === null || busy;
    const of = (symbol: string) => `${whole(available.get(symbol) ?? "0", live.decimals(symbol))} ${symbol}`;
    setText(money, trader ? `Available: ${of(base)}, ${of(quote)}` : "Choose who trades: a demo has public accounts, or keep a key in this browser.");
    if (order.amount === "" || order.price === "") return setText(preview, `${once.checked ? "The order takes part in one batch." : "An order waits in the book until it is filled or cancelled."} All orders of a batch trade at one price.`);
    const terms = termsOf(order, live.assets);
    if (typeof terms === "string") return setText(preview, terms);
    const guess = book && previewOf(order, terms, book, live.assets);
    if (!guess || !book) return setText(preview, "");
    const [gives, gets] = [`${format(trimZeros(guess.gives, 0))} ${terms.sell}`, `${format(trimZeros(guess.gets, 0))} ${terms.buy}`];
    const share = Math.floor(100 * guess.share);
    const filled = share >= 100 ? "the book after the last batch would have filled it at once" : `the book after the last batch would have filled ${share}\u202f% at once; the rest would ${once.checked ? "return" : "wait"}`;
    setText(preview, `You sell ${gives} and get at least ${gets}, or more at a better price. As a guess, ${filled}.`);
  }

  async function place(event: Event): Promise<void> {
    event.preventDefault();
    const trader = current();
    const order = written();
    const terms = termsOf(order, live.assets);
    if (typeof terms === "string") return problem.say(terms);
    if (!trader || busy) return;
    busy = true;
    draw();
    problem.say(null);
    try {
      await (await ownOf(trader.address)).place(trader, order, terms, once.checked ? "one batch" : "rests", live.assets, live.height);
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
      stops.forEach((stop) => stop());
      loading.close();
    },
  };
}

/** Units as people count them, without zeros at the end. */
function whole(units: string, decimals: number): string {
  const value = fromUnits(units, decimals);
  return value ? format(trimZeros(value, 0)) : units;
}

type Row = { key: string; placed: KeptOrder | null; offer: Offer | null };

/** What this browser has placed on the pair, and what else of the account rests there. */
function ordersTable(live: Live, base: string, quote: string, cancel: (offer: Offer) => void) {
  let latest: Offer[] = [];
  let rows: Row[] = [];
  const buttons = new Map<string, HTMLElement>();
  const shown = table<Row>({
    caption: "Your orders, the newest first",
    key: (row) => row.key,
    empty: "No orders of this account on this pair.",
    columns: [
      { name: "Placed", class: "number first", cell: (row) => (row.placed ? clock(row.placed.placed_ms) : "–") },
      { name: "Order", cell: (row) => ({ text: words(row) }) },
      { name: "State", cell: (row) => state(row) },
      { name: "Action", cell: (row) => (row.offer ? cancelButton(row.offer) : "") },
    ],
  });

  function cancelButton(offer: Offer): HTMLElement {
    const known = buttons.get(offer.id);
    if (known) return known;
    const made = h("button", { type: "button", class: "plain", "aria-label": `Cancel order ${offer.id}`, click: () => cancel(offer) }, "Cancel");
    buttons.set(offer.id, made);
    return made;
  }

  function words({ placed, offer }: Row): string {
    if (placed) return `${placed.order.side === "buy" ? "Buy" : "Sell"} ${placed.order.amount} ${base} at ${placed.order.price} ${quote}`;
    if (!offer) return "–";
    const price = parseDecimal(offer.price);
    const of = offer.sell === base ? price : price && divide({ digits: 1n, scale: 0 }, price);
    return `${offer.sell === base ? "Sell" : "Buy with"} ${whole(offer.amount, live.decimals(offer.sell))} ${offer.sell} at ${formatPrice(of)} ${quote}`;
  }

  function state({ placed, offer }: Row) {
    const left = offer && `${whole(offer.amount, live.decimals(offer.sell))} ${offer.sell} rest`;
    if (!placed) return { text: left ?? "–" };
    const { terms, state: is } = placed;
    switch (is.is) {
      case "sent":
        return { text: "Sent, not yet in a block" };
      case "refused":
        return { text: `Refused: ${is.why}` };
      case "void":
        return { text: "Void: no block can contain it any more" };
      case "cancelled":
        return { text: "Cancelled" };
      case "placed": {
        const to = placed.id === null ? {} : { href: href.transaction(placed.id) };
        if (left) return { text: `${filledShare(offer.amount, terms.amount)}${left}`, ...to };
        if (BigInt(is.returned ?? "0") > 0n) return { text: returnedWords(placed, is.returned ?? "0"), ...to };
        return { text: is.left === "0" ? `Filled at ${average(placed)} ${quote}` : "Ended: filled later, or cancelled elsewhere", ...to };
      }
    }
  }

  /** What became of an order for one batch that was not filled whole. */
  function returnedWords(placed: KeptOrder, returned: string): string {
    const back = `${whole(returned, live.decimals(placed.terms.sell))} ${placed.terms.sell} returned`;
    const share = filledShare(returned, placed.terms.amount);
    return share === "" ? `Not filled: ${back}` : `${share.slice(0, -2)} at ${average(placed)} ${quote}, ${back}`;
  }

  /** The price of what its first batch filled, in quote for one base. */
  function average(placed: KeptOrder): string {
    if (placed.state.is !== "placed") return "–";
    const { sold, bought } = placed.state;
    const [inBase, inQuote] = placed.order.side === "sell" ? [sold, bought] : [bought, sold];
    const [one, other] = [fromUnits(inBase, live.decimals(base)), fromUnits(inQuote, live.decimals(quote))];
    return one && other ? formatPrice(divide(other, one)) : "–";
  }

  function filledShare(left: string, of: string): string {
    const part = divide({ digits: 100n * (BigInt(of) - BigInt(left)), scale: 0 }, { digits: BigInt(of), scale: 0 }, 3);
    return part && part.digits > 0n ? `${format(trimZeros(shift(part, 0), 0))}\u202f% filled, ` : "";
  }

  return {
    element: shown.element,
    show(orders: KeptOrder[], offers: Offer[]): void {
      latest = offers.filter((offer) => [offer.sell, offer.buy].sort().join() === [base, quote].sort().join());
      const mine = orders.filter((order) => order.order.base === base && order.order.quote === quote);
      const rest = new Map(latest.map((offer) => [offer.id, offer]));
      rows = mine.map((placed) => ({ key: `own ${placed.sequence} ${placed.until}`, placed, offer: placed.state.is === "placed" ? (rest.get(placed.sequence) ?? null) : null }));
      const known = new Set(rows.map((row) => row.offer?.id));
      rows.push(...latest.filter((offer) => !known.has(offer.id)).map((offer) => ({ key: `rests ${offer.id}`, placed: null, offer })));
      shown.show(rows);
    },
    offers: () => latest,
    resting: () => latest,
  };
}
