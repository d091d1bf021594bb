/** The table of an account's own orders on a pair: what this browser has placed, and what else rests there. */
import { divide, fromUnits, shift, trimZeros } from "@walras/client/decimal";
import type { Offer } from "@walras/client/bodies";
import { slotOf } from "@walras/client/slot";
import { format, formatPrice } from "../amount";
import { h } from "../dom";
import type { Live } from "../live";
import { href } from "../router";
import { table } from "../table";
import type { Order } from "@walras/client/terms";
import { lockedOf, type KeptOrder } from "../trade/orders";
import { described, orderText, restText } from "../trade/placing";
import { clock, exactEnd, orderName, placedBy } from "../words";

/** Units as people count them, without zeros at the end. */
export function whole(units: string, decimals: number): string {
  const value = fromUnits(units, decimals);
  return value ? format(trimZeros(value, 0)) : units;
}

const bySession = (order: string): string => (slotOf(BigInt(order)) === 0 ? "" : `, by ${placedBy(order)}`);

const isUnfilled = ({ state, order }: KeptOrder): boolean => state.is === "exact" && state.why !== "filled" && order.price !== undefined;

type Row = { key: string; placed: KeptOrder | null; offer: Offer | null };
type Acts = { cancel: (offer: Offer) => void; replace: (offer: Offer) => void; again: (order: Order) => void };

/** What this browser has placed on the pair, and what else of the account rests there. */
export function ordersTable(live: Live, base: string, quote: string, acts: Acts) {
  let latest: Offer[] = [];
  let rows: Row[] = [];
  const buttons = new Map<string, HTMLElement>();
  const shown = table<Row>({
    caption: "Your orders, the newest first",
    key: (row) => row.key,
    empty: "No orders of this account on this pair.",
    columns: [
      { name: "Placed", class: "number first wide", cell: (row) => (row.placed ? clock(row.placed.placed_ms) : "–") },
      { name: "Order", class: "prose", cell: (row) => ({ text: words(row) }) },
      { name: "State", class: "prose", cell: (row) => state(row) },
      { name: "Action", class: "acts", cell: (row) => (row.offer ? actsOn(row.offer) : row.placed && isUnfilled(row.placed) ? againOf(row.placed) : "") },
    ],
  });

  function actsOn(offer: Offer): HTMLElement {
    const known = buttons.get(offer.id);
    if (known) return known;
    const one = (text: string, act: () => void) => h("button", { type: "button", class: "plain", "aria-label": `${text} order ${orderName(offer.id)}`, click: act }, text);
    // What rests of it may have changed since the buttons were made.
    const now = () => latest.find(({ id }) => id === offer.id) ?? offer;
    const made = h("span", { class: "actions" }, one("Replace", () => acts.replace(now())), one("Cancel", () => acts.cancel(now())));
    buttons.set(offer.id, made);
    return made;
  }

  /** An order for a whole amount that found no room is written again with one press. */
  function againOf({ sequence, order }: KeptOrder): HTMLElement {
    const known = buttons.get(`again ${sequence}`);
    if (known) return known;
    const made = h("button", { type: "button", class: "plain", "aria-label": `Write order ${orderName(sequence)} again`, click: () => acts.again(order) }, "Again");
    buttons.set(`again ${sequence}`, made);
    return made;
  }

  function words({ placed, offer }: Row): string {
    if (placed) return placedWords(placed);
    const order = offer && described(offer, live.assets, base);
    return order && offer ? `${orderText(order)}${bySession(offer.id)}` : "–";
  }

  /** As it was placed. What an earlier page kept has a bound in place of the price. */
  function placedWords({ order, kind, terms, sequence, envelope }: KeptOrder): string {
    const isExact = kind === "exact";
    const asked = isExact ? { ...terms, amount: lockedOf({ kind, order, terms }), limit: "1", exact: terms } : terms;
    const told = order.price === undefined ? described(asked, live.assets, base) : order;
    return told ? `${orderText({ ...told, isExact })}${bySession(sequence)}${envelope === undefined ? "" : ", \u{1f512} sealed"}` : "–";
  }

  function state({ placed, offer }: Row) {
    const asked = placed && placed.kind !== "exact" ? placed.terms : offer;
    const left = offer && asked && `${restText(offer.amount, asked, live.assets, base)} rest`;
    if (!placed) return { text: left ?? "–" };
    const is = placed.state;
    const to = placed.id === null ? {} : { href: href.transaction(placed.id) };
    switch (is.is) {
      case "sent":
        return { text: left ?? (placed.envelope === undefined ? "Sent, not yet in a block" : "Sent sealed, not yet in a block") };
      case "refused":
        return { text: `Refused: ${is.why}` };
      case "void":
        return { text: "Void: no block can contain it any more" };
      case "cancelled":
        return { text: "Cancelled" };
      case "replaced":
        return { text: "Replaced" };
      case "exact":
        return { text: is.why === "filled" ? `Filled exactly, at ${average(placed)} ${quote}` : `${exactEnd(is.why)}; ${back(placed, is.returned)}`, ...to };
      case "placed": {
        if (left) return { text: `${filledShare(offer.amount, lockedOf(placed))}${left}`, ...to };
        if (BigInt(is.returned ?? "0") > 0n) return { text: returnedWords(placed, is.returned ?? "0"), ...to };
        return { text: is.left === "0" ? `Filled at ${average(placed)} ${quote}` : "Ended: filled later, or cancelled elsewhere", ...to };
      }
    }
  }

  /** What became of an order for one batch that was not filled whole. */
  function returnedWords(placed: KeptOrder, returned: string): string {
    const share = filledShare(returned, lockedOf(placed));
    return share === "" ? `Not filled: ${back(placed, returned)}` : `${share.slice(0, -2)} at ${average(placed)} ${quote}, ${back(placed, returned)}`;
  }

  const back = ({ terms }: KeptOrder, returned: string) => `${whole(returned, live.decimals(terms.sell))} ${terms.sell} returned`;

  /** The price of what its first batch filled, in quote for one base. */
  function average(placed: KeptOrder): string {
    if (placed.state.is !== "placed" && placed.state.is !== "exact") return "–";
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
      rows = mine.map((placed) => ({ key: `own ${placed.sequence} ${placed.until}`, placed, offer: ["sent", "placed"].includes(placed.state.is) ? (rest.get(placed.sequence) ?? null) : null }));
      const known = new Set(rows.map((row) => row.offer?.id));
      rows.push(...latest.filter((offer) => !known.has(offer.id)).map((offer) => ({ key: `rests ${offer.id}`, placed: null, offer })));
      shown.show(rows);
    },
    offers: () => latest,
    resting: () => latest,
  };
}
