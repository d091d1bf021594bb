/** Lists of orders: up to 64 under one signature of a trading key, as docs/venue-api.md describes them. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { derived, little } from "./encoding.js";
import { AmountError } from "./errors.js";
import { fromHex, toHex } from "./typed.js";
import { compareNumbers, isPlain, numberBytes, optional, orderBytes } from "./venue.js";
import type { OrderNumber, TradingKey, VenueOrder, VenueScope } from "./venue.js";

/** The most orders under one signature. */
export const LIST_ORDERS_MAX = 64;
const TAG = utf8ToBytes("walras venue order list v1\0");
const SALT = "walras 2026 venue list salt v1";
const SEED_BYTES = 32;
const [LEAF_KEY, NODE_KEY] = [0, 1].map((tag) => derived("walras 2026 venue orders tree v1", new Uint8Array([tag]))) as [Uint8Array, Uint8Array];

/** An order of a list; `replaces` is the number of the open order in whose place it goes. */
export type ListedOrder = VenueOrder & { replaces: OrderNumber | null };
/** A list as it is sent. */
export type SignedList = { key: string; seed: string; orders: ListedOrder[]; signature: string };

function checkList(orders: readonly ListedOrder[]): void {
  if (orders.length < 1 || orders.length > LIST_ORDERS_MAX) {
    throw new AmountError(`a list has 1 to ${LIST_ORDERS_MAX} orders, this one has ${orders.length}: split it`);
  }
  for (const [at, order] of orders.entries()) {
    if (!isPlain(order)) throw new AmountError(`order ${at} of the list has a tick, lots, fee cap or floor out of bounds`);
    if (at > 0 && compareNumbers(orders[at - 1]!.number, order.number) >= 0) {
      throw new AmountError(`the number of order ${at} of the list is not above the one before: sort them`);
    }
  }
}

function rootOf(orders: readonly ListedOrder[], seed: Uint8Array): Uint8Array {
  let level = orders.map((order, place) => {
    const replaces = optional(order.replaces && numberBytes(order.replaces));
    const salt = derived(SALT, concatBytes(seed, new Uint8Array([place]), replaces)).slice(0, 16);
    return blake3(concatBytes(salt, orderBytes(order)), { key: LEAF_KEY });
  });
  while (level.length > 1) {
    const pairs = Array.from({ length: Math.ceil(level.length / 2) }, (_, at) => level.slice(2 * at, 2 * at + 2));
    // The last node of an odd level has no sibling.
    level = pairs.map((pair) => (pair.length === 2 ? blake3(concatBytes(...pair), { key: NODE_KEY }) : pair[0]!));
  }
  return level[0]!;
}

function listBytes(orders: readonly ListedOrder[], seed: Uint8Array, { network, venue }: VenueScope): Uint8Array {
  return concatBytes(TAG, fromHex(network), little(venue, 4), new Uint8Array([orders.length]), rootOf(orders, seed));
}

/** Signs orders by ascending number. The seed is drawn for this list alone. */
export function signList(
  key: TradingKey,
  orders: ListedOrder[],
  scope: VenueScope,
  seed: Uint8Array = crypto.getRandomValues(new Uint8Array(SEED_BYTES)),
): SignedList {
  checkList(orders);
  return { key: key.public, seed: toHex(seed), orders, signature: key.sign(listBytes(orders, seed, scope)) };
}

/** Whether a list as it is sent has fields within bounds, and is signed by its key for this network and venue. */
export function isListSigned({ key, seed, orders, signature }: SignedList, scope: VenueScope): boolean {
  try {
    checkList(orders);
    return ed25519.verify(fromHex(signature), listBytes(orders, fromHex(seed), scope), fromHex(key));
  } catch {
    // Out of bounds, or a key or signature that cannot be one.
    return false;
  }
}
