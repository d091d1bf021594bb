/**
 * What the page knows of the chain at this moment: assets, status, the latest blocks and the latest batches. It is fed
 * by the stream's snapshots and increments and by a few HTTP answers, and tells its listeners once per frame.
 */
import type { Asset, Batch, Block, Market, Status } from "@walras/client/bodies";
import { get, getIfThere, path } from "./api";
import { refresh } from "./refresh";
import { Stream, type Connection, type Message, type Socket } from "@walras/client/stream";

export const BLOCKS_KEPT = 240;
export const BATCHES_KEPT = 120;
const BLOCKS_FIRST = 100;
/** Batches that are fetched when the page opens, so that lines and sums do not start empty. */
const BATCHES_FIRST = 24;
const STATUS_PAUSE_MS = 1_000;
/** The pace of blocks before two are known. */
const PACE_MS = 1_000;

export class Live {
  assets = new Map<string, Asset>();
  status: Status | null = null;
  /** Ascending by height. */
  blocks: Block[] = [];
  /** Ascending by height. */
  batches: Batch[] = [];
  markets: Market[] | null = null;
  connection: Connection = { state: "connecting" };
  /** The node's clock, as its latest message told it. */
  now_ms = 0;
  height = 0;
  problem: unknown = null;
  readonly stream: Stream;
  private readonly listeners = new Set<() => void>();
  private readonly blockListeners = new Set<() => void>();
  private frame = false;
  /** Symbols that no asset had, with the heights at which they were looked for. */
  private readonly missing = new Map<string, number>();
  private readonly statusRefresh = refresh((signal) => this.loadStatus(signal), (e) => this.told(e), STATUS_PAUSE_MS);
  private readonly assetsRefresh = refresh((signal) => this.loadAssets(signal), (e) => this.told(e), STATUS_PAUSE_MS);
  private readonly blocksRefresh = refresh((signal) => this.loadBlocks(signal), (e) => this.told(e), STATUS_PAUSE_MS);

  private readonly earlierBatches = refresh((signal) => this.loadEarlierBatches(signal), () => undefined, STATUS_PAUSE_MS);

  constructor(connect: () => Socket) {
    this.stream = new Stream(connect, (c) => this.connected(c), (m) => this.receive(m));
    this.stream.subscribe("blocks", (message) => this.receiveBlocks(message));
    this.stream.subscribe("batches", (message) => this.receiveBatch(message));
  }

  open(): void {
    this.assetsRefresh.request();
    this.statusRefresh.request();
    this.blocksRefresh.request();
    this.stream.open();
  }

  /** Calls `listener` at most once per frame after something changed; returns the way to stop it. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Calls `listener` upon each new block; returns the way to stop it. */
  onBlock(listener: () => void): () => void {
    this.blockListeners.add(listener);
    return () => this.blockListeners.delete(listener);
  }

  /** Of an asset that was listed after the page was opened, the list of assets is fetched again. */
  decimals(symbol: string): number {
    const known = this.assets.get(symbol);
    if (!known && this.assets.size > 0 && this.missing.get(symbol) !== this.height) {
      this.missing.set(symbol, this.height);
      this.assetsRefresh.request();
    }
    return known?.decimals ?? 0;
  }

  get latest(): Block | undefined {
    return this.blocks.at(-1);
  }

  /** Milliseconds from block to block lately. */
  get pace_ms(): number {
    const [first, last] = [this.blocks[0], this.latest];
    const blocks = (last?.height ?? 0) - (first?.height ?? 0);
    return first && last && blocks > 0 ? Math.max(1, (last.time_ms - first.time_ms) / blocks) : PACE_MS;
  }

  block(height: number): Block | undefined {
    return this.blocks.find((block) => block.height === height);
  }

  batch(height: number): Batch | undefined {
    return this.batches.find((batch) => batch.height === height);
  }

  private changed(): void {
    if (this.frame) return;
    this.frame = true;
    requestAnimationFrame(() => {
      this.frame = false;
      this.listeners.forEach((listener) => listener());
    });
  }

  private connected(connection: Connection): void {
    this.connection = connection;
    if (connection.state === "live") {
      this.problem = null;
      this.assetsRefresh.request();
      this.statusRefresh.request();
      this.blocksRefresh.request();
      // A view that loads upon blocks catches up without waiting for the next one.
      this.blockListeners.forEach((listener) => listener());
    }
    this.changed();
  }

  private receive(message: Message): void {
    if (message.type !== "heartbeat") return;
    this.now_ms = Math.max(this.now_ms, message.time_ms);
    this.statusRefresh.request();
    this.changed();
  }

  private receiveBlocks(message: Message): void {
    if (message.type === "snapshot") this.startFrom(message.blocks ?? []);
    if (message.type === "block") this.addBlocks([message]);
    this.statusRefresh.request();
    this.blockListeners.forEach((listener) => listener());
  }

  private receiveBatch(message: Message): void {
    if (message.type === "snapshot" && message.batch) {
      this.addBatch(message.batch);
      this.earlierBatches.request();
    }
    if (message.type === "batch") this.addBatch(message);
    this.changed();
  }

  private addBlocks(blocks: Block[]): void {
    const known = new Map([...this.blocks, ...blocks].map((block) => [block.height, block]));
    this.blocks = [...known.values()].sort((a, b) => a.height - b.height).slice(-BLOCKS_KEPT);
    const latest = this.latest;
    if (latest) {
      this.height = latest.height;
      this.now_ms = Math.max(this.now_ms, latest.time_ms);
    }
    this.changed();
  }

  /** A snapshot that does not continue what is known comes from another chain, such as a demo started again. */
  private startFrom(blocks: Block[]): void {
    const newest = Math.max(0, ...blocks.map((block) => block.height));
    const continues = newest >= this.height && blocks.every((b) => (this.block(b.height)?.block ?? b.block) === b.block);
    if (!continues) {
      this.blocks = [];
      this.batches = [];
      this.markets = null;
      this.now_ms = 0;
      this.height = 0;
    }
    this.addBlocks(blocks);
  }

  private addBatch(batch: Batch): void {
    this.batches = [...this.batches.filter((known) => known.height < batch.height), batch].slice(-BATCHES_KEPT);
  }

  /** Loads the list of markets; whoever shows it asks for this as often as needed. */
  async loadMarkets(signal: AbortSignal): Promise<void> {
    this.markets = (await get<{ markets: Market[] }>("markets", signal)).markets;
    this.changed();
  }

  private async loadStatus(signal: AbortSignal): Promise<void> {
    this.status = await get<Status>("status", signal);
    this.now_ms = Math.max(this.now_ms, this.status.time_ms);
    this.changed();
  }

  private async loadAssets(signal: AbortSignal): Promise<void> {
    const { assets } = await get<{ assets: Asset[] }>("assets", signal);
    this.assets = new Map(assets.map((asset) => [asset.symbol, asset]));
    this.changed();
    this.blockListeners.forEach((listener) => listener());
  }

  /** Fetches the batches just before those known, the newest first, until there is one that the node no longer has. */
  private async loadEarlierBatches(signal: AbortSignal): Promise<void> {
    for (let i = this.batches.length; i < BATCHES_FIRST; i += 1) {
      const oldest = this.batches[0];
      if (!oldest || oldest.height <= 1) return;
      const batch = await getIfThere<Batch>(batchPath(oldest.height - 1), signal);
      if (!batch) return;
      if (batch.height < (this.batches[0]?.height ?? 0)) this.batches = [batch, ...this.batches];
      this.changed();
    }
  }

  private async loadBlocks(signal: AbortSignal): Promise<void> {
    const { blocks } = await get<{ blocks: Block[] }>(`blocks?limit=${BLOCKS_FIRST}`, signal);
    this.addBlocks(blocks);
  }

  private told(error: unknown): void {
    this.problem = error;
    this.changed();
  }
}

/** Where the batch of one height is. */
export const batchPath = (height: number): string => `${path("blocks", height)}/batch`;
