/** The folder of a purse, for Node.js: the one of `walras pay` and of Python, with the same lock. */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { holdLock } from "../flock.js";
import { PurseFileError, PurseInUseError } from "./errors.js";
import type { PurseFiles } from "./files.js";

const [DEVICE, DEVICE_MARK] = ["device", "device.json"];

/** The files of a folder. It is made with the purse. */
export class FolderFiles implements PurseFiles {
  constructor(readonly place: string) {}

  async prepare(parts: string[]): Promise<void> {
    for (const part of parts) this.attempt(this.path(part), () => mkdirSync(this.path(part), { recursive: true, mode: 0o700 }));
  }

  async lock(): Promise<() => Promise<void>> {
    this.attempt(this.place, () => mkdirSync(this.place, { recursive: true, mode: 0o700 }));
    const failed = (why: string) => new PurseFileError(this.place, `it cannot be locked (${why}), so nothing is done: the program flock of util-linux is needed`);
    return holdLock(this.path("lock"), () => new PurseInUseError(this.place), failed);
  }

  async read(name: string): Promise<Uint8Array | null> {
    return this.unlessMissing(name, () => new Uint8Array(readFileSync(this.path(name))));
  }

  async write(name: string, bytes: Uint8Array): Promise<void> {
    const path = this.path(name);
    const folder = dirname(path);
    const unfinished = join(folder, `.${randomBytes(8).toString("hex")}.unfinished`);
    this.attempt(path, () => {
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        const file = openSync(unfinished, "wx", 0o600);
        try {
          for (let at = 0; at < bytes.length; at += writeSync(file, bytes, at));
          fsyncSync(file);
        } finally {
          closeSync(file);
        }
        renameSync(unfinished, path);
        syncFolder(folder);
      } finally {
        rmSync(unfinished, { force: true });
      }
    });
  }

  async remove(name: string): Promise<void> {
    this.attempt(this.path(name), () => rmSync(this.path(name), { force: true }));
  }

  async list(part: string): Promise<string[]> {
    const entries = await this.unlessMissing(part, () => readdirSync(this.path(part), { withFileTypes: true }));
    const files = (entries ?? []).filter((entry) => entry.isFile()).map((entry) => entry.name);
    return files.filter((name) => !name.endsWith(".unfinished") && name !== "lock").sort();
  }

  async writtenMs(name: string): Promise<number | null> {
    return this.unlessMissing(name, () => Number(statSync(this.path(name), { bigint: true }).mtimeNs / 1_000_000n));
  }

  async isCopy(): Promise<boolean> {
    try {
      const mark = JSON.parse(readFileSync(this.path(DEVICE_MARK), "utf8")) as unknown;
      return JSON.stringify(mark) !== JSON.stringify(this.device());
    } catch {
      // Without a mark nothing shows that it is none.
      return true;
    }
  }

  async mark(): Promise<void> {
    // A new file is needed: the mark in the earlier file, which may be a copy, must not match.
    await this.write(DEVICE, new Uint8Array());
    await this.write(DEVICE_MARK, new TextEncoder().encode(JSON.stringify(this.device(), null, 2) + "\n"));
  }

  /** The properties that distinguish the file `device` from its copies. */
  private device(): { inode: number; changed: number[] } {
    const { ino, ctimeNs } = statSync(this.path(DEVICE), { bigint: true });
    return { inode: Number(ino), changed: [Number(ctimeNs / 1_000_000_000n), Number(ctimeNs % 1_000_000_000n)] };
  }

  private path(name: string): string {
    return join(this.place, name);
  }

  private async unlessMissing<T>(name: string, read: () => T): Promise<T | null> {
    return this.attempt(this.path(name), () => {
      try {
        return read();
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
        throw error;
      }
    });
  }

  private attempt<T>(path: string, act: () => T): T {
    try {
      return act();
    } catch (error) {
      throw new PurseFileError(path, `${(error as Error).message}: nothing was sent`);
    }
  }
}

function syncFolder(folder: string): void {
  const whole = openSync(folder, "r");
  try {
    fsyncSync(whole);
  } finally {
    closeSync(whole);
  }
}
