/**
 * What a purse sends and what counts as an answer: signed payments, and answers until a quorum of them decides. Nothing here
 * has a clock, a socket or a disk. The caller stores `stored(payment)` durably before it sends.
 */
import * as bls from "./bls.js";
import { type Certificate, type Claim, verifyAnswer, verifyCertificate } from "./certificate.js";
import { type Committee, type Quorums, blsKeyAt, combine, quorums, shardFor } from "./committee.js";
import * as ed25519 from "./ed25519.js";
import { Reader, Refused, hex, join, need, same, u32 } from "./layout.js";
import {
  CONFIRMATION,
  type Output,
  type Payment,
  type Rules,
  type Spent,
  type Summary,
  checkPayment,
  digestOf,
  encodePayment,
  exitOf,
  ownerBytes,
  parsePayment,
  summaryDigest,
} from "./payment.js";
import type { PaidProof } from "./receipt.js";
import { questionRequest, spendRequest } from "./request.js";
import type { Reply } from "./wire.js";

export const [TREES, AGGREGATE, SHARES] = [0, 2, 3];

/** An output that a purse can spend; without a proof it is the ledger's. */
export type Holding = { id: Uint8Array; output: Output; home: bigint; proof: PaidProof | null };
export const spentOf = ({ id, output: { asset, amount } }: Holding): Spent => ({ id, asset, amount });

export type SignedPayment = { payment: Payment; digest: Uint8Array; signature: Uint8Array; request: Uint8Array };

export const signedBy = (payment: Payment, signature: Uint8Array, proofs: (PaidProof | null)[]): SignedPayment => ({
  payment,
  digest: digestOf(payment),
  signature,
  request: spendRequest(payment, signature, proofs),
});

/** What a purse must have on its disk before the first byte is sent: it is enough to send the same bytes. */
export function stored({ payment, digest, signature, request }: SignedPayment): Uint8Array {
  const data = encodePayment(payment);
  return join(u32(data.length), data, digest, signature, request);
}

export function restored(bytes: Uint8Array): SignedPayment {
  const reader = new Reader(bytes);
  const payment = parsePayment(reader.take(reader.u32()));
  const [digest, signature] = [reader.digest(), reader.signature()];
  need(same(digestOf(payment), digest), "Malformed", "another payment");
  return { payment, digest, signature, request: reader.rest() };
}

/** A payment that spends these outputs whole, checked as a shard checks it before anything is signed. */
export function build(rules: Rules, seed: Uint8Array, held: Holding[], into: bigint, outputs: Output[]): SignedPayment {
  const sorted = [...held].sort((one, other) => (hex(one.id) < hex(other.id) ? -1 : 1));
  const home = sorted[0]?.home ?? into;
  const payment: Payment = { network: rules.network, home, into, owner: ed25519.publicOf(seed), inputs: sorted.map(spentOf), outputs };
  checkPayment(parsePayment(encodePayment(payment)), rules);
  return signedBy(payment, ed25519.sign(seed, ownerBytes(payment)), sorted.map((one) => one.proof));
}

/** A question to the shards of one owner under a committee. What does not verify is no answer. */
export abstract class Asking<T> {
  /** Members that refused finally, and those that may answer the same bytes later, with their reasons. */
  readonly refused = new Map<number, string>();
  readonly excuses = new Map<number, string>();
  protected readonly of: Quorums;

  constructor(readonly committee: Committee) {
    this.of = quorums(committee.keys.length);
  }

  abstract readonly owner: Uint8Array;
  abstract answered(): Set<number>;
  /** Takes a reply of a member; what the answers decide, or null while they do not. */
  abstract add(member: number, reply: Reply): T | null;

  get needed(): number {
    return this.of.certificate;
  }
  private get registered(): number[] {
    return this.committee.keys.flatMap((keys, member) => (keys.length > 0 ? [member] : []));
  }
  /** Members that have neither answered nor refused finally, each with its shard for the owner. */
  toAsk(): { member: number; shard: number }[] {
    const open = this.registered.filter((member) => !this.answered().has(member) && !this.refused.has(member));
    return open.map((member) => ({ member, shard: shardFor(this.committee, member, this.owner) }));
  }
  get isHopeless(): boolean {
    return this.registered.length - this.refused.size < this.needed;
  }
  protected refuse(member: number, { again, text }: { again: boolean; text: string }): void {
    if (!this.answered().has(member)) (again ? this.excuses : this.refused).set(member, text);
  }
  protected holds(reply: { answer: Parameters<typeof verifyAnswer>[0] }, claim: Claim): boolean {
    try {
      verifyAnswer(reply.answer, this.committee, claim);
      return true;
    } catch (error) {
      if (error instanceof Refused) return false;
      throw error;
    }
  }
}

type Part = { answer: Parameters<typeof verifyAnswer>[0] } | { signature: Uint8Array };

/** Answers of members about one payment, until q of them are a certificate. */
export class Collection extends Asking<Certificate> {
  readonly claim: Claim;
  private readonly answers = new Map<number, Part>();

  constructor(
    committee: Committee,
    kind: number,
    readonly summary: Summary,
    readonly scheme = TREES,
  ) {
    super(committee);
    this.claim = { kind, owner: summary.owner, digest: summaryDigest(summary, committee.network) };
  }
  get owner(): Uint8Array {
    return this.summary.owner;
  }
  answered(): Set<number> {
    return new Set(this.answers.keys());
  }

  add(member: number, reply: Reply): Certificate | null {
    if (reply.reply === "refusal") this.refuse(member, reply);
    const isAbout = (reply.reply === "answer" || reply.reply === "bls") && reply.kind === this.claim.kind && same(reply.digest, this.claim.digest);
    if (isAbout && reply.reply === "answer" && this.scheme === TREES && this.holds(reply, this.claim)) {
      this.keep(reply.answer.validator, { answer: reply.answer });
    }
    if (isAbout && reply.reply === "bls" && this.scheme !== TREES && reply.validator === member && this.isSigned(member, reply.signature)) {
      this.keep(member, { signature: reply.signature });
    }
    return this.certificate();
  }

  private keep(member: number, part: Part): void {
    this.answers.set(member, part);
    this.refused.delete(member);
  }

  private isSigned(member: number, signature: Uint8Array): boolean {
    const { committee, claim, scheme } = this;
    const group = committee.group;
    const share = group && !group.struck.has(member) ? group.shares[member] : undefined;
    const key = scheme === SHARES ? share : blsKeyAt(committee, member, shardFor(committee, member, claim.owner));
    return key !== undefined && bls.holds(key, bls.signedBytes(committee.network, committee.epoch, claim.kind, scheme, claim.digest), signature);
  }

  private certificate(): Certificate | null {
    if (this.answers.size < this.needed) return null;
    const members = [...this.answers.keys()].sort((one, other) => one - other).slice(0, this.needed);
    const found = this.made(members.map((member) => [member, this.answers.get(member) as Part]));
    verifyCertificate(found, this.committee, this.claim);
    return found;
  }

  private made(parts: [number, Part][]): Certificate {
    const answers = parts.flatMap(([, part]) => ("answer" in part ? [part.answer] : []));
    if (this.scheme === TREES) return { form: "answers", answers };
    const signatures = new Map(parts.flatMap(([member, part]) => ("signature" in part ? [[member, part.signature] as const] : [])));
    if (this.scheme === SHARES) return { form: "threshold", signature: combine(signatures) };
    const bitmap = new Uint8Array((this.committee.keys.length + 7) >> 3);
    for (const member of signatures.keys()) bitmap[member >> 3] = (bitmap[member >> 3] ?? 0) | (1 << (member % 8));
    const points = [...signatures.values()].map((one) => bls.signatureOrNull(one) as bls.Signature);
    return { form: "aggregate", aggregate: { bitmap, signature: bls.totalOfSignatures(points).toBytes(true) } };
  }
}

/** What spends an output, with the owner's signature; or that a quorum knows nothing. */
export type Spender = { payment: Payment; signature: Uint8Array } | "nothing";

/**
 * What spends an output: whatever its owner signed since a copy of the purse was made. One payment with the owner's signature
 * decides, or f + 1 confirmations of the exit, or a quorum that knows nothing.
 */
export class Inquiry extends Asking<Spender> {
  private readonly silent = new Set<number>();
  private readonly exited = new Set<number>();
  private readonly exit: Payment;

  constructor(
    committee: Committee,
    private readonly holding: Holding,
    private readonly seed: Uint8Array,
  ) {
    super(committee);
    this.exit = exitOf(committee.network, holding.home, holding.output.to, spentOf(holding));
  }
  get owner(): Uint8Array {
    return this.holding.output.to;
  }
  get request(): Uint8Array {
    return questionRequest(this.committee.network, this.committee.epoch, this.seed, this.holding.id);
  }
  answered(): Set<number> {
    return new Set([...this.silent, ...this.exited]);
  }

  add(member: number, reply: Reply): Spender | null {
    if (reply.reply === "refusal") this.refuse(member, reply);
    if (reply.reply === "spender" && same(reply.output, this.holding.id)) {
      if (!reply.spender) this.silent.add(member);
      const own = reply.spender && this.own(reply.spender);
      if (own) return own;
    }
    const claim = { kind: CONFIRMATION, owner: this.owner, digest: digestOf(this.exit) };
    if (reply.reply === "answer" && reply.kind === CONFIRMATION && same(reply.digest, claim.digest) && this.holds(reply, claim)) {
      this.exited.add(reply.answer.validator);
    }
    if (this.exited.size >= this.of.witness) return { payment: this.exit, signature: ed25519.sign(this.seed, ownerBytes(this.exit)) };
    return this.silent.size >= this.needed ? "nothing" : null;
  }

  /** The payment, if it spends this output, by this owner, who signed it. */
  private own({ signature, payment: data }: { signature: Uint8Array; payment: Uint8Array }): Spender | null {
    let payment: Payment;
    try {
      payment = parsePayment(data);
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
    const { id, asset, amount } = spentOf(this.holding);
    const isHere = same(payment.network, this.committee.network) && payment.home === this.holding.home && same(payment.owner, this.owner);
    const spends = payment.inputs.some((one) => same(one.id, id) && one.asset === asset && one.amount === amount);
    return isHere && spends && ed25519.holds(this.owner, ownerBytes(payment), signature) ? { payment, signature } : null;
  }
}
