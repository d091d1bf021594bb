// What an exchange trades: markets, books and candles.
//   WALRAS_SERVER=http://127.0.0.1:8080 node examples/market-data.mjs
import { Client } from "@walras/client";

const client = new Client(process.env.WALRAS_SERVER);
const { height, offers } = await client.status();
console.log(`block ${height}, ${offers} offers, ${(await client.assets()).symbols.join(", ")}`);
for (const { market, price, best_buy, best_sell } of (await client.markets()).slice(0, 5)) {
  console.log(`${market}: last ${price}, bid ${best_buy}, ask ${best_sell}`);
  const book = await client.book(market, 3);
  for (const level of book.sells.toReversed()) console.log(`  sell ${level.amount.padStart(14)} at ${level.price}`);
  for (const level of book.buys) console.log(`  buy  ${level.amount.padStart(14)} at ${level.price}`);
  console.table(await client.candles(market, { interval: "1m", limit: 5 }), ["open", "high", "low", "close", "base_volume"]);
}
