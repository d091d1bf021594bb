/** A node, and the key that signs for an account. */
import { checkSize, limitOf, type Amount, type Assets } from "./assets.js";
import type * as bodies from "./bodies.js";
import type { LocalBook } from "./book.js";
import type { Committee } from "./certificate.js";
import { parseDecimal, plainText } from "./decimal.js";
import { CANCELS_MAX, plainAddress, type Life, type OfferPlace, type Operation } from "./encoding.js";
import { ClientError, ForeignAnswerError, NoAnswerError, NotFoundError, OtherNetworkError, TransactionRefusedError } from "./errors.js";
import { LASTS_MAX, fateOf, provedFate } from "./fate.js";
import { Feed, type Event } from "./feed.js";
import { DisconnectGuard, type Ending } from "./guard.js";
import { Holders } from "./holders.js";
import { Http, type Fetch } from "./http.js";
import type { Envelopes, Seal } from "./envelopes.js";
import type { Ed25519Key, Key } from "./keys.js";
import * as models from "./models.js";
import { wouldFill } from "./placing.js";
import type { AccountKeys } from "./policy.js";
import type { ProvedParameters } from "./proof.js";
import { exactOf, isFormOf, offerOf, tightened } from "./purchase.js";
import { referenceBytes, referenceOf, type PaymentReference } from "./references.js";
import { Sender, type OfferOptions, type SendOptions } from "./sending.js";
import { Session, type Candles, type Limits } from "./session.js";
import { KeepAlive, Slots, type SessionTerms } from "./slots.js";
import { MemoryStore, type Store } from "./store.js";
import { Stream, type Challenge, type Login, type Message, type Socket } from "./stream.js";

/** What the reference of an offer has that comes after an exact order. */
const THEN_AS_OFFER = " as an offer";

export type Options = {
  /** Needed for sending. */
  key?: Key;
  /** Another account than the key's own: one that registered the key, or, with `slot`, one whose session key it is. */
  account?: string;
  /** The slot of the session key: then the client numbers its transactions in it. */
  slot?: number;
  /** The identity that the node must have. */
  network?: string;
  /** Keeps transactions until they are final; by default they end with the process. */
  store?: Store;
  /** The longest wait for the block of a transaction. */
  patienceMs?: number;
  /** Blocks for which a transaction may count, at most 256. */
  lasts?: number;
  /** For a node that asks for one. */
  token?: string;
  fetch?: Fetch;
  /** Another client whose Ed25519 key signs and pays for the envelopes of `sealed` orders; by default this one's does. */
  payer?: Client;
  /** How texts are sealed: a page does it in a worker. */
  seal?: Seal;
  /** Opens a WebSocket; needed in Node.js before version 22: `(url) => new WebSocket(url)` of the package `ws`. */
  socket?: (url: string) => Socket;
};

/** See the README. Amounts and prices are text in whole assets. */
export class Client {
  private readonly session: Session;
  private readonly own: Sender | null;
  private readonly store: Store;
  /** What accounts may do with assets whose issuers control them, and what this account says of those that it issues. */
  readonly holders: Holders;

  constructor(
    server = "http://127.0.0.1:8080",
    private readonly options: Options = {},
  ) {
    const { key, account, slot = 0, network, store = new MemoryStore(), patienceMs = 60_000, lasts = LASTS_MAX, token = null } = options;
    if (!(lasts >= 1 && lasts <= LASTS_MAX)) throw new RangeError(`a transaction lasts 1 to ${LASTS_MAX} blocks, not ${lasts}`);
    if (slot !== 0 && account === undefined) throw new RangeError("a session key acts for an account: give its `account` beside `key` and `slot`");
    const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.session = new Session(new Http(server, token, fetch), network ?? null);
    this.store = store;
    this.holders = new Holders(this.session, (operation, options) => this.send(operation, options));
    this.own = key ? new Sender(this.session, plainAddress(account ?? key.address), key, store, patienceMs, lasts, slot) : null;
  }

  get server(): string {
    return this.session.http.server;
  }
  /** The account that this client sends for. */
  get address(): string {
    return this.sender.account;
  }
  private get sender(): Sender {
    if (!this.own) throw new ClientError("this client has no key: give it one, such as new Client(server, { key: new EthereumKey(…) })");
    return this.own;
  }

  // What is asked.

  /** The answer at a path of the interface, see docs/api.md; nothing in it is checked. */
  ask<T>(path: string, parameters: Record<string, string | number | undefined> = {}): Promise<T> {
    return this.session.http.get<T>(path, parameters);
  }
  /** The answer to JSON at a path, which is sent once; nothing in it is checked. */
  tell<T>(path: string, body: unknown): Promise<T> {
    return this.session.http.tell<T>(path, body);
  }
  /** The bytes that answer bytes at a path. */
  carry(path: string, parameters: Record<string, string | number | undefined>, body: Uint8Array): Promise<Uint8Array> {
    return this.session.http.carry(path, parameters, body);
  }
  status(): Promise<bodies.Status> {
    return this.session.status();
  }
  /** The limits of the chain as they are now: validators can vote another fee. */
  limits(): Promise<Limits> {
    return this.session.limitsNow();
  }
  assets(): Promise<Assets> {
    return this.session.assets();
  }
  /** An account, by default the client's own. A `NotFoundError` where there is none. */
  account(address = this.address): Promise<models.Account> {
    return this.session.account(address);
  }
  /** The validators that decide now, as the node names them: keep them, to check certificates with them later. */
  committee(): Promise<Committee> {
    return this.session.committee();
  }
  /** An account with a proof of its state root; with a committee, of one that a quorum of it has signed. */
  provedAccount(address = this.address, committee: Committee | null = null): Promise<models.Account> {
    return this.session.provedAccount(plainAddress(address), committee);
  }
  /** The policy of an account with a proof, null if one key signs alone; with a committee, in a state that its quorum signed. */
  provedKeys(address = this.address, committee: Committee | null = null): Promise<AccountKeys | null> {
    return this.session.provedKeys(plainAddress(address), committee);
  }
  /** The parameters of the chain with a proof, null while nothing was ever proposed; with a committee, in a state that its quorum signed. */
  provedParameters(committee: Committee | null = null): Promise<ProvedParameters | null> {
    return this.session.provedParameters(committee);
  }
  /** What a block did with a transaction, proved against a receipts root that a quorum of the committee signed. */
  async provedFate(id: string, committee: Committee): Promise<models.Fate> {
    return provedFate(this.session, id, await this.store.get(id), committee);
  }
  /** All resting offers of an account, by id. */
  offers(address = this.address): Promise<models.Offer[]> {
    return this.session.offers(address);
  }
  /** A page of them, and the cursor of the next one. */
  offersPage(address: string, cursor?: string, limit = 100): Promise<{ offers: models.Offer[]; next: string | null }> {
    return this.session.offersPage(address, cursor, limit);
  }
  /** A page of an account's orders, newest first, as far back as the node's index goes. */
  orders(cursor?: string, limit = 100, address = this.address): Promise<{ rows: models.PastOrder[]; next: string | null }> {
    return this.session.past(address, "orders", models.pastOrder, { cursor, limit });
  }
  /** A page of the fills of an account or of one of its orders, newest first. */
  fills(cursor?: string, limit = 100, address = this.address, offer?: bigint): Promise<{ rows: models.PastFill[]; next: string | null }> {
    return this.session.past(address, "fills", models.pastFill, { cursor, limit, offer: offer?.toString() });
  }
  /** A page of what else left or reached an account, newest first: payments, issues, and what went to lanes and venues. */
  transfers(cursor?: string, limit = 100, address = this.address, remittance?: PaymentReference | string): Promise<{ rows: models.PastTransfer[]; next: string | null }> {
    const said = remittance === undefined ? undefined : referenceOf(remittance);
    return this.session.past(address, "transfers", models.pastTransfer, { cursor, limit, reference: said?.value, reference_kind: said?.kind });
  }
  /** The definite answer about an order, by its number or by the `client` that it was signed with. */
  orderFate(order: { number: bigint } | { client: string }, address = this.address): Promise<models.OrderFate> {
    return this.session.orderFate(address, order);
  }
  /** A resting offer; null where it no longer rests. */
  offerOf(id: bigint, address = this.address): Promise<models.Offer | null> {
    return this.session.offer(address, id);
  }
  markets(): Promise<models.Market[]> {
    return this.session.markets();
  }
  /**
   * What the next batch would do with an offer of `amount` of `sell` for at least `price` of `buy` each, or at any price, if
   * nothing else came. All pairs of the book take part.
   */
  quote(sell: string, buy: string, amount: Amount, price?: Amount): Promise<models.Quote> {
    return this.session.quote(sell, buy, amount, price);
  }

  /**
   * What the next batch would do with an exact order of these parts, if nothing else came: `why` is `filled` where there is room
   * for it. Exact orders of others may come first.
   */
  quoteExact(side: "buy" | "sell", market: string, amount: Amount, bound: Amount): Promise<models.Quote> {
    return this.session.quoteExact(side, market, amount, bound);
  }
  /** Last price, best limits, and the 24 hours up to the last block. */
  ticker(market: string): Promise<models.Ticker> {
    return this.session.ticker(market);
  }
  /** The resting offers of a market such as `EUR/USD`, by price. */
  book(market: string, levels?: number): Promise<models.Book> {
    return this.session.book(market, levels);
  }
  /** Candles, the oldest first: 1m, 5m, 15m, 1h, 4h or 1d. */
  candles(market: string, asked: Candles = {}): Promise<models.Candle[]> {
    return this.session.candles(market, asked);
  }
  /** The batches in which a market traded, the oldest first. */
  history(market: string, limit?: number, before?: number, since_ms?: number): Promise<models.PricePoint[]> {
    return this.session.history(market, limit, before, since_ms);
  }
  /** The continuous markets of the node's venue: terms, best prices, the last trade and the last 24 hours. */
  async venueMarkets(): Promise<bodies.VenueMarket[]> {
    return (await this.ask<{ markets: bodies.VenueMarket[] }>("/v1/venue/markets")).markets;
  }
  /** A page of what executed in one of them of late, the newest first. A trade is told before it is settled. */
  venueTrades(market: number, asked: { limit?: number; cursor?: string; since_ms?: number } = {}): Promise<bodies.VenueTrades> {
    return this.ask(`/v1/venue/markets/${market}/trades`, asked);
  }
  batch(height: number): Promise<models.Batch> {
    return this.session.batch(height);
  }
  block(height: number): Promise<bodies.Block> {
    return this.session.block(height);
  }
  /** Recent blocks, the newest first. */
  blocks(limit?: number, before?: number): Promise<bodies.Block[]> {
    return this.session.blocks(limit, before);
  }

  // What is sent.

  /**
   * Pays an account. With a `reference` of the caller's it is paid once, however often this is called. `remittance` says what
   * for: the receiver's own reference, such as the number of an invoice. It is signed and public for ever. Chains have it since
   * rules 12.
   */
  async pay(to: string, asset: string, amount: Amount, { remittance, ...options }: SendOptions & { remittance?: PaymentReference | string } = {}): Promise<models.Fate> {
    const [receiver, of] = [plainAddress(to), (await this.session.assets(asset)).get(asset)];
    const paid = { to: receiver, asset: of.number, amount: of.units(amount) };
    if (remittance === undefined) return this.send({ kind: "Pay", ...paid }, options);
    const said = referenceOf(remittance);
    return this.send({ kind: "PayReferenced", ...paid, referenceKind: said.kind, reference: referenceBytes(said) }, options);
  }

  /**
   * Offers `amount` of `sell` for at least `price` of `buy` each. Its `life` says what becomes of the part that is not
   * sold at once: it rests (as usual), rests up to a height, or returns after one batch; `client` is the caller's own
   * name for it, 16 bytes in hexadecimal.
   */
  async offer(sell: string, buy: string, amount: Amount, price: Amount, { life, client, ...options }: OfferOptions = {}): Promise<models.Fate> {
    const assets = await this.session.assets(sell, buy);
    const [sold, bought] = [assets.get(sell), assets.get(buy)];
    const [units, limit] = [sold.units(amount), limitOf(price, sold, bought)];
    checkSize(assets, sold.number, bought.number, units, limit);
    return this.send({ kind: "CreateOffer", sell: sold.number, buy: bought.number, amount: units, limit: plainText(limit), ...named(life, client) }, options);
  }

  /** Sells up to `amount` of a market's base for at least `price` of its quote each. */
  async sell(market: string, amount: Amount, price: Amount, options: OfferOptions = {}): Promise<models.Fate> {
    const [base, quote] = (await this.session.assets(...market.split("/"))).market(market);
    return this.offer(base.symbol, quote.symbol, amount, price, options);
  }

  /**
   * Buys `amount` of a market's base for at most `price` of its quote each. What the next batch would fill whole stops at the
   * amount: it goes as an exact order or, where that finds no room, as an offer at the price that the batch would charge. The
   * rest goes as an offer of what the amount costs, which a later batch at a better price fills with more, never dearer. Without
   * `wait` nobody looks whether the exact order was filled. See `purchase.ts`.
   */
  async buy(market: string, amount: Amount, price: Amount, { life, client, ...options }: OfferOptions = {}): Promise<models.Fate> {
    const assets = await this.session.assets(...market.split("/"));
    const [base, quote] = assets.market(market);
    const purchase = { base, quote, units: base.units(amount), limit: limitOf(price, base, quote), named: named(life, client) };
    const [offer, exact, isForm] = [offerOf(purchase), exactOf(purchase), isFormOf(purchase)];
    checkSize(assets, quote.number, base.number, offer.amount, parseDecimal(offer.limit)!);
    const ask = (asked: typeof offer) => this.session.quoteOf(quote, base, asked);
    // Whoever is asked what the next batch would do with a sealed order knows it.
    const isExact = !options.sealed && exact !== null && wouldFill(await ask(offer));
    const fate = await this.send(isExact ? exact : offer, { ...options, isForm });
    if (fate.outcome?.result !== "exact" || fate.outcome.why === "filled") return fate;
    const { reference } = options;
    const then = reference === undefined ? {} : { reference: `${reference}${THEN_AS_OFFER}` };
    return this.send(await tightened(purchase, ask), { ...options, ...then, isForm });
  }

  /**
   * Buys exactly `amount` of a market's base for at most `bound` of its quote in all, or sells exactly `amount` for at least
   * `bound`, in the batch of the next block; or nothing happens, and the outcome says why.
   */
  async exact(side: "buy" | "sell", market: string, amount: Amount, bound: Amount, { client, ...options }: Omit<OfferOptions, "life"> = {}): Promise<models.Fate> {
    const [base, quote] = (await this.session.assets(...market.split("/"))).market(market);
    const [sell, buy] = side === "sell" ? [base, quote] : [quote, base];
    const operation = { kind: "Exact", sell: sell.number, buy: buy.number, side, units: base.units(amount), bound: quote.units(bound) } as const;
    return this.send({ ...operation, ...named(undefined, client) }, options);
  }

  /** An offer; whoever seals asks for all of them, so that the node does not learn which is meant. */
  private async resting(offer: models.Offer | bigint, { sealed = false }: SendOptions): Promise<models.Offer> {
    const ask = async (id: bigint) => (sealed ? (await this.offers()).find((one) => one.id === id) : await this.session.offer(this.address, id));
    const found = typeof offer === "bigint" ? await ask(offer) : offer;
    if (found) return found;
    const gone = `no offer ${String(offer)} of ${this.address} rests: it has traded, or was cancelled`;
    throw new NotFoundError(this.server, 404, "unknown_offer", gone);
  }

  /**
   * Replaces an own offer by one of another size or price. What is sold of it meanwhile makes the new one smaller: both
   * together never sell more than `amount` of what rests now.
   */
  async replace(offer: models.Offer | bigint, amount: Amount, price: Amount, options: SendOptions = {}): Promise<models.Fate> {
    const assets = await this.session.assets();
    const found = await this.resting(offer, options);
    const [sells, buys] = [assets.get(found.sell), assets.get(found.buy)];
    const limit = limitOf(price, sells, buys);
    checkSize(assets, sells.number, buys.number, sells.units(amount), limit);
    const { sell, buy, limit: oldLimit, offer: id } = placeOf(found, assets);
    const sizes = { remains: sells.units(found.amount), amount: sells.units(amount), limit: plainText(limit) };
    return this.send({ kind: "Replace", sell, buy, oldLimit, offer: id, ...sizes }, options);
  }

  /** Cancels what rests of an own offer. */
  async cancel(offer: models.Offer | bigint, options: SendOptions = {}): Promise<models.Fate> {
    const assets = await this.session.assets();
    const found = await this.resting(offer, options);
    return this.send({ kind: "Cancel", offers: [placeOf(found, assets)] }, options);
  }

  /**
   * Cancels all own offers, or those of a market, 32 in a transaction. Those that trade meanwhile are left out. A client of a
   * session key cancels those of its slot, with `every` all of the account.
   */
  async cancelAll(market?: string, { every = false }: { every?: boolean } = {}): Promise<models.Fate[]> {
    const assets = await this.session.assets();
    const pair = market === undefined ? null : assets.market(market).map((asset) => asset.symbol);
    const { slot } = this.sender;
    const mine = (await this.offers()).filter((one) => slot === 0 || every || one.slot === slot);
    const own = mine.filter((one) => pair === null || (pair.includes(one.sell) && pair.includes(one.buy)));
    const places = own.map((one) => placeOf(one, assets));
    const lists = Array.from({ length: Math.ceil(places.length / CANCELS_MAX) }, (_, at) => places.slice(at * CANCELS_MAX, (at + 1) * CANCELS_MAX));
    const cancelled = await Promise.all(lists.map((offers) => this.send({ kind: "Cancel", offers }).catch(tradedMeanwhile)));
    return cancelled.filter((fate) => fate !== null);
  }

  // Session keys.

  /** The session keys of an account, by slot: how they stand, and what they have used. */
  sessions(address = this.address): Promise<models.SessionKey[]> {
    return this.slots.all(address);
  }
  /** The session key that this client signs with, as the chain has it. */
  sessionKey(): Promise<models.SessionKey> {
    return this.slots.own();
  }
  /**
   * Lets a key cancel, or cancel and trade, for the account. `caps` are the most that it may use of each asset, locked and sold
   * less bought, fees included. A key that is added already is left as it is.
   */
  addSession(key: Ed25519Key, caps: Record<string, Amount>, terms: SessionTerms = {}): Promise<models.SessionKey> {
    return this.slots.add(key, caps, terms);
  }
  /** Ends a session key and its offers. */
  revokeSession(slot: number, options: SendOptions = {}): Promise<models.Fate> {
    return this.slots.revoke(slot, options);
  }
  /** Keeps the offers of a slot, by default the own one, for so many blocks from now. */
  alive(blocks: number, { slot, ...options }: SendOptions & { slot?: number } = {}): Promise<models.Fate> {
    return this.slots.alive(blocks, slot, options);
  }
  /**
   * Ends all offers of a slot, by default the own one, with the next block. It does not trade until `alive` is said. Calls of
   * this client that are under way are void, unless their order came first.
   */
  stop({ slot, ...options }: SendOptions & { slot?: number } = {}): Promise<models.Fate> {
    return this.slots.stop(slot, options);
  }
  /**
   * Says `alive` for the own slot whenever less than half of `blocks` is left, until it is closed. It does not bring back a slot
   * that was stopped.
   */
  keepAlive(blocks: number): KeepAlive {
    const { slots } = this;
    return new KeepAlive(() => slots.beat(blocks));
  }
  /**
   * A connection that ends all offers of a slot, by default the own one, when it breaks: the node has a signed stop and submits
   * it then. `withdraw` at a regular end keeps them. A node that fails does nothing: then the timer of the slot ends them.
   *
   * An account's own key without a `slot` leaves a cancel of its resting offers, the newest 32 of them: the cancel follows the
   * account block by block, an offer of the last moment is not in it, and no timer stands behind it.
   */
  cancelOnDisconnect({ slot }: { slot?: number } = {}): Promise<DisconnectGuard> {
    const [open, login] = [() => this.open(), (challenge: Challenge) => this.login(challenge)];
    const parts = { server: this.server, sender: this.sender, open, login };
    if (slot === undefined && this.sender.slot === 0) return DisconnectGuard.open({ ...parts, ending: () => this.cancelOfOwn(), follows: `account:${this.address}` });
    const stop: Operation = { kind: "SessionAlive", slot: this.slots.slot(slot), through: 0n };
    return DisconnectGuard.open({ ...parts, ending: async () => ({ operation: stop, offers: [], beyond: 0 }), follows: null });
  }
  /** What cancels the newest resting offers of the account's own key. */
  private async cancelOfOwn(): Promise<Ending> {
    const assets = await this.session.assets();
    const own = (await this.offers()).filter((one) => one.slot === 0).sort((a, b) => (a.id < b.id ? 1 : -1));
    const named = own.slice(0, CANCELS_MAX);
    const operation: Operation | null = named.length > 0 ? { kind: "Cancel", offers: named.map((one) => placeOf(one, assets)) } : null;
    return { operation, offers: named.map((one) => one.id), beyond: own.length - named.length };
  }
  private get slots(): Slots {
    return new Slots(this.session, this.sender);
  }

  /** Signs any operation and sends it. */
  async send(operation: Operation, options: SendOptions = {}): Promise<models.Fate> {
    return options.sealed ? (await this.envelopes()).sendOne(operation, options) : this.sender.send(operation, options);
  }
  /** Sends orders in one envelope, at most 32: their fates, in order. */
  async sendSealed(orders: Operation[], options: { wait?: boolean; reference?: string } = {}): Promise<models.Fate[]> {
    return (await this.envelopes()).send(orders, options);
  }
  /** What seals is large, and most clients never do. */
  private async envelopes(): Promise<Envelopes> {
    const { Envelopes } = await import("./envelopes.js");
    return new Envelopes(this.session, this.sender, (this.options.payer ?? this).sender, this.options.seal);
  }
  /** What became of a transaction. */
  async fate(id: string): Promise<models.Fate> {
    return fateOf(this.session, id, await this.store.get(id));
  }
  /** Sends a stored transaction again, unchanged. */
  retry(id: string, { wait = true }: { wait?: boolean } = {}): Promise<models.Fate> {
    return this.sender.retry(id, wait);
  }
  /** The fates of all stored transactions; those that are final are no longer stored. */
  settle(): Promise<models.Fate[]> {
    return this.sender.settle();
  }
  /** The ids of the stored transactions. */
  async stored(): Promise<string[]> {
    return (await this.store.all()).map((signed) => signed.id);
  }

  // What is followed.

  /**
   * The events of some channels, without end: `blocks`, `batches`, `trades:EUR/USD`, `book:EUR/USD`, `ticker:EUR/USD`,
   * `candles:EUR/USD:1m`, `account:0x…`, and `orders:0x…` of the client's own account, for which its key logs in. A broken
   * connection is made again, and what was missed is asked for.
   */
  async *stream(channels: string[], { fromHeight }: { fromHeight?: number } = {}): AsyncGenerator<Event, void, undefined> {
    const feed = new Feed(this.session, channels, fromHeight ?? null);
    const waiting: (Message | Event)[] = [];
    let wake = () => {};
    const arrive = (one: Message | Event) => {
      waiting.push(one);
      wake();
    };
    const connected = (state: { state: string; reason?: string; retry_ms?: number }) => {
      if (state.state === "waiting") arrive({ type: "disconnected", reason: state.reason ?? "", retry_ms: state.retry_ms ?? 0 });
    };
    const stream = new Stream(() => this.open(), connected, arrive, Math.random, () => feed.heights(), (challenge) => this.login(challenge));
    for (const channel of feed.channels) stream.subscribe(channel, () => undefined);
    stream.open();
    try {
      for (;;) {
        const next = waiting.shift();
        if (next === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else if (next.type === "disconnected") yield next as Event;
        else {
          const events = await this.received(feed, next as Message);
          if (typeof events === "string") {
            // What came after it on this connection would leave a gap.
            waiting.length = 0;
            stream.again(events);
          } else yield* events;
        }
      }
    } finally {
      stream.close();
    }
  }

  /** The signature of a challenge; only of this network, and for the server that was called. */
  private async login({ nonce, network }: Challenge): Promise<Login> {
    const key = this.options.key;
    if (!key?.login) throw new ClientError("own orders need a key that signs logins: give the client one");
    const limits = await this.session.limits();
    if (network !== limits.network) throw new OtherNetworkError(this.server, network, limits.network);
    const terms = { account: this.address, nonce, server: new URL(this.server).host, chain: limits.chain, network };
    return { account: this.address, ...(await key.login(terms)) };
  }

  /**
   * The own orders and fills as they happen: first the newest hundred, then what each block changed, and what the node has
   * taken and no block contains yet. Another connection begins with a snapshot.
   */
  async *followOrders(): AsyncGenerator<models.OwnOrders & { isSnapshot: boolean }, void, undefined> {
    for await (const event of this.stream([`orders:${this.address}`])) if (event.type === "orders") yield event;
  }

  /** The events of a message, or why the connection is of no use: the node does not answer what was missed. */
  private async received(feed: Feed, message: Message): Promise<Event[] | string> {
    try {
      return await feed.receive(message);
    } catch (error) {
      if (error instanceof NoAnswerError || error instanceof ForeignAnswerError) return error.message;
      throw error;
    }
  }

  /**
   * A local book of the best hundred levels of each side, each time that a block changed it. It is the same object each time,
   * checked against the node's checksum.
   */
  async *followBook(market: string): AsyncGenerator<LocalBook, void, undefined> {
    for await (const event of this.stream([`book:${market}`])) if (event.type === "book") yield event.book;
  }

  /** A WebSocket to a path of the node. */
  open(path = "/v1/stream"): Socket {
    const url = this.server.replace(/^http/, "ws") + path;
    if (this.options.socket) return this.options.socket(url);
    if (typeof globalThis.WebSocket !== "function") {
      throw new ClientError("this runtime has no WebSocket: give the option `socket`, such as (url) => new WebSocket(url) of the package ws");
    }
    return new globalThis.WebSocket(url);
  }
}

/** What was chosen, without what was not. */
function named(life: Life | undefined, client: string | undefined): { life?: Life; client?: string } {
  return { ...(life === undefined ? {} : { life }), ...(client === undefined ? {} : { client }) };
}

function placeOf(offer: models.Offer, assets: Assets): OfferPlace {
  return { sell: assets.get(offer.sell).number, buy: assets.get(offer.buy).number, limit: offer.limit, offer: offer.id };
}

function tradedMeanwhile(error: unknown): null {
  if (error instanceof TransactionRefusedError && error.code === "unknown_offer") return null;
  throw error;
}
