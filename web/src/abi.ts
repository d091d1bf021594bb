/**
 * What calls, errors and logs of contracts say, where the page knows the function, error or event. All of it is written by
 * strangers: what does not fit its types exactly is left undecoded, and texts are cleaned before they are shown.
 */

/** What an amount counts: wei, the token that is called or logs, or an asset of the offer or of a field of that name. */
export type Counts = "wei" | "token" | "sell" | "buy";
type Type = "address" | "uint8" | "uint64" | "uint256" | "bytes32" | "bytes32[]" | "string";
export type Field = { name: string; type: Type; indexed: boolean; counts: Counts | null };
/** A number is a bigint; addresses and words are lower-case hexadecimal; a text is as the contract wrote it; a list has words. */
export type Value = { field: Field; value: bigint | string | string[] };
export type Said = { name: string; values: Value[] };
type Entry = { name: string; fields: Field[] };

/** The exchange's offers. */
export const OFFERS = "0x57616c7261730000000000000000000100000000";
/** The token that wraps what pays for gas. */
export const WETH9 = "0x57616c7261730000000000000000000200000000";

/** By selector or first topic. `@` says what an amount counts, `+` that a field is a topic. */
const TABLES = {
  erc20: {
    "0xa9059cbb": "transfer(address to, uint256 amount@token)",
    "0x095ea7b3": "approve(address spender, uint256 amount@token)",
    "0x23b872dd": "transferFrom(address from, address to, uint256 amount@token)",
    "0xd505accf": "permit(address owner, address spender, uint256 amount@token, uint256 deadline, uint8 v, bytes32 r, bytes32 s)",
  },
  weth9: {
    "0xd0e30db0": "deposit()",
    "0x2e1a7d4d": "withdraw(uint256 amount@wei)",
  },
  offers: {
    "0x6b13799b": "place(address sell, address buy, uint64 amount@sell, uint64 asks@buy)",
    "0x16b976d2": "place(address sell, address buy, uint64 amount@sell, uint64 asks@buy, uint64 until)",
    "0xc4d252f5": "cancel(bytes32 offer)",
    "0xbdccc3f4": "cancel(bytes32[] offers)",
  },
  errors: {
    "0x08c379a0": "Error(string reason)",
    "0x4e487b71": "Panic(uint256 code)",
    "0x08083b2a": "AmountTooLarge(uint256 amount)",
    "0xda1240b3": "AsksTooLittle(uint64 least)",
    "0x9cce15fc": "BookFull()",
    "0xabefb385": "CalledByDelegation()",
    "0x42bd3287": "EndsCrowded(uint64 until)",
    "0xa99633be": "InsufficientBalance(uint256 held, uint64 needed)",
    "0xf75a2210": "LifeEnded(uint64 first)",
    "0x5da685e6": "LifeTooLong(uint64 last)",
    "0xd8bf271f": "NamedTwice(bytes32 offer)",
    "0x47d919c6": "NoOffers()",
    "0xa698a49a": "SameAsset()",
    "0x872918ee": "SellsTooLittle(uint64 least)",
    "0x1d538e3a": "StaticCall()",
    "0x63571eda": "TakesNoValue()",
    "0x29827582": "TooManyOffers(uint256 named, uint256 most)",
    "0x2193c2d3": "TooManyPairs()",
    "0xad61e2ba": "UnknownAsset(address token)",
    "0xdedc34d5": "UnknownFunction()",
    "0x00f22e92": "UnknownOffer(bytes32 offer)",
    "0xcf479181": "InsufficientBalance(uint256 held, uint256 needed)",
    "0x2a1b2dd8": "InsufficientAllowance(uint256 allowed, uint256 needed)",
    "0x34e4a710": "NotPaid()",
  },
  erc20Events: {
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef": "Transfer(address from+, address to+, uint256 amount@token)",
    "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925": "Approval(address owner+, address spender+, uint256 amount@token)",
  },
  weth9Events: {
    "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c": "Deposit(address holder+, uint256 amount@wei)",
    "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65": "Withdrawal(address holder+, uint256 amount@wei)",
  },
  offersEvents: {
    "0x8c3a6f4d39708a37629f8ff27038b80eba192db51912121a899b9993d6daca79":
      "Placed(address owner+, bytes32 offer+, address sell, address buy, uint64 amount@sell, uint64 asks@buy)",
    "0x51c889b1de9637e183738f8399a0d64b2580157603552be8852e1661883c5822": "Cancelled(address owner+, bytes32 offer+, uint64 returned@sell)",
    "0x09fe62e13315ff6d9da9df788d90e4a5eee24ce7a6f3ad078bf2cc92977ab6b3": "Ended(address owner+, bytes32 offer+, uint64 returned@sell)",
    "0xa1dbdc8f8ec609d6d8cd5f80f35e478b749145390816cd37a0fa2484b8d25074": "Ends(address owner+, bytes32 offer+, uint64 until)",
    "0xb2d7fea430b1eabdf217d9a790b493ee386ebcd511e4028bd9894a13b9d31d2f":
      "Filled(address owner+, bytes32 offer+, uint64 sold@sell, uint64 bought@buy, uint64 left@sell, uint64 returned@sell)",
  },
};

/** All entries with their keys, for the test that holds keys against names. */
export const ENTRIES: [string, Entry][] = Object.values(TABLES).flatMap((table) => [...read(table)]);
const [erc20, weth9, offers, errors] = [read(TABLES.erc20), read(TABLES.weth9), read(TABLES.offers), read(TABLES.errors)];
const [erc20Events, weth9Events, offersEvents] = [read(TABLES.erc20Events), read(TABLES.weth9Events), read(TABLES.offersEvents)];

function read(table: Record<string, string>): Map<string, Entry> {
  return new Map(Object.entries(table).map(([key, text]) => [key, readEntry(text)]));
}

function readEntry(text: string): Entry {
  const [name = "", inner = ""] = text.slice(0, -1).split("(");
  return { name, fields: inner === "" ? [] : inner.split(", ").map(readField) };
}

function readField(text: string): Field {
  const [, type, name, plus, counts] = /^([\w[\]]+) (\w+)(\+?)(?:@(\w+))?$/.exec(text) ?? [];
  return { type: type as Type, name: name ?? "", indexed: plus === "+", counts: (counts as Counts | undefined) ?? null };
}

/** What a call asks for. Functions of ERC-20 are known at any contract, others where they stand. */
export function decodeCall(to: string, input: string): Said | null {
  const selector = input.slice(0, 10);
  const special = to === OFFERS ? offers.get(selector) : to === WETH9 ? weth9.get(selector) : undefined;
  const entry = special ?? (to === OFFERS ? undefined : erc20.get(selector));
  return entry ? decode(entry, [], input.slice(10)) : null;
}

/** What a function is called, where `decodeCall` would know it. */
export function methodName(to: string, selector: string): string | null {
  const special = to === OFFERS ? offers.get(selector) : to === WETH9 ? weth9.get(selector) : undefined;
  return (special ?? (to === OFFERS ? undefined : erc20.get(selector)))?.name ?? null;
}

/** Why a call reverted, if its output is an error that the page knows. */
export function decodeError(output: string): Said | null {
  const entry = errors.get(output.slice(0, 10));
  return entry ? decode(entry, [], output.slice(10)) : null;
}

/** What a log tells. `Transfer` and `Approval` of ERC-20 are known of any contract, others of their own. */
export function decodeLog(address: string, topics: string[], data: string): Said | null {
  const first = topics[0] ?? "";
  const special = address === OFFERS ? offersEvents.get(first) : address === WETH9 ? weth9Events.get(first) : undefined;
  const entry = special ?? (address === OFFERS ? undefined : erc20Events.get(first));
  return entry ? decode(entry, topics.slice(1).map((topic) => topic.slice(2)), data.slice(2)) : null;
}

/** `null` where the words are too few, too many, or not of their types. */
function decode(entry: Entry, topics: string[], data: string): Said | null {
  if (!/^(?:[0-9a-f]{2})*$/.test(data) || topics.some((topic) => !/^[0-9a-f]{64}$/.test(topic))) return null;
  const plain = entry.fields.filter((field) => !field.indexed);
  const isDynamic = plain.some((field) => field.type === "string" || field.type === "bytes32[]");
  if (topics.length !== entry.fields.length - plain.length) return null;
  if (isDynamic ? data.length < 64 * plain.length : data.length !== 64 * plain.length) return null;
  const values: Value[] = [];
  let [topic, word] = [0, 0];
  for (const field of entry.fields) {
    const text = field.indexed ? topics[topic++]! : data.slice(64 * word, 64 * ++word);
    const value = field.type === "string" ? string(text, data) : field.type === "bytes32[]" ? words(text, data) : single(field.type, text);
    if (value === null) return null;
    values.push({ field, value });
  }
  return { name: entry.name, values };
}

const BITS = { uint8: 8n, uint64: 64n, uint256: 256n };

function single(type: Exclude<Type, "string" | "bytes32[]">, word: string): bigint | string | null {
  if (type === "bytes32") return "0x" + word;
  if (type === "address") return /^0{24}/.test(word) ? "0x" + word.slice(24) : null;
  const value = BigInt("0x" + word);
  return value >> BITS[type] === 0n ? value : null;
}

/** Where what an offset names begins in the data, and how many it has; `null` if it does not lie within the data. */
function placed(word: string, data: string, digits: number): { start: number; end: number } | null {
  const offset = small(word);
  const length = offset === null ? null : small(data.slice(2 * offset, 2 * offset + 64));
  if (offset === null || length === null) return null;
  const start = 2 * offset + 64;
  const end = start + digits * length;
  return data.length < end ? null : { start, end };
}

function string(word: string, data: string): string | null {
  const at = placed(word, data, 2);
  return at && utf8(data.slice(at.start, at.end));
}

function words(word: string, data: string): string[] | null {
  const at = placed(word, data, 64);
  return at && (data.slice(at.start, at.end).match(/.{64}/g) ?? []).map((one) => "0x" + one);
}

/** A number that a position in the data can have. */
function small(word: string): number | null {
  return word.length === 64 && /^0{56}/.test(word) ? Number.parseInt(word.slice(56), 16) : null;
}

function utf8(hex: string): string {
  const bytes = Uint8Array.from({ length: hex.length / 2 }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16));
  return new TextDecoder().decode(bytes);
}

export type OfferName = { sell: number; buy: number; id: bigint };
/** Ids of offers that contracts place begin here. */
const FIRST_ID = 1n << 63n;

/** The offer that a word names: the numbers of its assets, and how many its owner had placed before it. */
export function offerName(word: string): OfferName | null {
  if (!/^0x0{16}[0-9a-f]{48}$/.test(word)) return null;
  const id = BigInt("0x" + word.slice(50));
  if (id < FIRST_ID) return null;
  return { sell: Number.parseInt(word.slice(18, 26), 16), buy: Number.parseInt(word.slice(26, 34), 16), id: id - FIRST_ID };
}

const PANICS: Record<string, string> = {
  "1": "an assertion failed",
  "17": "arithmetic overflow or underflow",
  "18": "division by zero",
  "33": "no such value of an enumeration",
  "34": "badly encoded bytes in storage",
  "49": "pop of an empty array",
  "50": "index out of bounds",
  "65": "too much memory",
  "81": "call of an empty function pointer",
};

/** What Solidity's `Panic` codes mean. */
export function panicText(code: bigint): string {
  const meaning = PANICS[code.toString()];
  return `Panic 0x${code.toString(16).padStart(2, "0")}${meaning ? `: ${meaning}` : ""}`;
}
