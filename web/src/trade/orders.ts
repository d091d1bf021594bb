/**
 * Orders: from what people write to a signed transaction, and what became of it. An order is kept in this browser before it
 * is sent, so that neither a lost answer nor a reload loses it: the same bytes may be sent again, and count once.
 */
import type { Account, Asset, Balance, Offer, Quote, TransactionStatus } from "@walras/client/bodies";
import { fromUnits, multiply, parseDecimal, round, shift, subtract, toNumber, type Decimal } from "@walras/client/decimal";
import type { Operation } from "@walras/client/encoding";
import { lockedBy, type ExactTerms, type Order, type Terms } from "@walras/client/terms";
import { hashTypedData, toHex, type TypedData } from "@walras/client/typed";
import { ApiError, get, getIfThere, path, post } from "../api";
import type { Trader } from "./keys";
import { checkStatus, remedy } from "../words";
import type { Plan } from "@walras/client/placing";
import { sealed } from "./sealed";
import { Told } from "./told";

export type OrderState =
  | { is: "sent" }
  | { is: "placed"; height: number; sold: string; bought: string; left: string; returned?: string }
  | { is: "exact"; height: number; sold: string; bought: string; returned: string; why: string }
  | { is: "refused"; why: string }
  | { is: "void" }
  | { is: "replaced" }
  | { is: "cancelled" };
/** An order as this browser keeps it. */
export type KeptOrder = {
  id: string | null;
  sequence: string;
  until: string;
  placed_ms: number;
  transaction: string;
  signature: string;
  state: OrderState;
  /** The offer whose place it takes. */
  replaces?: string;
  /** The envelope that holds it; its bytes are what is sent. */
  envelope?: string;
  /** Whether the node has answered that it has the envelope. */
  taken?: boolean;
} & Asks;
/** What an order asks for: a limit order, or one for an exact amount. */
type Asks = { kind?: "limit"; order: Order; terms: Terms } | { kind: "exact"; order: Order; terms: ExactTerms };

const KEPT_MOST = 200;
/** Heights for which a transaction may count after it is signed. */
const LASTS = 64n;

/** What an order gives and gets at its limit, in whole assets. */
export type Bounds = { gives: Decimal; gets: Decimal };

export function boundsOf(terms: Terms, assets: Map<string, Asset>): Bounds | null {
  const [sells, buys, limit] = [assets.get(terms.sell), assets.get(terms.buy), parseDecimal(terms.limit)];
  const gives = sells && fromUnits(terms.amount, sells.decimals);
  if (!gives || !buys || !limit) return null;
  const least = multiply({ digits: BigInt(terms.amount), scale: 0 }, limit);
  return { gives, gets: shift(round(least, 0), -buys.decimals) };
}

/** What the next batch would do with an order, as the node found it: the part that trades, what it brings, and its price. */
export type Filled = { share: number; bought: Decimal; price: number };

export function filledOf({ amount, sold, bought }: Quote, order: Order, terms: Terms, assets: Map<string, Asset>): Filled | null {
  const [sells, buys] = [assets.get(terms.sell), assets.get(terms.buy)];
  const [gives, gets] = [sells && fromUnits(sold, sells.decimals), buys && fromUnits(bought, buys.decimals)];
  if (!gives || !gets) return null;
  const [given, gotten] = [toNumber(gives), toNumber(gets)];
  const price = order.side === "buy" ? given / gotten : gotten / given;
  return { share: Number((BigInt(sold) * 10_000n) / BigInt(amount)) / 10_000, bought: gets, price };
}

type Unsigned = { sequence: string; until: string; unsigned: string; hash: string; typed_data: TypedData };
export type Asked = { type: string } & Record<string, string | number | Record<string, string>[]>;
/** A signed transaction as the node takes it. */
export type SignedTransaction = { transaction: string; signature: string; sequence: string; until: string };

/** Asks the node to lay out a transaction, checks that it is what was asked for, and has it signed. */
export async function signed(trader: Trader, operation: Asked, assets: Map<string, Asset>, height: number): Promise<SignedTransaction> {
  const until = (BigInt(height) + LASTS).toString();
  if (trader.session) return signedBySession(trader.address, trader.session, operation, until, assets);
  const told = await post<Unsigned>("typed-data", { account: trader.address, until, operation });
  const network = await get<{ chain: string; network: string }>("limits");
  check(told, trader, operation, until, network, assets);
  const signature = await trader.sign(told.typed_data);
  return { transaction: told.unsigned, signature, sequence: told.sequence, until: told.until };
}

/** A session key signs what this page has laid out, under the next number of its slot. */
async function signedBySession(address: string, { slot, key }: NonNullable<Trader["session"]>, asked: Asked, until: string, assets: Map<string, Asset>): Promise<SignedTransaction> {
  const { chain, network } = await get<{ chain: string; network: string }>("limits");
  const { sessions = [] } = await get<Account>(path("accounts", address));
  const found = sessions.find((one) => one.slot === slot && one.key === key.public);
  if (!found) throw new Told(`The account has no session key in slot ${slot} any more: it was revoked. Choose who trades, or add a new key in the account's view.`);
  const sequence = BigInt(found.sequence.next);
  const body = { chain: BigInt(chain), account: address, sequence, until: BigInt(until), operation: operationOf(asked, assets) };
  const { bytes } = await key.sign(body, network);
  return { transaction: toHex(bytes.slice(0, -SIGNATURE_BYTES)), signature: toHex(bytes.slice(-SIGNATURE_BYTES)), sequence: String(sequence), until };
}

/** The operation as it is encoded: assets by their numbers. */
export function operationOf({ type, ...asked }: Asked, assets: Map<string, Asset>): Operation {
  const one = ([name, value]: [string, unknown]): [string, unknown] => {
    if (Array.isArray(value)) return [name, value.map((each: object) => Object.fromEntries(Object.entries(each).map(one)))];
    return [camel(name), isAsset(name) ? assets.get(String(value))?.asset : value];
  };
  return { kind: structureOf(type), ...Object.fromEntries(Object.entries(asked).map(one)) } as unknown as Operation;
}

/** Throws where the typed data says anything else than `operation`: a node must not choose what is signed. */
export function check(
  told: Unsigned,
  trader: { address: string },
  operation: Asked,
  until: string,
  network: { chain: string; network: string },
  assets: Map<string, Asset>,
): void {
  const { types, domain, message, primaryType } = told.typed_data;
  const { type, ...asked } = operation;
  const differs = (what: string) => new Told(`The node laid out another ${what} than was asked for: nothing was signed.`);
  if (primaryType !== structureOf(type)) throw differs("kind of transaction");
  if (domain["name"] !== "Walras" || String(domain["chainId"]) !== network.chain || domain["salt"] !== network.network) throw differs("network");
  const fixed = { account: trader.address, until, sequence: told.sequence };
  for (const [name, value] of Object.entries(fixed)) if (String(message[name]).toLowerCase() !== value) throw differs(name);
  const compare = (said: Record<string, unknown>, wanted: Omit<Asked, "type">, structure: string, more: number): void => {
    for (const [name, value] of Object.entries(wanted)) {
      const told = said[camel(name)];
      if (Array.isArray(value)) {
        if (!Array.isArray(told) || told.length !== value.length) throw differs(name);
        value.forEach((one, at) => compare(told[at] as Record<string, unknown>, one, LISTED[name] ?? "", 0));
        continue;
      }
      const text = String(value);
      if (name === "limit" || name === "old_limit" ? !isAbout(String(told), text) : String(told) !== (isAsset(name) ? String(assets.get(text)?.asset) : text)) throw differs(name);
    }
    if (types[structure]?.length !== Object.keys(wanted).length + more) throw differs("structure");
  };
  compare(message, asked, primaryType, 3);
  if (toHex(hashTypedData(told.typed_data)) !== told.hash) throw differs("hash");
}

/** The structure of an operation: `create_offer` is signed as `CreateOffer`. */
const structureOf = (type: string): string => type.replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
/** A field as it is signed: `old_limit` is signed as `oldLimit`. */
const camel = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
/** The structures of what stands in lists. */
const LISTED: Record<string, string> = { offers: "Offer", caps: "SessionCap" };
const SIGNATURE_BYTES = 64;
/** The most offers that one cancel names. */
const CANCELS_MAX = 32;
/** The page does not name its orders. */
const NO_CLIENT = "0x" + "00".repeat(16);
const isAsset = (name: string) => name === "sell" || name === "buy" || name === "asset";

/** A limit is rounded to the ledger's prices. */
function isAbout(said: string, wanted: string): boolean {
  const [a, b] = [parseDecimal(said), parseDecimal(wanted)];
  return a !== null && b !== null && Math.abs(toNumber(subtract(a, b))) <= 1e-12 * toNumber(b);
}

/** The orders of one account on one network that this browser keeps, newest first. */
export class OrderBook {
  orders: KeptOrder[] = [];

  constructor(private readonly name: string) {
    try {
      this.orders = JSON.parse(localStorage.getItem(this.name) ?? "[]") as KeptOrder[];
    } catch {
      this.orders = [];
    }
  }

  static of(network: string, address: string): OrderBook {
    return new OrderBook(`walras.orders.${network.slice(2, 18)}.${address}`);
  }

  private keep(): void {
    this.orders = this.orders.slice(0, KEPT_MOST);
    localStorage.setItem(this.name, JSON.stringify(this.orders));
  }

  /** Signs and sends an order. It stays in the list whatever becomes of the answer. */
  place(trader: Trader, plan: Plan, assets: Map<string, Asset>, height: number, isSealed = false): Promise<KeptOrder> {
    const { kind, order, terms } = plan;
    const operation = kind === "exact" ? { type: "exact", ...terms } : { type: "create_offer", ...terms, life: plan.life };
    return this.ask(trader, operation, { kind, order, terms } as Asks, assets, height, isSealed);
  }

  /** Puts an order in the place of an offer, whose rest goes into it. */
  async replace(trader: Trader, offer: Offer, { order, terms, life }: Extract<Plan, { kind: "limit" }>, assets: Map<string, Asset>, height: number, isSealed = false): Promise<KeptOrder> {
    const old = { old_limit: offer.limit, offer: offer.id, remains: offer.amount };
    const placed = await this.ask(trader, { type: "replace", ...terms, ...old, life }, { kind: "limit", order, terms }, assets, height, isSealed);
    placed.replaces = offer.id;
    this.keep();
    return placed;
  }

  private async ask(trader: Trader, operation: Asked, asks: Asks, assets: Map<string, Asset>, height: number, isSealed: boolean): Promise<KeptOrder> {
    const named = { ...operation, client: NO_CLIENT };
    const made = isSealed ? await sealed(trader, operationOf(named, assets)) : await signed(trader, named, assets, height);
    const placed: KeptOrder = { id: null, placed_ms: Date.now(), ...asks, ...made, state: { is: "sent" } };
    this.orders = [placed, ...this.orders];
    this.keep();
    await this.send(placed);
    return placed;
  }

  /** Sends the bytes of an order, for the first time or again. */
  async send(order: KeptOrder): Promise<void> {
    try {
      const answer = await post<{ id: string }>("transactions", { transaction: order.transaction, signature: order.signature });
      // What was sealed has an id of its own in its envelope.
      order.id ??= answer.id;
      order.taken = true;
    } catch (error) {
      // Without an answer nobody knows: the order is sent again with the next look.
      if (!(error instanceof ApiError) || error.status === 0 || error.status >= 500 || error.status === 429) throw error;
      order.state = { is: "refused", why: remedy(error.code, error.message) };
    }
    this.keep();
  }

  /** Cancels what rests of offers, 32 with one signature. */
  async cancel(trader: Trader, offers: Offer[], assets: Map<string, Asset>, height: number): Promise<void> {
    for (let at = 0; at < offers.length; at += CANCELS_MAX) {
      const some = offers.slice(at, at + CANCELS_MAX);
      const places = some.map(({ sell, buy, limit, id }) => ({ sell, buy, limit, offer: id }));
      const { transaction, signature } = await signed(trader, { type: "cancel", offers: places }, assets, height);
      const answer = await post<TransactionStatus>("transactions?wait=committed", { transaction, signature });
      checkStatus(answer.status);
      // Where some had gone meanwhile the next look tells of each what became of it.
      if (answer.status !== "committed" || answer.outcome.result !== "cancelled" || answer.outcome.missing > 0) continue;
      const ids = new Set(some.map((offer) => offer.id));
      for (const id of ids) this.became(id, { is: "cancelled" });
      this.keep();
    }
  }

  /** Looks what became of the orders that have been sent; `height` is the node's. */
  async look(height: number, signal: AbortSignal): Promise<void> {
    for (const order of this.orders.filter((order) => order.state.is === "sent")) {
      if (order.id === null || (order.envelope !== undefined && !order.taken)) await this.send(order);
      if (order.id === null) continue;
      const state = await stateOf(order, height, signal);
      if (state) order.state = state;
      if (state?.is === "placed" && order.replaces !== undefined) this.became(order.replaces, { is: "replaced" });
    }
    this.keep();
  }

  private became(offer: string, state: OrderState): void {
    for (const own of this.orders) if (own.sequence === offer) own.state = state;
  }
}

/** Units that an order may sell. */
export const lockedOf = (asks: Asks): string => (asks.kind === "exact" ? lockedBy(asks.terms) : asks.terms.amount);

/** Why nothing counts of an envelope that a block has; null as long as none has it. */
async function unopened(envelope: string, signal: AbortSignal): Promise<string | null> {
  const status = await getIfThere<TransactionStatus>(path("transactions", envelope), signal);
  if (status?.status !== "committed") return null;
  const { outcome } = status;
  if (outcome.result === "refused") return remedy(outcome.code, outcome.message);
  return outcome.result === "sealed" && outcome.became !== "opened" ? (outcome.message ?? "the envelope held no order") : null;
}

async function stateOf(order: KeptOrder, height: number, signal: AbortSignal): Promise<OrderState | null> {
  try {
    const status = await get<TransactionStatus>(path("transactions", order.id ?? ""), signal);
    checkStatus(status.status);
    if (status.status === "pending") return null;
    const { outcome } = status;
    if (outcome.result === "refused") return { is: "refused", why: remedy(outcome.code, outcome.message) };
    if (outcome.result === "exact") {
      const { sold, bought, returned, why } = outcome;
      return { is: "exact", height: status.height, sold, bought, returned, why };
    }
    if (outcome.result === "void") return { is: "void" };
    const { sold = "0", bought = "0", left = lockedOf(order), returned = "0" } = outcome.result === "offered" || outcome.result === "replaced" ? outcome : {};
    return { is: "placed", height: status.height, sold, bought, left, returned };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    if (error.code === "refused") return { is: "refused", why: error.message };
    const why = order.envelope === undefined ? null : await unopened(order.envelope, signal);
    if (why !== null) return { is: "refused", why };
    // No block above `until` can contain it.
    return height > Number(order.until) ? { is: "void" } : null;
  }
}

/** Pays `amount` units; used to give a new key of a demo its first money. */
export async function pay(trader: Trader, to: string, asset: string, amount: string, assets: Map<string, Asset>, height: number): Promise<void> {
  const { transaction, signature } = await signed(trader, { type: "pay", to, asset, amount }, assets, height);
  await post("transactions?wait=committed", { transaction, signature });
}

/** What an account has of each asset; nothing where there is no account yet. */
export async function holdings(address: string, signal: AbortSignal): Promise<Balance[]> {
  return (await getIfThere<Account>(path("accounts", address), signal))?.balances ?? [];
}
