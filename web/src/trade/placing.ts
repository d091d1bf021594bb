/**
 * How an order is put to the ledger. To sell is to offer the base, so an offer stops at the amount by itself. To buy is to sell the
 * quote, and an offer of it buys more than was asked for where the batch is better than its limit. So a purchase that the next batch
 * would fill whole goes as an exact order, which buys the amount and no more. One that would be filled in part, or wait, goes as an
 * offer: the last of it trades at its own limit, where its money is worth the amount.
 */
import type { Asset, Quote } from "@walras/client/bodies";
import { parseDecimal } from "@walras/client/decimal";
import { exactTermsOf, exactly, orderOf, termsOf, type Asked, type ExactTerms, type Order, type Terms } from "@walras/client/terms";
import { format } from "../amount";

/** How long an order may wait; `whole` takes part in one batch, whole or not at all. */
export type Life = "rests" | "one batch" | "whole";
/** What the ledger is asked for. */
export type Plan = { kind: "limit"; order: Order; terms: Terms; life: "rests" | "one batch" } | { kind: "exact"; order: Order; terms: ExactTerms };

/** Whether the next batch would take all of the order, as the node found it. */
export const wouldFill = (quote: Pick<Quote, "sold" | "amount"> | null): boolean => quote !== null && BigInt(quote.sold) >= BigInt(quote.amount);

/** The way of an order, or a sentence that says what is wrong with it. `quote` is what the node says of its terms. */
export function planOf(order: Order, life: Life, quote: Pick<Quote, "sold" | "amount"> | null, assets: Map<string, Asset>): Plan | string {
  const terms = termsOf(order, assets);
  if (typeof terms === "string") return terms;
  if (life !== "whole" && (order.side === "sell" || !wouldFill(quote))) return { kind: "limit", order, terms, life };
  const exact = exactly(order, assets);
  const asked = typeof exact === "string" ? exact : exactTermsOf(exact, assets);
  return typeof asked === "string" ? asked : { kind: "exact", order, terms: asked };
}

/** An order as the page tells it everywhere: side, amount of base, price. */
export type Described = Order & { isExact: boolean };

/** The market of two assets: the one with the higher number is the base. */
export function marketOf(a: string, b: string, assets: ReadonlyMap<string, Asset>): [base: Asset, quote: Asset] | null {
  const [one, other] = [assets.get(a), assets.get(b)];
  if (!one || !other) return null;
  return one.asset > other.asset ? [one, other] : [other, one];
}

/** Orders that were told before: tables tell the same ones again with each block. */
const told = new Map<string, Described | null>();
const TOLD_MOST = 2_000;

/** What terms ask for, in the terms of their market, or of the pair with this base; null where the assets are not known. */
export function described(asked: Asked, assets: ReadonlyMap<string, Asset>, base?: string): Described | null {
  const market = marketOf(asked.sell, asked.buy, assets);
  if (!market) return null;
  const { sell, buy, amount, limit, exact } = asked;
  const scale = market.map(({ asset, decimals }) => `${asset}:${decimals}`).join();
  const key = [scale, sell, buy, amount, limit, exact?.side, exact?.units, exact?.bound, base].join(" ");
  const known = told.get(key);
  if (known !== undefined) return known;
  const [first, second] = base === market[1].symbol ? [market[1], market[0]] : market;
  const order = orderOf(asked, first, second);
  if (told.size >= TOLD_MOST) told.clear();
  const made = order && { ...order, isExact: Boolean(exact) };
  told.set(key, made);
  return made;
}

const grouped = (text: string): string => {
  const value = parseDecimal(text);
  return value ? format(value) : text;
};

export const sideWord = ({ side }: { side: string }): string => (side === "buy" ? "Buy" : "Sell");

/** The one sentence of an order: `Buy 50 EUR at 1.2 USD`. */
export function orderText(order: Order & { isExact?: boolean }): string {
  return `${sideWord(order)} ${order.isExact ? "exactly " : ""}${grouped(order.amount)} ${order.base} at ${grouped(order.price)} ${order.quote}`;
}

/** The amount and the price as people read them. */
export const amountText = ({ amount, base }: Order): string => `${grouped(amount)} ${base}`;
export const priceText = ({ price }: Order): string => grouped(price);

/** What rests of an offer, in its base: `units` are those of the asset that it sells. */
export function restText(units: string, asked: Asked, assets: ReadonlyMap<string, Asset>, base?: string): string {
  const order = described({ ...asked, amount: units }, assets, base);
  return order ? amountText(order) : units;
}
