/**
 * The purse of the page: its words and codes, and the built page in headless Chromium before a lane of four processes, in turns with
 * the command line.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { addressOf, signTyped } from "@walras/client/ethereum";
import { Ed25519Key, EthereumKey } from "@walras/client/keys";
import { toHex } from "@walras/client/typed";
import type { Browser, Page, Request, Route } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from "vitest";
import type { Trader } from "../src/trade/keys";
import { keyOf } from "../src/purse/accounts";
import { inPageWords } from "../src/purse/desk";
import { qrCode } from "../src/purse/qr";
import { Tally } from "../src/purse/tally";
import { FAST, SETTLED, paidWords, takenWords } from "../src/views/purse-words";
import { LaneNetwork, isBuilt } from "../../sdk/typescript/tests/lane/network";
import { axeFindings, launched, paleTexts, slowed } from "./looks";

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
    page = await slowed(await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage());
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
  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") console.error(`the purse says: ${await purse().innerText()}`);
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

  const balance = async (account: string) => {
    const { balances } = (await (await fetch(`${network.url}/v1/accounts/${account}`)).json()) as { balances: { asset: string; available: string }[] };
    return Number(balances.find(({ asset }) => asset === "EUR")?.available);
  };
  const settledCell = (amount: string) => purse().getByRole("row").filter({ has: page.getByRole("cell", { name: "EUR", exact: true }) }).getByRole("cell", { name: amount, exact: true }).first().waitFor();
  const fillIn = (label: string, text: string) => purse().getByLabel(label, { exact: true }).fill(text);
  const unlock = async (choice: string, button: string, key?: string) => {
    await purse().getByLabel("Trade as").selectOption(choice);
    if (key !== undefined) await fillIn("Private key", key);
    await fillIn("Passphrase", PASSPHRASE);
    await press(button);
    await purse().getByLabel("Passphrase", { exact: true }).waitFor({ state: "hidden" });
  };

  it("takes money from an account of the page and gives it back, once each, also after the page was closed in between", async () => {
    const secret = secp256k1.utils.randomSecretKey();
    const account = addressOf(secret);
    for (const asset of ["USD", "EUR"]) await network.said("wallet", "pay", "--key", "issuer-key.json", "--to", account, "--asset", asset, "--amount", "50");
    await fillIn("Amount to move", "20");
    await purse().getByLabel("Asset to move").selectOption("EUR");
    await press("Deposit");
    await says("Choose an account first");
    await unlock("import", "Import", toHex(secret));
    await press("Deposit");
    await says(/^Deposited 20 EUR from .* It can be spent\.$/);
    await settledCell("27.25");
    expect(await balance(account)).toBe(3_000);
    await looksWell();

    // The page is closed while a deposit is under way: asked again, it is the same bytes.
    const bodies: (Buffer | null)[] = [];
    const hang = (route: Route) => void bodies.push(route.request().postDataBuffer());
    await page.route("**/v1/transactions", hang);
    await fillIn("Amount to move", "5");
    await purse().getByLabel("Asset to move").selectOption("EUR");
    await press("Deposit");
    await expect.poll(() => bodies.length, { timeout: PATIENCE_MS }).toBeGreaterThan(0);
    await page.reload();
    await page.unroute("**/v1/transactions", hang);
    const isPosted = (request: Request) => request.method() === "POST" && request.url().endsWith("/v1/transactions");
    page.on("request", (request) => void (isPosted(request) && bodies.push(request.postDataBuffer())));
    await fillIn("Passphrase", PASSPHRASE);
    await press("Open");
    await settledCell("27.25");
    await unlock("unlock", "Unlock");
    await fillIn("Amount to move", "5");
    await purse().getByLabel("Asset to move").selectOption("EUR");
    await press("Deposit");
    await says(/^Deposited 5 EUR/);
    await settledCell("32.25");
    expect(bodies.length).toBeGreaterThan(1);
    expect(new Set(bodies.map((body) => body?.toString("hex"))).size, "the same bytes").toBe(1);
    expect(await balance(account)).toBe(2_500);

    // And back. A copy of what is posted changes nothing.
    await fillIn("Amount to move", "4");
    await press("Take back");
    await says("The payment is on the ledger");
    await settledCell("28.25");
    expect(await balance(account)).toBe(2_900);
    await network.pay("alice", "send", "--to", account, "--asset", "EUR", "--amount", "3", "--receipt", "home.txt");
    for (let time = 0; time < 2; time += 1) {
      await fillIn("Receipt", readFileSync(join(network.folder, "home.txt"), "utf8"));
      await press("Take it");
      await says("A copy of it changes nothing");
      await expect.poll(() => balance(account), { timeout: PATIENCE_MS }).toBe(3_200);
    }
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await page.evaluate(paleTexts)).toEqual([]);
      await picture(`purse-account-${colorScheme}`);
    }
    await page.setViewportSize({ width: 390, height: 900 });
    await picture("purse-account-phone");
    await page.setViewportSize({ width: 1280, height: 900 });
    expect(complaints).toEqual([]);
  });

  it("is a till: a bill, a tick once its receipt is verified, and the next customer", async () => {
    await press("Open the till");
    await fillIn("Amount to ask for", "3.5");
    await purse().getByLabel("Asset to ask for").selectOption("EUR");
    await press("Show the code");
    await says("Waits for the receipt of 3.5 EUR.");
    const shown = () => purse().locator("code[title^='lane:']").getAttribute("title");
    const bill = (await shown()) ?? "";
    await purse().locator("svg.qr").waitFor();
    await looksWell();
    await picture("till");
    await page.setViewportSize({ width: 390, height: 900 });
    await picture("till-phone");
    await page.setViewportSize({ width: 1280, height: 900 });
    const take = async (file: string) => {
      await fillIn("The customer's receipt", readFileSync(join(network.folder, file), "utf8"));
      await purse().getByLabel("The customer's receipt", { exact: true }).press("Enter");
    };

    // What pays somebody else is no payment; a bill is paid as it asks, or not at all.
    await take("coffee.txt");
    await says("The receipt pays another address than this bill's");
    await expect(network.pay("alice", "send", "--to", bill, "--asset", "EUR", "--amount", "3")).rejects.toThrow(/the address asks for 3.5 EUR, not 3 EUR/);
    await network.pay("alice", "send", "--to", bill, "--no-settle", "--receipt", "till.txt");
    await take("till.txt");
    await says("Paid: 3.5 EUR.");
    const verified = await purse().getByText(/^Verified in/).innerText();
    expect(Number(verified.match(/\d+/)?.[0])).toBeLessThan(1_000);
    await says(SETTLED);
    expect(await purse().getByLabel("The customer's receipt", { exact: true }).isVisible()).toBe(false);
    await looksWell();
    await picture("till-paid");
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await page.evaluate(paleTexts)).toEqual([]);
      await picture(`till-paid-${colorScheme}`);
    }

    // The next customer has another address: the receipt before does not count.
    await press("Next customer");
    await fillIn("Amount to ask for", "3.5");
    await press("Show the code");
    expect(await shown()).not.toBe(bill);
    await take("till.txt");
    await says("The receipt pays another address than this bill's");
    await press("Close the till");
    await settledCell("31.75");

    // A purse of the page reads what a bill of the command line asks for.
    const { address } = (await network.pay("alice", "address", "--asset", "EUR", "--amount", "1.25")) as { address: string };
    await fillIn("To", address.toUpperCase());
    await says("The address asks for 1.25 EUR.");
    expect(await purse().getByLabel("Amount", { exact: true }).inputValue()).toBe("1.25");
    await fillIn("Amount", "1.2");
    await press("Pay");
    await says("The address asks for 1.25 EUR, not 1.2 EUR");
    await fillIn("Amount", "1.25");
    await press("Pay");
    await says("Paid 1.25 EUR to");
    await settledCell("30.5");
    expect(complaints).toEqual([]);
  });

  it("says what is wrong, where, and what helps; money is where it was", async () => {
    const coffee = readFileSync(join(network.folder, "coffee.txt"), "utf8").trim();
    const elsewhere = coffee.replace(/^(WALRAS:....)../, "$1FF");
    for (const [text, words] of [
      [coffee, "It was here already, and counts once."],
      [elsewhere, "The receipt is of another network than this purse: open the purse of that network."],
      [readFileSync(join(network.folder, "back.txt"), "utf8"), "which does not belong to this purse"],
    ] as const) {
      await fillIn("Receipt", text);
      await press("Take it");
      await says(words);
    }
    await fillIn("To", "lane:" + "0".repeat(72));
    await fillIn("Amount", "1");
    await press("Pay");
    await says("The address is mistyped or belongs to another lane: copy it again from its source.");
    await settledCell("30.5");

    // A second page of the browser has the same purse.
    const other = await page.context().newPage();
    await other.goto(`${network.url}/#/lane`);
    await other.locator("section[aria-label=Purse]").getByLabel("Passphrase").fill(PASSPHRASE);
    await other.getByRole("button", { name: "Open", exact: true }).click();
    await other.getByText("another program uses this purse; wait until it has ended, or close it there").waitFor({ timeout: PATIENCE_MS });
    await other.close();
    expect(complaints).toEqual([]);
  });

  it("reads a code by the live camera, once, and says where a browser reads none", async () => {
    await says("This browser reads no codes: paste the text, or use a reader that types it.");
    await page.addInitScript(() => {
      const seen = window as unknown as { held: string; isDenied: boolean; streams: MediaStream[] };
      Object.assign(seen, { held: "", isDenied: true, streams: [] });
      navigator.mediaDevices.getUserMedia = async () => {
        if (seen.isDenied) throw new DOMException("no", "NotAllowedError");
        const paper = document.createElement("canvas");
        setInterval(() => paper.getContext("2d")?.fillRect(0, 0, 9, 9), 40);
        seen.streams.push(paper.captureStream());
        return seen.streams.at(-1)!;
      };
      window.BarcodeDetector = class {
        async detect(image: ImageBitmap | HTMLVideoElement) {
          return seen.held && image instanceof HTMLVideoElement && image.videoWidth > 0 ? [{ rawValue: seen.held }] : [];
        }
      };
    });
    await page.reload();
    await fillIn("Passphrase", PASSPHRASE);
    await press("Open");
    // What the page does by itself must be over: a press meanwhile does nothing.
    await settledCell("30.5");
    await page.waitForFunction(() => !document.querySelector("section[aria-label=Purse] button:disabled"));
    await press("Open the till");
    await fillIn("Amount to ask for", "0.5");
    await purse().getByLabel("Asset to ask for").selectOption("EUR");
    await press("Show the code");
    const bill = (await purse().locator("code[title^='lane:']").getAttribute("title")) ?? "";
    await network.pay("alice", "send", "--to", bill, "--no-settle", "--receipt", "camera.txt");
    await press("Use the camera");
    await says("The browser does not let this page use the camera: allow it beside the page's address");
    await page.evaluate(() => void ((window as unknown as { isDenied: boolean }).isDenied = false));
    await press("Use the camera");
    await purse().getByLabel("What the camera sees").waitFor();
    await looksWell();
    await press("Stop the camera");
    await press("Use the camera");
    await page.evaluate((text) => void Object.assign(window, { held: text }), readFileSync(join(network.folder, "camera.txt"), "utf8"));
    await says("Paid: 0.5 EUR.");
    expect(await purse().getByLabel("What the camera sees").count()).toBe(0);
    const ended = await page.evaluate(() =>
      (window as unknown as { streams: MediaStream[] }).streams.map((stream) => stream.getTracks().every(({ readyState }) => readyState === "ended")),
    );
    expect(ended, "the camera is off").toEqual([true, true]);
    await press("Close the till");
    await settledCell("31");
    expect(complaints).toEqual([]);
  });
});

test("a till counts what pays its bill, each output once, and says what is missing or more", () => {
  const address = (digit: string, rest: string) => "lane:" + digit.repeat(64) + rest;
  const bill = address("a", "01000000" + "0".repeat(16) + "12345678");
  const paid = (output: string, amount: string, to = address("A", "99999999"), asset = "EUR") => ({ output, to, asset, amount, home: 1n });
  const tally = new Tally(bill, { asset: "EUR", amount: "12.5" });
  expect(tally.words).toBe("Waits for the receipt of 12.5 EUR.");
  for (const other of [paid("0x1", "99", address("b", "99999999")), paid("0x2", "99", undefined, "USD")]) {
    expect(tally.isPaidBy([other])).toBe(false);
    tally.add([other]);
  }
  expect(tally.words).toBe("Waits for the receipt of 12.5 EUR.");
  for (const one of [paid("0x3", "5"), paid("0x3", "5")]) {
    expect(tally.isPaidBy([one])).toBe(true);
    tally.add([one]);
  }
  expect([tally.isPaid, tally.words]).toEqual([false, "7.5 EUR of 12.5 EUR are missing: ask for another receipt."]);
  tally.add([paid("0x4", "7.5")]);
  expect([tally.isPaid, tally.words]).toEqual([true, "Paid: 12.5 EUR."]);
  tally.add([paid("0x5", "0.01")]);
  expect(tally.words).toBe("Paid: 12.5 EUR, and 0.01 EUR more than asked for.");
});

test("a deposit is signed by the page's account as by a wallet's key, and never by a session key", async () => {
  const secret = new Uint8Array(32).fill(5);
  const own = new EthereumKey(secret);
  const trader: Trader = { kind: "local", name: "", address: own.address, sign: async (data) => signTyped(secret, data) };
  const body = { chain: 31337n, account: own.address, sequence: 1n, until: 99n, operation: { kind: "Withdraw", to: "0x" + "ab".repeat(32), asset: 1, amount: 7n } } as const;
  const network = "0x" + "4e".repeat(32);
  expect(toHex((await keyOf(trader).sign(body, network)).bytes)).toBe(toHex((await own.sign(body, network)).bytes));
  expect(() => keyOf({ ...trader, session: { slot: 1, key: Ed25519Key.generate() } })).toThrow("choose the account's own key");
});

test("what clients call methods, the page calls by its buttons", () => {
  expect(inPageWords("payment 0x1 is not confirmed (x); `settle()` sends the same bytes again")).toBe("Payment 0x1 is not confirmed (x); Settle sends the same bytes again.");
  for (const said of ["there is nothing to redeem: give an asset and an amount, or receipts to `redeemReceipts`", "its result is unknown: `settle()` takes it into the purse. To do it twice, give `again: true`"]) {
    expect(inPageWords(said)).not.toContain("`");
  }
});
