/** What issuers control stands in words wherever the asset is shown, and a frozen account is told what it may still do. */
import { describe, expect, it, test } from "vitest";
import type { Asset, Holder } from "@walras/client/bodies";
import { controlText, standingText } from "../src/views/controls";
import { ACCOUNT } from "./fixture.mjs";
import { Site, given } from "./site";

const gold: Asset = { asset: 8, symbol: "XAU", decimals: 6, issuer: "0x1", least_units: "1", issued: "0", valuation: null, control: "admitted_recoverable" };
const holder: Holder = { height: 900, control: "admitted_recoverable", standing: "frozen", since: 120 };

describe("words", () => {
  it("says what an issuer controls, and nothing of an open asset", () => {
    expect(controlText(gold)).toContain("Only holders that the issuer has admitted may have it.");
    expect(controlText({ ...gold, control: "freezable" })).not.toMatch(/admitted|take back/);
    expect(controlText({ ...gold, control: "recoverable" })).toContain("It can take back units of a holder who has been frozen");
    for (const open of [undefined, { ...gold, control: "open" as const }]) expect(controlText(open)).toBeNull();
  });

  it("tells a frozen holder since when, and what remains possible", () => {
    const told = standingText("XAU", gold, holder);
    expect(told).toContain("has frozen this account since block 120");
    expect(told).toContain("it can cancel, leave pools and collect");
    expect(told).toContain("can take units back");
    expect(standingText("XAU", { ...gold, control: "freezable" }, holder)).not.toContain("take units back");
    expect(standingText("XAU", gold, { ...holder, standing: "not_admitted" })).toContain("has not admitted this account");
    expect(standingText("XAU", gold, { ...holder, standing: "open" })).toBeNull();
  });
});

describe.skipIf(given)("the page", () => {
  const site = Site.ofTests();

  test("a balance of a controlled asset has its badge, and a frozen one a notice with its issuer", async () => {
    await site.open(`#/account/${ACCOUNT}`);
    const notice = site.page.locator("[data-standing=XAU]");
    await notice.waitFor();
    expect(await notice.innerText()).toContain("neither spends, buys nor receives XAU until the issuer opens it");
    expect(await notice.locator("a").getAttribute("href")).toMatch(/^#\/accounts?\//);
    expect(await site.texts(".balances .badge.control")).toEqual(["admitted holders only, can be recovered"]);
    expect(site.complaints).toEqual([]);
  });

  test("lists of markets say it below the name", async () => {
    for (const [view, list] of [["#/markets", "Markets"], ["#/", "Top markets"]] as const) {
      await site.open(view);
      const row = site.page.getByRole("group", { name: list, exact: true }).locator("tr", { has: site.page.locator("a:text-is('XAU/USD')") });
      await row.locator(".badge.control").first().waitFor();
      expect(await row.locator(".control-of").allInnerTexts()).toEqual(["XAU admitted holders only, can be recovered"]);
      const open = site.page.getByRole("group", { name: list, exact: true }).locator("tr", { has: site.page.locator("a:text-is('EUR/USD')") });
      expect(await open.locator(".badge.control").count()).toBe(0);
    }
    expect(site.complaints).toEqual([]);
  });

  test("its markets say it beside their name, and those of open assets do not", async () => {
    await site.open("#/market/XAU/USD");
    await site.page.waitForSelector(".market-head .badge.control");
    expect(await site.texts(".controls-of")).toEqual(["XAU admitted holders only, can be recovered"]);
    expect(await site.page.getAttribute(".market-head .badge.control", "title")).toContain("Its issuer can freeze holders");
    await site.open("#/market/EUR/USD");
    await site.page.waitForSelector("h1:text-is('EUR/USD')");
    await site.live();
    expect(await site.page.locator(".market-head .badge.control").count()).toBe(0);
  });
});
