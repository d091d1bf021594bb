/** What a shard answers to the requests of clients, as far as its answers depend on what it knows. */
import { readCertificate, type Certificate } from "../../src/lane/certificate.js";
import { shardFor, type Committee } from "../../src/lane/committee.js";
import * as ed25519 from "../../src/lane/ed25519.js";
import { Reader, Refused, hex, join, need, parsed, same } from "../../src/lane/layout.js";
import { checkPayment, digestOf, encodeOutput, isExit, ownerBytes, readPayment, readSummary, type Output, type Payment, type Rules, type Summary } from "../../src/lane/payment.js";
import { checkCertified, idOf, readProof, type Committees, type PaidProof } from "../../src/lane/receipt.js";
import { UNDER_BLS, questionBytes } from "../../src/lane/request.js";
import { LEAVES_MAX } from "../../src/lane/trees.js";

type Spend = { request: "spend"; payment: Payment; signature: Uint8Array; proofs: Uint8Array };
type Request =
  | Spend
  | { request: "settle"; summary: Summary; certificate: Certificate }
  | { request: "batch"; requests: Uint8Array[] }
  | { request: "question"; home: bigint; owner: Uint8Array; output: Uint8Array; signature: Uint8Array };

export function parseRequest(data: Uint8Array): Request {
  const reader = new Reader(data);
  const kind = reader.u8();
  need(kind >= 1 && kind <= 4, "Malformed", "no such request");
  // Proofs are read after all cheaper checks.
  if (kind === 1) return { request: "spend", payment: readPayment(reader), signature: reader.signature(), proofs: reader.rest() };
  let found: Request;
  if (kind === 2) found = { request: "settle", summary: readSummary(reader), certificate: readCertificate(reader) };
  else if (kind === 3) {
    const count = reader.u16();
    need(count >= 1 && count <= LEAVES_MAX, "Malformed", "1 to 4,096 requests");
    found = { request: "batch", requests: reader.times(count, (of) => of.take(of.u32())) };
  } else found = { request: "question", home: reader.u64(), owner: reader.digest(), output: reader.digest(), signature: reader.signature() };
  reader.end();
  return found;
}

export class Shard {
  private readonly reserved = new Map<string, string>();

  constructor(
    private readonly rules: Rules,
    private readonly committee: Committee,
    private readonly committees: Committees,
    private readonly member: number,
    private readonly shard: number,
    private readonly now: bigint,
    private readonly backed: Map<string, Output>,
  ) {}

  /** Answers a request, or refuses it; then nothing has changed. */
  judge(data: Uint8Array): void {
    let scheme = 0;
    if (data[0] === UNDER_BLS) {
      scheme = data[1] ?? 0;
      need(scheme === 2 || scheme === 3, "Malformed", "no such scheme");
      data = data.slice(2);
      if (scheme === 2) need((this.committee.bls[this.member] ?? []).length > 0, "WrongBlsKey");
      else need(this.committee.group !== null, "NoGroupKey");
    }
    const asked = parseRequest(data);
    switch (asked.request) {
      case "spend":
        return this.confirm(asked);
      case "settle":
        this.checkPlace(asked.summary.home, asked.summary.owner);
        return checkCertified(this.committees, 2, asked.summary, asked.certificate);
      case "batch":
        need(scheme !== 3, "Malformed", "a tree is not signed with shares");
        return this.confirmBatch(asked.requests);
      case "question":
        this.checkPlace(asked.home, asked.owner);
        need(ed25519.holds(asked.owner, questionBytes(this.rules.network, asked.home, asked.output), asked.signature), "WrongOwnerSignature");
    }
  }

  private confirmBatch(requests: Uint8Array[]): void {
    const spends = requests.map(parseRequest).map((one) => {
      if (one.request !== "spend") throw new Refused("Malformed", "a batch of other requests");
      return one;
    });
    const confirmed = spends.filter((one) => {
      try {
        this.confirm(one);
        return true;
      } catch (error) {
        if (error instanceof Refused) return false;
        throw error;
      }
    });
    need(confirmed.length > 0, "Malformed", "nothing can be confirmed");
  }

  private checkPlace(home: bigint, owner: Uint8Array): void {
    need(home === this.committee.epoch, "ForeignHome");
    need(shardFor(this.committee, this.member, owner) === this.shard, "ForeignShard");
  }

  private signs(payment: Payment): boolean {
    const [home, since] = [this.committee.epoch, this.now - this.committee.epoch];
    if (since === 0n) return payment.into === home;
    return (since === 1n && payment.into === home + 1n) || ((since === 1n || since === 2n) && isExit(payment));
  }

  private confirm({ payment, signature, proofs: data }: Spend): void {
    checkPayment(payment, this.rules);
    this.checkPlace(payment.home, payment.owner);
    const [digest, ids] = [hex(digestOf(payment)), payment.inputs.map((one) => hex(one.id))];
    for (const id of ids) need((this.reserved.get(id) ?? digest) === digest, "Conflict");
    if (this.reserved.has(ids[0] as string)) return;
    need(this.signs(payment), "WrongEpoch");
    const proofs = parsed((reader) => reader.times(ids.length, readProof), data);
    payment.inputs.forEach(({ id, asset, amount }, at) => {
      this.checkInput(payment, id, { kind: 0, to: payment.owner, asset, amount }, proofs[at] ?? null);
    });
    if (this.now - this.committee.epoch < 2n) need(ed25519.holds(payment.owner, ownerBytes(payment), signature), "WrongOwnerSignature");
    for (const proof of proofs) {
      if (!proof) continue;
      const since = this.committee.epoch - proof.summary.home;
      need(since === 0n || since === 1n, "UnknownCommittee");
      checkCertified(this.committees, 2, proof.summary, proof.certificate);
    }
    for (const id of ids) this.reserved.set(id, digest);
  }

  private checkInput(payment: Payment, id: Uint8Array, output: Output, proof: PaidProof | null): void {
    if (!proof) {
      const backed = this.backed.get(hex(id));
      if (!backed) throw new Refused("UnknownOutput");
      return need(same(join(encodeOutput(backed)), encodeOutput(output)), "ProofOfAnother");
    }
    need(same(idOf(proof, this.rules.network, output), id) && proof.summary.into === payment.home, "ProofOfAnother");
  }
}
