/**
 * The keys of a purse: H(seed, salt, index). A restored purse draws another salt, so two copies of a purse never make the same key.
 */
import { randomBytes } from "@noble/hashes/utils.js";
import * as ed25519 from "../lane/ed25519.js";
import { derived, hex, join, same, text, u32 } from "../lane/layout.js";
import { fromHex } from "../typed.js";
import { PurseError } from "./errors.js";
import { type PurseFiles, damaged, idText, readJson, writeJson } from "./files.js";

export const KEYS = "keys.json";
/** Number of keys, beyond the last known one, among which a restored purse looks for keys of its earlier life. */
const LOST_KEYS = 1_000;

type Known = { key: Uint8Array; salt: string; index: number };
type File = { salt: string; keys: { public: string; salt: string; index: number }[] };

const newSalt = (): string => hex(randomBytes(16));
const seedOf = (seed: Uint8Array, { salt, index }: Omit<Known, "key">): Uint8Array => derived("walras 2026 purse key v1", join(seed, text(salt), u32(index)));

/** The public halves, in a file; with the seed each makes its secret half again. */
export class KeyRing {
  private constructor(
    private readonly files: PurseFiles,
    private salt: string,
    private readonly known: Map<string, Known>,
  ) {}

  static create(files: PurseFiles): Promise<void> {
    return writeJson(files, KEYS, { salt: newSalt(), keys: [] });
  }

  static async open(files: PurseFiles): Promise<KeyRing> {
    const body = (await readJson(files, KEYS)) as File;
    // A key that is left out would hide its money.
    return damaged(files, KEYS, "restore the purse from a copy", () => {
      const known = body.keys.map(({ public: key, salt, index }) => ({ key: fromHex(key), salt, index }));
      if (known.some(({ key }) => key.length !== 32) || typeof body.salt !== "string") throw new Error("a key has 32 bytes");
      return new KeyRing(files, body.salt, new Map(known.map((one) => [hex(one.key), one])));
    });
  }

  private save(): Promise<void> {
    const keys = [...this.known.values()].map(({ key, salt, index }) => ({ public: idText(key), salt, index }));
    return writeJson(this.files, KEYS, { salt: this.salt, keys } satisfies File);
  }

  has(key: Uint8Array): boolean {
    return this.known.has(hex(key));
  }

  /** A new key, stored durably; its public half. */
  make(seed: Uint8Array): Promise<Uint8Array> {
    const own = [...this.known.values()].filter((one) => one.salt === this.salt);
    return this.remember(seed, { salt: this.salt, index: Math.max(-1, ...own.map((one) => one.index)) + 1 });
  }

  private async remember(seed: Uint8Array, place: Omit<Known, "key">): Promise<Uint8Array> {
    const key = ed25519.publicOf(seedOf(seed, place));
    this.known.set(hex(key), { key, ...place });
    await this.save();
    return key;
  }

  /** The seed of one of these keys. */
  secret(seed: Uint8Array, key: Uint8Array): Uint8Array {
    const known = this.known.get(hex(key));
    if (!known) throw new PurseError(`${idText(key)} is not a key of this purse`);
    const secret = seedOf(seed, known);
    if (!same(ed25519.publicOf(secret), key)) throw new PurseError("the seed and the list of keys belong to different purses: restore both from one copy");
    return secret;
  }

  /** Later keys have another salt. */
  async renewSalt(): Promise<void> {
    this.salt = newSalt();
    await this.save();
  }

  /** Looks among `wanted` for keys of an earlier life of the purse, and keeps those that it finds. */
  async findLost(seed: Uint8Array, wanted: Uint8Array[]): Promise<void> {
    const unknown = new Set(wanted.map(hex).filter((key) => !this.known.has(key)));
    if (unknown.size === 0) return;
    const last = new Map([[this.salt, 0]]);
    for (const { salt, index } of this.known.values()) last.set(salt, Math.max(last.get(salt) ?? 0, index));
    for (const [salt, first] of last) {
      for (let index = first; index < first + LOST_KEYS; index += 1) {
        if (unknown.has(hex(ed25519.publicOf(seedOf(seed, { salt, index }))))) await this.remember(seed, { salt, index });
      }
    }
  }
}
