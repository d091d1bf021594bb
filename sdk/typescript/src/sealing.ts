/**
 * Envelopes: orders that nobody reads before the block that holds them is decided. The scheme is that of the crate `sealing`;
 * `docs/sealed-vectors.json` has each intermediate value.
 *
 * Sealing takes some tens of milliseconds: in a page it belongs into a worker.
 */
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { keyOrNull, signatureOrNull } from "./lane/bls.js";
import { derived, join, text as bytesOf, u16, u64, u8 } from "./lane/layout.js";

export { saltOf, sealedIdOf, sealedSigningBytes, sealedTypedData, type Enclosure } from "./enclosure.js";

const TAG = "WALRAS_SEALED_BLS12381G1_XMD:SHA-256_SSWU_RO_V1_";
const { Fp12, Fr } = bls12_381.fields;
const G2 = bls12_381.G2.Point;
/** Bytes of a box, by its size. */
export const BOX_BYTES = [512, 2_048, 8_192] as const;
/** The most operations of an envelope. */
export const SEALED_OPERATIONS_MAX = 32;

/** What everybody sees of an envelope beside its point and box; its sender signs all of it. */
export type EnvelopeTerms = {
  /** The identity of the network, 32 bytes. */
  network: Uint8Array;
  /** The ed25519 key that signs the envelope. */
  signer: Uint8Array;
  /** The number of the committee's key. */
  key: bigint;
  /** The account that pays for it, 20 bytes. */
  payer: Uint8Array;
  /** Its number among the transactions of the signer. */
  sequence: bigint;
  /** The last height that may hold it. */
  until: bigint;
};

export type Envelope = {
  /** Which of {@link BOX_BYTES}. */
  size: number;
  /** A point of G2, 96 bytes. */
  point: Uint8Array;
  /** The sealed text. */
  box: Uint8Array;
};

/** What is sealed or opened is not as it must be. */
export class SealError extends Error {}

/** The identity of an envelope, which the committee signs to open it. */
export function labelOf(terms: EnvelopeTerms, size: number, point: Uint8Array): Uint8Array {
  const { network, signer, key, payer, sequence, until } = terms;
  return derived("walras 2026 sealed label v1", join(network, signer, u64(key), payer, u64(sequence), u64(until), u8(size), point));
}

/**
 * Seals whole signed operations to a committee's key of 96 bytes. `drawn` is 32 random bytes for this envelope alone; sealing
 * again with them makes the same envelope.
 */
export function seal(committee: Uint8Array, terms: EnvelopeTerms, operations: Uint8Array[], drawn: Uint8Array): Envelope {
  const to = keyOrNull(committee);
  if (!to) throw new SealError("the committee's key is no point of the subgroup, or it is the identity");
  const text = padded(operations);
  const r = scalar(blake3.create({ context: bytesOf("walras 2026 sealed r v1") }).update(drawn).update(text));
  const [size, point] = [BOX_BYTES.findIndex((bytes) => bytes === text.length), G2.BASE.multiply(r).toBytes()];
  const label = labelOf(terms, size, point);
  const shared = bls12_381.pairing(hashed(label).multiply(r), to);
  return { size, point, box: crossed(text, shared, label) };
}

/** The operations of an envelope, by the committee's signature on its label, which {@link isOpeningKey} checks. */
export function open({ size, point, box }: Envelope, label: Uint8Array, key: Uint8Array): Uint8Array[] {
  const [found, opening] = [keyOrNull(point), signatureOrNull(key)];
  if (!found) throw new SealError("the envelope's point is none of the subgroup, or it is the identity");
  if (!opening) throw new SealError("the opening key is no point of the subgroup, or it is the identity");
  if (box.length !== BOX_BYTES[size]) throw new SealError("a box has 512, 2048 or 8192 bytes, as its size says");
  return unpadded(crossed(box, bls12_381.pairing(opening, found), label));
}

/** Whether a key opens the envelope of a label that is sealed to a committee. */
export function isOpeningKey(committee: Uint8Array, label: Uint8Array, key: Uint8Array): boolean {
  const [to, opening] = [keyOrNull(committee), signatureOrNull(key)];
  return to !== null && opening !== null && bls12_381.shortSignatures.verify(opening, hashed(label), to);
}

/** The text as it is sealed: a count, each operation behind its length, and zeros up to the smallest box. */
export function padded(operations: Uint8Array[]): Uint8Array {
  const many = operations.length;
  if (many > SEALED_OPERATIONS_MAX) throw new SealError(`an envelope holds at most ${SEALED_OPERATIONS_MAX} operations, these are ${many}: seal the others apart`);
  const parts = operations.flatMap((one) => [u16(one.length), one]);
  const length = 1 + parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = BOX_BYTES.find((size) => length <= size);
  if (bytes === undefined) throw new SealError(`the operations and their lengths have ${length} bytes, and the largest box holds 8192: seal fewer at once`);
  const text = new Uint8Array(bytes);
  text.set(join(u8(many), ...parts));
  return text;
}

/** The operations of a text: as many as its count says, each as long as its length says, and zeros behind them. */
export function unpadded(text: Uint8Array): Uint8Array[] {
  const garbage = () => new SealError("the envelope holds no operations: it is garbage");
  const count = text[0] ?? SEALED_OPERATIONS_MAX + 1;
  const operations: Uint8Array[] = [];
  let at = 1;
  while (operations.length < count) {
    const [low, high] = text.subarray(at, at + 2);
    const length = low === undefined || high === undefined ? 0 : low + 256 * high;
    const end = at + 2 + length;
    // Nothing signed has no bytes.
    if (length === 0 || end > text.length) throw garbage();
    operations.push(text.slice(at + 2, end));
    at = end;
  }
  if (count > SEALED_OPERATIONS_MAX || text.subarray(at).some((byte) => byte !== 0)) throw garbage();
  return operations;
}

const hashed = (label: Uint8Array) => bls12_381.shortSignatures.hash(label, TAG);

/** The first 32 bytes of a stream, little-endian without the top bit, that are below the order and not zero. */
function scalar(stream: { xof(bytes: number): Uint8Array }): bigint {
  for (;;) {
    const bytes = stream.xof(32);
    bytes[31]! &= 0x7f;
    const value = bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    if (value > 0n && value < Fr.ORDER) return value;
  }
}

function crossed(bytes: Uint8Array, shared: Parameters<typeof Fp12.toBytes>[0], label: Uint8Array): Uint8Array {
  const secret = derived("walras 2026 sealed key v1", join(Fp12.toBytes(shared), label));
  const stream = blake3(new Uint8Array(), { key: secret, dkLen: bytes.length });
  return bytes.map((byte, at) => byte ^ stream[at]!);
}
