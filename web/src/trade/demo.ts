/** The public accounts of a demo: they are offered only where a demo's genesis paid them. */
import type { Live } from "../live";
import { DEMO_CHAIN, demoTraders, type Trader } from "./keys";
import { holdings } from "./orders";

/** The public accounts that have money on this chain; null while it is not known which chain this is. */
export async function publicAccounts(live: Live, signal: AbortSignal): Promise<Trader[] | null> {
  if (live.status === null) return null;
  const all = live.status.chain === DEMO_CHAIN ? demoTraders() : [];
  const first = all[0] && (await holdings(all[0].address, signal));
  return first && first.length > 0 ? all : [];
}
