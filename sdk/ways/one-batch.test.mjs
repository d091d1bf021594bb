// The same order by every way in, all filled in one batch: the page, Python, TypeScript, ccxt, curl with `prepare`,
// and the typed data of a browser's wallet. `make test-ways` starts an exchange without traders for it: the six bids
// rest until one offer comes that meets them all.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client, Ed25519Key, EthereumKey } from "../typescript/dist/src/index.js";

const SERVER = process.env.WALRAS_HTTP;
const AT = { amount: "1", price: "0.5" };
// Accounts that every tool for development knows, each with funds of the demo.
const KEYS = {
  page: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  Python: "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  ccxt: "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  TypeScript: "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  wallet: "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  seller: "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
};
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const run = promisify(execFile);
const get = async (path) => (await fetch(`${SERVER}/v1/${path}`)).json();
const client = (key) => new Client(SERVER, { key: new EthereumKey(key) });
const seller = client(KEYS.seller);

async function curl(path, body) {
  const { stdout } = await run("curl", ["--silent", "--fail-with-body", "--json", JSON.stringify(body), `${SERVER}/v1/${path}`]);
  return JSON.parse(stdout);
}

const python = (code, key) => run(here("../python/.venv/bin/python"), ["-c", code], { env: { ...process.env, KEY: key } });

/** What a body without a library says: half a dollar for at least two euros each. */
const operation = { type: "create_offer", sell: "USD", buy: "EUR", amount: "500000", limit: "2" };

const WAYS = {
  async page() {
    const { chromium } = createRequire(here("../../web/package.json"))("playwright-core");
    const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
    const browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
    try {
      const page = await browser.newPage();
      await page.goto(`${SERVER}/#/market/EUR/USD`);
      const account = page.locator("#trader option", { hasText: "Public demo account 1" });
      await page.selectOption("#trader", { label: await account.innerText() });
      await page.check("input[name=side][value=buy]", { force: true });
      await page.fill("#order-amount", AT.amount);
      await page.fill("#order-price", AT.price);
      await page.click(".ticket .place");
      await page.locator(".own-orders tbody").getByText("rest", { exact: false }).first().waitFor();
    } finally {
      await browser.close();
    }
    return new EthereumKey(KEYS.page).address;
  },
  async Python() {
    const code = `
import os
from walras.client import Client, EthereumKey
with Client("${SERVER}", key=EthereumKey(os.environ["KEY"])) as client:
    client.buy("EUR/USD", "${AT.amount}", "${AT.price}")`;
    await python(code, KEYS.Python);
    return new EthereumKey(KEYS.Python).address;
  },
  async ccxt() {
    const code = `
import os
import walras.ccxt
exchange = walras.ccxt.walras({"privateKey": os.environ["KEY"], "urls": {"api": "${SERVER}"}})
exchange.load_markets()
exchange.create_order("EUR/USD", "limit", "buy", ${AT.amount}, ${AT.price})
exchange.close()`;
    await python(code, KEYS.ccxt);
    return new EthereumKey(KEYS.ccxt).address;
  },
  async TypeScript() {
    await client(KEYS.TypeScript).buy("EUR/USD", AT.amount, AT.price);
    return new EthereumKey(KEYS.TypeScript).address;
  },
  async curl() {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    // The last 32 bytes of both encodings are the key itself (RFC 8410).
    const seed = privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32);
    const key = `0x${publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex")}`;
    const account = new Ed25519Key(seed).address;
    await seller.pay(account, "USD", "10");
    const prepared = await curl("transactions/prepare", { account, key, operation });
    assert.match(prepared.says, /sells 0\.5 USD for at least 2 EUR each/);
    const signature = `0x${sign(null, Buffer.from(prepared.signing_bytes.slice(2), "hex"), privateKey).toString("hex")}`;
    await curl("transactions?wait=committed", { transaction: prepared.unsigned, signature });
    return account;
  },
  async wallet() {
    const { Wallet } = createRequire(here("../ethereum/package.json"))("ethers");
    const wallet = new Wallet(KEYS.wallet);
    const { unsigned, typed_data } = await curl("typed-data", { account: wallet.address, operation });
    const { EIP712Domain: _, ...types } = typed_data.types;
    const signature = await wallet.signTypedData(typed_data.domain, types, typed_data.message);
    await curl("transactions?wait=committed", { transaction: unsigned, signature });
    return wallet.address;
  },
};

test("orders of every way in rest in one book and are filled in one batch", async () => {
  assert.ok(SERVER, "WALRAS_HTTP is not set: run `make test-ways`");
  assert.ok(existsSync(here("../python/.venv/bin/python")), "the Python package is not installed: run `make test-ways`");
  const accounts = [];
  for (const [name, place] of Object.entries(WAYS)) {
    const account = await place();
    const { offers } = await get(`accounts/${account.toLowerCase()}/offers`);
    assert.equal(offers.length, 1, `${name}: ${JSON.stringify(offers)}`);
    accounts.push([name, account.toLowerCase()]);
  }
  const sold = await seller.sell("EUR/USD", "60", "0.4", { life: "one batch" });
  assert.equal(sold.state, "executed");
  const heights = new Set();
  for (const [name, account] of accounts) {
    const { fills } = await get(`accounts/${account}/fills`);
    assert.equal(fills.length, 1, `${name}: ${JSON.stringify(fills)}`);
    assert.deepEqual((await get(`accounts/${account}/offers`)).offers, [], name);
    heights.add(fills[0].height);
  }
  assert.equal(heights.size, 1, `several batches: ${[...heights]}`);
});
