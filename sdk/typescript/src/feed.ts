/**
 * The events of some channels, each once and in order, over connections that break.
 *
 * A book goes on from its height where the node can tell what follows, and otherwise begins again with a snapshot. For the
 * other channels the node is not asked for increments of before: after a reconnection, or from a height that the caller names, the blocks,
 * batches and trades between the last event and the snapshot are asked for. What the node no longer keeps, or never offers
 * again, is a `missed` event: fills and outcomes of an account, and trades of all markets at once. An account's snapshot
 * follows it, which is whole.
 */
import type * as bodies from "./bodies.js";
import type { Assets } from "./assets.js";
import { BookBrokenError, type BookSnapshot, type Change, LocalBook } from "./book.js";
import { ForeignAnswerError, NotFoundError, StreamError } from "./errors.js";
import * as models from "./models.js";
import { PAGE, type Session } from "./session.js";
import type { Message, SnapshotMessage } from "./stream.js";

export type Event =
  | { type: "block"; block: bodies.Block }
  | { type: "batch"; batch: models.Batch }
  | { type: "trade"; trade: models.Trade }
  | { type: "book"; market: string; height: number; changes: Change[]; book: LocalBook }
  | { type: "ticker"; ticker: models.Ticker }
  | { type: "candle"; market: string; interval: string; candle: models.Candle }
  | { type: "snapshot"; address: string; height: number; account: models.Account | null; offers: models.Offer[]; more: boolean }
  | { type: "account"; address: string; height: number; outcomes: Record<string, models.Outcome>; fills: models.Fill[]; balances: models.Balance[] }
  | ({ type: "orders"; isSnapshot: boolean } & models.OwnOrders)
  | { type: "heartbeat"; height: number; time_ms: number }
  | { type: "disconnected"; reason: string; retry_ms: number }
  | { type: "missed"; channel: string; first: number; last: number };

type CandleMessage = { type: "candle"; market: string; interval: string; candle: bodies.Candle };
/** The most heights that are asked for one by one. */
const BACKFILL_MOST = 10_000;

export class Feed {
  readonly channels: string[];
  /** The last height of each channel that was handed out; of candles, the last time. */
  private readonly last = new Map<string, number>();
  /** The last height of each channel at its snapshot: increments up to it are in it. */
  private readonly snapshots = new Map<string, number>();
  private readonly books = new Map<string, LocalBook>();

  constructor(
    private readonly session: Session,
    channels: string[],
    fromHeight: number | null,
  ) {
    // The node names addresses in lower case.
    const named = channels.map((one) => (/^(account|orders):/.test(one) ? one.toLowerCase() : one));
    this.channels = named.filter((one) => !(named.includes("trades") && one.startsWith("trades:")));
    if (fromHeight !== null) for (const channel of this.channels) this.last.set(channel, fromHeight - 1);
  }

  /** The heights from which channels go on after a broken connection. */
  heights(): Record<string, number> {
    const known = [...this.books].filter(([, book]) => book.height >= 0);
    return Object.fromEntries(known.map(([channel, book]) => [channel, book.height]));
  }

  /** The events of a message. */
  async receive(message: Message): Promise<Event[]> {
    const assets = await this.session.assets();
    const { server } = this.session.http;
    // A snapshot follows.
    if (message.type === "error" && message.code === "resume_gone") return [];
    if (message.type === "error") throw new StreamError(server, message.code, message.message);
    if (message.type === "heartbeat") {
      this.session.saw(message.height);
      return [{ type: "heartbeat", height: message.height, time_ms: message.time_ms }];
    }
    if (message.type === "orders" || (message.type === "snapshot" && message.channel.startsWith("orders:"))) {
      const orders = models.ownOrders(message as unknown as bodies.OwnOrders, assets);
      this.session.saw(orders.height);
      return [{ type: "orders", isSnapshot: message.type === "snapshot", ...orders }];
    }
    if (message.type === "book") return this.book(`book:${message.market}`, (book) => book.change(message, assets), message.market);
    if (message.type === "ticker") return [{ type: "ticker", ticker: models.ticker(message, assets) }];
    if (message.type === "snapshot" && message.channel.startsWith("book:")) {
      const body = message as unknown as BookSnapshot;
      return this.book(message.channel, (book) => book.snapshot(body, assets), body.market);
    }
    if (message.type === "snapshot" && message.channel.startsWith("ticker:")) {
      return [{ type: "ticker", ticker: models.ticker((message as unknown as { ticker: bodies.Ticker }).ticker, assets) }];
    }
    if (message.type !== "snapshot") return this.session.http.decoded(() => this.increment(message as Exclude<Message, SnapshotMessage>, assets));
    try {
      const events = await this.resumed(message, assets);
      this.snapshots.set(message.channel, this.last.get(message.channel) ?? -1);
      return events;
    } catch (error) {
      if (error instanceof TypeError) throw new ForeignAnswerError(server, `a message of its stream cannot be decoded: ${error.message}`);
      throw error;
    }
  }

  private increment(message: Exclude<Message, SnapshotMessage> | CandleMessage, assets: Assets): Event[] {
    if (message.type === "candle") {
      const { market, interval } = message;
      return this.candles(market, interval, [models.candle(message.candle, assets, market)]);
    }
    const channel = this.channelOf(message);
    if (channel === null || !("height" in message)) return [];
    // It was on its way when the snapshot was read.
    if (message.height <= (this.snapshots.get(channel) ?? -1)) return [];
    this.last.set(channel, message.height);
    this.session.saw(message.height);
    switch (message.type) {
      case "block":
        return [{ type: "block", block: message }];
      case "batch":
        return [{ type: "batch", batch: models.batch(message, assets) }];
      case "trade":
        return [{ type: "trade", trade: models.trade(message, assets) }];
      case "account": {
        const outcomes = message.outcomes.map(({ id, outcome }) => [id, models.outcome(outcome, assets, null)] as const);
        // Nothing is left of an exact order.
        const exacts = (message.exacts ?? []).map((one) => ({ ...one, left: "0", returned: "0" }));
        const fills = [...message.fills, ...exacts].map((one) => models.fill(one, assets));
        const balances = message.balances.map((one) => models.balance(one, assets));
        return [{ type: "account", address: message.address, height: message.height, outcomes: Object.fromEntries(outcomes), fills, balances }];
      }
      default:
        return [];
    }
  }

  /** Takes a snapshot or a change of a book. One that is broken begins again over a new connection. */
  private book(channel: string, take: (book: LocalBook) => Change[], market: string): Event[] {
    const book = this.books.get(channel) ?? new LocalBook(market);
    this.books.set(channel, book);
    const before = book.height;
    try {
      const changes = take(book);
      return book.height === before ? [] : [{ type: "book", market, height: book.height, changes, book }];
    } catch (error) {
      if (error instanceof BookBrokenError) throw new ForeignAnswerError(this.session.http.server, error.message);
      throw error;
    }
  }

  private channelOf(message: Exclude<Message, SnapshotMessage>): string | null {
    if (message.type === "block") return "blocks";
    if (message.type === "batch") return "batches";
    if (message.type === "trade") return this.channels.includes("trades") ? "trades" : `trades:${message.market}`;
    return message.type === "account" ? `account:${message.address}` : null;
  }

  /** The events from the last one to the snapshot's. */
  private async resumed(message: SnapshotMessage, assets: Assets): Promise<Event[]> {
    const { channel } = message;
    const [kind, ...names] = channel.split(":");
    const [name = "", interval = ""] = names;
    if (kind === "blocks") return this.blocks(message.blocks ?? []);
    if (kind === "batches") return message.batch ? this.batches(models.batch(message.batch, assets)) : [];
    if (kind === "trades") return this.trades(channel, name, (message.trades ?? []).map((one) => models.trade(one, assets)));
    if (kind === "candles") {
      const found = (message as unknown as { candles: bodies.Candle[] }).candles;
      return this.candles(name, interval, found.map((one) => models.candle(one, assets, name)));
    }
    return kind === "account" ? this.account(channel, message, assets) : [];
  }

  private async blocks(newest: bodies.Block[]): Promise<Event[]> {
    const last = this.last.get("blocks");
    const found = newest.sort((a, b) => a.height - b.height);
    while (last !== undefined && found[0] !== undefined && found[0].height > last + 1) {
      const older = await this.session.blocks(PAGE, found[0].height);
      if (older.length === 0) break;
      found.unshift(...older.sort((a, b) => a.height - b.height));
    }
    const events = found.map((block): [number, Event] => [block.height, { type: "block", block }]);
    return [...this.gap("blocks", found[0]?.height), ...this.fresh("blocks", events)];
  }

  private async batches(newest: models.Batch): Promise<Event[]> {
    const last = this.last.get("batches");
    const found = [newest];
    // From the newest down, so that a bound cuts the oldest.
    for (let height = newest.height - 1; last !== undefined && height > last && found.length < BACKFILL_MOST; height -= 1) {
      try {
        found.unshift(await this.session.batch(height));
      } catch (error) {
        if (error instanceof NotFoundError) break;
        throw error;
      }
    }
    const events = found.map((batch): [number, Event] => [batch.height, { type: "batch", batch }]);
    return [...this.gap("batches", found[0]?.height), ...this.fresh("batches", events)];
  }

  private async trades(channel: string, name: string, newest: models.Trade[]): Promise<Event[]> {
    const last = this.last.get(channel);
    let found = newest;
    if (last !== undefined && name !== "") {
      found = [];
      for (let before: number | undefined; ; ) {
        const points = await this.session.history(name, PAGE, before);
        const fresh = points.filter((one) => one.height > last);
        const known = (height: number) => newest.find((trade) => trade.height === height);
        const missing = ({ height, price, base_volume }: models.PricePoint) => ({ market: name, height, price, base_volume, quote_volume: null });
        found.unshift(...fresh.map((one) => known(one.height) ?? missing(one)));
        before = points[0]?.height;
        if (points.length < PAGE || before === undefined || before <= last) break;
      }
    }
    const gap = last !== undefined && name === "" ? this.gap(channel, newest[0]?.height) : [];
    return [...gap, ...this.fresh(channel, found.map((trade): [number, Event] => [trade.height, { type: "trade", trade }]))];
  }

  /** The newest candle changes until its interval is over, so it is handed out again. */
  private candles(market: string, interval: string, found: models.Candle[]): Event[] {
    const channel = `candles:${market}:${interval}`;
    const last = this.last.get(channel) ?? -1;
    const fresh = found.filter((one) => one.time_ms >= last);
    const newest = fresh[fresh.length - 1];
    if (newest) this.last.set(channel, newest.time_ms);
    return fresh.map((candle) => ({ type: "candle", market, interval, candle }));
  }

  private account(channel: string, message: SnapshotMessage, assets: Assets): Event[] {
    const account = message.account ? models.account(message.account, assets) : null;
    const offers = (message.offers ?? []).map((one) => models.offer(one, assets));
    const height = account?.height ?? 0;
    const gap = account ? this.gap(channel, height + 1) : [];
    this.last.set(channel, height);
    const more = (message as unknown as { more?: boolean }).more ?? false;
    return [...gap, { type: "snapshot", address: channel.slice("account:".length), height, account, offers, more }];
  }

  private fresh(channel: string, found: [number, Event][]): Event[] {
    const last = this.last.get(channel) ?? -1;
    const fresh = found.filter(([height]) => height > last);
    const newest = fresh[fresh.length - 1];
    if (newest) this.last.set(channel, newest[0]);
    return fresh.map(([, event]) => event);
  }

  /** What is missing between the last event and the first one now. */
  private gap(channel: string, first: number | undefined): Event[] {
    const last = this.last.get(channel);
    if (last === undefined || first === undefined || first <= last + 1) return [];
    return [{ type: "missed", channel, first: last + 1, last: first - 1 }];
  }
}
