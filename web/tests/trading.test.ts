/** Orders as traders place them on the page of a running demo: amounts that are kept, parts of what is available, replacements, wallets. */
import { describe, expect, it } from "vitest";
import { signTyped } from "@walras/client/ethereum";
import { EthereumKey } from "@walras/client/index";
import { fromHex, type TypedData } from "@walras/client/typed";
import { axeFindings, inkedOn, paleTexts } from "./looks";
import { Site, given } from "./site";

/** The keys of the fourth and fifth public account of a demo. */
const KEYS = ["0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6", "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"] as const;
const [FOURTH, FIFTH] = KEYS.map((key) => new EthereumKey(key).address) as [string, string];

const site = Site.ofTests();
const row = (text: string | RegExp) => site.page.locator(".own-orders tbody tr", { hasText: text });
const preview = (text: string | RegExp) => site.page.locator(".preview", { hasText: text }).waitFor();

type Assets = { assets: { symbol: string; asset: number; decimals: number }[] };

/** The market of the two assets that a demo pays its public accounts in. */
async function toMarket(): Promise<{ base: string; quote: string; decimals: number; price: number }> {
  const { assets } = await site.get<Assets>("assets");
  const [quote, base] = [0, 1].map((number) => assets.find((one) => one.asset === number)!) as [Assets["assets"][0], Assets["assets"][0]];
  const last = async () => (await site.get<{ price: string | null }>(`markets/${base.symbol}/${quote.symbol}/book`)).price;
  await site.until("the market has a price", async () => (await last()) !== null);
  await site.open(`#/market/${base.symbol}/${quote.symbol}`);
  await site.live();
  return { base: base.symbol, quote: quote.symbol, decimals: base.decimals, price: Number(await last()) };
}

async function available(address: string, symbol: string): Promise<bigint> {
  const { balances } = await site.get<{ balances: { asset: string; available: string }[] }>(`accounts/${address}`);
  return BigInt(balances.find(({ asset }) => asset === symbol)?.available ?? "0");
}

async function order(side: "buy" | "sell", amount: string, price: string): Promise<void> {
  await site.page.locator(`label:has(input[name=side][value=${side}])`).click();
  await site.page.fill("#order-amount", amount);
  await site.page.fill("#order-price", price);
  await site.page.click(".ticket .place");
}

/** Places an order until a batch had room for it: each try has an end of its own. */
async function untilFilled(place: () => Promise<void>, filled: string): Promise<void> {
  const before = await row(filled).count();
  for (let sent = 1; (await row(filled).count()) === before; sent += 1) {
    await place();
    await site.until(`try ${sent} has an end`, async () => (await row(/Filled|Not filled|Refused|Void/).count()) >= sent && (await row("Sent, not yet").count()) === 0);
  }
}

describe.runIf(given)("an order in a market of batches", () => {
  it("to buy a base amount buys just that, though its limit is far above the batch", async () => {
    const { base, quote, decimals, price } = await toMarket();
    await site.trade(5);
    await site.until("the balance is shown", async () => /[1-9]/.test(await site.page.innerText("[data-balances]")));
    const [had, paid] = [await available(FIFTH, base), await available(FIFTH, quote)];
    const limit = (1.2 * price).toFixed(3);
    await untilFilled(() => order("buy", "50", limit), "Filled exactly");
    expect((await available(FIFTH, base)) - had).toBe(50n * 10n ** BigInt(decimals));
    expect(paid - (await available(FIFTH, quote)) < BigInt(Math.round(50 * 1.2 * price * 1e6))).toBe(true);
    // One description everywhere: side, amount of base, price, as it was placed.
    const told = `Buy exactly 50 ${base} at ${Number(limit)} ${quote}`;
    await row(told).first().waitFor();
    await site.page.locator("[data-history]").click();
    const past = site.page.locator(".history tbody tr", { hasText: `exactly 50 ${base}` }).first();
    await past.waitFor();
    expect((await past.locator("td").allInnerTexts()).slice(2, 6)).toEqual([`${base}/${quote}`, "Buy", `exactly 50 ${base}`, String(Number(limit))]);
    await past.getByRole("button", { name: "What became of order" }).click();
    await site.page.locator(".order-detail h3", { hasText: told }).waitFor();
    await past.locator("a").last().click();
    await site.until("the transaction says the same", async () => (await site.page.innerText("[data-fact=asked] dd")) === told);
  });

  it("that waits is told by its base amount, is replaced in its place, and rests in base", async () => {
    const { base, quote, price } = await toMarket();
    await site.trade(4);
    const [low, lower] = [(0.5 * price).toFixed(3), (0.4 * price).toFixed(3)].map((text) => String(Number(text))) as [string, string];
    await order("buy", "30", low);
    const first = row(`Buy 30 ${base} at ${low} ${quote}`);
    await first.getByText(`30 ${base} rest`).waitFor();
    await first.getByRole("button", { name: /^Replace order/ }).click();
    await site.page.locator(".replacing", { hasText: "In the place of order" }).waitFor();
    expect(await Promise.all(["#order-amount", "#order-price"].map((id) => site.page.inputValue(id)))).toEqual(["30", low]);
    expect(await site.page.locator("input[name=side]").first().isDisabled()).toBe(true);
    await site.page.fill("#order-amount", "25");
    await site.page.fill("#order-price", lower);
    await site.until("the button says so", async () => (await site.page.innerText(".ticket .place")) === `Replace: buy 25 ${base}`);
    await site.picture("replace");
    await site.page.click(".ticket .place");
    await row(`Buy 25 ${base} at ${lower} ${quote}`).getByText(`25 ${base} rest`).waitFor();
    await first.getByText("Replaced").waitFor();
    const { offers } = await site.get<{ offers: { sell: string; price: string }[] }>(`accounts/${FOURTH}/offers`);
    expect(offers.filter(({ sell }) => sell === quote)).toHaveLength(1);
    // A replacement that the next batch would fill whole might buy more than was asked for: it is not made.
    await row(`Buy 25 ${base}`).getByRole("button", { name: /^Replace order/ }).click();
    await site.page.fill("#order-price", (1.5 * price).toFixed(3));
    await site.page.click(".ticket .place");
    await site.page.locator(".order .notice", { hasText: "Cancel the order, and buy anew" }).waitFor();
    await site.page.getByRole("button", { name: "Keep it" }).click();
    // In another browser, which has placed nothing, it is told in the same words.
    const market = site.page.url();
    await site.renew({ viewport: { width: 1280, height: 800 } });
    await site.page.goto(market);
    await site.trade(4);
    await row(`Buy 25 ${base} at ${lower} ${quote}`).getByRole("button", { name: /^Cancel order/ }).click();
    await site.until("it is gone", async () => (await row(`Buy 25 ${base}`).count()) === 0);
    expect(site.complaints.filter((text) => !text.includes("422"))).toEqual([]);
  });

  it("takes a part of what is available, and the market's price", async () => {
    const { base, decimals } = await toMarket();
    await site.trade(4);
    await site.until("the balance is shown", async () => /[1-9]/.test(await site.page.innerText("[data-balances]")));
    await site.page.locator("label:has(input[name=kind][value=market])").click();
    expect(await site.page.locator("#order-price").isVisible()).toBe(false);
    await site.page.locator("label:has(input[name=side][value=sell])").click();
    const had = await available(FOURTH, base);
    await site.page.getByRole("button", { name: /^25/ }).click();
    const quarter = had / 4n;
    await site.until("a quarter is written", async () => BigInt(Math.round(Number(await site.page.inputValue("#order-amount")) * 10 ** decimals)) === quarter);
    await preview("the next batch would fill all of it");
    await site.page.click(".ticket .place");
    await row("Filled at").first().waitFor();
    expect(had - (await available(FOURTH, base))).toBe(quarter);
    await site.page.locator("label:has(input[name=side][value=buy])").click();
    await site.page.fill("#order-amount", "7");
    await preview(`You buy exactly 7 ${base} in the next batch and pay at most`);
    await untilFilled(async () => (await site.page.fill("#order-amount", "7"), site.page.click(".ticket .place")), "Filled exactly");
    // All of it, fees included, is not refused.
    await site.page.locator("label:has(input[name=kind][value=limit])").click();
    await site.page.locator("label:has(input[name=side][value=sell])").click();
    await site.page.getByRole("button", { name: /^100/ }).click();
    await site.page.fill("#order-price", "1000");
    await site.page.click(".ticket .place");
    await row(/at 1,000 .*rest/).first().waitFor();
    await row(/at 1,000 .*rest/).first().getByRole("button", { name: /^Cancel order/ }).click();
    await row("Cancelled").first().waitFor();
    expect(site.complaints).toEqual([]);
  });

  it("of a portfolio whose worth is told beside the balances, also in the account's view", async () => {
    await toMarket();
    await site.trade(5);
    const told = /^about [\d,]+\.\d\d [A-Z]+$/;
    await site.until("it is told", async () => told.test(await site.page.innerText("[data-portfolio]")));
    expect(await site.page.locator(".money tbody tr").count()).toBeGreaterThanOrEqual(2);
    await site.open(`#/account/${FIFTH}`);
    await site.until("the account tells it, too", async () => told.test(await site.page.innerText("[data-portfolio]")));
  });
});

describe("wallets of the browser", () => {
  it("stand by their names in the choice of who trades, whatever they call themselves", async () => {
    const page = await site.renew({ viewport: { width: 1280, height: 800 } }, () => {
      const announce = (uuid: string, name: unknown) => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: { info: { uuid, name, icon: "", rdns: "" }, provider: { request: async () => ["0x" + "AB".repeat(20)] } } }));
      addEventListener("eip6963:requestProvider", () => {
        announce("1", "First wallet");
        announce("2", "<b>Second</b>\u202e\n" + "a".repeat(500));
        announce("3", 7);
        dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: null }));
      });
    });
    await site.open("#/market/EUR/USD");
    await site.live();
    const named = () => page.locator("#trader option[value^=wallet]").allInnerTexts();
    await site.until("both are offered", async () => (await named()).length === 2);
    expect(await named()).toEqual(["First wallet", "<b>Second</b>\ufffd\ufffdaaaaaaaaa…"]);
    await page.selectOption("#trader", "wallet 1");
    await site.until("its account is named", async () => (await named())[0] === "First wallet (0xabab…abab)");
  });

  it.runIf(given)("sign what the page asks for", async () => {
    const page = await site.renew({ viewport: { width: 1280, height: 800 } }, () => {
      const request = ({ method, params }: { method: string; params: string[] }) =>
        method === "eth_requestAccounts" ? Promise.resolve([(window as never as { owner: string }).owner]) : (window as never as { signIt: (data: string) => Promise<string> }).signIt(params[1]!);
      addEventListener("eip6963:requestProvider", () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: { info: { uuid: "w", name: "Test wallet" }, provider: { request } } })));
    });
    await page.addInitScript(`window.owner = "${FOURTH}"`);
    await page.exposeFunction("signIt", (data: string) => signTyped(fromHex(KEYS[0]), JSON.parse(data) as TypedData));
    const { base, price } = await toMarket();
    await page.locator("#trader option", { hasText: "Test wallet" }).waitFor({ state: "attached" });
    await page.selectOption("#trader", "wallet w");
    await site.until("the balance is shown", async () => /[1-9]/.test(await page.innerText("[data-balances]")));
    await order("sell", "2", (0.5 * price).toFixed(3));
    await row(`Sell 2 ${base}`).getByText("Filled at").first().waitFor();
  });
});

describe.runIf(given)("a continuous market", () => {
  it("fits the same window, with chart, depth, book, tape and figures", async () => {
    await site.open("#/venue/0");
    await site.live();
    await site.until("trades come", async () => (await site.page.locator("section[aria-label='Latest trades'] tbody tr").count()) >= 2);
    await site.until("candles are drawn", async () => (await inkedOn(site.page, "candles", "demand")) + (await inkedOn(site.page, "candles", "supply")) > 5);
    for (const part of ["Chart", "Book", "Latest trades", "Your orders", "Your deposit"]) {
      const box = await site.page.locator(`section[aria-label='${part}']`).boundingBox();
      expect([part, box !== null && box.y + box.height <= 800]).toEqual([part, true]);
    }
    expect(await site.beyond()).toEqual({ right: 0, below: 0 });
    await site.until("the figures are told", async () => /^\d/.test(await site.page.innerText(".day [data-fact=high] dd")));
    // A venue that began here knows its whole day, and the page begins with its trades.
    const { markets } = await site.get<{ markets: { last: number | null; day: { complete: boolean; trades: number } | null }[] }>("venue/markets");
    expect([markets[0]!.last === null, markets[0]!.day?.complete]).toEqual([false, true]);
    expect(await site.page.innerText("[data-since]")).toBe("");
    const { trades } = await site.get<{ trades: { index: string }[] }>("venue/markets/0/trades?limit=1000");
    expect(trades.length).toBeGreaterThanOrEqual(2);
    expect(trades.map(({ index }) => Number(index))).toEqual(trades.map(({ index }) => Number(index)).sort((a, b) => b - a));
    await site.page.getByText("Depth", { exact: true }).click();
    await site.until("the depth is drawn", async () => (await inkedOn(site.page, "depth", "supply")) + (await inkedOn(site.page, "depth", "demand")) > 50);
    expect(await site.page.getAttribute("[data-chart=depth]", "aria-label")).toMatch(/^Depth of .*: [1-9]\d* levels to buy, [1-9]\d* to sell\.$/);
    await site.page.getByText("The venue", { exact: true }).click();
    await site.page.locator("[data-fact=bond] dd", { hasText: /\d/ }).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await site.page.emulateMedia({ colorScheme });
      await site.picture(`venue-${colorScheme}`);
      expect([colorScheme, await axeFindings(site.page), await site.page.evaluate(paleTexts)]).toEqual([colorScheme, [], []]);
    }
    expect(site.complaints).toEqual([]);
  });

  it("takes a part of the deposit, the market's price, and a replacement", async () => {
    await site.open("#/venue/0");
    await site.page.locator("[data-standing]", { hasText: "The venue matches." }).waitFor();
    await site.until("the book has levels", async () => (await site.page.locator(".book tbody tr").count()) > 1);
    const [base, quote] = (await site.page.innerText("h1")).replace(", continuous", "").split("/") as [string, string];
    await site.trade(3);
    for (const asset of [base, quote]) {
      await site.page.selectOption("#venue-asset", asset);
      await site.page.fill("#venue-units", "400");
      await site.page.locator("form button", { hasText: "Deposit" }).click();
      await site.page.locator("[data-deposits]").filter({ hasText: new RegExp(`400[.0]* ${asset}`) }).waitFor();
    }
    await site.page.locator("button", { hasText: "Let this page trade here" }).click();
    await site.page.waitForSelector("#venue-amount", { state: "visible" });
    const choose = (name: string, value: string) => site.page.locator(`label:has(input[name=${name}][value=${value}])`).click();
    await choose("venue-kind", "market");
    await choose("venue-side", "sell");
    await site.page.getByRole("button", { name: /^25/ }).click();
    expect(await site.page.inputValue("#venue-amount")).toBe("100");
    await preview("what is left ends");
    // Makers may have taken their orders back at that very moment: then it ends without an execution.
    const executed = row(/Sell 2 .* executed/);
    for (let sent = 1; (await executed.count()) === 0; sent += 1) {
      await site.page.fill("#venue-amount", "2");
      await site.page.locator("form .place").click();
      await site.until(`try ${sent} has an end, of ${(await site.texts(".own-orders tbody tr")).join(" | ")}`, async () => (await row(/Sell 2 .*(ended|executed)/).count()) >= sent);
    }
    const ask = Number(await site.page.inputValue("#venue-price"));
    await choose("venue-kind", "limit");
    await choose("venue-side", "sell");
    const dear = (1.05 * ask).toFixed(3);
    await site.page.fill("#venue-amount", "3");
    await site.page.fill("#venue-price", dear);
    await site.page.locator("form .place").click();
    const open = row(`Sell 3 ${base} at ${Number(dear)} ${quote}`).filter({ hasText: "3 open" });
    await open.getByRole("button", { name: /^Replace order/ }).click();
    await site.page.locator(".replacing", { hasText: "In the place of order" }).waitFor();
    await site.page.fill("#venue-amount", "5");
    await site.page.locator("form .place", { hasText: `Replace: sell 5 ${base}` }).click();
    const replaced = row(`Sell 5 ${base} at`).filter({ hasText: "5 open" });
    await replaced.waitFor();
    await row(`Sell 3 ${base} at`).filter({ hasText: "ended" }).first().waitFor();
    await site.picture("venue-replaced");
    await replaced.getByRole("button", { name: /^Cancel order/ }).click();
    await row("ended: cancelled").first().waitFor();
    expect(site.complaints).toEqual([]);
  });
});
