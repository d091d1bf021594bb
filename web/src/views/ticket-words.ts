/** What the ticket says before anything is signed. */
import { multiply, parseDecimal, plainText, trimZeros, type Decimal } from "@walras/client/decimal";
import type { Asset, Quote } from "@walras/client/bodies";
import { PRICE_DIGITS, type OrderLife, type Plan } from "@walras/client/placing";
import type { Order, Terms } from "@walras/client/terms";
import { format, formatPrice } from "../amount";
import { filledOf } from "../trade/orders";
import { orderText } from "../trade/placing";
import { exactAdvice } from "../words";

const LIVES: Record<OrderLife, string> = {
  rests: "An order waits in the book until it is filled or cancelled.",
  "one batch": "The order takes part in the next batch; what is not filled returns.",
  whole: "The whole amount trades in the next batch, or nothing does.",
};

/** Before anything is written. */
export const emptyWords = (life: OrderLife): string => `${LIVES[life]} All orders of a batch trade at one price.`;

const plain = (text: string): string => format(trimZeros(parseDecimal(text) ?? { digits: 0n, scale: 0 }, 0));

/** What becomes of an order that goes this way. `quote` is what the node says of its terms; null while it does not. */
export function planWords(plan: Plan, terms: Terms, quote: Quote | null, assets: Map<string, Asset>, exact: Quote | null = null): string {
  const { order } = plan;
  const filled = quote && filledOf(quote, order, terms, assets);
  if (plan.kind === "exact") return exactWords(order, filled, exact);
  if (!filled) return `${orderText(order)}. The node works out what the next batch would do with it.`;
  const price = `about ${formatPrice(parseDecimal(filled.price.toPrecision(PRICE_DIGITS)))} ${order.quote} each`;
  const rest = plan.life === "rests" ? "wait" : "return";
  if (filled.share >= 1) return `If nothing else came, the next batch would fill all of it, at ${price}.`;
  const more = plan.life === "rests" && order.side === "buy" ? ` It pays ${cost(order)} ${order.quote} at most; should a later batch be better than your limit, the same money buys more.` : "";
  if (filled.share === 0) return `In the next batch nobody would take it at this price: it would ${rest}.${more}`;
  return `If nothing else came, the next batch would fill ${(100 * filled.share).toPrecision(3)}\u202f% of it, at ${price}. The rest would ${rest}.${more}`;
}

/** Of a sealed order nobody is asked what the next batch would do with it: who is asked knows it. */
export function sealedPlanWords(plan: Plan): string {
  const { kind, order } = plan;
  const rest = plan.kind === "exact" ? "The whole amount trades in its batch, or nothing does." : plan.life === "rests" ? "What its batch does not fill waits in the book, where everybody sees it." : "What its batch does not fill returns.";
  return `${orderText({ ...order, isExact: kind === "exact" })}. No node is asked what the batch would do with it. ${rest}`;
}

function exactWords(order: Order, filled: { share: number; price: number } | null, exact: Quote | null): string {
  const verb = order.side === "buy" ? { does: "buy", other: "pay", bound: "at most" } : { does: "sell", other: "get", bound: "at least" };
  const does = `You ${verb.does} exactly ${plain(order.amount)} ${order.base} in the next batch and ${verb.other} ${verb.bound} ${cost(order)} ${order.quote}, or nothing happens.`;
  if (!filled) return does;
  if (filled.share < 1) return `${does} As things stand it would not: not all of it would trade at this price.`;
  if (exact && exact.why !== "filled") return `${does} As things stand it would not: ${exactAdvice(exact.why)}`;
  return `${does} As things stand: about ${formatPrice(parseDecimal(filled.price.toPrecision(PRICE_DIGITS)))} ${order.quote} each.`;
}

/** Amount times price. */
function cost({ amount, price }: Order): string {
  const [one, each] = [parseDecimal(amount), parseDecimal(price)];
  return one && each ? format(trimZeros(multiply(one, each), 0)) : "–";
}

/** A part of what is available, as an amount of the base: `percent` of it, less the fees that it pays itself. */
export function partOf(available: string, fees: bigint, percent: number, decimals: number, price: Decimal | null, baseDecimals: number): string {
  const units = (BigInt(available) - fees) * BigInt(percent);
  const money: Decimal = { digits: units > 0n ? units : 0n, scale: decimals + 2 };
  const places = 10n ** BigInt(baseDecimals);
  if (price === null) return plainText({ digits: (money.digits * places) / ten(money.scale), scale: baseDecimals });
  if (price.digits <= 0n) return "";
  // money ÷ price, rounded down to a unit of the base.
  return plainText({ digits: (money.digits * places * ten(price.scale)) / (price.digits * ten(money.scale)), scale: baseDecimals });
}

const ten = (power: number): bigint => 10n ** BigInt(power);
