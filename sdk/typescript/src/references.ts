/** What a payment is for, as its sender says it: signed, public for ever, in no state, and checked by nobody. */
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/**
 * A text of 1 to 35 printable ASCII characters, a UUID such as a UETR, the SHA-256 of a message in hexadecimal, or a decimal
 * number below 2^64.
 */
export type PaymentReference = { kind: "text" | "uuid" | "message" | "number"; value: string };

const PLAIN: Record<PaymentReference["kind"], RegExp> = {
  text: /^[ -~]{1,35}$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  message: /^(0x)?[0-9a-f]{64}$/i,
  number: /^(0|[1-9][0-9]{0,19})$/,
};

/** The bytes that are signed, in hexadecimal; a RangeError where the value is none of its kind. */
export function referenceBytes({ kind, value }: PaymentReference): string {
  const isPlain = PLAIN[kind]?.test(value) && (kind !== "number" || BigInt(value) < 1n << 64n);
  if (!isPlain) throw new RangeError(`${JSON.stringify(value)} is no reference of the kind ${kind}: see PaymentReference`);
  if (kind === "text") return `0x${bytesToHex(utf8ToBytes(value))}`;
  if (kind === "number") return `0x${BigInt(value).toString(16).padStart(16, "0")}`;
  return `0x${value.replace(/^0x|-/g, "").toLowerCase()}`;
}

/** A text is a reference of the kind `text`. */
export const referenceOf = (said: PaymentReference | string): PaymentReference => (typeof said === "string" ? { kind: "text", value: said } : said);
