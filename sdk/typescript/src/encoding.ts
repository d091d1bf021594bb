/** Transactions byte by byte, as docs/specification.md describes them. */
import { blake3 } from "@noble/hashes/blake3.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { parseDecimal, plainText, trimZeros } from "./decimal.js";
import { AddressError, AmountError } from "./errors.js";
import { LISTED, OPERATIONS, type Operation, type OperationField } from "./operations.js";
import { slotOf } from "./slot.js";
import { DIGITS } from "./terms.js";
import { fromHex, toHex, type TypedData } from "./typed.js";

export type { Life, OfferPlace, Operation, SessionLimit } from "./operations.js";

/** What is signed, but for the network. */
export type Body = { chain: bigint; account: string; sequence: bigint; until: bigint; operation: Operation };

export type Field = { name: string; type: string };
export const field = (name: string, type: string): Field => ({ name, type });
/** What every transaction has. */
export const numbers = [field("account", "address"), field("sequence", "uint64"), field("until", "uint64")];
/** Units of both assets that an opening with these amounts leaves in its pool for ever. */
export const poolKeeps = (x: bigint, y: bigint): [bigint, bigint] => [(x + 255n) / 256n, (y + 255n) / 256n];

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

/** The index of a text among those that a field may have. */
function choiceByte(texts: readonly string[], name: string, text: string): Uint8Array {
  const at = texts.indexOf(text);
  if (at < 0) throw new AmountError(`"${text}" is no ${name}: write ${texts.map((one) => `"${one}"`).join(" or ")}`);
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

function encoded(field: OperationField, value: Plain | Listed[]): Uint8Array {
  if (Array.isArray(value)) return concatBytes(little(value.length, 4), ...value.map((one) => encodedFields(listed(field), one)));
  switch (field.form) {
    case "u8":
    case "u16":
    case "u32":
    case "u64":
      return little(BigInt(value), Number(field.form.slice(1)) / 8);
    case "choice":
      return choiceByte(field.texts ?? [], field.name, String(value));
    case "life":
      return lifeBytes(String(value));
    case "price":
      return priceBytes(String(value));
    case "address":
      return fromHex(plainAddress(String(value)));
    case "raw":
      return fromHex(String(value));
    default: {
      const bytes = field.form === "text" ? utf8ToBytes(String(value)) : fromHex(String(value));
      return concatBytes(little(bytes.length, 4), bytes);
    }
  }
}

export function encodeOperation(operation: Operation): Uint8Array {
  const { code, fields } = OPERATIONS[operation.kind];
  return concatBytes(new Uint8Array(code), encodedFields(fields, operation));
}

const listed = (field: OperationField): readonly OperationField[] => LISTED[field.of ?? ""] ?? [];

function encodedFields(fields: readonly OperationField[], of: object): Uint8Array {
  const values = of as Record<string, Plain | Listed[]>;
  return concatBytes(...fields.map((field) => encoded(field, values[field.name] ?? USUAL[field.name] ?? "")));
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
export function typedDataOf(body: Body, network: string, name = "Walras"): TypedData {
  const { kind, ...given } = body.operation;
  const usual = Object.entries(USUAL).filter(([name]) => OPERATIONS[kind].fields.some((one) => one.name === name));
  const values = { ...Object.fromEntries(usual), ...given };
  const fields = OPERATIONS[kind].fields;
  const plain = (all: readonly OperationField[]) => all.map(({ name, type }) => field(name, type));
  const lists = fields.filter(({ of }) => of !== undefined).map((one) => [one.of ?? "", plain(listed(one))] as const);
  const message = { account: body.account, sequence: String(body.sequence), until: String(body.until), ...inText(values) };
  return structure(kind, { [kind]: [...numbers, ...plain(fields)], ...Object.fromEntries(lists) }, message, { chain: body.chain, network, name });
}

/** Typed data of a network: a structure, and those of its lists. */
export function structure(kind: string, types: Record<string, Field[]>, message: TypedData["message"], of: { chain: bigint; network: string; name?: string }): TypedData {
  const domain = [field("name", "string"), field("version", "string"), field("chainId", "uint256"), field("salt", "bytes32")];
  return {
    types: { EIP712Domain: domain, ...types },
    primaryType: kind,
    domain: { name: of.name ?? "Walras", version: "1", chainId: Number(of.chain), salt: of.network },
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
