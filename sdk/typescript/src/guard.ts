/**
 * Cancel on disconnect: a connection of the stream that leaves a signed stop, or a cancel of named offers, with the node, which
 * submits it when the connection ends. A cancel follows the account: it is signed anew when other offers rest than it names.
 *
 * The number of the stop is taken like that of any transaction. Once the stop is withdrawn, the next transaction takes its
 * number, with a later end: what was left counts no more then, wherever it still lies. After a lost connection nothing of this
 * client takes the number, so that the stop counts, until another stop is held: then offers of the new connection are not ended
 * by the old one, which a node may have taken for open.
 */
import type { Operation, Signed } from "./encoding.js";
import { ClientError, ForeignAnswerError, NoAnswerError, StreamError } from "./errors.js";
import { LASTS_MAX } from "./fate.js";
import type { Sender } from "./sending.js";
import { SILENCE_MS, type Challenge, type Login, type Socket } from "./stream.js";
import { toHex } from "./typed.js";

/** A stop that is left is renewed so many heights before its end. */
const RENEWED = LASTS_MAX / 2;
/** It is renewed when this client's numbers are so far above it, of the 64 that are taken above the highest. */
const WINDOW_LEFT = 24n;
/** The first byte of operations about session keys. */
const SESSION = 15;
/** Fast senders use many numbers between two heartbeats. */
const LOOK_MS = 100;

type Told =
  | Challenge
  | { type: "login" | "account" | "snapshot" }
  | { type: "heartbeat"; height: number }
  | { type: "error"; code: string; message: string }
  | { type: "on_disconnect"; id: string | null; code?: string; message?: string };

/** What ends the guarded offers, null where there are none; the offers that it names, and how many rest beside them. */
export type Ending = { operation: Operation | null; offers: bigint[]; beyond: number };
/** `ending` is asked for again upon each event of the channel `follows`, if there is one. */
export type GuardParts = {
  server: string;
  sender: Sender;
  ending: () => Promise<Ending>;
  follows: string | null;
  open: () => Socket;
  login: (challenge: Challenge) => Promise<Login>;
};

/** A connection whose end ends offers; see `Client.cancelOnDisconnect`. */
export class DisconnectGuard {
  /** Of a guard without a slot, the resting offers beyond those that one cancel names: they stay. */
  beyond = 0;
  /** Why the connection has ended: then the node has submitted what was left, unless the node itself has failed. */
  error: ClientError | null = null;
  /** Settles when the connection is over. */
  readonly ended: Promise<void>;
  private isWithdrawn = false;
  /** What was sent last to be left, and what it renews: the node holds that until it says that it holds the other one. */
  private signed: Signed | null = null;
  private before: Signed | null = null;
  /** The id of what the node holds. */
  private left: string | null = null;
  /** The offers that the last cancel names; null before anything was left. */
  private listed: string | null = null;
  /** Nothing rests that would have to end. */
  private isEmpty = false;
  /** Something happened to the account since. */
  private isStale = false;
  /** The node has not answered the last request. */
  private isAwaited = false;
  private isUnwanted = false;
  private height = 0;
  private heard = performance.now();
  /** Messages are answered one after another. */
  private last: Promise<void> = Promise.resolve();
  private readonly socket: Socket;
  private readonly looks: ReturnType<typeof setInterval>;
  private settle = () => {};
  private over = () => {};

  private constructor(private readonly parts: GuardParts) {
    this.ended = new Promise((resolve) => (this.over = resolve));
    this.socket = parts.open();
    this.socket.onopen = () => this.say({ challenge: true });
    this.socket.onmessage = ({ data }) => this.next(() => this.receive(data));
    this.socket.onclose = () => this.end(new NoAnswerError(parts.server, new Error("the connection ended")));
    this.socket.onerror = () => undefined; // a close follows
    this.looks = setInterval(() => this.next(() => this.look()), LOOK_MS);
  }

  /** A guard, once the node holds what ends the offers. */
  static async open(parts: GuardParts): Promise<DisconnectGuard> {
    const guard = new DisconnectGuard(parts);
    await new Promise<void>((resolve) => (guard.settle = resolve));
    if (guard.error) throw guard.error;
    return guard;
  }

  /** Whether the connection lives and the node holds what ends the guarded offers, if there are any. */
  get isHeld(): boolean {
    return this.error === null && (this.left !== null || this.isEmpty);
  }

  /** Takes back what was left and closes the connection: the offers stay. Rejects where the connection has ended before. */
  async withdraw(): Promise<void> {
    this.isUnwanted = true;
    if (this.error === null) this.say({ withdraw: true });
    await this.ended;
    if (!this.isWithdrawn && this.error) throw this.error;
  }

  /** Closes the connection: the node submits what was left. */
  async close(): Promise<void> {
    this.end(new ClientError("the guard was closed: the node submits what was left"));
    await this.ended;
  }

  private say(message: object): void {
    this.socket.send(JSON.stringify(message));
  }

  private next(act: () => Promise<void>): void {
    this.last = this.last.then(async () => {
      if (this.error !== null || this.isWithdrawn) return;
      try {
        await act();
      } catch (error) {
        this.end(error instanceof ClientError ? error : new ForeignAnswerError(this.parts.server, String(error)));
      }
    });
  }

  private async receive(data: unknown): Promise<void> {
    this.heard = performance.now();
    const told = JSON.parse(String(data)) as Told;
    if (told.type === "challenge") this.say({ login: await this.parts.login(told) });
    else if (told.type === "login") {
      if (this.parts.follows !== null) this.say({ subscribe: [this.parts.follows] });
      await this.leave();
    } else if (told.type === "account" || told.type === "snapshot") this.isStale = true;
    else if (told.type === "error") throw new StreamError(this.parts.server, told.code, told.message);
    else if (told.type === "heartbeat") this.height = told.height;
    else if (told.type === "on_disconnect") await this.answered(told);
  }

  /** The node holds what was left, or does not any more. */
  private async answered({ id, code = "", message = "" }: Told & { type: "on_disconnect" }): Promise<void> {
    this.left = id;
    if (id !== null) {
      if (id === this.signed?.id) this.isAwaited = false;
      this.letGo(this.before);
      this.before = null;
      this.letLostGo();
      this.settle();
    } else if (code === "withdrawn") {
      this.isWithdrawn = this.isUnwanted;
      this.isAwaited = false;
      if (this.isWithdrawn) return this.end(null);
      [this.before, this.signed].forEach((one) => this.letGo(one));
      this.before = this.signed = null;
    } else if (code === "taken_over") throw new StreamError(this.parts.server, code, message);
    else await this.leave();
  }

  /** What earlier connections have left to end the same. */
  private letLostGo(): void {
    const { sender } = this.parts;
    const same = this.signed && guardedBy(this.signed);
    const all = sender.lostStops.splice(0);
    for (const one of all) {
      if (guardedBy(one) === same) this.letGo(one);
      else sender.lostStops.push(one);
    }
  }

  private async look(): Promise<void> {
    if (performance.now() - this.heard > SILENCE_MS) throw new NoAnswerError(this.parts.server, new Error("the node has been silent for five seconds"));
    if (this.isOld()) return this.leave();
    if (!this.isStale || this.isAwaited) return;
    this.isStale = false;
    const ending = await this.parts.ending();
    this.beyond = ending.beyond;
    if (ending.offers.join() !== this.listed) await this.leaveOne(ending);
  }

  private isOld(): boolean {
    const { signed } = this;
    if (!signed || this.left !== signed.id) return false;
    return signed.until - BigInt(this.height) <= RENEWED || this.parts.sender.numbers.isFarAbove(signed.sequence, WINDOW_LEFT);
  }

  private async leave(): Promise<void> {
    this.isStale = false;
    await this.leaveOne(await this.parts.ending());
  }

  private async leaveOne({ operation, offers, beyond }: Ending): Promise<void> {
    [this.listed, this.beyond, this.isEmpty] = [offers.join(), beyond, operation === null];
    this.isAwaited = operation !== null || this.signed !== null;
    if (operation === null) {
      if (this.signed !== null) this.say({ withdraw: true });
      return this.settle();
    }
    this.letGo(this.before);
    this.before = this.signed;
    this.signed = await this.parts.sender.hold(operation, LASTS_MAX);
    this.say({ on_disconnect: toHex(this.signed.bytes) });
  }

  /** The next transaction takes its number. */
  private letGo(signed: Signed | null): void {
    if (signed) this.parts.sender.numbers.release(signed.sequence, signed.until);
  }

  private end(error: ClientError | null): void {
    if (this.error !== null || !this.socket.onclose) return;
    this.error = error;
    clearInterval(this.looks);
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
    const held = [this.before, this.signed].filter((one) => one !== null);
    this.before = this.signed = null;
    if (this.isWithdrawn) held.forEach((one) => this.letGo(one));
    else this.parts.sender.lostStops.push(...held);
    this.settle();
    this.over();
  }
}

/** What a transaction that was left ends: the offers of a slot, or named ones. */
function guardedBy({ operation }: Signed): string {
  return operation[0] === SESSION ? toHex(operation) : String(operation[0]);
}
