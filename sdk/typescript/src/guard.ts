/**
 * Cancel on disconnect: a connection of the stream that leaves a signed stop with the node, which submits it when the
 * connection ends.
 *
 * The number of the stop is taken like that of any transaction. Once the stop is withdrawn, the next transaction takes its
 * number, with a later end: what was left counts no more then, wherever it still lies. After a lost connection nothing of this
 * client takes the number, so that the stop counts, until another stop is held: then offers of the new connection are not ended
 * by the old one, which a node may have taken for open.
 */
import type { Signed } from "./encoding.js";
import { ClientError, ForeignAnswerError, NoAnswerError, StreamError } from "./errors.js";
import { LASTS_MAX } from "./fate.js";
import type { Sender } from "./sending.js";
import { SILENCE_MS, type Challenge, type Login, type Socket } from "./stream.js";
import { toHex } from "./typed.js";

/** A stop that is left is renewed so many heights before its end. */
const RENEWED = LASTS_MAX / 2;
/** It is renewed when this client's numbers are so far above it, of the 64 that are taken above the highest. */
const WINDOW_LEFT = 24n;
/** Fast senders use many numbers between two heartbeats. */
const LOOK_MS = 100;

type Told =
  | Challenge
  | { type: "login" }
  | { type: "heartbeat"; height: number }
  | { type: "error"; code: string; message: string }
  | { type: "on_disconnect"; id: string | null; code?: string; message?: string };

export type GuardParts = { server: string; sender: Sender; slot: number; open: () => Socket; login: (challenge: Challenge) => Promise<Login> };

/** A connection whose end ends the offers of a slot; see `Client.cancelOnDisconnect`. */
export class DisconnectGuard {
  /** Why the connection has ended: then the node has submitted the stop, unless the node itself has failed. */
  error: ClientError | null = null;
  /** Settles when the connection is over. */
  readonly ended: Promise<void>;
  private isWithdrawn = false;
  /** What was sent last to be left, and what it renews: the node holds that until it says that it holds the other one. */
  private signed: Signed | null = null;
  private before: Signed | null = null;
  /** The id of what the node holds. */
  private left: string | null = null;
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

  /** A guard, once the node holds the stop. */
  static async open(parts: GuardParts): Promise<DisconnectGuard> {
    const guard = new DisconnectGuard(parts);
    await new Promise<void>((resolve) => (guard.settle = resolve));
    if (guard.error) throw guard.error;
    return guard;
  }

  /** Whether the connection lives and the node holds the stop. */
  get isHeld(): boolean {
    return this.error === null && this.left !== null;
  }

  /** Takes the stop back and closes the connection: the offers stay. Rejects where the connection has ended before. */
  async withdraw(): Promise<void> {
    if (this.error === null) this.say({ withdraw: true });
    await this.ended;
    if (!this.isWithdrawn && this.error) throw this.error;
  }

  /** Closes the connection: the node submits the stop. */
  async close(): Promise<void> {
    this.end(new ClientError("the guard was closed: the node submits the stop"));
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
    else if (told.type === "login") await this.leave();
    else if (told.type === "error") throw new StreamError(this.parts.server, told.code, told.message);
    else if (told.type === "heartbeat") this.height = told.height;
    else if (told.type === "on_disconnect") await this.answered(told);
  }

  /** The node holds what was left, or does not any more. */
  private async answered({ id, code = "", message = "" }: Told & { type: "on_disconnect" }): Promise<void> {
    this.left = id;
    if (id !== null) {
      this.letGo(this.before);
      this.before = null;
      this.parts.sender.lostStops.splice(0).forEach((lost) => this.letGo(lost));
      this.settle();
    } else if (code === "withdrawn") {
      this.isWithdrawn = true;
      this.end(null);
    } else if (code === "taken_over") throw new StreamError(this.parts.server, code, message);
    else await this.leave();
  }

  private async look(): Promise<void> {
    if (performance.now() - this.heard > SILENCE_MS) throw new NoAnswerError(this.parts.server, new Error("the node has been silent for five seconds"));
    const { signed } = this;
    if (!signed || this.left !== signed.id) return;
    const isOld = signed.until - BigInt(this.height) <= RENEWED || this.parts.sender.numbers.isFarAbove(signed.sequence, WINDOW_LEFT);
    if (isOld) await this.leave();
  }

  private async leave(): Promise<void> {
    this.letGo(this.before);
    this.before = this.signed;
    this.signed = await this.parts.sender.hold({ kind: "SessionAlive", slot: this.parts.slot, through: 0n }, LASTS_MAX);
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
