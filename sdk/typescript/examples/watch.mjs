// Follows batches and an account, from some blocks ago, through lost connections.
//   node examples/watch.mjs [ADDRESS] [BLOCKS]
import { Client } from "@walras/client";
import WebSocket from "ws"; // Node.js has its own from version 22 on.

const [address, blocks] = process.argv.slice(2);
const client = new Client(process.env.WALRAS_SERVER, { socket: (url) => new WebSocket(url) });
const { height } = await client.status();
const last = blocks === undefined ? Infinity : height + Number(blocks);
const channels = ["batches", ...(address ? [`account:${address}`] : [])];
for await (const event of client.stream(channels, { fromHeight: Math.max(1, height - 20) })) {
  if (event.type === "batch") {
    const traded = event.batch.trades.map(({ sell, buy, sold, bought }) => `${sold} ${sell} for ${bought} ${buy}`);
    console.log(`batch ${event.batch.height}: ${traded.join(", ") || "no trade"}`);
    if (event.batch.height >= last) break;
  }
  if (event.type === "snapshot" && event.account) console.log(`holds ${event.account.balances.map((one) => `${one.available} ${one.asset}`).join(", ")}`);
  if (event.type === "account") for (const fill of event.fills) console.log(`offer ${fill.id} sold ${fill.sold} ${fill.sell} for ${fill.bought} ${fill.buy}`);
  if (event.type === "missed") console.log(`blocks ${event.first} to ${event.last} of ${event.channel} cannot be had any more`);
  if (event.type === "disconnected") console.log(`${event.reason} Again in ${event.retry_ms} ms.`);
}
