/**
 * A store in a folder, for Node.js. It belongs to one process at a time: Node.js has no locks of files, so `walras wallet`
 * and other processes use a store and an account of their own.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "./errors.js";
import { TextStore } from "./store.js";

export { OrderFile } from "./venue-file.js";

export class FolderStore extends TextStore {
  constructor(folder: string) {
    const path = (name: string) => join(folder, Buffer.from(name).toString("base64url"));
    const names = () => readdirSync(folder).filter((name) => !name.startsWith(".")).sort();
    const attempt = <T>(what: string, act: () => T): T => {
      try {
        return act();
      } catch (error) {
        throw new StoreError(`${folder} cannot be ${what}, so nothing is sent: ${(error as Error).message}`, { cause: error });
      }
    };
    attempt("made", () => mkdirSync(folder, { recursive: true, mode: 0o700 }));
    super(
      {
        getItem: (name) => (names().includes(Buffer.from(name).toString("base64url")) ? attempt("read", () => readFileSync(path(name), "utf8")) : null),
        setItem: (name, value) => attempt("written", () => writeDurably(folder, path(name), value)),
        removeItem: (name) => rmSync(path(name), { force: true }),
        key: (at) => (names()[at] === undefined ? null : Buffer.from(names()[at] ?? "", "base64url").toString()),
        get length() {
          return names().length;
        },
      },
      "store",
    );
  }
}

/** Whole whenever somebody reads it, also after a crash. */
function writeDurably(folder: string, path: string, text: string): void {
  const unfinished = join(folder, ".unfinished");
  const file = openSync(unfinished, "w", 0o600);
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
  renameSync(unfinished, path);
  const whole = openSync(folder, "r");
  fsyncSync(whole);
  closeSync(whole);
}
