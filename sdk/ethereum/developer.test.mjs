// viem's test client, and ethers' provider, as they come from the registry, against `walras demo --developer`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ContractFactory, JsonRpcProvider } from "ethers";
import { createTestClient, defineChain, encodeFunctionData, http, parseEther, publicActions, walletActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const url = process.env.WALRAS_ETHEREUM;
const { abi, bytecode } = JSON.parse(readFileSync(new URL("build/Guestbook.json", import.meta.url)));
const chain = defineChain({
  id: 31337,
  name: "Walras",
  nativeCurrency: { name: "USD", symbol: "USD", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const account = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
const client = createTestClient({ mode: "anvil", chain, transport: http(url), account, pollingInterval: 50, cacheTime: 0 })
  .extend(publicActions)
  .extend(walletActions);

async function deploy() {
  const receipt = await client.getTransactionReceipt({ hash: await client.deployContract({ abi, bytecode }) });
  assert.equal(receipt.status, "success");
  return receipt.contractAddress;
}

test("viem: what is reverted never was", async () => {
  const address = await deploy();
  const read = (functionName, ...args) => client.readContract({ address, abi, functionName, args });
  const sign = (words) => client.writeContract({ address, abi, functionName: "sign", args: [words] });
  const picture = async () => [
    await read("count"),
    await read("words", account.address),
    await client.getTransactionCount(account),
    await client.getBalance(account),
    await client.getBlock(),
    await client.getContractEvents({ address, abi, fromBlock: 0n }),
  ];
  await sign("before");
  const before = await picture();
  const id = await client.snapshot();
  const hash = await sign("after");
  // The block was made before the hash was answered.
  assert.equal((await client.getTransactionReceipt({ hash })).status, "success");
  assert.equal(await read("words", account.address), "after");
  await client.mine({ blocks: 3 });
  await client.increaseTime({ seconds: 1_000 });
  await client.mine({ blocks: 1 });
  await client.setBalance({ address: account.address, value: parseEther("7") });
  await client.revert({ id });
  assert.deepEqual(await picture(), before);
  await assert.rejects(client.getTransactionReceipt({ hash }), { name: "TransactionReceiptNotFoundError" });
  await sign("again");
  assert.equal(await read("count"), 2n);
});

test("viem: blocks and time", async () => {
  const first = await client.getBlock();
  await client.mine({ blocks: 5, interval: 60 });
  const last = await client.getBlock();
  assert.equal(last.number, first.number + 5n);
  assert.ok(last.timestamp >= first.timestamp + 240n);
  await client.setNextBlockTimestamp({ timestamp: last.timestamp + 10_000n });
  await client.mine({ blocks: 1 });
  assert.equal((await client.getBlock()).timestamp, last.timestamp + 10_000n);
  // A contract sees it: this code returns TIMESTAMP.
  const clock = "0x00000000000000000000000000000000000c10c4";
  await client.setCode({ address: clock, bytecode: "0x425f5260205ff3" });
  const { data } = await client.call({ to: clock });
  assert.equal(BigInt(data), (await client.getBlock()).timestamp);
  await client.setBlockTimestampInterval({ interval: 7 });
  await client.mine({ blocks: 2 });
  const stepped = await client.getBlock();
  await client.mine({ blocks: 1 });
  assert.equal((await client.getBlock()).timestamp, stepped.timestamp + 7n);
  await client.removeBlockTimestampInterval();
});

test("viem: accounts are edited, and what they were given is spent", async () => {
  const poor = privateKeyToAccount("0x000000000000000000000000000000000000000000000000000000000000c0de");
  const to = "0x00000000000000000000000000000000000000aa";
  await client.setBalance({ address: poor.address, value: parseEther("2") });
  const hash = await client.sendTransaction({ account: poor, to, value: parseEther("1") });
  assert.equal((await client.getTransactionReceipt({ hash })).status, "success");
  assert.equal(await client.getBalance({ address: to }), parseEther("1"));
  await client.setNonce({ address: poor.address, nonce: 9 });
  assert.equal(await client.getTransactionCount(poor), 9);
  const slot = `0x${"0".repeat(63)}3`;
  const value = `0x${"0".repeat(62)}2a`;
  await client.setStorageAt({ address: to, index: 3, value });
  assert.equal(await client.getStorageAt({ address: to, slot }), value);
  await assert.rejects(client.setBalance({ address: to, value: 2n ** 127n }), /more units/);
});

test("viem: transactions wait where blocks are not made by themselves", async () => {
  assert.equal(await client.getAutomine(), true);
  await client.setAutomine(false);
  const to = "0x00000000000000000000000000000000000000ab";
  const waiting = await client.sendTransaction({ to, value: 1n });
  await assert.rejects(client.getTransactionReceipt({ hash: waiting }), { name: "TransactionReceiptNotFoundError" });
  await client.dropTransaction({ hash: waiting });
  await client.mine({ blocks: 1 });
  assert.equal(await client.getBalance({ address: to }), 0n);
  const mined = await client.sendTransaction({ to, value: 2n });
  await client.mine({ blocks: 1 });
  assert.equal((await client.getTransactionReceipt({ hash: mined })).status, "success");
  await client.setIntervalMining({ interval: 1 });
  const height = await client.getBlockNumber();
  while ((await client.getBlockNumber()) === height) await new Promise((resolve) => setTimeout(resolve, 50));
  await client.setIntervalMining({ interval: 0 });
  await client.setAutomine(true);
});

test("viem: accounts without keys are impersonated", async () => {
  const address = await deploy();
  const whale = "0x00000000000000000000000000000000000077a1";
  await client.setBalance({ address: whale, value: parseEther("5") });
  await client.impersonateAccount({ address: whale });
  const data = encodeFunctionData({ abi, functionName: "sign", args: ["a whale"] });
  const hash = await client.sendTransaction({ account: whale, to: address, data });
  const receipt = await client.getTransactionReceipt({ hash });
  assert.equal(receipt.status, "success");
  assert.equal(receipt.from, whale);
  assert.equal(await client.readContract({ address, abi, functionName: "words", args: [whale] }), "a whale");
  await client.stopImpersonatingAccount({ address: whale });
  await assert.rejects(client.sendTransaction({ account: whale, to: address, data }), /no signer/);
});

test("ethers: the provider's own accounts, snapshots and time", async () => {
  const provider = new JsonRpcProvider(url, 31337, { staticNetwork: true, pollingInterval: 50, cacheTimeout: -1 });
  const signer = await provider.getSigner(2);
  const guestbook = await new ContractFactory(abi, bytecode, signer).deploy();
  await guestbook.waitForDeployment();
  const id = await provider.send("evm_snapshot", []);
  assert.equal((await (await guestbook.sign("ethers")).wait()).status, 1);
  const { number } = await provider.getBlock("latest");
  await provider.send("evm_increaseTime", [3_600]);
  await provider.send("evm_mine", []);
  assert.equal((await provider.getBlock("latest")).number, number + 1);
  assert.equal(await provider.send("evm_revert", [id]), true);
  assert.equal(await provider.getBlockNumber(), number - 1);
  assert.equal(await guestbook.count(), 0n);
  assert.equal(await provider.send("evm_revert", [id]), false);
  await provider.send("hardhat_setBalance", [signer.address, "0x56bc75e2d63100000"]);
  assert.equal(await provider.getBalance(signer.address), 100n * 10n ** 18n);
  provider.destroy();
});

test("viem: simulated blocks build on each other, and a receipt is waited for", async () => {
  const to = "0x00000000000000000000000000000000000000aa";
  const before = await client.getBlockNumber();
  const blocks = await client.simulateBlocks({
    traceTransfers: true,
    blocks: [{ calls: [{ account: account.address, to, value: 5n }] }, { calls: [{ account: to, to: account.address, value: 3n }] }],
  });
  assert.deepEqual(blocks.map((block) => block.number), [before + 1n, before + 2n]);
  assert.deepEqual(blocks.flatMap((block) => block.calls.map((call) => [call.status, call.logs.length])), [["success", 1], ["success", 1]]);
  assert.equal(await client.getBlockNumber(), before);
  const serializedTransaction = await account.signTransaction(await client.prepareTransactionRequest({ to, value: 1n }));
  const receipt = await client.sendRawTransactionSync({ serializedTransaction });
  assert.deepEqual([receipt.status, receipt.blockNumber], ["success", before + 1n]);
});

// With the parameters that hardhat's network helpers send.
test("hardhat's helpers choose parts of blocks and drop transactions", async () => {
  const ask = (method, ...params) => client.request({ method, params });
  const coinbase = "0x00000000000000000000000000000000000000c0";
  await ask("hardhat_setCoinbase", coinbase);
  await ask("hardhat_setPrevRandao", "0x" + "7".padStart(64, "0"));
  await ask("hardhat_setBlockGasLimit", "0x1000000");
  await client.mine({ blocks: 1 });
  const block = await client.getBlock();
  assert.deepEqual([block.miner, block.gasLimit, BigInt(block.mixHash)], [coinbase, 0x1000000n, 7n]);
  assert.equal(await ask("hardhat_dropTransaction", "0x" + "11".repeat(32)), false);
  await ask("hardhat_reset");
  assert.equal((await client.getBlock()).miner, "0x0000000000000000000000000000000000000000");
});
