/** Accounts with a policy: several keys sign together, as docs/specification.md describes it. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { derived, encodeBody, encodeOperation, little, plainAddress, typedDataOf, type Body, type Operation } from "./encoding.js";
import { fromHex, toHex, type TypedData } from "./typed.js";

const REQUEST_TAG = utf8ToBytes("walras request of a policy v1\0");
const TAGS = { SetKeys: utf8ToBytes("walras change of keys v1\0"), RecoverKeys: utf8ToBytes("walras recovery of keys v1\0") };
const CHANGE_IDS = { SetKeys: "walras 2026 change of keys v1", RecoverKeys: "walras 2026 recovery of keys v1" };

/** What signs bytes: an `Ed25519Key`, whose `agree` does. */
export type ByteSigner = { readonly public: string; agree(message: Uint8Array): Uint8Array };
/** A signature by its signer: a public key, or the address of a wallet. */
export type Signatures = Readonly<Record<string, string>>;
/** A change of keys as an operation. */
export type KeyChange = Extract<Operation, { kind: "SetKeys" | "RecoverKeys" }>;
/** The policy of an account, as `/v1/accounts/…` shows it under `keys`. */
export type KeyPolicy = {
  keys: { key: string; weight: number }[];
  wallets: { wallet: string; weight: number }[];
  move: number;
  govern: number;
  guardian_keys: { key: string }[];
  guardian_wallets: { wallet: string }[];
  guardians: number;
  delay: number;
};
/** The keys of an account with a policy. */
export type AccountKeys = {
  first: string;
  /** The id of its last change of keys, waiting or done: all that is signed for the account names it. */
  last: string;
  policy: KeyPolicy;
  waiting: { policy: KeyPolicy; sessions: "close" | "keep"; by: "signers" | "guardians"; due: string } | null;
};

/** The salt of what a wallet signs for an account with a policy. */
export const policySalt = (network: string, account: string, last: string): string =>
  toHex(derived("walras 2026 salt of a policy v1", concatBytes(fromHex(network), fromHex(plainAddress(account)), fromHex(last))));

/** A wallet's signature in the compact form of EIP-2098. */
function compact(signature: string): string {
  const bytes = fromHex(signature);
  const made = bytes.slice(0, 64);
  if (bytes.length === 65 && (bytes[64] === 28 || bytes[64] === 1)) made[32] = (made[32] ?? 0) | 0x80;
  return toHex(made);
}

/** A count, and signers with their signatures, ascending. */
function listed(signatures: Signatures): Uint8Array {
  const pairs = Object.entries(signatures).map(([who, signature]) => toHex(concatBytes(fromHex(who), fromHex(signature))));
  return concatBytes(little(pairs.length, 4), ...pairs.sort().map((pair) => fromHex(pair)));
}

/** A request of an account with a policy, with the signatures so far: what its signers pass on. */
export class PolicyRequest {
  constructor(
    readonly body: Body,
    /** The id of the account's last change of keys. */
    readonly last: string,
    readonly network: string,
    readonly keys: Signatures = {},
    readonly wallets: Signatures = {},
  ) {}

  /** What ed25519 keys sign. */
  get signingBytes(): Uint8Array {
    return concatBytes(REQUEST_TAG, fromHex(this.network), fromHex(this.last), encodeBody(this.body));
  }

  /** What wallets sign (EIP-712). */
  get typedData(): TypedData {
    return typedDataOf(this.body, policySalt(this.network, this.body.account, this.last));
  }

  /** Its id, whoever has signed. */
  get id(): string {
    return toHex(derived("walras 2026 policy transaction id v1", encodeBody(this.body)));
  }

  /** With the signature of a key. */
  signedBy(key: ByteSigner): PolicyRequest {
    const keys = { ...this.keys, [key.public]: toHex(key.agree(this.signingBytes)) };
    return new PolicyRequest(this.body, this.last, this.network, keys, this.wallets);
  }

  /** With the signature of a wallet on `typedData`, of 65 bytes or compact. */
  withWallet(address: string, signature: string): PolicyRequest {
    const wallets = { ...this.wallets, [plainAddress(address)]: compact(signature) };
    return new PolicyRequest(this.body, this.last, this.network, this.keys, wallets);
  }

  /** Whether each signature of an ed25519 key is valid. Nodes check those of wallets, too. */
  isValid(): boolean {
    const message = this.signingBytes;
    return Object.entries(this.keys).every(([key, signature]) => ed25519.verify(fromHex(signature), message, fromHex(key)));
  }

  /** The transaction, to be submitted to `/v1/transactions`. */
  encode(): Uint8Array {
    const seal = concatBytes(new Uint8Array([2]), fromHex(this.last), listed(this.keys), listed(this.wallets));
    return concatBytes(encodeBody(this.body), seal);
  }

  /** How much weight it lacks. */
  missing(policy: KeyPolicy, needed: "move" | "govern" = "move"): number {
    const signed = new Set([...Object.keys(this.keys), ...Object.keys(this.wallets)]);
    const signers = [...policy.keys.map((one) => [one.key, one.weight] as const), ...policy.wallets.map((one) => [one.wallet.toLowerCase(), one.weight] as const)];
    const has = signers.filter(([who]) => signed.has(who)).reduce((sum, [, weight]) => sum + weight, 0);
    return Math.max(0, policy[needed] - has);
  }
}

/** What is encoded of a change of keys, whatever signatures its operation has. */
export function encodedChange(change: KeyChange): Uint8Array {
  const encoded = encodeOperation({ ...change, keySignatures: [], walletSignatures: [] });
  // The code is before it; after it come two empty lists, and of SetKeys the first key.
  return encoded.slice(1, encoded.length - 8 - (change.kind === "SetKeys" ? 32 : 0));
}

/** What an ed25519 key signs to agree to a change of keys. */
export const consentBytes = (change: KeyChange, network: string): Uint8Array =>
  concatBytes(TAGS[change.kind], fromHex(network), encodedChange(change));

/** The id of a change of keys: what is signed for the account names it from then on. */
export const changeId = (change: KeyChange): string => toHex(derived(CHANGE_IDS[change.kind], encodedChange(change)));
