/**
 * The wallets of this browser. Those that announce themselves (EIP-6963) are offered by name; one that only stands at
 * `window.ethereum`, as wallets did before, has none. A name is a stranger's text.
 */
import type { TypedData } from "@walras/client/typed";
import { stranger } from "../words";
import type { Trader } from "./keys";
import { Told } from "./told";

/** What browser wallets offer pages (EIP-1193). */
type Provider = { request(call: { method: string; params?: unknown[] }): Promise<unknown> };
export type Wallet = { id: string; name: string; provider: Provider };

const NAME_MOST = 24;
/** A page needs no more to choose from; what else announces itself is not listed. */
const WALLETS_MOST = 8;
const announced = new Map<string, Wallet>();
const listeners = new Set<() => void>();

globalThis.addEventListener?.("eip6963:announceProvider", (event) => hear((event as CustomEvent<unknown>).detail));
globalThis.dispatchEvent?.(new Event("eip6963:requestProvider"));

/** Takes what a wallet says of itself, if it is what such announcements are. */
function hear(detail: unknown): void {
  const { info, provider } = (detail ?? {}) as { info?: { uuid?: unknown; name?: unknown }; provider?: Partial<Provider> };
  if (typeof info?.uuid !== "string" || typeof info.name !== "string" || typeof provider?.request !== "function") return;
  if (announced.has(info.uuid) || announced.size >= WALLETS_MOST) return;
  announced.set(info.uuid, { id: info.uuid, name: stranger(info.name, NAME_MOST).trim() || "Wallet", provider: provider as Provider });
  listeners.forEach((listener) => listener());
}

/** The wallets that are here. */
export function wallets(): Wallet[] {
  if (announced.size > 0) return [...announced.values()];
  const { ethereum } = globalThis as { ethereum?: Provider };
  return ethereum ? [{ id: "", name: "Browser wallet", provider: ethereum }] : [];
}

/** Calls `listener` when another wallet announces itself; returns the way to stop it. */
export function onWallet(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The account that a wallet shows this page; the wallet asks its owner. */
export async function walletTrader(id: string): Promise<Trader> {
  const wallet = wallets().find((one) => one.id === id);
  if (!wallet) throw new Told("This wallet is not in the browser any more.");
  const accounts = (await wallet.provider.request({ method: "eth_requestAccounts" })) as string[];
  const address = accounts[0]?.toLowerCase();
  if (address === undefined) throw new Told("The wallet showed no account.");
  const sign = async (data: TypedData) => (await wallet.provider.request({ method: "eth_signTypedData_v4", params: [address, JSON.stringify(data)] })) as string;
  return { kind: "wallet", name: wallet.name, address, wallet: id, sign };
}
