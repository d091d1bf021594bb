/**
 * What can go wrong with a purse: each error says what, where and what to do. Money is where it was before the call, unless the
 * error names a payment: that one is stored, and `settle` finishes it.
 */
import { ClientError } from "../errors.js";
import type { Refused } from "../lane/layout.js";

export class PurseError extends ClientError {}

/** The store or a file of it cannot be used as it is. */
export class PurseFileError extends PurseError {
  constructor(
    readonly place: string,
    what: string,
  ) {
    super(`${place}: ${what}`);
  }
}

/** The purse is open already, here or in another program. */
export class PurseInUseError extends PurseError {
  constructor(readonly place: string) {
    super(`${place}: another program uses this purse; wait until it has ended, or close it there`);
  }
}

/** The node is of another lane than the purse. */
export class OtherLaneError extends PurseError {}

/** The keys of the lane are not proved by the ledger, so nothing is sent and no receipt is believed. */
export class UnprovedError extends PurseError {}

/** So many members refuse, or so few answer, that there is no quorum. The same bytes may be sent again. */
export class LaneError extends PurseError {}

/** A payment was sent, and no quorum has confirmed it yet. It is stored. */
export class UnconfirmedError extends LaneError {
  constructor(
    readonly payment: string,
    why: string,
  ) {
    super(
      `payment ${payment} is not confirmed (${why}); \`settle()\` sends the same bytes again; if validators still refuse it, \`walras pay contest\` returns its money to the ledger`,
    );
  }
}

/** The purse has not enough of an asset that it can spend now. */
export class MissingMoneyError extends PurseError {
  constructor(readonly missing: string) {
    super(
      `the purse cannot make up this amount: ${missing} are missing, with fees and least outputs; pending money can be spent once it is settled: \`balance()\` shows what there is, \`settle()\` ends what is pending`,
    );
  }
}

/** A text is no receipt that this purse takes. `reason` is a word of docs/lane-specification.md. */
export class ReceiptError extends PurseError {
  constructor(
    readonly reason: string,
    what: string,
  ) {
    super(what);
  }
}

const AGAIN = "get the receipt again from the payer";
const WORDS: Record<string, string> = {
  Prefix: "the text is no receipt: a receipt begins with WALRAS:",
  Long: "the text is longer than any receipt",
  Digits: `a receipt is hexadecimal after WALRAS:, and this has other characters: ${AGAIN}`,
  Short: `the receipt ends too early: ${AGAIN}`,
  Strange: `the receipt has a version or a kind that is not known: ${AGAIN}, or use a newer walras`,
  OtherNetwork: "the receipt is of another network than this purse: open the purse of that network",
  Deposit: `the deposit in the receipt is damaged: ${AGAIN}`,
  NoOutput: "the receipt is a note about a deposit, for a watcher: it proves no money",
  PaysAccounts: "the receipt pays ledger accounts: give it to `redeemReceipts`",
  UnknownCommittee:
    "the validators' keys of the receipt's lane epoch are not proved here: connect the purse to a node and call `settle()`, which learns them; a receipt of a lane epoch that is not begun or long over is worthless",
  UnknownAsset: "the address asks for an asset that this lane did not carry when the purse was made: get another address",
  Mistyped: "the address is mistyped or belongs to another lane: copy it again from its source",
};

/** Why a text is no receipt. */
export const inWords = (refused: Refused): ReceiptError =>
  new ReceiptError(refused.reason, WORDS[refused.reason] ?? `the receipt proves nothing (${refused.message}): ${AGAIN}`);
