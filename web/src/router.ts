/** Which view the address bar names. */

export type Route =
  | { view: "home" }
  | { view: "markets" }
  | { view: "market"; base: string; quote: string }
  | { view: "blocks"; before: number | null }
  | { view: "block"; height: number }
  | { view: "venue"; market: number | null }
  | { view: "network" }
  | { view: "validators" }
  | { view: "lane" }
  | { view: "fairness" }
  | { view: "account"; address: string | null }
  | { view: "transaction"; id: string }
  | { view: "ethereum"; hash: string }
  | { view: "unknown"; hash: string };

export const href = {
  home: "#/",
  markets: "#/markets",
  blocks: "#/blocks",
  blocksBefore: (height: number) => `#/blocks/${height}`,
  venues: "#/venue",
  venue: (market: number) => `#/venue/${market}`,
  network: "#/network",
  validators: "#/validators",
  lane: "#/lane",
  fairness: "#/fairness",
  accounts: "#/account",
  market: (base: string, quote: string) => `#/market/${encodeURIComponent(base)}/${encodeURIComponent(quote)}`,
  block: (height: number) => `#/block/${height}`,
  account: (address: string) => `#/account/${address}`,
  transaction: (id: string) => `#/transaction/${id}`,
  ethereum: (hash: string) => `#/ethereum/${hash}`,
};

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const DIGEST = /^0x[0-9a-f]{64}$/;
const MARKET = /^\d{1,9}$/;
const HEIGHT = /^\d{1,15}$/;

export function parseRoute(hash: string): Route {
  const [name = "", a, b] = split(hash);
  if (name === "") return { view: "home" };
  if (name === "markets") return { view: "markets" };
  if (name === "market" && a && b) return { view: "market", base: a, quote: b };
  if (name === "blocks" && a === undefined) return { view: "blocks", before: null };
  if (name === "blocks" && a && HEIGHT.test(a)) return { view: "blocks", before: Number(a) };
  if (name === "block" && a && HEIGHT.test(a)) return { view: "block", height: Number(a) };
  if (name === "venue" && a === undefined) return { view: "venue", market: null };
  if (name === "venue" && a && MARKET.test(a)) return { view: "venue", market: Number(a) };
  if (name === "network" && a === undefined) return { view: "network" };
  if (name === "validators" && a === undefined) return { view: "validators" };
  if (name === "lane" && a === undefined) return { view: "lane" };
  if (name === "fairness" && a === undefined) return { view: "fairness" };
  if (name === "account" && a === undefined) return { view: "account", address: null };
  if (name === "account" && a && ADDRESS.test(a)) return { view: "account", address: a };
  if (name === "transaction" && a && DIGEST.test(a)) return { view: "transaction", id: a };
  if (name === "ethereum" && a && DIGEST.test(a)) return { view: "ethereum", hash: a };
  return { view: "unknown", hash };
}

/** Where a search leads: a height, an address, a transaction of either kind, or a pair of assets such as `eur/usd`; else `null`. */
export function find(text: string, symbols: string[]): string | null {
  const wanted = text.trim();
  if (HEIGHT.test(wanted.replace(/[, #]/g, ""))) return href.block(Number(wanted.replace(/[, #]/g, "")));
  const hex = wanted.toLowerCase();
  // Letters of both sizes are a checksum, which the node looks at.
  if (ADDRESS.test(hex)) return href.account(/^0x.*[a-f]/.test(wanted) ? wanted : hex);
  if (DIGEST.test(hex)) return href.transaction(hex);
  const [base, quote] = wanted.split(/\s*[/ ]\s*/).map((part) => matching(part, symbols));
  return base && quote && base !== quote ? href.market(base, quote) : null;
}

function matching(part: string, symbols: string[]): string | undefined {
  return symbols.find((symbol) => symbol.toLowerCase() === part.toLowerCase());
}

function split(hash: string): string[] {
  const parts = hash.replace(/^#\/?/, "").split("/");
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return ["?"];
  }
}
