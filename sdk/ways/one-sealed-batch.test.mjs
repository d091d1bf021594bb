// Orders by the command line, Python, ccxt, the page and TypeScript, all sealed, trade in one batch that no validator could read before
// it was fixed. `make test-ways` starts two validators with a sealing key for it, and nobody else trades.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client, Ed25519Key, EthereumKey, SealError } from "../typescript/dist/src/index.js";
import { seal } from "../typescript/dist/src/sealing.js";
import { fromHex, toHex } from "../typescript/dist/src/typed.js";

const SERVER = process.env.WALRAS_HTTP;
const WALRAS = process.env.WALRAS_BINARY;
const AT = { amount: "1", price: "0.5" };
// Accounts that every tool for development knows, each with funds of the demo.
const KEYS = {
  bank: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  Python: "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  ccxt: "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  TypeScript: "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  page: "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  seller: "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
};
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const run = promisify(execFile);
const get = async (path) => (await fetch(`${SERVER}/v1/${path}`)).json();
const bank = new Client(SERVER, { key: new EthereumKey(KEYS.bank) });
const folder = mkdtempSync(join(tmpdir(), "walras-sealed-"));

/** A fresh account that pays for the envelopes of another one. */
async function payer() {
  const key = Ed25519Key.generate();
  await bank.pay(key.address, "USD", "50");
  return { key, client: new Client(SERVER, { key }) };
}
const seedOf = () => [...crypto.getRandomValues(new Uint8Array(32))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

async function python(code, key) {
  const seed = seedOf();
  await bank.pay(new Ed25519Key(seed).address, "USD", "50");
  return run(here("../python/.venv/bin/python"), ["-c", code], { env: { ...process.env, KEY: key, SEED: seed } });
}

const WAYS = {
  async command() {
    const key = join(folder, "alice.json");
    const env = { ...process.env, WALRAS_PASSPHRASE: "of this test", WALRAS_SERVER: SERVER };
    await run(WALRAS, ["wallet", "new", "--key", key], { env });
    const address = (await run(WALRAS, ["wallet", "address", "--key", key], { env })).stdout.trim().toLowerCase();
    await bank.pay(address, "USD", "50");
    const order = ["--market", "EUR/USD", "--amount", AT.amount, "--price", AT.price, "--sealed"];
    const { stdout } = await run(WALRAS, ["wallet", "buy", "--key", key, ...order], { env });
    assert.match(stdout, /envelope 0x[0-9a-f]{64} is open\ncommitted in block \d+: sold 0.* rests/);
    return address;
  },
  async Python() {
    const code = `
import os
from walras.client import Client, Ed25519Key, EthereumKey
with Client("${SERVER}", key=Ed25519Key(os.environ["SEED"])) as payer:
    with Client("${SERVER}", key=EthereumKey(os.environ["KEY"]), payer=payer) as client:
        fate = client.buy("EUR/USD", "${AT.amount}", "${AT.price}", sealed=True)
        assert fate.outcome.result == "offered", fate`;
    await python(code, KEYS.Python);
    return new EthereumKey(KEYS.Python).address;
  },
  async ccxt() {
    const code = `
import os
import walras.ccxt
options = {"payer": os.environ["SEED"]}
exchange = walras.ccxt.walras({"privateKey": os.environ["KEY"], "urls": {"api": "${SERVER}"}, "options": options})
exchange.load_markets()
exchange.create_order("EUR/USD", "limit", "buy", ${AT.amount}, ${AT.price}, {"sealed": True})
exchange.close()`;
    await python(code, KEYS.ccxt);
    return new EthereumKey(KEYS.ccxt).address;
  },
  /** As a session key, which the page makes first: it signs the envelope, too. */
  async page() {
    const { chromium } = createRequire(here("../../web/package.json"))("playwright-core");
    const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
    const browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
    const { address } = new EthereumKey(KEYS.page);
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(120_000);
      const pick = async (option) => page.selectOption("#trader", { label: await page.locator("#trader option", { hasText: option }).first().innerText() });
      await page.goto(`${SERVER}/#/account/${address}`);
      await page.locator(".session-keys summary").click();
      await pick("Public demo account 5");
      await page.locator(".session-form .cap").nth(1).waitFor();
      await page.getByLabel("The most of cap 1").fill("30");
      await page.getByLabel("The most of cap 2").fill("20");
      await page.fill("#session-hours", "12");
      await page.fill("#session-passphrase", "a passphrase of a session");
      await page.getByRole("button", { name: "Add key" }).click();
      await page.locator(".session-keys tbody tr", { hasText: "in this browser" }).getByText("Live").waitFor();
      await pick("Session key 0x");
      await page.fill("#passphrase", "a passphrase of a session");
      await page.click(".key-form button");
      await page.getByText("A session key cannot add or revoke keys").waitFor();
      await page.evaluate((to) => (location.hash = to), "#/market/EUR/USD");
      // The switch is on where a key is in force.
      await page.locator("#order-sealed:checked:enabled").waitFor();
      await page.check("input[name=side][value=buy]", { force: true });
      await page.fill("#order-amount", AT.amount);
      await page.fill("#order-price", AT.price);
      await page.locator(".preview", { hasText: "No node is asked" }).waitFor();
      await page.click(".ticket .place");
      await page.locator(".own-orders tbody tr", { hasText: "\u{1f512} sealed" }).getByText("rest", { exact: false }).first().waitFor();
    } finally {
      await browser.close();
    }
    return address;
  },
  async TypeScript() {
    const client = new Client(SERVER, { key: new EthereumKey(KEYS.TypeScript), payer: (await payer()).client });
    const fate = await client.buy("EUR/USD", AT.amount, AT.price, { sealed: true });
    assert.equal(fate.outcome?.result, "offered", fate.message);
    return new EthereumKey(KEYS.TypeScript).address;
  },
};

/** A key needs heights, and heights need transactions. */
async function untilThereIsAKey() {
  const refused = new Client(SERVER, { key: Ed25519Key.generate() }).sell("EUR/USD", "1", "0.4", { sealed: true });
  if ((await get("seal")).in_force === null) await assert.rejects(refused, SealError);
  else await refused.catch(() => undefined);
  for (let paid = 0; (await get("seal")).in_force === null; paid += 1) {
    assert.ok(paid < 600, `no key: ${JSON.stringify(await get("seal"))}`);
    await bank.pay(new EthereumKey(KEYS.seller).address, "USD", "0.01");
  }
}

test("sealed orders of every way in trade in one batch, each with the name of its envelope", async (t) => {
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  assert.ok(SERVER && WALRAS, "WALRAS_HTTP or WALRAS_BINARY is not set: run `make test-ways`");
  await untilThereIsAKey();
  const accounts = [];
  for (const [name, place] of Object.entries(WAYS)) {
    const account = (await place()).toLowerCase();
    const { offers } = await get(`accounts/${account}/offers`);
    assert.equal(offers.length, 1, `${name}: ${JSON.stringify(offers)}`);
    accounts.push([name, account]);
  }
  const seller = new Client(SERVER, { key: new EthereumKey(KEYS.seller), payer: (await payer()).client });
  const sold = await seller.sell("EUR/USD", "60", "0.4", { life: "one batch", sealed: true });
  assert.equal(sold.state, "executed", sold.message);
  const heights = new Set();
  for (const [name, account] of accounts) {
    const { fills } = await get(`accounts/${account}/fills`);
    assert.equal(fills.length, 1, `${name}: ${JSON.stringify(fills)}`);
    heights.add(fills[0].height);
    const { orders } = await get(`accounts/${account}/orders`);
    assert.equal(orders.length, 1, name);
    const envelope = await get(`transactions/${orders[0].sealed_by}`);
    assert.equal(envelope.outcome.became, "opened", name);
    assert.deepEqual(envelope.inside.map((one) => one.id), [orders[0].id], name);
    const order = await get(`transactions/${orders[0].id}`);
    assert.deepEqual([order.account, order.sealed_by], [account, orders[0].sealed_by], name);
  }
  assert.deepEqual([...heights], [sold.height], "several batches");
});

test("what is wrong in an envelope, or with it, has a name, and its sender pays", async () => {
  await untilThereIsAKey();
  const { key, client } = await payer();
  const [{ chain, network }, state] = [await get("limits"), await get("seal")];
  const committee = state.keys.find((one) => one.number === state.in_force);
  const until = BigInt(state.height + 200);
  const body = (sequence, operation) => ({ chain: BigInt(chain), account: key.address, sequence, until, operation });
  const of = (sequence) => ({ network: fromHex(network), payer: fromHex(key.address), sequence });

  async function bring(sequence, number, inside, spoil = false) {
    const terms = { ...of(sequence), signer: fromHex(key.public), key: BigInt(number), until };
    const { size, point, box } = seal(fromHex(committee.key), terms, inside.map((one) => one.bytes), crypto.getRandomValues(new Uint8Array(32)));
    if (spoil) box[3] ^= 1;
    const { bytes } = await key.sign(body(sequence, { kind: "Sealed", key: BigInt(number), size, point: toHex(point), sealed: toHex(box) }), network);
    const headers = { "content-type": "application/octet-stream" };
    const { id, outcome } = await (await fetch(`${SERVER}/v1/transactions?wait=committed`, { method: "POST", headers, body: bytes })).json();
    return { outcome, inside: (await get(`transactions/${id}`)).inside ?? [] };
  }

  const offer = { kind: "CreateOffer", sell: 0, buy: 1, amount: 500_000n, limit: "4" };
  const held = [
    await key.signInside(body(1n, offer), of(9n)),
    await key.sign(body(2n, offer), network),
    await key.signInside(body(3n, offer), of(8n)),
    await key.signInside(body(4n, { kind: "Pay", to: key.address, asset: 0, amount: 5n }), of(9n)),
  ];
  const opened = await bring(9n, committee.number, held);
  assert.deepEqual(opened.outcome, { result: "sealed", became: "opened", operations: 4 });
  assert.deepEqual(opened.inside.map(({ outcome }) => outcome.code ?? outcome.result), ["offered", "bad_signature", "bad_signature", "not_sealable"]);
  assert.match(opened.inside[1].outcome.message, /signed as a plain transaction, which counts in no envelope/);
  assert.match(opened.inside[2].outcome.message, /its signature is not for this envelope/);
  const had = (await client.account()).balances.find(({ asset }) => asset === "USD").available;
  assert.deepEqual((await bring(10n, committee.number, [], true)).outcome, { result: "sealed", became: "garbage", operations: 0 });
  const left = (await client.account()).balances.find(({ asset }) => asset === "USD").available;
  assert.ok(Number(left) < Number(had), "garbage pays");
  assert.equal((await bring(11n, committee.number + 7, [])).outcome.code, "sealed_key");
  assert.equal((await client.account()).balances.find(({ asset }) => asset === "USD").available, left, "what stays closed costs nothing");
});
