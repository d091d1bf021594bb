/**
 * Trading at a venue's continuous markets by a trading key; see the README.
 *
 * **Order of events.** Orders get numbers, are signed and stored (`venue-journal.ts`), and then sent. While the answer is missing
 * the same orders are sent again: the venue gives the first answer to a number that it knows, so nothing is placed twice. What is
 * still unknown at the end of the patience is an `UndecidedOrdersError`.
 *
 * **Many at once.** Orders that are placed together are signed once, as a list. While the ledger counts no lists yet
 * (`lists_to_come`) each is signed by itself, with the same fields and number.
 *
 * Orders go over HTTP and belong to no session of the stream, so that the end of a connection ends none of them: give them a short
 * life (`lasts`, `untilMs`), or trade over OUCH or FIX where a venue is to cancel on disconnect.
 */
import type { Amount } from "./assets.js";
import type { Client } from "./client.js";
import type { Operation } from "./encoding.js";
import { ClientError, ForeignAnswerError, NoAnswerError, NotFoundError, RefusedError } from "./errors.js";
import { pause } from "./http.js";
import type { Fate } from "./models.js";
import type { SendOptions } from "./sending.js";
import { UNITS_MAX } from "./terms.js";
import { LIST_ORDERS_MAX, signList, type ListedOrder } from "./venue-list.js";
import { OrderJournal, ordersOf, type Sent, type StoredOrder } from "./venue-journal.js";
import { KnownVenue } from "./venue-known.js";
import { isOver, placedOf, refusalOf, reportOf, standingOf } from "./venue-reports.js";
import { OrderRefusedError, UndecidedOrdersError } from "./venue-reports.js";
import type { ExecutionsPage, OrderReport, OrderStanding, OwnFillsBody, PlacedOrder, PlacedResult, PositionBody, ReportBody, VenueStatus } from "./venue-reports.js";
import { followReports, type TraderEvent } from "./venue-stream.js";
import type { VenueTerms } from "./venue-terms.js";
import { numberText, type OrderLife, type OrderNumber, type SelfTrade, type TradingKey, type VenueAsk, type VenueOrder, type VenueRequest, type VenueScope, type VenueSide } from "./venue.js";

/** Heights that an order lives, unless the caller says otherwise. */
const LASTS = 4_096;
const [PAUSE_MS_MIN, PAUSE_MS_MAX] = [50, 1_000];
const LISTS_AGAIN_MS = 60_000;
const RECENT_MAX = 1 << 14;
const DAY_MS = 86_400_000;
/** Codes of answers to one order or request that was not performed now and may be later. */
const PASSING = ["begins_again", "busy", "not_running", "stamp", "too_many_requests", "too_much_was_false", "disk_full", "needs_rules"];

/** What names an order. */
export type Numbered = OrderNumber | { number: OrderNumber; order: VenueOrder | null };
const numberOf = (of: Numbered): OrderNumber => ("number" in of ? of.number : of);

/**
 * An order of a ladder. `replaces` is the open order in whose place it goes; its amount is then the total, what has executed of
 * that one included.
 */
export type VenueQuote = { side: VenueSide; amount: Amount; price: Amount; replaces?: Numbered; life?: OrderLife };
/** `lasts` are heights, `untilMs` a block time; `feeCapPpm` is by default the least that the market takes. */
export type OrderRules = { selfTrade?: SelfTrade; lasts?: number; untilMs?: number | null; feeCapPpm?: number };
export type TraderOptions = {
  /** Stores numbers and orders before they are sent: `new OrderFile(path)` of `@walras/client/node`. Without one they end with the process. */
  file?: ConstructorParameters<typeof OrderJournal>[0];
  /** The longest wait for an answer. */
  patienceMs?: number;
};

/** A trading key at the venue of a client's node. Deposits, collections and keys are transactions of the client's account. */
export class VenueTrader {
  private readonly journal: OrderJournal;
  private readonly known: KnownVenue;
  private readonly patienceMs: number;
  private readonly recent = new Map<string, VenueOrder>();
  private noListsUntil = 0;

  constructor(
    readonly client: Client,
    readonly key: TradingKey,
    { file = null, patienceMs = 30_000 }: TraderOptions = {},
  ) {
    this.journal = new OrderJournal(file);
    this.known = new KnownVenue(client, key, this.journal);
    this.patienceMs = patienceMs;
  }

  /** Closes the file. Orders stay open. */
  close(): Promise<void> {
    return this.journal.close();
  }
  /** How the venue stands. A `RefusedError` if the node runs none. */
  status(): Promise<VenueStatus> {
    return this.known.status();
  }
  /** The continuous markets, with steps of prices and amounts. */
  markets(): Promise<VenueTerms[]> {
    return this.known.markets();
  }
  /** A market by name (`EUR/USD`), symbol (`M0`) or number, with its best prices now. */
  market(name: string | number): Promise<VenueTerms> {
    return this.known.market(name, true);
  }

  // On the ledger.

  /** Deposits with the venue; the ledger keeps it. */
  async deposit(asset: string, amount: Amount, options: SendOptions = {}): Promise<Fate> {
    const of = (await this.client.assets()).get(asset);
    const { venue } = await this.known.now();
    return this.perform({ kind: "VenueDeposit", venue, asset: of.number, units: of.units(amount) }, options);
  }

  /** Takes back an amount of the deposit, or all. The ledger pays it once no fill of before can count. */
  async collect(asset: string, amount: Amount | "all" = "all", options: SendOptions = {}): Promise<Fate> {
    const of = (await this.client.assets()).get(asset);
    const { venue } = await this.known.now();
    const units = amount === "all" ? UNITS_MAX : of.units(amount);
    return this.perform({ kind: "VenueCollect", venue, asset: of.number, units }, options);
  }

  /**
   * Lets the trading key trade for the account: in which markets between which prices, and the most that it may lose on balance of
   * each asset, over its whole life. Null if it may already; a mandate never changes.
   */
  async authorize(bands: Record<string, [Amount, Amount]>, lose: Record<string, Amount>, options: SendOptions = {}): Promise<Fate | null> {
    const [{ venue, network }, assets] = [await this.known.now(), await this.client.assets()];
    const terms = await Promise.all(Object.entries(bands).map(async ([name, band]) => [await this.known.market(name), band] as const));
    const markets = terms.map(([of, [low, high]]) => ({ market: of.number, lowest: of.tick(low), highest: of.tick(high) }));
    const caps = Object.entries(lose).map(([symbol, amount]) => ({ asset: assets.get(symbol).number, units: assets.get(symbol).units(amount) }));
    try {
      const { account, revoked_height } = await this.known.keyRecord();
      if (account.toLowerCase() === this.client.address && revoked_height === null) return null;
      const state = revoked_height === null ? `trades for ${account}` : "is revoked";
      throw new ClientError(`the key ${this.key.public} ${state}, for ever: take another one`);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    const possession = this.key.possession(this.client.address, network, venue);
    markets.sort((a, b) => a.market - b.market);
    caps.sort((a, b) => a.asset - b.asset);
    return this.perform({ kind: "VenueAuthorize", venue, key: this.key.public, scope: "venue", markets, caps, possession }, options);
  }

  /** Ends the trading key for ever. */
  async revoke(options: SendOptions = {}): Promise<Fate> {
    return this.perform({ kind: "VenueRevoke", venue: (await this.known.now()).venue, key: this.key.public }, options);
  }

  /** Ends all orders with lower numbers once the delay is past, whatever the venue does. */
  async raiseFloor(number: OrderNumber, options: SendOptions = {}): Promise<Fate> {
    return this.perform({ kind: "VenueRaiseFloor", venue: (await this.known.now()).venue, key: this.key.public, ...number }, options);
  }

  /** Sends an operation. The venue knows its block when this returns, unless nobody waits. */
  private async perform(operation: Operation, options: SendOptions): Promise<Fate> {
    const [fate, until] = [await this.client.send(operation, options), performance.now() + this.patienceMs];
    const { height } = fate;
    if (options.wait === false || height === undefined || height === null) return fate;
    while ((await this.known.status()).height < height) {
      if (performance.now() >= until) throw new ClientError(`it is executed in block ${height}, which the venue does not know yet: wait for it`);
      await pause(PAUSE_MS_MIN);
    }
    return fate;
  }

  // Orders.

  /**
   * Places an order in whole assets; a price between ticks is refused with the nearest ones. An `OrderRefusedError` has the venue's
   * reason; an `UndecidedOrdersError` says that no answer came.
   */
  async place(market: string | number, quote: VenueQuote, rules: OrderRules = {}): Promise<PlacedOrder> {
    const [placed] = await this.placeLadder(market, [quote], rules);
    if (placed!.refusal) throw placed!.refusal;
    return placed!;
  }

  /**
   * Places up to 64 orders under one signature, or puts them into the places of others. Each is taken or refused by itself: look at
   * its `refusal`.
   */
  async placeLadder(market: string | number, quotes: readonly VenueQuote[], rules: OrderRules = {}): Promise<PlacedOrder[]> {
    if (quotes.length < 1 || quotes.length > LIST_ORDERS_MAX) {
      throw new RangeError(`1 to ${LIST_ORDERS_MAX} orders are placed at once, not ${quotes.length}: split them`);
    }
    await this.known.prepare();
    const [terms, { network, venue, incarnation, day, clock_ms, height }] = [await this.known.market(market), await this.known.now()];
    const { selfTrade = "expire_taker", lasts = LASTS, untilMs = null, feeCapPpm = terms.feeCap } = rules;
    // Everything is checked before a number is used.
    const sizes = quotes.map(({ price, amount }) => ({ tick: terms.tick(price), lots: terms.lots(amount) }));
    this.journal.expire(height);
    const numbers = this.journal.take({ incarnation, day, first: clock_ms % DAY_MS, count: quotes.length });
    const common = { market: terms.number, floor: { incarnation, day: 0, reference: 0 }, self_trade: selfTrade, until_ms: untilMs };
    const orders = quotes.map(
      ({ side, life = "rests", replaces }, at): ListedOrder => ({
        ...{ ...common, number: numbers[at]!, side, life, ...sizes[at]!, expiry: height + lasts, fee_cap_ppm: feeCapPpm },
        replaces: replaces ? numberOf(replaces) : null,
      }),
    );
    return this.send(orders, { network, venue, incarnation });
  }

  private async send(orders: ListedOrder[], scope: VenueScope): Promise<PlacedOrder[]> {
    // A list names what it replaces for ever; the request of a single order counts for a moment.
    const isMany = orders.length > 1 || orders.some(({ replaces }) => replaces !== null);
    const isList = isMany && performance.now() >= this.noListsUntil;
    const singles = (): Sent => ({ orders: orders.map(({ replaces, ...order }): StoredOrder => ({ ...this.key.order(order, scope), replaces })) });
    let sent: Sent = isList ? { list: signList(this.key, orders, scope) } : singles();
    this.journal.sends(sent);
    this.remember(orders);
    let { results, isRetry } = await this.results(sent);
    if (isList && results.some((one) => "reports" in one && one.reports.some(({ refused }) => refused?.code === "lists_to_come"))) {
      // The venue remembers nothing of them: the same orders are signed one by one.
      this.noListsUntil = performance.now() + LISTS_AGAIN_MS;
      sent = singles();
      this.journal.sends(sent);
      ({ results, isRetry } = await this.results(sent));
    }
    return this.placed(sent, results, isRetry);
  }

  /** The answers to orders, each sent until it is there; and whether they were sent more than once. */
  private async results(sent: Sent): Promise<{ results: PlacedResult[]; isRetry: boolean }> {
    const [until, numbers] = [performance.now() + this.patienceMs, ordersOf(sent).map(({ number }) => number)];
    for (let [isRetry, wait] = [false, PAUSE_MS_MIN]; ; isRetry = true, wait = Math.min(2 * wait, PAUSE_MS_MAX)) {
      let why: string;
      try {
        const results = await this.answered(sent);
        const passing = results.flatMap((one) => ("error" in one && PASSING.includes(one.error.code) ? [one.error.message] : []))[0];
        if (passing === undefined) return { results, isRetry };
        why = passing;
      } catch (error) {
        // What is no answer of a venue may come from something in between.
        if (!(error instanceof RefusedError || error instanceof NoAnswerError || error instanceof ForeignAnswerError)) throw error;
        why = error.message;
        if (!error.leavesDoubt && !(error instanceof RefusedError && error.status === 429)) {
          if (isRetry) throw new UndecidedOrdersError(this.client.server, numbers, why);
          this.journal.ended(numbers);
          throw error;
        }
      }
      if (performance.now() >= until) throw new UndecidedOrdersError(this.client.server, numbers, why);
      await pause(wait);
      this.known.forgetStatus();
    }
  }

  /** An answer to each order. */
  private async answered(sent: Sent): Promise<PlacedResult[]> {
    const { results } = await this.client.tell<{ results?: PlacedResult[] }>(...(await this.payload(sent)));
    if (!Array.isArray(results) || results.length !== ordersOf(sent).length || !results.every((one) => "reports" in one || "error" in one)) {
      throw new ForeignAnswerError(this.client.server, "it does not answer each order");
    }
    return results;
  }

  private async payload(sent: Sent): Promise<[string, unknown]> {
    if ("list" in sent) return ["/v1/venue/lists", { lists: [sent.list] }];
    const orders = [];
    for (const { replaces, ...order } of sent.orders) {
      const request = replaces && (await this.signed({ replace: { old: replaces, new: order.number } }));
      orders.push(request ? { ...order, replaces: request } : order);
    }
    return ["/v1/venue/orders", { orders }];
  }

  private async placed(sent: Sent, results: readonly PlacedResult[], isRetry: boolean): Promise<PlacedOrder[]> {
    const placed: PlacedOrder[] = [];
    for (const [at, order] of ordersOf(sent).entries()) {
      const [terms, result] = [await this.known.market(order.market), results[at]!];
      const told = "reports" in result ? await this.read(result.reports) : [];
      this.forget(told.filter(isOver));
      const refused = "error" in result ? new OrderRefusedError(order.number, result.error.code, result.error.message) : null;
      let made = placedOf(order, terms, told, refused);
      if (made.refusal === null && order.replaces !== null) this.journal.ended([order.replaces]);
      if (isRetry && made.state === "open") {
        // The first answer says nothing of what came after it.
        const { standing, open } = await this.order(order.number);
        made = standing === "open" ? { ...made, left: open ?? made.left } : { ...made, state: "ended", left: "0" };
      }
      placed.push(made);
    }
    this.forget(placed.filter(({ state }) => state !== "open"));
    return placed;
  }

  private forget(of: readonly { number: OrderNumber }[]): void {
    this.journal.ended(of.map(({ number }) => number));
  }

  /** Sends an undecided order again, with those of its list: the same bytes, of which none is placed twice. */
  async retry(of: Numbered): Promise<PlacedOrder[]> {
    await this.known.now();
    const sent = this.journal.sent(numberOf(of));
    if (!sent) throw new ClientError(`order ${numberText(numberOf(of))} is not stored as open: ask for it with order`);
    return this.placed(sent, (await this.results(sent)).results, true);
  }

  /**
   * Puts another order into the place of one; `amount` is the total, what has executed included. With the same price and no more
   * than before it keeps its place in the queue.
   */
  async replace(of: Numbered, amount: Amount, price: Amount, { lasts = LASTS }: { lasts?: number } = {}): Promise<PlacedOrder> {
    await this.known.now();
    const order = this.orderOf(of);
    if (!order) throw new ClientError(`order ${numberText(numberOf(of))} is not stored as open: place a new order, or ask for it with order`);
    const quote = { side: order.side, amount, price, replaces: numberOf(of), life: order.life };
    return this.place(order.market, quote, { selfTrade: order.self_trade, lasts, untilMs: order.until_ms, feeCapPpm: order.fee_cap_ppm });
  }

  /** The definite answer about an order: how it stands, and what of it is settled. */
  async order(of: Numbered): Promise<OrderStanding> {
    const number = numberOf(of);
    const { reports, position } = await this.request<{ reports: ReportBody[]; position?: PositionBody | null }>({ status: { number } });
    const told = reports[0]!;
    if (!told.status) throw refusalOf((await this.read([told]))[0]!) ?? new ClientError("the venue did not answer how the order stands");
    const order = this.orderOf(of);
    if (told.status.standing !== "open" && told.status.standing !== "unknown") this.journal.ended([number]);
    return standingOf(number, told.status, position ?? null, order && { order, terms: await this.known.market(order.market) });
  }

  private orderOf(of: Numbered): VenueOrder | null {
    const text = numberText(numberOf(of));
    if ("number" in of && of.order) return of.order;
    const sent = this.journal.sent(numberOf(of));
    return this.recent.get(text) ?? (sent && ordersOf(sent).find(({ number }) => numberText(number) === text)) ?? null;
  }

  private remember(orders: readonly VenueOrder[]): void {
    for (const order of orders) this.recent.set(numberText(order.number), order);
    while (this.recent.size > RECENT_MAX) this.recent.delete(this.recent.keys().next().value!);
  }

  /** The open orders of the file, each as the venue says, without those that it does not know: see `resume`. */
  async orders(): Promise<OrderStanding[]> {
    await this.known.now();
    const found: OrderStanding[] = [];
    for (const number of this.journal.open()) found.push(await this.order(number));
    return found.filter(({ standing }) => standing === "open");
  }

  /**
   * What a program does that starts again: its open orders. One whose answer was lost, and that never came, is cancelled by its
   * number, so that it cannot come later.
   */
  async resume(): Promise<OrderStanding[]> {
    await this.known.now();
    const found: OrderStanding[] = [];
    for (const number of this.journal.open()) {
      let standing = await this.order(number);
      if (standing.standing === "unknown") {
        await this.request({ cancel: { number, keeps: 0 } });
        standing = await this.order(number);
      }
      found.push(standing);
    }
    return found.filter(({ standing }) => standing === "open");
  }

  /**
   * Cancels an order, or all of it but a total of `keep`, what has executed included. An order that has ended before says so
   * (`status`), and one that never came cannot come later (`overtaken`).
   */
  async cancel(of: Numbered, { keep }: { keep?: Amount } = {}): Promise<OrderReport> {
    await this.known.now();
    const [number, order] = [numberOf(of), this.orderOf(of)];
    if (keep !== undefined && !order) throw new ClientError(`order ${numberText(number)} is not in the file: what is kept of it cannot be counted in lots`);
    const keeps = keep === undefined ? 0 : (await this.known.market(order!.market)).lots(keep);
    const mine = (await this.reported({ cancel: { number, keeps } })).find((one) => numberText(one.number) === numberText(number));
    if (!mine) throw new ClientError(`the venue answered nothing of order ${numberText(number)}: ask for it with order`);
    if (mine.kind === "refused") throw refusalOf(mine)!;
    return mine;
  }

  /** Cancels all open orders of the key, or those of a market or side. */
  async cancelAll({ market, side = null }: { market?: string | number; side?: VenueSide | null } = {}): Promise<OrderReport[]> {
    const number = market === undefined ? null : (await this.known.market(market)).number;
    const reports = await this.reported({ cancel_all: { market: number, side } });
    for (const report of reports) if (report.kind === "refused") throw refusalOf(report)!;
    return reports;
  }

  /** Own executions of the incarnation from an index on, with the reports that were told. */
  async executions(from = 0n): Promise<ExecutionsPage> {
    const { fills, next, settled } = await this.request<OwnFillsBody>({ fills: { from: Number(from) } });
    const executions = await this.known.reading((checked) => fills.map((one) => checked(one.number, one)));
    return { executions, next: BigInt(next), settled: BigInt(settled) };
  }

  /**
   * What happens to the key's orders, without end. A broken connection is made again, and each execution comes once and in order,
   * from the index `from` on. What else happened meanwhile, `orders` says. A session has one connection: give each program a number
   * of its own.
   */
  reports({ session = 1, from }: { session?: number; from?: bigint } = {}): AsyncGenerator<TraderEvent, void, undefined> {
    const hello = async () => {
      const status = await this.known.status();
      return { status, request: await this.signed({ attach: { session, ends_orders: false, dead_man_ms: null } }) };
    };
    const read = async (body: ReportBody, isOwn: boolean) => {
      const report = await this.known.reading((checked) => reportOf(body, checked, isOwn));
      if (isOver(report)) this.forget([report]);
      return report;
    };
    return followReports({ client: this.client, hello, read, executions: (index) => this.executions(index) }, from ?? null);
  }

  // Requests.

  private async signed(ask: VenueAsk): Promise<VenueRequest> {
    const scope = await this.known.scope();
    return this.key.request(ask, this.known.stampMs(), scope);
  }

  /** The answer to a request. All of them may be performed twice, so they are sent until one is there. */
  private async request<T>(ask: VenueAsk): Promise<T> {
    const until = performance.now() + this.patienceMs;
    for (let wait = PAUSE_MS_MIN; ; wait = Math.min(2 * wait, PAUSE_MS_MAX)) {
      try {
        return await this.client.tell<T>("/v1/venue/requests", await this.signed(ask));
      } catch (error) {
        const isPassing = error instanceof NoAnswerError || error instanceof ForeignAnswerError || (error instanceof RefusedError && PASSING.includes(error.code));
        if (!isPassing || performance.now() >= until) throw error;
      }
      await pause(wait);
      this.known.forgetStatus();
    }
  }

  private read(reports: readonly ReportBody[]): Promise<OrderReport[]> {
    return this.known.reading((checked) => reports.map((one) => reportOf(one, checked)));
  }

  private async reported(ask: VenueAsk): Promise<OrderReport[]> {
    const reports = await this.read((await this.request<{ reports: ReportBody[] }>(ask)).reports);
    this.forget(reports.filter(isOver));
    return reports;
  }
}
