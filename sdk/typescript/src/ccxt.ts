/**
 * Walras as an exchange of `ccxt`: bots that speak ccxt trade here unchanged.
 *
 *     const exchange = new walras({ privateKey: "0x…", urls: { api: "http://127.0.0.1:8080" } });
 *
 * An order is an offer of the batch exchange. What follows from that:
 *
 * - **Only limit orders**, which trade at the batch's price or rest. An order to *buy* spends what its amount costs at its
 *   price; at a better price it buys more, never dearer.
 * - `id` is the number of the offer. An order's transaction is in `info.transaction`, and `fetchOrder` and `cancelOrder` take
 *   its id, too.
 * - `clientOrderId` is the `reference` of `@walras/client`: an order with one is placed once, however often it is sent.
 * - A public trade is what a market traded in one batch, at one price. It has no side.
 * - Each transaction has a fee in the fee asset, and trades have none.
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
import type { Balances, Currencies, Dict, Int, Market, Num, OHLCV, Order, OrderBook, OrderSide, OrderType, Status, Str, Strings, Ticker, Tickers, Trade } from "ccxt";
import type { AssetInfo } from "./assets.js";
import { Client, type Options } from "./client.js";
import { divide, multiply, parseDecimal, plainText, shift, subtract, type Decimal } from "./decimal.js";
import { checkedAddress } from "./encoding.js";
import * as errors from "./errors.js";
import { Ed25519Key, EthereumKey } from "./keys.js";
import type { Fate, Level, Offer, OrderFate, OwnOrders, PastFill, PastOrder, Ticker as OwnTicker } from "./models.js";

type Side = "buy" | "sell";
/** Rows of a history that are asked for at once, the most that a page has. */
const PAGE = 1_000;
const ONE: Decimal = { digits: 1n, scale: 0 };
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

const decimal = (text: string | null | undefined): Decimal => parseDecimal(text ?? "0") ?? { digits: 0n, scale: 0 };
const isZero = (value: Decimal): boolean => value.digits === 0n;
const times = (a: Decimal, b: Decimal): string => plainText(multiply(a, b));
/** A quotient of 17 digits; undefined where there is none. */
const ratio = (a: Decimal, b: Decimal): string | undefined => (isZero(b) ? undefined : plainText(divide(a, b) ?? ONE));
const larger = (a: Decimal, b: Decimal): Decimal => (subtract(a, b).digits >= 0n ? a : b);
const step = (decimals: number): number => Number(`1e-${decimals}`);
/** What bots print and store: numbers without bound as text. */
const told = (info: unknown): Dict => JSON.parse(JSON.stringify(info, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value))) as Dict;
const row = ({ price, amount }: Level): [number, number] => [Number(price), Number(amount)];

/** What an order of the base or of the quote is, in a market's terms. */
type Terms = { symbol: string; side: Side };

export class walras extends Exchange {
  private made: Client | undefined;
  private readonly watched = new Map<string, AsyncGenerator<unknown, void, undefined>>();

  override describe(): Dict {
    const no = ["createMarketOrder", "editOrder"];
    const yes = ["fetchMarkets", "fetchCurrencies", "fetchTicker", "fetchTickers", "fetchOrderBook", "fetchTrades", "fetchOHLCV"];
    yes.push("fetchBalance", "fetchOrder", "fetchOpenOrders", "createOrder", "cancelOrder", "cancelAllOrders", "fetchMyTrades");
    yes.push("fetchOrders", "fetchClosedOrders", "fetchOrderTrades", "fetchTime", "fetchStatus", "createLimitOrder", "spot");
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
      fees: { trading: { tierBased: false, percentage: true, maker: 0, taker: 0 } },
      options: { keyType: "ethereum", network: undefined, patience: 60, slot: undefined, store: undefined, socket: undefined },
    }) as Dict;
  }

  /** The client below: `client` is what ccxt calls a WebSocket. It knows more than ccxt asks for. */
  node(): Client {
    if (this.made) return this.made;
    const { keyType, network, patience, slot, store, socket } = this.options as Dict;
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
      return (this.made = new Client(String(this.urls["api"]), options));
    } catch (error) {
      throw translated(error);
    }
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
      ...{ id: symbol, numericId: number, code: symbol, precision: step(decimals), active: true, deposit: undefined, withdraw: undefined },
      ...{ fee: undefined, fees: {}, networks: {}, info: body },
      limits: { amount: { min: Number(amount.call(info, least)), max: undefined }, withdraw: { min: undefined, max: undefined } },
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
        // Prices have no tick: the ledger's have 17 digits.
        precision: { amount: step(base.decimals), price: 1e-17 },
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
    const { sells, buys, height } = await asked(() => this.node().book(name, limit));
    return this.bookOf(name, sells, buys, height);
  }

  private bookOf(symbol: string, sells: Level[], buys: Level[], nonce: number): OrderBook {
    return { symbol, asks: sells.map(row), bids: buys.map(row), timestamp: undefined, datetime: undefined, nonce } as unknown as OrderBook;
  }

  override async fetchTrades(symbol: string, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    const market = await this.known(symbol);
    const name = String(market["symbol"]);
    const points = await asked(() => this.node().history(name, since === undefined ? limit : PAGE));
    const trades = points.map((point) =>
      this.safeTrade(
        {
          ...{ id: String(point.height), symbol: name, timestamp: point.time_ms, datetime: this.iso8601(point.time_ms) },
          ...{ price: point.price, amount: point.base_volume, info: point },
        },
        market,
      ),
    );
    return this.filterBySymbolSinceLimit(trades, name, since, limit) as Trade[];
  }

  override async fetchOHLCV(symbol: string, timeframe = "1m", since?: Int, limit?: Int, _params: Dict = {}): Promise<OHLCV[]> {
    const name = String((await this.known(symbol))["symbol"]);
    if (!(timeframe in this.timeframes)) throw new BadRequest(`no timeframe ${timeframe}; there are ${Object.keys(this.timeframes).join(", ")}`);
    const count = Math.min(limit ?? 500, PAGE);
    const before = since === undefined ? {} : { before_ms: since + count * this.parseTimeframe(timeframe) * 1000 };
    const candles = await asked(() => this.node().candles(name, { interval: timeframe, limit: count, ...before }));
    const rows = candles.map((one): OHLCV => [one.time_ms, Number(one.open), Number(one.high), Number(one.low), Number(one.close), Number(one.base_volume)]);
    return this.filterBySinceLimit(rows, since, limit, 0, since === undefined) as OHLCV[];
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
    if (type !== "limit") throw new InvalidOrder(`walras has limit orders only, not ${type}: give a price that you accept`);
    if (price === undefined) throw new ArgumentsRequired("a limit order needs a price");
    if (side !== "buy" && side !== "sell") throw new InvalidOrder(`a side is buy or sell, not ${String(side)}`);
    const { clientOrderId, ...rest } = params;
    const unknown = Object.keys(rest).join(", ");
    if (unknown !== "") throw new NotSupported(`walras has no ${unknown}: a limit order rests until it is filled or cancelled`);
    const client = this.sender();
    const exact = [this.amountToPrecision(name, amount), this.priceToPrecision(name, price)].map(String) as [string, string];
    const options = clientOrderId === undefined ? {} : { reference: String(clientOrderId) };
    const fate = await asked(() => (side === "buy" ? client.buy(name, ...exact, options) : client.sell(name, ...exact, options)));
    return this.placed(fate, { symbol: name, side }, exact, clientOrderId as Str);
  }

  /** An order from the outcome of its first batch. */
  private placed(fate: Fate, terms: Terms, [amount, price]: [string, string], clientOrderId: Str): Order {
    const { outcome } = fate;
    const met = outcome?.result === "offered" ? outcome : null;
    const [sold, bought] = [decimal(met?.sold), decimal(met?.bought)];
    const [filled, cost] = terms.side === "buy" ? [bought, sold] : [sold, bought];
    const rests = met === null || !isZero(decimal(met.left));
    return this.order(terms, amount, price, filled, cost, {
      ...{ id: String(fate.sequence), status: rests ? "open" : "closed", clientOrderId },
      info: told({ transaction: fate.id, fate }),
    });
  }

  private order(terms: Terms, amount: string, price: string, filled: Decimal, cost: Decimal, more: Dict): Order {
    const known = {
      ...{ symbol: terms.symbol, side: terms.side, type: "limit", timeInForce: "GTC", price },
      // What was bought beyond the amount, at a better price than asked for, belongs to it.
      ...{ amount: plainText(larger(decimal(amount), filled)), filled: plainText(filled), cost: plainText(cost) },
      ...{ average: ratio(cost, filled), trades: [], ...more },
    };
    return this.safeOrder(known, this.market(terms.symbol));
  }

  /** The market and side of an offer: offers of the base sell it, offers of the quote buy it. */
  private termsOf({ sell, buy }: { sell: string; buy: string }): Terms {
    const isSell = `${sell}/${buy}` in (this.markets ?? {});
    return { symbol: isSell ? `${sell}/${buy}` : `${buy}/${sell}`, side: isSell ? "sell" : "buy" };
  }

  /** Amount and price in a market's terms, of what sells at a price. */
  private inTerms({ side }: Terms, amount: string, price: Decimal): [string, string] {
    return side === "sell" ? [amount, plainText(price)] : [times(decimal(amount), price), ratio(ONE, price) ?? "0"];
  }

  /** An order from an offer that rests: what it sold before is not known of it. */
  private resting(offer: Offer): Order {
    const terms = this.termsOf(offer);
    const [amount, price] = this.inTerms(terms, offer.amount, decimal(offer.price));
    return this.order(terms, amount, price, decimal("0"), decimal("0"), { id: String(offer.id), status: "open", info: told({ offer }) });
  }

  override async fetchOpenOrders(symbol?: Str, _since?: Int, limit?: Int, _params: Dict = {}): Promise<Order[]> {
    await this.loadMarkets();
    const name = await this.nameOf(symbol);
    const orders = (await asked(() => this.sender().offers())).map((offer) => this.resting(offer));
    return orders.filter((order) => name === undefined || order.symbol === name).slice(0, limit ?? orders.length);
  }

  /** The number of the order that an id names: its own, or that of its transaction. */
  private async numberOf(id: string): Promise<bigint> {
    if (/^\d+$/.test(id)) return BigInt(id);
    const fate = /^0x[0-9a-f]{64}$/i.test(id) ? await this.sender().fate(id) : null;
    if (fate?.sequence === undefined) throw new OrderNotFound(`the node knows no order ${id}`);
    return fate.sequence;
  }

  override async fetchOrder(id: string, _symbol?: Str, _params: Dict = {}): Promise<Order> {
    await this.loadMarkets();
    return asked(async () => {
      const number = await this.numberOf(id);
      const offer = await this.sender().offerOf(number);
      return offer === null ? this.ended(number) : this.resting(offer);
    });
  }

  /** An order that no longer rests, from the node's index. */
  private async ended(number: bigint): Promise<Order> {
    const fate = await this.sender()
      .orderFate({ number })
      .catch((error: unknown) => {
        if (error instanceof errors.NotFoundError) throw new OrderNotFound(error.message);
        throw error;
      });
    if (fate.order === null) throw new OrderNotFound(`order ${number} is ${fate.status} until block ${fate.until}, and in no block yet`);
    return this.withSums(this.pastOrder(fate.order, await this.node().assets()), fate);
  }

  private withSums(order: Order, fate: OrderFate): Order {
    const [filled, cost] = order.side === "sell" ? [fate.sold, fate.bought] : [fate.bought, fate.sold];
    const average = filled === null || cost === null ? undefined : ratio(decimal(cost), decimal(filled));
    const number = (text: string | null | undefined) => (text === null || text === undefined ? undefined : Number(text));
    return { ...order, filled: number(filled), cost: number(cost), average: number(average), info: told(fate) } as Order;
  }

  override async cancelOrder(id: string, _symbol?: Str, _params: Dict = {}): Promise<Order> {
    await this.loadMarkets();
    return asked(async () => {
      const number = await this.numberOf(id);
      const fate = await this.sender().cancel(number);
      return this.safeOrder({ id: String(number), status: "canceled", info: told(fate) });
    });
  }

  override async cancelAllOrders(symbol?: Str, _params: Dict = {}): Promise<Order[]> {
    const orders = await this.fetchOpenOrders(symbol);
    const name = await this.nameOf(symbol);
    const fates = await asked(() => this.sender().cancelAll(name));
    // What traded meanwhile was not there to be cancelled; a list of cancels does not say which.
    const isWhole = fates.every((fate) => fate.outcome?.result === "cancelled" && fate.outcome.missing === 0);
    return orders.map((order) => ({ ...order, status: isWhole ? "canceled" : undefined, info: told(fates) }) as Order);
  }

  private ownTrade(fill: PastFill): Trade {
    const { symbol, side } = this.termsOf(fill);
    const [amount, cost] = (side === "sell" ? [fill.sold, fill.bought] : [fill.bought, fill.sold]) as [string, string];
    const known = {
      ...{ id: `${fill.height}-${fill.offer}`, order: String(fill.offer), symbol, side, type: "limit", amount, cost },
      ...{ price: ratio(decimal(cost), decimal(amount)), timestamp: fill.time_ms, datetime: this.iso8601(fill.time_ms), info: told(fill) },
    };
    return this.safeTrade(known, this.market(symbol));
  }

  /** The newest rows of a history: a thousand, or as many as `limit` says. */
  private async rows<T>(limit: Int, page: (cursor?: string) => Promise<{ rows: T[]; next: string | null }>): Promise<T[]> {
    const found: T[] = [];
    let cursor: string | undefined;
    do {
      const { rows, next } = await page(cursor);
      found.push(...rows);
      cursor = next ?? undefined;
    } while (cursor !== undefined && found.length < Math.max(limit ?? 0, PAGE));
    return found.reverse();
  }

  /** The newest thousand, or as many as `limit` says. */
  override async fetchMyTrades(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    await this.loadMarkets();
    const client = this.sender();
    const fills = await asked(() => this.rows(limit, (cursor) => client.fills(cursor, PAGE)));
    return this.filterBySymbolSinceLimit(fills.map((fill) => this.ownTrade(fill)), await this.nameOf(symbol), since, limit) as Trade[];
  }

  override async fetchOrderTrades(id: string, symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    const trades = (await this.fetchMyTrades(symbol)).filter((one) => one.order === id);
    return this.filterBySinceLimit(trades, since, limit) as Trade[];
  }

  /** An order from the node's index. An offer of the quote is a purchase at the inverse of its price. */
  private pastOrder(past: PastOrder, assets: { get(symbol: string): AssetInfo }): Order {
    const terms = this.termsOf(past);
    const price = shift(decimal(past.limit), assets.get(past.sell).decimals - assets.get(past.buy).decimals);
    const [locked, shown] = this.inTerms(terms, past.amount ?? "0", price);
    // An exact order is filled whole in its batch or not at all.
    const amount = past.exact?.units && past.exact.side === terms.side ? past.exact.units : locked;
    const timeInForce = past.exact ? "FOK" : past.life === "rests" ? "GTC" : undefined;
    const closed = past.why === "filled" || past.why === "returned" ? "closed" : "canceled";
    const status = past.status === "ended" ? closed : past.status === "resting" ? "open" : "rejected";
    const known = {
      ...{ id: String(past.sequence), clientOrderId: past.client ?? undefined, symbol: terms.symbol, side: terms.side, type: "limit" },
      ...{ timeInForce, price: shown, amount, status, trades: [], info: told(past) },
      ...{ remaining: terms.side === "sell" ? (past.left ?? "0") : undefined, timestamp: past.time_ms, datetime: this.iso8601(past.time_ms) },
    };
    return this.safeOrder(known, this.market(terms.symbol));
  }

  /** The newest thousand that name assets of this network, or as many as `limit` says. */
  override async fetchOrders(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Order[]> {
    await this.loadMarkets();
    const client = this.sender();
    const [found, assets] = await asked(async () => [await this.rows(limit, (cursor) => client.orders(cursor, PAGE)), await client.assets()] as const);
    const orders = found.filter((one) => one.amount !== null && assets.symbols.includes(one.buy)).map((one) => this.pastOrder(one, assets));
    return this.filterBySymbolSinceLimit(orders, await this.nameOf(symbol), since, limit) as Order[];
  }

  override async fetchClosedOrders(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Order[]> {
    const orders = (await this.fetchOrders(symbol)).filter(({ status }) => status === "closed" || status === "canceled");
    return this.filterBySinceLimit(orders, since, limit) as Order[];
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
    const { name, assets } = await this.owner(symbol);
    // An order may name assets that there are not; it was refused.
    const known = ({ orders }: OwnOrders) => orders.filter((one) => one.amount !== null && assets.symbols.includes(one.buy));
    const rows = (news: OwnOrders) => known(news).reverse().map((one) => this.pastOrder(one, assets));
    return this.ownNews(`orders:${name ?? ""}`, (news) => this.filterBySymbolSinceLimit(rows(news), name, since, limit, true) as Order[]);
  }

  /** The own trades of the next block with some; when it is first asked for, the newest hundred. */
  override async watchMyTrades(symbol?: Str, since?: Int, limit?: Int, _params: Dict = {}): Promise<Trade[]> {
    const { name } = await this.owner(symbol);
    const rows = ({ fills }: OwnOrders) => [...fills].reverse().map((fill) => this.ownTrade(fill));
    return this.ownNews(`trades:${name ?? ""}`, (news) => this.filterBySymbolSinceLimit(rows(news), name, since, limit, true) as Trade[]);
  }

  /** What own orders need: a key, markets and assets. */
  private async owner(symbol: Str) {
    const client = this.sender();
    await this.loadMarkets();
    return { name: await this.nameOf(symbol), assets: await asked(() => client.assets()) };
  }

  /**
   * The rows of the next message of the own orders that has some. Each kind and market is followed for itself, so that
   * none takes what another waits for.
   */
  private async ownNews<T>(name: string, rows: (news: OwnOrders) => T[]): Promise<T[]> {
    for (;;) {
      const found = rows(await this.following(name, () => this.sender().followOrders()));
      if (found.length > 0) return found;
    }
  }
}

async function* tickers(client: Client, market: string): AsyncGenerator<OwnTicker, void, undefined> {
  for await (const event of client.stream([`ticker:${market}`])) if (event.type === "ticker") yield event.ticker;
}
