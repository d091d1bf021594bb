/**
 * The live feed of docs/api.md over one WebSocket that mends itself.
 *
 * Upon opening, it subscribes to every channel that somebody wants, and the node sends a snapshot for each. Every message
 * carries a sequence number one above the last. A gap, a message that is no JSON, or more than five seconds of silence
 * means that what is shown may be wrong: the connection is closed and made again, after a pause that doubles from half a
 * second to fifteen seconds until a message arrives, and the fresh snapshots replace what was known.
 *
 * Channels of an account's own orders are subscribed to after a login: the node's challenge goes to `login`, and its answer to
 * the node.
 */
import type { Account, Balance, Batch, Block, Candle, ExactTrade, IdOutcome, Offer, OwnOrders, Ticker } from "./bodies.js";
import type { BookChange } from "./book.js";

export const SILENCE_MS = 5_000;
export const PAUSE_MS_MIN = 500;
export const PAUSE_MS_MAX = 15_000;

export type TradeMessage = {
  type: "trade";
  height: number;
  market: string;
  price: string;
  price_units: string;
  base_volume: string;
  quote_volume: string;
};
export type Fill = { sell: string; buy: string; limit: string; id: number | string; sold: string; bought: string; left: string; returned: string };
export type AccountMessage = {
  type: "account";
  height: number;
  address: string;
  outcomes: IdOutcome[];
  fills: Fill[];
  /** Its exact orders that were filled. */
  exacts?: ExactTrade[];
  balances: Balance[];
};
export type SnapshotMessage = {
  type: "snapshot";
  channel: string;
  blocks?: Block[];
  batch?: Batch | null;
  trades?: TradeMessage[];
  candles?: Candle[];
  ticker?: Ticker;
  account?: Account | null;
  offers?: Offer[];
};
export type Message =
  | SnapshotMessage
  | ({ type: "block" } & Block)
  | ({ type: "batch" } & Batch)
  | TradeMessage
  | { type: "candle"; height: number; market: string; interval: string; candle: Candle }
  | AccountMessage
  | ({ type: "book" } & BookChange)
  | ({ type: "ticker" } & Ticker)
  | ({ type: "orders" } & OwnOrders)
  | Challenge
  | { type: "login"; account: string }
  | { type: "heartbeat"; height: number; time_ms: number }
  | { type: "error"; code: string; message: string };

/** What a login signs; it counts once, on its connection. */
export type Challenge = { type: "challenge"; nonce: string; server: string; network: string };
export type Login = { account: string; key?: string; signature: string };

const isOwn = (channel: string): boolean => channel.startsWith("orders:");

/** `connecting` is the first try; `waiting` says why the last connection ended and when the next try is. */
export type Connection =
  | { state: "connecting" }
  | { state: "live" }
  | { state: "waiting"; reason: string; retry_ms: number; tries: number };

/**
 * The pause after a try that failed, of which the first is 0: it doubles from half a second to fifteen seconds, less up to a
 * quarter, so that many clients do not return in the same instant.
 */
export function backoffMs(tries: number, random: () => number = Math.random): number {
  return Math.round(Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** tries) * (1 - random() / 4));
}

/** What this module needs of a WebSocket; tests give their own. */
export type Socket = Pick<WebSocket, "send" | "close" | "onopen" | "onmessage" | "onclose" | "onerror">;

export class Stream {
  connection: Connection = { state: "connecting" };
  private socket: Socket | null = null;
  private opened = false;
  private sequence: number | null = null;
  private tries = 0;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly channels = new Map<string, Set<(message: Message) => void>>();

  constructor(
    private readonly connect: () => Socket,
    private readonly onConnection: (connection: Connection) => void,
    private readonly onMessage: (message: Message) => void,
    private readonly random: () => number = Math.random,
    /** The last heights of channels that go on where they were. */
    private readonly heights: () => Record<string, number> = () => ({}),
    /** Signs a challenge; needed for channels of own orders. What it rejects with ends the connection. */
    private readonly login: (challenge: Challenge) => Promise<Login> = () => Promise.reject(new Error("nobody signs logins here")),
  ) {}

  /** Connects, or tries again at once where a pause is running. */
  open(): void {
    clearTimeout(this.retry);
    if (this.socket) return;
    this.opened = false;
    this.sequence = null;
    try {
      this.attach(this.connect());
    } catch {
      this.lost("The stream could not be opened.");
    }
  }

  /** Ends a connection that is of no use, and makes it again. */
  again(reason: string): void {
    this.lost(reason);
  }

  /** Ends the connection for good. */
  close(): void {
    clearTimeout(this.retry);
    this.detach();
  }

  /** Subscribes to `channel`; the returned function ends it. Messages of that channel go to `listener`. */
  subscribe(channel: string, listener: (message: Message) => void): () => void {
    const listeners = this.channels.get(channel) ?? new Set();
    if (listeners.size === 0) this.send(isOwn(channel) ? { challenge: true } : { subscribe: [channel] });
    this.channels.set(channel, listeners.add(listener));
    return () => this.unsubscribe(channel, listener);
  }

  private unsubscribe(channel: string, listener: (message: Message) => void): void {
    const listeners = this.channels.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return;
    this.channels.delete(channel);
    this.send({ unsubscribe: [channel] });
  }

  private attach(socket: Socket): void {
    this.socket = socket;
    this.listenForSilence();
    socket.onopen = () => {
      this.opened = true;
      const resume = this.heights();
      const channels = [...this.channels.keys()];
      const open = channels.filter((channel) => !isOwn(channel));
      this.send({ subscribe: open, ...(Object.keys(resume).length > 0 ? { resume } : {}) });
      if (open.length < channels.length) this.send({ challenge: true });
    };
    socket.onmessage = (event) => this.receive(event.data);
    socket.onclose = () => this.lost(this.opened ? "The node closed the stream." : "The node does not answer.");
    socket.onerror = () => undefined; // a close follows
  }

  private detach(): void {
    clearTimeout(this.silence);
    const socket = this.socket;
    this.socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  private receive(data: unknown): void {
    const message = parse(data);
    if (!message) return this.lost("A message of the stream could not be read.");
    if (this.sequence !== null && message.sequence !== this.sequence + 1) {
      return this.lost("Messages of the stream were missed.");
    }
    this.sequence = message.sequence;
    this.listenForSilence();
    if (this.connection.state !== "live") {
      this.tries = 0;
      this.become({ state: "live" });
    }
    this.deliver(message);
  }

  private deliver(message: Message): void {
    if (message.type === "challenge") return void this.answer(message);
    if (message.type === "login") return this.send({ subscribe: [...this.channels.keys()].filter(isOwn) });
    this.onMessage(message);
    for (const channel of channelsOf(message)) this.channels.get(channel)?.forEach((listener) => listener(message));
  }

  private async answer(challenge: Challenge): Promise<void> {
    const { socket } = this;
    try {
      const login = await this.login(challenge);
      if (this.socket === socket) this.send({ login });
    } catch (error) {
      if (this.socket === socket) this.lost(`The login failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private listenForSilence(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.lost("The node has been silent for five seconds."), SILENCE_MS);
  }

  private lost(reason: string): void {
    clearTimeout(this.retry);
    this.detach();
    const retry_ms = backoffMs(this.tries, this.random);
    this.tries += 1;
    this.retry = setTimeout(() => this.open(), retry_ms);
    this.become({ state: "waiting", reason, retry_ms, tries: this.tries });
  }

  private become(connection: Connection): void {
    this.connection = connection;
    this.onConnection(connection);
  }

  private send(request: { subscribe: string[]; resume?: Record<string, number> } | { unsubscribe: string[] } | { challenge: true } | { login: Login }): void {
    if (this.socket && this.opened) this.socket.send(JSON.stringify(request));
  }
}

function parse(data: unknown): (Message & { sequence: number }) | null {
  if (typeof data !== "string") return null;
  try {
    const message: unknown = JSON.parse(data);
    if (typeof message !== "object" || message === null) return null;
    const { type, sequence } = message as { type?: unknown; sequence?: unknown };
    const sound = typeof type === "string" && typeof sequence === "number";
    return sound ? (message as Message & { sequence: number }) : null;
  } catch {
    return null;
  }
}

/** The channels whose listeners want `message`. */
function channelsOf(message: Message): string[] {
  switch (message.type) {
    case "snapshot":
      return [message.channel];
    case "block":
      return ["blocks"];
    case "batch":
      return ["batches"];
    case "trade":
      return ["trades", `trades:${message.market}`];
    case "book":
    case "ticker":
      return [`${message.type}:${message.market}`];
    case "candle":
      return [`candles:${message.market}:${message.interval}`];
    case "account":
      return [`account:${message.address}`];
    case "orders":
      return [`orders:${message.account}`];
    default:
      return [];
  }
}
