/** Key files of `walras wallet`: an ed25519 key, encrypted with a passphrase (Argon2id, XChaCha20-Poly1305). */
import { xchacha20poly1305 } from "@noble/ciphers/chacha.js";
import { argon2idAsync } from "@noble/hashes/argon2.js";
import { randomBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { KeyError } from "./errors.js";
import { Ed25519Key } from "./keys.js";
import { fromHex, toHex } from "./typed.js";
import { TradingKey } from "./venue.js";

const [MEMORY_KIB, PASSES] = [64 << 10, 3];
/** The most that a file may request, so that none makes a page use gigabytes. */
const [MEMORY_KIB_MAX, PASSES_MAX] = [1 << 20, 16];

type KeyFile = {
  version: number;
  address: string;
  public_key: string;
  argon2id: { memory_kib: number; passes: number; salt: string };
  xchacha20poly1305: { nonce: string; ciphertext: string };
};

/** The key in the text of a file. */
export async function openKey(text: string, passphrase: string): Promise<Ed25519Key> {
  return new Ed25519Key(await openSeed(text, passphrase));
}

/** The trading key in the text of a file. */
export async function openTradingKey(text: string, passphrase: string): Promise<TradingKey> {
  return new TradingKey(await openSeed(text, passphrase));
}

/** The seed in the text of a file: whoever has it has the key. */
export async function openSeed(text: string, passphrase: string): Promise<Uint8Array> {
  const file = parsed(text);
  const { memory_kib, passes, salt } = file.argon2id;
  if (memory_kib > MEMORY_KIB_MAX || passes > PASSES_MAX) {
    throw new KeyError(`the key file requests ${memory_kib} KiB and ${passes} passes; at most ${MEMORY_KIB_MAX} and ${PASSES_MAX} are allowed`);
  }
  const lock = await lockOf(passphrase, fromHex(salt), memory_kib, passes);
  const { nonce, ciphertext } = file.xchacha20poly1305;
  let seed: Uint8Array;
  try {
    seed = xchacha20poly1305(lock, fromHex(nonce), utf8ToBytes(file.address)).decrypt(fromHex(ciphertext));
  } catch {
    throw new KeyError("the passphrase is wrong, or the key file is damaged");
  }
  if (new Ed25519Key(seed).address !== file.address) throw new KeyError("the address in the key file does not belong to the key");
  return seed;
}

/** The text of a file for a seed of 32 bytes. */
export async function sealKey(seed: Uint8Array, passphrase: string, [memory_kib, passes] = [MEMORY_KIB, PASSES]): Promise<string> {
  const key = new Ed25519Key(seed);
  const [salt, nonce] = [randomBytes(16), randomBytes(24)];
  const lock = await lockOf(passphrase, salt, memory_kib, passes);
  const ciphertext = xchacha20poly1305(lock, nonce, utf8ToBytes(key.address)).encrypt(seed);
  const file: KeyFile = {
    version: 1,
    address: key.address,
    public_key: key.public,
    argon2id: { memory_kib, passes, salt: toHex(salt) },
    xchacha20poly1305: { nonce: toHex(nonce), ciphertext: toHex(ciphertext) },
  };
  return JSON.stringify(file, null, 2) + "\n";
}

function parsed(text: string): KeyFile {
  let file: Partial<KeyFile> | null = null;
  try {
    file = JSON.parse(text) as Partial<KeyFile>;
  } catch {
    // What is no JSON is no key file.
  }
  if (!file?.argon2id || !file.xchacha20poly1305 || typeof file.address !== "string") throw new KeyError("this is not a key file");
  if (file.version !== 1) throw new KeyError(`key file version ${file.version} is newer than this software`);
  return file as KeyFile;
}

const lockOf = (passphrase: string, salt: Uint8Array, m: number, t: number): Promise<Uint8Array> =>
  argon2idAsync(utf8ToBytes(passphrase), salt, { m, t, p: 1, dkLen: 32, version: 0x13 });
