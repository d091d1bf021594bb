/** Between the ledger and a purse: withdrawals that become outputs, and certificates that are posted. */
import { keccak_256 } from "@noble/hashes/sha3.js";
import type { Signed } from "../encoding.js";
import { StoreError, VoidError } from "../errors.js";
import { pause } from "../http.js";
import { encodeCertificate, type Certificate } from "../lane/certificate.js";
import { hex, join, same, u8 } from "../lane/layout.js";
import { type Payment, digestOf, longPayment } from "../lane/payment.js";
import type { Fate } from "../models.js";
import { fromHex } from "../typed.js";
import { type Deposit, REDEEM_EPOCHS, depositOutput } from "./contents.js";
import { OtherLaneError, PurseError } from "./errors.js";
import { idText } from "./files.js";
import type { Money } from "./terms.js";
import type { Redeemed } from "./results.js";
import type { Session } from "./session.js";
import { find } from "./trust.js";

export const CERTIFIED_MS = 60_000;
const PAUSE_MS = 50;
/** The kind of a post with a certified payment. */
const REDEEM = 2;

/** Sends the bytes of an earlier deposit; null if it can never count, so that a new one may be made. */
export async function sentAgain(session: Session, deposit: Deposit): Promise<string | null> {
  try {
    return (await session.node.retry(deposit.transaction)).id;
  } catch (error) {
    if (error instanceof VoidError) {
      await session.contents.forgetDeposit(deposit);
      return null;
    }
    if (!(error instanceof StoreError)) throw error;
    throw new PurseError(
      `the same deposit was sent before as ${deposit.transaction}, and its result is unknown: \`settle()\` takes it into the purse. To do it twice, give \`again: true\``,
    );
  }
}

export async function withdraw(session: Session, money: Money, units: bigint, account: string): Promise<string> {
  const to = idText(await session.contents.keys.make(session.seed));
  let before: Deposit | null = null;
  const kept = async ({ id, sequence }: Signed) => {
    const made: Deposit = { transaction: id, account, sequence, to, asset: money.asset, amount: units, home: null };
    await session.contents.keepDeposit(made);
    // Another transaction has the number of the one before, which can never count.
    if (before) await session.contents.forgetDeposit(before);
    before = made;
  };
  return (await session.node.send({ kind: "Withdraw", to, asset: money.asset, amount: units }, { kept })).id;
}

/** Asks what became of deposits; waits for their blocks to be certified. */
export async function resolve(session: Session, patienceMs: number): Promise<void> {
  const until = Date.now() + patienceMs;
  for (const deposit of (await session.contents.contents()).waiting) {
    const fate = await session.node.fate(deposit.transaction);
    if (fate.state === "void" || (await isOver(session, fate))) await session.contents.forgetDeposit(deposit);
    else if (fate.state === "executed" && (await isCertified(session, fate, until))) {
      const home = await homeOf(session, deposit);
      if (home !== null) await session.contents.keepDeposit({ ...deposit, home });
    }
  }
}

/** Whether what a block refused can count no more: until it ends anybody may send it again. */
async function isOver(session: Session, fate: Fate): Promise<boolean> {
  if (fate.state !== "refused" || fate.height === null || fate.until === undefined) return false;
  return BigInt((await session.node.status()).height) > fate.until;
}

/** Whether validators of the lane accept outputs of the block. A single node certifies nothing. */
async function isCertified(session: Session, fate: Fate, until: number): Promise<boolean> {
  for (;;) {
    const status = await find<{ certified_anywhere: number }>(session.node, "/v1/validator");
    if (!status || status.certified_anywhere >= Number(fate.height)) return true;
    if (Date.now() >= until) return false;
    await pause(PAUSE_MS);
  }
}

/** The epoch in which the ledger knows the deposit's output. The output's id is computed here. */
async function homeOf(session: Session, deposit: Deposit): Promise<bigint | null> {
  const { epoch } = await session.network.learn(session.node);
  for (let home = epoch; home >= 0n && home + REDEEM_EPOCHS >= epoch; home -= 1n) {
    const id = idText(depositOutput(deposit, session.network.id, home));
    const found = await find<{ to: string; amount: string }>(session.node, `/v1/lane/outputs/${id}`);
    if (!found) continue;
    if (same(fromHex(found.to), fromHex(deposit.to)) && found.amount === String(deposit.amount)) return home;
    throw new OtherLaneError(`the node's output ${id}, at ${session.node.server}, differs from the deposit: give another node`);
  }
  return null;
}

/** Posts certified payments to accounts: the ledger credits those accounts. */
export async function posted(session: Session, payments: { payment: Payment; certificate: Certificate }[]): Promise<Redeemed> {
  for (const { payment, certificate } of payments) {
    const post = join(u8(REDEEM), longPayment(payment), encodeCertificate(certificate));
    // Named by its bytes: asked again after a crash, it is the same transaction.
    const fate = await session.node.send({ kind: "Lane", post: idText(post) }, { reference: `redeem ${hex(keccak_256(post))}` });
    await session.contents.keepPosted(digestOf(payment), fate.id);
  }
  const { waiting_claims: waitingClaims } = await session.node.ask<{ waiting_claims: number }>("/v1/lane");
  return { payments: payments.map(({ payment }) => idText(digestOf(payment))), waitingClaims };
}
