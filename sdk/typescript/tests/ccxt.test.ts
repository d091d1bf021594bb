/** The ccxt class: its shape, and against a running exchange, whose address is in WALRAS_HTTP. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as ccxt from "ccxt";
import type { Order } from "ccxt";
import WebSocket from "ws";
import { walras } from "../src/ccxt.js";
import { Ed25519Key } from "../src/index.js";

const SERVER = process.env["WALRAS_HTTP"] ?? "";
const skip = SERVER === "" ? "WALRAS_HTTP is not set: run `make test-typescript`" : false;
// A public account of the demo that no other test uses.
const SECRET = "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e";
const options = { socket: (url: string) => new WebSocket(url) };
const exchange = new walras({ privateKey: SECRET, urls: { api: SERVER }, options });

type Kind = new (message: string) => Error;

test("has every method that it declares, as ccxt's own description requires", () => {
  const { has, timeframes, id, name, urls, requiredCredentials, fees } = new walras();
  assert.deepEqual([id, name, Object.keys(timeframes)], ["walras", "Walras", ["1m", "5m", "15m", "1h", "4h", "1d"]]);
  assert.ok(urls["api"] && fees && requiredCredentials["privateKey"] && !requiredCredentials["apiKey"]);
  const own = walras.prototype as unknown as Record<string, unknown>;
  const base = ccxt.Exchange.prototype as unknown as Record<string, unknown>;
  // What is declared and is a method: those that the base derives from others are its own.
  const derived = ["createLimitOrder", "fetchL2OrderBook", "fetchTradingFee"];
  const usual = new ccxt.Exchange().has;
  const declared = Object.entries(has).filter(([method, is]) => is === true && usual[method] !== true && typeof base[method] === "function");
  assert.ok(declared.length >= 14);
  const needed = "fetchTicker fetchOrderBook fetchTrades fetchOHLCV createOrder cancelOrder fetchOrder fetchOpenOrders fetchMyTrades fetchBalance watchOrderBook";
  for (const method of needed.split(" ")) assert.ok(has[method] === true && Object.hasOwn(own, method), `${method} is needed by bots`);
  for (const [method] of declared) {
    assert.ok(derived.includes(method) || Object.hasOwn(own, method), `${method} is declared and not here`);
  }
  // And what is here is declared; the compiler holds its arguments against the base's.
  for (const method of Object.getOwnPropertyNames(own).filter((one) => /^(fetch|create|cancel|watch)[A-Z]/.test(one))) {
    assert.equal(has[method], true, `${method} is here and not declared`);
  }
});

test("a session key trades through ccxt", { skip }, async () => {
  const seed = `0x${"5f".repeat(32)}`;
  const owner = exchange.node();
  const { slot } = await owner.addSession(new Ed25519Key(seed), { USD: "50", EUR: "20" }, { lasts: 10_000 });
  const keys = { privateKey: seed, walletAddress: owner.address };
  const bot = new walras({ ...keys, urls: { api: SERVER }, options: { ...options, keyType: "ed25519", slot } });
  const order = await bot.createOrder("EUR/USD", "limit", "sell", 10, 500);
  assert.equal(BigInt(order.id!) >> 43n, BigInt(slot));
  await assert.rejects(bot.createOrder("EUR/USD", "limit", "sell", 11, 500), ccxt.InsufficientFunds);
  await bot.cancelOrder(order.id!);
  await owner.revokeSession(slot);
});

test("errors are those that bots know", { skip }, async () => {
  const nobody = new walras({ urls: { api: "http://127.0.0.1:1" } });
  const keyless = new walras({ urls: { api: SERVER } });
  const badKey = new walras({ privateKey: "0x12", urls: { api: SERVER } });
  const order = (...more: unknown[]) => exchange.createOrder(...(["EUR/USD", ...more] as Parameters<walras["createOrder"]>));
  const mistakes: [Kind, () => Promise<unknown>][] = [
    [ccxt.InsufficientFunds, () => order("limit", "sell", 1e9, 1)],
    [ccxt.InvalidOrder, () => order("stop", "sell", 1)],
    [ccxt.InvalidOrder, () => order("limit", "hold", 1, 1)],
    [ccxt.InvalidOrder, () => order("limit", "sell", 0.0000001, 1)],
    [ccxt.InvalidOrder, () => order("limit", "sell", 0.001, 1)],
    [ccxt.InvalidOrder, () => order("limit", "sell", 1, -1)],
    [ccxt.ArgumentsRequired, () => order("limit", "sell", 1)],
    [ccxt.NotSupported, () => order("limit", "sell", 1, 1, { postOnly: true })],
    [ccxt.NotSupported, () => order("limit", "sell", 1, 1, { timeInForce: "FOK" })],
    [ccxt.NotSupported, () => order("limit", "sell", 1, 1, { stopPrice: 1 })],
    ...[NaN, Infinity, 0].flatMap((bad): [Kind, () => Promise<unknown>][] => [
      [ccxt.InvalidOrder, () => order("limit", "sell", bad, 1)],
      [ccxt.InvalidOrder, () => order("limit", "buy", 1, bad)],
    ]),
    [ccxt.OrderNotFound, () => exchange.fetchOrder(99_999 as unknown as string)],
    [ccxt.OrderNotFound, () => exchange.cancelOrder("b7f0c3d2-5f7e-4f43-9a57-6a2f1b9d1c11")],
    [ccxt.OrderNotFound, () => exchange.fetchOrder(String(2n ** 64n))],
    [ccxt.OrderNotFound, () => exchange.fetchOrder("0x" + "77".repeat(32))],
    [ccxt.BadSymbol, () => exchange.fetchTicker("XYZ/USD")],
    [ccxt.BadRequest, () => exchange.fetchOHLCV("EUR/USD", "7m")],
    [ccxt.OrderNotFound, () => exchange.fetchOrder("99999")],
    [ccxt.OrderNotFound, () => exchange.fetchOrder("my order")],
    [ccxt.OrderNotFound, () => exchange.cancelOrder("99999")],
    [ccxt.ExchangeNotAvailable, () => nobody.fetchTime()],
    [ccxt.AuthenticationError, () => keyless.fetchBalance()],
    [ccxt.AuthenticationError, () => badKey.fetchBalance()],
  ];
  for (const [kind, mistake] of mistakes) await assert.rejects(mistake(), kind, `${kind.name}: ${String(mistake)}`);
});

test("markets and their data have the structures of ccxt", { skip }, async () => {
  const markets = await exchange.loadMarkets();
  assert.deepEqual(Object.keys(markets), ["EUR/USD"]);
  const market = markets["EUR/USD"] as unknown as Record<string, unknown>;
  const parts = { id: "EUR/USD", base: "EUR", quote: "USD", type: "spot", spot: true, active: true, contract: false, maker: 0, taker: 0 };
  for (const [name, is] of Object.entries(parts)) assert.equal(market[name], is, name);
  assert.equal((market["precision"] as { amount: number }).amount, 1e-6);
  assert.ok((market["precision"] as { price: number }).price > 1e-11, "freqtrade trades no market that says less");
  assert.equal((exchange.currencies["EUR"] as unknown as { precision: number }).precision, 1e-6);
  assert.equal((await exchange.fetchStatus())["status"], "ok");

  await exchange.createOrder("EUR/USD", "limit", "sell", 20, 2.5);
  await exchange.createOrder("EUR/USD", "limit", "buy", 2, 3);
  await exchange.cancelAllOrders();
  const trades = await exchange.fetchTrades("EUR/USD");
  const last = trades.at(-1)!;
  assert.ok(last.amount! > 0 && last.price! > 0 && last.timestamp! <= (await exchange.fetchTime())! && last.datetime === exchange.iso8601(last.timestamp));
  assert.ok((await exchange.fetchTrades("EUR/USD", last.timestamp)).every((one) => one.timestamp! >= last.timestamp!));
  const ticker = await exchange.fetchTicker("EUR/USD");
  assert.ok(ticker.low! <= ticker.last! && ticker.last! <= ticker.high! && ticker.baseVolume! > 0 && ticker.symbol === "EUR/USD");
  assert.deepEqual(Object.keys(await exchange.fetchTickers()), ["EUR/USD"]);
  const book = await exchange.fetchOrderBook("EUR/USD", 5);
  const prices = (side: [unknown, unknown][]) => side.map(([price]) => Number(price));
  assert.ok(book.asks.length <= 5 && book.nonce! > 0 && book.timestamp! <= (await exchange.fetchTime())!);
  assert.deepEqual(Object.keys(await exchange.fetchOrderBooks()), ["EUR/USD"]);
  assert.deepEqual((await exchange.fetchTradingFee("EUR/USD")).maker, 0);
  assert.equal(exchange.features.spot!.createOrder.timeInForce.IOC, true);
  assert.deepEqual(prices(book.asks as [unknown, unknown][]), prices(book.asks as [unknown, unknown][]).sort((a, b) => a - b));
  assert.deepEqual(prices(book.bids as [unknown, unknown][]), prices(book.bids as [unknown, unknown][]).sort((a, b) => b - a));
  const candles = await exchange.fetchOHLCV("EUR/USD", "1m");
  assert.ok(candles.length > 0 && candles.every((row) => row.length === 6 && row[3]! <= row[4]! && row[4]! <= row[2]!));
  const newest = candles.at(-1)![0]!;
  assert.equal((await exchange.fetchOHLCV("EUR/USD", "1m", newest, 1))[0]![0], newest);
});

test("orders rest, are found, and are cancelled", { skip }, async () => {
  const before = (await exchange.fetchBalance())["EUR"] as { total: number };
  const placed = await exchange.createOrder("EUR/USD", "limit", "sell", 2.5, 500);
  assert.deepEqual([placed.status, placed.remaining, placed.filled, placed.price], ["open", 2.5, 0, 500]);
  const held = (await exchange.fetchBalance())["EUR"] as { total: number; used: number };
  assert.deepEqual([held.used, held.total], [2.5, before.total]);
  const transaction = (placed.info as { transaction: string }).transaction;
  for (const id of [placed.id!, transaction]) {
    const found = await exchange.fetchOrder(id);
    assert.deepEqual([found.side, found.price, found.remaining, found.status], ["sell", 500, 2.5, "open"]);
  }
  assert.deepEqual((await exchange.fetchOpenOrders("EUR/USD")).map((order) => order.id), [placed.id]);
  assert.equal((await exchange.cancelOrder(transaction)).status, "canceled");
  const ended = await exchange.fetchOrder(placed.id!);
  assert.deepEqual([ended.status, ended.filled, ended.amount, ended.price], ["canceled", 0, 2.5, 500]);
  await assert.rejects(exchange.cancelOrder(placed.id!), ccxt.OrderNotFound);
  const bid = await exchange.createLimitBuyOrder("EUR/USD", 10, 0.5);
  const found = await exchange.fetchOrder(bid.id!);
  assert.deepEqual([found.side, found.price, found.amount, found.remaining], ["buy", 0.5, 10, 10]);
  await exchange.createOrder("EUR/USD", "limit", "sell", 1, 500, { clientOrderId: "mine" });
  const again = await exchange.createOrder("EUR/USD", "limit", "sell", 1, 500, { clientOrderId: "mine" });
  assert.equal(again.clientOrderId, "mine");
  assert.equal((await exchange.fetchOpenOrders()).length, 2);
  assert.deepEqual((await exchange.cancelAllOrders()).map((order) => order.status), ["canceled", "canceled"]);
  assert.deepEqual(await exchange.fetchOpenOrders(), []);
  // Bots store what they are told.
  JSON.stringify([placed, found, ended, again]);
});

test("orders that cross are filled at the price or better", { skip }, async () => {
  await exchange.createOrder("EUR/USD", "limit", "sell", 20, 2.5);
  const filled = await exchange.createOrder("EUR/USD", "limit", "buy", 2, 3);
  const about = (value: number | undefined, wanted: number) => assert.ok(Math.abs(Number(value) - wanted) < 1e-6, `${value} is not ${wanted}`);
  // It stops at its amount, whatever the batch's price: at 2.5 the money of two at 3 buys 2.4.
  assert.equal(filled.status, "closed");
  assert.ok(filled.filled! >= 1.8 && filled.filled! < 2.2 && filled.cost! < 6 && filled.average! <= 3, JSON.stringify(filled));
  const bought = (await exchange.fetchMyTrades("EUR/USD")).filter((one) => one.order === filled.id!);
  about(bought.reduce((sum, one) => sum + one.cost!, 0), filled.cost!);
  assert.ok(bought.every((one) => one.side === "buy" && one.symbol === "EUR/USD" && one.price! <= 3));
  assert.deepEqual(await exchange.fetchOrderTrades(filled.id!), bought);
  const again = await exchange.fetchOrder(filled.id!);
  assert.deepEqual([again.status, again.side, again.price, again.amount], ["closed", "buy", filled.price, filled.amount]);
  about(again.cost, filled.cost!);
  about(again.filled, filled.filled!);
  assert.ok((await exchange.fetchClosedOrders("EUR/USD")).some((order) => order.id === filled.id!));
  assert.ok((await exchange.fetchOrders("EUR/USD", undefined, 5)).length <= 5);
  await exchange.cancelAllOrders("EUR/USD");
});

test("a market order is a limit order for the next batch with room from the last price", { skip }, async () => {
  await exchange.createOrder("EUR/USD", "limit", "sell", 20, 2.5);
  await exchange.createOrder("EUR/USD", "limit", "buy", 1, 3);
  const { last } = await exchange.fetchTicker("EUR/USD");
  // Somebody sells within the room, and above the bids: they would take it all before.
  await exchange.createOrder("EUR/USD", "limit", "sell", 20, Number((last! * 1.03).toFixed(4)));
  const bought = await exchange.createOrder("EUR/USD", "market", "buy", 2);
  assert.deepEqual([bought.side, bought.status], ["buy", "closed"]);
  assert.ok(bought.filled! >= 1.8 && bought.filled! < 2.2, JSON.stringify(bought));
  assert.ok(bought.price! < 1.06 * last!, `${bought.price} from ${last}`);
  const again = await exchange.fetchOrder(bought.id!);
  assert.deepEqual([again.filled, again.cost, again.status], [bought.filled, bought.cost, "closed"]);
  const sold = await exchange.createOrder("EUR/USD", "market", "sell", 1);
  assert.ok(sold.status !== "open" && sold.price! < last!);
  await exchange.cancelAllOrders();
});

test("orders have the same sums in every call", { skip }, async () => {
  const sell = await exchange.createOrder("EUR/USD", "limit", "sell", 50, 1.5, { timeInForce: "GTC", postOnly: false });
  const buy = await exchange.createOrder("EUR/USD", "limit", "buy", 10, 3);
  const never = await exchange.createOrder("EUR/USD", "limit", "sell", 10, 900);
  const cancelled = await exchange.cancelOrder(never.id!);
  assert.deepEqual([cancelled.status, cancelled.filled, cancelled.cost], ["canceled", 0, 0]);
  const once = await exchange.createOrder("EUR/USD", "limit", "sell", 10, 900, { timeInForce: "IOC" });
  assert.deepEqual([once.status, once.timeInForce, once.filled], ["canceled", "IOC", 0]);
  const sums = (one: Order) => [one.amount, one.filled, one.remaining, one.cost, one.average, one.fee, one.status, one.side, one.price];
  const lists = [...(await exchange.fetchOrders("EUR/USD")), ...(await exchange.fetchClosedOrders()), ...(await exchange.fetchOpenOrders("EUR/USD"))];
  for (const placed of [sell, buy, never, once]) {
    const told = await exchange.fetchOrder(placed.id!);
    const rows = lists.filter((one) => one.id === placed.id);
    assert.ok(rows.length > 0);
    for (const row of rows) assert.deepEqual(sums(row), sums(told));
    const trades = await exchange.fetchOrderTrades(placed.id!);
    const about = (value: number | undefined, wanted: number) => assert.ok(Math.abs(Number(value) - wanted) < 1e-6, `${value} is not ${wanted}`);
    about(told.filled, trades.reduce((sum, one) => sum + one.amount!, 0));
    about(told.cost, trades.reduce((sum, one) => sum + one.cost!, 0));
    about(told.amount, told.filled! + told.remaining!);
    // Bots ask for fees until they are told, 0 too.
    for (const one of [told, ...trades]) assert.equal(one.fee?.cost, 0);
  }
  assert.equal((await exchange.fetchOrder(sell.id!)).amount, 50);
  const every = await exchange.fetchMyTrades("EUR/USD");
  const found: typeof every = [];
  for (let since = 0; ; ) {
    const page = await exchange.fetchMyTrades("EUR/USD", since, 1);
    if (page.length === 0) break;
    found.push(...page);
    since = page.at(-1)!.timestamp! + 1;
  }
  assert.deepEqual(found.map((one) => one.id), every.map((one) => one.id));
  await exchange.cancelAllOrders();
});

test("orders for exact amounts are listed with them", { skip }, async () => {
  const fate = await exchange.node().exact("buy", "EUR/USD", "3", "0.01");
  const found = await exchange.fetchOrder(String(fate.sequence));
  assert.deepEqual([found.status, found.timeInForce, found.side, found.amount, found.filled], ["canceled", "FOK", "buy", 3, 0]);
  const { rows } = await exchange.node().orders(undefined, 1);
  assert.deepEqual(rows[0]!.exact, { side: "buy", units: "3", bound: "0.01" });
});

test("books and tickers are watched", { skip }, async () => {
  const watcher = new walras({ privateKey: SECRET, urls: { api: SERVER }, options });
  try {
    await watcher.watchOrderBook("EUR/USD");
    const placed = await watcher.createOrder("EUR/USD", "limit", "sell", 3, 490);
    for (;;) {
      const { asks } = await watcher.watchOrderBook("EUR/USD");
      if (asks.some(([price, amount]) => price === 490 && amount === 3) || asks.length === 100) break;
    }
    const ticker = await watcher.watchTicker("EUR/USD");
    assert.ok(ticker.last! > 0 && ticker.symbol === "EUR/USD");
    await watcher.cancelOrder(placed.id!);
  } finally {
    await watcher.close();
  }
});

test("own orders and trades are watched by a login", { skip }, async () => {
  const watcher = new walras({ privateKey: SECRET, urls: { api: SERVER }, options });
  const keyless = new walras({ urls: { api: SERVER }, options });
  const until = async (id: string, status: string) => {
    for (;;) {
      const found = (await watcher.watchOrders("EUR/USD")).find((one) => one.id === id && one.status === status);
      if (found) return found;
    }
  };
  try {
    const rests = await watcher.createOrder("EUR/USD", "limit", "sell", 4, 495);
    const seen = await until(rests.id!, "open");
    assert.deepEqual([seen.side, seen.price, seen.amount, seen.remaining], ["sell", 495, 4, 4]);
    await watcher.cancelOrder(rests.id!);
    await until(rests.id!, "canceled");
    // What was not watched meanwhile comes with the next looks.
    await watcher.createOrder("EUR/USD", "limit", "sell", 20, 2.5);
    const bought = await watcher.createOrder("EUR/USD", "limit", "buy", 2, 3);
    await until(bought.id!, "closed");
    const trades: Awaited<ReturnType<walras["watchMyTrades"]>> = [];
    while (!trades.some((one) => one.order === bought.id)) trades.push(...(await watcher.watchMyTrades("EUR/USD")));
    const own = trades.find((one) => one.order === bought.id)!;
    assert.ok(own.side === "buy" && own.price! <= 3 && own.amount! > 0);
    const times = trades.map((one) => one.timestamp!);
    assert.deepEqual(times, [...times].sort((a, b) => a - b));
    await watcher.cancelAllOrders();
    await assert.rejects(keyless.watchOrders(), ccxt.AuthenticationError);
  } finally {
    await watcher.close();
    await keyless.close();
  }
});
