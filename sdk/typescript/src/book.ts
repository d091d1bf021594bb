/**
 * A local book of one market: the snapshot of the stream's channel `book:BASE/QUOTE`, and its changes.
 *
 * Levels are named by their price in units, as text. Each change says from which height it leads on, and has a checksum of
 * the ten best levels of both sides: a book that is another one is given up, and the next snapshot replaces it.
 */
import type { Assets } from "./assets.js";
import type { Level as LevelBody } from "./bodies.js";
import { parseDecimal, subtract } from "./decimal.js";
import type { Book, Level } from "./models.js";

/** A level that is another one now; `amount` is `"0"` where it is gone. */
export type Change = { side: "sell" | "buy"; price: string; amount: string };
export type BookSnapshot = { market: string; height: number; sells: LevelBody[]; buys: LevelBody[]; checksum: number };
export type BookChange = BookSnapshot & { previous: number };

const CHECKED_LEVELS = 10;

/** A change does not continue the book, or the book is another one than the node's. */
export class BookBrokenError extends Error {}

export class LocalBook {
  /** The block after which it was so; -1 before the first snapshot. */
  height = -1;
  sells: Level[] = [];
  buys: Level[] = [];
  private sides = { sell: new Map<string, LevelBody>(), buy: new Map<string, LevelBody>() };

  constructor(readonly market: string) {}

  /** Its levels as `Client.book` has them; null before the first snapshot. */
  get book(): Book | null {
    const { market, height, sells, buys } = this;
    return height < 0 ? null : { market, height, time_ms: null, price: null, sells, buys };
  }

  /** Takes a snapshot. Returns what changed. */
  snapshot(body: BookSnapshot, assets: Assets): Change[] {
    this.sides = { sell: named(body.sells), buy: named(body.buys) };
    return this.take(body, assets);
  }

  /**
   * Takes a change; one that is known already is ignored. Returns what changed. Throws a `BookBrokenError` where it does not
   * continue this book, or leads to another one than the node's; the book is empty then.
   */
  change(body: BookChange, assets: Assets): Change[] {
    if (body.height <= this.height) return [];
    if (this.height < 0 || body.previous > this.height) {
      this.giveUp(`a change leads on from block ${body.previous}, and the book is that of ${this.height}`);
    }
    for (const [side, levels] of [["sell", body.sells], ["buy", body.buys]] as const) {
      for (const level of levels) {
        if (level.offers === 0) this.sides[side].delete(level.price_units);
        else this.sides[side].set(level.price_units, level);
      }
    }
    return this.take(body, assets);
  }

  /** CRC-32 of the ten best levels of the buys and then of the sells, as the node counts it. */
  checksum(): number {
    const best = [...this.best("buy").slice(0, CHECKED_LEVELS), ...this.best("sell").slice(0, CHECKED_LEVELS)];
    return crc32(best.map(({ price_units, amount, offers }) => `${price_units}:${amount}:${offers};`).join(""));
  }

  private best(side: "sell" | "buy"): LevelBody[] {
    const price = (level: LevelBody) => parseDecimal(level.price_units) ?? { digits: 0n, scale: 0 };
    const isDearer = (a: LevelBody, b: LevelBody) => (subtract(price(a), price(b)).digits > 0n) === (side === "sell");
    return [...this.sides[side].values()].sort((a, b) => (isDearer(a, b) ? 1 : -1));
  }

  private take({ height, checksum }: { height: number; checksum: number }, assets: Assets): Change[] {
    const [sells, buys] = [this.sells, this.buys];
    if (this.checksum() !== checksum) this.giveUp(`the book of ${this.market} after block ${height} is another one than the node's`);
    const [base] = assets.market(this.market);
    const level = ({ price, amount, offers }: LevelBody): Level => ({ price, amount: base.amount(amount), offers });
    this.sells = this.best("sell").map(level);
    this.buys = this.best("buy").map(level);
    this.height = height;
    return [...changes("sell", sells, this.sells), ...changes("buy", buys, this.buys)];
  }

  private giveUp(why: string): never {
    this.height = -1;
    [this.sells, this.buys] = [[], []];
    this.sides = { sell: new Map(), buy: new Map() };
    throw new BookBrokenError(why);
  }
}

const named = (levels: LevelBody[]): Map<string, LevelBody> => new Map(levels.map((level) => [level.price_units, level]));

function changes(side: "sell" | "buy", before: Level[], after: Level[]): Change[] {
  const byPrice = (levels: Level[]) => new Map(levels.map(({ price, amount }) => [price, amount]));
  const [old, now] = [byPrice(before), byPrice(after)];
  const gone = [...old.keys()].filter((price) => !now.has(price)).map((price) => ({ side, price, amount: "0" }));
  const moved = [...now].filter(([price, amount]) => old.get(price) !== amount);
  return [...gone, ...moved.map(([price, amount]) => ({ side, price, amount }))];
}

/** CRC-32 as zip and Ethernet have it, of ASCII. */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let at = 0; at < text.length; at += 1) {
    crc ^= text.charCodeAt(at);
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
