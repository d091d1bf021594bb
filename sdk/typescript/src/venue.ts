/** Orders at a venue's continuous markets byte by byte, as docs/venue-api.md describes them. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { little, plainAddress } from "./encoding.js";
import { fromHex, toHex } from "./typed.js";

const ORDER_TAG = utf8ToBytes("walras venue order v1\0");
const REQUEST_TAG = utf8ToBytes("walras venue request v1\0");
const POSSESSION_TAG = utf8ToBytes("walras venue trading key v1\0");
/** Alternatives, in the order in which they are numbered. */
const SIDES = ["buy", "sell"] as const;
const LIVES = ["rests", "post_only", "immediate_or_cancel", "fill_or_kill"] as const;
const SELF_TRADES = ["expire_maker", "expire_taker", "expire_both"] as const;

export type OrderNumber = { incarnation: number; day: number; reference: number };
export type VenueSide = (typeof SIDES)[number];
export type OrderLife = (typeof LIVES)[number];

/** An order as bodies have it, without key and signature. `expiry` is the last height of its life. */
export type VenueOrder = {
  market: number;
  number: OrderNumber;
  floor: OrderNumber;
  side: VenueSide;
  life: OrderLife;
  self_trade: (typeof SELF_TRADES)[number];
  tick: number;
  lots: number;
  expiry: number;
  until_ms: number | null;
  fee_cap_ppm: number;
};
export type SignedOrder = VenueOrder & { key: string; signature: string };

/** What a request asks. A session that is attached over the stream may end its orders with its connection or in silence. */
export type VenueAsk =
  | { attach: { session: number; ends_orders: boolean; dead_man_ms: number | null } }
  | { cancel: { number: OrderNumber; keeps: number } }
  | { cancel_all: { market: number | null; side: VenueSide | null } }
  | { status: { number: OrderNumber } }
  | { fills: { from: number } };
export type VenueRequest = { key: string; stamp_ms: number; ask: VenueAsk; signature: string };

/** What orders and requests are signed for. */
export type VenueScope = { network: string; venue: number; incarnation: number };

/** A key that trades at a venue for an account which has authorised it. */
export class TradingKey {
  readonly public: string;
  readonly #seed: Uint8Array;

  constructor(seed: Uint8Array) {
    this.#seed = seed;
    this.public = toHex(ed25519.getPublicKey(seed));
  }

  order(order: VenueOrder, { network, venue }: VenueScope): SignedOrder {
    const bytes = concatBytes(ORDER_TAG, fromHex(network), little(venue, 4), orderBytes(order));
    return { ...order, key: this.public, signature: this.#sign(bytes) };
  }

  request(ask: VenueAsk, stamp_ms: number, { network, venue, incarnation }: VenueScope): VenueRequest {
    const scope = [fromHex(network), little(venue, 4), little(incarnation, 4)];
    const bytes = concatBytes(REQUEST_TAG, ...scope, fromHex(this.public), little(stamp_ms, 8), askBytes(ask));
    return { key: this.public, stamp_ms, ask, signature: this.#sign(bytes) };
  }

  /** The signature by which it agrees to trade for an account. */
  possession(account: string, network: string, venue: number): string {
    return this.#sign(concatBytes(POSSESSION_TAG, fromHex(network), little(venue, 4), fromHex(plainAddress(account)), fromHex(this.public)));
  }

  #sign(bytes: Uint8Array): string {
    return toHex(ed25519.sign(bytes, this.#seed));
  }
}

const byte = (value: number): Uint8Array => new Uint8Array([value]);
const alternative = <T>(all: readonly T[], one: T): Uint8Array => byte(all.indexOf(one));
const numberBytes = ({ incarnation, day, reference }: OrderNumber): Uint8Array =>
  concatBytes(little(incarnation, 4), little(day, 2), little(reference, 4));
const optional = (bytes: Uint8Array | null): Uint8Array => (bytes ? concatBytes(byte(1), bytes) : byte(0));

export function orderBytes(order: VenueOrder): Uint8Array {
  const rules = [alternative(SIDES, order.side), alternative(LIVES, order.life), alternative(SELF_TRADES, order.self_trade)];
  return concatBytes(
    ...[little(order.market, 4), numberBytes(order.number), numberBytes(order.floor), ...rules],
    ...[little(order.tick, 4), little(order.lots, 4), little(order.expiry, 8)],
    ...[optional(order.until_ms === null ? null : little(order.until_ms, 8)), little(order.fee_cap_ppm, 4)],
  );
}

function askBytes(ask: VenueAsk): Uint8Array {
  if ("attach" in ask) {
    const { session, ends_orders, dead_man_ms } = ask.attach;
    return concatBytes(byte(0), little(session, 4), byte(Number(ends_orders)), optional(dead_man_ms === null ? null : little(dead_man_ms, 8)));
  }
  if ("cancel" in ask) return concatBytes(byte(1), numberBytes(ask.cancel.number), little(ask.cancel.keeps, 4));
  if ("status" in ask) return concatBytes(byte(4), numberBytes(ask.status.number));
  if ("fills" in ask) return concatBytes(byte(5), little(ask.fills.from, 8));
  const { market, side } = ask.cancel_all;
  return concatBytes(byte(2), optional(market === null ? null : little(market, 4)), optional(side === null ? null : alternative(SIDES, side)));
}
