/**
 * The files of a purse in a browser's database (IndexedDB). Its seed is encrypted with a passphrase, as a key file is.
 *
 * A browser cannot show that its files were not rolled back with its profile. So they count as a copy whenever they are opened: the
 * purse asks a quorum what it has spent before it spends for the first time.
 */
import { fromHex, toHex } from "../typed.js";
import { PurseFileError, PurseInUseError } from "./errors.js";
import type { PurseFiles } from "./files.js";

const FILES = "files";
type Stored = { bytes: Uint8Array; ms: number };

export class DatabaseFiles implements PurseFiles {
  readonly place: string;
  private isMarked = false;

  private constructor(
    private readonly database: IDBDatabase,
    private readonly name: string,
  ) {
    this.place = `the purse ${JSON.stringify(name)} of this browser`;
  }

  /** The files of a purse's name; `indexedDB` is the browser's. */
  static async open(name: string, databases: IDBFactory = indexedDB): Promise<DatabaseFiles> {
    const asked = databases.open(`walras-purse-${name}`, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(FILES);
    return new DatabaseFiles(await done(asked, name), name);
  }

  async prepare(): Promise<void> {
    // A database has a place for each.
  }

  lock(): Promise<() => Promise<void>> {
    const { locks } = navigator;
    return new Promise((resolve, reject) => {
      const held = locks.request(`walras-purse-${this.name}`, { ifAvailable: true }, (lock) => {
        if (lock === null) return reject(new PurseInUseError(this.place));
        return new Promise<void>((release) => resolve(async () => release()));
      });
      held.catch(reject);
    });
  }

  async read(name: string): Promise<Uint8Array | null> {
    return (await this.one(name))?.bytes ?? null;
  }
  async write(name: string, bytes: Uint8Array): Promise<void> {
    await this.change((files) => files.put({ bytes, ms: Date.now() } satisfies Stored, name));
  }
  async remove(name: string): Promise<void> {
    await this.change((files) => files.delete(name));
  }
  async list(part: string): Promise<string[]> {
    const keys = await done(this.database.transaction(FILES).objectStore(FILES).getAllKeys(), this.place);
    const names = keys.map(String).filter((name) => name.startsWith(`${part}/`));
    return names.map((name) => name.slice(part.length + 1)).sort();
  }
  async writtenMs(name: string): Promise<number | null> {
    return (await this.one(name))?.ms ?? null;
  }
  async isCopy(): Promise<boolean> {
    return !this.isMarked;
  }
  async mark(): Promise<void> {
    this.isMarked = true;
  }

  /** Everything as one text, to keep elsewhere: whoever has it and the passphrase has the money. */
  async exported(): Promise<string> {
    const names = (await done(this.database.transaction(FILES).objectStore(FILES).getAllKeys(), this.place)).map(String);
    const files: Record<string, string> = {};
    for (const name of names) files[name] = toHex((await this.read(name)) ?? new Uint8Array());
    return JSON.stringify({ "walras-purse": 1, files });
  }

  /** Takes what `exported` gave. Refused where there is a purse already. */
  async imported(text: string): Promise<void> {
    const files = filesOf(text);
    if (files === null) throw new PurseFileError(this.place, "the text is no purse: take the whole text that was exported");
    if (await this.read("lane.json")) throw new PurseFileError(this.place, "there is a purse already, and it is not overwritten: choose another name");
    // The last file makes it a purse.
    for (const [name, bytes] of files.sort(([name]) => (name === "lane.json" ? 1 : -1))) await this.write(name, bytes);
  }

  close(): void {
    this.database.close();
  }

  private async one(name: string): Promise<Stored | undefined> {
    return done<Stored | undefined>(this.database.transaction(FILES).objectStore(FILES).get(name), this.place);
  }

  private change(act: (files: IDBObjectStore) => void): Promise<void> {
    const transaction = this.database.transaction(FILES, "readwrite", { durability: "strict" });
    act(transaction.objectStore(FILES));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(new PurseFileError(this.place, `it cannot be written (${transaction.error?.message ?? "it was ended"}): nothing was sent`));
    });
  }
}

function filesOf(text: string): [string, Uint8Array][] | null {
  try {
    const { files, "walras-purse": version } = JSON.parse(text) as { files: Record<string, string>; "walras-purse": number };
    return version === 1 && "lane.json" in files ? Object.entries(files).map(([name, digits]) => [name, fromHex(digits)]) : null;
  } catch {
    // What cannot be decoded is none.
    return null;
  }
}

function done<T>(asked: IDBRequest<T>, place: string): Promise<T> {
  return new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(new PurseFileError(place, `the browser's database fails (${asked.error?.message ?? "unknown"})`));
  });
}
