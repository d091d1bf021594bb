/**
 * How a program's purchase of an amount of the base is placed. What the next batch would not fill whole goes as an offer of what the
 * amount costs: what trades of it at once trades at its limit, and the rest waits. What it would fill whole goes as an exact order,
 * which buys the amount and no more. An exact order takes what the offers of a batch leave, so in a thin book there may be no room
 * for it. Then it goes as an offer of what the batch would charge, so that its money buys about the amount, with 5 % of room below its
 * own limit: prices move from batch to batch.
 *
 * All of these are forms of one purchase: one of them that was sent without a result stands for the purchase.
 */
import { inverseLimit, type AssetInfo } from "./assets.js";
import type { Quote } from "./bodies.js";
import { divide, multiply, plainText, subtract, type Decimal } from "./decimal.js";
import { encodeOperation, type Life, type Operation } from "./encoding.js";
import { wouldFill } from "./placing.js";
import { boundOf } from "./terms.js";
import { toHex } from "./typed.js";

export type Purchase = { base: AssetInfo; quote: AssetInfo; units: bigint; limit: Decimal; named: { life?: Life; client?: string } };
type Offer = Extract<Operation, { kind: "CreateOffer" }>;

/** Digits of a tightened limit. */
const DIGITS = 7;
/** How often an offer is tightened at most, and how much more than the amount may be bought: a thousandth. */
const [TRIES, MORE] = [4, 1000n];
const ROOM: Decimal = { digits: 105n, scale: 2 };

/** The offer of what a purchase costs at its limit, or at what a batch would charge, in quote units per base unit. */
export function offerOf({ base, quote, units, limit, named }: Purchase, charged = limit): Offer {
  const { cost } = inverseLimit(units, charged);
  const roomy = multiply(charged, ROOM);
  const { limit: least } = inverseLimit(units, subtract(roomy, limit).digits < 0n ? roomy : limit);
  return { kind: "CreateOffer", sell: quote.number, buy: base.number, amount: cost, limit: plainText(least), ...named };
}

/** The exact order; nothing where the amount costs less than a unit. */
export function exactOf({ base, quote, units, limit, named }: Purchase): Operation | null {
  const bound = boundOf("buy", multiply({ digits: units, scale: 0 }, limit));
  const { client } = named;
  return bound > 0n ? { kind: "Exact", sell: quote.number, buy: base.number, side: "buy", units, bound, ...(client === undefined ? {} : { client }) } : null;
}

/** An offer of what the next batch would charge, as `ask` tells of offers; the usual one where it would not fill it. */
export async function tightened(purchase: Purchase, ask: (offer: Offer) => Promise<Quote>): Promise<Offer> {
  let offer = offerOf(purchase);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const told = await ask(offer);
    const bought = BigInt(told.bought);
    if (!wouldFill(told) || bought <= purchase.units + purchase.units / MORE) return offer;
    const charged = divide({ digits: BigInt(told.sold), scale: 0 }, { digits: bought, scale: 0 }, DIGITS);
    if (!charged || subtract(charged, purchase.limit).digits >= 0n) return offer;
    offer = offerOf(purchase, above(charged));
  }
  return offer;
}

/** One more in the last digit: a limit is not rounded away from what is charged. */
const above = ({ digits, scale }: Decimal): Decimal => ({ digits: digits + 1n, scale });

/** Where the parts of an encoded offer end: kind, pair, amount, limit. */
const [PAIR, AMOUNT, LIMIT] = [9, 17, 25];

/** Whether an encoded operation is a form of the purchase: the exact order, or an offer for no more at no worse a limit. */
export function isFormOf(purchase: Purchase): (operation: Uint8Array) => boolean {
  const exact = exactOf(purchase);
  const [usual, whole] = [encodeOperation(offerOf(purchase)), exact && toHex(encodeOperation(exact))];
  const part = (bytes: Uint8Array, from: number, to?: number) => toHex(bytes.slice(from, to));
  const amount = (bytes: Uint8Array) => bytes.slice(PAIR, AMOUNT).reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
  return (operation) =>
    toHex(operation) === whole ||
    (part(operation, 0, PAIR) === part(usual, 0, PAIR) &&
      part(operation, LIMIT) === part(usual, LIMIT) &&
      amount(operation) <= amount(usual) &&
      // Prices sort as their bytes do.
      part(operation, AMOUNT, LIMIT) >= part(usual, AMOUNT, LIMIT));
}
