/**
 * Certificates: what a quorum of validators signed, so that no node has to be believed.
 *
 * Validators sign for each height a digest of the state root and the receipts root of a block some heights below. Whoever
 * knows the keys of an epoch's committee checks with them that a balance or an outcome is one that the network certified.
 * Keys come from the operators, or from a node on first use: they are as good as their source. A committee that is
 * replaced is not followed here (`/v1/handovers`): a certificate of another epoch is refused.
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { concatBytes } from "@noble/hashes/utils.js";
import type { Outcome } from "./bodies.js";
import { derived } from "./encoding.js";
import { ProofError, Reader, same } from "./proof.js";
import { fromHex } from "./typed.js";

/** The validators' keys of an epoch, by index. */
export type Committee = { keys: string[]; epoch: number };
export type CertificateBody = { certificate: string; state_root: string; receipts_root: string };

/** As many signers that any two quorums share a correct one. */
export function quorumOf({ keys }: Committee): number {
  const faulty = Math.floor((keys.length - 1) / 3);
  return Math.floor((keys.length + faulty) / 2) + 1;
}

/** Checks that a quorum signed the roots of a block; returns the height at which it did. */
export function checkCertificate(body: CertificateBody, network: string, committee: Committee): number {
  const reader = new Reader(fromHex(body.certificate));
  const [epoch, height] = [reader.count(8), reader.count(8)];
  reader.take(32);
  const root = reader.take(32);
  const head = reader.data.slice(0, reader.at);
  if (epoch !== committee.epoch) throw new ProofError(`the certificate is of epoch ${epoch}, and the known committee of epoch ${committee.epoch}`);
  const roots = concatBytes(fromHex(body.state_root), fromHex(body.receipts_root));
  if (!same(root, derived("walras 2026 outcome of a block v1", roots))) throw new ProofError("the certificate is for other roots");
  const digest = derived("walras 2026 consensus commit v1", concatBytes(fromHex(network), head));
  const signers = reader.count(4);
  for (let at = 0, last = -1; at < signers; at += 1) {
    const [signer, signature] = [reader.count(1), reader.take(64)];
    if (signer <= last) throw new ProofError("the signers are not in ascending order, each once");
    last = signer;
    const key = committee.keys[signer];
    if (key === undefined || !ed25519.verify(signature, digest, fromHex(key))) throw new ProofError(`the signature of validator ${signer} is wrong`);
  }
  reader.end();
  if (signers < quorumOf(committee)) throw new ProofError(`${signers} validators signed, and ${quorumOf(committee)} are needed`);
  return height;
}

const EXACT_REASONS = ["filled", "no_price", "beyond_bound", "group_not_full", "no_room"];
const REASONS = ["filled", "part", "at_the_margin", "above_the_rate", "rounding", "not_taken", "not_placed"];

/**
 * Whether an outcome as a node states it is the one that is proved. The codes of refusals are words of the node, so of a
 * refusal only that it is one is compared.
 */
export function isProved(stated: Outcome, proved: Uint8Array | null): boolean {
  if (proved === null) return false;
  if (stated.result === "cancelled") return proved[0] === 4 && proved[1] === stated.found && proved[2] === stated.missing;
  if (stated.result === "pooled") {
    const pooled = new Reader(proved.slice(1));
    return proved[0] === 6 && [stated.a, stated.b, stated.shares].map(BigInt).every((units) => units === pooled.big(8));
  }
  if (stated.result === "listed") return proved[0] === 8 && stated.number === new Reader(proved.slice(1)).count(4);
  if (stated.result === "sealed") {
    const count = stated.became === "opened" ? proved[2] === stated.operations : true;
    return proved[0] === 9 && proved[1] === ["opened", "garbage", "unpaid"].indexOf(stated.became) && count;
  }
  if (stated.result === "exact") {
    const exact = new Reader(proved.slice(1));
    const units = [stated.sold, stated.bought, stated.returned].map(BigInt);
    return proved[0] === 7 && units.every((one) => one === exact.big(8)) && exact.count(1) === EXACT_REASONS.indexOf(stated.why);
  }
  if (stated.result !== "offered" && stated.result !== "replaced") return proved[0] === { applied: 0, refused: 2, void: 3 }[stated.result];
  const reader = new Reader(proved.slice(1));
  const remained = stated.result === "replaced" ? [stated.remained] : [];
  const amounts = [...remained, stated.sold, stated.bought, stated.left, stated.returned].map(BigInt);
  return proved[0] === (stated.result === "offered" ? 1 : 5) && amounts.every((amount) => amount === reader.big(8)) && reader.count(1) === REASONS.indexOf(stated.why);
}
