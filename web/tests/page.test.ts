/**
 * The built page in headless Chromium. With `WALRAS_URL` it is the page of that running node (give `WALRAS_ACCOUNT` to
 * look at a certain account); without, it is `dist/` before the fixture exchange, which can also be made to fail.
 * `CHROMIUM` names another browser, `SCREENSHOTS` a folder to keep pictures of every view in.
 */
import { join } from "node:path";
import type { Page, Route as PlaywrightRoute } from "playwright-core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Client, Ed25519Key, EthereumKey } from "@walras/client/index";
import { fromHex, toHex } from "@walras/client/typed";
import type { Route } from "../src/router";
import { someAccount } from "./account";
import { ACCOUNT, CONTRACT, EMPTY_ACCOUNT, ETHEREUM, QUIET_ACCOUNT, type Fixture } from "./fixture.mjs";
import { axeFindings, inkedOn, paleTexts } from "./looks";
import { Site, given } from "./site";

/** The key of the second public account of a demo. */
const DEMO_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const site = Site.ofTests({ width: 1280, height: 900 });
let page: Page;
let [base, fixture]: [string, Fixture | null] = ["", null];

beforeEach(() => {
  ({ page, base, fixture } = site);
});
afterEach(() => fixture?.mend());

const { open, get, texts, until } = site;
const height = async () => Number(await page.getAttribute("[data-height]", "data-height"));
const state = (name: string) => page.waitForSelector(`.state[data-state=${name}]`);
const inked = (chart: string, variable: string) => inkedOn(page, chart, variable);

async function picture(name: string, of = page): Promise<void> {
  const folder = process.env["SCREENSHOTS"];
  if (folder) await of.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

type Validator = { me: number; validators: number; peers: { validator: number; connected: boolean }[] };
type Markets = { markets: { market: string; base: string; quote: string; offers: number; price_height?: number | null }[] };

/** The market with most offers: it has curves. */
async function busiest(): Promise<Markets["markets"][number]> {
  let most: Markets["markets"][number] | undefined;
  await until("a market has offers", async () => {
    const { markets } = await get<Markets>("markets");
    most = [...markets].sort((a, b) => b.offers - a.offers)[0];
    return (most?.offers ?? 0) > 0;
  });
  return most!;
}

/** The market that traded last: it has candles. One with many offers may not trade for long. */
async function trading(): Promise<Markets["markets"][number]> {
  let last: Markets["markets"][number] | undefined;
  await until("a market has traded", async () => {
    const { markets } = await get<Markets>("markets");
    last = [...markets].sort((a, b) => (b.price_height ?? 0) - (a.price_height ?? 0))[0];
    return (last?.price_height ?? 0) > 0;
  });
  return last!;
}

describe("the page", () => {
  it("loads without complaint, and its height advances", async () => {
    await open("");
    await state("live");
    await until("a height is shown", async () => (await height()) > 0);
    const first = await height();
    await until("the height advances", async () => (await height()) > first + 1);
    await open("#/network");
    await until("blocks are listed", async () => (await page.locator("section[aria-label='Latest blocks'] tbody tr").count()) >= 2);
    const tiles = await texts(".tiles dd");
    expect(tiles).toHaveLength(6);
    expect(tiles.every((text) => /^[\d,.]+$/.test(text))).toBe(true);
    await until("throughput is drawn", async () => (await inked("throughput", "bar")) > 50);
    await until("stages are drawn", async () => (await inked("stages", "stage-0")) > 10);
    await picture("network");
    expect(site.complaints).toEqual([]);
  });

  it("lists the markets, sorts and filters them", async () => {
    await open("#/markets");
    const { markets } = await get<Markets>("markets");
    const rows = page.locator("tbody tr");
    await until("all markets are listed", async () => Math.abs((await rows.count()) - markets.length) <= 2 && (await rows.count()) > 0);
    await page.getByRole("button", { name: "Market" }).click();
    const names = await texts("tbody tr td:first-child");
    expect(names).toEqual([...names].sort((a, b) => a.localeCompare(b)));
    await picture("markets");
    const one = markets[0]!;
    await page.fill("#filter", one.market.toLowerCase());
    await until("the filtered are listed", async () => (await texts("tbody tr td:first-child")).every((name) => name.includes(one.base)));
    expect(await texts("tbody tr td:first-child")).toContain(one.market);
    expect(site.complaints).toEqual([]);
  });

  it("shows how far each validator is, and who proposed", async () => {
    await open("#/validators");
    const rows = "[aria-label=Validators]";
    const status = await get<Validator>("validator");
    await until("all validators are listed", async () => (await page.locator(`${rows} tbody tr`).count()) === status.validators);
    const first = await texts(`${rows} tbody tr td:first-child`);
    expect(first).toEqual(status.peers.map(({ validator }) => (validator === status.me ? `${validator} (this node)` : String(validator))));
    await until("heights are shown", async () => /^[\d,]+$/.test((await texts(`${rows} tbody tr:first-child td`))[2] ?? ""));
    await until("sub-blocks are counted", async () => /^[1-9][\d,]* of [1-9]/.test((await texts(`${rows} tbody tr:first-child td`)).at(-1) ?? ""));
    await until("rounds are told", async () => /^[1-9]\d*$/.test((await texts(`${rows} tbody tr:first-child td`))[4] ?? ""));
    const away = status.peers.find(({ validator, connected }) => connected && validator !== status.me);
    const latency = async () => (await texts(`${rows} tbody tr:nth-child(${(away?.validator ?? 0) + 1}) td`))[5] ?? "";
    await until("latency is told", async () => !away || /^[\d.]+ ms$/.test(await latency()));
    for (const { validator, connected } of status.peers.filter((peer) => !peer.connected)) {
      const cells = await texts(`${rows} tbody tr:nth-child(${validator + 1}) td`);
      expect([connected, ...cells.slice(1, 4)]).toEqual([false, "not connected", "–", "–"]);
    }
    await picture("validators");
    expect(site.complaints).toEqual([]);
  });

  it("shows each figure of fairness with its label, or that there is no edge", async () => {
    await open("#/fairness");
    if ((await get<object | null>("fairness")) === null) {
      await until("it says that there is none", async () => (await page.locator("main").innerText()).includes("runs no market edge"));
      return expect(site.complaints).toEqual([]);
    }
    await until("the figures are listed", async () => (await page.locator("tbody").first().locator("tr").count()) === 8);
    const labels = await page.locator("table").first().locator("tbody td:last-child").allInnerTexts();
    expect(labels.every((label) => ["proven", "estimated", "declared", "unknown"].includes(label))).toBe(true);
    await until("the tree is told", async () => (await page.locator("main").innerText()).includes("gateways"));
    await picture("fairness");
    expect(site.complaints).toEqual([]);
  });

  it("draws the curves of a chosen pair with the batch price", async () => {
    const { base: one, quote: other } = await busiest();
    await open("#/markets");
    await page.fill("#filter", `${one}/${other}`);
    await page.getByRole("link", { name: `${one}/${other}`, exact: true }).click();
    await page.waitForSelector(`h1:text-is("${one}/${other}")`);
    await page.getByText("Supply and demand", { exact: true }).click();
    await until("supply or demand is drawn", async () => (await inked("curves", "supply")) + (await inked("curves", "demand")) > 200);
    await until("the price's line and label are drawn", async () => (await inked("curves", "accent")) > 400);
    // Not every batch trades every pair: what it would have traded at is told as that.
    const [label, described] = await page.locator("[data-chart=curves]").evaluate((chart) => ["data-price", "aria-label"].map((name) => chart.getAttribute(name)));
    expect(label).toMatch(/^(indicative )?\d[\d,]*(\.\d+)?$/);
    expect(described).toContain("Supply and demand");
    expect(described).toContain(label?.startsWith("indicative") ? `No trade; ${label} ` : `Batch price ${label} `);
    await until("the price is in the heading", async () => /^\d[\d,]*(\.\d+)?$/.test(await page.innerText("[data-price='']")));
    await until("the book has levels", async () => (await page.locator(".book tbody tr").count()) > 0);
    await page.getByText("±5 %").click();
    await until("the curves are drawn wider", async () => (await inked("curves", "supply")) + (await inked("curves", "demand")) > 100);
    await picture("market");
    for (let look = 0; look < 5; look++) {
      const [head, book] = await page.evaluate(() =>
        ["[data-price='']", ".book .middle"].map((place) => document.querySelector(place)?.textContent),
      );
      expect(book, "the page shows one batch price").toBe(`Batch price ${head}`);
    }

    const quotes = await page.locator("#quote option:not([disabled])").allInnerTexts();
    const third = quotes.find((symbol) => symbol !== other)!;
    await page.selectOption("#quote", third);
    await page.waitForSelector(`h1:text-is("${one}/${third}")`);
    expect(site.complaints.filter((text) => !text.includes("404"))).toEqual([]);
  });

  it("shows a block with its valuations, trades and outcomes", async () => {
    await open("#/network");
    await page.locator("section[aria-label='Latest blocks'] tbody tr a").first().click();
    await page.waitForSelector("h1:has-text('Block ')");
    const { assets } = await get<{ assets: unknown[] }>("assets");
    await until("every asset has a valuation", async () => (await page.locator("section[aria-label^=Valuations] tbody tr").count()) === assets.length);
    await until("the digest is shown", async () => (await page.innerText("[data-fact=block] dd")).startsWith("0x"));
    await picture("block");
    await page.getByRole("link", { name: "Previous" }).click();
    await until("the outcomes are listed", async () => (await page.locator("section[aria-label^=Transactions]").count()) === 1);
    expect(site.complaints).toEqual([]);
  });

  it("shows what an account holds, as the node says it", async () => {
    const address = process.env["WALRAS_ACCOUNT"] ?? (given ? await someAccount(base) : ACCOUNT);
    await open("#/account");
    await page.fill("#address", address);
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForSelector("[data-fact=address]");
    const account = await get<{ balances: { asset: string }[] }>(`accounts/${address}`);
    const symbols = account.balances.map((balance) => balance.asset);
    await until("the balances are shown", async () => {
      // What its issuer controls stands beside a name.
      const shown = (await texts(".balances tbody td:first-child")).map((text) => text.split(/\s/)[0]);
      return symbols.length > 0 && symbols.every((symbol) => shown.includes(symbol));
    });
    const amounts = await texts(".balances tbody td.number");
    expect(amounts.every((text) => /^[\d,]+(\.\d+)?$/.test(text))).toBe(true);
    await picture("account");
    expect(site.complaints).toEqual([]);
  });

  it("leads from a market to its tokens and back", async () => {
    const { assets } = await get<{ assets: { asset: number; symbol: string; token: string }[] }>("assets");
    const [first, second] = [assets[0]!, assets[1]!];
    await open(`#/market/${second.symbol}/${first.symbol}`);
    const links = page.locator(".tokens a");
    await until("both tokens are linked", async () => (await links.count()) === 2);
    expect(await links.first().getAttribute("href")).toBe(`#/account/${second.token}`);
    await links.first().click();
    await until("the token is named", async () => (await texts(".token [data-fact=symbol] dd"))[0] === second.symbol);
    await picture("token");
    await page.getByRole("link", { name: `${second.symbol}/${first.symbol}` }).click();
    await page.waitForSelector(`h1:text-is("${second.symbol}/${first.symbol}")`);
    // Nobody need hold anything at the address of a token.
    expect(site.complaints.filter((text) => !text.includes("404"))).toEqual([]);
  });

  it("fits a narrow screen in the dark", async () => {
    page = await site.renew({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
    const { base: one, quote: other } = await busiest();
    for (const hash of ["#/", "#/markets", "#/network", "#/blocks", "#/validators", "#/lane", "#/fairness", "#/venue", "#/account", `#/market/${one}/${other}`]) {
      await open(hash);
      await state("live");
      await page.waitForTimeout(700);
      const beyond = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.querySelector("main")!.scrollWidth) - innerWidth);
      expect([hash, beyond]).toEqual([hash, Math.min(beyond, 0)]);
      await picture(`narrow-${hash.replace(/\W+/g, "-")}`);
    }
    await until("candles are drawn in the dark scheme's colours", async () => (await inked("candles", "supply")) + (await inked("candles", "demand")) > 50);
  });

  it.each(["light", "dark"] as const)("has no finding of axe on any page in the %s theme, on a desk and on a phone", async (colorScheme) => {
    const { base: one, quote: other } = await busiest();
    const found: string[] = [];
    for (const viewport of [{ width: 1280, height: 900 }, { width: 360, height: 740 }]) {
      page = await site.renew({ viewport, colorScheme });
      for (const hash of ["#/", "#/markets", `#/market/${one}/${other}`, "#/network", "#/blocks", "#/validators", "#/lane", "#/fairness", "#/venue", "#/account", "#/nowhere"]) {
        await open(hash);
        await state("live");
        await until("there is text", async () => (await page.innerText("main")).length > 10);
        for (const finding of await axeFindings(page)) found.push(`${hash} at ${viewport.width}: ${finding}`);
      }
    }
    expect(found).toEqual([]);
  });

  it.each(["light", "dark"] as const)("has text with the contrast of WCAG AA on every page in the %s theme", async (colorScheme) => {
    page = await site.renew({ viewport: { width: 1280, height: 900 }, colorScheme });
    const { base: one, quote: other } = await busiest();
    for (const hash of ["#/", "#/markets", `#/market/${one}/${other}`, "#/network", "#/blocks", "#/validators", "#/lane", "#/fairness", "#/venue", "#/account", "#/nowhere"]) {
      await open(hash);
      await state("live");
      await until("there is text", async () => (await page.innerText("main")).length > 10);
      expect([hash, await page.evaluate(paleTexts)]).toEqual([hash, []]);
    }
  });

  it("is reachable by the keyboard", async () => {
    await open("#/markets");
    await until("markets are listed", async () => (await page.locator("tbody tr").count()) > 0);
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to the content");
    await page.getByRole("button", { name: "Worth" }).press("Enter");
    await page.locator("tbody a").nth(20).focus();
    const focused = await page.evaluate(() => document.activeElement?.textContent);
    const before = await height();
    await until("blocks came", async () => (await height()) > before + 3);
    // Rows move as their worth changes, but the focus stays with its market.
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(focused);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`h1:text-is("${focused}")`);
  });

  it("answers a mistyped address and an unknown view in words", async () => {
    await open("#/account");
    await page.fill("#address", "0x123");
    await page.keyboard.press("Enter");
    await until("the mistake is named", async () => (await texts(".address-form .notice"))[0]?.includes("40 hexadecimal digits") === true);
    await open("#/nowhere");
    await page.waitForSelector("h1:text-is('Not found')");
  });
});

/** An address of a view, and what must come to be seen there. */
type Shown = { hash: string; has: string[] };
const isThere = async (path: string) => (await fetch(new URL(`v1/${path}`, base))).ok;
const rowsOf = (name: string) => `section[aria-label^='${name}'] tbody tr`;
const told = (...names: string[]) => names.map((name) => `[data-fact=${name}] dd:not(:text-is("–"))`);

/** Every view of the router: one that is added there is asked for here, by its type. */
const VIEWS: Record<Exclude<Route["view"], "unknown">, () => Promise<Shown[]>> = {
  home: async () => [{ hash: "#/", has: [`${rowsOf("Top markets")} a`, "[data-figures]:has-text('traded in 24 h')", ...(given ? ["button:has-text('Try it')"] : [])] }],
  network: async () => [{ hash: "#/network", has: [...told("height", "accounts"), `${rowsOf("Latest blocks")} a`] }],
  markets: async () => [{ hash: "#/markets", has: ["tbody tr a"] }],
  market: async () => {
    const { base: one, quote: other } = await trading();
    const demos = given ? ["#trader:has(option[value='demo 0'])"] : [];
    return [{ hash: `#/market/${one}/${other}`, has: [...told("high"), `${rowsOf("Latest trades")} a`, ".book tbody tr", "#base", ".tokens a", "[data-chart=candles] canvas", ...demos] }];
  },
  blocks: async () => {
    const { height: latest } = await get<{ height: number }>("status");
    return [{ hash: "#/blocks", has: ["tbody tr a"] }, { hash: `#/blocks/${latest}`, has: ["tbody tr a"] }];
  },
  block: async () => {
    const { blocks } = await get<{ blocks: { height: number; transactions: number }[] }>("blocks");
    // Not the newest, and none that is empty, as some of a busy machine are.
    const filled = blocks.slice(1).find(({ transactions }) => transactions > 0)?.height ?? 1;
    const contracts = given ? [] : [`${rowsOf("Contracts")} a`];
    return [{ hash: `#/block/${filled}`, has: [...told("block", "state"), rowsOf("Valuations"), `${rowsOf("Transactions")} a`, ...contracts] }];
  },
  venue: async () => {
    if (!(await isThere("venue"))) return [{ hash: "#/venue", has: ["text=runs no venue"] }];
    return ["#/venue", "#/venue/0"].map((hash) => ({ hash, has: ["[data-standing]:has-text('The venue matches.')", "#venue-market:has(option)", ".book tbody tr", "[data-chart=candles] canvas"] }));
  },
  validators: async () => [{ hash: "#/validators", has: [rowsOf("Validators")] }],
  lane: async () => [{ hash: "#/lane", has: [(await isThere("lane")) ? rowsOf("Escrow") : "text=has no payment lane"] }],
  fairness: async () => {
    const hasEdge = (await isThere("fairness")) && (await get<object | null>("fairness")) !== null;
    return [{ hash: "#/fairness", has: [hasEdge ? rowsOf("Deliveries") : "text=runs no market edge"] }];
  },
  account: async () => {
    const address = given ? await someAccount(base) : ACCOUNT;
    const own = given ? [] : [`${rowsOf("Resting")} a`, `${rowsOf("History")} a`];
    return [{ hash: "#/account", has: [".places a"] }, { hash: `#/account/${address}`, has: [...told("height"), ".balances tbody tr a", ...own] }];
  },
  transaction: async () => {
    const { height: latest } = await get<{ height: number }>("status");
    let id: string | undefined;
    for (let at = latest; id === undefined && at > 0; at -= 1) id = (await get<{ outcomes: { id: string }[] }>(`blocks/${at}`)).outcomes[0]?.id;
    return [{ hash: `#/transaction/${id}`, has: told("block", "outcome", "asked", "account") }];
  },
  // A demo's traders call no contracts.
  ethereum: async () =>
    given ? [] : [
      { hash: `#/ethereum/${ETHEREUM.placed}`, has: [...told("block", "fee"), ".logs li", "section[aria-label^=What] [data-value]"] },
      { hash: `#/ethereum/${ETHEREUM.swindle}`, has: ["[data-fact=outcome] dd:has-text('It reverted')"] },
      { hash: `#/transaction/${ETHEREUM.placed}`, has: ["h1:has-text('Ethereum transaction')", ".logs li"] },
    ],
};

/**
 * Answers the first `times` questions of each kind by `fault`; the rest reach the node. Tells which did not yet. A kind is a path
 * whatever its heights and its market: the most traded market may be another one when the page asks again.
 */
async function failFirst(times: number, fault: (route: PlaywrightRoute, kinds: number) => Promise<void>): Promise<() => string[]> {
  const asked = new Map<string, number>();
  await page.route("**/v1/**", async (route) => {
    const path = new URL(route.request().url()).pathname;
    const kind = path.replace(/\/\d+(?=\/|$)/g, "/N").replace(/\/markets\/[^/]+\/[^/]+/, "/markets/ONE/OTHER");
    asked.set(kind, (asked.get(kind) ?? 0) + 1);
    await (asked.get(kind)! > times ? route.continue() : fault(route, asked.size));
  });
  return () => [...asked].filter(([, count]) => count <= times).map(([kind]) => kind);
}

async function showsAll({ hash, has }: Shown, unanswered: () => string[]): Promise<void> {
  for (const what of has) await page.locator(what).first().waitFor();
  await until(`every question of ${hash} is asked again, also ${unanswered().join(", ")}`, async () => unanswered().length === 0);
  const trouble = page.locator("main .notice:visible", { hasText: /does not answer|status 502|not yet\./i });
  await until(`no trouble of ${hash} stays`, async () => (await trouble.count()) === 0);
}

describe("a view whose first questions fail", () => {
  const views = Object.keys(VIEWS) as (keyof typeof VIEWS)[];

  it.each(views)("still shows what it has: %s", async (view) => {
    for (const shown of await VIEWS[view]()) {
      // A connection that breaks, and a proxy that has no node behind it.
      const unanswered = await failFirst(1, (route, kinds) => (kinds % 2 === 0 ? route.abort("connectionreset") : route.fulfill({ status: 502, body: "<html>Bad gateway" })));
      await open(shown.hash);
      await showsAll(shown, unanswered);
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await page.goto("about:blank");
    }
  });

  // What is asked for by its name may come later; the other views take the same answer for none.
  it.each(views.filter((view) => ["block", "transaction", "ethereum", "account"].includes(view)))("shows what was not there at first: %s", async (view) => {
    for (const shown of await VIEWS[view]()) {
      const isNamed = (route: PlaywrightRoute) => /\/v1\/(blocks|transactions|ethereum|accounts)\/./.test(route.request().url());
      const absent = { status: 404, json: { error: { code: "not_found", message: "not yet" } } };
      await failFirst(2, (route) => (isNamed(route) ? route.fulfill(absent) : route.continue()));
      await open(shown.hash);
      await showsAll(shown, () => []);
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await page.goto("about:blank");
    }
  });

  it.skipIf(given)("asks for a block that is newer than what the page heard of last", async () => {
    await open("");
    await state("live");
    fixture!.mute();
    await state("waiting");
    const heard = await height();
    await until("the node is further than the page knows", async () => fixture!.height() > heard + 2);
    await page.evaluate((to) => (location.hash = to), `#/block/${heard + 2}`);
    await page.locator(told("block")[0]!).waitFor();
    expect(await height()).toBe(heard);
  });
});

describe.runIf(given)("orders from the page", () => {
  type Market = { price: string | null };
  const row = (text: string) => page.locator(".own-orders tbody tr", { hasText: text });
  const says = (text: string) => page.locator(".own-orders tbody").getByText(text, { exact: false }).first().waitFor();

  /** The first market of the two assets that a demo pays its public accounts in. */
  async function toMarket(): Promise<{ base: string; quote: string; price: number }> {
    const { assets } = await get<{ assets: { symbol: string; asset: number }[] }>("assets");
    const [quote, base] = [0, 1].map((number) => assets.find((one) => one.asset === number)!.symbol);
    await until("the market has a price", async () => (await get<Market>(`markets/${base}/${quote}/book`)).price !== null);
    await open(`#/market/${base}/${quote}`);
    await state("live");
    return { base: base!, quote: quote!, price: Number((await get<Market>(`markets/${base}/${quote}/book`)).price) };
  }

  async function order(side: "buy" | "sell", amount: string, price: number): Promise<void> {
    await page.locator(`label:has(input[name=side][value=${side}])`).click();
    await page.fill("#order-amount", amount);
    await page.fill("#order-price", price.toFixed(4));
    await page.click(".ticket .place");
  }

  it("are placed, filled, kept over a reload, explained and cancelled", async () => {
    const { base, quote, price } = await toMarket();
    await page.selectOption("#trader", { label: await page.locator("#trader option", { hasText: "Public demo account 1" }).innerText() });
    await until("the balance is shown", async () => /[1-9]/.test((await page.locator("[data-balances]").innerText())));
    await page.fill("#order-amount", "2");
    await page.fill("#order-price", (2 * price).toFixed(4));
    await page.locator(".preview", { hasText: `You buy exactly 2 ${base} in the next batch and pay at most` }).waitFor();
    await page.locator(".preview", { hasText: "As things stand: about" }).waitFor();
    // It buys what was asked for and no more, however much better the batch is than the limit.
    const filled = row(`Buy exactly 2 ${base} at ${(2 * price).toFixed(4).replace(/\.?0+$/, "")}`).getByText("Filled exactly");
    for (let sent = 1; (await filled.count()) === 0; sent += 1) {
      await order("buy", "2", 2 * price);
      await until("it has an end", async () => (await page.locator(".own-orders tbody tr").count()) >= sent && (await row("Sent, not yet").count()) === 0);
    }
    await order("sell", "2", price / 2);
    await says("Filled at");
    // One that nobody takes rests, also for who comes back later.
    await order("sell", "3", 50 * price);
    await says(`3 ${base} rest`);
    await picture("ticket");
    // One for a single batch returns instead.
    await page.selectOption("#order-life", "one batch");
    await order("sell", "4", 60 * price);
    await says(`Not filled: 4 ${base} returned`);
    await page.selectOption("#order-life", "rests");
    await page.reload();
    await says("Filled at");
    await says(`3 ${base} rest`);
    await row(`3 ${base} rest`).locator("button", { hasText: "Cancel" }).click();
    await says("Cancelled");
    // The node has the history: another browser would show the same.
    const market = page.url();
    await page.locator("[data-history]").click();
    await page.locator(".history tbody tr", { hasText: "Ended after its one batch" }).first().waitFor();
    await page.locator(".history tbody tr", { hasText: "Filled" }).first().getByRole("button", { name: "What became of order" }).click();
    await until("the average price is told", async () => /^[\d,]+\.\d+$/.test(await page.innerText(".order-detail [data-fact=price] dd")));
    expect(await page.innerText(".order-detail [data-fact=fee] dd")).toMatch(/^[\d,.]+ [A-Z]+$/);
    expect(await page.locator(".order-detail tbody tr").count()).toBeGreaterThan(0);
    await page.goto(market);
    // What cannot be paid is refused with amounts.
    await order("sell", "900000000", price);
    await says("Refused:");
    await order("buy", "0.0000000000001", price);
    await page.locator(".notice", { hasText: "places after the point" }).first().waitFor();
    expect(quote).not.toBe(base);
    expect(site.complaints.filter((text) => !text.includes("422"))).toEqual([]);
  });

  it("for exact amounts are previewed, signed, filled or returned, and explained", async () => {
    const { base, quote, price } = await toMarket();
    await page.selectOption("#trader", { label: await page.locator("#trader option", { hasText: "Public demo account 3" }).innerText() });
    await until("the balance is shown", async () => /[1-9]/.test((await page.locator("[data-balances]").innerText())));
    await page.selectOption("#order-life", "whole");
    const sayings = (text: string) => page.locator(".preview", { hasText: text }).waitFor();
    await sayings("The whole amount trades in the next batch, or nothing does.");
    // A price that no batch meets: nothing happens, and it is said why.
    await order("buy", "3", price / 2);
    await says("Not filled: the rate was beyond its bound");
    await picture("ticket-exact");
    // One that everybody would take trades as soon as a batch has room for it.
    for (let sent = 1; (await row("Filled exactly").count()) === 0; sent += 1) {
      await order("sell", "3", price / 4);
      await until("it has an end", async () => (await page.locator(".own-orders tbody tr").count()) > sent && (await row("Sent, not yet").count()) === 0);
    }
    await picture("exact-filled");
    await page.reload();
    await says("Filled exactly, at");
    // The transaction, and the story from the node's index.
    const market = page.url();
    await row("Filled exactly").getByRole("link").first().click();
    await until("what was asked is told", async () => (await page.innerText("[data-fact=asked] dd")) === `Sell exactly 3 ${base} at ${(price / 4).toFixed(4).replace(/\.?0+$/, "")} ${quote}`);
    expect(await page.innerText("[data-fact=outcome] dd")).toBe("Filled exactly");
    await page.goto(market);
    await page.locator("[data-history]").click();
    await page.locator(".history tbody tr", { hasText: "Not filled: the rate was beyond its bound" }).getByRole("button", { name: "What became of order" }).click();
    await until("what helps is told", async () => (await page.innerText(".order-detail [data-fact=advice] dd")).includes("wider bound"));
    await page.locator(".history tbody tr", { hasText: "Filled exactly" }).first().getByRole("button", { name: "What became of order" }).click();
    await until("its fill is listed", async () => (await page.locator(".order-detail tbody tr").count()) === 1);
    expect(await page.locator(".order-detail [data-fact=advice]").isVisible()).toBe(false);
    expect(site.complaints).toEqual([]);
  });

  it("are executed in a continuous market, settled by the ledger, and cancelled", async () => {
    await open("#/venue/0");
    await page.locator("[data-standing]", { hasText: "The venue matches." }).waitFor();
    await until("the book has levels", async () => (await page.locator(".book tbody tr").count()) > 1);
    const [base, quote] = (await page.innerText("h1")).replace(", continuous", "").split("/") as [string, string];
    await page.selectOption("#trader", { label: await page.locator("#trader option", { hasText: "Public demo account 2" }).innerText() });
    const deposited = page.locator("[data-deposits]");
    for (const asset of [base, quote]) {
      await page.selectOption("#venue-asset", asset);
      await page.fill("#venue-units", "500");
      await page.locator("form button", { hasText: "Deposit" }).click();
      await deposited.filter({ hasText: new RegExp(`500[.0]* ${asset}`) }).waitFor();
    }
    await page.locator("button", { hasText: "Let this page trade here" }).click();
    await page.waitForSelector("#venue-amount", { state: "visible" });
    const ask = Number(await page.inputValue("#venue-price"));
    const order = async (side: "buy" | "sell", amount: string, price: number) => {
      await page.locator(`label:has(input[name=venue-side][value=${side}])`).click();
      await page.fill("#venue-amount", amount);
      await page.fill("#venue-price", price.toFixed(3));
      await page.locator("form .place").click();
    };
    const state = (text: string | RegExp) => page.locator(".own-orders tbody tr", { hasText: text }).first();
    await order("buy", "1", 1.2 * ask);
    await state(/executed, 1 of it settled; ended/).waitFor();
    await order("sell", "1", 1.4 * ask);
    await state(/1 open, (first in its|\d+ ahead in the) queue/).waitFor();
    await picture("venue");
    // The trading key is derived again: nothing but the orders is kept.
    await page.reload();
    await state(/1 open/).waitFor();
    await state(/1 open/).locator("button", { hasText: "Cancel" }).click();
    await state("ended: cancelled").waitFor();
    await page.fill("#venue-price", "0.00001");
    await page.fill("#venue-amount", "1");
    await page.locator(".preview", { hasText: "The limit moves in steps of" }).waitFor();
    expect(site.complaints).toEqual([]);
  });

  it("of a session key are shown as such, until it is stopped", async () => {
    const { base, quote, price } = await toMarket();
    const owner = new Client(given, { key: new EthereumKey(DEMO_KEY) });
    const key = Ed25519Key.generate();
    const { slot } = await owner.addSession(key, { [base]: "50", [quote]: "50" }, { lasts: 50_000 });
    const bot = new Client(given, { key, account: owner.address, slot });
    const dear = (60 * price).toFixed(4);
    const { sequence } = await bot.sell(`${base}/${quote}`, "7", dear);
    const name = `${sequence! & (2n ** 43n - 1n)} of session key ${slot}`;
    await page.selectOption("#trader", { label: await page.locator("#trader option", { hasText: "Public demo account 2" }).innerText() });
    // Beside what this browser has placed.
    await row(`, by session key ${slot}`).getByText(`7 ${base} rest`).waitFor();
    await picture("ticket-session");
    await open(`#/account/${owner.address}`);
    await page.locator("section[aria-label^=Resting] tbody tr", { hasText: name }).waitFor();
    const past = page.locator(".history tbody tr", { hasText: `session key ${slot}` });
    await past.getByText("Rests").waitFor();
    await bot.stop();
    await past.getByText("Ended with its session key").waitFor();
    await page.getByRole("button", { name: `What became of order ${name}` }).click();
    await page.locator(".order-detail h3", { hasText: `Order ${name}: Sell 7 ${base} at` }).waitFor();
    await picture("history-session-stopped");
    // The owner cancels a key's order from the page.
    await bot.alive(10_000);
    await bot.sell(`${base}/${quote}`, "5", dear);
    await open(`#/market/${base}/${quote}`);
    await row(`, by session key ${slot}`).getByRole("button", { name: /^Cancel order \d+ of session key/ }).click();
    await until("it is cancelled", async () => (await row(`, by session key ${slot}`).count()) === 0);
    await owner.revokeSession(slot);
    expect(site.complaints).toEqual([]);
  });

  it("are placed by a session key that is added, unlocked and revoked on the page, and told what it may not do", async () => {
    const context = await site.browser.newContext({ viewport: { width: 1280, height: 900 } });
    page = await site.renew({}, undefined, context);
    const { base, quote, price } = await toMarket();
    const { address } = new EthereumKey(DEMO_KEY);
    const panel = page.locator(".session-keys");
    const live = panel.locator("tbody tr", { hasText: "in this browser" });
    const pick = async (option: string) => page.selectOption("#trader", { label: await page.locator("#trader option", { hasText: option }).first().innerText() });
    await open(`#/account/${address}`);
    await panel.locator("summary").click();
    expect(await panel.locator(".session-form").isVisible()).toBe(false);
    await pick("Public demo account 2");
    await page.locator("#session-passphrase").waitFor();
    const most = (at: number, text: string) => page.getByLabel(`The most of cap ${at}`).fill(text);
    const says = (text: string) => panel.locator(".preview", { hasText: text }).waitFor();
    await page.locator(".session-form .cap").nth(1).waitFor();
    // What is written wrongly is told before anything is signed.
    await says("fees in USD included");
    await most(1, "30");
    await says(`Write the most of ${base}`);
    await most(2, "0.0000000001");
    await says("places after the point");
    await page.getByLabel("Asset of cap 2").selectOption(quote);
    await says("two caps");
    await page.getByLabel("Asset of cap 2").selectOption(base);
    await most(2, "20");
    await says(`uses at most 30 ${quote}, 20 ${base}, fees included`);
    await page.fill("#session-minutes", "2000");
    await says("longer than the key counts");
    await page.fill("#session-minutes", "30");
    await says("Its offers end after");
    await page.fill("#session-hours", "1e9");
    await says("at most 4,194,304 blocks");
    await page.fill("#session-hours", "12");
    await page.fill("#session-passphrase", "a passphrase of a session");
    await picture("session-form");
    await page.getByRole("button", { name: "Add key" }).click();
    await live.getByText("Live").waitFor();
    const cells = live.locator("td");
    const slot = await cells.nth(0).innerText();
    expect(await cells.nth(2).innerText()).toBe("trade, cancel");
    expect(await cells.nth(3).innerText()).toBe(`30 of 30 ${quote}, 20 of 20 ${base}`);
    expect(await cells.nth(4).innerText()).toMatch(/^in \d+ min/);
    expect(await cells.nth(5).innerText()).toMatch(/^in 1[12] h/);

    // The browser trades by it: the order is the key's.
    await pick("Session key 0x");
    await page.fill("#passphrase", "another passphrase");
    await page.click(".key-form button");
    await page.locator(".trader .notice", { hasText: "The passphrase is wrong." }).waitFor();
    await page.fill("#passphrase", "a passphrase of a session");
    await page.click(".key-form button");
    await panel.getByText("A session key cannot add or revoke keys").waitFor();
    expect(await live.locator("td").last().innerText()).toBe("–");
    await page.evaluate((to) => (location.hash = to), `#/market/${base}/${quote}`);
    await page.waitForSelector(".ticket");
    await order("sell", "7", 60 * price);
    await row(`, by session key ${slot}`).getByText(`7 ${base} rest`).waitFor();
    await picture("session-order");
    // More than its cap is refused in words.
    await order("sell", "15", 60 * price);
    await page.locator(".own-orders tbody").getByText("more of an asset than the session key may").waitFor();

    await page.evaluate((to) => (location.hash = to), `#/account/${address}`);
    await page.locator("section[aria-label^=Resting] tbody tr", { hasText: `of session key ${slot}` }).waitFor();
    await live.getByText(`13 of 20 ${base}`).waitFor();
    await panel.locator("summary").waitFor();

    // Its owner renews the timer and revokes it, in another tab: the page of the key is told why nothing is placed any more.
    const other = site.watched(await context.newPage());
    await other.goto(new URL(`#/account/${address}`, page.url()).href);
    const keys = other.locator(".session-keys");
    await keys.locator("tbody tr", { hasText: "in this browser" }).waitFor();
    await keys.locator("summary").click();
    await other.selectOption("#trader", { label: await other.locator("#trader option", { hasText: "Public demo account 2" }).innerText() });
    await other.fill("#session-minutes", "60");
    await other.getByRole("button", { name: `Renew the timer of session key ${slot}` }).click();
    await keys.locator("tbody tr", { hasText: "in this browser" }).getByText(/^in (5\d min|1 h)/).first().waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      for (const width of [1280, 360]) {
        await other.emulateMedia({ colorScheme });
        await other.setViewportSize({ width, height: 900 });
        await other.evaluate(() => scrollTo(0, 0));
        expect([colorScheme, width, await axeFindings(other)]).toEqual([colorScheme, width, []]);
        expect([colorScheme, width, await other.evaluate(paleTexts)]).toEqual([colorScheme, width, []]);
        expect(await other.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        await picture(`session-keys-${colorScheme}-${width}`, other);
      }
    }
    // A program's key comes with its agreement to this slot.
    const program = Ed25519Key.generate();
    await other.locator("label:has(input[value=pasted])").click();
    await other.fill("#session-key", program.public);
    const toSign = (await other.locator(".to-sign code").getAttribute("title")) ?? "";
    await other.getByLabel("The most of cap 1").fill("1");
    await other.getByRole("button", { name: "Remove cap 2" }).click();
    await other.fill("#session-possession", toHex(program.agree(new Uint8Array(3))));
    await other.getByRole("button", { name: "Add key" }).click();
    await keys.locator(".notice", { hasText: "The agreement is no signature of this key" }).waitFor();
    await other.fill("#session-possession", toHex(program.agree(fromHex(toSign))));
    await picture("session-program", other);
    await other.getByRole("button", { name: "Add key" }).click();
    await until("the program's key is added", async () => (await keys.locator("tbody code").evaluateAll((codes) => codes.map((one) => (one as HTMLElement).title))).includes(program.public));
    const bot = new Client(given, { key: program, account: address, slot: Number(slot) + 1 });
    expect((await bot.sessionKey()).caps).toEqual([{ asset: quote, cap: "1", used: "0" }]);
    await other.getByRole("button", { name: `Revoke session key ${Number(slot) + 1}` }).click();
    // By the keyboard alone.
    await until("the program's key is gone", async () => (await other.getByRole("button", { name: `Revoke session key ${Number(slot) + 1}` }).count()) === 0);
    await other.getByRole("button", { name: `Revoke session key ${slot}` }).press("Enter");
    await until("it is revoked", async () => (await keys.locator("tbody tr", { hasText: "in this browser" }).count()) === 0);
    await other.close();
    await page.evaluate((to) => (location.hash = to), `#/market/${base}/${quote}`);
    await page.waitForSelector(".ticket");
    await order("sell", "1", 60 * price);
    await page.locator(".order .notice", { hasText: "it was revoked" }).waitFor();
    await open(`#/account/${address}`);
    await page.locator(".history tbody tr", { hasText: `session key ${slot}` }).getByText("Ended with its session key").waitFor();
    expect(await live.count()).toBe(0);
    expect(site.complaints.filter((text) => !text.includes("422"))).toEqual([]);
    await context.close();
  });

  it("are signed by a key that the browser keeps encrypted", async () => {
    const { base, price } = await toMarket();
    await page.selectOption("#trader", "new");
    await page.fill("#passphrase", "a good passphrase");
    await page.click(".key-form button");
    await page.locator(".trader button", { hasText: "Get demo money" }).click();
    await until("the money is there", async () => (await page.locator("[data-balances]").innerText()).includes(`100 ${base}`));
    await order("sell", "1.5", price / 2);
    await says("Filled at");
    // After a reload the key is locked: nothing is signed without the passphrase.
    await page.reload();
    await state("live");
    expect(await page.locator(".ticket .place").isDisabled()).toBe(true);
    await page.selectOption("#trader", "unlock");
    await page.fill("#passphrase", "another passphrase");
    await page.click(".key-form button");
    await page.locator(".notice", { hasText: "The passphrase is wrong." }).waitFor();
    await page.fill("#passphrase", "a good passphrase");
    await page.click(".key-form button");
    await says("Filled at");
    // The account of a new key does not exist before its first money.
    expect(site.complaints.filter((text) => !text.includes("404"))).toEqual([]);
  });

});

describe.skipIf(given)("the page before a node that fails", () => {
  const reconnects = async (fault: () => void, words: string) => {
    await open("");
    await state("live");
    // What the banner says is kept: after five seconds it says something else, and a busy machine may look later.
    await page.evaluate(() => {
      const banner = document.querySelector(".banner")!;
      const said: string[] = [];
      new MutationObserver(() => said.push(banner.textContent ?? "")).observe(banner, { childList: true, characterData: true, subtree: true });
      Object.assign(window, { said });
    });
    fault();
    const said = () => page.evaluate(() => (window as unknown as { said: string[] }).said);
    await until("the banner says why", async () => (await said()).some((text) => text.includes(words) && text.includes("Reconnecting")));
    expect(await page.innerText(".state[data-state=waiting]")).toContain("Reconnecting");
    await picture(`reconnecting-${words.replace(/\W+/g, "-")}`);
    fixture!.mend();
    await state("live");
    const seen = await height();
    await until("the height advances again", async () => (await height()) > seen);
    expect(await page.isVisible(".banner")).toBe(false);
  };

  it("says so and comes back when the stream is cut", () => reconnects(() => fixture!.cut(), "closed the stream"));
  it("says so and comes back when a message is missed", () => reconnects(() => fixture!.skip(), "missed"));
  it("says so and comes back when the node falls silent", () => reconnects(() => fixture!.mute(), "silent"));

  it("names what does not exist", async () => {
    await open(`#/account/${EMPTY_ACCOUNT}`);
    await until("the absence is told", async () => (await texts(".notice")).some((text) => text.includes("no account")));
    await open("#/block/999999");
    await until("the future is told", async () => (await texts(".notice")).some((text) => text.includes("does not exist yet")));
    await open("#/market/EUR/XYZ");
    await until("the market is told", async () => (await texts(".notice")).some((text) => text.includes("no market")));
  });

  const fact = (name: string) => page.locator(`[data-fact=${name}] dd`).innerText();

  it("shows what an account is to Ethereum, and its tokens", async () => {
    await open(`#/account/${ACCOUNT}`);
    await until("its kind is told", async () => (await texts("[data-fact=kind] dd"))[0] === "Account of a key");
    expect([await fact("nonce"), await fact("wei")]).toEqual(["10", "4,200,017"]);
    const cells = page.locator(".balances tbody tr:first-child td");
    expect(await cells.nth(4).innerText()).toBe("2");
    const whole = await page.locator(".balances tbody tr:first-child code").getAttribute("title");
    expect(whole).toBe("0x57616c7261730000000000000000000000000000");
    // The address can be copied, or is shown whole and selected where the clipboard is out of reach.
    await page.locator(".balances tbody tr:first-child .copy").click();
    await until("it is copied", async () => /^(Copied|Selected)$/.test(await page.locator(".balances tbody tr:first-child .copy").innerText()));
    await open(`#/account/${CONTRACT}`);
    await until("it is a contract", async () => (await texts("[data-fact=kind] dd"))[0]?.startsWith("Contract") === true);
    expect(await fact("bytes")).toBe("3,121 bytes");
    await picture("contract");
    expect(site.complaints).toEqual([]);
  });

  it("leads from a block to its contracts, and tells what they did", async () => {
    await open("#/block/200");
    await page.locator(".contracts tbody tr").first().waitFor();
    const functions = await texts(".contracts tbody td:nth-child(4)");
    expect(functions).toEqual(["settlement", "place", "transfer", "creation"]);
    await picture("block-contracts");
    await page.locator(".contracts tbody tr:nth-child(2) td:first-child a").click();
    await page.waitForSelector("h1:text-is('Ethereum transaction')");
    const values = (scope: string) => texts(`${scope} [data-value] dd`);
    await until("the call is told", async () => (await values("section[aria-label^=What]")).length === 4);
    expect(await values("section[aria-label^=What]")).toEqual(["EUR", "USD", "1,250.50 EUR", "1,381.81 USD"]);
    expect(await values(".logs li:nth-child(1)")).toEqual([expect.stringContaining("…"), "Offers", "1,250.50 EUR"]);
    expect((await values(".logs li:nth-child(2)"))[1]).toBe("EUR → USD, number 3");
    expect(await page.locator(".logs li:nth-child(3) dd").allInnerTexts()).toEqual(["0x" + "7".repeat(64), "0x3c7363726970743e"]);
    expect([await fact("gas"), await fact("price"), await fact("fee")]).toEqual(["91,234 of 200,000", "5 gwei", "0.00045617 USD"]);
    await picture("ethereum");
    await open(`#/ethereum/${ETHEREUM.settlement}`);
    await page.waitForSelector("h1:has-text('Settlement of block')");
    await until("fills are told", async () => (await values(".logs")).includes("1,371.62 USD"));
    await picture("settlement");
    await open(`#/ethereum/${ETHEREUM.created}`);
    await until("the contract is linked", async () => (await page.locator(`[data-fact=created] a[href="#/account/${CONTRACT}"]`).count()) === 1);
    expect(await fact("value")).toBe("1.5 USD");
    expect(site.complaints).toEqual([]);
  });

  it("shows a hostile reason as text of one line", async () => {
    await open("");
    await state("live");
    // A search knows a transaction of either kind.
    await page.fill("[name=search]", ETHEREUM.swindle);
    await page.keyboard.press("Enter");
    await until("the reason is told", async () => (await texts("[data-fact=outcome] dd"))[0]?.includes("<img") === true);
    const told = await fact("outcome");
    expect(told).toMatch(/^It reverted: “<img src=x onerror=alert\(1\)> \ufffdgnp\.exe\ufffd\ufffd\ufffdpaid a+…”$/);
    expect(told.length).toBeLessThan(330);
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.evaluate(() => location.hash)).toBe(`#/ethereum/${ETHEREUM.swindle}`);
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await picture(`reverted-${scheme}`);
    }
    expect(site.complaints.filter((text) => !text.includes("404"))).toEqual([]);
  });

  it("fits contracts on a narrow screen", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.emulateMedia({ colorScheme: "dark" });
    for (const hash of [`#/ethereum/${ETHEREUM.placed}`, `#/ethereum/${ETHEREUM.swindle}`, `#/account/${CONTRACT}`, `#/account/${ACCOUNT}`, "#/block/200"]) {
      await open(hash);
      await state("live");
      await page.waitForTimeout(700);
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      await picture(`narrow-contracts-${hash.replace(/\W+/g, "-").slice(0, 24)}`);
      expect([hash, beyond]).toEqual([hash, Math.min(beyond, 0)]);
    }
  });

  it("shows an account's fills as they happen", async () => {
    await open(`#/account/${ACCOUNT}`);
    const fills = page.locator("section[aria-label^=Fills] tbody tr");
    await until("fills come", async () => (await fills.count()) >= 2);
    await until("the balance comes", async () => /^1,2\d\d,\d{3}\.\d\d$/.test((await texts(".balances tbody tr:first-child td"))[1] ?? ""));
  });

  const past = (kind: string) => page.locator(`.history [aria-label^='${kind},'] tbody tr`);
  const part = (kind: string) => page.locator(`.history label:has(input[value=${kind}])`).click();

  it("pages through an account's history, and tells the story of an order", async () => {
    await open(`#/account/${ACCOUNT}`);
    await until("the orders are there", async () => (await past("Orders").count()) === 50);
    const states = await past("Orders").locator("td:nth-child(8)").allInnerTexts();
    expect((await past("Orders").first().locator("td").allInnerTexts()).slice(2, 7)).toEqual(["EUR/USD", "Sell", "12,500.5 EUR", "1.105", "2,500.5 EUR"]);
    expect(states.slice(0, 4)).toEqual(["Rests", "Refused: ends crowded", "Expired at its last block", "Filled"]);
    const newer = page.getByRole("button", { name: "Newer" });
    const older = page.getByRole("button", { name: "Older" });
    expect(await newer.isDisabled()).toBe(true);
    const blocks = () => past("Orders").locator("td:nth-child(2)").allInnerTexts();
    for (const [first, last] of [["70", "21"], ["20", "1"]]) {
      await older.click();
      await until(`the page from ${first} is there`, async () => (await blocks())[0] === first);
      expect((await blocks()).at(-1)).toBe(last);
    }
    expect(await older.isDisabled()).toBe(true);
    await newer.click();
    await until("the page before is there", async () => (await blocks())[0] === "70");
    await page.getByRole("button", { name: "What became of order 69" }).click();
    await page.locator(".order-detail").waitFor();
    await until("its price is told", async () => (await fact("price")) === "1.100000");
    expect([await fact("state"), await fact("sold"), await fact("bought"), await fact("fee")]).toEqual(["Filled", "10,000.00 EUR", "11,000.00 USD", "10.00 USD"]);
    expect(await page.locator(".order-detail tbody tr").count()).toBe(1);
    await picture("history");
    await page.getByRole("button", { name: "What became of order 67" }).click();
    await until("a refusal is told", async () => (await fact("fee")) === "none: it had no effect");
    expect([await fact("state"), await fact("until")]).toEqual(["Refused: ends crowded", "131"]);

    // An exact order that found no room says so, and what helps; it costs four fees.
    await page.getByRole("button", { name: "What became of order 66" }).click();
    await until("an exact order is told", async () => (await fact("fee")) === "40.00 USD");
    expect(await page.innerText(".order-detail h3")).toBe("Order 66: Buy exactly 4,000 EUR at 1.25 USD");
    expect([await fact("state"), await fact("returned")]).toEqual(["Not filled: there was no room for it beside the offers", "5,000.00 USD"]);
    expect(await fact("advice")).toContain("with a smaller amount, or as a limit order");
    await picture("history-exact");

    // An order of a session key is named by its slot; one that may rest costs two fees.
    expect(await texts("section[aria-label^=Resting] tbody tr:last-child td")).toContain("7 of session key 1");
    const ofBot = past("Orders").filter({ hasText: "session key 1" });
    expect([await ofBot.count(), await ofBot.locator("td:nth-child(2)").innerText()]).toEqual([1, "65"]);
    await page.getByRole("button", { name: "What became of order 4 of session key 1" }).click();
    await until("the order of a session key is told", async () => (await page.innerText(".order-detail h3")).startsWith("Order 4 of session key 1: Sell "));
    expect([await fact("state"), await fact("fee")]).toEqual(["Filled", "20.00 USD"]);
    await picture("history-session");

    await part("fills");
    await until("the fills are there", async () => (await past("Fills").count()) === 50);
    expect(await past("Fills").first().locator("td").allInnerTexts()).toEqual(["09:02:01", "121", "10,000.00 EUR", "11,000.00 USD", "1.100000", "2,500.5 EUR", "Details"]);
    await part("transfers");
    await until("the transfers are there", async () => (await past("Transfers").count()) === 50);
    const amounts = await past("Transfers").locator("td:nth-child(4)").allInnerTexts();
    expect(amounts.slice(0, 2)).toEqual(["+1.20 EUR", "−1.19 EUR"]);
    expect(await page.locator(".order-detail").isVisible()).toBe(false);
    // What the sticky bar covers in part would count as too small a target.
    await page.evaluate(() => scrollTo(0, 0));
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.evaluate(paleTexts)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    expect(site.complaints).toEqual([]);
  });

  it("asks again for what a busy node has not indexed yet", async () => {
    fixture!.lose("behind");
    await open(`#/account/${QUIET_ACCOUNT}`);
    await until("the orders are there", async () => (await past("Orders").count()) === 50);
  });

  it("goes back to the newest page when older ones are gone, and says where no history is kept", async () => {
    await open(`#/account/${ACCOUNT}`);
    await until("the orders are there", async () => (await past("Orders").count()) === 50);
    fixture!.lose("gone");
    await page.getByRole("button", { name: "Older" }).click();
    await until("the newest page is shown", async () => (await past("Orders").locator("td:nth-child(2)").first().innerText()) === "120");
    await page.reload();
    fixture!.lose("off");
    await part("fills");
    await until("it is told", async () => (await texts(".history .notice")).some((text) => text.includes("keeps no history")));
  });
});
