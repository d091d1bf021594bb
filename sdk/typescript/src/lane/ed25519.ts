/** Ed25519 by the one rule of the lane, ZIP-215. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { derived } from "./layout.js";

export function holds(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, message, key, { zip215: true });
  } catch {
    // Bytes that are no key or no signature.
    return false;
  }
}

export const publicOf = (seed: Uint8Array): Uint8Array => ed25519.getPublicKey(seed);
export const sign = (seed: Uint8Array, message: Uint8Array): Uint8Array => ed25519.sign(message, seed);
/** The account of a key. */
export const accountOf = (key: Uint8Array): Uint8Array => derived("walras 2026 ed25519 address v1", key).slice(0, 20);
