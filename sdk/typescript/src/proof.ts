/**
 * Proofs of accounts, of their policies, of parameters, and of outcomes. The layouts are those of the `ledger` and `trie` crates' documentation; `certificate.ts`
 * checks who signed a root.
 */
import { blake3 } from "@noble/hashes/blake3.js";
import { concatBytes } from "@noble/hashes/utils.js";
import type { AssetControl } from "./bodies.js";
import { derived, number } from "./encoding.js";
import { OPERATIONS } from "./operations.js";
import type { AccountKeys, KeyPolicy } from "./policy.js";
import { SLOT_BITS, slotOf } from "./slot.js";
import { toHex } from "./typed.js";

const [NODE, FORK, LEAF, OTHER] = [1, 2, 3, 4];
const VALUE = 32;

/** A proof that cannot be decoded, or that leads elsewhere. */
export class ProofError extends Error {
  override readonly name = "ProofError";
}

/** Reads an encoding from its beginning. */
export class Reader {
  at = 0;
  constructor(readonly data: Uint8Array) {}

  take(count: number): Uint8Array {
    if (this.at + count > this.data.length) throw new ProofError(`the proof is cut off: it has only ${this.data.length} bytes`);
    this.at += count;
    return this.data.slice(this.at - count, this.at);
  }
  big(bytes: number): bigint {
    return number(this.take(bytes), 0, bytes);
  }
  count(bytes: number): number {
    return Number(this.big(bytes));
  }
  end(): void {
    if (this.at !== this.data.length) throw new ProofError("there are bytes after the end of the proof");
  }
}

/** Which sequence numbers an account has used: the highest, and a bitmap of the 64 up to it. */
export type Window = { highest: bigint; used: bigint };
/**
 * An account as a proof states it; balances are units by the asset's number. `slots` are given to session keys, and `windows` are
 * the numbers of those keys by slot, with the slot in their upper bits.
 */
export type ProvedAccount = {
  address: string;
  window: Window;
  balances: Map<number, bigint>;
  slots: number;
  windows: Map<number, Window>;
  /** Whether payments to it need a reference. */
  needsReference: boolean;
};

export function isFree(window: Window, sequence: bigint): boolean {
  const behind = window.highest - sequence;
  return behind < 0n || (behind < 64n && ((window.used >> behind) & 1n) === 0n);
}

type Parts = { parts: Uint8Array; roots: Map<number, Uint8Array> };
type Head = { parts: Uint8Array; roots: Map<number, Uint8Array>; stated: Uint8Array | null; account: ProvedAccount | null };

/** The slots given; of each key slot, key, scope, whether it is closed, two heights, window, and caps with what is used of them. */
function sessionKeys(reader: Reader): Pick<ProvedAccount, "slots" | "windows"> {
  const slots = reader.count(4);
  const windows = new Map<number, Window>();
  for (let left = reader.count(4); left > 0; left -= 1) {
    const slot = reader.count(4);
    reader.take(32 + 1 + 1 + 8 + 8);
    windows.set(slot, { highest: (BigInt(slot) << SLOT_BITS) | reader.big(8), used: reader.big(8) });
    reader.take((4 + 8 + 8) * reader.count(4));
  }
  return { slots, windows };
}

/** The parts of a state root, as they are hashed and by tag. */
function readParts(reader: Reader): Parts {
  const roots = new Map<number, Uint8Array>();
  let last = -1;
  for (let left = reader.count(4); left > 0; left -= 1) {
    const tag = reader.count(1);
    if (tag <= last) throw new ProofError("the parts of the root are not in the order of their tags");
    roots.set(tag, reader.take(32));
    last = tag;
  }
  return { parts: reader.data.slice(0, reader.at), roots };
}

function checkRoot(parts: Uint8Array, root: Uint8Array): void {
  if (!same(derived("walras 2026 state root v4", parts), root)) {
    throw new ProofError("the proof is for another state root: request the proof of this block");
  }
}

function head(reader: Reader): Head {
  const { parts, roots } = readParts(reader);
  if (reader.count(1) === 0) return { parts, roots, stated: null, account: null };
  const begun = reader.at;
  const address = toHex(reader.take(20));
  if (reader.count(1) !== 0) reader.take(32);
  const window = { highest: reader.big(8), used: reader.big(8) };
  const balances = new Map<number, bigint>();
  for (let left = reader.count(4); left > 0; left -= 1) balances.set(reader.count(4), reader.big(8));
  if (reader.count(1) !== 0) reader.take(8 + 8 + 32 + 1);
  // One bit says that session keys follow, one that payments need a reference.
  const bits = reader.count(1);
  if (bits > 3) throw new ProofError("the proof is of an account that this program does not know");
  const sessions = (bits & 1) === 0 ? { slots: 0, windows: new Map<number, Window>() } : sessionKeys(reader);
  const account = { address, window, balances, ...sessions, needsReference: (bits & 2) !== 0 };
  return { parts, roots, stated: reader.data.slice(begun, reader.at), account };
}

/**
 * The used numbers of a number's slot that the proof of an account states, unverified; none for an account that does not
 * exist. Of a slot whose record is gone none is free: no transaction of it counts any more.
 */
export function windowOf(proof: Uint8Array, sequence: bigint): Window {
  const { account } = head(new Reader(proof));
  if (!account) return { highest: 0n, used: 0n };
  const slot = slotOf(sequence);
  const known = slot === 0 ? account.window : account.windows.get(slot);
  if (known) return known;
  const first = BigInt(slot) << SLOT_BITS;
  return slot <= account.slots ? { highest: first + (1n << SLOT_BITS) - 1n, used: (1n << 64n) - 1n } : { highest: first, used: 0n };
}

/** What the state with this root has at an address; null if the proof shows that there is no account. */
export function proveAccount(address: Uint8Array, root: Uint8Array, proof: Uint8Array): ProvedAccount | null {
  const reader = new Reader(proof);
  const { parts, roots, stated, account } = head(reader);
  checkRoot(parts, root);
  const trie = roots.get(1);
  if (!trie) throw new ProofError("the state has no accounts");
  const path = reader.take(reader.count(4));
  reader.end();
  const value = stated ? derived("walras 2026 account state v3", stated) : null;
  if (!same(prove(address, trie, path), value) || (account && account.address !== toHex(address))) {
    throw new ProofError("the proof states another account than its path proves");
  }
  return account;
}

/** So many entries, each with some bytes under a name and, of a signer, a weight. */
function entries<Name extends string>(reader: Reader, name: Name, bytes: number): Record<Name, string>[] {
  return Array.from({ length: reader.count(4) }, () => ({ [name]: toHex(reader.take(bytes)) }) as Record<Name, string>);
}

function signers<Name extends string>(reader: Reader, name: Name, bytes: number): (Record<Name, string> & { weight: number })[] {
  const one = () => ({ [name]: toHex(reader.take(bytes)), weight: reader.count(1) }) as Record<Name, string> & { weight: number };
  return Array.from({ length: reader.count(4) }, one);
}

const policy = (reader: Reader): KeyPolicy => ({
  keys: signers(reader, "key", 32),
  wallets: signers(reader, "wallet", 20),
  move: reader.count(2),
  govern: reader.count(2),
  guardian_keys: entries(reader, "key", 32),
  guardian_wallets: entries(reader, "wallet", 20),
  guardians: reader.count(1),
  delay: reader.count(4),
});

const waitingKeys = (reader: Reader): AccountKeys["waiting"] => ({
  policy: policy(reader),
  sessions: reader.count(1) === 0 ? "close" : "keep",
  by: reader.count(1) === 0 ? "signers" : "guardians",
  due: reader.big(8).toString(),
});

const accountKeys = (reader: Reader): AccountKeys => {
  const [first, inForce, last] = [toHex(reader.take(32)), policy(reader), toHex(reader.take(32))];
  return { first, last, policy: inForce, waiting: reader.count(1) === 0 ? null : waitingKeys(reader) };
};

/** The policy of an account in the state with this root; null if the proof shows that it has none: its own key signs alone. */
export function proveKeys(address: Uint8Array, root: Uint8Array, proof: Uint8Array): AccountKeys | null {
  const reader = new Reader(proof);
  const { parts, roots } = readParts(reader);
  checkRoot(parts, root);
  const has = reader.count(1) !== 0;
  const begun = reader.at;
  const keys = has ? accountKeys(reader) : null;
  const value = has ? derived("walras 2026 account keys v1", reader.data.slice(begun, reader.at)) : null;
  const path = reader.take(reader.count(4));
  reader.end();
  const trie = roots.get(10);
  // While no account of the chain has a policy, its state has no part for them.
  const proved = trie ? prove(address, trie, path) : null;
  if (!same(proved, value)) throw new ProofError("the proof states another policy than its path proves");
  return keys;
}

/** The values of all parameters by name, as /v1/parameters names them. */
export type ParameterValues = Record<string, string>;
/** Parameters of the genesis, in force, and to come, each of these with the height that it acts from. */
export type ProvedParameters = { first: ParameterValues; now: ParameterValues; coming: { acts: number; values: ParameterValues }[] };

const PARAMETERS: readonly string[] = OPERATIONS.ProposeParameter.fields[0]?.texts ?? [];

const parameterValues = (reader: Reader): ParameterValues => Object.fromEntries(PARAMETERS.map((name) => [name, reader.big(8).toString()]));

/**
 * The parameters of the chain in the state with this root; null if the proof shows that nothing was ever proposed: then
 * they are those of the genesis.
 */
export function proveParameters(root: Uint8Array, proof: Uint8Array): ProvedParameters | null {
  const reader = new Reader(proof);
  const { parts, roots } = readParts(reader);
  checkRoot(parts, root);
  // Two numbers of rules with their manifests and the height between them, and the rules that are agreed on.
  let begun = reader.at;
  reader.take(4 + 32 + 8 + 4 + 32);
  if (reader.count(1) !== 0) reader.take(4 + 32 + 8 + 8 + 1 + 1);
  const rules = reader.data.slice(begun, reader.at);
  let rest = reader.take(32);
  let parameters: ProvedParameters | null = null;
  if (reader.count(1) !== 0) {
    begun = reader.at;
    const [first, now] = [parameterValues(reader), parameterValues(reader)];
    const coming = Array.from({ length: reader.count(4) }, () => ({ acts: Number(reader.big(8)), values: parameterValues(reader) }));
    parameters = { first, now, coming };
    reader.take(32);
    rest = derived("walras 2026 charter parameters v1", concatBytes(rest, reader.data.slice(begun, reader.at)));
  }
  reader.end();
  if (!same(roots.get(8) ?? null, derived("walras 2026 charter v1", concatBytes(rules, rest)))) {
    throw new ProofError("the proof states other parameters than the state has");
  }
  return parameters;
}

const CONTROLS = ["open", "freezable", "admitted", "recoverable", "admitted_recoverable"] as const;

/** What an issuer controls of an asset, and whether an account that is not the issuer holds it freely. */
export type ProvedHolder = { control: AssetControl; isOpen: boolean; since: number | null };

/** What the state with this root says of a holder of an asset. */
export function proveHolder(asset: number, account: Uint8Array, root: Uint8Array, proof: Uint8Array): ProvedHolder {
  const reader = new Reader(proof);
  const { parts, roots } = readParts(reader);
  checkRoot(parts, root);
  const trie = reader.take(32);
  const begun = reader.at;
  const controls = new Map<number, AssetControl>();
  for (let left = reader.count(4); left > 0; left -= 1) {
    const [of, control] = [reader.count(4), CONTROLS[reader.count(1)]];
    if (!control) throw new ProofError("the proof is of a control that this program does not know");
    controls.set(of, control);
  }
  const listed = derived("walras 2026 asset controls v1", reader.data.slice(begun, reader.at));
  const record = reader.count(1) === 0 ? null : reader.take(1 + 8 + 1);
  const path = reader.take(reader.count(4));
  reader.end();
  const part = roots.get(12);
  if (!part) {
    // A chain on which nobody controls an asset has no part for it.
    if (controls.size > 0 || record) throw new ProofError("the proof states controls that its state does not have");
    return { control: "open", isOpen: true, since: null };
  }
  if (!same(derived("walras 2026 controls root v1", concatBytes(trie, listed)), part)) throw new ProofError("the proof states other controls than its state has");
  const key = concatBytes(new Uint8Array([asset >>> 24, asset >>> 16, asset >>> 8, asset]), account);
  const value = record ? derived("walras 2026 holder record v1", record) : null;
  if (!same(prove(key, trie, path), value)) throw new ProofError("the proof states another record than its path proves");
  const control = controls.get(asset) ?? "open";
  const isOpen = record ? record[0] === 1 : control !== "admitted" && control !== "admitted_recoverable";
  return { control, isOpen, since: record ? Number(number(record, 1, 8)) : null };
}

/** The encoded outcome of a transaction in the block with this receipts root; null if it is proved to have none. */
export function proveOutcome(id: Uint8Array, root: Uint8Array, proof: Uint8Array): Uint8Array | null {
  const reader = new Reader(proof);
  const outcome = readOutcome(reader);
  const parts = reader.take(5 * 32);
  if (!same(derived("walras 2026 receipts root v4", parts), root)) throw new ProofError("the proof is for another receipts root");
  const path = reader.take(reader.count(4));
  reader.end();
  const value = outcome ? derived("walras 2026 receipt v1", outcome) : null;
  if (!same(prove(id, parts.slice(0, 32), path), value)) throw new ProofError("the proof states another outcome than its path proves");
  return outcome;
}

function readOutcome(reader: Reader): Uint8Array | null {
  if (reader.count(1) === 0) return null;
  const begun = reader.at;
  // Applied, offered (four amounts and a reason), refused (place and number), void, cancelled (found and missing),
  // replaced (what remained, and as offered), pooled (two amounts and shares),
  // exact (three amounts and a reason), listed (the number of the asset).
  const length = [0, 4 * 8 + 1, 2, 0, 2, 5 * 8 + 1, 3 * 8, 3 * 8 + 1, 4][reader.count(1)];
  if (length === undefined) throw new ProofError("the proof states no kind of outcome");
  reader.take(length);
  return reader.data.slice(begun, reader.at);
}

export function same(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : toHex(one) === toHex(other);
}

/** What lies in a slot of a node: another node, the end of a key with its value, or nothing. */
type Below = { node: Uint8Array } | { leaf: Uint8Array } | null;
type Node = { depth: number; path: Uint8Array; nodes: number; leaves: number; own: number | null; siblings: Map<number, Uint8Array> };

const nibble = (key: Uint8Array, depth: number) => (depth % 2 === 0 ? (key[depth >> 1] ?? 0) >> 4 : (key[depth >> 1] ?? 0) & 15);
const startOf = (node: Node | undefined) => (node ? (node.depth + 1) >> 1 : 0);

/** The value of a key in the trie with this root, from the way down to its place. */
export function prove(key: Uint8Array, root: Uint8Array, path: Uint8Array): Uint8Array | null {
  const [reader, way] = [new Reader(path), [] as Node[]];
  let [found, below]: [Uint8Array | null, Below] = [null, null];
  for (let done = false; !done; ) {
    const [kind, above] = [reader.count(1), way.at(-1)];
    const [start, least] = [startOf(above), above ? above.depth + 1 : 0];
    done = true;
    if (kind === NODE) {
      const node = readNode(reader, key, least, true);
      way.push(node);
      done = (((node.nodes | node.leaves) >> nibble(key, node.depth)) & 1) === 0;
    } else if (kind === LEAF) {
      found = reader.take(VALUE);
      below = { leaf: concatBytes(key.slice(start), found) };
    } else if (kind === OTHER) {
      const suffix = reader.take(key.length - start);
      if (same(suffix, key.slice(start))) throw new ProofError("the proof hides the key's own leaf");
      below = { leaf: concatBytes(suffix, reader.take(VALUE)) };
    } else if (kind === FORK) {
      below = { node: digestOf(key, readNode(reader, key, least, false), null) };
    } else if (kind !== 0 || above) {
      throw new ProofError("the proof has an item that is not allowed there");
    }
  }
  reader.end();
  for (const node of way.reverse()) below = { node: digestOf(key, node, below) };
  const message = (byte: number, rest: Uint8Array) => hash(key, concatBytes(new Uint8Array([byte]), rest));
  const digest = below === null ? message(0, new Uint8Array()) : "leaf" in below ? message(1, below.leaf) : below.node;
  if (!same(digest, root)) throw new ProofError("the path leads to another root");
  return found;
}

/** A node on the key's way; or one that the key does not begin with. */
function readNode(reader: Reader, key: Uint8Array, least: number, isOnWay: boolean): Node {
  const [depth, nodes, leaves] = [reader.count(1), reader.count(2), reader.count(2)];
  if (depth < least || depth >= 2 * key.length || (nodes & leaves) !== 0) throw new ProofError("the proof has a node that is not allowed there");
  const start = (depth + 1) >> 1;
  const path = isOnWay ? key.slice(0, start) : reader.take(start);
  if (!isOnWay && Array.from({ length: depth }, (_, at) => at).every((at) => nibble(path, at) === nibble(key, at))) {
    throw new ProofError("the proof hides the key's own way");
  }
  if (depth % 2 === 1) path[start - 1] = (path[start - 1] ?? 0) & 0xf0;
  const own = isOnWay ? nibble(key, depth) : null;
  const siblings = new Map<number, Uint8Array>();
  for (let slot = 0; slot < 16; slot += 1) {
    if (slot === own) continue;
    if ((nodes >> slot) & 1) siblings.set(slot, reader.take(32));
    else if ((leaves >> slot) & 1) siblings.set(slot, reader.take(key.length - start + VALUE));
  }
  return { depth, path, nodes, leaves, own, siblings };
}

/** The node's digest with what lies in the key's own slot. */
function digestOf(key: Uint8Array, node: Node, below: Below): Uint8Array {
  const contents = new Map(node.siblings);
  let { nodes, leaves } = node;
  if (node.own !== null) {
    const mark = 1 << node.own;
    nodes &= ~mark;
    leaves &= ~mark;
    if (below && "leaf" in below) leaves |= mark;
    else if (below) nodes |= mark;
    if (below) contents.set(node.own, "leaf" in below ? below.leaf : below.node);
  }
  const top = new Uint8Array([2, node.depth, nodes & 255, nodes >> 8, leaves & 255, leaves >> 8]);
  const slots = [...contents.keys()].sort((a, b) => a - b).map((slot) => contents.get(slot) ?? new Uint8Array());
  const message = concatBytes(top, node.path, ...slots);
  return hash(key, concatBytes(message, new Uint8Array((64 - (message.length % 64)) % 64)));
}

function hash(key: Uint8Array, message: Uint8Array): Uint8Array {
  return blake3(message, { key: derived("walras 2026 trie v2", new Uint8Array([key.length, VALUE])) });
}
