/**
 * A local book of one market. The node's stream has no channel of the book, so it is fed snapshots: a new one when a block
 * changed something. It tells what changed in between, level by level, and never goes back to an older block.
 */
import type { Block } from "./bodies.js";
import type { Book, Level } from "./models.js";

/** A level that is another one now; `amount` is `"0"` where it is gone. */
export type Change = { side: "sell" | "buy"; price: string; amount: string };

export class LocalBook {
  book: Book | null = null;
  private isBehind = true;

  constructor(readonly market: string) {}

  /** The block after which it was read; -1 before the first snapshot. */
  get height(): number {
    return this.book?.height ?? -1;
  }

  /** Whether the block may have changed the book, so that a new snapshot is due. */
  saw(block: Block): boolean {
    this.isBehind ||= block.height > this.height && (block.applied > 0 || block.fills > 0 || block.ethereum > 0);
    return this.isBehind;
  }

  /** Takes a snapshot; one that is not newer is ignored. Returns what changed. */
  apply(snapshot: Book): Change[] {
    if (snapshot.market !== this.market) throw new Error(`the book of ${snapshot.market} is none of ${this.market}`);
    if (snapshot.height <= this.height) return [];
    const before = this.book;
    this.book = snapshot;
    this.isBehind = false;
    return [...changes("sell", before?.sells ?? [], snapshot.sells), ...changes("buy", before?.buys ?? [], snapshot.buys)];
  }
}

function changes(side: "sell" | "buy", before: Level[], after: Level[]): Change[] {
  const byPrice = (levels: Level[]) => new Map(levels.map(({ price, amount }) => [price, amount]));
  const [old, now] = [byPrice(before), byPrice(after)];
  const gone = [...old.keys()].filter((price) => !now.has(price)).map((price) => ({ side, price, amount: "0" }));
  const moved = [...now].filter(([price, amount]) => old.get(price) !== amount);
  return [...gone, ...moved.map(([price, amount]) => ({ side, price, amount }))];
}
