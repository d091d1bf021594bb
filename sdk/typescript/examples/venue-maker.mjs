// A market maker at a continuous market: an order on each side of the last price, shifted against what it has bought or sold. The venue
// ends its orders if the connection breaks or says nothing for five seconds.
//   WALRAS_SERVER=http://127.0.0.1:8070 WALRAS_PASSPHRASE=… node examples/venue-maker.mjs trading.json MARKET LOTS SECONDS
import { readFileSync } from "node:fs";
import { openTradingKey } from "@walras/client/keystore";
import WebSocket from "ws"; // Node.js has its own from version 22 on.

const [file, market = "0", lots = "10", seconds = "60"] = process.argv.slice(2);
const [AWAY, SKEW, LIFE, SILENCE_MS, DAY_MS] = [5, 0.1, 600, 5_000, 86_400_000];
const server = process.env.WALRAS_SERVER ?? "http://127.0.0.1:8070";
const key = await openTradingKey(readFileSync(file, "utf8"), process.env.WALRAS_PASSPHRASE ?? "");
const get = async (path) => (await fetch(server + path)).json();

const { network, venue, incarnation } = await get("/v1/venue");
const scope = { network, venue, incarnation };
const terms = (await get("/v1/venue/markets")).markets.find((one) => one.market === Number(market));
let [last, holds, stamp, reference] = [Math.round(((terms.bid ?? terms.ask) + (terms.ask ?? terms.bid)) / 2), 0, 0, 0];

const socket = new WebSocket(`${server.replace(/^http/, "ws")}/v1/venue/stream`);
const say = (message) => socket.send(JSON.stringify(message));
const signed = (ask) => key.request(ask, (stamp = Math.max(stamp + 1, Date.now())), scope);

/** Both sides anew: who has bought asks for less. */
async function quote() {
  const { height, day, clock_ms } = await get("/v1/venue");
  const middle = Math.max(AWAY + 1, Math.round(last - SKEW * holds));
  const order = (side, tick) => {
    // Milliseconds of the day: numbers that a restart does not use again.
    reference = Math.max(reference + 1, clock_ms % DAY_MS);
    const number = { incarnation, day, reference };
    const rules = { side, life: "post_only", self_trade: "expire_taker", until_ms: null, fee_cap_ppm: terms.fee_cap_ppm };
    const floor = { incarnation, day: 0, reference: 0 };
    return key.order({ market: terms.market, number, floor, tick, lots: Number(lots), expiry: height + LIFE, ...rules }, scope);
  };
  say({ request: signed({ cancel_all: { market: terms.market, side: null } }) });
  say({ id: "quotes", orders: [order("buy", middle - AWAY), order("sell", middle + AWAY)] });
  console.log(`holds ${holds} lots; buys at tick ${middle - AWAY}, sells at ${middle + AWAY}`);
}

socket.on("open", () => {
  say({ id: "attach", attach: signed({ attach: { session: 1, ends_orders: true, dead_man_ms: SILENCE_MS } }) });
  say({ books: [terms.market] });
});
socket.on("message", (text) => {
  const message = JSON.parse(text);
  if (message.type === "attached") void quote();
  if (message.type === "error") console.error(message.error.message);
  for (const { executed } of message.type === "book" ? message.events : []) last = executed?.tick ?? last;
  if (message.type !== "report" || message.report.type !== "executed") return;
  const { side, lots: traded, tick } = message.report.executed;
  holds += side === "buy" ? traded : -traded;
  console.log(`${side === "buy" ? "bought" : "sold"} ${traded} lots at tick ${tick}`);
});
const timer = setInterval(() => void quote(), 1_000);
setTimeout(() => socket.close(), 1_000 * Number(seconds));
socket.on("close", () => clearInterval(timer));
