/**
 * Walras as an exchange of `ccxt`: bots that speak ccxt trade here unchanged.
 *
 *     const exchange = new walras({ privateKey: "0x…", urls: { api: "http://127.0.0.1:8080" } });
 *
 * An order is an offer of the batch exchange. What follows from that:
 *
 * - **Limit orders** trade at the batch's price or rest (`GTC`), or with `timeInForce` `IOC` trade in the batch of the next block
 *   alone. An order to *buy* stops at its amount where the next batch fills it whole; what waits in the book spends what it costs
 *   at its price, and buys more at a better one, never dearer. A **market order** is a limit order for the next batch alone, with
 *   5 % of room from the last price, and is told as that. There is no post-only order, since a batch has no maker, and no `FOK`
 *   (`Client.exact` has one).
 * - `id` is the number of the offer. An order's transaction is in `info`, and `fetchOrder` and `cancelOrder` take its id, too.
 * - An order's `amount`, `filled`, `remaining`, `cost`, `average` and `status` are the same in every call and stream, and its
 *   trades sum to it (see `ccxt-rows.ts`).
 * - `clientOrderId` is the `reference` of `@walras/client`: an order with one is placed once, however often it is sent.
 * - A public trade is what a market traded in one batch, at one price. It has no side.
 * - Each transaction has a fee in the fee asset. A trade has none: its `fee` is 0.
 * - `since` with `limit` begins with the first row at or after `since`. Rows of one block stay together, so a page may have
 *   more than `limit`, and the next one begins a millisecond after its last row.
 *
 * Continuous markets do not appear: they are traded by `VenueTrader` of `@walras/client`.
 *
 * Past orders and trades are those of the node's index: they end where it begins. `options` has `keyType` (`ethereum` or
 * `ed25519`), `network`, `patience` in seconds, `store` (of `@walras/client`), `socket` for a runtime without WebSockets, and
 * `slot`: then the key is the session key of that slot of the account `walletAddress`.
 */
import {
  ArgumentsRequired,
  AuthenticationError,
  BadRequest,
  BadSymbol,
  Exchange,
  ExchangeError,
  ExchangeNotAvailable,
  InsufficientFunds,
  InvalidAddress,
  InvalidOrder,
  NotSupported,
  OrderNotFound,
  RateLimitExceeded,
  RequestTimeout,
} from "ccxt";
import type { Balances, Currencies, Dict, Int, Market, Num, OHLCV, Order, OrderBook, OrderBooks, OrderSide, OrderType, Status, Str, Strings, Ticker, Tickers, Trade, TradingFees } from "ccxt";
import type { AssetInfo } from "./assets.js";
import { Client, type Options } from "./client.js";
import type { OfferOptions } from "./sending.js";
import { marketOf, orderRow, pageOf, pastRow, sumsOf, told, tradeRow, type Moved } from "./ccxt-rows.js";
import { checkedAddress } from "./encoding.js";
import * as errors from "./errors.js";
import { Ed25519Key, EthereumKey } from "./keys.js";
import type { Fate, Level, Offer, OrderFate, OrderTerms, OwnOrders, PastFill, PastOrder, PricePoint, Ticker as OwnTicker } from "./models.js";
import { marketLimit } from "./placing.js";

/** Rows of a history that are asked for at once, the most that a page has. */
const PAGE = 1_000;
/** How often the index is looked at until it has a block, and the pause between. */
const [INDEX_TRIES, INDEX_PAUSE_MS] = [200, 20];
const LOST_OFFERS = ["unknown_offer", "not_your_offer"];
const TOO_LITTLE = ["sells_too_little", "asks_too_little", "same_asset", "zero_amount", "amount_too_large"];

/** An error of the client as ccxt's, with the same words. */
function translated(error: unknown): unknown {
  if (!(error instanceof errors.ClientError)) return error;
  return new (kindOf(error))(error.message);
}

function kindOf(error: errors.ClientError): new (message: string) => Error {
  if (error instanceof errors.UnknownAssetError) return BadSymbol;
  if (error instanceof errors.AmountError) return InvalidOrder;
  if (error instanceof errors.AddressError) return InvalidAddress;
  if (error instanceof errors.UndecidedError) return RequestTimeout;
  if (error instanceof errors.NoAnswerError || error instanceof errors.ForeignAnswerError) return ExchangeNotAvailable;
  if (error instanceof errors.BusyError || error instanceof errors.NumbersError) return RateLimitExceeded;
  if (error instanceof errors.KeyError) return AuthenticationError;
  return error instanceof errors.RefusedError ? refusal(error) : ExchangeError;
}

function refusal({ code, status }: errors.RefusedError): new (message: string) => Error {
  if (code === "overdraft" || code === "session_cap") return InsufficientFunds;
  if (LOST_OFFERS.includes(code)) return OrderNotFound;
  if (code === "no_history") return NotSupported;
  if (TOO_LITTLE.includes(code)) return InvalidOrder;
  if (code === "malformed" || code === "unknown_parameter") return BadRequest;
  if (code === "unauthorized") return AuthenticationError;
  return status >= 500 ? ExchangeNotAvailable : ExchangeError;
}

async function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw translated(error);
  }
}

const step = (decimals: number): number => Number(`1e-${decimals}`);
const row = ({ price, amount }: Level): [number, number] => [Number(price), Number(amount)];

/** The life of an order and its reference, of ccxt's parameters. */
function askedFor(params: Dict): OfferOptions {
  const { clientOrderId, timeInForce, postOnly, sealed, ...rest } = params;
  const inForce = timeInForce ?? "GTC";
  if (postOnly || inForce === "PO") throw new NotSupported("walras has no post-only order: all of a batch trade at one price, and none is the maker");
  if (inForce === "FOK") throw new NotSupported("walras has no FOK of a price: `client.exact` fills an amount whole or not at all");
  if (inForce !== "GTC" && inForce !== "IOC") throw new NotSupported(`walras has no timeInForce ${String(inForce)}: GTC rests, IOC is for one batch`);
  // What is off by default asks for nothing.
  const unknown = Object.keys(rest).filter((name) => rest[name] !== undefined && rest[name] !== null && rest[name] !== false);
  if (unknown.length > 0) throw new NotSupported(`walras has no ${unknown.join(", ")}: a limit order rests until it is filled or cancelled`);
  return { ...(inForce === "IOC" ? { life: "one batch" as const } : {}), ...(sealed ? { sealed: true } : {}), ...(clientOrderId === undefined ? {} : { reference: String(clientOrderId) }) };
}

function positive(value: unknown, what: string): number {
  if (value === undefined || value === null) throw new ArgumentsRequired(`a limit order needs ${what}`);
  if (!(Number(value) > 0) || !Number.isFinite(Number(value))) throw new InvalidOrder(`${what} is a number above 0, not ${String(value)}`);
  return value as number;
}

/** An order may name assets that there are not; it was refused. */
const isKnown = (past: PastOrder): past is PastOrder & { asked: OrderTerms } => past.asked !== null;

const ANY = { min: undefined, max: undefined };
const HAS_NOT = { marginMode: false, trigger: false, trailing: false, symbolRequired: false };
const WINDOW = { limit: PAGE, daysBack: undefined, untilDays: undefined };
/** What an order and a call can say, in ccxt's words. */
const FEATURES = {
  sandbox: false,
  createOrder: {
    ...{ marginMode: false, triggerPrice: false, triggerDirection: false, stopLossPrice: false, takeProfitPrice: false },
    ...{ hedged: false, trailing: false, leverage: false, marketBuyByCost: false, marketBuyRequiresPrice: false },
    ...{ selfTradePrevention: false, iceberg: false, triggerPriceType: undefined, attachedStopLossTakeProfit: undefined },
    timeInForce: { GTC: true, IOC: true, FOK: false, PO: false, GTD: false },
  },
  createOrders: undefined,
  fetchMyTrades: { marginMode: false, symbolRequired: false, ...WINDOW },
  fetchOrder: HAS_NOT,
  fetchOpenOrders: { ...HAS_NOT, limit: PAGE },
  fetchOrders: { ...HAS_NOT, ...WINDOW },
  fetchClosedOrders: { ...HAS_NOT, ...WINDOW, daysBackCanceled: undefined },
  fetchOHLCV: { limit: PAGE },
};

export class walras extends Exchange {
  private made: Client | undefined;
  private readonly watched = new Map<string, AsyncGenerator<unknown, void, undefined>>();

  override describe(): Dict {
    const no = ["editOrder"];
    const yes = ["fetchMarkets", "fetchCurrencies", "fetchTicker", "fetchTickers", "fetchOrderBook", "fetchTrades", "fetchOHLCV"];
    yes.push("fetchBalance", "fetchOrder", "fetchOpenOrders", "createOrder", "cancelOrder", "cancelAllOrders", "fetchMyTrades");
    yes.push("fetchOrders", "fetchClosedOrders", "fetchOrderTrades", "fetchTime", "fetchStatus", "createLimitOrder", "createMarketOrder", "spot");
    yes.push("fetchL2OrderBook", "fetchOrderBooks", "fetchTradingFee", "fetchTradingFees");
    yes.push("watchOrderBook", "watchTicker", "watchOrders", "watchMyTrades", "ws");
    const has = Object.fromEntries([...no.map((one) => [one, false]), ...yes.map((one) => [one, true])]);
    return this.deepExtend(super.describe(), {
      id: "walras",
      name: "Walras",
      countries: [],
      rateLimit: 50,
      certified: false,
      pro: true,
      dex: true,
      has: { CORS: undefined, ...has },
      timeframes: Object.fromEntries(["1m", "5m", "15m", "1h", "4h", "1d"].map((one) => [one, one])),
      urls: { api: "http://127.0.0.1:8080", www: "http://127.0.0.1:8080", doc: [] },
      requiredCredentials: { apiKey: false, secret: false, privateKey: true },
      precisionMode: 4, // TICK_SIZE
      features: { spot: FEATURES },
      fees: { trading: { tierBased: false, percentage: true, maker: 0, taker: 0 } },
      options: { keyType: "ethereum", network: undefined, patience: 60, slot: undefined, store: undefined, socket: undefined, payer: undefined, payerAccount: undefined, payerSlot: undefined },
    }) as Dict;
  }

  /** The client below: `client` is what ccxt calls a WebSocket. It knows more than ccxt asks for. */
  node(): Client {
    if (this.made) return this.made;
    const { keyType, network, patience, slot, store, socket, payer } = this.options as Dict;
    try {
      const kind = keyType === "ed25519" ? Ed25519Key : EthereumKey;
      const options: Options = {
        patienceMs: 1000 * Number(patience),
        ...(this.privateKey ? { key: new kind(this.privateKey) } : {}),
        ...(this.walletAddress ? { account: this.walletAddress } : {}),
        ...(slot ? { slot: Number(slot) } : {}),
        ...(network ? { network: String(network) } : {}),
        ...(store ? { store: store as NonNullable<Options["store"]> } : {}),
        ...(socket ? { socket: socket as NonNullable<Options["socket"]> } : {}),
      };
      return (this.made = new Client(String(this.urls["api"]), { ...options, ...(payer ? { payer: this.payerOf(String(payer)) } : {}) }));
    } catch (error) {
      throw translated(error);
    }
  }

  /** Who signs and pays for the envelopes of `sealed` orders: an ed25519 key, of its own account or of a slot. */
  private payerOf(seed: string): Client {
    const { payerAccount: account, payerSlot: slot, network } = this.options as Dict;
    const of = { ...(account ? { account: String(account) } : {}), ...(slot ? { slot: Number(slot) } : {}), ...(network ? { network: String(network) } : {}) };
    return new Client(String(this.urls["api"]), { key: new Ed25519Key(seed), ...of });
  }

  private sender(): Client {
    this.checkRequiredCredentials();
    return this.node();
  }

  /** Ends what is watched. */
  override async close(cleanInstanceCache?: boolean): Promise<void> {
    const watched = [...this.watched.values()];
    this.watched.clear();
    await Promise.all(watched.map((one) => one.return()));
    await super.close(cleanInstanceCache);
  }

  // Markets.

  override async fetchTime(_params: Dict = {}): Promise<Int> {
    return asked(async () => (await this.node().status()).time_ms);
  }

  override async fetchStatus(_params: Dict = {}): Promise<Status> {
    const status = await asked(() => this.node().status());
    return { status: status.stalled === null ? "ok" : "error", updated: status.time_ms, eta: undefined, url: undefined, info: status } as unknown as Status;
  }

  override async fetchCurrencies(_params: Dict = {}): Promise<Currencies> {
    const assets = await this.assets();
    const currency = ({ symbol, number, decimals, least, amount, body }: AssetInfo, info: AssetInfo) => ({
      ...{ id: symbol, numericId: number, code: symbol, type: "crypto", precision: step(decimals), active: true, deposit: true, withdraw: true },
      ...{ fee: undefined, fees: {}, networks: {}, info: body },
      limits: { amount: { min: Number(amount.call(info, least)), max: undefined }, deposit: ANY, withdraw: ANY },
    });
    return Object.fromEntries(assets.map((asset) => [asset.symbol, currency(asset, asset)])) as unknown as Currencies;
  }

  private async assets(): Promise<AssetInfo[]> {
    const assets = await asked(() => this.node().assets());
    return assets.symbols.map((symbol) => assets.get(symbol)).sort((a, b) => a.number - b.number);
  }

  override async fetchMarkets(_params: Dict = {}): Promise<Market[]> {
    const assets = await this.assets();
    // The base has the higher number, as in the node's list of markets.
    const pairs = assets.flatMap((base, at) => assets.slice(0, at).map((quote) => [base, quote] as const));
    return pairs.map(([base, quote]) =>
      this.safeMarketStructure({
        ...{ id: `${base.symbol}/${quote.symbol}`, symbol: `${base.symbol}/${quote.symbol}`, type: "spot", spot: true, active: true },
        ...{ margin: false, swap: false, future: false, option: false, contract: false, maker: 0, taker: 0 },
        ...{ base: base.symbol, quote: quote.symbol, baseId: base.symbol, quoteId: quote.symbol },
        // Prices have no tick, and none is rounded here. freqtrade refuses markets that say less than this.
        precision: { amount: step(base.decimals), price: 1e-10 },
        limits: {
          amount: { min: Number(base.amount(base.least)), max: undefined },
          price: { min: undefined, max: undefined },
          cost: { min: Number(quote.amount(quote.least)), max: undefined },
          leverage: { min: undefined, max: undefined },
        },
        info: { base: base.body, quote: quote.body },
      }),
    );
  }

  /** The shortest decimal of a number is what was meant by it. */
  override priceToPrecision(_symbol: Str, price: unknown): Str {
    return this.numberToString(price);
  }

  private async known(symbol: string): Promise<NonNullable<Market>> {
    await this.loadMarkets();
    return this.market(symbol) as NonNullable<Market>;
  }

  private async nameOf(symbol: Str): Promise<string | undefined> {
    return symbol === undefined ? undefined : String((await this.known(symbol))["symbol"]);
  }

  override async fetchTicker(symbol: string, params: Dict = {}): Promise<Ticker> {
    const name = String((await this.known(symbol))["symbol"]);
    return (await this.fetchTickers([name], params))[name]!;
  }

  /** Of some markets, or of all with offers or trades. */
  override async fetchTickers(symbols?: Strings, _params: Dict = {}): Promise<Tickers> {
    await this.loadMarkets();
    const chosen = this.marketSymbols(symbols);
    return asked(async () => {
      const names = chosen ?? (await this.node().markets()).map((one) => one.market);
      const tickers: Tickers = {};
      for (const name of names) {
        const [ticker, { sells, buys }] = await Promise.all([this.node().ticker(name), this.node().book(name, 1)]);
        tickers[name] = this.tickerOf(ticker, { askVolume: sells[0]?.amount, bidVolume: buys[0]?.amount });
      }
      return tickers;
    });
  }

  private tickerOf(ticker: OwnTicker, more: Dict): Ticker {
    const { market, time_ms, price, best_buy, best_sell, day } = ticker;
    const known = {
      ...{ symbol: market, timestamp: time_ms, datetime: this.iso8601(time_ms), last: price ?? undefined, close: price ?? undefined },
      ...{ bid: best_buy ?? undefined, ask: best_sell ?? undefined, open: day?.open, high: day?.high, low: day?.low },
      ...{ baseVolume: day?.base_volume ?? "0", quoteVolume: day?.quote_volume ?? "0", ...more, info: ticker },
    };
    return this.safeTicker(known, this.market(market));
  }

  override async fetchOrderBook(symbol: string, limit?: Int, _params: Dict = {}): Promise<OrderBook> {
    const name = String((await this.known(symbol))["symbol"]);
    const { sells, buys, height, time_ms } = await asked(() => this.node().book(name, limit));
    return this.bookOf(name, sells, buys, height, time_ms ?? undefined);
  }

  private bookOf(symbol: string, sells: Level[], buys: Level[], nonce: number, timestamp?: number): OrderBook {
    const datetime = this.iso8601(timestamp);
    return { symbol, asks: sells.map(row), bids: buys.map(row), timestamp, datetime, nonce } as unknown as OrderBook;
  }

  /** Of some markets, or of all. */
  override async fetchOrderBooks(symbols?: Strings, limit?: Int, _params: Dict = {}): Promise<OrderBooks> {
    await this.loadMarkets();
    const names = this.marketSymbols(symbols) ?? this.symbols;
    const books: OrderBooks = {};
    for (const name of names) books[name] = await this.fetchOrderBook(name, limit);
    return books;
  }

  /** No market has one: each transaction has a fee in the fee asset. */
  override async fetchTradingFees(_params: Dict = {}): Promise<TradingFees> {
    await this.loadMarkets();
    const free = { maker: 0, taker: 0, percentage: true, tierBased: false };
    const of = Object.entries(this.markets ?? {}).map(([symbol, market]) => [symbol, { symbol, ...free, info: market?.info }] as const);
    return Object.fromEntries(of) as TradingFees;
  }

  /** Of the blocks whose batches the node keeps, two thousand. */
  override async fetchTrades(symbol: string, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    const market = await this.known(symbol);
    const name = String(market["symbol"]);
    const points = await asked(() => this.node().history(name, Math.min(limit ?? PAGE, PAGE), undefined, since));
    const trade = (point: PricePoint) => {
      const when = { timestamp: point.time_ms, datetime: this.iso8601(point.time_ms) };
      return this.safeTrade({ id: String(point.height), symbol: name, ...when, price: point.price, amount: point.base_volume, info: point }, market);
    };
    return points.map(trade);
  }

  override async fetchOHLCV(symbol: string, timeframe = "1m", since?: Int, limit?: Int, _params: Dict = {}): Promise<OHLCV[]> {
    const name = String((await this.known(symbol))["symbol"]);
    if (!(timeframe in this.timeframes)) throw new BadRequest(`no timeframe ${timeframe}; there are ${Object.keys(this.timeframes).join(", ")}`);
    const part = { interval: timeframe, limit: Math.min(limit ?? 500, PAGE), ...(since === undefined ? {} : { since_ms: since }) };
    const candles = await asked(() => this.node().candles(name, part));
    return candles.map((one): OHLCV => [one.time_ms, Number(one.open), Number(one.high), Number(one.low), Number(one.close), Number(one.base_volume)]);
  }

  // The account.

  override async fetchBalance(_params: Dict = {}): Promise<Balances> {
    const client = this.sender();
    const account = await asked(() =>
      client.account().catch((error: unknown) => {
        // An account begins with the first payment to it.
        if (error instanceof errors.NotFoundError) return null;
        throw error;
      }),
    );
    const held = (account?.balances ?? []).map((one) => [one.asset, { free: one.available, used: one.locked }]);
    return this.safeBalance({ info: account, ...Object.fromEntries(held) });
  }

  override async createOrder(symbol: string, type: OrderType, side: OrderSide, amount: number, price?: Num, params: Dict = {}): Promise<Order> {
    const market = await this.known(symbol);
    const name = String(market["symbol"]);
    if (type !== "limit" && type !== "market") throw new InvalidOrder(`walras has limit and market orders, not ${String(type)}`);
    if (side !== "buy" && side !== "sell") throw new InvalidOrder(`a side is buy or sell, not ${String(side)}`);
    const options: OfferOptions = { ...askedFor(params), ...(type === "market" ? { life: "one batch" } : {}) };
    const units = String(this.amountToPrecision(name, positive(amount, "an amount")));
    const client = this.sender();
    const limit = type === "market" ? await this.reach(name, side) : String(this.priceToPrecision(name, positive(price, "a price")));
    const fate = await asked(() => (side === "buy" ? client.buy(name, units, limit, options) : client.sell(name, units, limit, options)));
    const written: OrderTerms = { side, base: String(market["base"]), quote: String(market["quote"]), amount: units, price: limit };
    return this.placed(fate, side === "buy" ? await this.boughtAs(fate, written) : written, options);
  }

  /** What a purchase was placed as, which may be at a better limit than was written; as written where no index says it. */
  private async boughtAs({ sequence, height }: Fate, written: OrderTerms): Promise<OrderTerms> {
    if (sequence === undefined || height === undefined) return written;
    const told = await this.indexed(sequence, height).catch((error: unknown) => {
      if (error instanceof OrderNotFound || error instanceof errors.NotFoundError) return null;
      throw translated(error);
    });
    return told?.order?.asked ?? written;
  }

  /** The limit of a market order: the last price with some room. */
  private async reach(name: string, side: "buy" | "sell"): Promise<string> {
    const { price } = await asked(() => this.node().ticker(name));
    const limit = marketLimit(side, price ?? "");
    if (limit === "") throw new InvalidOrder(`nobody has traded ${name} yet, so a market order has no price: send a limit order`);
    return limit;
  }

  /** An order from the outcome of its first batch. */
  private placed(fate: Fate, terms: OrderTerms, { life, reference }: OfferOptions): Order {
    const { outcome } = fate;
    const met = outcome?.result === "offered" || outcome?.result === "exact" ? outcome : null;
    const isWhole = met?.why === "filled" || met?.why === "returned";
    const rests = met === null || (met.result === "offered" && Number(met.left) > 0);
    const inForce = met?.result === "exact" ? "FOK" : life === undefined ? "GTC" : "IOC";
    const more = {
      ...{ id: String(fate.sequence), clientOrderId: reference, timeInForce: inForce },
      info: told({ transaction: fate.id, fate }),
    };
    const moved = { sold: met?.sold ?? "0", bought: met?.bought ?? "0" };
    return this.order(orderRow(terms, moved, rests ? "open" : isWhole ? "closed" : "canceled", more));
  }

  private order(row: Dict): Order {
    return this.safeOrder({ ...row, datetime: this.iso8601(row["timestamp"]) }, this.market(String(row["symbol"])));
  }

  /** An order of the node's index, with what it moved in all. */
  private async pastOrder(past: PastOrder & { asked: OrderTerms }, info?: unknown): Promise<Order> {
    return this.order(pastRow(past, past.asked, await this.moved(past), info ?? { transaction: past.id, order: past }));
  }

  /** What an order sold and bought in all: as the node says, or as its fills sum to where they are too many. */
  private async moved(past: PastOrder): Promise<Moved> {
    if (past.status === "refused" || past.status === "void") return { sold: "0", bought: "0" };
    if (past.sold !== null && past.bought !== null) return { sold: past.sold, bought: past.bought };
    return sumsOf(await this.rows((cursor) => this.sender().fills(cursor, PAGE, undefined, past.sequence), () => true, 0));
  }

  override async fetchOpenOrders(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Order[]> {
    await this.loadMarkets();
    const [name, client] = [await this.nameOf(symbol), this.sender()];
    const orders = await asked(async () => {
      const resting = (await client.offers()).filter((offer) => name === undefined || marketOf(this.markets, offer).symbol === name);
      const rows: PastOrder[] = resting.length === 0 ? [] : (await client.orders(undefined, PAGE)).rows;
      const known = new Map(rows.filter(isKnown).filter((one) => one.status === "resting").map((one) => [one.sequence, one]));
      const order = (offer: Offer) => {
        const past = known.get(offer.id);
        return past ? this.pastOrder(past) : this.resting(offer);
      };
      return Promise.all(resting.map(order));
    });
    // What ended meanwhile is open no more.
    const open = orders.filter((one) => one.status === "open").sort((a, b) => (a.timestamp ?? 0) - (b.timestamp ?? 0));
    return pageOf(open, (one) => one.timestamp ?? 0, since, limit);
  }

  /** An order of which the first page does not tell; where no index does, nobody knows what it traded. */
  private async resting(offer: Offer): Promise<Order> {
    try {
      return await this.toldBy(await this.indexed(offer.id));
    } catch (error) {
      if (!(error instanceof OrderNotFound || error instanceof errors.NotFoundError) || !offer.asked) throw error;
      return this.order(orderRow(offer.asked, null, "open", { id: String(offer.id), info: told({ offer }) }));
    }
  }

  /** The number of the order that an id names: its own, or that of its transaction. */
  private async numberOf(id: unknown): Promise<bigint> {
    const text = String(id);
    if (/^\d{1,20}$/.test(text) && BigInt(text) < 1n << 64n) return BigInt(text);
    const fate = /^0x[0-9a-f]{64}$/i.test(text) ? await this.sender().fate(text.toLowerCase()) : null;
    if (fate?.sequence === undefined) throw new OrderNotFound(`walras knows no order ${text}: an id is a number, or 0x and 64 digits`);
    return fate.sequence;
  }

  /** What the node's index knows of an order, once it has a block. */
  private async indexed(number: bigint, height = 0): Promise<OrderFate> {
    const client = this.sender();
    for (let tries = 1; ; tries += 1) {
      const fate = await client.orderFate({ number }).catch((error: unknown) => {
        if (error instanceof errors.NotFoundError && error.code === "order_unknown") throw new OrderNotFound(error.message);
        throw error;
      });
      const executed = height || (fate.order === null ? ((await client.fate(fate.id)).height ?? 0) : 0);
      if (fate.height >= executed || tries === INDEX_TRIES) return fate;
      // Blocks come first, and their index follows.
      await new Promise((resume) => setTimeout(resume, INDEX_PAUSE_MS));
    }
  }

  private async toldBy(fate: OrderFate): Promise<Order> {
    if (fate.order !== null && isKnown(fate.order)) return this.pastOrder(fate.order, fate);
    // No block has it, or it names no assets of this network: nobody tells what it asks for.
    const status = fate.status === "pending" ? "open" : "rejected";
    return this.safeOrder({ id: String(fate.sequence), status, filled: "0", cost: "0", trades: undefined, info: told(fate) });
  }

  override async fetchOrder(id: string, _symbol?: Str, _params: Dict = {}): Promise<Order> {
    await this.loadMarkets();
    return asked(async () => this.toldBy(await this.indexed(await this.numberOf(id))));
  }

  override async cancelOrder(id: string, _symbol?: Str, params: Dict = {}): Promise<Order> {
    await this.loadMarkets();
    return asked(async () => {
      const number = await this.numberOf(id);
      const fate = await this.sender().cancel(number, { sealed: Boolean(params["sealed"]) });
      return this.toldBy(await this.indexed(number, fate.height));
    });
  }

  override async cancelAllOrders(symbol?: Str, _params: Dict = {}): Promise<Order[]> {
    const orders = await this.fetchOpenOrders(symbol);
    const name = await this.nameOf(symbol);
    return asked(async () => {
      const fates = await this.sender().cancelAll(name);
      const height = Math.max(0, ...fates.map((fate) => fate.height ?? 0));
      // What traded meanwhile was not there to be cancelled.
      return Promise.all(orders.map(async (order) => this.toldBy(await this.indexed(BigInt(String(order.id)), height))));
    });
  }

  private ownTrade(fill: PastFill): Trade {
    const row = tradeRow(this.markets, fill);
    return this.safeTrade({ ...row, datetime: this.iso8601(row["timestamp"]) }, this.market(String(row["symbol"])));
  }

  /** Rows of a history, the oldest first: the last `limit` (a thousand without one), or the first from `since` on. */
  private async rows<T extends { time_ms: number }>(page: (cursor?: string) => Promise<{ rows: T[]; next: string | null }>, isWanted: (row: T) => boolean, since?: Int, limit?: Int): Promise<T[]> {
    const found: T[] = [];
    for (let cursor: string | undefined; ; ) {
      const { rows, next } = await page(cursor);
      found.push(...rows.filter(isWanted));
      const oldest = rows.at(-1)?.time_ms;
      const isEnough = since === undefined ? found.length >= (limit ?? PAGE) : oldest !== undefined && oldest < since;
      if (next === null || isEnough) return pageOf(found.reverse(), (row) => row.time_ms, since, limit);
      cursor = next;
    }
  }

  private async fills(symbol: Str, since: Int, limit: Int, offer?: bigint): Promise<Trade[]> {
    const [name, client] = [await this.nameOf(symbol), this.sender()];
    const isWanted = (fill: PastFill) => name === undefined || marketOf(this.markets, fill).symbol === name;
    const fills = await asked(() => this.rows((cursor) => client.fills(cursor, PAGE, undefined, offer), isWanted, since, limit));
    return fills.map((fill) => this.ownTrade(fill));
  }

  override async fetchMyTrades(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    await this.loadMarkets();
    return this.fills(symbol, since, limit);
  }

  /** All of them, if no limit is given. */
  override async fetchOrderTrades(id: string, symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    await this.loadMarkets();
    const number = await asked(() => this.numberOf(id));
    return this.fills(symbol, since === undefined && limit === undefined ? 0 : since, limit, number);
  }

  /** Those that name assets of this network: with a `since` all from then on, else the newest thousand. */
  override async fetchOrders(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Order[]> {
    return this.pastOrders(symbol, since, limit, () => true);
  }

  override async fetchClosedOrders(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Order[]> {
    return this.pastOrders(symbol, since, limit, (past) => past.status === "ended");
  }

  // ccxt has a member `orders` of another meaning.
  private async pastOrders(symbol: Str, since: Int, limit: Int, isWanted: (past: PastOrder) => boolean): Promise<Order[]> {
    await this.loadMarkets();
    const [name, client] = [await this.nameOf(symbol), this.sender()];
    return asked(async () => {
      const isHere = (past: PastOrder) => isKnown(past) && (name === undefined || marketOf(this.markets, past).symbol === name) && isWanted(past);
      const found = await this.rows((cursor) => client.orders(cursor, PAGE), isHere, since, limit);
      return Promise.all(found.filter(isKnown).map((past) => this.pastOrder(past)));
    });
  }

  /** The address to pay, with its checksum. */
  accountAddress(): string {
    return checkedAddress(this.sender().address);
  }

  // What is watched.

  /** The next of something that is followed since it was first asked for. */
  private async following<T>(name: string, follow: () => AsyncGenerator<T, void, undefined>): Promise<T> {
    const known = (this.watched.get(name) as AsyncGenerator<T, void, undefined> | undefined) ?? follow();
    this.watched.set(name, known);
    const next = await asked(() => known.next());
    if (!next.done) return next.value;
    this.watched.delete(name);
    throw new ExchangeNotAvailable(`${name} is no longer followed: the exchange was closed`);
  }

  /** The book after the next change, or at once when it is first asked for. */
  override async watchOrderBook(symbol: string, limit?: Int, _params: Dict = {}): Promise<OrderBook> {
    const name = String((await this.known(symbol))["symbol"]);
    const { sells, buys, height } = await this.following(`book:${name}`, () => this.node().followBook(name));
    return this.bookOf(name, sells.slice(0, limit), buys.slice(0, limit), height);
  }

  /** The ticker after the next change, or at once when it is first asked for. */
  override async watchTicker(symbol: string, _params: Dict = {}): Promise<Ticker> {
    const name = String((await this.known(symbol))["symbol"]);
    return this.tickerOf(await this.following(`ticker:${name}`, () => tickers(this.node(), name)), {});
  }

  /** The own orders that the next block changed; when it is first asked for, the newest hundred. */
  override async watchOrders(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Order[]> {
    const name = await this.owner(symbol);
    const rows = ({ orders }: OwnOrders) => Promise.all(orders.filter(isKnown).reverse().map((one) => this.pastOrder(one)));
    return this.ownNews(`orders:${name ?? ""}`, async (news) => this.filterBySymbolSinceLimit(await rows(news), name, since, limit, true) as Order[]);
  }

  /** The own trades of the next block with some; when it is first asked for, the newest hundred. */
  override async watchMyTrades(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    const name = await this.owner(symbol);
    const rows = ({ fills }: OwnOrders) => [...fills].reverse().map((fill) => this.ownTrade(fill));
    return this.ownNews(`trades:${name ?? ""}`, async (news) => this.filterBySymbolSinceLimit(rows(news), name, since, limit, true) as Trade[]);
  }

  /** What own orders need: a key and markets; the market's name. */
  private async owner(symbol: Str): Promise<string | undefined> {
    this.sender();
    await this.loadMarkets();
    return this.nameOf(symbol);
  }

  /**
   * The rows of the next message of the own orders that has some. Each kind and market is followed for itself, so that
   * none takes what another waits for.
   */
  private async ownNews<T>(name: string, rows: (news: OwnOrders) => Promise<T[]>): Promise<T[]> {
    for (;;) {
      const found = await rows(await this.following(name, () => this.sender().followOrders()));
      if (found.length > 0) return found;
    }
  }
}

async function* tickers(client: Client, market: string): AsyncGenerator<OwnTicker, void, undefined> {
  for await (const event of client.stream([`ticker:${market}`])) if (event.type === "ticker") yield event.ticker;
}
