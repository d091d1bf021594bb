/**
 * Session keys: an account adds, lists and revokes them, and a key keeps its offers alive.
 *
 * A key is added once, however often it is asked for: the account's list and the stored transactions are looked at first. A
 * timer raises only what is alive: a slot that was stopped, by its owner or because a connection ended, stays stopped until
 * its program says `alive` itself.
 */
import type { Amount } from "./assets.js";
import { sessionPossessionBytes, type Operation, type Signed } from "./encoding.js";
import { AmountError, ClientError, SessionKeyError, TransactionRefusedError } from "./errors.js";
import type { Ed25519Key } from "./keys.js";
import type { Fate, SessionKey } from "./models.js";
import type { Sender, SendOptions } from "./sending.js";
import type { Session } from "./session.js";
import { toHex } from "./typed.js";

/** Heights for which a key is added, unless the caller says otherwise. */
const HEIGHTS = 100_000;
const TRIES = 16;
const PAUSES_MS = [20, 30_000] as const;
const RETRY_MS = 500;

/** Of a key that is added. `alive`: its offers end after so many heights, unless it is heard before. */
export type SessionTerms = { scope?: "cancel" | "trade"; lasts?: number; alive?: number };

/** The session keys of an account. */
export class Slots {
  constructor(
    private readonly session: Session,
    readonly sender: Sender,
  ) {}

  /** A slot, by default the client's own. */
  slot(slot: number | undefined): number {
    if (slot === undefined && this.sender.slot === 0) throw new RangeError("name the slot: this client has the account's own key");
    return slot ?? this.sender.slot;
  }

  async all(address: string): Promise<SessionKey[]> {
    return (await this.session.account(address)).sessions;
  }

  /** The session key that signs here, as the chain has it. */
  async own(): Promise<SessionKey> {
    return this.sender.ownSession(await this.session.account(this.sender.account));
  }

  async add(key: Ed25519Key, caps: Record<string, Amount>, { scope = "trade", lasts = HEIGHTS, alive }: SessionTerms): Promise<SessionKey> {
    const [assets, limits] = [await this.session.assets(), await this.session.limits()];
    if (!(limits.feeAsset in caps)) throw new AmountError(`caps: without one for ${limits.feeAsset} the key cannot pay fees, and so can do nothing`);
    const of = (symbol: string, most: Amount) => ({ asset: assets.get(symbol).number, units: assets.get(symbol).units(most) });
    const units = Object.entries(caps).map(([symbol, most]) => of(symbol, most)).sort((a, b) => a.asset - b.asset);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const account = await this.session.account(this.sender.account);
      const found = account.sessions.find((one) => one.key === key.public && one.status !== "ended");
      if (found) return found;
      const begun = await this.begun(key);
      if (begun) {
        await this.sent(this.sender.retry(begun.id, true));
        continue;
      }
      const slot = account.session_slots + 1;
      const ends = account.height + lasts;
      const possession = toHex(key.agree(sessionPossessionBytes(limits.network, this.sender.account, slot, key.public)));
      const heights = { ends: BigInt(ends), alive: BigInt(Math.min(ends, account.height + (alive ?? lasts))) };
      const operation: Operation = { kind: "AuthorizeSession", slot, key: key.public, scope, ...heights, caps: units, possession };
      await this.sent(this.sender.send(operation, {}));
    }
    throw new ClientError(`others take every slot of ${this.sender.account} first; nothing was added. Try again later`);
  }

  /** A stored transaction that adds this key: its result was not seen. */
  private async begun(key: Ed25519Key): Promise<Signed | null> {
    const adds = ({ operation }: Signed) => operation[0] === 15 && operation[1] === 0 && toHex(operation.slice(6, 38)) === key.public;
    return (await this.sender.store.all()).find((one) => this.sender.signs(one) && adds(one)) ?? null;
  }

  /** Sends what adds a key. Another one may have taken its slot meanwhile, which never returns. */
  private async sent(sending: Promise<Fate>): Promise<void> {
    try {
      await sending;
    } catch (error) {
      if (!(error instanceof TransactionRefusedError) || error.code !== "session_slot") throw error;
      await this.sender.store.forget(error.id);
    }
  }

  revoke(slot: number, options: SendOptions): Promise<Fate> {
    return this.sender.send({ kind: "RevokeSession", slot }, options);
  }

  async alive(blocks: number, slot: number | undefined, options: SendOptions): Promise<Fate> {
    const own = this.slot(slot);
    const account = await this.session.account(this.sender.account);
    const ends = account.sessions.find((one) => one.slot === own)?.ends ?? Infinity;
    const through = BigInt(Math.min(account.height + blocks, ends));
    return this.sender.send({ kind: "SessionAlive", slot: own, through }, options);
  }

  async stop(slot: number | undefined, options: SendOptions): Promise<Fate> {
    const own = this.slot(slot);
    if (own === this.sender.slot) this.sender.stopped();
    return this.sender.send({ kind: "SessionAlive", slot: own, through: 0n }, options);
  }

  /**
   * Raises the timer of the own slot where less than half of `blocks` is left; gives the time until the next look. A
   * `SessionKeyError` where the slot is not alive any more.
   */
  async beat(blocks: number): Promise<number> {
    const account = await this.session.account(this.sender.account);
    const own = this.sender.ownSession(account);
    if (own.status !== "live") {
      const where = `slot ${own.slot} of ${this.sender.account} is ${own.status} at height ${account.height}`;
      throw new SessionKeyError(`${where}: its offers have ended, and this timer does not bring a stopped slot back; say \`alive\` to trade again`);
    }
    const through = Math.min(account.height + blocks, own.ends);
    if (own.alive - account.height <= blocks / 2 && through > own.alive) {
      try {
        await this.sender.send({ kind: "SessionAlive", slot: own.slot, through: BigInt(through) }, {});
      } catch (error) {
        // Another heartbeat has raised it further meanwhile, or a stop came first: the next look says which.
        const passes = error instanceof TransactionRefusedError && ["session_through", "session_lapsed"].includes(error.code);
        if (!passes) throw error;
      }
    }
    const { blockIntervalMs } = await this.session.limits();
    return Math.min(Math.max((blocks * blockIntervalMs) / 4, PAUSES_MS[0]), PAUSES_MS[1]);
  }
}

/** Keeps a slot alive until it is closed; see `Client.keepAlive`. */
export class KeepAlive {
  /** Why it has ended by itself; or why the last heartbeat failed, while it tries again. */
  error: ClientError | null = null;
  isRunning = true;
  private wake = () => {};
  private readonly work: Promise<void>;

  constructor(private readonly beat: () => Promise<number>) {
    this.work = this.run();
  }

  private async run(): Promise<void> {
    while (this.isRunning) {
      let pause = RETRY_MS;
      try {
        pause = await this.beat();
        this.error = null;
      } catch (error) {
        if (!(error instanceof ClientError)) throw error;
        this.error = error;
        if (error instanceof SessionKeyError) this.isRunning = false;
      }
      if (this.isRunning) await this.rest(pause);
    }
  }

  private rest(pause: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Ends it; the slot's timer runs on. */
  async close(): Promise<void> {
    this.isRunning = false;
    this.wake();
    await this.work;
  }
}
