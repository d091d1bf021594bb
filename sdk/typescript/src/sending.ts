/**
 * Sends transactions so that none is lost and none counts twice.
 *
 * A transaction gets a sequence number and is signed and stored, then it is sent. Whatever happens next, only the same bytes
 * are sent again. The operation is signed anew, under another number, only when the first transaction can never count:
 * another one has its number.
 *
 * Numbers are taken one at a time by all senders with one store, which remembers the highest. Senders of one account without
 * a common store may take the same number: the slower one signs again, unless both sign the same operation with the same
 * end, which is one transaction; ends differ by chance.
 *
 * A session key numbers in its slot, which has a window of its own. A slot's own *stop* voids its lower numbers: what was sent
 * before and comes after it is void, and is not signed anew under a number above the stop.
 *
 * Whoever has seen a refused transaction may send it again until it ends. So it stays stored, its number is used next with a
 * later end (of two bodies with one number the one that ends later counts), and the same operation, asked for again, is sent
 * as the same bytes.
 */
import { Signed, encodeOperation, type Life, type Operation } from "./encoding.js";
import {
  BusyError,
  ClientError,
  NumbersError,
  OtherNetworkError,
  RefusedError,
  SentBeforeError,
  SessionKeyError,
  StoreError,
  TransactionRefusedError,
  UndecidedError,
  VoidError,
} from "./errors.js";
import { fateOf, fateOfNumber, told, type TransactionBody } from "./fate.js";
import { pause } from "./http.js";
import type { Key } from "./keys.js";
import type { Account, Fate, SessionKey } from "./models.js";
import type { Limits, Session } from "./session.js";
import type { Store } from "./store.js";
import { toHex } from "./typed.js";

const PAUSES_MS = [10, 500] as const;
const LAG_PATIENCE_MS = 30_000;
const RENUMBERED_MAX = 100;
/** With so many stored transactions, those that are final are looked for and removed. */
const STORED_MANY = 128;
const NUMBER_GONE = ["sequence_used", "sequence_too_old"];
/** Codes with which a block refuses a transaction for its number. */
const NUMBER_REFUSED = [...NUMBER_GONE, "sequence_conflict", "duplicate"];
/** Refusals that pass: another pending transaction has the number, or the block was full of such operations. */
const WAITS = ["sequence_conflict", "sequence_too_far", "over_quota", "duplicate"];

/** Another transaction has the number: this one can never count. */
export class NumberGone extends Error {}

const largest = (values: bigint[]): bigint => values.reduce((most, value) => (value > most ? value : most), 0n);

/** The sequence numbers of an account, handed out once each. */
export class Numbers {
  isKnown = false;
  private highest = 0n;
  private next = 1n;
  /** Numbers of refused transactions, with the last block in which those may count. */
  private free = new Map<bigint, bigint>();

  constructor(public window = 64n) {}

  /** The highest number that the ledger would take now. */
  get last(): bigint {
    return this.highest + this.window;
  }

  learn(highest: bigint, next: bigint): void {
    this.isKnown = true;
    this.highest = largest([this.highest, highest]);
    this.next = largest([this.next, next]);
    for (const number of this.free.keys()) if (number <= this.highest - this.window) this.free.delete(number);
  }

  /** A number and the least end of its transaction; null while the window is full. `taken` is the highest one of others. */
  take(taken: bigint): { sequence: bigint; least: bigint } | null {
    const freed = [...this.free.entries()].sort(([a], [b]) => (a < b ? -1 : 1))[0];
    if (freed) {
      this.free.delete(freed[0]);
      return { sequence: freed[0], least: freed[1] + 1n };
    }
    const sequence = largest([this.next, taken + 1n]);
    if (sequence > this.last) return null;
    this.next = sequence + 1n;
    return { sequence, least: 0n };
  }

  /** Whether numbers were handed out `steps` above this one. */
  isFarAbove(sequence: bigint, steps: bigint): boolean {
    return this.next - sequence > steps;
  }

  /** Gives back the number of a transaction without effect, which may count up to block `ended`. */
  release(sequence: bigint, ended: bigint): void {
    this.free.set(sequence, largest([ended, this.free.get(sequence) ?? 0n]));
  }
}

/**
 * `kept` is told of each transaction that is signed for the operation, before that is sent. `isForm` says which encoded operations
 * mean the same: if one of them was sent for the reference, or without a result, that one counts.
 */
export type SendOptions = {
  reference?: string;
  wait?: boolean;
  kept?: (signed: Signed) => Promise<void>;
  isForm?: IsForm;
  /** Of orders: it goes in an envelope, see `envelopes.ts`; a `SealError` says why one cannot, and nothing is sent then. */
  sealed?: boolean;
};
type IsForm = (operation: Uint8Array) => boolean;
/** Of an offer: what becomes of the part that is not sold at once, and what its client calls it. */
export type OfferOptions = SendOptions & { life?: Life; client?: string };

type Taken = { signed: Signed; isNew: boolean };
/** For how many blocks a transaction may count, and whether it is stored to be sent from here. */
type How = { lasts: number; isStored: boolean; isForm: IsForm; repeats?: boolean };
/** Makes a transaction of a number and an end. */
type Make = (limits: Limits, sequence: bigint, until: bigint) => Promise<Signed>;

function sameAs(operation: Operation): IsForm {
  const encoded = toHex(encodeOperation(operation));
  return (other) => toHex(other) === encoded;
}

/** An account, its key and its store. */
export class Sender {
  readonly numbers = new Numbers();
  /** Stored transactions that no call attends to; null before the store was looked at. */
  private doubtful: Set<string> | null = null;
  /** Those of them that were refused here, as their callers know. */
  private readonly knownRefused = new Set<string>();
  /** Stops that were left with a node whose connection is lost: it submits them. */
  readonly lostStops: Signed[] = [];
  /** How often this sender stopped its slot. */
  private stops = 0;

  constructor(
    readonly session: Session,
    readonly account: string,
    readonly key: Key,
    readonly store: Store,
    private readonly patienceMs: number,
    private readonly lasts: number,
    /** The slot of the session key that signs; 0 of the account's own key. */
    readonly slot = 0,
  ) {}

  /** What the store calls these numbers. */
  private get numbered(): string {
    return this.slot === 0 ? this.account : `${this.account}.${this.slot}`;
  }

  /** Whether a stored transaction has one of this sender's numbers. */
  signs(signed: Signed): boolean {
    return signed.account === this.account && signed.slot === this.slot;
  }

  /** What was sent before this counts no more, and is not signed anew. */
  stopped(): void {
    this.stops += 1;
  }

  /** The session key that signs, as an account has it; a `SessionKeyError` if it has another one there. */
  ownSession(account: Account): SessionKey {
    const found = account.sessions.find((one) => one.slot === this.slot);
    if (!found) {
      const there = account.sessions.map((one) => one.slot).join(", ") || "none";
      const gone = "it was revoked, has ended, or was never added";
      throw new SessionKeyError(`${this.account} has no session key in slot ${this.slot}: ${gone}; slots with a key: ${there}`);
    }
    if (found.key !== this.key.public) {
      const named = `${found.key}, and not ${this.key.public ?? this.key.address}`;
      throw new SessionKeyError(`the key of slot ${this.slot} of ${this.account} is ${named}: name the slot that \`sessions()\` shows for it`);
    }
    return found;
  }

  private get server(): string {
    return this.session.http.server;
  }

  /** Signs an operation and sends it; unless `wait` is false, until its block. */
  async send(operation: Operation, { reference, wait = true, kept, isForm }: SendOptions): Promise<Fate> {
    const { stops } = this;
    for (let tries = 0; tries < RENUMBERED_MAX; tries += 1) {
      const { signed, isNew } = await this.sign(operation, reference ?? null, isForm);
      await kept?.(signed);
      try {
        return await this.deliver(signed, wait, isNew);
      } catch (error) {
        if (!(error instanceof NumberGone) && !(error instanceof VoidError && reference !== undefined)) throw error;
        await this.store.forget(signed.id);
        if (stops !== this.stops) throw new VoidError(this.server, signed.id, `slot ${this.slot} was stopped after it was sent`);
        // Another call may have signed anew for this reference meanwhile: that record stays.
        if (reference !== undefined) await this.store.reserved(() => this.store.release(reference, signed.id));
      }
    }
    throw new NumbersError("others that use this account take every number first; nothing was done. Try again later");
  }

  /**
   * Signs an operation that another one may send later, under a number that nothing else takes. It is not stored: this client
   * does not send it.
   */
  async hold(operation: Operation, lasts: number): Promise<Signed> {
    return (await this.signNumbered(this.plain(operation), null, { lasts, isStored: false, isForm: () => false })).signed;
  }

  /** Signs an operation under a free number and stores it; or finds the one that the reference names, which is not new. */
  sign(operation: Operation, reference: string | null, isForm?: IsForm): Promise<Taken> {
    return this.signNumbered(this.plain(operation), reference, { lasts: this.lasts, isStored: true, isForm: isForm ?? sameAs(operation), repeats: true });
  }

  private plain(operation: Operation): Make {
    return ({ chain, network }, sequence, until) => this.key.sign({ chain, account: this.account, sequence, until, operation }, network);
  }

  /** A number and an end that nothing else takes, on a transaction that nobody has signed. */
  async number(): Promise<Signed> {
    const unsigned: Make = async ({ chain }, sequence, until) => {
      const operation: Operation = { kind: "Cancel", offers: [] };
      return Signed.byKey({ chain, account: this.account, sequence, until, operation }, new Uint8Array(32), new Uint8Array(64));
    };
    return (await this.signNumbered(unsigned, null, { lasts: this.lasts, isStored: false, isForm: () => false })).signed;
  }

  /** As `sign`, of a transaction that is made for its number. */
  made(make: Make, reference: string | null, lasts: number, isForm: IsForm): Promise<Taken> {
    return this.signNumbered(make, reference, { lasts, isStored: true, isForm });
  }

  /** Stored transactions of this form whose results no call has told. */
  async untold(isForm: IsForm): Promise<Signed[]> {
    this.doubtful ??= new Set((await this.store.all()).map((one) => one.id));
    const stored = await Promise.all([...this.doubtful].map((id) => this.store.get(id)));
    return stored.filter((one): one is Signed => one !== null && isForm(one.operation) && this.signs(one));
  }

  /** The fate of a stored transaction; one that is final is no longer stored. */
  async lookUp(signed: Signed): Promise<Fate> {
    const fate = await fateOf(this.session, signed.id, signed);
    if (fate.state === "executed" || fate.state === "void") {
      this.doubtful?.delete(signed.id);
      await this.store.forget(signed.id);
    }
    return fate;
  }

  private async signNumbered(make: Make, reference: string | null, how: How): Promise<Taken> {
    const limits = await this.session.limits();
    this.numbers.window = limits.sequenceWindow;
    await this.checkNetwork(limits.network);
    const begun = performance.now();
    let taken: Taken | null = null;
    while (taken === null) {
      // While others wait, the node may be asked: a browser has one thread.
      taken = await this.store.reserved(() => this.take(make, reference, limits, how));
      if (taken !== null) break;
      if (performance.now() - begun > this.patienceMs) {
        throw new NumbersError(
          `all ${limits.sequenceWindow} numbers above the highest committed one are pending; nothing was done. Wait for blocks, or use another account`,
        );
      }
      await pause(50);
    }
    return taken;
  }

  /** Removes what is not stored whole, which nothing can send again, once the node says what became of it. */
  private async clearTorn(): Promise<void> {
    for (const id of await this.store.torn()) {
      const { state } = await fateOf(this.session, id, null);
      // Its number is taken, and its operation may be this one.
      if (state === "pending") throw new StoreError(`transaction ${id} is pending, and its record is torn: ask fate("${id}"), then go on`);
      await this.store.forget(id);
    }
  }

  private async take(make: Make, reference: string | null, limits: Limits, { lasts, isStored, isForm, repeats = false }: How): Promise<Taken | null> {
    const known = reference === null ? null : await this.store.referenced(reference);
    if (known) {
      if (isForm(known.operation) && this.signs(known)) return { signed: known, isNew: false };
      throw new StoreError(`the reference ${JSON.stringify(reference)} stands for another operation: choose a new one`);
    }
    if (!this.numbers.isKnown) await this.clearTorn();
    const stored = (await this.store.all()).filter((one) => this.signs(one));
    const before = reference === null && repeats ? await this.sentBefore(isForm) : null;
    if (before) return { signed: before, isNew: false };
    if (stored.length > STORED_MANY) await this.settle();
    if (!this.numbers.isKnown) await this.waitUntilCaughtUp();
    const above = largest([await this.store.highest(this.numbered), ...stored.map((one) => one.sequence)]);
    let taken = this.numbers.isKnown ? this.numbers.take(above) : null;
    if (!taken) {
      const account = await this.session.account(this.account);
      const { highest, next } = this.slot === 0 ? account : this.ownSession(account);
      this.numbers.learn(highest, next);
      // Where nothing is pending, numbers beyond the window were taken by transactions without effect.
      const least = stored.length === 0 && above >= this.numbers.last ? this.numbers.last - 1n : above;
      taken = this.numbers.take(least);
    }
    if (!taken) return null;
    const ends = BigInt((await this.session.height()) + lasts - Math.floor(Math.random() * (lasts / 4 + 1)));
    const until = largest([ends, taken.least]);
    const { sequence } = taken;
    const signed = await make(limits, sequence, until).catch((error: unknown) => {
      this.numbers.release(sequence, 0n);
      throw error;
    });
    if (isStored) await this.store.keep(signed, reference);
    await this.store.took(this.numbered, signed.sequence);
    // Whoever knows the reference may have sent the bytes before this call does.
    return { signed, isNew: reference === null };
  }

  /**
   * A stored transaction of the same operation that was refused: its bytes are sent again, since anybody may send them.
   * Refuses an operation that was sent by a call or a page that has not told its result.
   */
  private async sentBefore(isForm: IsForm): Promise<Signed | null> {
    this.doubtful ??= new Set((await this.store.all()).map((one) => one.id));
    for (const id of this.doubtful) {
      const signed = await this.store.get(id);
      if (!signed || !isForm(signed.operation) || !this.signs(signed)) continue;
      const { state, height } = await fateOf(this.session, id, signed);
      const isRefused = state === "refused" || (state === "unknown" && this.knownRefused.has(id));
      if (isRefused || state === "executed" || state === "void") this.doubtful.delete(id);
      if (isRefused) return signed;
      if (state === "void") {
        await this.letGo(signed);
        continue;
      }
      // Who called has not been told that it was executed: it is told now, once.
      if (state === "executed") await this.store.forget(id);
      throw new SentBeforeError(this.server, id, signed.until, height ?? null);
    }
    return null;
  }

  /** A key keeps to the network that it first signed for, until its owner names another. */
  private async checkNetwork(network: string): Promise<void> {
    const known = await this.store.network();
    if (known !== null && known !== network && !this.session.isNetworkNamed) throw new OtherNetworkError(this.server, network, known);
    if (known !== network) await this.store.signFor(network);
  }

  /** Waits while the node lags: it may name a used number, and a repeated transaction would seem to be committed. */
  private async waitUntilCaughtUp(): Promise<void> {
    const begun = performance.now();
    for (;;) {
      try {
        return await this.session.http.check("/readyz");
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        if (error.code !== "catching_up") return;
        if (performance.now() - begun > LAG_PATIENCE_MS) throw error;
      }
      await pause(200);
    }
  }

  /** Sends a transaction, see `untilTold`. If the call ends without a result, that is noted. */
  async deliver(signed: Signed, wait: boolean, isNew = false): Promise<Fate> {
    let isTold = false;
    try {
      const fate = await this.untilTold(signed, wait, isNew);
      isTold = true;
      return fate;
    } finally {
      if (!isTold && (await this.store.get(signed.id))) (this.doubtful ??= new Set()).add(signed.id);
    }
  }

  /**
   * Sends the same bytes until there is an answer; with `wait` until its block. It is asked for rather than waited for at the
   * node: a transaction that another one with its number displaces gets no answer there. `isNew` says that nobody has seen the
   * bytes yet.
   */
  private async untilTold(signed: Signed, wait: boolean, isNew: boolean): Promise<Fate> {
    const { blockIntervalMs } = await this.session.limits();
    const longest = Math.min(Math.max(blockIntervalMs / 8, PAUSES_MS[0]), PAUSES_MS[1]);
    const begun = performance.now();
    let [wait_ms, isPending, why]: [number, boolean, string] = [PAUSES_MS[0], false, "it waits for a block"];
    for (;;) {
      let fate: Fate | null = null;
      try {
        fate = isPending ? await fateOf(this.session, signed.id, signed) : await this.submit(signed);
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        why = error instanceof RefusedError ? error.remedy : error.message;
        // Nobody has seen the bytes before, and the node did not take them.
        if (isNew && error instanceof RefusedError && NUMBER_GONE.includes(error.code)) throw new NumberGone();
        if (error instanceof BusyError) {
          wait_ms = Math.max(wait_ms, error.retryAfterMs);
        } else if (error.leavesDoubt) {
          // The node may have it: the next question is what it knows.
          isPending = true;
        } else if (isPending || !(error instanceof RefusedError)) {
          throw error;
        } else if (NUMBER_GONE.includes(error.code) || error.code === "ended") {
          isPending = true;
          this.session.forgetHeight();
        } else if (!WAITS.includes(error.code)) {
          throw this.refused(signed, error.status, error.code, error.remedy);
        }
      }
      isNew = false;
      if (fate) {
        // It may be a copy of one that was executed, or come after another with its number.
        const forItsNumber = fate.state === "refused" && fate.height !== undefined && NUMBER_REFUSED.includes(fate.code ?? "");
        if (forItsNumber) fate = (await fateOfNumber(this.session, signed)) ?? fate;
        await this.settled(fate, signed);
        isPending = fate.state === "pending";
        why = fate.message ?? why;
        if (fate.state === "executed" || (isPending && !wait)) return fate;
      }
      if (performance.now() + wait_ms - begun > this.patienceMs) throw new UndecidedError(this.server, signed.id, signed.until, why);
      await pause(wait_ms);
      wait_ms = Math.min(wait_ms * 2, longest);
    }
  }

  private async submit(signed: Signed): Promise<Fate> {
    return told(this.session, await this.session.http.post<TransactionBody>("/v1/transactions", signed.bytes), signed);
  }

  /** Forgets what is final, and throws what had no effect. */
  private async settled(fate: Fate, signed: Signed): Promise<void> {
    if (fate.state === "executed") await this.store.forget(signed.id);
    if (fate.state === "refused" && fate.height !== undefined) {
      throw this.refused(signed, 422, fate.code ?? "refused", fate.message ?? "");
    }
    if (fate.state === "void") {
      if (fate.code === "number_taken") throw new NumberGone();
      await this.letGo(signed);
      throw new VoidError(this.server, signed.id, fate.message ?? "it has ended");
    }
  }

  private refused(signed: Signed, status: number, code: string, remedy: string): TransactionRefusedError {
    // It stays stored until it can never count: anybody may send it again.
    this.knownRefused.add(signed.id);
    this.numbers.release(signed.sequence, signed.until);
    return new TransactionRefusedError(this.server, status, code, remedy, signed.id, signed.sequence, signed.until);
  }

  private async letGo(signed: Signed): Promise<void> {
    await this.store.forget(signed.id);
    this.numbers.release(signed.sequence, signed.until);
  }

  /** Sends a stored transaction again, unchanged. */
  async retry(id: string, wait: boolean): Promise<Fate> {
    const signed = await this.store.get(id);
    if (!signed) throw new StoreError(`transaction ${id} is not stored here: it is final, or was sent by another client`);
    try {
      return await this.deliver(signed, wait);
    } catch (error) {
      if (!(error instanceof NumberGone)) throw error;
      await this.store.forget(id);
      throw new VoidError(this.server, id, "another transaction of the account has its number");
    }
  }

  /** The fates of all stored transactions; those that are final are no longer stored. */
  async settle(): Promise<Fate[]> {
    const fates: Fate[] = [];
    for (const signed of await this.store.all()) {
      if (!this.signs(signed)) continue;
      const fate = await fateOf(this.session, signed.id, signed);
      if (fate.state === "executed" || fate.state === "void") await this.store.forget(signed.id);
      fates.push(fate);
    }
    return fates;
  }
}
