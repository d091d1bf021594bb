/**
 * The files of a purse. `walras pay` and Python have the same files in the same form.
 *
 * | file | contents |
 * |---|---|
 * | `lane.json` | the lane that the purse is for, pinned when it was made |
 * | `proved-epochs.json`, `boards.json` | the keys of lane epochs, which the ledger has proved; boards of group keys |
 * | `validators.json` | the chain's newest validators that were proved, where they change |
 * | `seed.json`, `keys.json` | the seed, encrypted; the public keys made of it |
 * | `deposits/` | withdrawals from the ledger that become outputs |
 * | `received/` | receipts of others' payments, and proofs that they are settled |
 * | `outbox/` | payments, durable before they are first sent, with their certificates |
 * | `posted/`, `contested/` | marks of payments that the ledger has, or was asked to decide about |
 *
 * The balance follows from these files: outputs of deposits, of received receipts and of own payments, minus what own payments spend.
 */
import { type Certificate, encodeCertificate, parseCertificate } from "../lane/certificate.js";
import { type Holding, type SignedPayment, restored, stored } from "../lane/collect.js";
import { hex } from "../lane/layout.js";
import { type Output, carriedId, depositId } from "../lane/payment.js";
import { type Receipt, idOf, parseSlip, receiptOf, slipText } from "../lane/receipt.js";
import { fromHex } from "../typed.js";
import { PurseError, PurseFileError } from "./errors.js";
import { type PurseFiles, RESTORE, damaged, idText, readJson, writeJson } from "./files.js";
import { KeyRing } from "./keyring.js";
import { BOARDS, EPOCHS, LANE, LaneNetwork } from "./network.js";
import { PROVED } from "./trust.js";

const PARTS = ["deposits", "received", "posted", "contested", "outbox"];
const [PAYMENT, CERTIFICATE, ACKNOWLEDGEMENT, SETTLED, PLAN] = ["payment-", "certificate-", "acknowledgement-", ".settled", "follow.json"];
/** Lane epochs after its own in which a payment's outputs can be redeemed. */
export const REDEEM_EPOCHS = 3n;
const OUTBOX_DAMAGED = "restore it from a copy, or ask the validators which payment spends its money";

/** Money of a purse. `receipt` is that of the payment that created it; null for a deposit. */
export type Held = { holding: Holding; isSettled: boolean; receipt: Receipt | null; isReceived: boolean };
export type Deposit = { transaction: string; account: string; sequence: bigint; to: string; asset: number; amount: bigint; home: bigint | null; carried?: string };
/** A payment of the purse, and how far it has come. */
export type SentPayment = { id: string; payment: SignedPayment; certificate: Certificate | null; isSettled: boolean };
/** `held` is what no own payment spends, by id; `waiting` are deposits that are not outputs yet. */
export type Contents = { held: Map<string, Held>; spent: Map<string, Held>; sent: SentPayment[]; waiting: Deposit[] };

export function depositOutput({ carried, account, sequence }: Deposit, network: Uint8Array, home: bigint): Uint8Array {
  return carried === undefined ? depositId(network, home, fromHex(account), sequence) : carriedId(network, fromHex(carried));
}

function heldDeposit(deposit: Deposit, network: Uint8Array): Held | null {
  if (deposit.home === null) return null;
  const output: Output = { kind: 0, to: fromHex(deposit.to), asset: deposit.asset, amount: deposit.amount };
  const holding = { id: depositOutput(deposit, network, deposit.home), output, home: deposit.home, proof: null };
  return { holding, isSettled: true, receipt: null, isReceived: false };
}

type DepositFile = Omit<Deposit, "sequence" | "amount" | "home"> & { sequence: number | bigint; amount: number | bigint; home: number | null };

/** The files of a purse that is open: nobody else uses them meanwhile. */
export class PurseContents {
  private constructor(
    readonly files: PurseFiles,
    readonly network: LaneNetwork,
    readonly keys: KeyRing,
    private readonly release: () => Promise<void>,
  ) {}

  static async open(files: PurseFiles): Promise<PurseContents> {
    if (!(await files.read(LANE))) throw new PurseFileError(files.place, "is not a purse. Make one with Purse.create");
    const release = await files.lock();
    try {
      await finish(files);
      return new PurseContents(files, await LaneNetwork.read(files), await KeyRing.open(files), release);
    } catch (error) {
      await release();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.release();
  }

  /** The purse knows what was spent, so it is no copy any more. New keys use another salt. */
  async settleIn(): Promise<void> {
    await this.keys.renewSalt();
    await this.files.mark();
  }

  isOwn(output: Output): boolean {
    return output.kind === 0 && this.keys.has(output.to);
  }

  async deposits(): Promise<Deposit[]> {
    const found: Deposit[] = [];
    for (const name of await this.files.list("deposits")) {
      const body = (await readJson(this.files, `deposits/${name}`)) as DepositFile;
      const numbers = () => ({ sequence: BigInt(body.sequence), amount: BigInt(body.amount), home: body.home === null ? null : BigInt(body.home) });
      found.push({ ...body, ...damaged(this.files, `deposits/${name}`, RESTORE, numbers) });
    }
    return found;
  }

  keepDeposit(deposit: Deposit): Promise<void> {
    return writeJson(this.files, `deposits/${deposit.transaction}.json`, deposit);
  }

  forgetDeposit({ transaction }: Deposit): Promise<void> {
    return this.files.remove(`deposits/${transaction}.json`);
  }

  /** Stores a verified receipt; false if it was already there. */
  async keepReceipt(id: Uint8Array, receipt: Receipt): Promise<boolean> {
    const name = `received/${idText(id)}`;
    if (await this.files.read(name)) return false;
    await this.files.write(name, new TextEncoder().encode(slipText({ kind: "receipt", receipt }, this.network.id)));
    return true;
  }

  /** Records that the payment behind an output is settled. */
  keepSettled({ holding, isReceived }: Held, digest: Uint8Array, proof: Certificate): Promise<void> {
    return isReceived ? this.files.write(`received/${idText(holding.id)}${SETTLED}`, encodeCertificate(proof)) : this.settleSent(digest, proof);
  }

  keepPosted(digest: Uint8Array, transaction: string): Promise<void> {
    return this.files.write(`posted/${idText(digest)}`, new TextEncoder().encode(transaction));
  }
  private async has(part: string, digest: Uint8Array): Promise<boolean> {
    return (await this.files.read(`${part}/${idText(digest)}`)) !== null;
  }
  isContested(digest: Uint8Array): Promise<boolean> {
    return this.has("contested", digest);
  }

  /** Whether a payment pays accounts and the ledger has not received its certificate from this purse. */
  async isUnposted({ payment, certificate }: SentPayment): Promise<boolean> {
    const pays = payment.payment.outputs.some((output) => output.kind === 1);
    return pays && certificate !== null && !(await this.has("posted", payment.digest));
  }

  /** Makes a payment durable, so that it may be sent. Refuses one whose money another stored one spends. */
  async insert(payment: SignedPayment): Promise<void> {
    const inputs = new Set(payment.payment.inputs.map((one) => hex(one.id)));
    for (const earlier of await this.sent()) {
      if (earlier.id === idText(payment.digest)) return;
      const spent = earlier.payment.payment.inputs.find((one) => inputs.has(hex(one.id)));
      if (!spent) continue;
      throw new PurseError(
        `output ${idText(spent.id)} is spent by payment ${earlier.id}, which was begun before: finish that one with \`settle()\`, or its money is frozen`,
      );
    }
    await this.files.write(`outbox/${PAYMENT}${idText(payment.digest)}`, stored(payment));
  }
  finishSent(digest: Uint8Array, certificate: Certificate): Promise<void> {
    return this.files.write(`outbox/${CERTIFICATE}${idText(digest)}`, encodeCertificate(certificate));
  }
  settleSent(digest: Uint8Array, acknowledgement: Certificate): Promise<void> {
    return this.files.write(`outbox/${ACKNOWLEDGEMENT}${idText(digest)}`, encodeCertificate(acknowledgement));
  }

  /** Every payment, by digest. */
  async sent(): Promise<SentPayment[]> {
    const names = new Set(await this.files.list("outbox"));
    const ids = [...names].filter((name) => name.startsWith(PAYMENT)).map((name) => name.slice(PAYMENT.length));
    return Promise.all(
      ids.map(async (id) => ({
        id,
        payment: await this.outbox(PAYMENT + id, restored),
        certificate: names.has(CERTIFICATE + id) ? await this.outbox(CERTIFICATE + id, parseCertificate) : null,
        isSettled: names.has(ACKNOWLEDGEMENT + id),
      })),
    );
  }

  private async outbox<T>(name: string, read: (bytes: Uint8Array) => T): Promise<T> {
    const bytes = (await this.files.read(`outbox/${name}`)) ?? new Uint8Array();
    return damaged(this.files, `outbox/${name}`, OUTBOX_DAMAGED, () => read(bytes));
  }

  /** Removes payments that are over. The payment goes first: without its certificate it would look unfinished. */
  private async forgetSent(ids: Set<string>): Promise<void> {
    const names = new Set(await this.files.list("outbox"));
    for (const kind of [PAYMENT, CERTIFICATE, ACKNOWLEDGEMENT]) {
      for (const name of names) {
        const id = name.slice(kind.length);
        if (name.startsWith(kind) && (ids.has(id) || !names.has(PAYMENT + id))) await this.files.remove(`outbox/${name}`);
      }
    }
  }

  /** A payment that nothing verifies counts no more; its bytes stay. */
  async putAside({ id, payment }: SentPayment): Promise<void> {
    await this.files.write(`removed/${id}`, payment.request);
    await this.forgetSent(new Set([id]));
  }

  /** When the first file of a part was written whose name contains an id. */
  async writtenMs(part: string, id: string): Promise<number | null> {
    const names = (await this.files.list(part)).filter((name) => name.includes(id));
    const times = await Promise.all(names.map((name) => this.files.writtenMs(`${part}/${name}`)));
    const known = times.filter((time) => time !== null);
    return known.length === 0 ? null : Math.min(...known);
  }

  private ofReceipt(receipt: Receipt, isSettled: boolean, isReceived: boolean): Held[] {
    const { output, proof } = receipt;
    if (!this.isOwn(output)) return [];
    const holding = { id: idOf(proof, this.network.id, output), output, home: proof.summary.into, proof };
    return [{ holding, isSettled, receipt, isReceived }];
  }

  private async received(): Promise<Held[]> {
    const names = await this.files.list("received");
    const found: Held[] = [];
    for (const name of names.filter((one) => !one.endsWith(SETTLED))) {
      const text = new TextDecoder().decode((await this.files.read(`received/${name}`)) ?? new Uint8Array());
      const read = () => {
        const slip = parseSlip(text, this.network.id);
        return slip.kind === "receipt" ? this.ofReceipt(slip.receipt, names.includes(name + SETTLED), true) : [];
      };
      found.push(...damaged(this.files, `received/${name}`, "get the receipt again from the payer", read));
    }
    return found;
  }

  /** What a confirmed payment of the purse leaves in it. */
  private made({ payment, certificate, isSettled }: SentPayment): Held[] {
    if (!certificate) return [];
    return payment.payment.outputs.flatMap((_, at) => this.ofReceipt(receiptOf(payment.payment, at, certificate), isSettled, false));
  }

  async contents(): Promise<Contents> {
    const [deposits, sent, received] = [await this.deposits(), await this.sent(), await this.received()];
    const own = deposits.map((deposit) => heldDeposit(deposit, this.network.id));
    const waiting = deposits.filter((_, at) => own[at] === null);
    const all = [...own.filter((held) => held !== null), ...received, ...sent.flatMap((one) => this.made(one))];
    const [held, spent] = [new Map(all.map((one) => [hex(one.holding.id), one])), new Map<string, Held>()];
    for (const id of sent.flatMap((one) => one.payment.payment.inputs.map((input) => hex(input.id)))) {
      const one = held.get(id);
      if (one) spent.set(id, one);
      held.delete(id);
    }
    return { held, spent, sent, waiting };
  }

  async holdings(): Promise<Holding[]> {
    return [...(await this.contents()).held.values()].map((one) => one.holding);
  }

  /** Removes confirmed payments that can have no further effect, with what they spent. */
  async forgetOld(now: bigint): Promise<number> {
    const over = (await this.sent()).filter(({ certificate, payment }) => certificate && now > payment.payment.into + REDEEM_EPOCHS);
    const spent = new Set(over.flatMap(({ payment }) => payment.payment.inputs.map((one) => hex(one.id))));
    // Spent outputs are removed first, so that none ever seems unspent.
    for (const id of spent) for (const end of ["", SETTLED]) await this.files.remove(`received/0x${id}${end}`);
    for (const deposit of await this.deposits()) {
      const held = heldDeposit(deposit, this.network.id);
      if (held && spent.has(hex(held.holding.id))) await this.forgetDeposit(deposit);
    }
    await this.forgetSent(new Set(over.map(({ id }) => id)));
    for (const { id } of over) for (const part of ["posted", "contested"]) await this.files.remove(`${part}/${id}`);
    return over.length;
  }
}

/** Makes the files of a purse for a lane; `makeSeed` gives the text of the seed's key file. */
export async function createContents(files: PurseFiles, network: LaneNetwork, makeSeed: () => Promise<string>): Promise<void> {
  if (await files.read(LANE)) throw new PurseFileError(files.place, "is a purse already: choose another place");
  const release = await files.lock();
  try {
    await files.prepare(PARTS);
    if (!(await files.read("seed.json"))) await files.write("seed.json", new TextEncoder().encode(await makeSeed()));
    await KeyRing.create(files);
    await files.mark();
    // The last file makes it a purse.
    await network.write(files);
  } finally {
    await release();
  }
}

/** Does what is left to do, if `walras pay follow` began to follow a restart. */
async function finish(files: PurseFiles): Promise<void> {
  if (!(await files.read(PLAN))) return;
  const plan = (await readJson(files, PLAN)) as { lane: unknown; before: string; deposits: DepositFile[] };
  const listed = await Promise.all(PARTS.map(async (part) => (await files.list(part)).map((name) => `${part}/${name}`)));
  for (const name of [...listed.flat(), EPOCHS, PROVED, BOARDS]) {
    const bytes = await files.read(name);
    if (!bytes) continue;
    if (!(await files.read(`${plan.before}/${name}`))) await files.write(`${plan.before}/${name}`, bytes);
    await files.remove(name);
  }
  for (const deposit of plan.deposits) await writeJson(files, `deposits/${deposit.transaction}.json`, deposit);
  await writeJson(files, LANE, plan.lane);
  await files.remove(PLAN);
}
