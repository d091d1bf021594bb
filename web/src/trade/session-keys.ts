/**
 * Session keys: what an owner writes about one becomes an operation; one that is made here stays in this browser, encrypted
 * as the browser's own key is. It is kept before its account is asked to add it, so that no added key is ever without its
 * secret; which slot it has, the chain says.
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import type { Account, Asset, SessionBody, TransactionStatus } from "@walras/client/bodies";
import { parseDecimal, plainText } from "@walras/client/decimal";
import { sessionPossessionBytes } from "@walras/client/encoding";
import { Ed25519Key } from "@walras/client/keys";
import { UNITS_MAX, unitsOf } from "@walras/client/terms";
import { fromHex, toHex } from "@walras/client/typed";
import { get, path, post } from "../api";
import { checkStatus, remedy } from "../words";
import { seal, unseal, type Sealed, type Trader } from "./keys";
import { signed, type Asked } from "./orders";
import { Told } from "./told";

export type Scope = "cancel" | "trade";
/** What a key may do, as written: hours that it counts, minutes without a word from it until its offers end, and caps. */
export type Written = { scope: Scope; hours: string; minutes: string; caps: { asset: string; most: string }[] };
/** The same with heights and units. */
export type KeyTerms = { scope: Scope; ends: number; alive: number; caps: { asset: string; units: string }[] };
/** Where the chain stands, and what it asks of keys. */
export type Chain = { height: number; block_interval_ms: number; fee_asset: string };

const CAPS_MAX = 8;
/** Heights after the next block in which a key may end. */
const HEIGHTS_MAX = 4_194_304;
/** A height that passes while the owner reads and signs must not make the terms void. */
const HEIGHTS_MIN = 10;
const KEPT = "walras.sessions";

type KeptSession = { network: string; account: string; key: string } & Sealed;

/** What is written as terms, or a sentence that says what is wrong. */
export function keyTermsOf(written: Written, chain: Chain, assets: Map<string, Asset>): KeyTerms | string {
  const lasts = heightsOf(written.hours, 3_600_000, chain);
  if (lasts === null) return "Write for how many hours the key counts as a number above 0, such as 24.";
  const most = Math.floor((HEIGHTS_MAX * chain.block_interval_ms) / 3_600_000);
  if (lasts > HEIGHTS_MAX) return `A key counts for at most ${HEIGHTS_MAX.toLocaleString("en-US")} blocks, about ${most.toLocaleString("en-US")} hours: write fewer.`;
  const silent = written.minutes.trim() === "" ? lasts : heightsOf(written.minutes, 60_000, chain);
  if (silent === null) return "Write the timer as a number of minutes above 0, such as 30, or leave it empty.";
  if (silent > lasts) return "The timer is longer than the key counts: write fewer minutes, or leave it empty.";
  const caps = capsOf(written.caps, chain, assets);
  if (typeof caps === "string") return caps;
  return { scope: written.scope, ends: chain.height + lasts, alive: chain.height + silent, caps };
}

function capsOf(written: Written["caps"], chain: Chain, assets: Map<string, Asset>): KeyTerms["caps"] | string {
  const caps = new Map<string, { number: number; units: string }>();
  for (const { asset: symbol, most } of written) {
    const asset = assets.get(symbol);
    const amount = parseDecimal(most.trim());
    if (!asset) return `${symbol} is not an asset of this exchange.`;
    if (caps.has(symbol)) return `${symbol} has two caps: leave one of them out.`;
    if (!amount || amount.digits <= 0n) return `Write the most of ${symbol} that the key may use as a number above 0, such as 500.`;
    const units = unitsOf(amount, asset.decimals);
    if (units === null) return `${symbol} has ${asset.decimals} places after the point: write fewer.`;
    if (units > UNITS_MAX) return `The cap is more than an account can have: the most is ${plainText({ digits: UNITS_MAX, scale: asset.decimals })} ${symbol}.`;
    caps.set(symbol, { number: asset.asset, units: units.toString() });
  }
  if (!caps.has(chain.fee_asset)) return `Each transaction costs a fee in ${chain.fee_asset}: a key without a cap for it can do nothing. Add one.`;
  if (caps.size > CAPS_MAX) return `A key has caps for at most ${CAPS_MAX} assets: leave some out.`;
  return [...caps].sort(([, a], [, b]) => a.number - b.number).map(([asset, { units }]) => ({ asset, units }));
}

/** Blocks in so much time at the chain's pace; null where the text is no number above 0. */
export function heightsOf(text: string, unit_ms: number, chain: Chain): number | null {
  const time = Number(text.trim());
  if (text.trim() === "" || !Number.isFinite(time) || time <= 0) return null;
  return Math.max(HEIGHTS_MIN, Math.round((time * unit_ms) / Math.max(1, chain.block_interval_ms)));
}

/** The session keys of accounts that this browser keeps. */
export function keptSessions(): KeptSession[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(list) ? (list as KeptSession[]) : [];
  } catch {
    return [];
  }
}

export function forgetSession(key: string): void {
  localStorage.setItem(KEPT, JSON.stringify(keptSessions().filter((one) => one.key !== key)));
}

/** Makes a key for an account and keeps it under a passphrase. */
export async function keepSession(passphrase: string, network: string, account: string): Promise<Ed25519Key> {
  const seed = crypto.getRandomValues(new Uint8Array(32));
  const key = new Ed25519Key(seed);
  const record: KeptSession = { network, account, key: key.public, ...(await seal(seed, passphrase)) };
  localStorage.setItem(KEPT, JSON.stringify([...keptSessions(), record]));
  return key;
}

/** A kept key, ready to trade. Throws with a sentence where the passphrase is wrong or the account does not have it. */
export async function unlockSession(key: string, passphrase: string): Promise<Trader> {
  const record = keptSessions().find((one) => one.key === key);
  if (!record) throw new Told("This browser keeps this session key no more: add a new one in the account's view.");
  const opened = new Ed25519Key(await unseal(record, passphrase));
  const { network } = await get<{ network: string }>("limits");
  if (network !== record.network) throw new Told("This session key is of another network than the node of this page.");
  const { sessions = [] } = await get<Account>(path("accounts", record.account));
  const found = sessions.find((one) => one.key === key);
  if (!found) throw new Told("The account has this session key no more: it was revoked, or was never added. Add a new one in the account's view.");
  return traderOf(record.account, found, opened);
}

function traderOf(address: string, { slot }: SessionBody, key: Ed25519Key): Trader {
  const sign = async () => {
    throw new Told("A session key only places orders in batch markets and cancels: choose the account's own key for this.");
  };
  return { kind: "session", name: `Session key ${slot}`, address, sign, session: { slot, key } };
}

/** A key with its agreement to act in a slot. */
export type Adding = { slot: number; key: string; possession: string };

/** A key made here agrees by itself. */
export async function agreed(key: Ed25519Key, network: string, account: string): Promise<Adding> {
  const slot = await nextSlot(account);
  return { slot, key: key.public, possession: toHex(key.agree(sessionPossessionBytes(network, account, slot, key.public))) };
}

/** The slot that the account gives next. */
export async function nextSlot(account: string): Promise<number> {
  return ((await get<Account>(path("accounts", account))).session_slots ?? 0) + 1;
}

/** A key made elsewhere comes with what it has signed: its program has its secret, and this page does not. */
export function pasted(key: string, possession: string, slot: number): Adding | string {
  const digits = (text: string) => text.trim().replace(/^0x/i, "").toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(digits(key))) return "A public key is 64 hexadecimal digits; this is something else.";
  if (!/^[0-9a-f]{128}$/.test(digits(possession))) return "The key's agreement is a signature of 128 hexadecimal digits; this is something else.";
  return { slot, key: `0x${digits(key)}`, possession: `0x${digits(possession)}` };
}

/** What the program of a pasted key signs, in hexadecimal. */
export function toAgree(key: string, network: string, account: string, slot: number): string | null {
  const digits = key.trim().replace(/^0x/i, "").toLowerCase();
  return /^[0-9a-f]{64}$/.test(digits) ? toHex(sessionPossessionBytes(network, account, slot, `0x${digits}`)) : null;
}

/** Whether a key has signed that it agrees. */
export function hasAgreed({ key, possession, slot }: Adding, network: string, account: string): boolean {
  try {
    return ed25519.verify(fromHex(possession), sessionPossessionBytes(network, account, slot, key), fromHex(key));
  } catch {
    return false; // These bytes are no point of the curve.
  }
}

/** Has the account add a key. */
export async function addSession(trader: Trader, terms: KeyTerms, adding: Adding, assets: Map<string, Asset>, height: number): Promise<void> {
  const { slot, key, possession } = adding;
  const { scope, caps } = terms;
  const heights = { ends: String(terms.ends), alive: String(terms.alive) };
  await send(trader, { type: "authorize_session", slot, key, scope, ...heights, caps, possession }, assets, height);
}

/** Ends a key and its offers; a key of this browser is forgotten. */
export async function revokeSession(trader: Trader, { slot, key }: SessionBody, assets: Map<string, Asset>, height: number): Promise<void> {
  await send(trader, { type: "revoke_session", slot }, assets, height);
  forgetSession(key);
}

/** Raises the timer of a slot to a height. */
export async function renewSession(trader: Trader, slot: number, through: number, assets: Map<string, Asset>, height: number): Promise<void> {
  await send(trader, { type: "session_alive", slot, through: String(through) }, assets, height);
}

/** Sends an operation and waits for its block; a refusal is a sentence with its remedy. */
async function send(trader: Trader, operation: Asked, assets: Map<string, Asset>, height: number): Promise<void> {
  const { transaction, signature } = await signed(trader, operation, assets, height);
  const answer = await post<TransactionStatus>("transactions?wait=committed", { transaction, signature });
  checkStatus(answer.status);
  if (answer.status !== "committed") throw new Told("Another transaction of this account took its number. Look at the list, and try again.");
  if (answer.outcome.result === "refused") throw new Told(remedy(answer.outcome.code, answer.outcome.message));
  if (answer.outcome.result === "void") throw new Told("Nothing was done: another operation on this slot counted in the same block. Look at the list, and try again.");
}
