/**
 * What executes in one market of the venue. The newest trades of before are asked for when the stream begins, and again after a gap;
 * those that come meanwhile are told by both, and are there once.
 */
import type { VenueTrade as PastTrade, VenueTrades } from "@walras/client/bodies";
import { backoffMs } from "@walras/client/stream";

/** The venue says something every second. */
const SILENCE_MS = 5_000;
const KEPT_MOST = 5_000;

export type VenueTrade = { at: number; index: string; lots: number; tick: number };
type Event = { event: number; executed?: { lots: number; tick: number; index: string } };
type Said = { sequence: number; type: string; market?: number; events?: Event[]; image?: { market: number; event: number } };
type Socket = Pick<WebSocket, "send" | "close" | "onopen" | "onmessage" | "onclose">;

/** The stream of the venue, and its trades of before. */
export type VenueLine = { connect: () => Socket; past: () => Promise<VenueTrades> };

export class VenueFeed {
  /** In the order in which they executed. */
  trades: VenueTrade[] = [];
  private socket: Socket | null = null;
  private sequence = 0;
  private event: number | null = null;
  private tries = 0;
  private isClosed = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asking: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly market: number,
    private readonly line: VenueLine,
    private readonly changed: () => void,
    private readonly now: () => number = Date.now,
  ) {
    this.open();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    clearTimeout(this.asking);
    this.socket?.close();
  }

  private open(): void {
    const socket = this.line.connect();
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

  /** What executed before the first connection, or between two, is asked for. */
  private begin(event: number): void {
    if (this.event !== event) {
      this.trades = [];
      void this.ask(0);
    }
    this.event = event;
    this.changed();
  }

  private async ask(tries: number): Promise<void> {
    clearTimeout(this.asking);
    try {
      const { trades } = await this.line.past();
      if (!this.isClosed) this.add(trades.map(({ index, lots, tick, time_ms }: PastTrade) => ({ at: time_ms, index, lots, tick })));
    } catch {
      if (!this.isClosed) this.asking = setTimeout(() => void this.ask(tries + 1), backoffMs(tries));
    }
  }

  private go(events: Event[]): void {
    this.event = events.at(-1)?.event ?? this.event;
    this.add(events.flatMap(({ executed }) => (executed ? [{ at: this.now(), lots: executed.lots, tick: executed.tick, index: executed.index }] : [])));
  }

  /** Trades have numbers: an auction tells one for both of its orders. */
  private add(news: VenueTrade[]): void {
    if (news.length === 0) return;
    const all = new Map(this.trades.map((trade) => [trade.index, trade]));
    for (const trade of news) if (!all.has(trade.index)) all.set(trade.index, trade);
    this.trades = [...all.values()].sort((a, b) => Number(BigInt(a.index) - BigInt(b.index))).slice(-KEPT_MOST);
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
