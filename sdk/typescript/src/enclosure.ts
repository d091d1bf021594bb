/** How an operation in an envelope is signed, see `sealing.ts`. */
import { encodeBody, typedDataOf, type Body, type Signed } from "./encoding.js";
import { derived, join, text as bytesOf, u64 } from "./lane/layout.js";
import { toHex, type TypedData } from "./typed.js";

/** The envelope for which an operation in it is signed. The signature is valid nowhere else. */
export type Enclosure = {
  /** The identity of the network, 32 bytes. */
  network: Uint8Array;
  /** The account that pays for the envelope, 20 bytes. */
  payer: Uint8Array;
  /** The number of the envelope. */
  sequence: bigint;
};

/** What an ed25519 key signs of an operation in an envelope. */
export function sealedSigningBytes({ network, payer, sequence }: Enclosure, body: Body): Uint8Array {
  return join(bytesOf("walras native sealed transaction v1\0"), network, payer, u64(sequence), encodeBody(body));
}

/** What an Ethereum wallet signs of it (EIP-712). */
export const sealedTypedData = (within: Enclosure, body: Body): TypedData => typedDataOf(body, toHex(saltOf(within)), "Walras sealed");

/** The salt in the domain of that typed data. */
export function saltOf({ network, payer, sequence }: Enclosure): Uint8Array {
  return derived("walras 2026 sealed salt v1", join(network, payer, u64(sequence)));
}

/** The id of an operation in an envelope, which its signature is no part of. */
export function sealedIdOf({ payer, sequence }: Enclosure, { bytes, body }: Signed): string {
  const context = bytes[body.length] === 0 ? "walras 2026 sealed transaction id v1" : "walras 2026 sealed typed data transaction id v1";
  return toHex(derived(context, join(payer, u64(sequence), body, bytes.slice(body.length + 1, -64))));
}
