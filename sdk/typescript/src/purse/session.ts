/** A purse in use: its secrets, the lane as a node tells it, and the shards. */
import type { Client } from "../client.js";
import { pause } from "../http.js";
import type { Certificate } from "../lane/certificate.js";
import { AGGREGATE, Collection, type Holding, Inquiry, SHARES, type SignedPayment, type Spender, TREES, build, signedBy, spentOf } from "../lane/collect.js";
import type { Committee } from "../lane/committee.js";
import { Refused, hex } from "../lane/layout.js";
import { ACKNOWLEDGEMENT, CONFIRMATION, INPUTS_MAX, type Output, type Payment, type Summary, digestOf, exitOf, summaryDigest, summaryOf } from "../lane/payment.js";
import { settleRequest, under } from "../lane/request.js";
import type { PurseContents } from "./contents.js";
import { LaneError, OtherLaneError, PurseError, UnconfirmedError } from "./errors.js";
import { idText } from "./files.js";
import { resolve } from "./ledger.js";
import type { LaneNetwork, LaneNow } from "./network.js";
import { type Carrier, Shards, relayOf } from "./shards.js";

/** A payment built so few heights before the end of its epoch may come too late: the purse waits, but not for ever. */
const [MARGIN_HEIGHTS, MARGIN_MS, PAUSE_MS] = [3, 5_000, 50];

type Open = { summary: Summary; certificate: Certificate; what: string; keep: (proof: Certificate) => Promise<void> };

export class Session {
  constructor(
    readonly contents: PurseContents,
    private readonly secret: Uint8Array | null,
    public client: Client | null,
    private readonly patienceMs: number,
    private readonly carrier: Carrier | null,
  ) {}

  get network(): LaneNetwork {
    return this.contents.network;
  }
  get seed(): Uint8Array {
    if (!this.secret) throw new PurseError("the purse was opened without its passphrase: it makes no keys and spends nothing");
    return this.secret;
  }
  get node(): Client {
    if (!this.client) throw new PurseError("the purse was opened without a client: give it one, such as new Client(server)");
    return this.client;
  }

  /** The lane at a time when payments may be built, once the purse knows what it has spent. */
  async begin(): Promise<LaneNow> {
    // Without it nothing is asked.
    void this.seed;
    await resolve(this, 0);
    const until = Date.now() + MARGIN_MS;
    let now = await this.now();
    for (; now.heightsLeft <= MARGIN_HEIGHTS && Date.now() < until; now = await this.now()) await pause(PAUSE_MS);
    if (now.halted) throw new LaneError("the lane is halted: nothing was sent. Try again later");
    if (await this.contents.files.isCopy()) await this.restore(now);
    return now;
  }

  /** The lane as the node tells it now. */
  async now(): Promise<LaneNow> {
    const now = await this.network.learn(this.node);
    if (now.hasShards) return now;
    throw new OtherLaneError(`the node at ${this.node.server} does not know where the lane's shards are: give a member's node`);
  }

  private committee(home: bigint): Committee {
    const found = this.network.committee(home);
    if (found) return found;
    throw new LaneError(`the keys of a quorum of lane epoch ${home} are not proved: it is over, or has not begun`);
  }
  private shards(home: bigint): Shards {
    // Without a client there is an error of that.
    return new Shards(this.committee(home), this.carrier ?? relayOf(this.node));
  }

  checkScheme(home: bigint, scheme: number): void {
    const { group, bls } = this.committee(home);
    const lacks = (scheme === SHARES && group === null) || (scheme === AGGREGATE && bls.every((keys) => keys.length === 0));
    if (!lacks) return;
    throw new LaneError(
      `the members have no keys for this scheme in lane epoch ${home}: nothing was sent. Use the scheme "merkle", which works in every lane epoch`,
    );
  }

  built(inputs: Holding[], into: bigint, outputs: Output[]): SignedPayment {
    const secret = this.contents.keys.secret(this.seed, inputs[0]?.output.to ?? new Uint8Array());
    try {
      return build(this.network.rules(inputs[0]?.home ?? 0n), secret, inputs, into, outputs);
    } catch (error) {
      if (error instanceof Refused) throw new PurseError(`this payment breaks a rule of the lane, so nothing was sent: ${error.message}`);
      throw error;
    }
  }

  private collected(kind: number, summary: Summary, request: Uint8Array, scheme: number): Promise<Certificate> {
    const shards = this.shards(summary.home);
    return shards.ask(new Collection(shards.committee, kind, summary, scheme), under(scheme, request), this.patienceMs);
  }

  /** Has a payment in the outbox confirmed, and stores its certificate. */
  async confirm({ payment, digest, request }: SignedPayment, scheme = TREES): Promise<Certificate> {
    try {
      const certificate = await this.collected(CONFIRMATION, summaryOf(payment), request, scheme);
      await this.contents.finishSent(digest, certificate);
      return certificate;
    } catch (error) {
      throw error instanceof LaneError ? new UnconfirmedError(idText(digest), error.message) : error;
    }
  }

  acknowledge(summary: Summary, certificate: Certificate, scheme = TREES): Promise<Certificate> {
    return this.collected(ACKNOWLEDGEMENT, summary, settleRequest(summary, certificate), scheme);
  }

  /** What is confirmed and not settled: own payments, and what was received. */
  private async open(now: LaneNow): Promise<Open[]> {
    const { sent, held } = await this.contents.contents();
    const own = sent.flatMap(({ id, payment, certificate, isSettled }): Open[] => {
      const keep = (proof: Certificate) => this.contents.settleSent(payment.digest, proof);
      return certificate && !isSettled ? [{ summary: summaryOf(payment.payment), certificate, what: `payment ${id}`, keep }] : [];
    });
    const received = [...held.values()].flatMap((one): Open[] => {
      if (!one.receipt || !one.isReceived || one.isSettled) return [];
      const { summary, certificate } = one.receipt.proof;
      const keep = (proof: Certificate) => this.contents.keepSettled(one, summaryDigest(summary, this.network.id), proof);
      return [{ summary, certificate, what: `output ${idText(one.holding.id)}`, keep }];
    });
    return [...own, ...received].filter(({ summary }) => now.epoch <= summary.home + 2n);
  }

  /** Settles them; the number, and why others are not settled. */
  async settleAll(now: LaneNow): Promise<{ settled: number; failed: string[] }> {
    const [failed, open] = [[] as string[], await this.open(now)];
    for (const { summary, certificate, what, keep } of open) {
      try {
        await keep(await this.acknowledge(summary, certificate));
      } catch (error) {
        if (!(error instanceof LaneError)) throw error;
        failed.push(`${what}: ${error.message}`);
      }
    }
    return { settled: open.length - failed.length, failed };
  }

  /** Moves outputs of the previous epoch into this one, to new keys; none that is worth less than the fee. */
  async renew(now: LaneNow): Promise<number> {
    const groups = new Map<string, Holding[]>();
    for (const one of await this.contents.holdings()) {
      if (one.home + 1n !== now.epoch) continue;
      const place = `${hex(one.output.to)} ${one.output.asset}`;
      groups.set(place, [...(groups.get(place) ?? []), one]);
    }
    let renewed = 0;
    for (const group of groups.values()) {
      for (let at = 0; at < group.length; at += INPUTS_MAX) {
        const inputs = group.slice(at, at + INPUTS_MAX);
        const asset = inputs[0]?.output.asset ?? 0;
        const { least, fee } = this.network.rule(asset, inputs[0]?.home ?? 0n);
        const amount = inputs.reduce((sum, one) => sum + one.output.amount, 0n) - fee;
        if (amount < least || amount < 1n) continue;
        const to = await this.contents.keys.make(this.seed);
        const payment = this.built(inputs, now.epoch, [{ kind: 0, to, asset, amount }]);
        await this.contents.insert(payment);
        const proof = await this.acknowledge(summaryOf(payment.payment), await this.confirm(payment));
        await this.contents.settleSent(payment.digest, proof);
        renewed += inputs.length;
      }
    }
    return renewed;
  }

  /** Returns outputs that can only go to the ledger to the accounts of their keys. */
  async sendHome(now: LaneNow): Promise<number> {
    const late = (await this.contents.holdings()).filter((one) => one.home + 2n === now.epoch);
    for (const one of late) {
      const payment = this.built([one], one.home, exitOf(this.network.id, one.home, one.output.to, spentOf(one)).outputs);
      await this.contents.insert(payment);
      await this.confirm(payment);
    }
    return late.length;
  }

  /** Asks until nothing new is learned; the number of payments that the purse did not know. */
  async restore(now: LaneNow): Promise<number> {
    for (let found = 0; ; ) {
      const heard = new Map<string, Exclude<Spender, "nothing">>();
      for (const held of await this.contents.holdings()) {
        const spender = now.epoch > held.home + 2n ? "nothing" : await this.spender(held);
        if (spender !== "nothing") heard.set(idText(digestOf(spender.payment)), spender);
      }
      for (const { id } of await this.contents.sent()) heard.delete(id);
      if (heard.size === 0) {
        await this.contents.settleIn();
        return found;
      }
      for (const { payment, signature } of heard.values()) {
        await this.contents.keys.findLost(this.seed, payment.outputs.flatMap((output) => (output.kind === 0 ? [output.to] : [])));
        const signed = await this.signed(payment, signature);
        await this.contents.insert(signed);
        await this.confirm(signed);
        found += 1;
      }
    }
  }

  private async spender(held: Holding): Promise<Spender> {
    const shards = this.shards(held.home);
    const inquiry = new Inquiry(shards.committee, held, this.contents.keys.secret(this.seed, held.output.to));
    try {
      return await shards.ask(inquiry, inquiry.request, this.patienceMs);
    } catch (error) {
      if (!(error instanceof LaneError)) throw error;
      throw new LaneError(`the purse may be a copy, and the validators did not answer what it has spent (${error.message})`);
    }
  }

  /**
   * The request of a payment that validators know: those that answer have reserved its inputs, so proofs of inputs that the purse
   * has lost do not matter to them.
   */
  private async signed(payment: Payment, signature: Uint8Array): Promise<SignedPayment> {
    const { held, spent } = await this.contents.contents();
    const proofs = payment.inputs.map(({ id }) => (held.get(hex(id)) ?? spent.get(hex(id)))?.holding.proof ?? null);
    return signedBy(payment, signature, proofs);
  }
}
