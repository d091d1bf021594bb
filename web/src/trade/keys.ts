/**
 * Who signs: a public account of a demo, a key that this browser keeps encrypted, or a browser wallet. The account of a
 * key is its Ethereum address.
 */
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { addressOf, signTyped } from "@walras/client/ethereum";
import type { Ed25519Key } from "@walras/client/keys";
import { fromHex, toHex, type TypedData } from "@walras/client/typed";
import { Told } from "./told";

export type Trader = {
  kind: "demo" | "local" | "wallet" | "session";
  name: string;
  /** The account, lower-case. */
  address: string;
  /** The account's signature, `0x` and 65 bytes. */
  sign(data: TypedData): Promise<string>;
  /** Which of the browser's wallets it is in. */
  wallet?: string;
  /** The session key that signs in the account's place: it only places orders and cancels. */
  session?: { slot: number; key: Ed25519Key };
};

/**
 * The keys of the mnemonic that Ethereum's development tools come with. Everybody knows them: they are worth something on
 * a demo's chain only, whose genesis pays them.
 */
const DEMO_KEYS = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
];
/** The number of chains for development: no other chain pays these accounts. */
export const DEMO_CHAIN = "31337";

export const demoTraders = (): Trader[] => DEMO_KEYS.map((key, at) => ofKey("demo", `Public demo account ${at + 1}`, fromHex(key)));

function ofKey(kind: "demo" | "local", name: string, key: Uint8Array): Trader {
  return { kind, name, address: addressOf(key), sign: async (data) => signTyped(key, data) };
}

/** A secret as this browser keeps it: AES-256-GCM under a key that PBKDF2 derives from a passphrase. */
export type Sealed = { salt: string; nonce: string; encrypted: string; rounds: number };
type Kept = { address: string } & Sealed;
const KEPT = "walras.key";
const ROUNDS = 600_000;
export const LEAST_PASSPHRASE = 8;

/** The address of the key that this browser keeps, or null. */
export function keptAddress(): string | null {
  return kept()?.address ?? null;
}

function kept(): Kept | null {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null") as Kept | null;
  } catch {
    return null;
  }
}

/** Keeps a new key, or the one that `hex` writes, under a passphrase; it replaces the one before. */
export async function keepKey(passphrase: string, hex: string | null): Promise<Trader> {
  const key = hex === null ? secp256k1.utils.randomSecretKey() : readKey(hex);
  const record: Kept = { address: addressOf(key), ...(await seal(key, passphrase)) };
  localStorage.setItem(KEPT, JSON.stringify(record));
  return ofKey("local", "Key in this browser", key);
}

/** The kept key. Throws with a sentence for the reader where the passphrase is wrong. */
export async function unlockKey(passphrase: string): Promise<Trader> {
  return ofKey("local", "Key in this browser", await openKey(passphrase));
}

/** The private key itself, for a copy elsewhere. */
export async function exportKey(passphrase: string): Promise<string> {
  return toHex(await openKey(passphrase));
}

async function openKey(passphrase: string): Promise<Uint8Array> {
  const record = kept();
  if (!record) throw new Told("This browser keeps no key: create or import one.");
  return unseal(record, passphrase);
}

export async function seal(secret: Uint8Array, passphrase: string): Promise<Sealed> {
  const [salt, nonce] = [crypto.getRandomValues(new Uint8Array(16)), crypto.getRandomValues(new Uint8Array(12))];
  const lock = await lockOf(passphrase, salt, ROUNDS);
  const encrypted = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce }, lock, secret as BufferSource));
  return { salt: toHex(salt), nonce: toHex(nonce), encrypted: toHex(encrypted), rounds: ROUNDS };
}

/** What was sealed. Throws with a sentence for the reader where the passphrase is wrong. */
export async function unseal(sealed: Sealed, passphrase: string): Promise<Uint8Array> {
  const lock = await lockOf(passphrase, fromHex(sealed.salt), sealed.rounds);
  try {
    const iv = fromHex(sealed.nonce) as BufferSource;
    return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, lock, fromHex(sealed.encrypted) as BufferSource));
  } catch {
    throw new Told("The passphrase is wrong.");
  }
}

export function forgetKey(): void {
  localStorage.removeItem(KEPT);
}

function readKey(hex: string): Uint8Array {
  if (!/^(0x)?[0-9a-fA-F]{64}$/.test(hex.trim())) throw new Told("A private key is 64 hexadecimal digits; this is something else.");
  const key = fromHex(hex.trim());
  if (!secp256k1.utils.isValidSecretKey(key)) throw new Told("These digits are no private key of this curve.");
  return key;
}

async function lockOf(passphrase: string, salt: Uint8Array, iterations: number): Promise<CryptoKey> {
  // Browsers hold cryptography back from pages that others could have changed on their way.
  if (!globalThis.crypto?.subtle) throw new Told("This browser keeps keys for pages over HTTPS or on this machine only: open the page that way.");
  const secret = await crypto.subtle.importKey("raw", new TextEncoder().encode(passphrase), "PBKDF2", false, ["deriveKey"]);
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt: salt as BufferSource, iterations };
  return crypto.subtle.deriveKey(parameters, secret, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}
