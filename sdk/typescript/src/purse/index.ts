/** A purse for the payment lane, with the same files as `walras pay`; see the README. */
import type { Amount } from "../assets.js";
import type { Client } from "../client.js";
import { plainAddress } from "../encoding.js";
import { openSeed, sealKey } from "../keystore.js";
import { verifyCertificate, type Certificate } from "../lane/certificate.js";
import { AGGREGATE, SHARES, type SignedPayment, TREES } from "../lane/collect.js";
import * as ed25519 from "../lane/ed25519.js";
import { Refused, hex, same } from "../lane/layout.js";
import { CONFIRMATION, type Output, ownerBytes, summaryOf } from "../lane/payment.js";
import { laneAddress, laneBill } from "../lane/receipt.js";
import { fromHex } from "../typed.js";
import { randomBytes } from "@noble/hashes/utils.js";
import { choose } from "./choose.js";
import { type Deposit, type Held, PurseContents, type SentPayment, createContents } from "./contents.js";
import { LaneError, MissingMoneyError, PurseError, ReceiptError } from "./errors.js";
import { type PurseFiles, idText } from "./files.js";
import { CERTIFIED_MS, posted, resolve, sentAgain, withdraw } from "./ledger.js";
import { type Expected, LaneNetwork, type LaneNow } from "./network.js";
import type { Money } from "./terms.js";
import { checked, forOthers, payable, shown, slipsOf, verified } from "./receipts.js";
import type { Balance, Bill, Deposited, Entry, Paid, Proved, Received, Redeemed, Repaired, Scheme, Sent, Settled } from "./results.js";
import { Session } from "./session.js";
import type { Carrier } from "./shards.js";

export * from "./errors.js";
export { MemoryFiles, type PurseFiles } from "./files.js";
export type { Expected } from "./network.js";
export type * from "./results.js";
export type { Carrier } from "./shards.js";

const SCHEMES: Record<Scheme, number> = { merkle: TREES, bls: AGGREGATE, threshold: SHARES };
const PATIENCE_MS = 30_000;

/** `client` is the node that is asked; `patienceMs` the longest wait for a quorum; `carrier` reaches shards, by default through the node. */
export type PurseOptions = { client?: Client; passphrase?: string; patienceMs?: number; carrier?: Carrier };
type Confirmed = { payment: SignedPayment; certificate: Certificate; paid: Paid };
type Parts = { settled: bigint; fast: bigint; pending: bigint; homeOnly: bigint; lost: bigint };

/**
 * A seed, the keys made of it, and the proofs of its money. With a client that has the key of a ledger account it deposits and
 * redeems. Without a client it verifies, receives and shows; without a passphrase it makes no keys and spends nothing.
 *
 * While it is open nobody else can use its files: close it.
 */
export class Purse {
  private readonly session: Session;
  private last: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly contents: PurseContents,
    seed: Uint8Array | null,
    { client, patienceMs = PATIENCE_MS, carrier }: PurseOptions,
  ) {
    this.session = new Session(contents, seed, client ?? null, patienceMs, carrier ?? null);
  }

  /** Makes a purse for the lane of a node, which is trusted with what is not expected. */
  static async create(files: PurseFiles, options: PurseOptions & { client: Client; passphrase: string }, expected: Expected = {}): Promise<Purse> {
    const network = await LaneNetwork.ofNode(options.client, expected);
    await createContents(files, network, () => sealKey(randomBytes(32), options.passphrase));
    return Purse.open(files, options);
  }

  /** Opens a purse that `create`, `walras pay new` or Python made. */
  static async open(files: PurseFiles, options: PurseOptions = {}): Promise<Purse> {
    const contents = await PurseContents.open(files);
    try {
      const text = new TextDecoder().decode((await files.read("seed.json")) ?? new Uint8Array());
      const seed = options.passphrase === undefined ? null : await openSeed(text, options.passphrase);
      return new Purse(contents, seed, options);
    } catch (error) {
      await contents.close();
      throw error;
    }
  }

  /** Lets others use the files. The client is the caller's. */
  async close(): Promise<void> {
    await this.last.catch(() => undefined);
    await this.contents.close();
  }

  /** The identity of the lane. */
  get network(): string {
    return idText(this.contents.network.id);
  }
  /** The symbols of the assets that the lane carries. */
  get assets(): string[] {
    return this.contents.network.carried.map(({ symbol }) => symbol);
  }
  /** Whether the files may be a copy: then the purse asks a quorum what it has spent before it spends. */
  isCopy(): Promise<boolean> {
    return this.contents.files.isCopy();
  }

  /** One call at a time: two could choose the same money. */
  private alone<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.last.then(act, act);
    this.last = turn.catch(() => undefined);
    return turn;
  }

  // What is shown.

  /** A new lane address, with a key of its own that is stored before it is shown. */
  address(): Promise<string> {
    return this.alone(async () => laneAddress(this.contents.network.id, await this.contents.keys.make(this.session.seed)));
  }

  /** A new lane address that asks for an amount. Who pays it reads the amount with `asked`. */
  bill(asset: string, amount: Amount): Promise<string> {
    return this.alone(async () => {
      const { id } = this.contents.network;
      const money = this.contents.network.money(asset);
      const units = money.units(amount);
      if (units < money.least || units < 1n) throw new PurseError(`a bill in this asset asks for at least ${this.contents.network.shown(money.asset, money.least)}: ask for more`);
      return laneBill(id, await this.contents.keys.make(this.session.seed), { asset: money.asset, amount: units });
    });
  }

  /** What an address asks for; null if it asks for nothing, as accounts and plain lane addresses do. */
  asked(to: string): Bill | null {
    return isLane(to) ? payable(this.contents, to).bill : null;
  }

  /** The purse's money. `offline` asks no node: then it is not known what can only go home. */
  balance({ offline = false }: { offline?: boolean } = {}): Promise<Balance[]> {
    return this.alone(async () => {
      const now = offline ? null : (await this.session.network.learn(this.session.node)).epoch;
      if (!offline) await resolve(this.session, 0);
      const { held, waiting, sent } = await this.contents.contents();
      const sums = new Map<number, Parts>();
      const count = (asset: number, part: keyof Parts, units: bigint) => {
        const of = sums.get(asset) ?? { settled: 0n, fast: 0n, pending: 0n, homeOnly: 0n, lost: 0n };
        sums.set(asset, { ...of, [part]: of[part] + units });
      };
      for (const one of held.values()) count(one.holding.output.asset, partOf(one, now), one.holding.output.amount);
      for (const { asset, amount } of waiting) count(asset, "pending", amount);
      for (const one of sent) {
        if (one.certificate || (await this.contents.isContested(one.payment.digest))) continue;
        for (const output of one.payment.payment.outputs) if (this.contents.isOwn(output)) count(output.asset, "pending", output.amount);
      }
      return [...sums].sort(([one], [other]) => one - other).map(([asset, parts]) => this.shownBalance(asset, parts));
    });
  }

  private shownBalance(asset: number, parts: Parts): Balance {
    const money = this.contents.network.numbered(asset);
    const amounts = Object.fromEntries(Object.entries(parts).map(([name, units]) => [name, money.amount(units)]));
    return { asset: money.symbol, ...(amounts as Record<keyof Parts, string>) };
  }

  /** Deposits, receipts and payments, the oldest first. Payments that can have no further effect are forgotten with `settle`. */
  history(): Promise<Entry[]> {
    return this.alone(async () => {
      const { held, spent, sent } = await this.contents.contents();
      const received = [...held.values(), ...spent.values()].filter((one) => one.isReceived);
      const entries = await Promise.all([
        ...received.map((one) => this.entry("received", "received", one.holding.output, one.isSettled ? "settled" : "fast", idText(one.holding.id))),
        ...(await this.contents.deposits()).map((one) => this.entry("deposits", "deposited", one, one.home === null ? "pending" : "settled", one.transaction)),
        ...(await Promise.all(sent.map((one) => this.sentEntries(one)))).flat(),
      ]);
      return entries.sort((one, other) => (one.timeMs ?? 0) - (other.timeMs ?? 0));
    });
  }

  private async entry(part: string, kind: Entry["kind"], of: Output | Deposit, state: Entry["state"], id: string, to: string | null = null): Promise<Entry> {
    const money = this.contents.network.numbered(of.asset);
    return { timeMs: await this.contents.writtenMs(part, id), kind, asset: money.symbol, amount: money.amount(of.amount), to, state, id };
  }

  /** What a payment pays others, an entry for each output; what moves within the purse is one entry. */
  private async sentEntries({ id, payment, certificate, isSettled }: SentPayment): Promise<Entry[]> {
    const open = (await this.contents.isContested(payment.digest)) ? "contested" : "not confirmed";
    const state = !certificate ? open : isSettled ? "settled" : "fast";
    const abroad = payment.payment.outputs.filter((output) => !this.contents.isOwn(output));
    if (abroad.length === 0) return [await this.entry("outbox", "moved", payment.payment.outputs[0] as Output, state, id)];
    return Promise.all(abroad.map((output) => this.entry("outbox", "sent", output, state, id, shown(this.contents, output))));
  }

  // Money in and out of the ledger.

  /** From now on deposits come from this client's account, and money is redeemed to it. */
  uses(client: Client): Promise<void> {
    return this.alone(async () => void (this.session.client = client));
  }

  /**
   * Moves money from the client's account into the purse. A deposit that was sent before and whose result is unknown is sent as the
   * same bytes; `again` makes a second one.
   */
  deposit(asset: string, amount: Amount, { again = false }: { again?: boolean } = {}): Promise<Deposited> {
    return this.alone(async () => {
      // The node must be of the purse's lane; otherwise the money would go to another lane. It also tells the terms.
      const now = await this.session.network.learn(this.session.node);
      const money = this.contents.network.money(asset);
      const units = money.units(amount);
      this.contents.network.checkDeposit(money, units, now.epoch);
      await resolve(this.session, 0);
      const account = this.session.node.address;
      const { waiting } = await this.contents.contents();
      const same = waiting.find((one) => one.asset === money.asset && one.amount === units && one.account === account);
      const done = same && !again ? await sentAgain(this.session, same) : null;
      const transaction = done ?? (await withdraw(this.session, money, units, account));
      await resolve(this.session, CERTIFIED_MS);
      const left = (await this.contents.contents()).waiting.map((one) => one.transaction);
      return { transaction, asset, amount: money.amount(units), isSpendable: !left.includes(transaction) };
    });
  }

  /** Moves money back to the client's account, and posts whatever payments to accounts are not posted yet. */
  redeem(quantity: { asset: string; amount: Amount } | null = null, { scheme = "merkle" }: { scheme?: Scheme } = {}): Promise<Redeemed> {
    return this.alone(async () => {
      if (quantity) {
        const account: Output = { kind: 1, to: fromHex(this.session.node.address), asset: 0, amount: 0n };
        await this.pay(account, this.contents.network.money(quantity.asset), quantity.amount, SCHEMES[scheme], true);
      }
      const found: { payment: SignedPayment["payment"]; certificate: Certificate }[] = [];
      for (const sent of await this.contents.sent()) {
        if (sent.certificate && (await this.contents.isUnposted(sent))) found.push({ payment: sent.payment.payment, certificate: sent.certificate });
      }
      if (found.length === 0) throw new PurseError("there is nothing to redeem: give an asset and an amount, or receipts to `redeemReceipts`");
      return posted(this.session, found);
    });
  }

  /** Posts receipts of payments to accounts: the ledger credits those accounts. Anybody may. */
  redeemReceipts(text: string): Promise<Redeemed> {
    return this.alone(async () => {
      await this.session.network.learn(this.session.node);
      const slips = slipsOf(this.contents, text);
      const payments = slips.map((slip) => {
        verified(this.contents, slip);
        if (slip.kind === "accounts") return slip;
        throw new ReceiptError("NoAccount", "the receipt pays no ledger account: give it to `receive`");
      });
      return posted(this.session, payments);
    });
  }

  // Payments.

  /**
   * Pays a lane address or a ledger account. Give the recipient the receipt: without it they have nothing. Unless it settles here the
   * recipient settles. An `UnconfirmedError` names a payment that must be finished later, with `settle()`.
   */
  send(to: string, asset: string, amount: Amount, { settle = true, scheme = "merkle" }: { settle?: boolean; scheme?: Scheme } = {}): Promise<Sent> {
    return this.alone(async () => {
      const money = this.contents.network.money(asset);
      const payee = this.payee(to, money, amount);
      const { confirmed, unsettled } = await this.pay(payee, money, amount, SCHEMES[scheme], settle);
      const receipt = confirmed.flatMap(({ payment, certificate }) => forOthers(this.contents, payment, certificate)).join("\n");
      const payments = confirmed.map(({ paid }) => paid);
      return { to: shown(this.contents, payee), asset, amount: money.amount(money.units(amount)), payments, receipt, unsettled };
    });
  }

  /** A bill is paid as it asks, or not at all. */
  private payee(to: string, money: Money, amount: Amount): Output {
    if (!isLane(to)) return { kind: 1, to: fromHex(plainAddress(to)), asset: 0, amount: 0n };
    const { key, bill } = payable(this.contents, to);
    if (bill && (bill.asset !== money.symbol || money.units(bill.amount) !== money.units(amount))) {
      throw new PurseError(`the address asks for ${bill.amount} ${bill.asset}, not ${money.amount(money.units(amount))} ${money.symbol}: pay that, or get another address`);
    }
    return { kind: 0, to: key, asset: 0, amount: 0n };
  }

  /** Chooses, builds and stores the payments of an amount. From then on all must be finished. */
  private async stored(payee: Output, money: Money, amount: Amount, scheme: number): Promise<SignedPayment[]> {
    const units = money.units(amount);
    const now = await this.session.begin();
    const rule = (home: bigint) => this.contents.network.rule(money.asset, home);
    const parts = choose(await this.contents.holdings(), money.asset, rule, units, now.epoch);
    if (typeof parts === "bigint") throw new MissingMoneyError(this.contents.network.shown(money.asset, parts));
    // Checked before anything is signed.
    for (const { inputs } of parts) this.session.checkScheme(inputs[0]?.home ?? 0n, scheme);
    const payments: SignedPayment[] = [];
    for (const { inputs, paid, change } of parts) {
      const outputs: Output[] = [{ ...payee, asset: money.asset, amount: paid }];
      if (change > 0n) outputs.push({ kind: 0, to: await this.contents.keys.make(this.session.seed), asset: money.asset, amount: change });
      payments.push(this.session.built(inputs, now.epoch, outputs));
    }
    for (const payment of payments) await this.contents.insert(payment);
    return payments;
  }

  private async pay(payee: Output, money: Money, amount: Amount, scheme: number, settles: boolean): Promise<{ confirmed: Confirmed[]; unsettled: string[] }> {
    const [confirmed, unsettled]: [Confirmed[], string[]] = [[], []];
    for (const payment of await this.stored(payee, money, amount, scheme)) {
      const begun = performance.now();
      const certificate = await this.session.confirm(payment, scheme);
      confirmed.push({ payment, certificate, paid: { payment: idText(payment.digest), fastMs: performance.now() - begun, settledMs: null } });
    }
    for (const one of settles ? confirmed : []) {
      const begun = performance.now();
      try {
        await this.contents.settleSent(one.payment.digest, await this.session.acknowledge(summaryOf(one.payment.payment), one.certificate, scheme));
        one.paid.settledMs = performance.now() - begun;
      } catch (error) {
        if (!(error instanceof LaneError)) throw error;
        // Its receipt is valid without, and it can be tried again.
        unsettled.push(`payment ${one.paid.payment}: ${error.message}`);
      }
    }
    return { confirmed, unsettled };
  }

  /** The receipts of one of the purse's payments again, by its digest or the first digits of it. */
  export(payment: string): Promise<string> {
    return this.alone(async () => {
      const start = "0x" + payment.toLowerCase().replace(/^0x/, "");
      const found = (await this.contents.sent()).filter(({ id }) => id.startsWith(start));
      const [one] = found;
      if (!one) throw new PurseError(`${payment} is no payment of this purse: see \`history()\``);
      if (found.length > 1) throw new PurseError(`${payment} matches several payments: write more digits`);
      if (!one.certificate) throw new PurseError(`payment ${one.id} is not confirmed yet: use \`settle()\``);
      return forOthers(this.contents, one.payment, one.certificate).join("\n");
    });
  }

  // Receipts.

  /**
   * Checks receipts, one on each line, with only the proved keys of the lane. This proves that a payment is fast, not that it is
   * settled.
   */
  verify(text: string): Promise<Proved[]> {
    return this.alone(async () => slipsOf(this.contents, text).flatMap((slip) => verified(this.contents, slip)));
  }

  /**
   * Checks receipts, one on each line, and takes their money into the purse: all of them, or none. It settles the payments, which
   * makes them final; where that fails they are fast, and `settle()` tries again.
   */
  receive(text: string, { settle = true }: { settle?: boolean } = {}): Promise<Received[]> {
    return this.alone(async () => {
      const slips = slipsOf(this.contents, text);
      const now = settle ? await this.session.now() : null;
      const taken = new Map(slips.map((slip) => checked(this.contents, slip, now?.epoch ?? null)).map((one) => [hex(one.id), one]));
      const isNew = new Map<string, boolean>();
      for (const [id, one] of taken) isNew.set(id, await this.contents.keepReceipt(one.id, one.receipt));
      if (now) await this.session.settleAll(now);
      const { held } = await this.contents.contents();
      return [...taken].map(([id, { receipt }]) => {
        const money = this.contents.network.numbered(receipt.output.asset);
        const row = { output: "0x" + id, asset: money.symbol, amount: money.amount(receipt.output.amount) };
        return { ...row, isNew: isNew.get(id) ?? false, isSettled: held.get(id)?.isSettled ?? true };
      });
    });
  }

  /**
   * Finishes and settles everything, and renews money that can be spent for the last time in this lane epoch. Call it at least once in
   * each: after the next one money can only go to the ledger account of its key.
   */
  settle(): Promise<Settled> {
    return this.alone(async () => {
      await resolve(this.session, CERTIFIED_MS);
      let now: LaneNow = await this.session.now();
      const { finished, failed } = await this.finish();
      const { settled, failed: unsettled } = await this.session.settleAll(now);
      let [renewed, sentHome] = [0, 0];
      if ((await this.contents.holdings()).some(({ home }) => now.epoch === home + 1n || now.epoch === home + 2n)) {
        now = await this.session.begin();
        [renewed, sentHome] = [await this.session.renew(now), await this.session.sendHome(now)];
      }
      const forgotten = await this.contents.forgetOld(now.epoch);
      const unposted: string[] = [];
      for (const sent of await this.contents.sent()) if (await this.contents.isUnposted(sent)) unposted.push(sent.id);
      return { finished, settled, renewed, sentHome, forgotten, unposted, failed: [...failed, ...unsettled] };
    });
  }

  private async finish(): Promise<{ finished: number; failed: string[] }> {
    const failed: string[] = [];
    let finished = 0;
    for (const { certificate, payment } of await this.contents.sent()) {
      if (certificate) continue;
      try {
        await this.session.confirm(payment);
        finished += 1;
      } catch (error) {
        if (!(error instanceof LaneError)) throw error;
        // About a contested one the ledger decides.
        if (!(await this.contents.isContested(payment.digest))) failed.push(error.message);
      }
    }
    return { finished, failed };
  }

  // A copy, or a purse that was led astray.

  /**
   * Asks a quorum what spends each output, and finishes the payments that it learns of: their number. A purse that was copied or
   * restored does so by itself before it spends.
   */
  restore(): Promise<number> {
    return this.alone(async () => this.session.restore(await this.session.now()));
  }

  /** Puts aside what nothing verifies, and asks the validators what is true instead: for a purse that a lying node led astray. */
  repair(): Promise<Repaired> {
    return this.alone(async () => {
      // Without it nothing is put aside.
      void this.session.seed;
      const now = await this.session.now();
      const removed = (await this.contents.sent()).filter((sent) => !this.isProved(sent));
      for (const sent of removed) await this.contents.putAside(sent);
      return { removed: removed.map(({ id }) => id), found: await this.session.restore(now) };
    });
  }

  /** Whether a payment is certified, or signed by a key of the purse and not confirmed yet. */
  private isProved({ payment: { payment, digest, signature }, certificate }: SentPayment): boolean {
    if (!same(payment.network, this.contents.network.id) || !this.contents.keys.has(payment.owner)) return false;
    if (!certificate) return ed25519.holds(payment.owner, ownerBytes(payment), signature);
    const committee = this.contents.network.committee(payment.home);
    // The keys of an epoch that ended long ago may be forgotten: certificates were verified when they came.
    if (!committee) return true;
    try {
      verifyCertificate(certificate, committee, { kind: CONFIRMATION, owner: payment.owner, digest });
      return true;
    } catch (error) {
      if (error instanceof Refused) return false;
      throw error;
    }
  }
}

const isLane = (to: string): boolean => to.trim().toLowerCase().startsWith("lane:");

function partOf({ holding, isSettled }: Held, now: bigint | null): keyof Parts {
  const since = now === null ? 0n : now - holding.home;
  if (since === 2n) return "homeOnly";
  if (since > 2n) return "lost";
  return isSettled ? "settled" : "fast";
}
