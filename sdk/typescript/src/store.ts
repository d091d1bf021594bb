/**
 * Where signed transactions are stored before they are sent, so that the same bytes can be sent again.
 *
 * A *reference* is the caller's own name for an intention, such as an invoice: the first transaction with it is the only
 * one. Its record stays when the transaction is final, so that asking again answers instead of paying twice.
 *
 * A *torn* text (empty, cut short, of another id) tells of a disk that failed: only what was stored whole was ever sent. A
 * sender asks the chain about its id and removes it.
 */
import { keccak_256 } from "@noble/hashes/sha3.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { Signed } from "./encoding.js";
import { StoreError } from "./errors.js";
import { fromHex, toHex } from "./typed.js";

export interface Store {
  /** Runs `take` while no other sender with this store does. */
  reserved<T>(take: () => Promise<T>): Promise<T>;
  keep(signed: Signed, reference: string | null): Promise<void>;
  /** Removes a transaction; the record of its reference stays. */
  forget(id: string): Promise<void>;
  all(): Promise<Signed[]>;
  /** The ids of transactions that are not stored whole. */
  torn(): Promise<string[]>;
  /** A stored transaction; null also of a torn one. */
  get(id: string): Promise<Signed | null>;
  /** The transaction of a reference, also when it is final. */
  referenced(reference: string): Promise<Signed | null>;
  /** Removes the record of a reference, if it is still of this transaction, which had no effect. Called within `reserved`. */
  release(reference: string, id: string): Promise<void>;
  /** The highest sequence number that a sender with this store has taken. */
  highest(account: string): Promise<bigint>;
  took(account: string, sequence: bigint): Promise<void>;
  /** The network that the key signed for before. */
  network(): Promise<string | null>;
  signFor(network: string): Promise<void>;
}

/** What a store of names and texts offers; `localStorage` is one. */
export type Texts = {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
  readonly length: number;
  key(at: number): string | null;
};

/** Keeps texts: `new TextStore(localStorage, "trader")` in a browser. Tabs exclude one another where the browser has locks. */
export class TextStore implements Store {
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly texts: Texts,
    private readonly name: string,
  ) {}

  async reserved<T>(take: () => Promise<T>): Promise<T> {
    const locks = (globalThis.navigator as Navigator | undefined)?.locks;
    const turn = this.last.then(
      () => (locks ? locks.request(`walras.${this.name}`, take) : take()) as Promise<T>,
    );
    this.last = turn.catch(() => undefined);
    return turn;
  }

  async keep(signed: Signed, reference: string | null): Promise<void> {
    // The record comes first: a transaction that was sent is never without its reference.
    if (reference !== null) this.texts.setItem(this.place("reference", digestOf(reference)), toHex(signed.bytes));
    this.texts.setItem(this.place("pending", signed.id), toHex(signed.bytes));
  }

  async forget(id: string): Promise<void> {
    this.texts.removeItem(this.place("pending", id));
  }

  async all(): Promise<Signed[]> {
    return this.ids().flatMap((id) => this.pending(id) ?? []);
  }

  async torn(): Promise<string[]> {
    return this.ids().filter((id) => this.pending(id) === null);
  }

  async get(id: string): Promise<Signed | null> {
    return this.pending(id);
  }

  async referenced(reference: string): Promise<Signed | null> {
    const text = this.texts.getItem(this.place("reference", digestOf(reference)));
    if (text === null) return null;
    const signed = signedOf(text);
    if (!signed) throw new StoreError(`the record of the reference ${JSON.stringify(reference)} is torn: look whether it was paid, then choose a new one`);
    return signed;
  }

  async release(reference: string, id: string): Promise<void> {
    if ((await this.referenced(reference))?.id === id) this.texts.removeItem(this.place("reference", digestOf(reference)));
  }

  async highest(account: string): Promise<bigint> {
    const text = this.texts.getItem(this.place("number", account)) ?? "";
    // What a torn one lacks, the stored transactions and the node know.
    return /^\d+$/.test(text) ? BigInt(text) : 0n;
  }

  async took(account: string, sequence: bigint): Promise<void> {
    if (sequence > (await this.highest(account))) this.texts.setItem(this.place("number", account), String(sequence));
  }

  async network(): Promise<string | null> {
    return this.texts.getItem(this.place("network", ""));
  }

  async signFor(network: string): Promise<void> {
    this.texts.setItem(this.place("network", ""), network);
  }

  private place(what: string, name: string): string {
    return `walras.${this.name}.${what}.${name}`;
  }

  private ids(): string[] {
    const place = this.place("pending", "");
    const names = Array.from({ length: this.texts.length }, (_, at) => this.texts.key(at) ?? "");
    return names.filter((name) => name.startsWith(place)).map((name) => name.slice(place.length));
  }

  private pending(id: string): Signed | null {
    const signed = signedOf(this.texts.getItem(this.place("pending", id)) ?? "");
    return signed?.id === id ? signed : null;
  }
}

/** Null if the text is torn. */
function signedOf(text: string): Signed | null {
  return /^0x([0-9a-f]{2})+$/i.test(text) && text.length > 2 * LEAST_BYTES ? new Signed(fromHex(text)) : null;
}

/** Of any transaction: a body without its operation, and a seal. */
const LEAST_BYTES = 44 + 97;

/** References may be long, names of files may not. */
const digestOf = (reference: string): string => toHex(keccak_256(utf8ToBytes(reference)));

/** Ends with the process: for tests, and for what may be lost. */
export class MemoryStore extends TextStore {
  constructor() {
    const texts = new Map<string, string>();
    super(
      {
        getItem: (name) => texts.get(name) ?? null,
        setItem: (name, value) => texts.set(name, value),
        removeItem: (name) => texts.delete(name),
        key: (at) => [...texts.keys()][at] ?? null,
        get length() {
          return texts.size;
        },
      },
      crypto.randomUUID(),
    );
  }
}
