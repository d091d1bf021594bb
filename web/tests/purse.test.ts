/**
 * The purse of the page: its words and codes, and the built page in headless Chromium before a lane of four processes, in turns with
 * the command line.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHash } from "node:crypto";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { qrCode } from "../src/purse/qr";
import { FAST, SETTLED, paidWords, takenWords } from "../src/views/purse";
import { LaneNetwork, isBuilt } from "../../sdk/typescript/tests/lane/network";
import { axeFindings, launched, paleTexts } from "./looks";

const PASSPHRASE = "a long passphrase";
const PATIENCE_MS = 180_000;

const KNOWN = {
  mask: 0,
  rows: [
    "111111100010101111111",
    "100000100000101000001",
    "101110101010001011101",
    "101110100000101011101",
    "101110100101101011101",
    "100000100111001000001",
    "111111101010101111111",
    "000000001010000000000",
    "111011111010111000100",
    "111011001011000010001",
    "111010110111001011000",
    "100110010101110101110",
    "000111110111001110101",
    "000000001010001000101",
    "111111101000100101100",
    "100000101010001101000",
    "101110101100101111111",
    "101110100011010100010",
    "101110101011011101001",
    "100000101001110001011",
    "111111101011011100001",
  ],
};
const READ_BACK = "f38023e7d7d9a349d9a41f2bb4cc75a2ca3674bae4d5cc908a0f86f43157fed1";

test("fast and settled are told apart in words", () => {
  const sent = { to: "lane:" + "ab".repeat(36), asset: "EUR", amount: "12.5", payments: [{ payment: "0x1", fastMs: 41.6, settledMs: 9 }], receipt: "WALRAS:01", unsettled: [] };
  expect(paidWords(sent)).toEqual([expect.stringMatching(/^Paid 12.5 EUR to lane:.*, confirmed in 42 ms\.$/), SETTLED, expect.stringContaining("Give the recipient the receipt")]);
  const fast = paidWords({ ...sent, receipt: "", payments: [{ payment: "0x1", fastMs: 1, settledMs: null }], unsettled: ["too few answers"] });
  expect(fast[1]).toBe(`${FAST} Not settled yet: too few answers.`);
  expect(fast[2]).toContain("its money stays here");
  const taken = { output: "0x2", asset: "EUR", amount: "3", isNew: false, isSettled: true };
  expect(takenWords(taken)).toBe(`Received 3 EUR. It was here already, and counts once. ${SETTLED}`);
  expect(takenWords({ ...taken, isNew: true, isSettled: false })).toBe(`Received 3 EUR. ${FAST}`);
});

test("codes are those of the standard, of every size up to the longest text", () => {
  const rows = (text: string, mask?: number) => qrCode(text, mask)?.map((row) => row.map((dark) => (dark ? "1" : "0")).join("")) ?? null;
  // Written by another program (zxing-cpp), with the mask that it chose.
  expect(rows("HELLO WORLD", KNOWN.mask)).toEqual(KNOWN.rows);
  expect(rows("lane:", 0)).toBeNull();
  expect(rows("A".repeat(4_297))).toBeNull();
  expect(rows("A".repeat(4_296))?.length).toBe(177);
  const digest = createHash("sha256").update((rows("WALRAS:" + "0123456789ABCDEF".repeat(60), 3) ?? []).join("\n")).digest("hex");
  expect(digest, "read back by another program").toBe(READ_BACK);
});

describe.skipIf(!isBuilt)("the page's purse", () => {
  let network: LaneNetwork;
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];
  beforeAll(async () => {
    network = await LaneNetwork.start();
    browser = await launched();
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.setDefaultTimeout(PATIENCE_MS);
    // A block that has no certificate yet is looked for, and not there.
    const isTrouble = (text: string) => !text.includes("status of 404");
    page.on("console", (message) => void (message.type() === "error" && isTrouble(message.text()) && complaints.push(message.text())));
    page.on("pageerror", (error) => complaints.push(error.message));
  });
  afterAll(async () => {
    await browser?.close();
    await network?.stop();
  });
  const purse = () => page.locator("section[aria-label=Purse]");
  const says = (text: string | RegExp) => purse().getByText(text).first().waitFor();
  const press = (name: string) => purse().getByRole("button", { name, exact: true }).click();
  const picture = async (name: string) => {
    const folder = process.env["SCREENSHOTS"];
    if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  };
  /** Nothing is under way then. */
  const looksWell = async () => {
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await axeFindings(page)).toEqual([]);
      expect(await page.evaluate(paleTexts)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `nothing is cut at ${width}`).toBe(true);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  };

  it("is made, is paid by the command line, pays back, and is there after the page was loaded again", async () => {
    await network.pay("alice", "new");
    await network.pay("alice", "deposit", "--key", "issuer-key.json", "--asset", "EUR", "--amount", "100");
    await page.goto(`${network.url}/#/lane`);
    await purse().getByLabel("Passphrase").fill("short");
    await press("Make a purse");
    await says("A passphrase has at least");
    await looksWell();
    await purse().getByLabel("Passphrase").fill(PASSPHRASE);
    await press("Make a purse");
    await says("The purse is empty.");

    // It is paid: an address as text and code, then the receipt that is pasted.
    await press("New address");
    const address = (await purse().locator("code[title^='lane:']").getAttribute("title")) ?? "";
    await purse().locator("svg.qr").first().waitFor();
    await network.pay("alice", "send", "--to", address, "--asset", "EUR", "--amount", "12.50", "--receipt", "coffee.txt");
    await purse().getByLabel("Receipt", { exact: true }).fill(readFileSync(join(network.folder, "coffee.txt"), "utf8"));
    await press("Take it");
    await says(`Received 12.5 EUR. ${SETTLED}`);
    await purse().getByLabel("Receipt", { exact: true }).fill("EUR 5");
    await press("Take it");
    await says("a receipt begins with WALRAS:");
    await looksWell();

    // It pays: the command line takes its receipt.
    const { address: there } = (await network.pay("alice", "address")) as { address: string };
    await purse().getByLabel("To", { exact: true }).fill(there);
    await purse().getByLabel("Amount", { exact: true }).fill("5.25");
    await press("Pay");
    await says("Give the recipient the receipt");
    await says(SETTLED);
    const receipt = await purse().getByLabel("The receipt", { exact: true }).inputValue();
    writeFileSync(join(network.folder, "back.txt"), receipt + "\n");
    const [taken] = (await network.pay("alice", "receive", "back.txt"))["received"] as { amount: string; settled: boolean }[];
    expect(taken).toMatchObject({ amount: "525", settled: true });
    await looksWell();

    await picture("purse");

    // It is kept: locked, exported, and opened again after the page was loaded again.
    await press("Export");
    await purse().getByLabel("The whole purse as text").waitFor();
    expect(await purse().getByLabel("The whole purse as text").inputValue()).toContain("walras-purse");
    await press("Lock");
    await purse().getByRole("button", { name: "Open", exact: true }).waitFor();
    await page.reload();
    await purse().getByLabel("Passphrase").fill("a wrong passphrase");
    await press("Open");
    await says("The passphrase is wrong");
    await looksWell();
    await purse().getByLabel("Passphrase").fill(PASSPHRASE);
    await press("Open");
    await purse().getByRole("cell", { name: "7.25", exact: true }).first().waitFor();
    expect(complaints).toEqual([]);
  });
});
