/**
 * What a trader knows of a node's venue: how it stands, its markets, who may sign its reports, and its clock.
 *
 * **Evidence.** Each report of an execution is checked: signed by a report key that the ledger has for the venue, for this network,
 * incarnation, index and account. It is stored before the caller hears of the execution. Report keys and markets are asked for again
 * where one is missing: an operator may have changed, a market been listed.
 *
 * Lots, ticks and decimals are the node's word, as amounts of assets are in `Client`: use a node that you trust.
 */
import type { Client } from "./client.js";
import { NotFoundError, OtherNetworkError, RefusedError } from "./errors.js";
import { UnsignedReportError, type Checked, type ExecutedBody, type Execution, type VenueStatus } from "./venue-reports.js";
import type { OrderJournal } from "./venue-journal.js";
import { VenueTerms } from "./venue-terms.js";
import { isReportSigned, readReport, type OrderNumber, type TradingKey, type VenueReport, type VenueScope } from "./venue.js";

const STATUS_LASTS_MS = 1_000;
/** A trading key as the ledger has it. */
export type KeyRecord = { account: string; revoked_height: number | null };

/** A market that was listed since, or a report of a key that is not known. */
class UnknownError extends Error {}

export class KnownVenue {
  private last: { status: VenueStatus; at: number } | null = null;
  private readonly terms = new Map<number, VenueTerms>();
  private incarnation: number | null = null;
  private owner: string | null = null;
  private reportKeys = new Set<string>();
  private aheadMs = 0;
  private stamp = 0;

  constructor(
    readonly client: Client,
    readonly key: TradingKey,
    readonly journal: OrderJournal,
  ) {}

  /** How the venue stands now, on the expected network. A `RefusedError` if the node runs none. */
  async status(): Promise<VenueStatus> {
    const { network } = await this.client.limits();
    const { incarnation, height, ...rest } = await this.client.ask<VenueStatus & { incarnation: number | null; height: number | null }>("/v1/venue");
    if (incarnation === null || height === null) {
      const why = rest.why ?? `it ${rest.standing}`;
      throw new RefusedError(this.client.server, 503, "not_running", `the venue takes no orders: ${why}`);
    }
    if (rest.network !== network) throw new OtherNetworkError(this.client.server, rest.network, network);
    const status = { ...rest, incarnation, height };
    await this.journal.begin(network, status.venue, this.key.public);
    if (this.incarnation !== null && this.incarnation !== incarnation) {
      // Fees and report keys may be others.
      this.terms.clear();
      this.reportKeys.clear();
    }
    this.incarnation = incarnation;
    this.last = { status, at: performance.now() };
    this.aheadMs = status.clock_ms - Date.now();
    return status;
  }

  /** The status, at most a second old. */
  async now(): Promise<VenueStatus> {
    return this.last && performance.now() - this.last.at < STATUS_LASTS_MS ? this.last.status : this.status();
  }

  /** The venue is asked again: it begins anew, or a clock is wrong. */
  forgetStatus(): void {
    this.last = null;
  }

  async scope(): Promise<VenueScope> {
    const { network, venue, incarnation } = await this.now();
    return { network, venue, incarnation };
  }

  /** A moment by the venue's clock, each once. */
  stampMs(): number {
    this.stamp = Math.max(this.stamp + 1, Date.now() + this.aheadMs);
    return this.stamp;
  }

  /** The venue's markets with their assets, as they are now. */
  async markets(): Promise<VenueTerms[]> {
    const [assets, markets] = [await this.client.assets(), await this.client.venueMarkets()];
    const all = markets.map((one) => new VenueTerms(one, assets.numbered(one.base), assets.numbered(one.quote)));
    for (const one of all) this.terms.set(one.number, one);
    return all;
  }

  /** A market by name (`EUR/USD`), symbol (`M0`) or number; if it is to be fresh as it is now. */
  async market(name: string | number, isFresh = false): Promise<VenueTerms> {
    if (isFresh) await this.markets();
    const find = () => [...this.terms.values()].find((one) => [one.name, one.market.symbol, one.number].includes(name));
    const found = find() ?? (await this.markets(), find());
    if (found) return found;
    const there = [...this.terms.values()].map((one) => one.name).join(", ");
    throw new NotFoundError(this.client.server, 404, "no_market", `the venue has no market ${JSON.stringify(name)}; there are ${there}`);
  }

  /** A `NotFoundError` if no account has authorised the key. */
  async keyRecord(): Promise<KeyRecord> {
    return this.client.ask(`/v1/venues/${(await this.now()).venue}/keys/${this.key.public}`);
  }

  /** Everything that reading a report needs is known, before an order is sent. */
  async prepare(): Promise<void> {
    this.owner ??= (await this.keyRecord()).account.toLowerCase();
    if (this.reportKeys.size === 0 || this.terms.size === 0) await this.learn();
  }

  private async learn(): Promise<void> {
    await this.markets();
    const { report_keys } = await this.client.ask<{ report_keys: string[] }>(`/v1/venues/${(await this.now()).venue}`);
    this.reportKeys = new Set(report_keys.map((key) => key.toLowerCase()));
  }

  /** What `read` makes with something that reads executions. */
  async reading<T>(read: (checked: Checked) => T): Promise<T> {
    await this.prepare();
    const { network } = await this.client.limits();
    const checked: Checked = (number, body) => this.execution(network, number, body);
    try {
      return read(checked);
    } catch (error) {
      if (!(error instanceof UnknownError) && !(error instanceof UnsignedReportError)) throw error;
    }
    await this.learn();
    return read(checked);
  }

  /** An execution, of which the report is stored and checked. */
  private execution(network: string, number: OrderNumber, body: ExecutedBody): Execution {
    const { index: text, market, lots, tick, fee, side, is_taker: isTaker, report: evidence } = body;
    const [index, terms] = [BigInt(text), this.terms.get(market)];
    this.journal.saw(number.incarnation, text, evidence);
    const unsigned = (why: string) => new UnsignedReportError(number, index, evidence, why);
    let report: VenueReport;
    try {
      report = readReport(evidence);
    } catch (error) {
      throw unsigned((error as Error).message);
    }
    if (report.incarnation !== number.incarnation || report.index !== index || report.account !== this.owner) {
      throw unsigned("it is of another incarnation, fill or account");
    }
    if (!this.reportKeys.has(report.key) || !isReportSigned(report, network)) throw unsigned("no report key of the venue has signed it");
    if (!terms) throw new UnknownError(`the venue has no market ${market}`);
    const sizes = { amount: terms.amount(lots), price: terms.price(tick), fee: terms.quote.amount(fee) };
    return { number, index, market: terms.name, side, ...sizes, isTaker, lots, report, evidence };
  }
}
