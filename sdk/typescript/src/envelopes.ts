/**
 * Orders in envelopes, which nobody reads before the block that holds them is decided: see docs/sealed.md.
 *
 * An ed25519 key signs and pays for an envelope: the trader's own, or that of another account of the same owner (the *payer*),
 * which hides who trades. The orders have numbers of their own accounts, and are signed for this envelope alone.
 *
 * No order goes plain: without a key in force there is a `SealError`, and nothing is sent. The node is asked nothing about the
 * order, neither a quote nor an offer by its id.
 *
 * The envelope is stored before it is sent, and only its bytes are sent again. If it ends before a block has it, or if its
 * number is taken, nothing in it can count: the same orders are sealed anew under the same numbers. With a `reference` they count
 * once over restarts; without one, a call after a crash tells of an envelope whose result nobody has seen.
 */
import { ENVELOPE_LASTS, committeeOf, type CommitteeKey, type SealState } from "./committee-key.js";
import type { Body, Operation, Signed } from "./encoding.js";
import { SealError, SentBeforeError, TransactionRefusedError, VoidError } from "./errors.js";
import { told, type TransactionBody } from "./fate.js";
import type { Fate } from "./models.js";
import { SealError as SealFault, seal, sealedIdOf, type Enclosure, type Envelope, type EnvelopeTerms } from "./sealing.js";
import { NumberGone, type Sender } from "./sending.js";
import type { Limits, Session } from "./session.js";
import { fromHex, toHex } from "./typed.js";

const TRIES = 20;
const SEALABLE: readonly Operation["kind"][] = ["CreateOffer", "Replace", "Exact", "Cancel"];
/** The code of the operation that brings an envelope. */
const ENVELOPE = 32;
const isEnvelope = (operation: Uint8Array): boolean => operation[0] === ENVELOPE;
const NO_SIGNER =
  "an ed25519 key signs envelopes, and this client has another one: give it a `payer`, another Client with the key of a fee " +
  "account or of a session key. Nothing was sent";

/** How texts are sealed; a page gives a worker's. */
export type Seal = (committee: Uint8Array, terms: EnvelopeTerms, operations: Uint8Array[], drawn: Uint8Array) => Envelope | Promise<Envelope>;
type Sent = { wait?: boolean; reference?: string };
/** Seals the orders of a trader; the payer signs and pays for the envelopes. */
export class Envelopes {
  constructor(
    private readonly session: Session,
    private readonly trader: Sender,
    private readonly payer: Sender,
    private readonly how: Seal = seal,
  ) {}

  /** The fate of one order; a `TransactionRefusedError` if it was refused. */
  async sendOne(operation: Operation, sent: Sent): Promise<Fate> {
    const [fate] = (await this.send([operation], sent)) as [Fate];
    if (fate.state !== "refused") return fate;
    throw new TransactionRefusedError(this.session.http.server, 422, fate.code ?? "refused", fate.message ?? "", fate.id, fate.sequence ?? 0n, fate.until ?? 0n);
  }

  /** Seals orders, at most 32, and sends the envelope; unless `wait` is false, until its block. Their fates, in order. */
  async send(operations: Operation[], { wait = true, reference }: Sent = {}): Promise<Fate[]> {
    const other = operations.find((one) => !SEALABLE.includes(one.kind));
    if (other) throw new SealError(`an envelope holds orders, replacements and cancels: send ${other.kind} plain`);
    if (this.payer.key.public === undefined) throw new SealError(NO_SIGNER);
    if (!this.trader.key.signInside) throw new SealError("the key of this client signs nothing for envelopes. Nothing was sent");
    if (reference === undefined) await this.checkTold();
    let committee = await this.committee();
    const places: Signed[] = [];
    for (const _ of operations) places.push(await this.trader.number());
    for (let tries = 0; tries < TRIES; tries += 1) {
      let inside: Signed[] = [];
      const make = async (limits: Limits, sequence: bigint, until: bigint) => {
        const within = this.enclosure(limits, sequence);
        inside = await this.signed(limits, within, until, operations, places);
        return this.envelope(limits, committee, { sequence, until }, inside);
      };
      const { signed: envelope, isNew } = await this.payer.made(make, reference ?? null, ENVELOPE_LASTS, isEnvelope);
      try {
        const fate = await this.payer.deliver(envelope, wait, isNew);
        if (fate.state !== "pending") return await this.fates(envelope, fate, places);
        const within = this.enclosure(await this.session.limits(), envelope.sequence);
        return inside.map((one) => ({ id: sealedIdOf(within, one), state: "pending" as const, sequence: one.sequence, until: one.until }));
      } catch (error) {
        if (!(error instanceof NumberGone) && !(error instanceof VoidError)) throw error;
        // Nothing of it can count any more.
        await this.payer.store.forget(envelope.id);
        if (reference !== undefined) await this.payer.store.reserved(() => this.payer.store.release(reference, envelope.id));
        committee = await this.committee();
      }
    }
    throw new SealError("each envelope ended before a block had it: try again later");
  }

  /** What became of the orders of an envelope that a block has opened. */
  private async fates(envelope: Signed, { outcome }: Fate, places: Signed[]): Promise<Fate[]> {
    const { server } = this.session.http;
    const became = outcome?.result === "sealed" ? outcome : null;
    if (became?.why !== "opened") {
      for (const { sequence } of places) this.trader.numbers.release(sequence, 0n);
      const why = became?.message ?? "the envelope held no signed orders";
      throw new TransactionRefusedError(server, 422, became?.code ?? became?.why ?? "unpaid", `nothing in the envelope counts: ${why}`, envelope.id, envelope.sequence, envelope.until);
    }
    const body = await this.session.http.get<TransactionBody & { inside?: TransactionBody[] }>(`/v1/transactions/${envelope.id}`);
    const fates: Fate[] = [];
    for (const one of body.inside ?? []) {
      const fate = await told(this.session, { ...one, status: "committed", height: body.height ?? 0, until: body.until ?? "0" }, null);
      // The bytes of a refused one count in no other envelope, so that its number is free.
      if (fate.state === "refused") this.trader.numbers.release(BigInt(one.sequence ?? 0), 0n);
      fates.push(fate);
    }
    return fates;
  }

  /** Tells, once, of an envelope whose result no call has seen. */
  private async checkTold(): Promise<void> {
    for (const signed of await this.payer.untold(isEnvelope)) {
      const fate = await this.payer.lookUp(signed);
      if (fate.state !== "void") throw new SentBeforeError(this.session.http.server, signed.id, signed.until, fate.height ?? null);
    }
  }

  private async committee(): Promise<CommitteeKey> {
    const state = await this.session.http.get<SealState>("/v1/seal");
    // An envelope lasts for a few blocks: its end counts from the newest one.
    this.payer.session.saw(state.height);
    return committeeOf(state, this.session.http.server);
  }

  private enclosure({ network }: Limits, sequence: bigint): Enclosure {
    return { network: fromHex(network), payer: fromHex(this.payer.account), sequence };
  }

  /** The orders end with their envelope: whoever pays for it cannot bring them once more later. */
  private signed({ chain }: Limits, within: Enclosure, until: bigint, operations: Operation[], places: Signed[]): Promise<Signed[]> {
    const { account, key } = this.trader;
    const bodies: Body[] = places.map(({ sequence }, at) => ({ chain, account, sequence, until, operation: operations[at]! }));
    return Promise.all(bodies.map((body) => key.signInside!(body, within)));
  }

  private async envelope({ chain, network }: Limits, { number, key }: CommitteeKey, { sequence, until }: { sequence: bigint; until: bigint }, inside: Signed[]): Promise<Signed> {
    const { account, key: signer } = this.payer;
    const terms = { network: fromHex(network), signer: fromHex(signer.public!), key: BigInt(number), payer: fromHex(account), sequence, until };
    const drawn = crypto.getRandomValues(new Uint8Array(32));
    const sealing = async () => this.how(key, terms, inside.map((one) => one.bytes), drawn);
    const { size, point, box } = await sealing().catch((error: unknown) => {
      throw error instanceof SealFault ? new SealError(`${error.message}. Nothing was sent`) : error;
    });
    const operation: Operation = { kind: "Sealed", key: BigInt(number), size, point: toHex(point), sealed: toHex(box) };
    return signer.sign({ chain, account, sequence, until, operation }, network);
  }
}
