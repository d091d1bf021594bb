/** What a client knows of a node: network, assets, height; and every question to it. */
import { Assets, limitOf, type Amount, type AssetInfo } from "./assets.js";
import type * as bodies from "./bodies.js";
import { checkCertificate, type CertificateBody, type Committee } from "./certificate.js";
import { plainText } from "./decimal.js";
import { plainAddress } from "./encoding.js";
import { NotFoundError, OtherNetworkError, UnknownAssetError } from "./errors.js";
import type { Http } from "./http.js";
import * as models from "./models.js";
import type { AccountKeys } from "./policy.js";
import { ProofError, proveAccount, proveHolder, proveKeys, proveParameters, type ProvedHolder, type ProvedParameters } from "./proof.js";
import { fromHex } from "./typed.js";

export type Limits = { chain: bigint; network: string; sequenceWindow: bigint; blockIntervalMs: number; feeAsset: string; feeUnits: bigint };
type LimitsBody = { chain: string; network: string; sequence_window: number; block_interval_ms: number; fee_asset: string; fee: string };
export type Candles = { interval?: string; limit?: number; before_ms?: number; since_ms?: number };

export const PAGE = 1_000;
/** A height is asked for again after this time. */
const HEIGHT_LASTS_MS = 1_000;

export class Session {
  readonly isNetworkNamed: boolean;
  private known: { limits?: Promise<Limits>; assets?: Promise<Assets> } = {};
  private seen: { height: number; at: number } | null = null;

  constructor(
    readonly http: Http,
    private expected: string | null,
  ) {
    this.isNetworkNamed = expected !== null;
  }

  /** What signing needs of the chain, of the expected network. It is asked for once. */
  limits(): Promise<Limits> {
    return this.known.limits ?? this.limitsNow();
  }

  /** The same as it is now: validators can vote another fee. */
  limitsNow(): Promise<Limits> {
    return (this.known.limits = this.keep("limits", this.readLimits()));
  }

  /** The assets. They are asked for once, and again if one of these symbols is not among them: it may have been listed since. */
  async assets(...named: string[]): Promise<Assets> {
    const assets = await (this.known.assets ??= this.keep("assets", this.readAssets()));
    return named.every((symbol) => assets.has(symbol)) ? assets : this.learn(assets);
  }

  /** Adds what was listed since to the assets that everybody shares. */
  private async learn(assets: Assets): Promise<Assets> {
    const body = await this.http.get<{ assets: bodies.Asset[] }>("/v1/assets");
    this.http.decoded(() => assets.learn(body));
    return assets;
  }

  /** A failure is not remembered. */
  private keep<T>(name: "limits" | "assets", asked: Promise<T>): Promise<T> {
    asked.catch(() => delete this.known[name]);
    return asked;
  }

  private async readLimits(): Promise<Limits> {
    const body = await this.http.get<LimitsBody>("/v1/limits");
    this.expected ??= body.network;
    if (body.network !== this.expected) throw new OtherNetworkError(this.http.server, body.network, this.expected);
    return this.http.decoded(() => ({
      chain: BigInt(body.chain),
      network: body.network,
      sequenceWindow: BigInt(body.sequence_window),
      blockIntervalMs: body.block_interval_ms,
      feeAsset: body.fee_asset,
      feeUnits: BigInt(body.fee),
    }));
  }

  private async readAssets(): Promise<Assets> {
    await this.limits();
    const body = await this.http.get<{ assets: bodies.Asset[] }>("/v1/assets");
    return this.http.decoded(() => new Assets(body));
  }

  async status(): Promise<bodies.Status> {
    const status = await this.http.get<bodies.Status>("/v1/status");
    this.saw(status.height);
    return status;
  }

  saw(height: number): void {
    if (this.seen === null || height >= this.seen.height) this.seen = { height, at: performance.now() };
  }

  /** The height is asked for again: blocks came faster than thought. */
  forgetHeight(): void {
    this.seen = null;
  }

  /** The node's height, at most a second old. */
  async height(): Promise<number> {
    if (this.seen !== null && performance.now() - this.seen.at < HEIGHT_LASTS_MS) return this.seen.height;
    return (await this.status()).height;
  }

  /** An answer, read with the assets. */
  async ask<B, T>(path: string, read: (body: B, assets: Assets) => T, parameters = {}): Promise<T> {
    const assets = await this.assets();
    const body = await this.http.get<B>(path, parameters);
    try {
      return this.http.decoded(() => read(body, assets));
    } catch (error) {
      if (!(error instanceof UnknownAssetError)) throw error;
      await this.learn(assets);
      return this.http.decoded(() => read(body, assets));
    }
  }

  account(address: string): Promise<models.Account> {
    return this.ask(`/v1/accounts/${plainAddress(address)}`, models.account);
  }

  async committee(): Promise<Committee> {
    type Members = { epoch: number; committees: { epoch: number; members: { key: string }[] }[] };
    const { epoch, committees } = await this.http.get<Members>("/v1/validators");
    return this.http.decoded(() => {
      const now = committees.find((one) => one.epoch === epoch);
      if (!now) throw new Error("it names no committee of this epoch");
      return { epoch, keys: now.members.map((member) => member.key) };
    });
  }

  /** An account that the node has proved against a state root; with a committee, one that its quorum signed. */
  async provedAccount(address: string, committee: Committee | null): Promise<models.Account> {
    type Proved = { root: string; proof: string; account?: bodies.Account | null; certificate?: CertificateBody };
    const [{ network }, assets] = [await this.limits(), await this.assets()];
    const body = await this.http.get<Proved>(`/v1/accounts/${address}/proof`, committee ? { certified: "true" } : {});
    return this.http.decoded(() => {
      this.checkSigned(body, network, committee);
      const proved = proveAccount(fromHex(address), fromHex(body.root), fromHex(body.proof));
      if (!proved || !body.account) {
        throw new NotFoundError(this.http.server, 404, "not_found", `it is proved that there is no account ${address}`);
      }
      const account = models.account(body.account, assets);
      const held = body.account.balances.map((one): [number, bigint] => [assets.get(one.asset).number, BigInt(one.available)]);
      const stated = held.filter(([, units]) => units > 0n);
      const isSame = stated.length === proved.balances.size && stated.every(([asset, units]) => proved.balances.get(asset) === units);
      if (account.needs_reference !== proved.needsReference) throw new ProofError("it needs references otherwise than the node says");
      if (!isSame || proved.window.highest !== account.highest) throw new ProofError("it states another account than it proves");
      return account;
    });
  }

  /** The policy of an account that the node has proved, or null; with a committee, in a state that its quorum signed. */
  async provedKeys(address: string, committee: Committee | null): Promise<AccountKeys | null> {
    type Proved = { root: string; proof: string; certificate?: CertificateBody };
    const { network } = await this.limits();
    const body = await this.http.get<Proved>(`/v1/accounts/${address}/keys/proof`, committee ? { certified: "true" } : {});
    return this.http.decoded(() => {
      this.checkSigned(body, network, committee);
      return proveKeys(fromHex(address), fromHex(body.root), fromHex(body.proof));
    });
  }

  /** What the node says of a holder of an asset. */
  async holder(symbol: string, address: string): Promise<bodies.Holder> {
    const asset = (await this.assets(symbol)).get(symbol);
    return this.http.get(`/v1/assets/${asset.number}/holders/${plainAddress(address)}`);
  }

  /** What it has proved of one; with a committee, in a state that its quorum signed. An issuer holds its asset freely. */
  async provedHolder(symbol: string, address: string, committee: Committee | null): Promise<ProvedHolder> {
    type Proved = { root: string; proof: string; certificate?: CertificateBody };
    const [{ network }, asset, account] = [await this.limits(), (await this.assets(symbol)).get(symbol), plainAddress(address)];
    const path = `/v1/assets/${asset.number}/holders/${account}/proof`;
    const body = await this.http.get<Proved>(path, committee ? { certified: "true" } : {});
    return this.http.decoded(() => {
      this.checkSigned(body, network, committee);
      const proved = proveHolder(asset.number, fromHex(account), fromHex(body.root), fromHex(body.proof));
      return account === asset.body.issuer.toLowerCase() ? { ...proved, isOpen: true } : proved;
    });
  }

  /** The parameters that the node has proved, or null; with a committee, in a state that its quorum signed. */
  async provedParameters(committee: Committee | null): Promise<ProvedParameters | null> {
    type Proved = { root: string; proof: string; certificate?: CertificateBody };
    const { network } = await this.limits();
    const body = await this.http.get<Proved>("/v1/parameters/proof", committee ? { certified: "true" } : {});
    return this.http.decoded(() => {
      this.checkSigned(body, network, committee);
      return proveParameters(fromHex(body.root), fromHex(body.proof));
    });
  }

  /** With a committee: its quorum has signed the state root of an answer. */
  private checkSigned(body: { root: string; certificate?: CertificateBody }, network: string, committee: Committee | null): void {
    if (!committee) return;
    if (body.certificate?.state_root !== body.root) throw new ProofError("the certificate is for another state root");
    checkCertificate(body.certificate, network, committee);
  }

  offersPage(address: string, cursor: string | undefined, limit: number): Promise<{ offers: models.Offer[]; next: string | null }> {
    const read = (body: { offers: bodies.Offer[]; next?: string | null }, assets: Assets) => ({
      offers: body.offers.map((one) => models.offer(one, assets)),
      next: body.next ?? null,
    });
    return this.ask(`/v1/accounts/${plainAddress(address)}/offers`, read, { cursor, limit });
  }

  async offers(address: string): Promise<models.Offer[]> {
    const found: models.Offer[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await this.offersPage(address, cursor ?? undefined, PAGE);
      found.push(...page.offers);
      cursor = page.next;
    } while (cursor !== null);
    return found;
  }

  /** A page of a history, newest first, and the cursor of the next one. */
  async past<B, T>(address: string, what: "orders" | "fills" | "transfers", read: (body: B, assets: Assets) => T, asked: Record<string, string | number | undefined>): Promise<{ rows: T[]; next: string | null }> {
    type Page = { next: string | null } & Record<string, B[]>;
    const page = (body: Page, assets: Assets) => ({ rows: (body[what] ?? []).map((one) => read(one, assets)), next: body.next });
    return this.ask(`/v1/accounts/${plainAddress(address)}/${what}`, page, asked);
  }

  async orderFate(address: string, order: { number: bigint } | { client: string }): Promise<models.OrderFate> {
    const place = "number" in order ? `orders/${order.number}` : `clients/${encodeURIComponent(order.client)}`;
    return this.ask(`/v1/accounts/${plainAddress(address)}/${place}`, models.orderFate);
  }

  /** A resting offer; null if it has traded, or was cancelled, or never was. */
  async offer(address: string, id: bigint): Promise<models.Offer | null> {
    // Ids from this one on: the first is the offer, if it rests.
    const { offers } = await this.offersPage(address, String(id), 1);
    return offers.find((one) => one.id === id) ?? null;
  }

  markets(): Promise<models.Market[]> {
    return this.ask("/v1/markets", (body: { markets: bodies.Market[] }, assets) => body.markets.map((one) => models.market(one, assets)));
  }

  private async place(name: string, what: string): Promise<string> {
    const [base, quote] = (await this.assets()).market(name);
    return `/v1/markets/${encodeURIComponent(base.symbol)}/${encodeURIComponent(quote.symbol)}/${what}`;
  }

  async book(name: string, levels?: number): Promise<models.Book> {
    return this.ask(await this.place(name, "book"), models.book, { levels });
  }

  async quote(sell: string, buy: string, amount: Amount, price?: Amount): Promise<models.Quote> {
    const assets = await this.assets();
    const [sold, bought] = [assets.get(sell), assets.get(buy)];
    const limit = price === undefined ? undefined : plainText(limitOf(price, sold, bought));
    return this.ask("/v1/quote", models.quote, { sell, buy, amount: sold.units(amount).toString(), limit });
  }

  async quoteExact(side: "buy" | "sell", market: string, amount: Amount, bound: Amount): Promise<models.Quote> {
    const [base, quote] = (await this.assets()).market(market);
    const [sell, buy] = side === "sell" ? [base, quote] : [quote, base];
    const asked = { exact: side, amount: base.units(amount).toString(), bound: quote.units(bound).toString() };
    return this.ask("/v1/quote", models.quote, { sell: sell.symbol, buy: buy.symbol, ...asked });
  }

  /** What the next batch would do with an offer, if nothing else came, in units. */
  quoteOf(sell: AssetInfo, buy: AssetInfo, { amount, limit }: { amount: bigint; limit: string }): Promise<bodies.Quote> {
    return this.http.get<bodies.Quote>("/v1/quote", { sell: sell.symbol, buy: buy.symbol, amount: amount.toString(), limit });
  }

  async ticker(name: string): Promise<models.Ticker> {
    return this.ask(await this.place(name, "ticker"), models.ticker);
  }

  async candles(name: string, asked: Candles): Promise<models.Candle[]> {
    const read = (body: bodies.Candles, assets: Assets) => body.candles.map((one) => models.candle(one, assets, name));
    return this.ask(await this.place(name, "candles"), read, asked);
  }

  async history(name: string, limit?: number, before?: number, since_ms?: number): Promise<models.PricePoint[]> {
    const read = (body: { points: bodies.HistoryPoint[] }, assets: Assets) => body.points.map((one) => models.point(one, assets, name));
    return this.ask(await this.place(name, "history"), read, { limit, before, since_ms });
  }

  batch(height: number): Promise<models.Batch> {
    return this.ask(`/v1/blocks/${height}/batch`, models.batch);
  }

  block(height: number): Promise<bodies.Block> {
    return this.http.get(`/v1/blocks/${height}`, { limit: 1 });
  }

  async blocks(limit?: number, before?: number): Promise<bodies.Block[]> {
    return (await this.http.get<{ blocks: bodies.Block[] }>("/v1/blocks", { limit, before })).blocks;
  }
}
