/**
 * How an order is put to the ledger. To sell is to offer the base, so an offer stops at the amount by itself. To buy is to sell the
 * quote, and an offer of it buys more than was asked for where the batch is better than its limit. So a purchase that the next batch
 * would fill whole goes as an exact order, which buys the amount and no more. One that would be filled in part, or wait, goes as an
 * offer: the last of it trades at its own limit, where its money is worth the amount.
 */
import type { Asset, Quote } from "./bodies.js";
import { divide, multiply, parseDecimal, plainText, roundSignificant, shift, subtract, type Decimal } from "./decimal.js";
import { exactTermsOf, exactly, termsOf, type ExactTerms, type Order, type Side, type Terms } from "./terms.js";

/** Digits of a price that is proposed. */
export const PRICE_DIGITS = 7;
const THOUSANDTH_MORE: Decimal = { digits: 1001n, scale: 3 };

/** How long an order may wait; `whole` takes part in one batch, whole or not at all. */
export type OrderLife = "rests" | "one batch" | "whole";
/** What the ledger is asked for. */
export type Plan = { kind: "limit"; order: Order; terms: Terms; life: "rests" | "one batch" } | { kind: "exact"; order: Order; terms: ExactTerms };

/** Whether the next batch would take all of the order, as the node found it. */
export const wouldFill = (quote: Pick<Quote, "sold" | "amount"> | null): boolean => quote !== null && BigInt(quote.sold) >= BigInt(quote.amount);

/** The way of an order, or a sentence that says what is wrong with it. `quote` is what the node says of its terms. */
export function planOf(order: Order, life: OrderLife, quote: Pick<Quote, "sold" | "amount"> | null, assets: Map<string, Asset>): Plan | string {
  const terms = termsOf(order, assets);
  if (typeof terms === "string") return terms;
  if (life !== "whole" && (order.side === "sell" || !wouldFill(quote))) return { kind: "limit", order, terms, life };
  const exact = exactly(order, assets);
  const asked = typeof exact === "string" ? exact : exactTermsOf(exact, assets);
  return typeof asked === "string" ? asked : { kind: "exact", order, terms: asked };
}

/**
 * The price of an offer that stands for a purchase of exactly so much, where offers leave no room for that: what the next batch would
 * charge and a thousandth more, but not beyond the order's own. So its money buys at most a thousandth too much at once. Nothing
 * where the batch would charge nothing.
 */
export function insteadPrice(order: Order, quote: Pick<Quote, "sold" | "bought">, assets: Map<string, Asset>): string {
  const [base, money, limit] = [assets.get(order.base), assets.get(order.quote), parseDecimal(order.price)];
  const units = (text: string): Decimal => ({ digits: BigInt(text), scale: 0 });
  const each = base && money && divide(units(quote.sold), units(quote.bought), PRICE_DIGITS + 2);
  if (!each || !limit || each.digits <= 0n) return "";
  const price = roundSignificant(multiply(shift(each, base.decimals - money.decimals), THOUSANDTH_MORE), PRICE_DIGITS);
  return plainText(subtract(price, limit).digits < 0n ? price : limit);
}

/** The market of two assets: the one with the higher number is its base. */
export function marketOf(a: string, b: string, assets: ReadonlyMap<string, Pick<Asset, "asset">>): [base: string, quote: string] | null {
  const [one, other] = [assets.get(a), assets.get(b)];
  if (!one || !other || one.asset === other.asset) return null;
  return one.asset > other.asset ? [a, b] : [b, a];
}

/** How much worse than the last price a market order may be filled: 5 %. */
const ROOM: Record<Side, Decimal> = { buy: { digits: 105n, scale: 2 }, sell: { digits: 95n, scale: 2 } };

/** The limit of a market order: the last price with some room, so that nobody pays any price. Nothing where there is none. */
export function marketLimit(side: Side, last: string): string {
  const price = parseDecimal(last);
  return price ? plainText(roundSignificant(multiply(price, ROOM[side]), PRICE_DIGITS)) : "";
}
