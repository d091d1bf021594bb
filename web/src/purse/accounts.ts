/** The account that is chosen on the page, as the client of a purse has it: it signs deposits, and posts what is redeemed. */
import { Client } from "@walras/client/client";
import { Signed, typedDataOf } from "@walras/client/encoding";
import type { Key } from "@walras/client/keys";
import { TextStore, type Store } from "@walras/client/store";
import { fromHex } from "@walras/client/typed";
import type { Trader } from "../trade/keys";
import { Told } from "../trade/told";

const server = (): string => new URL(".", document.baseURI).href;
const clients = new Map<Trader | null, Client>();
let store: Store | null = null;

/**
 * A client of the node; without a trader it asks only. What it signs is stored in this browser before it is sent, apart for each
 * network, so that the same bytes can be sent again after the page was loaded again.
 */
export async function clientOf(trader: Trader | null): Promise<Client> {
  const key = trader && keyOf(trader);
  store ??= new TextStore(localStorage, `purse.${(await new Client(server()).limits()).network}`);
  const found = clients.get(trader) ?? new Client(server(), key ? { key, store } : { store });
  clients.set(trader, found);
  return found;
}

export function keyOf(trader: Trader): Key {
  if (trader.session) throw new Told("A session key only trades and cancels: choose the account's own key.");
  const { address } = trader;
  return { address, sign: async (body, network) => Signed.byWallet(body, network, fromHex(await trader.sign(typedDataOf(body, network)))) };
}
