/** One account: balances, resting offers, fills as they happen, its session keys, and its history. */
import type { View } from "./view";
import { parseDecimal } from "@walras/client/decimal";
import { formatAmount } from "../amount";
import { OFFERS, WETH9 } from "../abi";
import type { Account, AccountEthereum, Balance, IdOutcome, Offer } from "@walras/client/bodies";
import { ApiError, get, path } from "../api";
import { copyable, facts, fill, h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { find, href } from "../router";
import type { AccountMessage, Fill, Message } from "@walras/client/stream";
import { table } from "../table";
import { contractName, tokenAt } from "../tokens";
import { assetNames, controlBadge, controlText, standings } from "./controls";
import { historyPanel } from "./history";
import { worthText } from "./money";
import { marketCell, priceCell, sideCell } from "./order-cells";
import { policyPanel } from "./policy";
import { sessionsPanel } from "./session-keys";
import { numeraire } from "../value";
import { restText } from "../trade/placing";
import { brief, count, orderName, outcomeText, tells } from "../words";

const OFFERS_SHOWN = 100;
const OFFERS_PAUSE_MS = 2_000;
/** Fills, and transactions, that stay in view. */
const ROWS_KEPT = 50;
const RECENT_KEY = "walras.accounts";
const RECENT_KEPT = 6;

/** The search for an account, and the account itself where an address is given. */
export function accountView(live: Live, address: string | null): View {
  const shown = address === null ? null : accountPanels(live, address);
  const places = placesToStart(live, address);
  const element = h(
    "div",
    { class: "view" },
    h("h1", { tabindex: -1 }, "Account"),
    addressForm(address),
    ...(shown?.elements ?? []),
    places.element,
  );
  return {
    title: address === null ? "Account" : `Account ${brief(address, 4)}`,
    element,
    update() {
      shown?.update();
      places.update();
    },
    close: () => shown?.close(),
  };
}

function addressForm(address: string | null): HTMLElement {
  const problem = notice();
  const input = h("input", {
    id: "address",
    name: "address",
    value: address ?? "",
    placeholder: "0x and 40 hexadecimal digits",
    autocomplete: "off",
    spellcheck: "false",
    class: "hex",
  });
  const go = (event: Event) => {
    event.preventDefault();
    const there = find(input.value, []);
    const good = there?.startsWith(`${href.accounts}/`) === true;
    input.setAttribute("aria-invalid", String(!good));
    problem.say(good ? null : "An address is 0x and 40 hexadecimal digits; this is something else.");
    if (good && there) location.hash = there;
  };
  return h(
    "form",
    { class: "address-form", submit: go },
    h("label", { for: "address" }, "Address"),
    input,
    h("button", { type: "submit" }, "Show"),
    problem.element,
  );
}

/** Links for those who have no address at hand: accounts seen before, and the issuers of the assets. */
function placesToStart(live: Live, address: string | null) {
  const list = h("ul", { class: "places" });
  const element = panel("Accounts to look at", {}, list);
  let count = -1;
  return {
    element,
    update() {
      if (count === live.assets.size) return;
      count = live.assets.size;
      const recent = recentAccounts().filter((one) => one !== address?.toLowerCase());
      const links = [...recent.map((one) => place(one, "seen before")), ...issuers(live).map(([one, symbols]) => place(one, `issues ${symbols}`))];
      list.replaceChildren(...links);
      element.hidden = links.length === 0;
    },
  };
}

function place(address: string, note: string): HTMLElement {
  return h("li", {}, h("a", { href: href.account(address), class: "hex" }, brief(address, 10)), " ", h("span", { class: "quiet" }, note));
}

function issuers(live: Live): [string, string][] {
  const symbols = new Map<string, string[]>();
  for (const asset of live.assets.values()) symbols.set(asset.issuer, [...(symbols.get(asset.issuer) ?? []), asset.symbol]);
  return [...symbols].map(([issuer, list]) => [issuer, list.length > 4 ? `${list.slice(0, 3).join(", ")} and ${list.length - 3} more` : list.join(", ")]);
}

function accountPanels(live: Live, address: string) {
  const [problem, cut] = [notice(), notice()];
  const summary = facts({ address: "Address", key: "Key", references: "Payments to it", sequence: "Highest sequence number", height: "As of block" });
  summary.element.classList.add("summary");
  summary.set("address", h("code", {}, address));
  const token = tokenPanel(live, address.toLowerCase());
  const contract = contractPanel(live, address.toLowerCase());
  const balances = balancesTable(live);
  const standing = standings(live);
  const offers = offersTable(live);
  const fills = fillsTable(live);
  const outcomes = outcomesTable();
  const history = historyPanel(live, address.toLowerCase());
  const policy = policyPanel(live, address.toLowerCase());
  const sessions = sessionsPanel(live, address.toLowerCase(), () => loading.request());
  const total = h("strong", { "data-portfolio": "", title: "Worth at the latest valuations" });
  let account: Account | null = null;
  let standingAt = -1;
  let resting: Offer[] = [];
  let filled: (Fill & { height: number })[] = [];
  let done: (IdOutcome & { height: number })[] = [];

  const loading = refresh(load, told, OFFERS_PAUSE_MS);
  const stop = live.stream.subscribe(`account:${address.toLowerCase()}`, receive);
  loading.request();

  function told(error: unknown): void {
    // Nobody needs to hold anything at the address of a token for the token to be there.
    if (error instanceof ApiError && error.status === 404 && contractName(live.assets, address.toLowerCase()) !== null) return;
    tells(problem)(error);
  }

  async function load(signal: AbortSignal): Promise<void> {
    const place = path("accounts", address);
    const [loaded, answer] = await Promise.all([
      get<Account>(place, signal),
      get<{ offers: Offer[]; more: boolean }>(`${place}/offers?limit=${OFFERS_SHOWN}`, signal),
    ]);
    summary.set("address", h("code", {}, loaded.checked_address));
    cut.say(answer.more ? `Only the first ${OFFERS_SHOWN} offers are shown.` : null);
    become(loaded, answer.offers);
    remember(loaded.address);
  }

  function become(loaded: Account | null, offers: Offer[]): void {
    if (loaded && loaded.height >= (account?.height ?? 0)) account = loaded;
    resting = offers;
    update();
  }

  function receive(message: Message): void {
    if (message.type === "snapshot") {
      history.request(message.account?.height ?? live.height);
      return loading.request();
    }
    if (message.type === "account") increment(message);
  }

  function increment(message: AccountMessage): void {
    if (account) account = { ...account, height: message.height, balances: merged(account.balances, message.balances) };
    const { height } = message;
    // Nothing of an exact order rests, and its outcome tells what returned.
    const exacts = (message.exacts ?? []).map((exact) => ({ ...exact, limit: "", left: "0", returned: "0", height }));
    filled = [...message.fills.map((fill) => ({ ...fill, height })), ...exacts, ...filled].slice(0, ROWS_KEPT);
    done = [...message.outcomes.map((outcome) => ({ ...outcome, height })), ...done].slice(0, ROWS_KEPT);
    // New and cancelled offers do not stand in the message, so the list is asked for again.
    if (message.fills.length + message.outcomes.length > 0 || !account) loading.request();
    history.request(height);
    update();
  }

  function update(): void {
    if (live.assets.size === 0) return;
    token.update();
    if (account) {
      contract.show(account.ethereum);
      summary.set("key", account.keys ? "several, by its policy" : account.key ? h("code", {}, brief(account.key, 12)) : "none registered");
      summary.set("references", "need a reference: send them as pay_referenced, or with --reference");
      summary.show("references", account.needs_reference === true);
      policy.show(account);
      summary.set("sequence", count(account.sequence.highest));
      summary.set("height", h("a", { href: href.block(account.height) }, count(account.height)));
      balances.show(account.balances);
      if (standingAt !== account.height) standing.show(address, account.balances.map((balance) => balance.asset));
      standingAt = account.height;
      setText(total, worthText(live, account.balances));
      sessions.show(account);
      offers.show(resting);
    }
    fills.show(filled);
    outcomes.show(done);
    history.update();
  }

  return {
    elements: [
      problem.element,
      cut.element,
      standing.element,
      token.element,
      panel("Summary", {}, summary.element),
      contract.element,
      h("div", { class: "grid" }, panel("Balances", { class: "balances", aside: total }, balances.element), panel("Resting orders", {}, offers.element)),
      h(
        "div",
        { class: "grid" },
        panel("Fills since this view opened", { class: "tall" }, fills.element),
        panel("Transactions since this view opened", { class: "tall" }, outcomes.element),
      ),
      policy.element,
      sessions.element,
      history.element,
    ],
    update,
    close() {
      stop();
      sessions.close();
      standing.close();
      loading.close();
      history.close();
    },
  };
}

/** What stands at an address that the exchange itself has given a meaning; hidden at all others. */
function tokenPanel(live: Live, address: string) {
  const inner = h("div", {});
  const element = panel("What stands here", { class: "token" }, inner);
  element.hidden = true;
  let drawn = 0;

  function parts(): HTMLElement[] {
    const first = numeraire(live.assets)?.symbol ?? "";
    if (address === OFFERS) return [h("p", {}, "The offers of the exchange: contracts place and cancel them here, and batches fill them.")];
    if (address === WETH9) return [h("p", {}, `W${first}: wraps ${first}, which pays for gas, as a token that contracts can move.`)];
    const asset = tokenAt(live.assets, address);
    if (!asset) return [];
    const list = facts({ symbol: "Symbol", decimals: "Decimals", issued: "Issued", issuer: "Issuer", controls: "The issuer controls", markets: "Markets" });
    list.set("symbol", asset.symbol);
    list.set("decimals", String(asset.decimals));
    list.set("issued", formatAmount(asset.issued, asset.decimals));
    list.set("issuer", h("a", { href: href.account(asset.issuer) }, h("code", {}, brief(asset.issuer, 8))));
    list.set("controls", h("span", {}, controlBadge(asset), ` ${controlText(asset) ?? ""}`));
    list.show("controls", controlText(asset) !== null);
    const market = asset.symbol === first ? h("a", { href: href.markets }, "All") : h("a", { href: href.market(asset.symbol, first) }, `${asset.symbol}/${first}`);
    list.set("markets", market);
    const note = asset.asset === 0 ? " It pays for gas and moves as value, so its token only tells." : "";
    return [h("p", {}, `The ERC-20 token of ${asset.symbol}, over the balances that native transactions move.${note}`), list.element];
  }

  return {
    element,
    update() {
      if (drawn === live.assets.size) return;
      drawn = live.assets.size;
      const shown = parts();
      fill(inner, ...shown);
      element.hidden = shown.length === 0;
    },
  };
}

/** What Ethereum knows of the account; hidden on a chain without contracts. */
function contractPanel(live: Live, address: string) {
  const list = facts({ kind: "Kind", nonce: "Nonce", wei: "Wei beside whole units", bytes: "Size of the code", code: "Code hash", delegate: "Delegates to" });
  list.element.classList.add("summary");
  const element = panel("As Ethereum sees it", {}, list.element);
  element.hidden = true;
  let drawn = "";

  function kind({ is_contract, code }: AccountEthereum): string {
    if (is_contract) return address === WETH9 ? "Contract of the genesis" : "Contract: nobody has its key";
    return code ? "Account of a key that delegates to a contract (EIP-7702)" : "Account of a key";
  }

  return {
    element,
    show(ethereum: AccountEthereum | undefined) {
      const now = JSON.stringify([ethereum, live.assets.size]);
      if (now === drawn) return;
      drawn = now;
      element.hidden = ethereum === undefined;
      if (!ethereum) return;
      const { code, nonce, wei } = ethereum;
      list.set("kind", kind(ethereum));
      list.set("nonce", count(nonce));
      list.set("wei", BigInt(wei).toLocaleString("en-US"));
      list.show("wei", wei !== "0");
      for (const name of ["bytes", "code"] as const) list.show(name, code !== undefined);
      list.show("delegate", code?.delegate !== undefined);
      if (!code) return;
      list.set("bytes", `${count(code.bytes)} bytes`);
      list.set("code", copyable(code.hash, brief(code.hash, 8)));
      if (code.delegate !== undefined) list.set("delegate", copyable(code.delegate, brief(code.delegate, 8), href.account(code.delegate)));
    },
  };
}

/** The balances with those of `news` in their place; an asset seen for the first time goes to the end. */
export function merged(balances: Balance[], news: Balance[]): Balance[] {
  const bySymbol = new Map([...balances, ...news].map((balance) => [balance.asset, balance]));
  return [...bySymbol.values()];
}

function balancesTable(live: Live) {
  const exact = (units: string, symbol: string) => formatAmount(units, live.decimals(symbol));
  // Kept by symbol, so that the focus stays on a button while amounts change.
  const tokens = new Map<string, HTMLElement>();
  const token = (symbol: string): HTMLElement | string => {
    const address = live.assets.get(symbol)?.token;
    if (address === undefined) return "–";
    const known = tokens.get(symbol) ?? copyable(address, `0x…${address.slice(-4)}`, href.account(address));
    tokens.set(symbol, known);
    return known;
  };
  const market = (symbol: string) => {
    const first = numeraire(live.assets)?.symbol;
    return first === undefined || first === symbol ? href.markets : href.market(symbol, first);
  };
  const named = assetNames(live, market);
  return table<Balance>({
    caption: "Balances",
    key: (balance) => balance.asset,
    empty: "This account holds nothing.",
    columns: [
      { name: "Asset", class: "strong", cell: (b) => named(b.asset) },
      { name: "Available", class: "number", cell: (b) => exact(b.available, b.asset) },
      { name: "Locked in offers", class: "number", cell: (b) => exact(b.locked, b.asset) },
      { name: "Total", class: "number wide", cell: (b) => sumText(b, live.decimals(b.asset)) },
      { name: "Decimals", class: "number wide", cell: (b) => String(live.decimals(b.asset)) },
      { name: "ERC-20", class: "hex wide", cell: (b) => token(b.asset) },
    ],
  });
}

function sumText(balance: Balance, decimals: number): string {
  const [available, locked] = [parseDecimal(balance.available), parseDecimal(balance.locked)];
  return available && locked ? formatAmount((available.digits + locked.digits).toString(), decimals) : "–";
}

function offersTable(live: Live) {
  return table<Offer>({
    caption: "Resting orders",
    key: (offer) => `${offer.sell}/${offer.buy}/${offer.limit}/${offer.id}`,
    empty: "No orders rest on the book.",
    columns: [
      { name: "Market", cell: (o) => marketCell(live, o) },
      { name: "Side", cell: (o) => sideCell(live, o) },
      { name: "Amount", class: "number", cell: (o) => ({ text: restText(o.amount, o, live.assets), title: `sells ${formatAmount(o.amount, live.decimals(o.sell))} ${o.sell}` }) },
      { name: "Price", class: "number", cell: (o) => priceCell(live, o) },
      { name: "Id", class: "number wide", cell: (o) => ({ text: orderName(o.id), title: String(o.id) }) },
    ],
  });
}

function fillsTable(live: Live) {
  const money = (units: string, symbol: string) => `${formatAmount(units, live.decimals(symbol))} ${symbol}`;
  return table<Fill & { height: number }>({
    caption: "Fills since this view opened",
    key: (fill) => `${fill.height}/${fill.sell}/${fill.buy}/${fill.limit}/${fill.id}`,
    empty: "None yet. They appear here with the block that settles them.",
    columns: [
      { name: "Block", class: "number first", cell: (f) => ({ text: count(f.height), href: href.block(f.height) }) },
      { name: "Offer", class: "wide", cell: (f) => ({ text: `${f.sell} → ${f.buy}, ${orderName(f.id)}`, title: String(f.id) }) },
      { name: "Sold", class: "number", cell: (f) => money(f.sold, f.sell) },
      { name: "Bought", class: "number", cell: (f) => money(f.bought, f.buy) },
      { name: "Left", class: "number wide", cell: (f) => money(f.left, f.sell) },
    ],
  });
}

function outcomesTable() {
  return table<IdOutcome & { height: number }>({
    caption: "Transactions since this view opened",
    key: (row) => row.id,
    empty: "None yet. They appear here with their block.",
    columns: [
      { name: "Block", class: "number first", cell: (row) => ({ text: count(row.height), href: href.block(row.height) }) },
      { name: "Transaction", class: "hex", cell: (row) => ({ text: brief(row.id, 4), title: row.id, href: href.transaction(row.id) }) },
      { name: "Outcome", class: "prose", cell: (row) => outcomeText(row.outcome) },
    ],
  });
}

/** Addresses looked at before on this machine; nothing where the browser keeps nothing. */
function recentAccounts(): string[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(RECENT_KEY) ?? "[]");
    return Array.isArray(list) ? list.filter((one): one is string => typeof one === "string" && find(one, [])?.startsWith(href.accounts) === true) : [];
  } catch {
    return [];
  }
}

function remember(address: string): void {
  try {
    const list = [address, ...recentAccounts().filter((one) => one !== address)].slice(0, RECENT_KEPT);
    localStorage.setItem(RECENT_KEY, JSON.stringify(list));
  } catch {
    // The browser keeps nothing; the list is a convenience alone.
  }
}

