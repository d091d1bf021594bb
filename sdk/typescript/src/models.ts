/** What a node answers, with amounts and prices as decimal text in whole assets. */
import type { AccountKeys } from "./policy.js";
import type * as bodies from "./bodies.js";
import type { Assets } from "./assets.js";
import { divide, parseDecimal, plainText } from "./decimal.js";
import { slotOf } from "./slot.js";

export type Balance = { asset: string; available: string; locked: string };
/** `session_slots` are given to session keys; the next one is one above. */
export type Account = {
  address: string;
  height: number;
  key: string | null;
  /** Whether payments to it need a reference; others are refused. */
  needs_reference: boolean;
  /** Its policy of several keys; null if one key signs alone. */
  keys: AccountKeys | null;
  highest: bigint;
  next: bigint;
  balances: Balance[];
  session_slots: number;
  sessions: SessionKey[];
};
/** What a session key may use of an asset; `used` is locked and sold less bought, fees included, below zero if it bought more. */
export type SessionBudget = { asset: string; cap: string; used: string };
/**
 * A session key as the chain has it: `live`; `lapsed`, if it may only cancel until its timer is raised; or `ended`. Its
 * transactions count up to block `ends`; its offers end with block `alive`. Its numbers have the slot in their upper bits.
 */
export type SessionKey = {
  slot: number;
  key: string;
  scope: "cancel" | "trade" | "duty";
  status: "live" | "lapsed" | "ended";
  ends: number;
  alive: number;
  highest: bigint;
  next: bigint;
  caps: SessionBudget[];
};
/**
 * `limit` is the price in units, which a cancellation signs; `account` is told in lists of a market. `slot` is that of the
 * session key that placed it; 0 if the account's own key did, or a contract. `asked` is what rests in the terms of its market.
 */
export type Offer = { id: bigint; slot: number; sell: string; buy: string; amount: string; price: string; limit: string; asked: OrderTerms | null; account?: string };
export type Level = { price: string; amount: string; offers: number };
/** `sells` begin with the cheapest, `buys` with the dearest. */
/** `time_ms` is that of the block of `height`; null where it is not known. */
export type Book = { market: string; height: number; time_ms: number | null; price: string | null; sells: Level[]; buys: Level[] };
export type Market = {
  market: string;
  base: string;
  quote: string;
  price: string | null;
  indicative: string | null;
  best_sell: string | null;
  best_buy: string | null;
  base_volume: string;
  quote_volume: string;
  offers: number;
};
export type Candle = {
  time_ms: number;
  open: string;
  high: string;
  low: string;
  close: string;
  base_volume: string;
  quote_volume: string;
  batches: number;
  complete: boolean;
};
export type PricePoint = { height: number; time_ms: number; price: string; base_volume: string };
/** What a market traded in one batch; `quote_volume` is null where only the history told of it. */
export type Trade = { market: string; height: number; price: string; base_volume: string; quote_volume: string | null };
export type BatchTrade = { sell: string; buy: string; sold: string; bought: string };
export type Batch = { height: number; time_ms: number; full: boolean; valuations: Record<string, string>; trades: BatchTrade[]; burnt: Record<string, string> };
/** What one of an account's offers traded in a batch; `price` is bought for one sold. */
export type Fill = { id: bigint; sell: string; buy: string; price: string; sold: string; bought: string; left: string; returned: string };
export type Outcome =
  | { result: "applied" | "void" }
  | { result: "cancelled"; found: number; missing: number }
  | { result: "replaced"; remained?: string; sold?: string; bought?: string; left?: string; returned?: string; why: string }
  | { result: "offered"; sold?: string; bought?: string; left?: string; returned?: string; why: string }
  | { result: "pooled"; a: string; b: string; shares: string }
  | { result: "exact"; sold: string; bought: string; returned: string; why: string }
  | { result: "listed"; number: number }
  /** An envelope: `opened`, `garbage` or `unpaid`. */
  | { result: "sealed"; why: string; code?: string; message?: string }
  | { result: "refused"; code: string; message: string };

/**
 * What became of a transaction: `pending` in a node's pool; `executed` in a block; `refused` without effect (anybody who
 * has the bytes may send them again up to block `until`, unless another transaction takes its number); `void`, it can
 * never count; `unknown` to the node, and may count up to block `until`.
 */
export type Fate = {
  id: string;
  state: "pending" | "executed" | "refused" | "void" | "unknown";
  sequence?: bigint;
  until?: bigint;
  height?: number;
  outcome?: Outcome;
  code?: string;
  message?: string;
};

export const balance = (body: bodies.Balance, assets: Assets): Balance => {
  const asset = assets.get(body.asset);
  return { asset: asset.symbol, available: asset.amount(body.available), locked: asset.amount(body.locked) };
};

export const account = (body: bodies.Account, assets: Assets): Account => ({
  address: body.address,
  height: body.height,
  key: body.key ?? null,
  highest: BigInt(body.sequence.highest),
  next: BigInt(body.sequence.next),
  balances: body.balances.map((one) => balance(one, assets)),
  needs_reference: body.needs_reference ?? false,
  keys: body.keys ?? null,
  session_slots: body.session_slots ?? 0,
  sessions: (body.sessions ?? []).map((one) => sessionKey(one, assets)),
});

const sessionKey = ({ slot, key, scope, status, ends, alive, sequence, caps }: bodies.SessionBody, assets: Assets): SessionKey => ({
  ...{ slot, key, scope, status, ends: Number(ends), alive: Number(alive) },
  ...{ highest: BigInt(sequence.highest), next: BigInt(sequence.next) },
  caps: caps.map(({ asset, units, used }) => ({ asset, cap: assets.get(asset).amount(units), used: assets.get(asset).amount(used) })),
});

/** An order as it was placed: amount of the base and price in quote per base, in whole assets. */
export type OrderTerms = { side: "buy" | "sell"; base: string; quote: string; amount: string; price: string };

const orderTerms = (body: bodies.OrderTerms | null | undefined, assets: Assets): OrderTerms | null => {
  if (!body) return null;
  const { side, base, quote, amount, price } = body;
  return { side, base, quote, amount: assets.get(base).amount(amount), price };
};

export const offer = (body: bodies.Offer & { account?: string }, assets: Assets): Offer => ({
  id: BigInt(body.id),
  slot: slotOf(BigInt(body.id)),
  sell: body.sell,
  buy: body.buy,
  amount: assets.get(body.sell).amount(body.amount),
  price: body.price,
  limit: body.limit,
  asked: orderTerms(body.asked, assets),
  ...(body.account === undefined ? {} : { account: body.account }),
});

export const book = (body: bodies.Book, assets: Assets): Book => {
  const [base] = assets.market(body.market);
  const level = ({ price, amount, offers }: bodies.Level) => ({ price, amount: base.amount(amount), offers });
  const { market, height, price } = body;
  return { market, height, time_ms: body.time_ms || null, price, sells: body.sells.map(level), buys: body.buys.map(level) };
};

export const market = (body: bodies.Market, assets: Assets): Market => ({
  market: body.market,
  base: body.base,
  quote: body.quote,
  price: body.price,
  indicative: body.indicative,
  best_sell: body.best_sell,
  best_buy: body.best_buy,
  base_volume: assets.get(body.base).amount(body.base_volume),
  quote_volume: assets.get(body.quote).amount(body.quote_volume),
  offers: body.offers,
});

/** How an order stands; see `OrderFate`. */
export type OrderStatus = "pending" | "refused" | "resting" | "ended" | "void";
const ORDER_STATUSES: readonly string[] = ["pending", "refused", "resting", "ended", "void"];

/** A status that a later node may tell is not taken for one of these. */
function orderStatus(status: string): OrderStatus {
  if (ORDER_STATUSES.includes(status)) return status as OrderStatus;
  throw new Error(`it tells the status ${JSON.stringify(status)} of an order; this client knows ${ORDER_STATUSES.join(", ")}`);
}

export type PastFill = Omit<bodies.PastFill, "offer"> & { offer: bigint };
/** An order in a block; amounts are null where it names an asset that there is not. */
export type PastOrder = Omit<bodies.PastOrder, "sequence" | "until" | "amount" | "left" | "sold" | "bought" | "outcome" | "status" | "exact" | "asked"> & {
  status: OrderStatus;
  sequence: bigint;
  until: bigint;
  amount: string | null;
  left: string | null;
  /** In all of its fills; null where an asset is unknown, the fills are too many for the answer, or the node is older. */
  sold: string | null;
  bought: string | null;
  /** Of an order for an exact amount which of the two is exact, that amount, and the bound in all of the other asset. */
  exact: { side: "buy" | "sell"; units: string | null; bound: string | null } | null;
  /** What it asks for, as it was placed; null if it names assets that there are not, or no amount. */
  asked: OrderTerms | null;
};
/** An order that the node took and that is in no block yet. */
export type PendingOrder = { id: string; sequence: bigint; until: bigint };
export type OwnOrders = { height: number; account: string; orders: PastOrder[]; fills: PastFill[]; pending: PendingOrder[] };
export type PastTransfer = bodies.PastTransfer;
export type OrderFate = {
  status: OrderStatus;
  until: bigint;
  why: string | null;
  id: string;
  sequence: bigint;
  order: PastOrder | null;
  fills: PastFill[];
  /** Null while it is in no block. */
  sold: string | null;
  bought: string | null;
  returned: string | null;
  known_from: number;
  /** The last height of the node's index. */
  height: number;
};

export const pastFill = (body: bodies.PastFill, assets: Assets): PastFill => {
  const [sell, buy] = [assets.get(body.sell), assets.get(body.buy)];
  const amounts = { sold: sell.amount(body.sold), left: sell.amount(body.left), returned: sell.amount(body.returned) };
  return { ...body, ...amounts, bought: buy.amount(body.bought), offer: BigInt(body.offer) };
};

export const pastOrder = ({ outcome: _, ...body }: bodies.PastOrder, assets: Assets): PastOrder => {
  const known = (symbol: string) => (assets.symbols.includes(symbol) ? assets.get(symbol) : null);
  const [sell, buy] = [known(body.sell), known(body.buy)];
  const [own, other] = body.exact?.side === "buy" ? [buy, sell] : [sell, buy];
  const exact = body.exact ? { side: body.exact.side, units: own?.amount(body.exact.units) ?? null, bound: other?.amount(body.exact.bound) ?? null } : null;
  const asked = orderTerms(body.asked, assets);
  const amounts = { exact, asked, amount: sell?.amount(body.amount) ?? null, left: sell?.amount(body.left) ?? null };
  const moved = { sold: (body.sold && sell?.amount(body.sold)) || null, bought: (body.bought && buy?.amount(body.bought)) || null };
  return { ...body, ...amounts, ...moved, status: orderStatus(body.status), sequence: BigInt(body.sequence), until: BigInt(body.until) };
};

export const ownOrders = ({ height, account, orders, fills, pending }: bodies.OwnOrders, assets: Assets): OwnOrders => ({
  height,
  account,
  orders: orders.map((one) => pastOrder(one, assets)),
  fills: fills.map((one) => pastFill(one, assets)),
  pending: pending.map(({ id, sequence, until }) => ({ id, sequence: BigInt(sequence), until: BigInt(until) })),
});

export const pastTransfer = (body: bodies.PastTransfer, assets: Assets): PastTransfer => ({
  ...body,
  amount: assets.get(body.asset).amount(body.amount),
  reference: body.reference ?? null,
});

export const orderFate = (body: bodies.OrderFate, assets: Assets): OrderFate => {
  const { status, why, id, known_from, height } = body;
  const order = body.order && pastOrder(body.order, assets);
  const amount = (symbol: string | undefined, units: string | null) =>
    symbol !== undefined && units !== null && assets.symbols.includes(symbol) ? assets.get(symbol).amount(units) : null;
  const sums = { sold: amount(order?.sell, body.sold), bought: amount(order?.buy, body.bought), returned: amount(order?.sell, body.returned) };
  const fills = body.fills.map((one) => pastFill(one, assets));
  return { status: orderStatus(status), why, id, known_from, height, order, fills, ...sums, until: BigInt(body.until), sequence: BigInt(body.sequence) };
};

/** No promise: others' orders may come first. `asked` is the order in its market, null without a limit.
 * `price` is that of the batch, before commission; null if it would clear nothing. */
export type Quote = { height: number; sell: string; buy: string; asked: OrderTerms | null; sold: string; bought: string; left: string; returned: string; why: string; price: string | null; last_price: string | null };

export const quote = ({ height, sell, buy, asked, sold, bought, left, returned, why, price, last_price }: bodies.Quote, assets: Assets): Quote => {
  const [sells, buys] = [assets.get(sell), assets.get(buy)];
  const rest = { left: sells.amount(left), returned: sells.amount(returned) };
  return { height, sell, buy, asked: orderTerms(asked, assets), sold: sells.amount(sold), bought: buys.amount(bought), ...rest, why, price, last_price };
};

export type Ticker = bodies.Ticker;

export const ticker = (body: bodies.Ticker, assets: Assets): Ticker => {
  const [base, quote] = assets.market(body.market);
  const { market, height, time_ms, price, best_sell, best_buy, day } = body;
  const volumes = (of: bodies.Day) => ({ base_volume: base.amount(of.base_volume), quote_volume: quote.amount(of.quote_volume) });
  return { market, height, time_ms, price, best_sell, best_buy, day: day && { ...day, ...volumes(day) } };
};

export const candle = (body: bodies.Candle, assets: Assets, name: string): Candle => {
  const [base, quote] = assets.market(name);
  const { time_ms, open, high, low, close, batches, complete } = body;
  const volumes = { base_volume: base.amount(body.base_volume), quote_volume: quote.amount(body.quote_volume) };
  return { time_ms, open, high, low, close, ...volumes, batches, complete };
};

export const point = (body: bodies.HistoryPoint, assets: Assets, name: string): PricePoint => ({
  height: body.height,
  time_ms: body.time_ms,
  price: body.price,
  base_volume: assets.market(name)[0].amount(body.base_volume),
});

export const trade = (body: { market: string; height: number; price: string; base_volume: string; quote_volume: string }, assets: Assets): Trade => {
  const [base, quote] = assets.market(body.market);
  const volumes = { base_volume: base.amount(body.base_volume), quote_volume: quote.amount(body.quote_volume) };
  return { market: body.market, height: body.height, price: body.price, ...volumes };
};

export const batch = (body: bodies.Batch, assets: Assets): Batch => ({
  height: body.height,
  time_ms: body.time_ms,
  full: body.full,
  valuations: body.valuations,
  trades: body.trades.map(({ sell, buy, sold, bought }) => ({
    sell,
    buy,
    sold: assets.get(sell).amount(sold),
    bought: assets.get(buy).amount(bought),
  })),
  burnt: Object.fromEntries(Object.entries(body.burnt).map(([symbol, units]) => [symbol, assets.get(symbol).amount(units)])),
});

type FillBody = { id: string | number; sell: string; buy: string; sold: string; bought: string; left: string; returned: string };

export const fill = (body: FillBody, assets: Assets): Fill => {
  const [sell, buy] = [assets.get(body.sell), assets.get(body.buy)];
  const [sold, bought] = [sell.amount(body.sold), buy.amount(body.bought)];
  const zero = { digits: 0n, scale: 0 };
  const price = divide(parseDecimal(bought) ?? zero, parseDecimal(sold) ?? zero) ?? zero;
  const rest = { left: sell.amount(body.left), returned: sell.amount(body.returned) };
  return { id: BigInt(body.id), sell: sell.symbol, buy: buy.symbol, price: plainText(price), sold, bought, ...rest };
};

/** `pair` is sold and bought, if the operation is known. */
export const outcome = (body: bodies.Outcome, assets: Assets, pair: [string, string] | null): Outcome => {
  if (body.result === "exact" && pair !== null) {
    const [sell, buy] = [assets.get(pair[0]), assets.get(pair[1])];
    return { ...body, sold: sell.amount(body.sold), bought: buy.amount(body.bought), returned: sell.amount(body.returned) };
  }
  if (body.result === "sealed") {
    const { became: why, code, message } = body;
    return { result: "sealed", why, ...(code === undefined ? {} : { code }), ...(message === undefined ? {} : { message }) };
  }
  if (body.result !== "offered" && body.result !== "replaced") return body;
  if (pair === null) return { result: body.result, why: body.why };
  const [sell, buy] = [assets.get(pair[0]), assets.get(pair[1])];
  const amounts = { sold: sell.amount(body.sold), bought: buy.amount(body.bought), left: sell.amount(body.left), returned: sell.amount(body.returned) };
  if (body.result === "offered") return { result: "offered", ...amounts, why: body.why };
  return { result: "replaced", remained: sell.amount(body.remained), ...amounts, why: body.why };
};
