/** What signs: keys of the ledger's own kind, keys of Ethereum wallets, and wallets of browsers. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { sealedSigningBytes, sealedTypedData, type Enclosure } from "./enclosure.js";
import { Signed, derived, signingBytes, structure, typedDataOf, type Body } from "./encoding.js";
import { KeyError } from "./errors.js";
import { addressOf, signTyped } from "./ethereum.js";
import { fromHex, toHex, type TypedData } from "./typed.js";

/** What a login on the stream signs: the nonce of a connection's challenge, and the server as the client called it. */
export type LoginTerms = { account: string; nonce: string; server: string; chain: bigint; network: string };
/** The signature of a login; with `key` it is that of an ed25519 key. */
export type LoginSignature = { key?: string; signature: string };

const LOGIN_TAG = new TextEncoder().encode("walras stream login v1\0");

/** What an ed25519 key signs to log in: the tag, network, account, nonce, and the server. */
export function loginBytes({ account, nonce, server, network }: LoginTerms): Uint8Array {
  const parts = [LOGIN_TAG, fromHex(network), fromHex(account), fromHex(nonce), new TextEncoder().encode(server)];
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** What a wallet signs to log in. */
export function loginTyped({ account, nonce, server, chain, network }: LoginTerms): TypedData {
  const fields = { account: "address", nonce: "bytes32", server: "string" };
  const types = { StreamLogin: Object.entries(fields).map(([name, type]) => ({ name, type })) };
  return structure("StreamLogin", types, { account, nonce, server }, { chain, network });
}

export interface Key {
  /** The address of the account that it controls from the start. */
  readonly address: string;
  /** The public key of an ed25519 key: session keys are known by it. */
  readonly public?: string;
  /** A body, signed for a network. */
  sign(body: Body, network: string): Promise<Signed>;
  /** A body, signed for an envelope: the signature is valid nowhere else. A key without it seals nothing. */
  signInside?(body: Body, within: Enclosure): Promise<Signed>;
  /** A login on the stream; a key without it has no channels of its own orders. */
  login?(terms: LoginTerms): Promise<LoginSignature>;
}

/** A key of the ledger's own kind: the 32 bytes of its seed. */
export class Ed25519Key implements Key {
  readonly address: string;
  readonly public: string;
  readonly #seed: Uint8Array;

  constructor(seed: Uint8Array | string) {
    this.#seed = bytesOf(seed);
    const key = ed25519.getPublicKey(this.#seed);
    this.public = toHex(key);
    this.address = toHex(derived("walras 2026 ed25519 address v1", key).slice(0, 20));
  }

  static generate(): Ed25519Key {
    return new Ed25519Key(ed25519.utils.randomSecretKey());
  }

  async sign(body: Body, network: string): Promise<Signed> {
    return Signed.byKey(body, fromHex(this.public), ed25519.sign(signingBytes(body, network), this.#seed));
  }

  async signInside(body: Body, within: Enclosure): Promise<Signed> {
    return Signed.byKey(body, fromHex(this.public), ed25519.sign(sealedSigningBytes(within, body), this.#seed));
  }

  /** The signature on `sessionPossessionBytes`, by which it agrees to be a session key. */
  agree(possession: Uint8Array): Uint8Array {
    return ed25519.sign(possession, this.#seed);
  }

  async login(terms: LoginTerms): Promise<LoginSignature> {
    return { key: this.public, signature: toHex(ed25519.sign(loginBytes(terms), this.#seed)) };
  }
}

/** A key of an Ethereum wallet. */
export class EthereumKey implements Key {
  readonly address: string;
  readonly #key: Uint8Array;

  constructor(key: Uint8Array | string) {
    this.#key = bytesOf(key);
    if (!secp256k1.utils.isValidSecretKey(this.#key)) throw new KeyError("these bytes are no private key of secp256k1");
    this.address = addressOf(this.#key);
  }

  static generate(): EthereumKey {
    return new EthereumKey(secp256k1.utils.randomSecretKey());
  }

  async sign(body: Body, network: string): Promise<Signed> {
    return Signed.byWallet(body, network, fromHex(signTyped(this.#key, typedDataOf(body, network))));
  }

  async signInside(body: Body, within: Enclosure): Promise<Signed> {
    return Signed.byWallet(body, toHex(within.network), fromHex(signTyped(this.#key, sealedTypedData(within, body))));
  }

  async login(terms: LoginTerms): Promise<LoginSignature> {
    return { signature: signTyped(this.#key, loginTyped(terms)) };
  }
}

/** What browser wallets offer pages (EIP-1193). */
export type Provider = { request(call: { method: string; params?: unknown[] }): Promise<unknown> };

/** A browser wallet, which shows its owner each transaction field by field. */
export class WalletKey implements Key {
  private constructor(
    private readonly provider: Provider,
    readonly address: string,
  ) {}

  /** The account that the wallet shows; it asks its owner. */
  static async connect(provider: Provider): Promise<WalletKey> {
    const accounts = (await provider.request({ method: "eth_requestAccounts" })) as string[];
    if (accounts[0] === undefined) throw new KeyError("the wallet showed no account");
    return new WalletKey(provider, accounts[0].toLowerCase());
  }

  async sign(body: Body, network: string): Promise<Signed> {
    return Signed.byWallet(body, network, fromHex(await this.signTyped(typedDataOf(body, network))));
  }

  async signInside(body: Body, within: Enclosure): Promise<Signed> {
    return Signed.byWallet(body, toHex(within.network), fromHex(await this.signTyped(sealedTypedData(within, body))));
  }

  async login(terms: LoginTerms): Promise<LoginSignature> {
    return { signature: await this.signTyped(loginTyped(terms)) };
  }

  private async signTyped(data: TypedData): Promise<string> {
    return (await this.provider.request({ method: "eth_signTypedData_v4", params: [this.address, JSON.stringify(data)] })) as string;
  }
}

function bytesOf(key: Uint8Array | string): Uint8Array {
  if (typeof key === "string" && !/^(0x)?[0-9a-fA-F]{64}$/.test(key)) throw new KeyError("a key is 64 hexadecimal digits; this is something else");
  const bytes = typeof key === "string" ? fromHex(key) : key;
  if (bytes.length !== 32) throw new KeyError(`a key has 32 bytes; this has ${bytes.length}`);
  return bytes;
}
