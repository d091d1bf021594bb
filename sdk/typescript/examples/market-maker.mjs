// A small market maker: an offer on each side of the price, moved when the price moves. Its offers are cancelled when it ends.
//   WALRAS_KEY=0x… node examples/market-maker.mjs EUR/USD SIZE BLOCKS
import { Client, EthereumKey, TransactionRefusedError } from "@walras/client";
import WebSocket from "ws"; // Node.js has its own from version 22 on.

const [market, size = "100", blocks = "1000"] = process.argv.slice(2);
const SPREAD = 0.004;
const key = new EthereumKey(process.env.WALRAS_KEY);
const client = new Client(process.env.WALRAS_SERVER, { key, socket: (url) => new WebSocket(url) });

// Quotes are what the maker chooses, so doubles may compute them; what they become is written exactly.
const quote = (price) => price.toFixed(6);

let around = null;
/** Quotes anew if the price has moved by a quarter of the spread. */
async function move(price) {
  if (around !== null && Math.abs(price / around - 1) < SPREAD / 4) return;
  await client.cancelAll(market);
  const [bid, ask] = [quote(price * (1 - SPREAD / 2)), quote(price * (1 + SPREAD / 2))];
  const placed = await Promise.allSettled([client.sell(market, size, ask), client.buy(market, size, bid)]);
  for (const { reason } of placed.filter((one) => one.status === "rejected")) {
    if (!(reason instanceof TransactionRefusedError)) throw reason;
    console.log(`refused: ${reason.remedy}`);
  }
  around = price;
  console.log(`buys ${size} at ${bid}, sells ${size} at ${ask}`);
}

try {
  const { price } = await client.book(market, 1);
  if (price !== null) await move(Number(price));
  const last = (await client.status()).height + Number(blocks);
  for await (const event of client.stream(["blocks", `trades:${market}`])) {
    if (event.type === "trade") await move(Number(event.trade.price));
    if (event.type === "block" && event.block.height >= last) break;
  }
} finally {
  await client.cancelAll(market);
}
