/**
 * What an order, a trade and a page of the ccxt class are. Pure: nothing is asked here.
 *
 * An order has the same numbers in every call and stream. They follow from what the node says that it moved in all (`sold`
 * and `bought` of its index), so the trades of an order sum to the order:
 *
 * - `amount`: as it was placed; of a purchase that waited in the book and got more for its money, what it got
 * - `filled` and `cost`: what it traded of the base and of the quote; `remaining`: `amount` less `filled`
 * - `average`: `cost` over `filled`; undefined if it did not trade
 * - `status`: `open`, `closed` (traded whole, but for a rest too small for an offer), `canceled`, `expired` or `rejected`
 */
import type { Dict } from "ccxt";
import { divide, parseDecimal, plainText, subtract, type Decimal } from "./decimal.js";
import type { OrderTerms, PastFill, PastOrder } from "./models.js";

export type Side = "buy" | "sell";
/** What an order sold and bought in all. */
export type Moved = { sold: string; bought: string };

const ONE: Decimal = { digits: 1n, scale: 0 };
const ENDED: Record<string, string> = { filled: "closed", returned: "closed", expired: "expired" };
const STATUSES: Record<string, string> = { resting: "open", pending: "open", refused: "rejected", void: "rejected" };

const decimal = (text: string | null | undefined): Decimal => parseDecimal(text ?? "0") ?? { digits: 0n, scale: 0 };
const isZero = (value: Decimal): boolean => value.digits === 0n;
const larger = (a: Decimal, b: Decimal): Decimal => (subtract(a, b).digits >= 0n ? a : b);
/** A quotient of so many digits; undefined where there is none. */
const ratio = (a: Decimal, b: Decimal, digits = 17): string | undefined => (isZero(b) ? undefined : plainText(divide(a, b, digits) ?? ONE));
const add = (a: Decimal, b: Decimal): Decimal => subtract(a, { digits: -b.digits, scale: b.scale });

/** What bots print and store: numbers without bound as text. */
export const told = (info: unknown): Dict =>
  JSON.parse(JSON.stringify(info, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value))) as Dict;

/** The market and side of an offer: offers of the base sell it, offers of the quote buy it. */
export function marketOf(markets: Dict | undefined, { sell, buy }: { sell: string; buy: string }): { symbol: string; side: Side } {
  const isSell = `${sell}/${buy}` in (markets ?? {});
  return { symbol: isSell ? `${sell}/${buy}` : `${buy}/${sell}`, side: isSell ? "sell" : "buy" };
}

/** What a trade costs: only transactions have fees. Said in numbers, since bots ask for ever where none are. */
const noFee = (symbol: string): Dict => ({ currency: symbol.slice(symbol.indexOf("/") + 1), cost: 0, rate: 0 });

/** An order that has sold and bought so much; null where nobody knows how much. */
export function orderRow(terms: OrderTerms, moved: Moved | null, status: string, more: Dict): Dict {
  const { base, quote, side, price } = terms;
  const symbol = `${base}/${quote}`;
  const [filled, cost] = moved === null ? [] : (side === "sell" ? [moved.sold, moved.bought] : [moved.bought, moved.sold]).map(decimal);
  const amount = larger(decimal(terms.amount), filled ?? decimal("0"));
  return {
    ...{ symbol, side, price, type: "limit", timeInForce: "GTC", postOnly: false, amount: plainText(amount) },
    filled: filled && plainText(filled),
    remaining: filled && plainText(subtract(amount, filled)),
    cost: cost && plainText(cost),
    average: filled && cost && ratio(cost, filled),
    ...{ status, fee: noFee(symbol), trades: undefined, ...more },
  };
}

/** An order of the node's index. */
export function pastRow(past: PastOrder, terms: OrderTerms, moved: Moved, info: unknown): Dict {
  // An exact order is filled whole in its batch or not at all.
  const timeInForce = past.exact ? "FOK" : past.life === "one batch" ? "IOC" : "GTC";
  const status = STATUSES[past.status] ?? ENDED[past.why ?? ""] ?? "canceled";
  const more = { id: String(past.sequence), clientOrderId: past.client ?? undefined, timeInForce, timestamp: past.time_ms, info: told(info) };
  return orderRow(terms, moved, status, more);
}

/** A trade from a fill. */
export function tradeRow(markets: Dict | undefined, fill: PastFill): Dict {
  const { symbol, side } = marketOf(markets, fill);
  const [amount, cost] = (side === "sell" ? [fill.sold, fill.bought] : [fill.bought, fill.sold]) as [string, string];
  const price = ratio(decimal(cost), decimal(amount));
  const id = `${fill.height}-${fill.offer}`;
  return { id, order: String(fill.offer), symbol, side, type: "limit", amount, cost, price, fee: noFee(symbol), timestamp: fill.time_ms, info: told(fill) };
}

/** What fills sum to. */
export function sumsOf(fills: PastFill[]): Moved {
  const sum = (texts: string[]) => plainText(texts.map(decimal).reduce(add, decimal("0")));
  return { sold: sum(fills.map((fill) => fill.sold)), bought: sum(fills.map((fill) => fill.bought)) };
}

/**
 * Of rows, the oldest first: the last `limit`, or from `since` on the first `limit`.
 *
 * Rows of one time, which are of one block, stay together: so a page may have more than `limit`, and the next one, from the
 * time after its last row, leaves none out and repeats none.
 */
export function pageOf<T>(rows: T[], timeOf: (row: T) => number, since?: number, limit?: number): T[] {
  if (since === undefined) return limit === undefined ? rows : rows.slice(Math.max(0, rows.length - limit));
  const later = rows.filter((row) => timeOf(row) >= since);
  let end = limit ?? later.length;
  while (end > 0 && end < later.length && timeOf(later[end]!) === timeOf(later[end - 1]!)) end += 1;
  return later.slice(0, end);
}
