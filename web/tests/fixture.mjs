/**
 * A small exchange for the page's tests: it speaks docs/api.md, and what it says at a height depends on the seed alone.
 * `node tests/fixture.mjs [port]` serves it with the built page for a person to look at.
 */
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const HEADERS = { "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" };
const EPOCH_MS = Date.UTC(2026, 0, 5, 9, 0, 0);
const BLOCKS_KEPT = 400;
/** Blocks below were read from the archive at start: without stage times and solver reports. */
const STARTED = 190;
const STAGES = { signatures: 21, filter: 3.1, effects: 6.4, clearing: 2.6, settlement: 4.8, digests: 7.7, log: 5.2 };

/** Four validators, of which one is away. */
const VALIDATORS = [0, 1, 2, 3];
const ABSENT = 3;

/** Symbol, decimals, value of one whole in US dollars. */
const ASSETS = [
  ["USD", 2, 1],
  ["EUR", 2, 1.0973],
  ["GBP", 2, 1.2741],
  ["JPY", 0, 0.00681],
  ["CHF", 2, 1.1364],
  ["BTC", 8, 64_210],
  ["ETH", 9, 3_180],
  ["SOL", 6, 146.2],
  ["XAU", 6, 2_338],
  ["GAS", 9, 0.021],
].map(([symbol, decimals, value], asset) => ({ asset, symbol, decimals, value }));

export const ACCOUNT = "0x" + "a1".repeat(20);
export const EMPTY_ACCOUNT = "0x" + "00".repeat(20);
/** An account for which several keys sign. */
export const TREASURY = "0x" + "7e".repeat(20);
/** It has a past, and no block does anything to it. */
export const QUIET_ACCOUNT = "0x" + "2e".repeat(20);
export const CONTRACT = "0x" + "c0".repeat(20);
/** Transactions of every block with contracts, by what they show. */
export const ETHEREUM = { settlement: "0x" + "e0".repeat(32), placed: "0x" + "e1".repeat(32), swindle: "0x" + "e2".repeat(32), created: "0x" + "e3".repeat(32) };
const OFFERS = "0x57616c7261730000000000000000000100000000";
const token = (asset) => `0x57616c72617300000000000000000000${asset.toString(16).padStart(8, "0")}`;
const word = (value) => BigInt(value).toString(16).padStart(64, "0");
const utf8 = (text) => Buffer.from(text).toString("hex");
/** EUR for USD, the fourth offer of its owner. */
const OFFER = "0x" + "0".repeat(16) + "00000001" + "00000000" + ((18n << 57n) | 11050000000000000n).toString(16).padStart(16, "0") + ((1n << 63n) + 3n).toString(16);
/** A reason that tries what strangers try: markup, a turned direction, a new line, and length. */
export const SWINDLE = "<img src=x onerror=alert(1)> \u202egnp.exe\u202c\n\u0007paid " + "a".repeat(5_000);

/** A stream of numbers in [0, 1) that the words of the seed decide. */
function random(...seed) {
  let state = 0x9e3779b9;
  for (const word of seed.flat().join("|")) state = Math.imul(state ^ word.charCodeAt(0), 0x85ebca6b) ^ (state >>> 13);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const normal = (draw) => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
const hex = (bytes, ...seed) => {
  const draw = random("hex", ...seed);
  return "0x" + Array.from({ length: bytes }, () => Math.floor(256 * draw()).toString(16).padStart(2, "0")).join("");
};

/** A plain decimal with up to 12 significant digits. */
function plain(value) {
  if (value === 0) return "0";
  const text = value.toPrecision(12);
  if (!text.includes("e")) return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  const [digits, exponent] = text.split("e");
  const places = 11 - Number(exponent);
  const all = digits.replace(".", "");
  if (places <= 0) return all + "0".repeat(-places);
  const padded = all.padStart(places + 1, "0");
  return `${padded.slice(0, -places)}.${padded.slice(-places)}`.replace(/\.?0+$/, "");
}

/** What the exchange is at every height up to its latest. */
class Exchange {
  heights = [];

  grow(height) {
    while (this.heights.length <= height) {
      const h = this.heights.length;
      const before = this.heights[h - 1]?.values ?? ASSETS.map((asset) => asset.value);
      const values = before.map((value, i) => (i === 0 ? 1 : value * Math.exp(0.0012 * normal(random("walk", h, i)))));
      this.heights.push({ values, markets: new Map() });
    }
  }

  /** Units of quote per unit of base. */
  price(height, base, quote) {
    const { values } = this.heights[height];
    return (values[base.asset] / values[quote.asset]) * 10 ** (quote.decimals - base.decimals);
  }

  /** Offers of a pair before the batch: limits in quote per base, amounts in units of what is sold. */
  market(height, base, quote) {
    const { markets } = this.heights[height];
    const key = `${base.symbol}/${quote.symbol}`;
    if (!markets.has(key)) markets.set(key, this.makeMarket(height, base, quote));
    return markets.get(key);
  }

  makeMarket(height, base, quote) {
    const [low, high] = base.asset < quote.asset ? [base, quote] : [quote, base];
    const draw = random("book", height, low.symbol, high.symbol);
    const price = this.price(height, base, quote);
    const size = Math.ceil(140 / (1 + 0.4 * (low.asset + high.asset)));
    const offers = (asset, toward) =>
      Array.from({ length: size + Math.floor(size * draw()) }, () => {
        const limit = price * Math.exp(toward * 0.004 + 0.011 * normal(draw));
        const whole = (900 * (1 - draw()) ** -0.7) / this.heights[height].values[asset.asset];
        return { limit, units: Math.max(1, Math.round(whole * 10 ** asset.decimals)) };
      });
    const ascending = (a, b) => a.limit - b.limit;
    const sells = offers(base, +1).sort(ascending);
    const buys = offers(quote, -1).sort(ascending);
    const sold = sells.filter((o) => o.limit <= price).reduce((sum, o) => sum + o.units, 0);
    const spent = buys.filter((o) => o.limit >= price).reduce((sum, o) => sum + o.units, 0);
    return { base, quote, price, sells, buys, sold, spent, bought: Math.floor(spent / price) };
  }

  block(height) {
    const draw = random("block", height);
    const transactions = Math.round(2600 + 900 * Math.sin(height / 17) + 500 * normal(draw) + (draw() < 0.04 ? 2500 : 0));
    const refused = Math.floor(transactions * 0.02 * draw());
    const stages_ms = Object.fromEntries(
      // By name, as a node writes them.
      Object.entries(STAGES).sort().map(([stage, ms]) => [stage, +(ms * (transactions / 2600) * (0.75 + draw() / 2)).toFixed(3)]),
    );
    return {
      height,
      block: hex(32, "block", height),
      parent: hex(32, "block", height - 1),
      time_ms: EPOCH_MS + 1000 * height,
      proposers: VALIDATORS.filter((index) => index !== ABSENT),
      transactions,
      applied: transactions - refused,
      refused,
      ethereum: 3,
      fills: Math.floor(transactions * 0.6),
      pairs: (ASSETS.length * (ASSETS.length - 1)) / 2,
      full: height % 23 !== 0,
      receipts_root: hex(32, "receipts", height),
      state_root: height > this.heights.length - 2 ? null : hex(32, "state", height),
      stages_ms: height < STARTED ? {} : stages_ms,
    };
  }

  batch(height) {
    const { values } = this.heights[height];
    const trades = pairs().flatMap(([base, quote]) => {
      const { sold, spent, price } = this.market(height, base, quote);
      return [
        { sell: base.symbol, buy: quote.symbol, sold: String(sold), bought: String(Math.floor(sold * price)) },
        { sell: quote.symbol, buy: base.symbol, sold: String(spent), bought: String(Math.floor(spent / price)) },
      ];
    });
    return {
      height,
      time_ms: EPOCH_MS + 1000 * height,
      full: height % 23 !== 0,
      valuations: Object.fromEntries(ASSETS.map((a, i) => [a.symbol, plain(values[i] / 10 ** a.decimals)])),
      trades,
      burnt: { USD: String(130 + (height % 40)), EUR: String(height % 17) },
      solver: height < STARTED ? null : { name: "newton", iterations: 9 + (height % 5), demand_queries: 22, unrealized_utility_ratio: 0.0021 },
    };
  }
}

function pairs() {
  return ASSETS.flatMap((base, i) => ASSETS.slice(0, i).map((quote) => [base, quote]));
}

const bySymbol = (symbol) => ASSETS.find((asset) => asset.symbol === symbol);
const positive = (units) => String(Math.max(0, Math.round(units)));

function marketRow(exchange, height, base, quote) {
  const m = exchange.market(height, base, quote);
  const sell = m.sells.find((o) => o.limit > m.price);
  const buy = m.buys.findLast((o) => o.limit < m.price);
  return {
    market: `${base.symbol}/${quote.symbol}`,
    base: base.symbol,
    quote: quote.symbol,
    ...priced(m.price, base, quote),
    price_height: height,
    base_volume: positive(Math.max(m.sold, m.bought)),
    quote_volume: positive(Math.max(m.spent, m.sold * m.price)),
    offers: m.sells.filter((o) => o.limit > m.price).length + m.buys.filter((o) => o.limit < m.price).length,
    best_sell: sell ? plain(whole(sell.limit, base, quote)) : null,
    best_sell_units: sell ? plain(sell.limit) : null,
    best_buy: buy ? plain(whole(buy.limit, base, quote)) : null,
    best_buy_units: buy ? plain(buy.limit) : null,
  };
}

const WIDE = { "1m": 60_000, "5m": 300_000, "15m": 900_000, "1h": 3_600_000, "4h": 14_400_000, "1d": 86_400_000 };

function candlesOf(exchange, height, base, quote, interval) {
  const wide = WIDE[interval];
  const candles = new Map();
  for (let at = Math.max(0, height - BLOCKS_KEPT); at <= height; at += 1) {
    const { sold, bought } = exchange.market(at, base, quote);
    const { price } = priced(exchange.price(at, base, quote), base, quote);
    const time_ms = Math.floor((EPOCH_MS + 1000 * at) / wide) * wide;
    const candle = candles.get(time_ms) ?? { time_ms, complete: false, open: price, high: price, low: price, close: price, base_volume: "0", quote_volume: "0", batches: 0 };
    candle.close = price;
    candle.high = Number(price) > Number(candle.high) ? price : candle.high;
    candle.low = Number(price) < Number(candle.low) ? price : candle.low;
    candle.base_volume = String(BigInt(candle.base_volume) + BigInt(positive(Math.max(sold, bought))));
    candle.batches += 1;
    candles.set(time_ms, candle);
  }
  return [...candles.values()];
}

/** A market at a glance; its day is what 24 such batches would make. */
function ticker(exchange, height, base, quote) {
  const row = marketRow(exchange, height, base, quote);
  const { price: open } = priced(exchange.price(Math.max(0, height - 200), base, quote), base, quote);
  const [low, high] = [open, row.price].sort((a, b) => Number(a) - Number(b));
  const day = {
    since_ms: EPOCH_MS, complete: true, open, high, low, close: row.price, change_percent: (100 * (Number(row.price) / Number(open) - 1)).toFixed(2),
    base_volume: String(24n * BigInt(row.base_volume)), quote_volume: String(24n * BigInt(row.quote_volume)), batches: 24,
  };
  return { market: row.market, height, time_ms: EPOCH_MS + 1000 * height, price: row.price, best_sell: row.best_sell, best_buy: row.best_buy, day };
}

/** A price of units as one of whole assets. */
const whole = (units, base, quote) => units * 10 ** (base.decimals - quote.decimals);
const priced = (units, base, quote) => ({ price: plain(whole(units, base, quote)), price_units: plain(units) });

function levels(offers, toBase, step, count, base, quote) {
  const grouped = new Map();
  for (const { limit, units } of offers) {
    const price = Math.round(limit / step) * step;
    const level = grouped.get(price) ?? { ...priced(price, base, quote), amount: 0, offers: 0 };
    grouped.set(price, { ...level, amount: level.amount + toBase(units, limit), offers: level.offers + 1 });
  }
  return [...grouped.values()].slice(0, count).map((l) => ({ ...l, amount: positive(l.amount) }));
}

function book(exchange, height, base, quote, count) {
  const m = exchange.market(height, base, quote);
  const step = 10 ** Math.floor(Math.log10(m.price) - 3);
  const sells = m.sells.filter((o) => o.limit > m.price);
  const buys = m.buys.filter((o) => o.limit < m.price).reverse();
  return {
    height,
    market: `${base.symbol}/${quote.symbol}`,
    ...priced(m.price, base, quote),
    price_height: height,
    sells: levels(sells, (units) => units, step, count, base, quote),
    buys: levels(buys, (units, limit) => units / limit, step, count, base, quote),
  };
}

function curves(exchange, height, base, quote, count) {
  const m = exchange.market(height, base, quote);
  const all = [...new Set([...m.sells, ...m.buys].map((o) => o.limit))].sort((a, b) => a - b);
  const chosen = all.filter((_, i) => i % Math.ceil(all.length / count) === 0 || i === all.length - 1);
  const sum = (offers) => offers.reduce((total, o) => total + o.units, 0);
  return {
    height,
    market: `${base.symbol}/${quote.symbol}`,
    ...priced(m.price, base, quote),
    indicative: priced(m.price, base, quote).price,
    indicative_units: plain(m.price),
    supply: chosen.map((p) => ({ ...priced(p, base, quote), amount: positive(sum(m.sells.filter((o) => o.limit <= p))) })),
    demand: chosen.map((p) => ({ ...priced(p, base, quote), amount: positive(sum(m.buys.filter((o) => o.limit >= p)) / p) })),
    sold: positive(m.sold),
    bought: positive(m.bought),
  };
}

const WHYS = ["filled", "part", "at_the_margin", "above_the_rate", "rounding", "not_taken"];
const TAKEN = ["filled", "part", "at_the_margin"];
const REFUSALS = [
  ["overdraft", "the account's transactions would spend more than its balance; fund it or cancel offers first"],
  ["unknown_offer", "no such offer rests on the book; it was filled or cancelled before"],
];

function offered(draw) {
  const why = WHYS[Math.floor(WHYS.length * draw())];
  const [sold, left] = [TAKEN.includes(why) ? 50_000 * draw() : 0, why === "filled" ? 0 : 9_000 * draw()];
  return { result: "offered", sold: positive(sold), bought: positive(1.1 * sold), left: positive(left), returned: "0", why };
}

function outcomes(exchange, height, offset, limit) {
  const { transactions } = exchange.block(height);
  const end = Math.min(transactions, offset + limit);
  return Array.from({ length: Math.max(0, end - offset) }, (_, i) => {
    const draw = random("outcome", height, offset + i);
    const kind = draw();
    const [code, message] = REFUSALS[Math.floor(2 * draw())];
    const outcome =
      kind < 0.3 ? { result: "applied" }
      : kind < 0.34 ? { result: "refused", code, message }
      : offered(draw);
    const account = hex(20, "sender", height, offset + i);
    const operation =
      outcome.result === "offered"
        ? { type: "create_offer", sell: "EUR", buy: "USD", amount: "60000", limit: "1.1" }
        : { type: "pay", to: hex(20, "receiver", height, offset + i), asset: "USD", amount: "500" };
    return { id: hex(32, "transaction", height, offset + i), account, sequence: String(i + 1), operation, outcome };
  });
}

function balances(height, address) {
  if (address !== ACCOUNT) return [];
  return [
    { asset: "USD", available: String(1_284_550_75 + 1_311 * height), locked: "25000000" },
    { asset: "EUR", available: String(98_431_20 - 97 * (height % 50)), locked: "1250050" },
    { asset: "BTC", available: "341250000", locked: "50000000" },
    { asset: "JPY", available: "18450221", locked: "0" },
    { asset: "XAU", available: "12500000", locked: "0" },
    { asset: "GAS", available: String(52_000_000_000 - 1_000 * height), locked: "0" },
  ];
}

/** A treasury of five with a threshold of three, one of them a wallet; one key is replaced by another. */
function treasury(height) {
  const signers = (from) => [0, 1, 2, 3].map((at) => ({ key: hex(32, "signer", from + at), weight: 1 }));
  const policy = (from, move) => ({
    keys: signers(from),
    wallets: [{ wallet: hex(20, "wallet"), weight: 1 }],
    move,
    govern: 3,
    guardian_keys: [{ key: hex(32, "guardian", 0) }, { key: hex(32, "guardian", 1) }],
    guardian_wallets: [],
    guardians: 2,
    delay: 86_400,
  });
  const due = String(Math.ceil(height / 10_000) * 10_000 + 80_000);
  return { first: hex(32, "first"), last: hex(32, "change"), policy: policy(0, 2), waiting: { policy: policy(1, 3), sessions: "close", by: "signers", due } };
}

function account(height, address) {
  const key = address === ACCOUNT ? hex(32, "key") : null;
  const code = address === CONTRACT ? { hash: hex(32, "code"), bytes: 3_121 } : undefined;
  const ethereum = { nonce: address === ACCOUNT ? "10" : "1", wei: address === ACCOUNT ? "4200017" : "0", is_contract: code !== undefined, code };
  const keys = address === TREASURY ? { keys: treasury(height), needs_reference: true } : {};
  return { address, checked_address: address, height, key, ...keys, ethereum, sequence: { highest: String(40 + height), next: String(41 + height) }, balances: balances(height, address) };
}

function offersOf(address) {
  if (address !== ACCOUNT) return [];
  return [
    { sell: "EUR", buy: "USD", limit: "1.105", price: "1.105", id: "7", amount: "1250050" },
    { sell: "USD", buy: "EUR", limit: "0.918", price: "0.918", id: "8", amount: "20000000" },
    { sell: "USD", buy: "BTC", limit: "15.9", price: "0.0000159", id: "11", amount: "5000000" },
    { sell: "BTC", buy: "USD", limit: "0.066", price: "66000", id: "12", amount: "50000000" },
    { sell: "EUR", buy: "USD", limit: "1.21", price: "1.21", id: String(BOT_SLOT + 7), amount: "3000000" },
  ];
}

function fillsOf(height) {
  const sold = 10_000 + 137 * (height % 31);
  return [{ sell: "EUR", buy: "USD", limit: "1.105", id: "7", sold: String(sold), bought: String(Math.ceil(sold * 1.105)), left: String(1_250_050 - (height % 31) * 100), returned: "0" }];
}

class NotFound extends Error {}
/** A refusal with a status and code of its own. */
class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

/** How the orders of the history stand, in turns. */
const STANDINGS = [
  ["resting", null],
  ["ended", "filled"],
  ["ended", "expired"],
  ["refused", "ends_crowded"],
];
const PAST_ORDERS = 120;
/** The order that a session key placed, the fourth of slot 1; another one of it rests. */
const PAST_BOT = 65;
const BOT_SLOT = 2 ** 43;
const numberOf = (past) => (past === PAST_BOT ? BOT_SLOT + 4 : past);

/** The order of the account with a number, in a block of its own. */
function pastOrder(number) {
  const [status, why] = STANDINGS[number % STANDINGS.length];
  const outcome = status === "refused" ? { result: "refused", code: why, message: "too many offers end at this height" } : { result: "offered", sold: "0", bought: "0", left: "1250050", returned: "0", why: "not_taken" };
  return {
    height: number, time_ms: EPOCH_MS + 1000 * number, id: hex(32, "past order", number), sequence: String(numberOf(number)), until: String(number + 64), sell: "EUR", buy: "USD",
    limit: "1.105", amount: "1250050", life: "rests", client: null, replaces: null, outcome, status, why, left: status === "resting" ? "250050" : "0", changed_height: number,
  };
}

/** An exact order, for which there was no room. */
function pastExact(number) {
  const outcome = { result: "exact", sold: "0", bought: "0", returned: "500000", why: "no_room" };
  const exact = { side: "buy", units: "400000", bound: "500000" };
  return { ...pastOrder(number), sell: "USD", buy: "EUR", limit: "0.8", amount: "500000", life: "one batch", exact, outcome, status: "ended", why: "no_room", left: "0" };
}
const PAST_EXACT = 66;

/** Its fill of 10,000.00 at 1.1 USD per EUR, one block later. */
function pastFill(number) {
  return { height: number + 1, time_ms: EPOCH_MS + 1000 * (number + 1), sell: "EUR", buy: "USD", limit: "1.105", offer: String(numberOf(number)), sold: "1000000", bought: "1100000", left: "250050", returned: "0" };
}

function pastTransfer(number) {
  const direction = number % 2 === 0 ? "in" : "out";
  return { height: number, time_ms: EPOCH_MS + 1000 * number, id: hex(32, "past transfer", number), asset: "EUR", amount: String(number), direction, kind: "payment", with: CONTRACT };
}

/** A page of a part of the history, by cursors that name the row before. */
function history(height, address, what, { cursor, limit }) {
  const placed = (number) => (number === PAST_EXACT ? pastExact(number) : pastOrder(number));
  const row = { orders: placed, fills: pastFill, transfers: pastTransfer }[what];
  const first = [ACCOUNT, QUIET_ACCOUNT].includes(address) ? (cursor === null ? PAST_ORDERS : Number(cursor.split(".")[0]) - 1) : 0;
  const numbers = Array.from({ length: Math.min(limit, first) }, (_, at) => first - at);
  const last = numbers.at(-1) ?? 0;
  return { height, known_from: 1, [what]: numbers.map(row), next: last > 1 ? `${last}.0` : null };
}

function orderFate(height, address, asked) {
  const number = asked === numberOf(PAST_BOT) ? PAST_BOT : asked;
  const order = number === PAST_EXACT ? pastExact(number) : pastOrder(number);
  const { id, sequence, until, status, why } = order;
  const isFilled = order.outcome.result === "offered";
  const fills = isFilled ? [pastFill(number)] : [];
  return { account: address, height, known_from: 1, status, until, why, id, sequence, order, sold: isFilled ? "1000000" : "0", bought: isFilled ? "1100000" : "0", returned: order.outcome.returned ?? "0", fills, others: [] };
}

const RECEIPT = { sender: ACCOUNT, result: "succeeded", gas_used: "91234", gas_price: "5000000000", logs: [] };
const ASKS = { type: 2, sender: ACCOUNT, nonce: "7", value: "0", gas_limit: "200000", max_fee: "20000000000" };

/** An Ethereum transaction by its hash: what it asked for, and its receipt. */
function ethereum(height, hash) {
  const topic = (address) => "0x" + word(address);
  switch (hash) {
    case ETHEREUM.settlement: {
      const data = "0x" + [1_250_00, 1_371_62, 0, 0].map(word).join("");
      const filled = { address: OFFERS, topics: ["0xb2d7fea430b1eabdf217d9a790b493ee386ebcd511e4028bd9894a13b9d31d2f", topic(CONTRACT), OFFER], data };
      return { receipt: { ...RECEIPT, sender: OFFERS, gas_used: "0", gas_price: "0", logs: [filled] } };
    }
    case ETHEREUM.placed: {
      const sold = { address: token(1), topics: ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", topic(ACCOUNT), topic(OFFERS)], data: "0x" + word(1_250_50) };
      const placed = { address: OFFERS, topics: ["0x8c3a6f4d39708a37629f8ff27038b80eba192db51912121a899b9993d6daca79", topic(ACCOUNT), OFFER], data: "0x" + [token(1), token(0), 1_250_50, 1_381_81].map(word).join("") };
      const strange = { address: CONTRACT, topics: ["0x" + "7".repeat(64)], data: "0x" + utf8("<script>") };
      const input = "0x6b13799b" + [token(1), token(0), 1_250_50, 1_381_81].map(word).join("");
      return { transaction: { ...ASKS, to: OFFERS, input }, receipt: { ...RECEIPT, position: 0, logs: [sold, placed, strange] } };
    }
    case ETHEREUM.swindle: {
      const input = "0xa9059cbb" + word(CONTRACT) + word(2n ** 255n);
      return { transaction: { ...ASKS, to: token(1), nonce: "8", input }, receipt: { ...RECEIPT, position: 1, result: "reverted" } };
    }
    case ETHEREUM.created:
      return { transaction: { ...ASKS, nonce: "9", value: "1500000000000000000", input: "0x6080" + "60".repeat(3_000) }, receipt: { ...RECEIPT, position: 2, contract: CONTRACT, gas_used: "1234567" } };
  }
  throw new NotFound("no such transaction waits or is among those indexed");
}

function ethereumStatus(height, hash) {
  const { transaction, receipt } = ethereum(height, hash);
  return { hash, status: "committed", transaction, receipt: { height: height - 1, ...receipt } };
}

function ethereumBlock(height) {
  const transactions = Object.values(ETHEREUM).map((hash) => {
    const { transaction, receipt } = ethereum(height, hash);
    const { position, sender, result, gas_used, contract, logs } = receipt;
    return { hash, position, sender, to: transaction?.to, contract, value: transaction?.value ?? "0", selector: transaction?.input.slice(0, 10) ?? "0x", result, gas_used, logs: logs.length };
  });
  return { height, base_fee: "5000000000", gas_used: "1417035", burnt: "7085175000000000", executed: 3, skipped: 1, transactions, more: false };
}

function swindle() {
  const text = utf8(SWINDLE);
  const output = "0x08c379a0" + word(32) + word(text.length / 2) + text;
  return { hash: ETHEREUM.swindle, result: "reverted", output, output_bytes: (output.length - 2) / 2 };
}

function answer(exchange, faults, height, url) {
  const parts = url.pathname.split("/").slice(2).map(decodeURIComponent);
  const number = (name, otherwise) => Number(url.searchParams.get(name) ?? otherwise);
  const pair = () => {
    const [base, quote] = [bySymbol(parts[1]), bySymbol(parts[2])];
    if (!base || !quote || base === quote) throw new NotFound(`there is no market ${parts[1]}/${parts[2]}`);
    return [base, quote];
  };
  const oldest = Math.max(0, height - BLOCKS_KEPT);
  // Whatever list a block has left, it is there by its height: a test on a slow machine comes back for one after minutes.
  const known = (text) => {
    const h = Number(text);
    if (!Number.isInteger(h) || h < 0 || h > height) throw new NotFound(`there is no block ${text}; the latest is ${height}`);
    return h;
  };
  switch (parts[0]) {
    case "status":
      return {
        version: "0.1.0", chain: "31337", engine: "dbft", height, block: hex(32, "block", height), time_ms: EPOCH_MS + 1000 * height,
        state: { height: height - 1, root: hex(32, "state", height - 1) }, accounts: 1_200 + height, offers: 24_310 + (height % 900),
        mempool: { transactions: Math.floor(400 * random("mempool", height)()), limit: 100_000 }, uptime_ms: 1000 * height,
        transactions_per_second: 2_611.4 + 40 * Math.sin(height / 9), committed: 2_600 * height, refused: 21 * height,
      };
    case "validator":
      return {
        engine: "dbft", me: 0, validators: VALIDATORS.length, decided: height, certified: height - 2, certified_anywhere: height - 2,
        connected: VALIDATORS.length - 2, epoch: 0, follows: false, silent: false, stranded: false, benched: [ABSENT],
        peers: VALIDATORS.map((validator) => {
          const reached = validator === ABSENT ? 40 : height;
          const away = validator === ABSENT;
          return {
            validator, connected: !away, decided: reached, certified: reached - 2, rounds: away ? null : 1 + ((height + validator) % 2),
            round_trip_ms: away || validator === 0 ? null : 0.31 * (validator + 1),
          };
        }),
      };
    case "upgrade":
      return {
        height, rules: 16, confirmed: 16, confirmed_manifest: hex(32, "rules", 16), since: 40, known: 17, manifest: hex(32, "rules", 17), operator: null,
        coming: { rules: 17, manifest: hex(32, "rules", 17), acts: height + 120, confirms: height + 20, tries: 0 }, notice_min: 100, patience: 2_400, unready: [],
        approved: [
          {
            rules: 17, manifest: hex(32, "rules", 17), notice: 100, stake: "3000", all_stake: "4000", seats: 3, seats_needed: 3, all_seats: 4, awaited_since: null,
            accounts: [ACCOUNT, QUIET_ACCOUNT],
          },
        ],
      };
    case "parameters":
      return {
        height, operator: null,
        parameters: [
          { parameter: "fee", value: "100", least: "1", most: "10000", rests_until: null },
          { parameter: "least_base_fee", value: "0", least: "0", most: "0", rests_until: null },
        ],
        coming: [{ acts: height + 45, parameters: [{ parameter: "reward", value: "20" }], lists: ["JPY"], closes: [] }],
        proposals: [
          {
            id: hex(32, "proposal"), proposer: ACCOUNT, change: { type: "propose_parameter", parameter: "fee", value: "200" }, words: "fee becomes 200",
            boundaries_left: 3, seats: 2, seats_needed: 3, all_seats: 4, stake: "2000", all_stake: "4000", yes: [ACCOUNT], no: [],
          },
        ],
      };
    case "fairness": {
      const figure = (p50_us, label = "proven") => ({ p50_us, p99_us: 3 * p50_us, label });
      return {
        epoch: 12, layers: [1, 2, 4, 20], hedging: 1, proxies: [1, 2, 3, 4, 5, 6], gateways: Array.from({ length: 20 }, (_, at) => 1_000 + at),
        headroom_us: 1_240.5, packets: 40 * height, orders: 7 * height, orders_restamped: 3, order_copies: 11, bundles: 0, orders_late_for_their_bundle: 0,
        forged_or_malformed_datagrams: 5, sampled_packets: 10 * height, samples_that_some_gateway_missed: 0,
        delivery_window: figure(0.6), lateness: figure(0.9), hold_time: figure(410), one_way_delay: figure(820, "estimated"), clock_error_bound_us: 0.2,
        clock_offsets: [{ member: 1_001, ahead_us: -0.4, bound_us: 21.5, drift_ppm: 0.1, share_of_pure_probes: 0.4, label: "estimated" }],
        share_within_1_us: { value: 0.973, label: "estimated" }, share_proven_within_1_us: { value: 0.941, label: "proven" }, evictions: 1,
        log: [
          { number: 2, epoch: 12, at_ns: "1767603600000000002", what: { event: "admitted", member: 1_003, value_ns: null } },
          { number: 1, epoch: 11, at_ns: "1767603600000000001", what: { event: "evicted", member: 1_003, value_ns: "301000000" } },
        ],
        log_head: hex(32, "fairness"),
      };
    }
    case "assets":
      if (parts[2] === "holders") {
        const isFrozen = parts[3] === ACCOUNT && parts[1] === "8";
        return { height, control: parts[1] === "8" ? "admitted_recoverable" : "open", standing: isFrozen ? "frozen" : "open", ...(isFrozen ? { since: 120 } : {}) };
      }
      return { assets: ASSETS.map(({ asset, symbol, decimals, value }) => ({ asset, symbol, decimals, issuer: ACCOUNT, least_units: "4096", issued: "900000000000000", valuation: plain(value / 10 ** decimals), token: token(asset), ...(symbol === "XAU" ? { issuer: QUIET_ACCOUNT, control: "admitted_recoverable" } : {}) })) };
    case "venues":
      return { height, venues: [], more: false, next: null };
    case "tickers":
      return { height, tickers: pairs().map(([base, quote]) => ticker(exchange, height, base, quote)) };
    case "markets":
      if (parts.length === 1) return { height, markets: pairs().map(([base, quote]) => marketRow(exchange, height, base, quote)) };
      if (parts[3] === "book") return book(exchange, height, ...pair(), number("levels", 50));
      if (parts[3] === "curves") return curves(exchange, height, ...pair(), number("points", 200));
      if (parts[3] === "history") {
        const [base, quote] = pair();
        const from = Math.max(oldest, height - number("limit", 500) + 1);
        const points = Array.from({ length: height - from + 1 }, (_, i) => {
          const { sold, bought } = exchange.market(from + i, base, quote);
          return { height: from + i, time_ms: EPOCH_MS + 1000 * (from + i), ...priced(exchange.price(from + i, base, quote), base, quote), base_volume: positive(Math.max(sold, bought)) };
        });
        return { market: `${base.symbol}/${quote.symbol}`, points };
      }
      break;
    case "blocks": {
      if (parts.length === 1) {
        const before = Math.min(height + 1, number("before", height + 1));
        const length = Math.max(0, Math.min(number("limit", 20), before - oldest));
        return { blocks: Array.from({ length }, (_, i) => exchange.block(before - 1 - i)) };
      }
      const h = known(parts[1]);
      if (parts[2] === "batch") return exchange.batch(h);
      if (parts[2] === "ethereum") return ethereumBlock(h);
      const [offset, limit] = [number("offset", 0), number("limit", 100)];
      return { ...exchange.block(h), outcomes: outcomes(exchange, h, offset, limit), more: offset + limit < exchange.block(h).transactions, next: null };
    }
    case "accounts":
      if (!/^0x[0-9a-f]{40}$/.test(parts[1] ?? "")) break;
      if (parts[2] === "offers") return { height, offers: offersOf(parts[1]), more: false, next: null };
      if (["orders", "fills", "transfers"].includes(parts[2])) {
        if (faults.history === "off") throw new Refused(404, "no_history", "this node keeps no history of accounts");
        if (faults.history === "behind") {
          faults.behind -= 1;
          if (faults.behind === 0) faults.history = null;
          return history(0, EMPTY_ACCOUNT, parts[2], { cursor: null, limit: 1 });
        }
        const cursor = url.searchParams.get("cursor");
        if (faults.history === "gone" && cursor !== null) throw new Refused(410, "history_gone", "the history of this node begins at block 200: begin again without `cursor`");
        return parts[3] === undefined ? history(height, parts[1], parts[2], { cursor, limit: number("limit", 100) }) : orderFate(height, parts[1], Number(parts[3]));
      }
      if (parts[1] === EMPTY_ACCOUNT) throw new NotFound("there is no account at this address");
      return account(height, parts[1]);
    case "limits":
      return { fee: "1000", fee_asset: "USD" };
    case "ethereum":
      if (parts[2] === "output") return swindle();
      return ethereumStatus(height, parts[1]);
    case "transactions":
      if (Object.values(ETHEREUM).includes(parts[1])) throw new NotFound("no such transaction waits or is among those indexed");
      if (parts[1] === hex(32, "transaction", height - 1, 0)) return { id: parts[1], status: "pending" };
      return {
        id: parts[1],
        status: "committed",
        height: height - 1,
        account: ACCOUNT,
        sequence: "7",
        operation: { type: "create_offer", sell: "BTC", buy: "USD", amount: "150000000", limit: "0.05" },
        outcome: { result: "offered", sold: "120000000", bought: "7705200", left: "30000000", returned: "0", why: "at_the_margin" },
      };
  }
  throw new NotFound("there is nothing at this path");
}

function serveFile(url, response) {
  const name = normalize(url.pathname === "/" ? "/index.html" : url.pathname);
  const file = join(DIST, name);
  if (!file.startsWith(DIST) || !existsSync(file) || !statSync(file).isFile()) return void response.writeHead(404, HEADERS).end();
  response.writeHead(200, { ...HEADERS, "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
}

function snapshot(exchange, height, channel) {
  const [name, of] = [channel.split(":")[0], channel.slice(channel.indexOf(":") + 1)];
  const start = { type: "snapshot", channel };
  if (name === "blocks") return { ...start, blocks: Array.from({ length: 20 }, (_, i) => exchange.block(height - 19 + i)) };
  if (name === "batches") return { ...start, batch: exchange.batch(height) };
  if (name === "trades") return { ...start, trades: trades(exchange, height, channel).map(({ type: _, ...trade }) => trade) };
  const sides = sidesOf(of);
  if (name === "ticker" || name === "candles") {
    if (!sides) return { type: "error", code: "unknown_channel", message: `no market ${of}` };
    return name === "ticker" ? { ...start, ticker: ticker(exchange, height, ...sides) } : { ...start, candles: candlesOf(exchange, height, ...sides, of.split(":")[1]) };
  }
  return { ...start, account: account(height, of), offers: offersOf(of) };
}

/** Both assets of a market that a channel names; null where there is none. */
function sidesOf(name) {
  const sides = name.split(":")[0].split("/").map(bySymbol);
  return sides.length === 2 && sides.every(Boolean) ? sides : null;
}

function trades(exchange, height, channel) {
  return pairs()
    .filter(([base, quote]) => channel === "trades" || channel === `trades:${base.symbol}/${quote.symbol}`)
    .map(([base, quote]) => {
      const { market, price, price_units, base_volume, quote_volume } = marketRow(exchange, height, base, quote);
      return { type: "trade", height, market, price, price_units, base_volume, quote_volume };
    });
}

function increments(exchange, height, channel) {
  if (channel === "blocks") return [{ type: "block", ...exchange.block(height) }];
  if (channel === "batches") return [{ type: "batch", ...exchange.batch(height) }];
  if (channel.startsWith("trades")) return trades(exchange, height, channel);
  const [kind, market, interval] = channel.split(":");
  if (kind === "ticker" || kind === "candles") {
    const sides = sidesOf(market);
    if (!sides) return [];
    return [kind === "ticker" ? { type: "ticker", ...ticker(exchange, height, ...sides) } : { type: "candle", height, market, interval, candle: candlesOf(exchange, height, ...sides, interval).at(-1) }];
  }
  const address = channel.slice("account:".length);
  if (address === QUIET_ACCOUNT) return [];
  const fills = address === ACCOUNT && height % 2 === 0 ? fillsOf(height) : [];
  return [{ type: "account", height, address, outcomes: [], fills, balances: balances(height, address) }];
}

/**
 * Starts the exchange with a block every `interval_ms`. Besides `url`, the answer has the faults that tests inflict:
 * `cut` closes the streams, `skip` leaves one sequence number out, `mute` stops all sending. Until `mend`, who comes back is
 * left without an answer: a page that returned at once would show what went wrong for less than half a second.
 */
export async function startFixture({ port = 0, height: start = 260, interval_ms = 500 } = {}) {
  const exchange = new Exchange();
  exchange.grow(start);
  const faults = { hold: false, mute: false, history: null, behind: 0 };
  const held = [];
  const clients = new Map();
  let height = start;

  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://fixture");
    if (!url.pathname.startsWith("/v1/")) return serveFile(url, response);
    try {
      respond(response, 200, answer(exchange, faults, height, url));
    } catch (error) {
      if (!(error instanceof NotFound || error instanceof Refused)) throw error;
      respond(response, error.status ?? 404, { error: { code: error.code ?? "not_found", message: error.message } });
    }
  });

  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    if (request.url !== "/v1/stream") return socket.destroy();
    if (faults.hold) return held.push(socket.on("error", () => socket.destroy()));
    sockets.handleUpgrade(request, socket, head, accept);
  });

  function accept(socket) {
    const client = { socket, sequence: 0, channels: new Set() };
    clients.set(socket, client);
    socket.on("close", () => clients.delete(socket));
    socket.on("message", (data) => {
      const { subscribe = [], unsubscribe = [] } = JSON.parse(data);
      for (const channel of unsubscribe) client.channels.delete(channel);
      for (const channel of subscribe) {
        client.channels.add(channel);
        send(client, snapshot(exchange, height, channel));
      }
    });
  }

  function send(client, message) {
    if (!faults.mute) client.socket.send(JSON.stringify({ ...message, sequence: client.sequence++ }));
  }

  function beat() {
    height += 1;
    exchange.grow(height);
    for (const client of clients.values()) {
      for (const channel of client.channels) for (const message of increments(exchange, height, channel)) send(client, message);
      send(client, { type: "heartbeat", height, time_ms: EPOCH_MS + 1000 * height });
    }
  }

  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const timer = setInterval(beat, interval_ms);
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    height: () => height,
    streams: () => clients.size,
    cut() {
      faults.hold = true;
      for (const { socket } of clients.values()) socket.terminate();
    },
    skip() {
      faults.hold = true;
      for (const client of clients.values()) client.sequence += 1;
    },
    mute() {
      faults.hold = faults.mute = true;
    },
    /** No history is kept (`off`), the older pages of it are gone (`gone`), or the index has no block at the next three questions (`behind`). */
    lose(history) {
      faults.history = history;
      faults.behind = 3;
    },
    mend() {
      faults.hold = faults.mute = false;
      faults.history = null;
      for (const socket of held.splice(0)) socket.destroy();
    },
    async close() {
      clearInterval(timer);
      this.mend();
      for (const { socket } of clients.values()) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function respond(response, status, body) {
  response.writeHead(status, { ...HEADERS, "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const fixture = await startFixture({ port: Number(process.argv[2] ?? 8090), interval_ms: 1000 });
  console.log(fixture.url);
}
