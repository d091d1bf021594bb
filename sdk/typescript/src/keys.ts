/** What signs: keys of the ledger's own kind, keys of Ethereum wallets, and wallets of browsers. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { Signed, derived, signingBytes, typedDataOf, type Body } from "./encoding.js";
import { KeyError } from "./errors.js";
import { addressOf, signTyped } from "./ethereum.js";
import { fromHex, toHex } from "./typed.js";

export interface Key {
  /** The address of the account that it controls from the start. */
  readonly address: string;
  /** A body, signed for a network. */
  sign(body: Body, network: string): Promise<Signed>;
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
    const params = [this.address, JSON.stringify(typedDataOf(body, network))];
    const signature = (await this.provider.request({ method: "eth_signTypedData_v4", params })) as string;
    return Signed.byWallet(body, network, fromHex(signature));
  }
}

function bytesOf(key: Uint8Array | string): Uint8Array {
  if (typeof key === "string" && !/^(0x)?[0-9a-fA-F]{64}$/.test(key)) throw new KeyError("a key is 64 hexadecimal digits; this is something else");
  const bytes = typeof key === "string" ? fromHex(key) : key;
  if (bytes.length !== 32) throw new KeyError(`a key has 32 bytes; this has ${bytes.length}`);
  return bytes;
}
