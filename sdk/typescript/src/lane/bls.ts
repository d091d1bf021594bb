/** BLS12-381 with keys in G2 and signatures in G1, under the tags of the lane. */
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { Refused, join, text, u64, u8 } from "./layout.js";

const SIGNATURES = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
export const POSSESSIONS = "BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const { shortSignatures } = bls12_381;
export const { Fr } = bls12_381.fields;
const [G1, G2] = [bls12_381.G1.Point, bls12_381.G2.Point];
export type Key = InstanceType<typeof G2>;
export type Signature = InstanceType<typeof G1>;

/** A point in the subgroup that is not the identity; null for other bytes. */
function point<T extends { assertValidity(): void; is0(): boolean; isTorsionFree(): boolean }>(of: { fromBytes(bytes: Uint8Array): T }, bytes: Uint8Array): T | null {
  try {
    const found = of.fromBytes(bytes);
    found.assertValidity();
    return found.is0() || !found.isTorsionFree() ? null : found;
  } catch {
    return null;
  }
}

export const keyOrNull = (bytes: Uint8Array): Key | null => point(G2, bytes);
export const signatureOrNull = (bytes: Uint8Array): Signature | null => point(G1, bytes);

export function keyOf(bytes: Uint8Array): Key {
  const found = keyOrNull(bytes);
  if (!found) throw new Refused("WrongBlsKey", "no key");
  return found;
}

export const totalOfKeys = (keys: Key[]): Key => keys.reduce((sum, key) => sum.add(key), G2.ZERO);
export const totalOfSignatures = (points: Signature[]): Signature => points.reduce((sum, one) => sum.add(one), G1.ZERO);

export function holds(key: Key, message: Uint8Array, signature: Uint8Array, tag = SIGNATURES): boolean {
  const found = signatureOrNull(signature);
  if (!found || key.is0()) return false;
  return shortSignatures.verify(found, shortSignatures.hash(message, tag), key);
}

/** The bytes that a member signs. */
export const signedBytes = (network: Uint8Array, epoch: bigint, kind: number, scheme: number, digest: Uint8Array): Uint8Array =>
  join(text("walras-lane"), u8(1), network, u64(epoch), u8(kind), u8(scheme), digest);
