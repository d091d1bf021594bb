/**
 * The purse of a page in headless Chromium, for tests in other languages: it is made from a key of Ethereum whose account pays
 * into it, and pays an address.
 * `node tests/paying.mjs URL KEY PASSPHRASE ASSET DEPOSIT TO AMOUNT` prints the receipt.
 */
import { chromium } from "playwright-core";

const [url, key, passphrase, asset, deposit, to, amount] = process.argv.slice(2);
const PATIENCE_MS = 180_000;
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const purse = page.locator("section[aria-label=Purse]");
  const label = (name) => purse.getByLabel(name, { exact: true });
  const press = (name) => purse.getByRole("button", { name, exact: true }).click();
  const says = (text) => purse.getByText(text).first().waitFor();

  await page.goto(`${url}/#/lane`);
  await label("Passphrase").fill(passphrase);
  await press("Make a purse");
  await says("The purse is empty.");

  await label("Trade as").selectOption("import");
  await label("Private key").fill(key);
  await label("Passphrase").fill(passphrase);
  await press("Import");
  await label("Passphrase").waitFor({ state: "hidden" });
  await label("Amount to move").fill(deposit);
  await purse.getByLabel("Asset to move").selectOption(asset);
  await press("Deposit");
  await says("It can be spent.");

  await label("To").fill(to);
  await label("Amount").fill(amount);
  await press("Pay");
  await says("Give the recipient the receipt");
  console.log(await label("The receipt").inputValue());
} finally {
  await browser.close();
}
