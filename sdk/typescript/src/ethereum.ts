/** Keys of Ethereum wallets: an account's address is the one that wallets show. */
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { hashTypedData, toHex, type TypedData } from "./typed.js";

/** The address of the account of a private key. */
export function addressOf(key: Uint8Array): string {
  const point = secp256k1.getPublicKey(key, false);
  return toHex(keccak_256(point.slice(1)).slice(12));
}

/** The signature of typed data as wallets give it: `0x` and 65 bytes. */
export function signTyped(key: Uint8Array, data: TypedData): string {
  const [recovery, ...compact] = secp256k1.sign(hashTypedData(data), key, { prehash: false, format: "recovered" });
  return toHex(new Uint8Array([...compact, 27 + (recovery ?? 0)]));
}
