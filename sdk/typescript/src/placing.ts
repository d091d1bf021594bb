/**
 * How an order is put to the ledger. To sell is to offer the base, so an offer stops at the amount by itself. To buy is to sell the
 * quote, and an offer of it buys more than was asked for where the batch is better than its limit. So a purchase that the next batch
 * would fill whole goes as an exact order, which buys the amount and no more. One that would be filled in part, or wait, goes as an
 * offer: the last of it trades at its own limit, where its money is worth the amount. So does one for which offers leave no room: an
 * exact order takes what they leave.
 */
import type { Asset, Quote } from "./bodies.js";
import { multiply, parseDecimal, plainText, roundSignificant, type Decimal } from "./decimal.js";
import { exactTermsOf, exactly, termsOf, type ExactTerms, type Order, type Side, type Terms } from "./terms.js";

/** How long an order may wait; `whole` takes part in one batch, whole or not at all. */
export type OrderLife = "rests" | "one batch" | "whole";
/** What the ledger is asked for. */
/** `noRoom` says why an offer stands for an exact order. */
export type Plan = { kind: "limit"; order: Order; terms: Terms; life: "rests" | "one batch"; noRoom?: string } | { kind: "exact"; order: Order; terms: ExactTerms };

/** Whether the next batch would take all of the order, as the node found it. */
export const wouldFill = (quote: Pick<Quote, "sold" | "amount"> | null): boolean => quote !== null && BigInt(quote.sold) >= BigInt(quote.amount);

/**
 * The way of an order, or a sentence that says what is wrong with it. `quote` is what the node says of its terms, and `exact` what it
 * says of the exact order.
 */
export function planOf(order: Order, life: OrderLife, quote: Pick<Quote, "sold" | "amount"> | null, assets: Map<string, Asset>, exact: Pick<Quote, "why"> | null = null): Plan | string {
  const terms = termsOf(order, assets);
  if (typeof terms === "string") return terms;
  if (life !== "whole" && (order.side === "sell" || !wouldFill(quote))) return { kind: "limit", order, terms, life };
  if (life !== "whole" && exact && exact.why !== "filled") return { kind: "limit", order, terms, life, noRoom: exact.why };
  const whole = exactly(order, assets);
  const asked = typeof whole === "string" ? whole : exactTermsOf(whole, assets);
  return typeof asked === "string" ? asked : { kind: "exact", order, terms: asked };
}

/** The market of two assets: the one with the higher number is its base. */
export function marketOf(a: string, b: string, assets: ReadonlyMap<string, Pick<Asset, "asset">>): [base: string, quote: string] | null {
  const [one, other] = [assets.get(a), assets.get(b)];
  if (!one || !other || one.asset === other.asset) return null;
  return one.asset > other.asset ? [a, b] : [b, a];
}

/** Digits of a price that is proposed. */
export const PRICE_DIGITS = 7;
/** How much worse than the last price a market order may be filled: 5 %. */
const ROOM: Record<Side, Decimal> = { buy: { digits: 105n, scale: 2 }, sell: { digits: 95n, scale: 2 } };

/** The limit of a market order: the last price with some room, so that nobody pays any price. Nothing where there is none. */
export function marketLimit(side: Side, last: string): string {
  const price = parseDecimal(last);
  return price ? plainText(roundSignificant(multiply(price, ROOM[side]), PRICE_DIGITS)) : "";
}
