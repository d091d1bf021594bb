/** Orders at a venue's continuous markets byte by byte, as docs/venue-api.md describes them, and reports of their fills. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { derived, little, plainAddress } from "./encoding.js";
import { AmountError } from "./errors.js";
import { ProofError } from "./proof.js";
import { fromHex, toHex } from "./typed.js";

const ORDER_TAG = utf8ToBytes("walras venue order v1\0");
const REQUEST_TAG = utf8ToBytes("walras venue request v1\0");
const POSSESSION_TAG = utf8ToBytes("walras venue trading key v1\0");
/** Alternatives, in the order in which they are numbered. */
const SIDES = ["buy", "sell"] as const;
const LIVES = ["rests", "post_only", "immediate_or_cancel", "fill_or_kill"] as const;
const SELF_TRADES = ["expire_maker", "expire_taker", "expire_both"] as const;

/** The highest tick. */
export const TICK_MAX = 2_000_000_000;
const PPM = 1_000_000;

/** The number of an order: incarnation of the venue, day (since 1970, UTC) and the client's reference. */
export type OrderNumber = { incarnation: number; day: number; reference: number };
export type VenueSide = (typeof SIDES)[number];
export type OrderLife = (typeof LIVES)[number];
export type SelfTrade = (typeof SELF_TRADES)[number];

/** An order as bodies have it, without key and signature. `expiry` is the last height of its life. */
export type VenueOrder = {
  market: number;
  number: OrderNumber;
  floor: OrderNumber;
  side: VenueSide;
  life: OrderLife;
  self_trade: SelfTrade;
  tick: number;
  lots: number;
  expiry: number;
  until_ms: number | null;
  fee_cap_ppm: number;
};
/** `replaces` is the signed request to put it into the place of another order; its lots are then the total. */
export type SignedOrder = VenueOrder & { key: string; signature: string; replaces?: VenueRequest };

/** What a request asks. A session that is attached over the stream may end its orders with its connection or in silence. */
export type VenueAsk =
  | { attach: { session: number; ends_orders: boolean; dead_man_ms: number | null } }
  | { cancel: { number: OrderNumber; keeps: number } }
  | { cancel_all: { market: number | null; side: VenueSide | null } }
  | { replace: { old: OrderNumber; new: OrderNumber } }
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
    return { ...order, key: this.public, signature: this.sign(bytes) };
  }

  request(ask: VenueAsk, stamp_ms: number, { network, venue, incarnation }: VenueScope): VenueRequest {
    const scope = [fromHex(network), little(venue, 4), little(incarnation, 4)];
    const bytes = concatBytes(REQUEST_TAG, ...scope, fromHex(this.public), little(stamp_ms, 8), askBytes(ask));
    return { key: this.public, stamp_ms, ask, signature: this.sign(bytes) };
  }

  /** The signature by which it agrees to trade for an account. */
  possession(account: string, network: string, venue: number): string {
    return this.sign(concatBytes(POSSESSION_TAG, fromHex(network), little(venue, 4), fromHex(plainAddress(account)), fromHex(this.public)));
  }

  /** The signature on bytes, such as those of a list. */
  sign(bytes: Uint8Array): string {
    return toHex(ed25519.sign(bytes, this.#seed));
  }
}

/** A number as text, such as `0:20787:15`. */
export const numberText = ({ incarnation, day, reference }: OrderNumber): string => `${incarnation}:${day}:${reference}`;

export function readNumber(text: string): OrderNumber {
  const [incarnation, day, reference] = /^(\d{1,10}):(\d{1,5}):(\d{1,10})$/.exec(text)?.slice(1).map(Number) ?? [];
  if (incarnation === undefined || day === undefined || reference === undefined) {
    throw new AmountError(`${JSON.stringify(text)} is no number of an order: write it such as 0:20787:15`);
  }
  return { incarnation, day, reference };
}

/** Below zero if `a` is lower than `b`: by incarnation, then day, then reference. */
export const compareNumbers = (a: OrderNumber, b: OrderNumber): number => a.incarnation - b.incarnation || a.day - b.day || a.reference - b.reference;

/** Whether the fields of an order are within their bounds, whatever the market. */
export function isPlain({ tick, lots, fee_cap_ppm, floor, number }: VenueOrder): boolean {
  const isInBounds = tick >= 1 && tick <= TICK_MAX && lots >= 1 && lots < 2 ** 32 && fee_cap_ppm >= 0 && fee_cap_ppm <= PPM;
  return isInBounds && compareNumbers(floor, number) <= 0;
}

const byte = (value: number): Uint8Array => new Uint8Array([value]);
const alternative = <T>(all: readonly T[], one: T): Uint8Array => byte(all.indexOf(one));
export const numberBytes = ({ incarnation, day, reference }: OrderNumber): Uint8Array =>
  concatBytes(little(incarnation, 4), little(day, 2), little(reference, 4));
export const optional = (bytes: Uint8Array | null): Uint8Array => (bytes ? concatBytes(byte(1), bytes) : byte(0));

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
  if ("replace" in ask) return concatBytes(byte(3), numberBytes(ask.replace.old), numberBytes(ask.replace.new));
  if ("status" in ask) return concatBytes(byte(4), numberBytes(ask.status.number));
  if ("fills" in ask) return concatBytes(byte(5), little(ask.fills.from, 8));
  const { market, side } = ask.cancel_all;
  return concatBytes(byte(2), optional(market === null ? null : little(market, 4)), optional(side === null ? null : alternative(SIDES, side)));
}

const SINGLE_BYTES = 164;
/** Of a report of a step, without its path. */
const STEP_BYTES = 193;
const LEAVES_MAX = 2 ** 20;
const REPORT_TAG = utf8ToBytes("walras venue report v1\0");
const STEP_TAG = utf8ToBytes("walras venue step v1\0");
const [LEAF_KEY, NODE_KEY] = [0, 1].map((tag) => derived("walras 2026 venue reports tree v1", new Uint8Array([tag]))) as [Uint8Array, Uint8Array];

/** Where a report stands in its step, of which the report key signs the root. */
export type VenueStep = { number: bigint; clock_ms: bigint; size: number; place: number; path: Uint8Array[] };
/** What a venue said of a fill: keep it, it convicts a venue that settles another one. A report without `step` has a
 *  signature of its own. */
export type VenueReport = {
  venue: number;
  incarnation: number;
  index: bigint;
  leaf: string;
  account: string;
  key: string;
  signature: string;
  step: VenueStep | null;
};

/** For each sibling on the path of a leaf, whether it is on the left. The last node of an odd level has none. */
function sidesOf(size: number, place: number): boolean[] {
  const sides: boolean[] = [];
  for (; size > 1; size = Math.ceil(size / 2), place = Math.floor(place / 2)) {
    if (place % 2 === 1 || place + 1 < size) sides.push(place % 2 === 1);
  }
  return sides;
}

/** The report of these hexadecimal digits, in either form. */
export function readReport(text: string): VenueReport {
  const bytes = fromHex(text);
  if (bytes.length === SINGLE_BYTES) return reportOf(bytes, null);
  if (bytes.length < STEP_BYTES || bytes[0] !== 1) throw new ProofError(`${bytes.length} bytes are no report of a fill`);
  const view = new DataView(bytes.buffer, bytes.byteOffset + 1 + SINGLE_BYTES);
  const [size, place, count] = [view.getUint32(16, true), view.getUint32(20, true), view.getUint32(24, true)];
  const fits = place < size && size <= LEAVES_MAX && count === sidesOf(size, place).length;
  if (!fits || bytes.length !== STEP_BYTES + 32 * count) throw new ProofError("the path of the report does not fit the number of leaves and the place");
  const path = Array.from({ length: count }, (_, at) => bytes.slice(STEP_BYTES + 32 * at, STEP_BYTES + 32 * (at + 1)));
  const times = { number: view.getBigUint64(0, true), clock_ms: view.getBigUint64(8, true) };
  return reportOf(bytes.slice(1, 1 + SINGLE_BYTES), { ...times, size, place, path });
}

function reportOf(bytes: Uint8Array, step: VenueStep | null): VenueReport {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const [leaf, account, key, signature] = [bytes.slice(16, 48), bytes.slice(48, 68), bytes.slice(68, 100), bytes.slice(100, 164)].map(toHex) as [string, string, string, string];
  const place = { venue: view.getUint32(0, true), incarnation: view.getUint32(4, true), index: view.getBigUint64(8, true) };
  return { ...place, leaf, account, key, signature, step };
}

/** Whether the key that it names signed it for this network. Whether the venue has that key, the ledger says. */
export function isReportSigned({ step, ...report }: VenueReport, network: string): boolean {
  const place = concatBytes(fromHex(network), little(report.venue, 4), little(report.incarnation, 4));
  const told = concatBytes(little(report.index, 8), fromHex(report.leaf), fromHex(report.account));
  const message = step
    ? concatBytes(STEP_TAG, place, little(step.number, 8), little(step.clock_ms, 8), little(step.size, 4), rootOf(step, told))
    : concatBytes(REPORT_TAG, place, told);
  try {
    return ed25519.verify(fromHex(report.signature), message, fromHex(report.key));
  } catch {
    // A key or signature that cannot be one.
    return false;
  }
}

function rootOf({ size, place, path }: VenueStep, leaf: Uint8Array): Uint8Array {
  let node = blake3(leaf, { key: LEAF_KEY });
  for (const [at, isLeft] of sidesOf(size, place).entries()) {
    const sibling = path[at]!;
    node = blake3(isLeft ? concatBytes(sibling, node) : concatBytes(node, sibling), { key: NODE_KEY });
  }
  return node;
}
