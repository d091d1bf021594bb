/** The file of orders of a trading key, for Node.js; reports of fills lie in `FILE.reports`, and `FILE.lock` is its lock. */
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { StoreError } from "./errors.js";
import { holdLock } from "./flock.js";
import type { JournalFile } from "./venue-journal.js";

export class OrderFile implements JournalFile {
  private release: (() => Promise<void>) | null = null;
  private file: number | null = null;
  private reports: number | null = null;

  constructor(readonly place: string) {}

  async open(): Promise<string | null> {
    this.attempt("opened", () => mkdirSync(dirname(this.place), { recursive: true }));
    const inUse = () => this.fault("is in use by another program: give each program a trading key of its own");
    const failed = (why: string) => this.fault(`cannot be locked (${why}), so nothing is sent: the program flock of util-linux is needed`);
    closeSync(this.attempt("locked", () => openSync(`${this.place}.lock`, "a", 0o600)));
    this.release = await holdLock(`${this.place}.lock`, inUse, failed);
    try {
      const text = this.attempt("read", () => (existsSync(this.place) ? this.read() : null));
      this.reports = this.attempt("opened", () => openSync(`${this.place}.reports`, "a", 0o600));
      return text;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  private read(): string {
    if ((statSync(this.place).mode & 0o077) !== 0) throw this.fault("can be read by other users: run chmod 600 on it first");
    return readFileSync(this.place, "utf8");
  }

  append(text: string, isDurable: boolean): void {
    this.attempt("written", () => write(this.opened(this.file), text, isDurable));
  }

  replace(text: string): void {
    this.attempt("written", () => {
      this.opened(this.reports);
      const unfinished = `${this.place}.unfinished`;
      const made = openSync(unfinished, "w", 0o600);
      write(made, text, true);
      renameSync(unfinished, this.place);
      const folder = openSync(dirname(this.place), "r");
      fsyncSync(folder);
      closeSync(folder);
      if (this.file !== null) closeSync(this.file);
      this.file = made;
    });
  }

  report(line: string): void {
    this.attempt("written", () => write(this.opened(this.reports), line + "\n", true));
  }

  async close(): Promise<void> {
    for (const file of [this.file, this.reports]) if (file !== null) closeSync(file);
    this.file = this.reports = null;
    const release = this.release;
    this.release = null;
    await release?.();
  }

  private opened(file: number | null): number {
    if (file === null) throw this.fault("is closed: nothing was sent");
    return file;
  }

  private attempt<T>(what: string, act: () => T): T {
    try {
      return act();
    } catch (error) {
      if (error instanceof StoreError) throw error;
      throw new StoreError(`${this.place} cannot be ${what}, so nothing is sent: ${(error as Error).message}`, { cause: error });
    }
  }

  private fault(what: string): StoreError {
    return new StoreError(`${this.place} ${what}`);
  }
}

function write(file: number, text: string, isDurable: boolean): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += writeSync(file, bytes, at));
  if (isDurable) fsyncSync(file);
}
