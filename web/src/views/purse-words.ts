/** What a purse says of its payments. */
import type { Entry, Received, Sent } from "@walras/client/purse/index";
import { brief } from "../words";

export const FAST = "Fast: no other payment of this money can be confirmed. It can lapse if the payer contests it and nobody settles it for a lane epoch.";
export const SETTLED = "Settled: final.";
export const STATES: Record<Entry["state"], string> = {
  settled: "settled: final",
  fast: "fast: not final yet",
  pending: "pending: its block is not certified yet",
  "not confirmed": "not confirmed: nobody has it yet",
  contested: "contested: the ledger decides",
};
export const KINDS: Record<Entry["kind"], string> = { received: "Received", deposited: "Deposited", sent: "Sent", moved: "Moved within" };

/** How far a payment has come, in words. */
export function paidWords({ to, asset, amount, payments, receipt, unsettled }: Sent): string[] {
  const isSettled = payments.every(({ settledMs }) => settledMs !== null);
  const ms = Math.round(payments.reduce((sum, { fastMs }) => sum + fastMs, 0));
  return [
    `Paid ${amount} ${asset} to ${brief(to, 9)}, confirmed in ${ms} ms.`,
    isSettled ? SETTLED : `${FAST} Not settled yet: ${unsettled.join("; ") || "Settle tries again"}.`,
    receipt === "" ? "The address is one of this purse: its money stays here." : "Give the recipient the receipt: without it they have nothing.",
  ];
}

/** What became of a receipt, in words. */
export function takenWords({ amount, asset, isNew, isSettled }: Received): string {
  const again = isNew ? "" : " It was here already, and counts once.";
  return `Received ${amount} ${asset}.${again} ${isSettled ? SETTLED : FAST}`;
}
