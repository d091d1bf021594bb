// viem, as it comes from the registry, against a node.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  defineChain,
  encodeFunctionData,
  erc20Abi,
  hexToSignature,
  http,
  parseEther,
  parseGwei,
  webSocket,
} from "viem";
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
const other = privateKeyToAccount("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
const pollingInterval = 50;
const reader = createPublicClient({ chain, transport: http(url, { batch: true }), pollingInterval });
const wallet = createWalletClient({ account, chain, transport: http(url), pollingInterval });
const second = createWalletClient({ account: other, chain, transport: http(url), pollingInterval });
const listener = createPublicClient({ chain, transport: webSocket(url.replace("http", "ws")) });

let address;

const receipt = (hash) => reader.waitForTransactionReceipt({ hash });

async function sign(words) {
  const { request } = await reader.simulateContract({ account, address, abi, functionName: "sign", args: [words] });
  return receipt(await wallet.writeContract(request));
}

before(async () => {
  const deployed = await receipt(await wallet.deployContract({ abi, bytecode }));
  assert.equal(deployed.status, "success");
  address = deployed.contractAddress;
});

after(async () => (await listener.transport.getRpcClient()).close());

test("the chain is what the demo says", async () => {
  assert.equal(await reader.getChainId(), 31337);
  const block = await reader.getBlock();
  assert.ok(block.number > 0n && block.baseFeePerGas > 0n);
  const [finalized, safe] = await Promise.all(["finalized", "safe"].map((blockTag) => reader.getBlock({ blockTag })));
  assert.ok(finalized.number >= block.number && safe.number >= block.number);
  const parent = await reader.getBlock({ blockHash: block.parentHash });
  assert.equal(parent.number, block.number - 1n);
  const fees = await reader.getFeeHistory({ blockCount: 4, rewardPercentiles: [50] });
  assert.equal(fees.baseFeePerGas.length, fees.gasUsedRatio.length + 1);
});

test("a contract is written, read and tells what happened", async () => {
  const { logs, status, blockNumber } = await sign("hello");
  assert.equal(status, "success");
  const words = await reader.readContract({ address, abi, functionName: "words", args: [account.address] });
  assert.equal(words, "hello");
  const events = await reader.getContractEvents({
    address,
    abi,
    eventName: "Signed",
    args: { who: account.address },
    fromBlock: blockNumber,
  });
  assert.deepEqual(events.map((event) => event.args.words), ["hello"]);
  assert.equal(events[0].transactionHash, logs[0].transactionHash);
  const before = await reader.readContract({
    address,
    abi,
    functionName: "count",
    blockNumber: blockNumber - 1n,
  });
  const count = await reader.readContract({ address, abi, functionName: "count" });
  assert.equal(count, before + 1n, "the state before the block is told too");
});

test("why a call reverted is decoded", async () => {
  const fails = (words) => reader.simulateContract({ account, address, abi, functionName: "sign", args: [words] });
  const reverted = (error) => {
    assert.ok(error instanceof BaseError);
    return error.walk((cause) => cause instanceof ContractFunctionRevertedError);
  };
  await assert.rejects(fails(""), (error) => reverted(error).reason === "say something");
  await assert.rejects(fails("x".repeat(101)), (error) => {
    const { errorName, args } = reverted(error).data;
    return errorName === "TooLong" && args[0] === 101n && args[1] === 100n;
  });
  // With gas enough it gets into a block, and fails there.
  const request = { address, abi, functionName: "sign", args: [""], gas: 100_000n };
  assert.equal((await receipt(await wallet.writeContract(request))).status, "reverted");
});

test("subscriptions tell blocks and events as they come", async () => {
  const heard = new Promise((resolve, reject) => {
    const unwatch = listener.watchContractEvent({
      address,
      abi,
      eventName: "Signed",
      onLogs: (logs) => {
        unwatch();
        resolve(logs);
      },
      onError: reject,
    });
  });
  const head = new Promise((resolve, reject) => {
    const unwatch = listener.watchBlocks({
      onBlock: (block) => {
        unwatch();
        resolve(block);
      },
      onError: reject,
    });
  });
  // The subscriptions are on their way when a later request over the same connection is answered.
  await listener.getBlockNumber();
  await new Promise((resolve) => setTimeout(resolve, 200));
  await sign("over a socket");
  assert.equal((await heard)[0].args.words, "over a socket");
  assert.ok((await head).number > 0n);
});

test("typed data is signed by one and brought by another", async () => {
  const entry = { who: other.address, words: "signed elsewhere" };
  const signature = await other.signTypedData({
    domain: { name: "Guestbook", version: "1", chainId: 31337, verifyingContract: address },
    types: { Entry: [{ name: "who", type: "address" }, { name: "words", type: "string" }] },
    primaryType: "Entry",
    message: entry,
  });
  const { r, s, v } = hexToSignature(signature);
  const bring = (entry) =>
    reader.simulateContract({ account, address, abi, functionName: "signFor", args: [entry, Number(v), r, s] });
  await assert.rejects(bring({ ...entry, words: "something else" }), /not signed by who it says/);
  const { request } = await bring(entry);
  assert.equal((await receipt(await wallet.writeContract(request))).status, "success");
  const words = await reader.readContract({ address, abi, functionName: "words", args: [other.address] });
  assert.equal(words, entry.words);
});

test("every type of transaction is taken", async () => {
  const to = other.address;
  const value = parseEther("0.5");
  const base = { to, value };
  const gasPrice = parseGwei("30");
  const before = await reader.getBalance({ address: to });
  const kinds = [
    ["legacy", { ...base, type: "legacy", gasPrice }],
    ["eip2930", { ...base, type: "eip2930", gasPrice, accessList: [{ address: to, storageKeys: [] }] }],
    ["eip1559", base],
  ];
  for (const [type, request] of kinds) {
    const hash = await wallet.sendTransaction(request);
    const { status } = await receipt(hash);
    const found = await reader.getTransaction({ hash });
    assert.deepEqual([status, found.type, found.value], ["success", type, value]);
  }
  assert.equal(await reader.getBalance({ address: to }), before + 3n * value);
});

test("an account delegates to a contract", async () => {
  const authorization = await second.signAuthorization({ contractAddress: address });
  const hash = await wallet.sendTransaction({ to: other.address, authorizationList: [authorization], gas: 200_000n });
  assert.equal((await receipt(hash)).status, "success");
  const code = await reader.getCode({ address: other.address });
  assert.equal(code.toLowerCase(), `0xef0100${address.slice(2).toLowerCase()}`);
  // Others can spend what such an account promises: it sends one transaction at a time, with its next nonce.
  const nonce = await reader.getTransactionCount({ address: other.address });
  const far = { to: account.address, gas: 21_000n, maxPriorityFeePerGas: 0n, maxFeePerGas: parseGwei("20") };
  await assert.rejects(second.sendTransaction({ ...far, nonce: nonce + 5 }), /gapped-nonce tx from delegated accounts/);
  assert.equal((await receipt(await second.sendTransaction({ ...far, nonce }))).status, "success");
  const found = await reader.getTransaction({ hash });
  assert.equal(found.authorizationList[0].address.toLowerCase(), address.toLowerCase());
});

test("a waiting transaction is replaced for a tenth more", async () => {
  const nonce = await reader.getTransactionCount({ address: account.address, blockTag: "pending" });
  const request = { to: "0x000000000000000000000000000000000000dEaD", nonce: nonce + 1, maxPriorityFeePerGas: 0n, gas: 21_000n };
  const waits = await wallet.sendTransaction({ ...request, maxFeePerGas: parseGwei("20") });
  const little = wallet.sendTransaction({ ...request, maxFeePerGas: parseGwei("21") });
  await assert.rejects(little, /replacement transaction underpriced/);
  const replaced = await wallet.sendTransaction({ ...request, maxFeePerGas: parseGwei("22") });
  assert.notEqual(replaced, waits);
  const first = await wallet.sendTransaction({ ...request, nonce, maxFeePerGas: parseGwei("20") });
  assert.equal((await receipt(first)).status, "success");
  assert.equal((await receipt(replaced)).status, "success");
  await assert.rejects(reader.getTransaction({ hash: waits }));
  await assert.rejects(wallet.sendTransaction({ ...request, nonce, maxFeePerGas: parseGwei("99") }), /nonce too low/i);
});

test("requests travel in batches", async () => {
  const all = await Promise.all([
    reader.getBlockNumber({ cacheTime: 0 }),
    reader.getBalance({ address: account.address }),
    reader.getCode({ address }),
    reader.getTransactionCount({ address: account.address }),
  ]);
  assert.ok(all.every((one) => one !== undefined));
});

test("an asset of the exchange is a token", async () => {
  // Asset 1 of the demo.
  const euro = "0x57616c7261730000000000000000000000000001";
  const read = (functionName, args = []) => reader.readContract({ address: euro, abi: erc20Abi, functionName, args });
  assert.deepEqual([await read("symbol"), await read("decimals")], ["EUR", 6]);
  const held = await read("balanceOf", [other.address]);
  assert.ok((await read("totalSupply")) >= held && held > 0n);
  const write = async (functionName, args) => {
    const call = { account, address: euro, abi: erc20Abi, functionName, args };
    return receipt(await wallet.writeContract((await reader.simulateContract(call)).request));
  };
  const { blockNumber } = await write("transfer", [other.address, 1_500_000n]);
  assert.equal(await read("balanceOf", [other.address]), held + 1_500_000n);
  const earlier = { address: euro, abi: erc20Abi, functionName: "balanceOf", args: [other.address] };
  assert.equal(await reader.readContract({ ...earlier, blockNumber: blockNumber - 1n }), held);
  const filter = { address: euro, abi: erc20Abi, eventName: "Transfer", fromBlock: blockNumber };
  const [event] = await reader.getContractEvents(filter);
  assert.deepEqual([event.args.from, event.args.to, event.args.value], [account.address, other.address, 1_500_000n]);
  await assert.rejects(write("transfer", [other.address, 10n ** 15n]), /transfer amount exceeds balance/);
  // The page's and the exchange's own balance is the same one.
  const dollars = await reader.readContract({
    address: "0x57616c7261730000000000000000000000000000",
    abi: erc20Abi,
    functionName: "balanceOf",
    args: [other.address],
  });
  assert.equal(dollars, (await reader.getBalance({ address: other.address })) / 10n ** 12n);
});

test("an account that delegates to a token moves nothing", async () => {
  const delegate = privateKeyToAccount("0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e");
  const third = createWalletClient({ account: delegate, chain, transport: http(url) });
  const euro = "0x57616c7261730000000000000000000000000001";
  const held = () =>
    reader.readContract({ address: euro, abi: erc20Abi, functionName: "balanceOf", args: [delegate.address] });
  const before = await held();
  const authorization = await third.signAuthorization({ contractAddress: euro });
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [account.address, 1n] });
  const hash = await wallet.sendTransaction({
    to: delegate.address,
    authorizationList: [authorization],
    data,
    gas: 200_000n,
  });
  assert.equal((await receipt(hash)).status, "reverted");
  assert.equal(await held(), before);
});

test("a transaction is traced", async () => {
  const { transactionHash: hash } = await sign("to be traced");
  const calls = await reader.request({
    method: "debug_traceTransaction",
    params: [hash, { tracer: "callTracer", tracerConfig: { withLog: true } }],
  });
  assert.deepEqual([calls.type, calls.to, calls.logs.length], ["CALL", address.toLowerCase(), 1]);
  const steps = await reader.request({ method: "debug_traceTransaction", params: [hash, {}] });
  assert.equal(steps.failed, false);
  assert.ok(steps.structLogs.some((step) => step.op === "SSTORE"));
});
