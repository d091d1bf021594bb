/** The policy of an account on the built page, in headless Chromium, before the fixture exchange. */
import { existsSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ACCOUNT, TREASURY, startFixture, type Fixture } from "./fixture.mjs";
import { axeFindings, launched, paleTexts, slowed } from "./looks";

const PATIENCE_MS = 180_000;

let fixture: Fixture;
let browser: Browser;

beforeAll(async () => {
  if (!existsSync(new URL("../dist/index.html", import.meta.url))) throw new Error("web/dist is missing: npm run build");
  fixture = await startFixture({ interval_ms: 400 });
  browser = await launched();
}, PATIENCE_MS);
afterAll(async () => {
  await browser?.close();
  await fixture?.close();
});

async function opened(address: string, options: { width: number; colorScheme?: "light" | "dark" }): Promise<Page> {
  const { width, colorScheme = "light" } = options;
  const page = await slowed(await browser.newPage({ viewport: { width, height: 900 }, colorScheme }));
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${fixture.url}#/account/${address}`);
  await page.locator("[data-fact=sequence] dd", { hasText: /[0-9]/ }).waitFor();
  return page;
}

describe("the policy of an account", () => {
  const fact = (page: Page, name: string) => page.innerText(`.policy [data-fact=${name}] dd`);

  it("tells who signs with which weight, and what a change that waits does", { timeout: PATIENCE_MS }, async () => {
    const page = await opened(TREASURY, { width: 1280 });
    expect(await fact(page, "move")).toBe("weight 2 of 5");
    expect(await fact(page, "govern")).toBe("weight 3 of 5");
    expect(await fact(page, "guardians")).toBe("2 of 2 guardians");
    expect(await fact(page, "delay")).toContain("86,400 blocks");
    expect(await page.innerText("[data-fact=key] dd")).toBe("several, by its policy");
    expect(await page.innerText("[data-fact=references] dd")).toContain("need a reference");
    const rows = page.locator(".policy tbody tr");
    const cells = async (column: number) => rows.locator(`td:nth-child(${column})`).allInnerTexts();
    expect(await cells(3)).toEqual([...Array<string>(5).fill("Weight 1"), "Guardian", "Guardian", "–"]);
    expect(await cells(4)).toEqual(["goes", "stays", "stays", "stays", "stays", "stays", "stays", "comes, weight 1"]);
    const { due } = (await (await fetch(new URL(`v1/accounts/${TREASURY}`, fixture.url))).json() as { keys: { waiting: { due: string } } }).keys.waiting;
    expect(await fact(page, "acts")).toContain(`Block ${Number(due).toLocaleString("en-US")}`);
    expect(await fact(page, "signed")).toContain("those who change keys");
    expect([await fact(page, "missing"), await fact(page, "sessions")]).toEqual(["nothing but its wait", "close"]);
    await page.getByText("How to undo it").click();
    const steps = await page.locator(".policy .steps code").allInnerTexts();
    expect(steps[0]).toContain(`walras wallet keys set --account ${TREASURY}`);
    expect(steps).toHaveLength(3);
    await page.close();
  });

  it("is not there where one key signs alone", { timeout: PATIENCE_MS }, async () => {
    const page = await opened(ACCOUNT, { width: 1280 });
    expect(await page.locator(".policy").isVisible()).toBe(false);
    expect(await page.locator("[data-fact=references]").isVisible()).toBe(false);
    await page.close();
  });

  it.each(["light", "dark"] as const)("has no finding of axe in the %s theme, and fits a phone", { timeout: PATIENCE_MS }, async (colorScheme) => {
    for (const width of [1280, 360]) {
      const page = await opened(TREASURY, { width, colorScheme });
      await page.getByText("How to undo it").click();
      await page.evaluate(() => scrollTo(0, 0));
      expect([width, await axeFindings(page)]).toEqual([width, []]);
      expect([width, await page.evaluate(paleTexts)]).toEqual([width, []]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      const folder = process.env["SCREENSHOTS"];
      if (folder) await page.screenshot({ path: `${folder}/policy-${colorScheme}-${width}.png`, fullPage: true });
      await page.close();
    }
  });
});
