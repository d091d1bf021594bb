/** Transactions byte by byte, as docs/specification.md describes them. */
import { blake3 } from "@noble/hashes/blake3.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { parseDecimal, plainText, trimZeros } from "./decimal.js";
import { AddressError, AmountError } from "./errors.js";
import { slotOf } from "./slot.js";
import { DIGITS } from "./terms.js";
import { fromHex, toHex, type TypedData } from "./typed.js";

/** How long an offer rests: until it is sold or cancelled, up to the batch of a height, or in its own batch alone. */
export type Life = "rests" | `until ${bigint}` | "one batch";

/** Where an own offer rests. */
export type OfferPlace = { sell: number; buy: number; limit: string; offer: bigint };

/** A constant-product pool: the number of the lower asset, that of the higher one, and the fee class. */
export type PoolKey = { a: number; b: number; class: number };

/** The most units of an asset that a session key may use, fees included. */
export type SessionCap = { asset: number; units: bigint };

/** What the ledger is asked for. Assets are numbers, amounts units, limits shortest decimals in units. */
export type Operation =
  | { kind: "CreateAccount"; registered: string; key: string }
  | { kind: "CreateOffer"; sell: number; buy: number; amount: bigint; limit: string; life?: Life; client?: string }
  | { kind: "Cancel"; offers: OfferPlace[] }
  | { kind: "Replace"; sell: number; buy: number; oldLimit: string; offer: bigint; remains: bigint; amount: bigint; limit: string; life?: Life; client?: string }
  | { kind: "Pay" | "Issue"; to: string; asset: number; amount: bigint }
  | { kind: "Exact"; sell: number; buy: number; side: "buy" | "sell"; units: bigint; bound: bigint; client?: string }
  | { kind: "Burn"; asset: number; amount: bigint }
  | { kind: "Unstake"; units: bigint }
  | { kind: "Withdraw"; to: string; asset: number; amount: bigint }
  /** A 256th of both amounts, `poolKeeps`, can never be taken out again. */
  | ({ kind: "OpenPool"; x: bigint; y: bigint } & PoolKey)
  | ({ kind: "Provide"; shares: bigint; mostA: bigint; mostB: bigint } & PoolKey)
  | ({ kind: "Leave"; shares: bigint; leastA: bigint; leastB: bigint } & PoolKey)
  | { kind: "AuthorizeSession"; slot: number; key: string; scope: "cancel" | "trade"; ends: bigint; alive: bigint; caps: SessionCap[]; possession: string }
  | { kind: "RevokeSession"; slot: number }
  | { kind: "SessionAlive"; slot: number; through: bigint };

/** What is signed, but for the network. */
export type Body = { chain: bigint; account: string; sequence: bigint; until: bigint; operation: Operation };

export type Field = { name: string; type: string };
export const field = (name: string, type: string): Field => ({ name, type });
/** What every transaction has. */
export const numbers = [field("account", "address"), field("sequence", "uint64"), field("until", "uint64")];
const pair = [field("sell", "uint32"), field("buy", "uint32")];
const moved = [field("asset", "uint32"), field("amount", "uint64")];
const pool = [field("a", "uint32"), field("b", "uint32"), field("class", "uint8")];
/** The byte (and a second one, if it is one of several kinds) and the fields of each operation, in the order in which they are encoded and hashed. */
const OPERATIONS: Record<Operation["kind"], { byte: number; more?: number; fields: Field[] }> = {
  CreateAccount: { byte: 0, fields: [field("registered", "address"), field("key", "bytes32")] },
  CreateOffer: { byte: 1, fields: [...pair, field("amount", "uint64"), field("limit", "string"), field("life", "string"), field("client", "bytes16")] },
  Cancel: { byte: 2, fields: [field("offers", "Offer[]")] },
  Replace: {
    byte: 12,
    fields: [
      ...[...pair, field("oldLimit", "string"), field("offer", "uint64"), field("remains", "uint64")],
      ...[field("amount", "uint64"), field("limit", "string"), field("life", "string"), field("client", "bytes16")],
    ],
  },
  Exact: { byte: 14, fields: [...pair, field("side", "string"), field("units", "uint64"), field("bound", "uint64"), field("client", "bytes16")] },
  Pay: { byte: 3, fields: [field("to", "address"), ...moved] },
  Issue: { byte: 4, fields: [field("to", "address"), ...moved] },
  Burn: { byte: 5, fields: moved },
  Unstake: { byte: 7, fields: [field("units", "uint64")] },
  Withdraw: { byte: 9, fields: [field("to", "bytes32"), ...moved] },
  OpenPool: { byte: 13, more: 0, fields: [...pool, field("x", "uint64"), field("y", "uint64")] },
  Provide: { byte: 13, more: 1, fields: [...pool, field("shares", "uint64"), field("mostA", "uint64"), field("mostB", "uint64")] },
  Leave: { byte: 13, more: 2, fields: [...pool, field("shares", "uint64"), field("leastA", "uint64"), field("leastB", "uint64")] },
  AuthorizeSession: {
    byte: 15,
    more: 0,
    fields: [
      ...[field("slot", "uint32"), field("key", "bytes32"), field("scope", "string"), field("ends", "uint64")],
      ...[field("alive", "uint64"), field("caps", "SessionCap[]"), field("possession", "bytes")],
    ],
  },
  RevokeSession: { byte: 15, more: 1, fields: [field("slot", "uint32")] },
  SessionAlive: { byte: 15, more: 2, fields: [field("slot", "uint32"), field("through", "uint64")] },
};
/** Units of both assets that an opening with these amounts leaves in its pool for ever. */
export const poolKeeps = (x: bigint, y: bigint): [bigint, bigint] => [(x + 255n) / 256n, (y + 255n) / 256n];

/** The structures of lists, by name. */
const LISTED: Record<string, Field[]> = {
  Offer: [...pair, field("limit", "string"), field("offer", "uint64")],
  SessionCap: [field("asset", "uint32"), field("units", "uint64")],
};
/** What an offer has that says nothing else. */
const USUAL: Record<string, string> = { life: "rests", client: "0x" + "00".repeat(16) };
/** The most offers that one cancel names. */
export const CANCELS_MAX = 32;
const SIGNED_TAG = utf8ToBytes("walras native transaction v3\0");
/** The kind, then a key or a network, then the signature: as many bytes for both kinds. */
const SEAL_BYTES = 1 + 32 + 64;

/** BLAKE3 in its key derivation mode. */
export const derived = (context: string, message: Uint8Array): Uint8Array => blake3(message, { context: utf8ToBytes(context) });

/** An address with its checksum in its capitals (EIP-55). */
export function checkedAddress(address: string): string {
  const digits = address.replace(/^0x/, "").toLowerCase();
  const pattern = toHex(keccak_256(utf8ToBytes(digits))).slice(2);
  return "0x" + [...digits].map((digit, at) => (parseInt(pattern[at] ?? "0", 16) >= 8 ? digit.toUpperCase() : digit)).join("");
}

/** The address in lower case. Mixed case must be its checksum. */
export function plainAddress(address: string): string {
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) throw new AddressError(`${JSON.stringify(address)} is no address: write 0x and 40 hexadecimal digits`);
  const digits = address.slice(2);
  if (digits !== digits.toLowerCase() && digits !== digits.toUpperCase() && checkedAddress(address) !== address) {
    throw new AddressError(`"${address}" has a wrong checksum in its capitals: copy it again, or write it in lower case`);
  }
  return address.toLowerCase();
}

export function little(value: bigint | number, bytes: number): Uint8Array {
  const made = new Uint8Array(bytes);
  let rest = BigInt(value);
  if (rest < 0n || rest >= 1n << BigInt(8 * bytes)) throw new AmountError(`${value} does not fit in ${bytes} bytes`);
  for (let at = 0; at < bytes; at += 1, rest >>= 8n) made[at] = Number(rest & 255n);
  return made;
}

/** A price of the ledger: mantissa and decade, big-endian. */
export function priceBytes(limit: string): Uint8Array {
  const parsed = parseDecimal(limit);
  const price = parsed && trimZeros(parsed, -100);
  const digits = price?.digits.toString() ?? "";
  const decade = digits.length - 1 - (price?.scale ?? 0);
  if (!price || price.digits <= 0n || digits.length > DIGITS || decade < -18 || decade > 17) {
    throw new AmountError(`${limit} is no price of the ledger: at most ${DIGITS} digits, from 1e-18 to below 1e18`);
  }
  const mantissa = BigInt(digits.padEnd(DIGITS, "0"));
  return little((BigInt(decade + 18) << 57n) | mantissa, 8).reverse();
}

type Plain = string | number | bigint;
type Listed = Record<string, Plain>;

/** Which amount of an exact order is exact. */
function sideByte(side: string): Uint8Array {
  const at = ["buy", "sell"].indexOf(side);
  if (at < 0) throw new AmountError(`"${side}" is no side of an exact order: write "buy" or "sell"`);
  return new Uint8Array([at]);
}

/** What a session key may do. */
function scopeByte(scope: string): Uint8Array {
  const at = ["cancel", "trade"].indexOf(scope);
  if (at < 0) throw new AmountError(`"${scope}" is no scope of a session key: write "cancel" or "trade"`);
  return new Uint8Array([at]);
}

/** How long an offer rests. */
function lifeBytes(life: string): Uint8Array {
  const height = /^until (0|[1-9][0-9]*)$/.exec(life)?.[1];
  if (height !== undefined) return concatBytes(new Uint8Array([1]), little(BigInt(height), 8));
  if (life !== "rests" && life !== "one batch") {
    throw new AmountError(`"${life}" is no life of an offer: write "rests", "until" and a height, or "one batch"`);
  }
  return new Uint8Array([life === "rests" ? 0 : 2]);
}

function encoded(name: string, type: string, value: Plain | Listed[]): Uint8Array {
  if (Array.isArray(value)) return concatBytes(little(value.length, 4), ...value.map((one) => encodedFields(listed(type), one)));
  if (type === "uint8") return little(Number(value), 1);
  if (type === "uint32") return little(Number(value), 4);
  if (type === "uint64") return little(BigInt(value), 8);
  if (name === "side") return sideByte(String(value));
  if (name === "scope") return scopeByte(String(value));
  if (type === "string") return name === "life" ? lifeBytes(String(value)) : priceBytes(String(value));
  return fromHex(type === "address" ? plainAddress(String(value)) : String(value));
}

export function encodeOperation(operation: Operation): Uint8Array {
  const { byte, more, fields } = OPERATIONS[operation.kind];
  return concatBytes(new Uint8Array(more === undefined ? [byte] : [byte, more]), encodedFields(fields, operation));
}

const listed = (type: string): Field[] => LISTED[type.replace(/\[\]$/, "")] ?? [];

function encodedFields(fields: Field[], of: object): Uint8Array {
  const values = of as Record<string, Plain | Listed[]>;
  return concatBytes(...fields.map(({ name, type }) => encoded(name, type, values[name] ?? USUAL[name] ?? "")));
}

export function encodeBody(body: Body): Uint8Array {
  const head = [little(body.chain, 8), fromHex(plainAddress(body.account)), little(body.sequence, 8), little(body.until, 8)];
  return concatBytes(...head, encodeOperation(body.operation));
}

const POSSESSION_TAG = utf8ToBytes("walras session key possession v1\0");

/** What a key signs to agree that it acts for an account in a slot. */
export const sessionPossessionBytes = (network: string, account: string, slot: number, key: string): Uint8Array =>
  concatBytes(POSSESSION_TAG, fromHex(network), fromHex(plainAddress(account)), little(slot, 4), fromHex(key));


/** What an ed25519 key signs. */
export const signingBytes = (body: Body, network: string): Uint8Array => concatBytes(SIGNED_TAG, fromHex(network), encodeBody(body));

/** What an Ethereum wallet signs (EIP-712). */
export function typedDataOf(body: Body, network: string): TypedData {
  const { kind, ...given } = body.operation;
  const usual = Object.entries(USUAL).filter(([name]) => OPERATIONS[kind].fields.some((one) => one.name === name));
  const values = { ...Object.fromEntries(usual), ...given };
  const fields = OPERATIONS[kind].fields;
  const lists = fields.filter(({ type }) => type.endsWith("[]")).map(({ type }) => [type.slice(0, -2), listed(type)] as const);
  const message = { account: body.account, sequence: String(body.sequence), until: String(body.until), ...inText(values) };
  return structure(kind, { [kind]: [...numbers, ...fields], ...Object.fromEntries(lists) }, message, { chain: body.chain, network });
}

/** Typed data of a network: a structure, and those of its lists. */
export function structure(kind: string, types: Record<string, Field[]>, message: TypedData["message"], of: { chain: bigint; network: string }): TypedData {
  const domain = [field("name", "string"), field("version", "string"), field("chainId", "uint256"), field("salt", "bytes32")];
  return {
    types: { EIP712Domain: domain, ...types },
    primaryType: kind,
    domain: { name: "Walras", version: "1", chainId: Number(of.chain), salt: of.network },
    message,
  };
}

/** The values as text, as typed data has them. */
function inText(values: object): Record<string, string> {
  const text = (name: string, value: unknown) => (name === "limit" || name === "oldLimit" ? shortest(String(value)) : String(value));
  const entry = ([name, value]: [string, unknown]) => [name, Array.isArray(value) ? value.map((one: object) => inText(one)) : text(name, value)];
  return Object.fromEntries(Object.entries(values).map(entry)) as Record<string, string>;
}

const shortest = (limit: string): string => plainText(parseDecimal(limit) ?? { digits: 0n, scale: 0 });

/** A signed transaction. */
export class Signed {
  constructor(readonly bytes: Uint8Array) {}

  /** With an ed25519 key's signature. */
  static byKey(body: Body, key: Uint8Array, signature: Uint8Array): Signed {
    return new Signed(concatBytes(encodeBody(body), new Uint8Array([0]), key, signature));
  }

  /** With a wallet's signature, of 65 bytes or compact. */
  static byWallet(body: Body, network: string, signature: Uint8Array): Signed {
    const compact = signature.slice(0, 64);
    // The compact form of EIP-2098: the parity of the point is the highest bit of s.
    if (signature.length === 65 && (signature[64] === 28 || signature[64] === 1)) compact[32] = (compact[32] ?? 0) | 0x80;
    return new Signed(concatBytes(encodeBody(body), new Uint8Array([1]), fromHex(network), compact));
  }

  get body(): Uint8Array {
    return this.bytes.slice(0, -SEAL_BYTES);
  }

  /** Its id, which the signature is no part of. */
  get id(): string {
    const kind = this.bytes[this.bytes.length - SEAL_BYTES];
    const who = this.bytes.slice(1 - SEAL_BYTES, -64);
    const context = kind === 0 ? "walras 2026 native transaction id v4" : "walras 2026 typed data transaction id v3";
    return toHex(derived(context, concatBytes(this.body, who)));
  }

  get account(): string {
    return toHex(this.bytes.slice(8, 28));
  }
  get sequence(): bigint {
    return number(this.bytes, 28, 8);
  }
  /** The slot of the session key that signed it; 0 of the account's own key. */
  get slot(): number {
    return slotOf(this.sequence);
  }
  get until(): bigint {
    return number(this.bytes, 36, 8);
  }

  /** The operation as encoded. */
  get operation(): Uint8Array {
    return this.body.slice(44);
  }
}

/** A little-endian number in bytes. */
export function number(bytes: Uint8Array, at: number, count: number): bigint {
  return BigInt("0x0" + [...bytes.slice(at, at + count)].reverse().map((byte) => byte.toString(16).padStart(2, "0")).join(""));
}
