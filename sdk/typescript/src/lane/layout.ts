/** The payment lane's bytes: fields of fixed layout, and why they are refused. See docs/lane-specification.md. */
import { blake3 } from "@noble/hashes/blake3.js";
import { bytesToHex, concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";

export const AMOUNT_MAX = (1n << 63n) - 1n;

/** Bytes that do not hold; `reason` is a word of the specification. */
export class Refused extends Error {
  override readonly name = "Refused";
  constructor(
    readonly reason: string,
    why = "",
  ) {
    super(why === "" ? reason : `${reason}: ${why}`);
  }
}

export function need(holds: boolean, reason: string, why = ""): asserts holds {
  if (!holds) throw new Refused(reason, why);
}

function little(value: bigint | number, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  let rest = BigInt(value);
  for (let at = 0; at < count; at += 1, rest >>= 8n) bytes[at] = Number(rest & 255n);
  return bytes;
}

export const u8 = (value: number): Uint8Array => little(value, 1);
export const u16 = (value: number): Uint8Array => little(value, 2);
export const u32 = (value: number): Uint8Array => little(value, 4);
export const u64 = (value: bigint | number): Uint8Array => little(value, 8);
export const join = (...parts: Uint8Array[]): Uint8Array => concatBytes(...parts);
export const text = (words: string): Uint8Array => utf8ToBytes(words);

/** H of the specification. */
export const derived = (context: string, message: Uint8Array): Uint8Array => blake3(message, { context: utf8ToBytes(context) });
/** K of the specification. */
export const keyed = (key: Uint8Array, message: Uint8Array): Uint8Array => blake3(message, { key });

/** Hexadecimal digits, by which bytes are compared and found in maps. */
export const hex = (bytes: Uint8Array): string => bytesToHex(bytes);
export const same = (one: Uint8Array, other: Uint8Array): boolean => hex(one) === hex(other);
/** Whether texts or numbers ascend strictly. */
export const ascends = <T>(values: T[]): boolean => values.every((value, at) => at === 0 || (values[at - 1] as T) < value);

/** The rest of a byte string. */
export class Reader {
  at = 0;
  constructor(readonly data: Uint8Array) {}

  take(length: number): Uint8Array {
    need(this.at + length <= this.data.length, "Malformed", "it ends too early");
    this.at += length;
    return this.data.slice(this.at - length, this.at);
  }
  big(length: number): bigint {
    return this.take(length).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  }
  number(length: number): number {
    return Number(this.big(length));
  }
  u8(): number {
    return this.number(1);
  }
  u16(): number {
    return this.number(2);
  }
  u32(): number {
    return this.number(4);
  }
  u64(): bigint {
    return this.big(8);
  }
  amount(): bigint {
    const units = this.u64();
    need(units >= 1n && units <= AMOUNT_MAX, "Malformed", "an amount out of bounds");
    return units;
  }
  digest(): Uint8Array {
    return this.take(32);
  }
  signature(): Uint8Array {
    return this.take(64);
  }
  times<T>(count: number, read: (reader: Reader) => T): T[] {
    const found: T[] = [];
    while (found.length < count) found.push(read(this));
    return found;
  }
  option<T>(read: (reader: Reader) => T): T | null {
    const flag = this.u8();
    need(flag <= 1, "Malformed", "neither there nor not");
    return flag === 1 ? read(this) : null;
  }
  rest(): Uint8Array {
    return this.take(this.data.length - this.at);
  }
  end(): void {
    need(this.at === this.data.length, "Malformed", "bytes after its end");
  }
}

/** What fills the bytes. */
export function parsed<T>(read: (reader: Reader) => T, data: Uint8Array): T {
  const reader = new Reader(data);
  const value = read(reader);
  reader.end();
  return value;
}
