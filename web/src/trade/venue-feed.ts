/**
 * What executes in one market of the venue, from the moment that somebody looks at it: the venue keeps no list of past executions
 * for strangers. A message that is missed leaves a gap, so then it begins anew.
 */
import { backoffMs } from "@walras/client/stream";

/** The venue says something every second. */
const SILENCE_MS = 5_000;
const KEPT_MOST = 5_000;

export type VenueTrade = { at: number; index: string; lots: number; tick: number };
type Event = { event: number; executed?: { lots: number; tick: number; index: string } };
type Said = { sequence: number; type: string; market?: number; events?: Event[]; image?: { market: number; event: number } };
type Socket = Pick<WebSocket, "send" | "close" | "onopen" | "onmessage" | "onclose">;

export class VenueFeed {
  /** In the order in which they executed. */
  trades: VenueTrade[] = [];
  /** Since when they are all here; null before the first word. */
  since_ms: number | null = null;
  private socket: Socket | null = null;
  private sequence = 0;
  private event = 0;
  private tries = 0;
  private isClosed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly market: number,
    private readonly connect: () => Socket,
    private readonly changed: () => void,
    private readonly now: () => number = Date.now,
  ) {
    this.open();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  private open(): void {
    const socket = this.connect();
    this.socket = socket;
    this.sequence = 0;
    socket.onopen = () => socket.send(JSON.stringify({ id: 0, books: [this.market] }));
    socket.onmessage = ({ data }) => this.socket === socket && this.receive(String(data), socket);
    socket.onclose = () => this.socket === socket && this.again();
    this.listen(socket);
  }

  /** Whoever says nothing for so long has gone without a word. */
  private listen(socket: Socket): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => socket.close(), SILENCE_MS);
  }

  private again(): void {
    clearTimeout(this.timer);
    this.socket = null;
    if (this.isClosed) return;
    this.timer = setTimeout(() => this.open(), backoffMs(this.tries));
    this.tries += 1;
  }

  private receive(text: string, socket: Socket): void {
    this.listen(socket);
    const said = readSaid(text);
    if (!said || said.sequence !== this.sequence) return socket.close();
    this.sequence += 1;
    this.tries = 0;
    if (said.type === "image" && said.image) this.begin(said.image.event);
    if (said.type === "book" && said.market === this.market) this.go(said.events ?? []);
  }

  /** What executed between two connections is not known. */
  private begin(event: number): void {
    if (this.since_ms === null || event !== this.event) [this.trades, this.since_ms] = [[], this.now()];
    this.event = event;
    this.changed();
  }

  private go(events: Event[]): void {
    const news = events.flatMap(({ executed }) => (executed ? [{ at: this.now(), ...executed }] : []));
    this.event = events.at(-1)?.event ?? this.event;
    if (news.length === 0) return;
    this.trades = [...this.trades, ...news].slice(-KEPT_MOST);
    this.changed();
  }
}

function readSaid(text: string): Said | null {
  try {
    return JSON.parse(text) as Said;
  } catch {
    return null;
  }
}

/** The figures of the trades that are here. */
export type Figures = { first: number; last: number; high: number; low: number; lots: number };

export function figuresOf(trades: VenueTrade[]): Figures | null {
  const ticks = trades.map(({ tick }) => tick);
  const [first, last] = [ticks[0], ticks.at(-1)];
  if (first === undefined || last === undefined) return null;
  const over = (pick: (a: number, b: number) => number) => ticks.reduce((best, tick) => pick(best, tick), first);
  return { first, last, high: over(Math.max), low: over(Math.min), lots: trades.reduce((sum, { lots }) => sum + lots, 0) };
}
