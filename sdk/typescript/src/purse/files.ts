/** Where a purse keeps its files: a folder, a browser's database, or memory. */
import { hex } from "../lane/layout.js";
import { PurseFileError, PurseInUseError } from "./errors.js";

export interface PurseFiles {
  /** What errors call it. */
  readonly place: string;
  /** Makes places for files of these parts. */
  prepare(parts: string[]): Promise<void>;
  /** Excludes everybody else until the returned function is called. A `PurseInUseError` if somebody has it. */
  lock(): Promise<() => Promise<void>>;
  read(name: string): Promise<Uint8Array | null>;
  /** Replaces a file at once; it is durable when this returns. */
  write(name: string, bytes: Uint8Array): Promise<void>;
  remove(name: string): Promise<void>;
  /** The names of the whole files of a part, without the part. */
  list(part: string): Promise<string[]>;
  /** When a file was written, milliseconds since 1970. */
  writtenMs(name: string): Promise<number | null>;
  /** Whether the files may be a copy, or restored from one. */
  isCopy(): Promise<boolean>;
  /** From now on they are none. */
  mark(): Promise<void>;
}

export const RESTORE = "restore it from a copy";
export const FETCHED_AGAIN = "remove it, and it is fetched from a node again";

/** Units may have more digits than a number of JavaScript has: they are read and written as `bigint`. */
const LONG_NUMBER = /([:,[]\s*)(\d{16,})(?=\s*[,}\]])/g;
const asLong = (_: string, one: unknown): unknown => (typeof one === "bigint" ? `long:${one}` : one);
const ofLong = (_: string, one: unknown): unknown => (typeof one === "string" && /^long:\d+$/.test(one) ? BigInt(one.slice(5)) : one);

export async function readJson(files: PurseFiles, name: string, remedy = RESTORE): Promise<unknown> {
  const bytes = await files.read(name);
  if (!bytes) throw new PurseFileError(`${files.place}/${name}`, `it is missing: ${remedy}`);
  return damaged(files, name, remedy, () => JSON.parse(new TextDecoder().decode(bytes).replace(LONG_NUMBER, '$1"long:$2"'), ofLong) as unknown);
}

export function writeJson(files: PurseFiles, name: string, value: unknown): Promise<void> {
  const text = JSON.stringify(value, asLong, 2).replace(/"long:(\d+)"/g, "$1") + "\n";
  return files.write(name, new TextEncoder().encode(text));
}

/** What a file says; an error of reading it names the file and what to do. */
export function damaged<T>(files: PurseFiles, name: string, remedy: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new PurseFileError(`${files.place}/${name}`, `it is damaged (${(error as Error).message}): ${remedy}`);
  }
}

/** Ends with the process: for tests. Copies of it are copies of a purse. */
export class MemoryFiles implements PurseFiles {
  readonly place = "memory";
  private isLocked = false;
  private marked = false;
  private readonly files = new Map<string, { bytes: Uint8Array; ms: number }>();

  async prepare(): Promise<void> {
    // Memory has a place for each.
  }
  async lock(): Promise<() => Promise<void>> {
    if (this.isLocked) throw new PurseInUseError(this.place);
    this.isLocked = true;
    return async () => void (this.isLocked = false);
  }
  async read(name: string): Promise<Uint8Array | null> {
    return this.files.get(name)?.bytes ?? null;
  }
  async write(name: string, bytes: Uint8Array): Promise<void> {
    this.files.set(name, { bytes, ms: Date.now() });
  }
  async remove(name: string): Promise<void> {
    this.files.delete(name);
  }
  async list(part: string): Promise<string[]> {
    const names = [...this.files.keys()].filter((name) => name.startsWith(`${part}/`));
    return names.map((name) => name.slice(part.length + 1)).sort();
  }
  async writtenMs(name: string): Promise<number | null> {
    return this.files.get(name)?.ms ?? null;
  }
  async isCopy(): Promise<boolean> {
    return !this.marked;
  }
  async mark(): Promise<void> {
    this.marked = true;
  }
  copy(): MemoryFiles {
    const made = new MemoryFiles();
    for (const [name, file] of this.files) made.files.set(name, file);
    return made;
  }
}

export const idText = (bytes: Uint8Array): string => "0x" + hex(bytes);
