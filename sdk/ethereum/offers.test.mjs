// Offers of contracts, by viem and ethers: the sample vault, the sample orders, and the receipt that tells fills.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { Contract, JsonRpcProvider } from "ethers";
import { createPublicClient, createWalletClient, defineChain, erc20Abi, http, parseEther, parseEventLogs } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const url = process.env.WALRAS_ETHEREUM;
const read = (name) => JSON.parse(readFileSync(new URL(`build/${name}.json`, import.meta.url)));
const offersAbi = JSON.parse(readFileSync(new URL("abi/IOffers.json", import.meta.url)));
const OFFERS = "0x57616c7261730000000000000000000100000000";
const WETH9 = "0x57616c7261730000000000000000000200000000";
const USD = "0x57616c7261730000000000000000000000000000";
const EUR = "0x57616c7261730000000000000000000000000001";
const chain = defineChain({
  id: 31337,
  name: "Walras",
  nativeCurrency: { name: "USD", symbol: "USD", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
const manager = privateKeyToAccount("0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356");
const saver = privateKeyToAccount("0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97");
const trader = privateKeyToAccount("0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6");
const reader = createPublicClient({ chain, transport: http(url), pollingInterval: 50 });
const provider = new JsonRpcProvider(url, 31337, { staticNetwork: true, pollingInterval: 50, cacheTimeout: -1 });

after(() => provider.destroy());

async function write(account, address, abi, functionName, args = [], value = 0n) {
  const wallet = createWalletClient({ account, chain, transport: http(url), pollingInterval: 50 });
  const { request } = await reader.simulateContract({ account, address, abi, functionName, args, value });
  const receipt = await reader.waitForTransactionReceipt({ hash: await wallet.writeContract(request) });
  assert.equal(receipt.status, "success");
  return receipt;
}

async function deploy(account, name, args = []) {
  const wallet = createWalletClient({ account, chain, transport: http(url), pollingInterval: 50 });
  const hash = await wallet.deployContract({ ...read(name), args });
  return (await reader.waitForTransactionReceipt({ hash })).contractAddress;
}

const ask = (address, abi, functionName, args = []) => reader.readContract({ address, abi, functionName, args });
const units = (token, holder) => ask(token, erc20Abi, "balanceOf", [holder]);

/// Waits until a batch has filled something for an owner, from a block on.
async function filled(owner, fromBlock) {
  for (;;) {
    const filter = { address: OFFERS, abi: offersAbi, eventName: "Filled", args: { owner }, fromBlock };
    const [event] = await reader.getContractEvents(filter);
    if (event) return event;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const million = 1_000_000n;

test("two contracts trade with each other through the exchange, and clients read what they got", async () => {
  const vault = read("Vault").abi;
  const orders = read("LimitOrders").abi;
  const order = read("LimitOrder").abi;
  const [fund, factory] = [await deploy(manager, "Vault", [EUR]), await deploy(trader, "LimitOrders")];
  await write(saver, fund, vault, "join", [], parseEther("300"));
  // Far better than the market on both sides, so that a batch takes both, whatever the demo's traders do.
  await write(trader, EUR, erc20Abi, "approve", [factory, 200n * million]);
  const until = BigInt(Math.floor(Date.now() / 1_000) + 3_600);
  const terms = { sell: EUR, buy: USD, amount: 200n * million, asks: 2n * million, trigger: 0n, until };
  const opened = await write(trader, factory, orders, "open", [terms]);
  const [{ args }] = parseEventLogs({ abi: orders, eventName: "Opened", logs: opened.logs });
  const [{ args: placed }] = parseEventLogs({ abi: offersAbi, eventName: "Placed", logs: opened.logs });
  assert.deepEqual([placed.owner, placed.amount, placed.asks], [args.order, 200n * million, 2n * million]);
  const bought = await write(manager, fund, vault, "buy", [300n * million, million]);
  const [ofOrder, ofFund] = [await filled(args.order, opened.blockNumber), await filled(fund, bought.blockNumber)];
  // The receipt that tells fills is the first of its block, and of no transaction that somebody sent.
  for (const event of [ofOrder, ofFund]) {
    assert.deepEqual([event.transactionIndex, event.args.left >= 0n], [0, true]);
    const told = await reader.getTransactionReceipt({ hash: event.transactionHash });
    assert.deepEqual([told.status, told.gasUsed, told.from, told.to], ["success", 0n, OFFERS, OFFERS]);
    assert.ok(told.logs.some((log) => log.logIndex === event.logIndex));
    const block = await reader.getBlock({ blockHash: event.blockHash, includeTransactions: true });
    assert.equal(block.transactions[0].hash, event.transactionHash);
    assert.notEqual(BigInt(block.logsBloom), 0n);
    const { gas, value, type } = await reader.getTransaction({ hash: event.transactionHash });
    assert.deepEqual([gas, value, type], [0n, 0n, "legacy"]);
    // ethers reads the same.
    const receipt = await provider.getTransactionReceipt(event.transactionHash);
    assert.deepEqual([receipt.index, receipt.status, receipt.gasUsed], [0, 1, 0n]);
    const contract = new Contract(OFFERS, offersAbi, provider);
    const same = await contract.queryFilter(contract.filters.Filled(event.args.owner), receipt.blockNumber, receipt.blockNumber);
    assert.ok(same.some((one) => one.args.sold === event.args.sold && one.index === event.logIndex));
    const [first] = (await provider.getBlock(receipt.blockNumber, true)).prefetchedTransactions;
    assert.deepEqual([first.hash, first.from, first.gasLimit], [event.transactionHash, event.args.owner && first.to, 0n]);
    await assert.rejects(reader.request({ method: "debug_traceTransaction", params: [event.transactionHash, {}] }), /traced/);
  }
  assert.ok(ofFund.args.bought >= 1n && (await units(EUR, fund)) >= ofFund.args.bought);
  // The order's owner collects what it was sold for; whatever is left comes back.
  const before = await reader.getBalance({ address: trader.address });
  assert.ok((await units(USD, args.order)) >= ofOrder.args.bought);
  await write(saver, args.order, order, "collect");
  assert.ok((await reader.getBalance({ address: trader.address })) - before >= ofOrder.args.bought * 10n ** 12n);
  // The saver leaves with a part of both.
  while (await ask(fund, vault, "isTrading")) {
    await write(manager, fund, vault, "cancel").catch(() => undefined);
  }
  const shares = await ask(fund, vault, "sharesOf", [saver.address]);
  const held = await units(EUR, saver.address);
  await write(saver, fund, vault, "redeem", [shares]);
  assert.ok((await units(EUR, saver.address)) - held >= ofFund.args.bought);
  assert.equal(await ask(fund, vault, "totalShares"), 0n);
});

test("an offer far from the market rests, is shown, and comes back", async () => {
  const place = [EUR, USD, 5n * million, 500_000n * million];
  const held = await units(EUR, trader.address);
  const { logs, blockNumber } = await write(trader, OFFERS, offersAbi, "place", place);
  const [{ args }] = parseEventLogs({ abi: offersAbi, eventName: "Placed", logs });
  assert.equal(await units(EUR, trader.address), held - 5n * million);
  assert.equal(await ask(OFFERS, offersAbi, "amountOf", [trader.address, args.offer]), 5n * million);
  assert.ok((await ask(OFFERS, offersAbi, "placedBy", [trader.address])) >= 1n);
  const [rate, height] = await ask(OFFERS, offersAbi, "rate", [EUR, USD]);
  assert.ok(height >= blockNumber && rate >= 0n);
  // Others cannot cancel it, and errors come with their names.
  const fails = (account, functionName, args) =>
    reader.simulateContract({ account, address: OFFERS, abi: offersAbi, functionName, args });
  await assert.rejects(fails(saver, "cancel", [args.offer]), /UnknownOffer/);
  await assert.rejects(fails(trader, "place", [EUR, USD, 1n, 1n]), /SellsTooLittle\(uint64 least\)\s*\(4096\)/);
  await assert.rejects(fails(trader, "place", [EUR, WETH9, million, million]), /UnknownAsset/);
  await write(trader, OFFERS, offersAbi, "cancel", [args.offer]);
  assert.equal(await units(EUR, trader.address), held);
  const then = { address: OFFERS, abi: offersAbi, functionName: "amountOf", args: [trader.address, args.offer], blockNumber };
  assert.equal(await reader.readContract(then), 5n * million, "at its block it rested");
});

test("a stop order waits for the batch's rate, and anybody ends it when its time is over", async () => {
  const order = read("LimitOrder").abi;
  const until = BigInt(Math.floor(Date.now() / 1_000) - 1);
  const terms = { sell: USD, buy: EUR, amount: 50n * million, asks: million, trigger: 1n, until };
  const address = await deployOrder(terms, parseEther("50"));
  const placing = reader.simulateContract({ account: saver, address, abi: order, functionName: "place" });
  await assert.rejects(placing, /NotTriggered/);
  assert.equal(await ask(address, order, "left"), 50n * million);
  const before = await reader.getBalance({ address: trader.address });
  await write(saver, address, order, "end");
  assert.equal((await reader.getBalance({ address: trader.address })) - before, parseEther("50"));
});

async function deployOrder(terms, value) {
  const wallet = createWalletClient({ account: trader, chain, transport: http(url), pollingInterval: 50 });
  const hash = await wallet.deployContract({ ...read("LimitOrder"), args: [trader.address, terms], value });
  return (await reader.waitForTransactionReceipt({ hash })).contractAddress;
}

test("what pays for gas is wrapped from the genesis on", async () => {
  const { abi } = read("WETH9");
  assert.deepEqual([await ask(WETH9, abi, "symbol"), await ask(WETH9, abi, "decimals")], ["WUSD", 18]);
  const held = await ask(WETH9, abi, "balanceOf", [saver.address]);
  await write(saver, WETH9, abi, "deposit", [], parseEther("2"));
  await write(saver, WETH9, abi, "transfer", [manager.address, parseEther("0.5")]);
  await write(saver, WETH9, abi, "withdraw", [parseEther("1.5")]);
  assert.equal(await ask(WETH9, abi, "balanceOf", [saver.address]), held);
});
