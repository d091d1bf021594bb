/**
 * Orders at the venue that the node runs. A trading key signs them; it is derived from a signature of the account's own
 * key, so that every wallet makes the same one again and nothing is kept in the browser. An order is kept before it is sent:
 * a retry of the same bytes counts once.
 */
import type { Asset, TransactionStatus, VenueDay } from "@walras/client/bodies";
import { divide, multiply, parseDecimal, type Decimal } from "@walras/client/decimal";
import { derived, field, numbers, structure, type Field } from "@walras/client/encoding";
import { fromHex, hashTypedData, toHex, type TypedData } from "@walras/client/typed";
import { TradingKey, type OrderLife, type OrderNumber, type SignedOrder, type VenueAsk, type VenueScope, type VenueSide } from "@walras/client/venue";
import { ApiError, get, path, post } from "../api";
import type { Trader } from "./keys";
import { checkStatus } from "../words";
import { Told } from "./told";

/** How the venue stands, as `GET v1/venue` says. */
export type VenueStatus = {
  standing: "runs" | "waits" | "failed" | "stopped";
  why: string | null;
  network: string | null;
  venue: number;
  incarnation: number | null;
  day: number;
  clock_ms: number;
  paused: { code: string; message: string } | null;
  height: number | null;
  fills: number;
  settled: number;
  busts: number;
  in_flight: { sequence: number; until: number } | null;
  bond: string | null;
  operator_balance: string | null;
  records: number;
  sessions: number;
};
/** A market with its terms: a lot is `lot_units` base units, and costs `tick_units` quote units for each tick. */
export type VenueMarket = {
  market: number;
  symbol: string;
  base: number;
  quote: number;
  lot_units: string;
  tick_units: string;
  lots_max: number;
  fee_cap_ppm: number;
  least_quote_units?: string | null;
  phase: string;
  bid: number | null;
  ask: number | null;
  last: number | null;
  day: VenueDay | null;
};
export type VenueLevel = [tick: number, lots: number, orders: number];
export type VenueBook = { bids: VenueLevel[]; asks: VenueLevel[]; phase: string };
/** How an order stands at the venue, in lots. */
export type Standing = { standing: string; why?: string | null; message?: string; open?: number; executed?: number; settled?: number; bust?: number };
export type VenueFill = { index: string; number: OrderNumber; market: number; side: VenueSide; lots: number; tick: number; fee: string; report: string };
type Report = { type: string; refused?: { message: string }; status?: Standing };
type Deposit = { venue: number; asset: string; free: string; leaving: { units: string } | null };

/** An order as this browser keeps it. */
export type KeptVenueOrder = { signed: SignedOrder; placed_ms: number; amount: string; price: string; standing: Standing; ahead: number | null };

/** Both assets of a market. */
export type Pair = { base: Asset; quote: Asset };

/** Heights for which an order rests, and for which a transaction may count. */
const RESTS = 600;
const LASTS = 64n;
const KEPT_MOST = 100;
/** Orders that one look asks about. */
const LOOKS = 8;
const TICK_MAX = 2_000_000_000;
/** The most that a key may lose of an asset: what is in the deposit is the limit. */
const CAP = ((1n << 62n) - 1n).toString();
const DAY_MS = 86_400_000;

const ten = (power: number): bigint => 10n ** BigInt(power);

/** The least that an order must be worth to pay for its entry on the ledger, in quote units, if this one is worth less. */
export function tooLittle(size: { lots: number; tick: number }, market: VenueMarket): string | null {
  const worth = BigInt(size.lots) * BigInt(size.tick) * BigInt(market.tick_units);
  const least = market.least_quote_units;
  return least && worth < BigInt(least) ? least : null;
}

/** The price of a tick, in whole quote for one whole base. */
export function priceOf(tick: number, market: VenueMarket, { base, quote }: Pair): Decimal | null {
  const units = { digits: BigInt(tick) * BigInt(market.tick_units) * ten(base.decimals), scale: 0 };
  return divide(units, { digits: BigInt(market.lot_units) * ten(quote.decimals), scale: 0 });
}

/** Lots as an amount of base. */
export function amountOf(lots: number, market: VenueMarket, { base }: Pair): Decimal | null {
  return divide({ digits: BigInt(lots) * BigInt(market.lot_units), scale: 0 }, { digits: ten(base.decimals), scale: 0 });
}

/** A written order in lots and ticks, or a sentence that says what is wrong with it. */
export function lotsAndTick(amount: string, price: string, market: VenueMarket, pair: Pair): { lots: number; tick: number } | string {
  const [wanted, limit] = [parseDecimal(amount), parseDecimal(price)];
  if (!wanted || wanted.digits <= 0n) return "Write an amount above zero, such as 1.5.";
  if (!limit || limit.digits <= 0n) return "Write a limit above zero, such as 1.25.";
  const { base, quote } = pair;
  const [lot, tick] = [BigInt(market.lot_units), BigInt(market.tick_units)];
  const lots = wholeRatio(multiply(wanted, { digits: ten(base.decimals), scale: 0 }), lot);
  if (lots === null) return `The amount is counted in lots of ${said(amountOf(1, market, pair))} ${base.symbol}.`;
  const ticks = wholeRatio(multiply(limit, { digits: ten(quote.decimals) * lot, scale: 0 }), ten(base.decimals) * tick);
  if (ticks === null) return `The limit moves in steps of ${said(priceOf(1, market, pair))} ${quote.symbol}.`;
  if (lots > BigInt(market.lots_max)) return `An order has ${market.lots_max} lots at most; this has ${lots}.`;
  if (ticks > BigInt(TICK_MAX)) return "The limit is higher than this market's prices reach.";
  return { lots: Number(lots), tick: Number(ticks) };
}

const said = (value: Decimal | null): string => (value ? `${trimmed(value)}` : "?");
function trimmed({ digits, scale }: Decimal): string {
  const text = digits.toString().padStart(scale + 1, "0");
  return scale <= 0 ? text : `${text.slice(0, -scale)}.${text.slice(-scale)}`.replace(/\.?0+$/, "");
}

/** `value / by` where it is whole. */
function wholeRatio({ digits, scale }: Decimal, by: bigint): bigint | null {
  const divisor = by * ten(Math.max(0, scale));
  return digits % divisor === 0n ? digits / divisor : null;
}

/** One trader at the venue: the trading key, its orders, deposits. */
export class VenueDesk {
  orders: KeptVenueOrder[] = [];
  fills: VenueFill[] = [];
  /** Fills below this index are settled or bust. */
  settled = 0;
  private stamp = 0;
  private reference = 0;
  private next = 0;

  private constructor(
    readonly trader: Trader,
    readonly key: TradingKey,
    readonly scope: VenueScope,
    private readonly chain: string,
    private readonly name: string,
  ) {
    try {
      this.orders = JSON.parse(localStorage.getItem(name) ?? "[]") as KeptVenueOrder[];
    } catch {
      this.orders = [];
    }
  }

  /** The desk of a trader; a wallet asks its owner for the signature that the trading key is derived from. */
  static async open(trader: Trader, status: VenueStatus): Promise<VenueDesk> {
    const { chain, network } = await get<{ chain: string; network: string }>("limits");
    if (status.incarnation === null) throw new Told("The venue does not run: see why above.");
    // Requests that are signed for another network would be worth something there.
    if (status.network !== network) throw new Told("The venue is of another network than this node: nothing was signed.");
    const purpose = "Derive the key that Walras's own page trades with at this venue";
    const types = { TradingKey: [field("account", "address"), field("venue", "uint32"), field("purpose", "string")] };
    const data = structure("TradingKey", types, { account: trader.address, venue: String(status.venue), purpose }, { chain: BigInt(chain), network });
    const key = new TradingKey(derived("walras 2026 page trading key v1", fromHex(await trader.sign(data))));
    const scope = { network, venue: status.venue, incarnation: status.incarnation };
    return new VenueDesk(trader, key, scope, chain, `walras.venue.${network.slice(2, 18)}.${scope.venue}.${scope.incarnation}.${trader.address}`);
  }

  /** Whether the account has authorised the key. */
  async isAuthorised(signal: AbortSignal): Promise<boolean> {
    const { keys } = await get<{ keys: { venue: number; key: string; is_dead: boolean }[] }>(`${path("accounts", this.trader.address)}/trading-keys`, signal);
    return keys.some((one) => one.venue === this.scope.venue && one.key === this.key.public && !one.is_dead);
  }

  /** What the account has at the venue, by asset. */
  async deposits(signal: AbortSignal): Promise<Map<string, Deposit>> {
    const { deposits } = await get<{ deposits: Deposit[] }>(`${path("accounts", this.trader.address)}/deposits`, signal);
    return new Map(deposits.filter((one) => one.venue === this.scope.venue).map((one) => [one.asset, one]));
  }

  /** Lets the key trade in markets at any price; it can lose what is deposited and no more. */
  async authorise(markets: VenueMarket[], symbols: (asset: number) => string, height: number): Promise<void> {
    const possession = this.key.possession(this.trader.address, this.scope.network, this.scope.venue);
    const ids = markets.map((market) => market.market).sort((a, b) => a - b);
    const assets = [...new Set(markets.flatMap((market) => [market.base, market.quote]))].sort((a, b) => a - b);
    const mandate = {
      scope: "venue",
      markets: ids.map((market) => ({ market, tick_min: 1, tick_max: TICK_MAX })),
      caps: assets.map((asset) => ({ asset: symbols(asset), units: CAP })),
    };
    await this.perform(
      { action: "authorize", key: this.key.public, mandate, possession },
      "VenueAuthorize",
      [field("key", "bytes32"), field("scope", "string"), field("markets", "VenueMarket[]"), field("caps", "VenueCap[]"), field("possession", "bytes")],
      {
        key: this.key.public,
        scope: "venue",
        markets: ids.map((market) => ({ market, lowest: 1, highest: TICK_MAX })),
        caps: assets.map((asset) => ({ asset, units: CAP })),
        possession,
      },
      height,
      {
        VenueMarket: [field("market", "uint32"), field("lowest", "uint32"), field("highest", "uint32")],
        VenueCap: [field("asset", "uint32"), field("units", "uint64")],
      },
    );
  }

  /** Deposits units, or asks for them. */
  async move(action: "deposit" | "collect", asset: Asset, units: string, height: number): Promise<void> {
    const kind = action === "deposit" ? "VenueDeposit" : "VenueCollect";
    const fields = [field("asset", "uint32"), field("units", "uint64")];
    await this.perform({ action, asset: asset.symbol, units }, kind, fields, { asset: asset.asset, units }, height);
  }

  /** The node lays the transaction out; what is signed is made here, and the node must have made the same. */
  private async perform(asked: object, kind: string, fields: Field[], values: TypedData["message"], height: number, lists: TypedData["types"] = {}): Promise<void> {
    const until = (BigInt(height) + LASTS).toString();
    const { venue, network } = this.scope;
    const operation = { type: "venue", venue, ...asked };
    const told = await post<{ sequence: string; unsigned: string; hash: string }>("typed-data", { account: this.trader.address, until, operation });
    const types = { [kind]: [...numbers, field("venue", "uint32"), ...fields], ...lists };
    const message = { account: this.trader.address, sequence: told.sequence, until, venue: String(venue), ...values };
    const data = structure(kind, types, message, { chain: BigInt(this.chain), network });
    if (toHex(hashTypedData(data)) !== told.hash) throw new Told("The node laid out another transaction than was asked for: nothing was signed.");
    const signature = await this.trader.sign(data);
    const answer = await post<TransactionStatus>("transactions?wait=committed", { transaction: told.unsigned, signature });
    checkStatus(answer.status);
    if (answer.status === "committed" && answer.outcome.result === "refused") throw new Told(answer.outcome.message);
  }

  private keep(): void {
    this.orders = this.orders.slice(0, KEPT_MOST);
    localStorage.setItem(this.name, JSON.stringify(this.orders));
  }

  /** The number of the next order: milliseconds of the day, so that two pages of one key do not use one number. */
  private number(status: VenueStatus): OrderNumber {
    this.reference = Math.max(this.reference + 1, status.clock_ms % DAY_MS);
    return { incarnation: this.scope.incarnation, day: status.day, reference: this.reference };
  }

  /** Places an order, or puts it into the place of `old`: then its lots are the total, those that have executed included. */
  async place(market: VenueMarket, side: VenueSide, life: OrderLife, written: { amount: string; price: string }, size: { lots: number; tick: number }, old: KeptVenueOrder | null = null): Promise<void> {
    const status = await get<VenueStatus>("venue");
    if (status.height === null) throw new Told("The venue knows no block yet: try again in a moment.");
    const order = {
      ...{ market: market.market, number: this.number(status), floor: { incarnation: this.scope.incarnation, day: 0, reference: 0 } },
      ...{ side, life, self_trade: "expire_taker" as const, ...size },
      ...{ expiry: status.height + RESTS, until_ms: null, fee_cap_ppm: market.fee_cap_ppm },
    };
    const signed = this.key.order(order, this.scope);
    if (old) signed.replaces = this.key.request({ replace: { old: old.signed.number, new: order.number } }, this.stamped(), this.scope);
    const kept: KeptVenueOrder = { signed, placed_ms: Date.now(), ...written, standing: { standing: "sent" }, ahead: null };
    this.orders = [kept, ...this.orders];
    this.keep();
    await this.send(kept);
    if (old) await this.look(old);
  }

  /** Sends an order, for the first time or again. */
  private async send(order: KeptVenueOrder): Promise<void> {
    const { results } = await post<{ results: { reports?: Report[]; error?: { code: string; message: string } }[] }>("venue/orders", { orders: [order.signed] });
    const [result] = results;
    if (result?.error) throw new ApiError(400, result.error.code, result.error.message);
    const refused = result?.reports?.find((report) => report.type === "refused");
    order.standing = refused ? { standing: "refused", message: refused.refused?.message ?? "" } : { standing: "open" };
    this.keep();
  }

  private ask<T>(ask: VenueAsk): Promise<T> {
    return post<T>("venue/requests", this.key.request(ask, this.stamped(), this.scope));
  }

  private stamped(): number {
    return (this.stamp = Math.max(this.stamp + 1, Date.now()));
  }

  async cancel(order: KeptVenueOrder): Promise<void> {
    await this.ask({ cancel: { number: order.signed.number, keeps: 0 } });
    await this.look(order);
  }

  async cancelAll(): Promise<void> {
    await this.ask({ cancel_all: { market: null, side: null } });
  }

  /** Whether nothing more can become of an order. */
  private isOver({ standing }: KeptVenueOrder): boolean {
    const { executed = 0, settled = 0, bust = 0 } = standing;
    return ["refused", "overtaken"].includes(standing.standing) || (standing.standing === "ended" && settled + bust === executed);
  }

  private async look(order: KeptVenueOrder): Promise<void> {
    if (order.standing.standing === "sent") await this.send(order);
    const answer = await this.ask<{ reports: Report[]; position: { orders_ahead: number } | null }>({ status: { number: order.signed.number } });
    const status = answer.reports.find((report) => report.type === "status")?.status;
    if (status) order.standing = status;
    order.ahead = answer.position?.orders_ahead ?? null;
  }

  /** Looks what became of the newest orders, and takes new fills with their reports. */
  async lookAll(): Promise<void> {
    for (const order of this.orders.filter((order) => !this.isOver(order)).slice(0, LOOKS)) await this.look(order);
    this.keep();
    try {
      const answer = await this.ask<{ fills: VenueFill[]; next: string; settled: string }>({ fills: { from: this.next } });
      this.fills = [...answer.fills.reverse(), ...this.fills];
      [this.next, this.settled] = [Number(answer.next), Number(answer.settled)];
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "forgotten") throw error;
      // What the venue has forgotten is settled: the ledger has it.
      this.next = (await get<VenueStatus>("venue")).settled;
    }
  }
}
