/**
 * The past of an account, as the index of the page's node has it: orders, fills and transfers, the newest first, page by page.
 * It is asked for again upon each event of the account, until the index has the event's block: a busy node indexes it later.
 */
import type { OrderFate, PastFill, PastOrder, PastTransfer, Units } from "@walras/client/bodies";
import { marketOf } from "@walras/client/placing";
import { divide, fromUnits } from "@walras/client/decimal";
import { slotOf } from "@walras/client/slot";
import { formatAmount, formatPrice } from "../amount";
import { ApiError, get, isFinal, path } from "../api";
import { facts, h, notice, panel } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table, type Cell, type Column } from "../table";
import { described, orderText, restText } from "../trade/placing";
import { brief, clock, count, dateAndClock, exactAdvice, orderEnd, orderName, placedBy, tells } from "../words";
import { askedCell, marketCell, priceCell, sideCell } from "./order-cells";

const PAGE = 50;
const PAUSE_MS = 2_000;

/** A page of a part of the history, with the cursors that led to it. */
type Page<Row> = { of: (string | null)[]; known_from: number; next: string | null; rows: Row[] };
type Part = { element: HTMLElement; request: (height: number) => void; update: () => void; close: () => void };
type Kind = "orders" | "fills" | "transfers";

export function historyPanel(live: Live, address: string) {
  const detail = orderDetail(live, address);
  const order = (number: string) => detail.open(number);
  const parts: Record<Kind, Part> = {
    orders: pages<PastOrder>(address, "orders", ordersTable(live, order)),
    fills: pages<PastFill>(address, "fills", fillsTable(live, order)),
    transfers: pages<PastTransfer>(address, "transfers", transfersTable(live)),
  };
  let shown: Kind = "orders";
  const choices = (["orders", "fills", "transfers"] as const).map((kind) => {
    const input = h("input", { type: "radio", name: "history", value: kind, checked: kind === shown, change: () => choose(kind) });
    return h("label", {}, input, h("span", {}, kind[0]!.toUpperCase() + kind.slice(1)));
  });
  const choice = h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Part of the history"), ...choices);
  const element = panel("History", { class: "history", aside: choice }, ...Object.values(parts).map((part) => part.element), detail.element);
  choose(shown);

  function choose(kind: Kind): void {
    shown = kind;
    for (const [name, part] of Object.entries(parts)) part.element.hidden = name !== kind;
    detail.show(kind !== "transfers");
    parts[kind].request(live.height);
  }

  return {
    element,
    /** Something of the account has changed in this block. */
    request(height: number): void {
      parts[shown].request(height);
      detail.request(height);
    },
    update(): void {
      for (const part of Object.values(parts)) part.update();
      detail.update();
    },
    close(): void {
      for (const part of Object.values(parts)) part.close();
      detail.close();
    },
  };
}

/** One part, a page at a time: the cursors of the newer pages are kept for the way back. */
function pages<Row>(address: string, kind: Kind, shown: { element: HTMLElement; show: (rows: Row[]) => void }): Part {
  const problem = notice();
  const begins = h("p", { class: "caption" });
  const newer = h("button", { type: "button", class: "plain", click: () => turn(cursors.slice(0, -1)) }, "Newer");
  const older = h("button", { type: "button", class: "plain", click: () => turn([...cursors, page?.next ?? null]) }, "Older");
  const turns = h("nav", { class: "pages", "aria-label": `Pages of ${kind}`, hidden: true }, newer, older);
  const element = h("div", {}, problem.element, shown.element, turns, begins);
  let cursors: (string | null)[] = [null];
  let page: Page<Row> | null = null;
  const loading = refresh(load, told, PAUSE_MS);
  let off = false;
  let changed = 0;

  /** Whoever turns the page does not wait for the pause between refreshes. */
  function turn(to: (string | null)[]): void {
    cursors = to;
    draw();
    loading.hurry();
  }

  async function load(signal: AbortSignal): Promise<void> {
    const asked = cursors;
    const cursor = asked.at(-1);
    const query = `limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`;
    const answer = await get<Omit<Page<Row>, "rows" | "of"> & { height: number } & Record<Kind, Row[]>>(`${path("accounts", address, kind)}?${query}`, signal);
    if (asked !== cursors) return;
    page = { of: asked, known_from: answer.known_from, next: answer.next ?? null, rows: answer[kind] };
    draw();
    if (answer.height < changed) loading.request();
  }

  function told(error: unknown): void {
    if (error instanceof ApiError && error.code === "no_history") {
      // The operator's choice; nothing that comes later changes it.
      off = true;
      problem.say("This node keeps no history of accounts. Nodes with `[history]` in their configuration do.");
      return;
    }
    // The page that was looked at is gone, or is of another node: the newest one is there.
    if (isFinal(error) && cursors.length > 1) {
      cursors = [null];
      loading.hurry();
    }
    tells(problem)(error);
  }

  function draw(): void {
    if (page === null) return;
    shown.show(page.rows);
    const isTurning = page.of !== cursors;
    newer.disabled = isTurning || cursors.length === 1;
    older.disabled = isTurning || page.next === null;
    turns.hidden = cursors.length === 1 && page.next === null;
    begins.hidden = page.next !== null || page.known_from <= 1;
    begins.textContent = `The history of this node begins at block ${count(page.known_from)}.`;
  }

  return {
    element,
    request(height: number): void {
      changed = height;
      if (!off) loading.request();
    },
    update: draw,
    close: () => loading.close(),
  };
}

const money = (live: Live, units: Units, symbol: string): string => `${formatAmount(units, live.decimals(symbol))} ${symbol}`;

/** An order as the page tells it. */
function orderWords(live: Live, order: PastOrder): string {
  const told = described(order, live.assets);
  return told ? orderText(told) : `${order.sell} → ${order.buy}`;
}

/**
 * How many fees a transaction of an order costs: an exact order four; an offer with an end one more for its removal, and so does
 * one of a session key that may rest, which ends with its key.
 */
function feesOf({ exact, life, sequence }: PastOrder): bigint {
  const ends = life.startsWith("until") || (life !== "one batch" && slotOf(BigInt(sequence)) !== 0);
  return exact ? 4n : ends ? 2n : 1n;
}

/** The average price of what was moved, in quote for one base. */
function average(live: Live, { sell, buy }: { sell: string; buy: string }, sold: Units, bought: Units): string {
  const [given, got] = [fromUnits(sold, live.decimals(sell)), fromUnits(bought, live.decimals(buy))];
  const isSale = marketOf(sell, buy, live.assets)?.[0] === sell;
  const [one, other] = isSale ? [given, got] : [got, given];
  return one && other && one.digits > 0n ? formatPrice(divide(other, one)) : "–";
}

const quoteOf = (live: Live, { sell, buy }: { sell: string; buy: string }): string => marketOf(sell, buy, live.assets)?.[1] ?? "";

const placeColumns = <Row extends { height: number; time_ms: number }>(): Column<Row>[] => [
  { name: "Time", class: "number first", cell: (row) => ({ text: clock(row.time_ms), title: dateAndClock(row.time_ms) }) },
  { name: "Block", class: "number wide", cell: (row) => ({ text: count(row.height), href: href.block(row.height) }) },
];

/** A button that opens an order's story; kept, so that the focus stays while rows change. */
function openers(open: (number: string) => void) {
  const kept = new Map<string, HTMLElement>();
  return (key: string, number: string): HTMLElement => {
    const known = kept.get(key);
    if (known) return known;
    const made = h("button", { type: "button", class: "plain", "aria-label": `Details: what became of order ${orderName(number)}`, click: () => open(number) }, "Details");
    kept.set(key, made);
    return made;
  };
}

function ordersTable(live: Live, open: (number: string) => void) {
  const opener = openers(open);
  return table<PastOrder>({
    caption: "Orders, the newest first",
    key: (order) => order.id,
    empty: "No orders in the blocks that this node has indexed.",
    columns: [
      ...placeColumns<PastOrder>(),
      { name: "Market", class: "wide", cell: (o) => marketCell(live, o) },
      { name: "Side", cell: (o) => sideCell(live, o) },
      { name: "Amount", class: "number", cell: (o) => askedCell(live, o) },
      { name: "Price", class: "number", cell: (o) => priceCell(live, o) },
      { name: "Rests", class: "number wide", cell: (o) => (o.left === "0" ? "–" : restText(o.left, o, live.assets)) },
      { name: "State", cell: (o) => ({ text: orderEnd(o.status, o.why, Boolean(o.exact)), href: href.transaction(o.id) }) },
      { name: "By", class: "wide", cell: (o) => placedBy(o.sequence) },
      { name: "Before its batch", class: "wide", cell: (o) => sealedCell(o) },
      { name: "Story", cell: (o) => opener(o.id, o.sequence) },
    ],
  });
}

/** Whether anybody could read an order before its batch was fixed. */
const sealedCell = ({ sealed_by }: PastOrder): Cell =>
  sealed_by === undefined ? "public" : { text: "\u{1f512} sealed", title: `Nobody read it before its batch was fixed: envelope ${sealed_by}`, href: href.transaction(sealed_by) };

function fillsTable(live: Live, open: (number: string) => void) {
  const opener = openers(open);
  const key = (fill: PastFill) => `${fill.height}/${fill.offer}`;
  return table<PastFill>({
    caption: "Fills, the newest first",
    key,
    empty: "No fills in the blocks that this node has indexed.",
    columns: [...fillColumns(live), { name: "Story", cell: (f) => opener(key(f), f.offer) }],
  });
}

const fillColumns = (live: Live): Column<PastFill>[] => [
  ...placeColumns<PastFill>(),
  { name: "Sold", class: "number", cell: (f) => money(live, f.sold, f.sell) },
  { name: "Bought", class: "number", cell: (f) => money(live, f.bought, f.buy) },
  { name: "Price", class: "number", cell: (f) => ({ text: average(live, f, f.sold, f.bought), title: quoteOf(live, f) }) },
  { name: "Rests", class: "number wide", cell: (f) => (f.left === "0" ? "–" : restText(f.left, { ...f, amount: "0" }, live.assets)) },
];

function transfersTable(live: Live) {
  return table<PastTransfer>({
    caption: "Transfers, the newest first",
    // A payment to oneself leaves and arrives.
    key: (transfer) => `${transfer.id}/${transfer.direction}/${transfer.asset}/${transfer.kind}`,
    empty: "No transfers in the blocks that this node has indexed.",
    columns: [
      ...placeColumns<PastTransfer>(),
      { name: "Kind", cell: (t) => ({ text: `${t.kind}, ${t.direction}`, href: href.transaction(t.id) }) },
      { name: "Amount", class: "number", cell: (t) => `${t.direction === "in" ? "+" : "−"}${money(live, t.amount, t.asset)}` },
      { name: "For", class: "wide", cell: (t) => (t.reference ? { text: t.reference.value, title: `${t.reference.kind}; as its sender says` } : "–") },
      { name: "With", class: "hex", cell: (t) => (t.with === null ? "–" : { text: brief(t.with, 4), title: t.with, href: href.account(t.with) }) },
    ],
  });
}

/** What became of one order: state and reason, average price, fee, and each of its fills. */
function orderDetail(live: Live, address: string) {
  const problem = notice();
  const names = { state: "State", price: "Average price", sold: "Sold", bought: "Bought", returned: "Returned", fee: "Fee", advice: "What helps", until: "May count up to block", others: "Others with its number or name" };
  const list = facts(names);
  list.element.classList.add("summary");
  const fills = table<PastFill>({ caption: "Fills of the order", key: (fill) => String(fill.height), empty: "No fills.", columns: fillColumns(live) });
  const heading = h("h3", { tabindex: -1 }, "Order");
  const close = h("button", { type: "button", class: "plain", click: () => become(null) }, "Close");
  const element = h("section", { class: "order-detail", "aria-label": "What became of an order", hidden: true }, h("header", { class: "panel-head" }, heading, close), problem.element, list.element, fills.element);
  let number: string | null = null;
  let fate: OrderFate | null = null;
  let fee: { units: Units; asset: string } | null = null;
  let isWanted = true;
  let changed = 0;
  const loading = refresh(load, tells(problem), PAUSE_MS);

  function become(to: string | null): void {
    number = to;
    fate = null;
    element.hidden = number === null || !isWanted;
    problem.say(null);
    for (const name of Object.keys(names) as (keyof typeof names)[]) list.set(name, "–");
    fills.show([]);
    if (number === null) return;
    heading.textContent = `Order ${number}`;
    loading.hurry();
  }

  async function load(signal: AbortSignal): Promise<void> {
    const asked = number;
    if (asked === null) return;
    const [answer, limits] = await Promise.all([
      get<OrderFate>(path("accounts", address, "orders", asked), signal),
      get<{ fee: Units; fee_asset: string }>("limits", signal),
    ]);
    fee = { units: limits.fee, asset: limits.fee_asset };
    if (asked !== number) return;
    fate = answer;
    update();
    if (answer.height < changed) loading.request();
  }

  /** What needs the decimals of assets, which may come later. */
  function update(): void {
    if (!fate || live.assets.size === 0) return;
    const { order, status, why, sold, bought, returned } = fate;
    const isExact = Boolean(order?.exact);
    list.set("state", orderEnd(status, why, isExact));
    const advice = isExact && status === "ended" ? exactAdvice(why) : "";
    list.set("advice", advice);
    list.show("advice", advice !== "");
    list.set("until", count(fate.until));
    list.show("until", status === "pending" || status === "refused");
    list.set("others", fate.others.join(", "));
    list.show("others", fate.others.length > 0);
    fills.show(fate.fills);
    if (!order) return;
    heading.textContent = `Order ${orderName(fate.sequence)}: ${orderWords(live, order)}`;
    list.set("price", bought === null ? "–" : average(live, order, sold, bought), quoteOf(live, order));
    list.set("sold", money(live, sold, order.sell));
    list.set("bought", bought === null ? "more fills than are listed" : money(live, bought, order.buy));
    list.set("returned", money(live, returned, order.sell));
    // A refused transaction uses nothing: neither its number nor its fee.
    const isPaid = order.outcome.result !== "refused";
    list.set("fee", !isPaid ? "none: it had no effect" : fee ? money(live, (feesOf(order) * BigInt(fee.units)).toString(), fee.asset) : "–", "for its transaction; the batch's commission is in the price");
  }

  return {
    element,
    open(wanted: string): void {
      become(wanted);
      heading.focus();
    },
    show(wanted: boolean): void {
      isWanted = wanted;
      element.hidden = number === null || !wanted;
    },
    request(height: number): void {
      changed = height;
      if (number !== null) loading.request();
    },
    update,
    close: () => loading.close(),
  };
}
