// Native transactions signed as typed data, by viem and by ethers: a payment, and two offers that fill each other.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Signature, TypedDataEncoder, Wallet } from "ethers";
import { createWalletClient, custom, hashTypedData } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const server = process.env.WALRAS_HTTP;
const vectors = JSON.parse(readFileSync(new URL("../../docs/vectors.json", import.meta.url))).typed_data;
const viem = privateKeyToAccount("0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e");
const ethers = new Wallet("0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356");
const stranger = "0x00000000000000000000000000000000000057a9";

async function call(path, body) {
  const request = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(`${server}${path}`, request);
  return { http: answer.status, ...(await answer.json()) };
}

const describe = (account, operation) => call("/v1/typed-data", { account: account.address, operation });
const submit = (unsigned, signature) =>
  call("/v1/transactions?wait=committed", { transaction: unsigned, signature });
const byViem = ({ types, primaryType, domain, message }) =>
  viem.signTypedData({ types, primaryType, domain, message });

function byEthers({ types: { EIP712Domain, ...types }, domain, message }) {
  assert.equal(EIP712Domain.length, 4);
  return ethers.signTypedData(domain, types, message);
}

async function balance(account, asset) {
  const { balances } = await call(`/v1/accounts/${account.address?.toLowerCase() ?? account}`);
  const found = balances?.find((one) => one.asset === asset);
  return BigInt(found?.available ?? 0);
}

test("the published vectors are what both libraries make of them", async () => {
  assert.equal(vectors.length, 58);
  for (const { typed_data, hash, signature, key } of vectors) {
    const { types: { EIP712Domain: _, ...types }, domain, message } = typed_data;
    assert.equal(hashTypedData(typed_data), hash);
    assert.equal(TypedDataEncoder.hash(domain, types, message), hash);
    const signed = await new Wallet(key).signTypedData(domain, types, message);
    assert.equal(Signature.from(signed).compactSerialized, signature);
    assert.equal(await privateKeyToAccount(key).signTypedData(typed_data), signed);
  }
});

test("a payment by viem arrives, and its signature is good for nothing else", async () => {
  const pay = (amount) => describe(viem, { type: "pay", to: stranger, asset: "EUR", amount });
  const wanted = await pay("1250000");
  assert.equal(wanted.typed_data.message.amount, "1250000");
  assert.equal(hashTypedData(wanted.typed_data), wanted.hash);
  const signature = await byViem(wanted.typed_data);
  const other = await pay("1250001");
  assert.equal((await submit(other.unsigned, signature)).error.code, "bad_signature");
  // The order of the curve less s, and the other point.
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, "0");
  const v = signature.endsWith("1b") ? "1c" : "1b";
  const high = await submit(wanted.unsigned, `${signature.slice(0, 66)}${s}${v}`);
  assert.deepEqual([high.http, high.error.code], [400, "malformed"]);
  assert.match(high.error.message, /high s/);
  const domain = { ...wanted.typed_data.domain, salt: `0x${"11".repeat(32)}` };
  const elsewhere = await byViem({ ...wanted.typed_data, domain });
  assert.equal((await submit(wanted.unsigned, elsewhere)).error.code, "bad_signature");
  const replayed = wanted.unsigned.slice(0, -64) + "11".repeat(32);
  assert.equal((await submit(replayed, elsewhere)).error.code, "wrong_chain", "a transaction of another network");
  const sent = await submit(wanted.unsigned, signature);
  assert.deepEqual([sent.http, sent.outcome], [200, { result: "applied" }]);
  assert.equal(await balance({ address: stranger }, "EUR"), 1_250_000n);
  // A wallet of which only the protocol is known: `eth_signTypedData_v4`.
  const asked = [];
  const provider = { request: async ({ method, params }) => (asked.push(method), byViem(JSON.parse(params[1]))) };
  const client = createWalletClient({ account: viem.address, transport: custom(provider) });
  const again = await pay("1");
  const { types, primaryType, domain: ours, message } = again.typed_data;
  const bySomeWallet = await client.signTypedData({ types, primaryType, domain: ours, message });
  assert.deepEqual(asked, ["eth_signTypedData_v4"]);
  assert.equal((await submit(again.unsigned, bySomeWallet)).http, 200);
});

test("offers of viem and ethers fill, and what rests is cancelled", async () => {
  const million = 1_000_000n;
  const before = [await balance(viem, "USD"), await balance(ethers, "EUR")];
  // Far better than the market on both sides, so that a batch takes both, whatever the demo's traders do.
  const sell = { type: "create_offer", sell: "EUR", buy: "USD", amount: String(40n * million), limit: "0.01" };
  const buy = { type: "create_offer", sell: "USD", buy: "EUR", amount: String(60n * million), limit: "0.01" };
  const [selling, buying] = [await describe(viem, sell), await describe(ethers, buy)];
  const answers = await Promise.all([
    submit(selling.unsigned, await byViem(selling.typed_data)),
    submit(buying.unsigned, await byEthers(buying.typed_data)),
  ]);
  for (const answer of answers) assert.equal(answer.http, 200, JSON.stringify(answer));
  while ((await balance(viem, "USD")) <= before[0] || (await balance(ethers, "EUR")) <= before[1]) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Nobody sells that dear: it rests until it is cancelled.
  const rests = await describe(viem, { ...sell, limit: "1000" });
  assert.equal((await submit(rests.unsigned, await byViem(rests.typed_data))).http, 200);
  const { offers } = await call(`/v1/accounts/${viem.address.toLowerCase()}/offers`);
  const mine = offers.find(({ id }) => id === rests.sequence);
  const { sell: from, buy: to, limit, id: offer } = mine;
  const cancel = await describe(viem, { type: "cancel", offers: [{ sell: from, buy: to, limit, offer }] });
  assert.equal((await submit(cancel.unsigned, await byViem(cancel.typed_data))).http, 200);
  const left = await call(`/v1/accounts/${viem.address.toLowerCase()}/offers`);
  assert.ok(!left.offers.some(({ id }) => id === offer));
});
