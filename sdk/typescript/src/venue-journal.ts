/**
 * The numbers and orders of a trading key, stored before they are sent.
 *
 * *Upon taking numbers*, they are above every one that the file names. *Upon sending*, a line with the signed orders is synced
 * first. *Upon an answer* that ends an order, a line says so; it is not synced. *Upon an execution*, its signed report is synced
 * beside it, a line of hexadecimal each as the bridge writes them (`walras venue accuse` takes one).
 *
 * Properties: a number names one order, also after a crash, since orders leave only once their line is durable. What may be open
 * is in the file. The file stays short: it is written anew when what has ended is most of it. It is the one of the Python package.
 *
 * A crash leaves at most a cut last line, of an order that was never sent; the next start drops it. The file belongs to one
 * process at a time, and to one key, venue and network.
 */
import { StoreError } from "./errors.js";
import { compareNumbers, numberText, readNumber, type OrderNumber, type SignedOrder } from "./venue.js";
import type { ListedOrder, SignedList } from "./venue-list.js";

/** A single order as it is stored: the request to replace is signed anew whenever it is sent. */
export type StoredOrder = Omit<SignedOrder, "replaces"> & { replaces: OrderNumber | null };
/** What was sent together. */
export type Sent = { orders: StoredOrder[] } | { list: SignedList };
export const ordersOf = (sent: Sent): (StoredOrder | ListedOrder)[] => ("list" in sent ? sent.list.orders : sent.orders);

/** Where lines are kept. Each call is durable where it says so, and throws a `StoreError` otherwise. */
export interface JournalFile {
  readonly place: string;
  /** Excludes other programs until it is closed; what the file says, null if there is none. */
  open(): Promise<string | null>;
  append(text: string, isDurable: boolean): void;
  /** Writes all anew, durably: whenever somebody reads it, it is the earlier text or this one. */
  replace(text: string): void;
  /** Adds the report of a fill, durably. */
  report(line: string): void;
  close(): Promise<void>;
}

const FORM = "walras venue orders";
const ANEW_BYTES = 1 << 20;
const SEEN_MAX = 1 << 16;
/** A key has at most so many orders open: with more, some have ended unheard. */
const OPEN_MANY = 1 << 10;
type Line = Sent | { last: string } | { ended: string[] };
const written = (line: unknown): string => JSON.stringify(line) + "\n";

/** Without a file numbers are safe as long as the process lives. */
export class OrderJournal {
  private of: string | null = null;
  private last: OrderNumber | null = null;
  private readonly known = new Map<string, Sent>();
  private readonly seen = new Set<string>();
  private bytes = 0;
  private anew = ANEW_BYTES;
  private begun: Promise<void> | null = null;

  constructor(private readonly file: JournalFile | null = null) {}

  /** Opens the file for a key, a venue and a network, once. */
  begin(network: string, venue: number, key: string): Promise<void> {
    const of = JSON.stringify({ form: FORM, version: 1, network, venue, key });
    if (this.of !== null && this.of !== of) throw this.fault(`is of ${this.of}, not of ${of}: give each key, venue and network a file`);
    this.of = of;
    this.begun ??= this.read(of).catch((error: unknown) => {
      // The next call tries again.
      this.of = this.begun = null;
      throw error;
    });
    return this.begun;
  }

  private async read(of: string): Promise<void> {
    if (!this.file) return;
    const text = await this.file.open();
    try {
      if (text !== null) this.learn(of, text);
      this.writeAnew();
    } catch (error) {
      await this.file.close();
      throw error;
    }
  }

  private learn(of: string, text: string): void {
    // What a crash cut was never sent.
    const lines = text.split("\n").slice(0, -1);
    const head = lines.shift();
    const damaged = (why: string) =>
      this.fault(`is damaged (${why}): restore it, or authorise another key; with a fresh file numbers may come again`);
    if (head === undefined) throw damaged("it has no first line");
    try {
      // Fields may be written in another order or with other spaces.
      const sorted = (one: string) => JSON.stringify(Object.entries(JSON.parse(one) as object).sort());
      if (sorted(head) !== sorted(of)) throw this.fault(`is of ${head}, not of ${of}: give each key, venue and network a file`);
      for (const line of lines) this.takeIn(JSON.parse(line) as Line);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      throw damaged((error as Error).message);
    }
  }

  private takeIn(line: Line): void {
    if ("last" in line) this.took(readNumber(line.last));
    else if ("ended" in line) for (const number of line.ended) this.known.delete(number);
    else this.add(line);
  }

  private took(number: OrderNumber): void {
    if (this.last === null || compareNumbers(number, this.last) > 0) this.last = number;
  }

  private add(sent: Sent): void {
    for (const { number } of ordersOf(sent)) {
      this.took(number);
      this.known.set(numberText(number), sent);
    }
  }

  /** Writes what is still needed. */
  private writeAnew(): void {
    const groups = [...new Set(this.known.values())];
    const ended = groups.flatMap(ordersOf).map(({ number }) => numberText(number)).filter((text) => !this.known.has(text));
    const told = [...(this.last ? [{ last: numberText(this.last) }] : []), ...groups, ...(ended.length > 0 ? [{ ended }] : [])];
    const text = `${this.of}\n` + told.map(written).join("");
    this.file?.replace(text);
    this.bytes = text.length;
    this.anew = Math.max(ANEW_BYTES, 4 * text.length);
  }

  /**
   * Numbers that were never taken, ascending; `first` is the lowest reference of a new day or incarnation. They count as used once
   * `sends` has stored their orders.
   */
  take({ incarnation, day, first, count }: { incarnation: number; day: number; first: number; count: number }): OrderNumber[] {
    const { last } = this;
    let [of, reference] = [day, first];
    if (last && compareNumbers(last, { incarnation, day, reference: 0 }) >= 0) {
      if (last.incarnation !== incarnation) throw this.fault(`has a number of incarnation ${last.incarnation}; the venue is at ${incarnation}`);
      [of, reference] = [last.day, last.reference + 1];
    }
    const numbers = Array.from({ length: count }, (_, at) => ({ incarnation, day: of, reference: reference + at }));
    this.took(numbers.at(-1)!);
    return numbers;
  }

  /** Stores orders that are about to be sent. */
  sends(sent: Sent): void {
    this.append(sent, true);
    this.add(sent);
  }

  /** Forgets orders of which nothing is open. */
  ended(numbers: readonly OrderNumber[]): void {
    const ended = numbers.map(numberText).filter((text) => this.known.delete(text));
    if (ended.length > 0) this.append({ ended }, false);
  }

  /** Forgets orders whose life is over at a height: nobody asked how they ended. */
  expire(height: number): void {
    if (this.known.size <= OPEN_MANY) return;
    const all = [...new Set(this.known.values())].flatMap(ordersOf);
    this.ended(all.filter(({ expiry }) => expiry < height).map(({ number }) => number));
  }

  /** What an order that may be open was sent with. */
  sent(number: OrderNumber): Sent | null {
    return this.known.get(numberText(number)) ?? null;
  }

  /** The numbers of orders that may be open, ascending. */
  open(): OrderNumber[] {
    return [...this.known.keys()].map(readNumber).sort(compareNumbers);
  }

  /** Keeps the signed report of a fill, once for each process. */
  saw(incarnation: number, index: string, report: string): void {
    const fill = `${incarnation}:${index}`;
    if (this.seen.has(fill)) return;
    this.file?.report(report);
    this.seen.add(fill);
    if (this.seen.size > SEEN_MAX) this.seen.delete(this.seen.values().next().value!);
  }

  private append(line: Line, isDurable: boolean): void {
    if (!this.file) return;
    try {
      if (this.bytes > this.anew) this.writeAnew();
      const text = written(line);
      this.file.append(text, isDurable);
      this.bytes += text.length;
    } catch (error) {
      // What was written of the line is left behind by a new file.
      this.anew = -1;
      throw error;
    }
  }

  /** Lets other programs use the file. */
  async close(): Promise<void> {
    await this.begun?.catch(() => undefined);
    await this.file?.close();
  }

  private fault(what: string): StoreError {
    return new StoreError(`${this.file?.place ?? "the journal of orders"} ${what}`);
  }
}
