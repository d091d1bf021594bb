// ethers, as it comes from the registry, against a node.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { ContractFactory, JsonRpcProvider, NonceManager, parseEther, Signature, Wallet, WebSocketProvider } from "ethers";

const url = process.env.WALRAS_ETHEREUM;
const { abi, bytecode } = JSON.parse(readFileSync(new URL("build/Guestbook.json", import.meta.url)));
const provider = new JsonRpcProvider(url, 31337, { staticNetwork: true, pollingInterval: 50, cacheTimeout: -1 });
const socket = new WebSocketProvider(url.replace("http", "ws"), 31337);
const wallet = new Wallet("0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a", provider);
const other = new Wallet("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6", provider);

let guestbook;

before(async () => {
  guestbook = await new ContractFactory(abi, bytecode, wallet).deploy();
  await guestbook.waitForDeployment();
});

after(async () => {
  provider.destroy();
  await socket.destroy();
});

test("a contract is written, read and tells what happened", async () => {
  const receipt = await (await guestbook.sign("hello")).wait();
  assert.equal(receipt.status, 1);
  assert.equal(await guestbook.words(wallet.address), "hello");
  const events = await guestbook.queryFilter(guestbook.filters.Signed(wallet.address), receipt.blockNumber);
  assert.deepEqual(events.map((event) => event.args.words), ["hello"]);
  const block = await provider.getBlock(receipt.blockNumber, true);
  assert.equal(block.prefetchedTransactions.at(receipt.index).hash, receipt.hash);
});

test("why a call reverted is decoded", async () => {
  await assert.rejects(guestbook.sign.staticCall(""), (error) => error.reason === "say something");
  await assert.rejects(guestbook.sign.staticCall("x".repeat(101)), (error) => {
    return error.code === "CALL_EXCEPTION" && error.revert.name === "TooLong" && error.revert.args[0] === 101n;
  });
  // Where gas is estimated first, the output comes along undecoded.
  await assert.rejects(guestbook.sign("x".repeat(101)), (error) => {
    return error.code === "CALL_EXCEPTION" && guestbook.interface.parseError(error.data).name === "TooLong";
  });
});

test("events are told over a socket", async () => {
  const heard = new Promise((resolve) => {
    guestbook.connect(socket).once("Signed", (who, number, words) => resolve(words));
  });
  await socket.getBlockNumber();
  await new Promise((resolve) => setTimeout(resolve, 200));
  await (await guestbook.sign("over a socket")).wait();
  assert.equal(await heard, "over a socket");
});

test("events are told by filters too", async () => {
  const heard = new Promise((resolve) => guestbook.once("Signed", (who, number, words) => resolve(words)));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await (await guestbook.sign("by a filter")).wait();
  assert.equal(await heard, "by a filter");
});

test("typed data is signed by one and brought by another", async () => {
  const entry = { who: other.address, words: "signed elsewhere" };
  const domain = { name: "Guestbook", version: "1", chainId: 31337, verifyingContract: await guestbook.getAddress() };
  const types = { Entry: [{ name: "who", type: "address" }, { name: "words", type: "string" }] };
  const { v, r, s } = Signature.from(await other.signTypedData(domain, types, entry));
  await (await guestbook.signFor(entry, v, r, s)).wait();
  assert.equal(await guestbook.words(other.address), entry.words);
});

test("errors have the codes that ethers knows", async () => {
  const nonce = await provider.getTransactionCount(wallet.address, "pending");
  const pay = { to: other.address, value: 1n, gasLimit: 21_000n };
  const code = (expected) => (error) => error.code === expected;
  await assert.rejects(wallet.sendTransaction({ ...pay, nonce: 0 }), code("NONCE_EXPIRED"));
  await assert.rejects(wallet.sendTransaction({ ...pay, value: parseEther("999999") }), code("INSUFFICIENT_FUNDS"));
  const fee = 20_000_000_000n;
  const request = { ...pay, nonce: nonce + 1, maxPriorityFeePerGas: 0n };
  await wallet.sendTransaction({ ...request, maxFeePerGas: fee });
  const little = wallet.sendTransaction({ ...request, maxFeePerGas: fee + 1n });
  await assert.rejects(little, code("REPLACEMENT_UNDERPRICED"));
  const replaced = await wallet.sendTransaction({ ...request, maxFeePerGas: 2n * fee });
  await (await wallet.sendTransaction({ ...request, nonce, maxFeePerGas: fee })).wait();
  assert.equal((await replaced.wait()).status, 1);
});

test("many transactions are sent at once", async () => {
  const signer = new NonceManager(other);
  const count = 20;
  const sent = [];
  for (let number = 0; number < count; number += 1) {
    sent.push(await signer.sendTransaction({ to: wallet.address, value: BigInt(number), gasLimit: 21_000n }));
  }
  const receipts = await Promise.all(sent.map((one) => one.wait()));
  assert.ok(receipts.every((receipt) => receipt.status === 1));
});
