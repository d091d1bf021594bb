/**
 * Committees of the chain: who signs its states, and how a client that knows one committee learns the next. Pure: bytes in, a
 * committee or a `ProofError` out. The layouts are those of `/v1/handovers` and `/v1/validators/proof`.
 */
import { quorums } from "../lane/committee.js";
import * as ed25519 from "../lane/ed25519.js";
import { derived, join, same, u64 } from "../lane/layout.js";
import { ProofError, Reader } from "../proof.js";

export const MEMBERS_MAX = 256;
/** Tags of parts of the state root. */
export const [ESCROW, STAKES, CHARTER] = [4, 5, 8];
const FOREVER = (1n << 64n) - 1n;

/** The heights at which committees change; 0 heights where they never do. */
export type Schedule = { heights: bigint; delay: bigint };
/** An epoch of a chain, and the keys of its validators by index. */
export type Chain = { network: Uint8Array; schedule: Schedule; epoch: bigint; keys: Uint8Array[] };

export const isFixed = ({ heights }: Schedule): boolean => heights === 0n;
export function epochOf({ heights, delay }: Schedule, height: bigint): bigint {
  return heights === 0n || height <= delay + 1n ? 0n : (height - delay - 1n) / heights;
}
const lastHeight = ({ heights, delay }: Schedule, epoch: bigint): bigint => (heights === 0n ? FOREVER : (epoch + 1n) * heights + delay);
function decides(schedule: Schedule, epoch: bigint, height: bigint): boolean {
  const first = epoch === 0n ? 1n : lastHeight(schedule, epoch - 1n) + 1n;
  return first <= height && height <= lastHeight(schedule, epoch);
}

/** What a quorum signed: that a height has ended, and the outcome of one some heights below. */
export type Certificate = { epoch: bigint; height: bigint; block: Uint8Array; outcome: Uint8Array; signatures: { signer: number; signature: Uint8Array }[] };

export function readCertificate(reader: Reader): Certificate {
  const [epoch, height, block, outcome] = [reader.big(8), reader.big(8), reader.take(32), reader.take(32)];
  const count = Math.min(reader.count(4), MEMBERS_MAX + 1);
  const signatures = Array.from({ length: count }, () => ({ signer: reader.count(1), signature: reader.take(64) }));
  return { epoch, height, block, outcome, signatures };
}

export function verifyCertificate({ epoch, height, block, outcome, signatures }: Certificate, chain: Chain): void {
  if (epoch !== chain.epoch || !decides(chain.schedule, epoch, height)) throw new ProofError(`height ${height} of the certificate is not of epoch ${chain.epoch}`);
  const needed = quorums(chain.keys.length).certificate;
  if (signatures.length < needed) throw new ProofError(`${signatures.length} validators signed, and ${needed} are needed`);
  if (signatures.some(({ signer }, at) => at > 0 && signer <= (signatures[at - 1]?.signer ?? 0))) {
    throw new ProofError("the signers are not in ascending order, each once");
  }
  const digest = derived("walras 2026 consensus commit v1", join(chain.network, u64(epoch), u64(height), block, outcome));
  for (const { signer, signature } of signatures) {
    const key = chain.keys[signer];
    if (!key || !ed25519.holds(key, digest, signature)) throw new ProofError(`the signature of validator ${signer} is wrong`);
  }
}

/** What a certificate signs of a block. */
export const outcomeOf = (state: Uint8Array, receipts: Uint8Array): Uint8Array => derived("walras 2026 outcome of a block v1", join(state, receipts));

/** The state root, and its parts by tag. */
export function readParts(reader: Reader): { root: Uint8Array; parts: Map<number, Uint8Array> } {
  const [begun, parts] = [reader.at, new Map<number, Uint8Array>()];
  let last = -1;
  for (let left = reader.count(4); left > 0; left -= 1) {
    const tag = reader.count(1);
    if (tag <= last) throw new ProofError("the parts of the root are not in the order of their tags");
    parts.set(tag, reader.take(32));
    last = tag;
  }
  return { root: derived("walras 2026 state root v4", reader.data.slice(begun, reader.at)), parts };
}

/** The validators of a chain, as a state has them. */
export type Registry = { digest: Uint8Array; network: Uint8Array; schedule: Schedule; unbondingEpochs: bigint; firstEpoch: bigint; committees: Uint8Array[][] };

export const committeeOf = ({ firstEpoch, committees }: Registry, epoch: bigint): Uint8Array[] | undefined =>
  epoch < firstEpoch ? undefined : committees[Number(epoch - firstEpoch)];

function readMember(reader: Reader): Uint8Array {
  reader.take(20);
  const key = reader.take(32);
  reader.take(reader.count(4));
  reader.take(8);
  return key;
}

function skipValidator(reader: Reader): void {
  readMember(reader);
  reader.take(16 * reader.count(4));
  reader.take(1 + 8);
}

function times<T>(count: number, read: () => T): T[] {
  const found: T[] = [];
  while (found.length < count) found.push(read());
  return found;
}

function readRegistry(reader: Reader): Registry {
  const begun = reader.at;
  const [network, schedule] = [reader.take(32), { heights: reader.big(8), delay: reader.big(8) }];
  reader.take(4 + 8);
  const unbondingEpochs = reader.big(8);
  reader.take(8 + 4 + 8);
  times(reader.count(4), () => skipValidator(reader));
  const firstEpoch = reader.big(8);
  const committees = times(reader.count(4), () => times(reader.count(4), () => readMember(reader)));
  const digest = derived("walras 2026 validators v2", reader.data.slice(begun, reader.at));
  return { digest, network, schedule, unbondingEpochs, firstEpoch, committees };
}

/** The root of the charter: its rules, and the digest of the rest. */
function readCharter(reader: Reader): Uint8Array {
  const begun = reader.at;
  reader.take(4 + 32 + 8 + 4 + 32);
  if (reader.count(1) !== 0) reader.take(4 + 32 + 8 + 8 + 1 + 1);
  reader.take(32);
  return derived("walras 2026 charter v1", reader.data.slice(begun, reader.at));
}

/** A state root, and the registry of validators in it. */
export function readValidators(reader: Reader): { state: Uint8Array; registry: Registry } {
  const { root, parts } = readParts(reader);
  const [registry, charter] = [readRegistry(reader), readCharter(reader)];
  const [stakes, rules] = [parts.get(STAKES), parts.get(CHARTER)];
  if (!stakes || !rules || !same(stakes, registry.digest) || !same(rules, charter)) throw new ProofError("the registry of validators is not that of the state");
  return { state: root, registry };
}

/** The proof of an epoch's committee, for a client that trusts the committee of the epoch before. */
export type Handover = { certificate: Certificate; receipts: Uint8Array; state: Uint8Array; registry: Registry };

export function readHandover(data: Uint8Array): Handover {
  const reader = new Reader(data);
  const [certificate, receipts] = [readCertificate(reader), reader.take(32)];
  const { state, registry } = readValidators(reader);
  reader.end();
  return { certificate, receipts, state, registry };
}

/** The next epoch. */
export function follow({ certificate, receipts, state, registry }: Handover, chain: Chain): Chain {
  const epoch = chain.epoch + 1n;
  verifyCertificate(certificate, chain);
  if (!same(certificate.outcome, outcomeOf(state, receipts))) throw new ProofError(`the handover to epoch ${epoch} contains another outcome than the signed one`);
  const { heights, delay } = registry.schedule;
  if (!same(registry.network, chain.network) || heights !== chain.schedule.heights || delay !== chain.schedule.delay) {
    throw new ProofError(`the handover to epoch ${epoch} belongs to another network`);
  }
  const keys = committeeOf(registry, epoch);
  if (!keys || keys.length < 1 || keys.length > MEMBERS_MAX) throw new ProofError(`the handover to epoch ${epoch} contains a state without its committee`);
  return { ...chain, epoch, keys };
}
