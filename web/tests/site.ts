/**
 * The page in a browser, before the fixture exchange or, with `WALRAS_URL`, before a running node: what the tests of its views
 * share. Whatever must come is waited for with patience; what must not come is never waited for.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { startFixture, type Fixture } from "./fixture.mjs";
import { launched, slowed } from "./looks";

export const PATIENCE_MS = 180_000;
export const given = process.env["WALRAS_URL"];

export class Site {
  browser!: Browser;
  page!: Page;
  base = "";
  fixture: Fixture | null = null;
  complaints: string[] = [];

  /** Opens and closes with the tests of the file that calls this. */
  static ofTests(viewport = { width: 1280, height: 800 }): Site {
    const site = new Site();
    beforeAll(async () => {
      if (!given && !existsSync(new URL("../dist/index.html", import.meta.url))) throw new Error("web/dist is missing: npm run build");
      site.fixture = given ? null : await startFixture({ interval_ms: 400 });
      site.base = given ? given.replace(/\/*$/, "/") : site.fixture!.url;
      site.browser = await launched();
    });
    afterAll(async () => {
      await site.browser?.close();
      await site.fixture?.close();
    });
    beforeEach(() => site.renew({ viewport }));
    afterEach(async ({ task }) => {
      if (task.result?.state === "fail") console.error(`the page says: ${(await site.told()).join(" | ")}`);
      await site.page.close();
    });
    return site;
  }

  /** A fresh page of these properties in the place of the one before; in a context of its own, if none is given. */
  async renew(options: Parameters<Browser["newPage"]>[0], script?: () => void, context: { newPage: Browser["newPage"] } = this.browser): Promise<Page> {
    if (this.page && !this.page.isClosed()) await this.page.close();
    this.complaints = [];
    this.page = this.watched(await slowed(await context.newPage(options)));
    if (script) await this.page.addInitScript(script);
    return this.page;
  }

  /** A page with patience, whose complaints are noted. */
  watched(page: Page): Page {
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && this.complaints.push(message.text()));
    page.on("pageerror", (error) => this.complaints.push(error.message));
    return page;
  }

  open = (hash: string) => this.page.goto(this.base + hash);
  live = () => this.page.waitForSelector(".state[data-state=live]");
  get = async <T>(path: string): Promise<T> => (await (await fetch(new URL(`v1/${path}`, this.base))).json()) as T;
  /** What a reader of a failure would look at first: its state, notices, and own orders. */
  told = () => this.page.locator(".state, .notice:not([hidden]), .own-orders tbody tr").evaluateAll((found) => found.map((one) => one.textContent ?? ""));
  texts = (selector: string) => this.page.locator(selector).allInnerTexts();

  async picture(name: string): Promise<void> {
    const folder = process.env["SCREENSHOTS"];
    if (folder) await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }

  /** Waits until `check` holds; the message says what was awaited. */
  until = async (what: string, check: () => Promise<boolean>): Promise<void> => {
    const deadline = Date.now() + PATIENCE_MS;
    while (!(await check())) {
      if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`);
      await this.page.waitForTimeout(50);
    }
  };

  /** Trades as a public account of a demo. */
  async trade(number: number): Promise<void> {
    const option = this.page.locator("#trader option", { hasText: `Public demo account ${number}` });
    await this.page.selectOption("#trader", { label: await option.innerText() });
  }

  /** How far the page reaches beyond its window: to the right, and below. */
  beyond = () =>
    this.page.evaluate(() => {
      const main = document.querySelector("main")!;
      const { scrollWidth, scrollHeight } = document.documentElement;
      return { right: Math.max(scrollWidth, main.scrollWidth) - innerWidth, below: Math.max(scrollHeight - innerHeight, main.scrollHeight - main.clientHeight) };
    });
}
