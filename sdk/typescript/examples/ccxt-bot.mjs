// The same exchange through ccxt, as existing bots use it.
//   WALRAS_KEY=0x… node examples/ccxt-bot.mjs
import { walras } from "@walras/client/ccxt";

const api = process.env.WALRAS_SERVER ?? "http://127.0.0.1:8080";
const exchange = new walras({ privateKey: process.env.WALRAS_KEY, urls: { api } });
await exchange.loadMarkets();
const [symbol] = exchange.symbols;
const { last, bid, ask } = await exchange.fetchTicker(symbol);
console.log(`${symbol}: last ${last}, bid ${bid}, ask ${ask}`);
const far = exchange.priceToPrecision(symbol, (last ?? 1) * 10);
const order = await exchange.createOrder(symbol, "limit", "sell", 1, far);
console.log(`order ${order.id} is ${order.status}, ${order.remaining} remain`);
console.log(`open: ${(await exchange.fetchOpenOrders(symbol)).map((one) => one.id)}`);
await exchange.cancelOrder(order.id);
console.log("free:", (await exchange.fetchBalance()).free);
await exchange.close();
