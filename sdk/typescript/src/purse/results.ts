/** What the methods of a purse return. Amounts are text in whole assets. */

/** The keys with which validators sign a payment. */
export type Scheme = "merkle" | "bls" | "threshold";

/**
 * Money of one asset, by what can be done with it. `settled` is final; of `fast` money no other payment can be confirmed, and `settle`
 * makes it final; `pending` are deposits and payments that are not confirmed yet; `homeOnly` can only be returned to the ledger,
 * which `settle` does; `lost` is of a lane epoch that is over: it stays in escrow.
 */
export type Balance = { asset: string; settled: string; fast: string; pending: string; homeOnly: string; lost: string };
/** What an address asks for. */
export type Bill = { asset: string; amount: string };
/** `isSpendable`: its block is certified; otherwise it can be spent once it is. */
export type Deposited = { transaction: string; asset: string; amount: string; isSpendable: boolean };
/** A payment; `settledMs` is null while it is only fast. */
export type Paid = { payment: string; fastMs: number; settledMs: number | null };
/** `receipt` is what the recipient needs, lines of text; empty if the money stays in the purse. `unsettled` says why payments are not settled yet. */
export type Sent = { to: string; asset: string; amount: string; payments: Paid[]; receipt: string; unsettled: string[] };
/** What a receipt proves: that a payment is fast. It can be spent in the lane epoch `home` and the next one; null of an account's. */
export type Proved = { output: string; to: string; asset: string; amount: string; home: bigint | null };
/** `isNew` is false if the purse had taken this receipt before: then it counts once. */
export type Received = { output: string; asset: string; amount: string; isNew: boolean; isSettled: boolean };
export type Settled = {
  finished: number;
  settled: number;
  renewed: number;
  sentHome: number;
  forgotten: number;
  /** Payments to accounts that are not redeemed yet. */
  unposted: string[];
  failed: string[];
};
/** `waitingClaims` are delayed by a limit on outflow; they are paid in order and do not expire. */
export type Redeemed = { payments: string[]; waitingClaims: number };
export type Repaired = { removed: string[]; found: number };
/** One line of the history. */
export type Entry = {
  timeMs: number | null;
  kind: "received" | "deposited" | "sent" | "moved";
  asset: string;
  amount: string;
  to: string | null;
  state: "settled" | "fast" | "pending" | "not confirmed" | "contested";
  id: string;
};
