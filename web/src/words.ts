/** Times, counts, codes and errors as people say them. */
import type { Asset, IdOutcome, Operation, Outcome } from "@walras/client/bodies";
import type { Asked } from "@walras/client/terms";
import { SLOT_BITS, slotOf } from "@walras/client/slot";
import { ApiError } from "./api";
import { formatAmount } from "./amount";
import { described, orderText, restText } from "./trade/placing";
import { Told } from "./trade/told";

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const COUNT = new Intl.NumberFormat("en-US");

export const clock = (time_ms: number): string => CLOCK.format(time_ms);
export const dateAndClock = (time_ms: number): string => `${DAY.format(time_ms)}, ${clock(time_ms)}`;

/** A whole number with grouped thousands. */
export function count(value: number | string | undefined): string {
  if (typeof value === "number") return Number.isFinite(value) ? COUNT.format(value) : "–";
  return value ?? "–";
}

/** Who placed an order: the account's own key, or its session key of a slot. */
export function placedBy(order: string | number): string {
  const slot = slotOf(BigInt(order));
  return slot === 0 ? "account" : `session key ${slot}`;
}

/** The number of an order as people read it: a session key counts in its slot. */
export function orderName(order: string | number): string {
  const number = BigInt(order);
  return slotOf(number) === 0 ? String(order) : `${BigInt.asUintN(Number(SLOT_BITS), number)} of ${placedBy(order)}`;
}

/** A rate: whole above ten, one place below. */
export function rate(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return "–";
  return value >= 10 ? COUNT.format(Math.round(value)) : value.toFixed(1);
}

export function milliseconds(value: number): string {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 100) return `${value.toFixed(0)} ms`;
  return `${value.toFixed(value >= 10 ? 1 : 2)} ms`;
}

/** A relative change with its sign, and `up`, `down` or nothing. */
export function percent(part: number): { text: string; direction: "up" | "down" | "" } {
  const size = Math.abs(100 * part).toFixed(2);
  if (Number(size) === 0) return { text: "0.00 %", direction: "" };
  return part > 0 ? { text: `+${size} %`, direction: "up" } : { text: `−${size} %`, direction: "down" };
}

/** How long ago, or how long: the two largest units. */
export function duration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** The ends of an address or digest. */
export function brief(hex: string | null | undefined, ends = 6): string {
  if (!hex) return "–";
  return hex.length <= 2 * ends + 3 ? hex : `${hex.slice(0, ends + 2)}…${hex.slice(-ends)}`;
}

/** Controls, marks of direction, invisible and unassigned characters, lone surrogates, and ends of lines. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** More marks upon one letter than any script writes. */
const STACKED = /(\p{M}{3})\p{M}+/gu;

/** Text of a stranger, such as a contract's: one line of at most `length` characters, without what deceives the eye. */
export function stranger(text: string, length: number): string {
  // What is far beyond the end is not looked at.
  const characters = [...text.slice(0, 4 * length).replace(UNSEEN, "\ufffd").replace(STACKED, "$1")];
  const cut = characters.length > length || text.length > 4 * length;
  return cut ? `${characters.slice(0, length).join("")}…` : characters.join("");
}

/** A stage's name for people: `state_root` becomes `State root`. */
export function stageName(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const WHY: Record<string, string> = {
  filled: "sold in full",
  part: "sold in part",
  at_the_margin: "limit is at the margin; the rest waits",
  above_the_rate: "limit is above the batch rate; waits",
  rounding: "too small to trade at this rate",
  not_taken: "nobody took it in this batch; waits",
  not_placed: "too little was left to place",
};

export const why = (code: string): string => WHY[code] ?? code.replaceAll("_", " ");

const ENDS: Record<string, string> = {
  filled: "Filled",
  returned: "Ended: the rest returned",
  cancelled: "Cancelled",
  replaced: "Replaced by another order",
  expired: "Expired at its last block",
  one_batch: "Ended after its one batch",
  lapsed: "Ended with its session key",
  superseded: "Void: another operation of its block counted",
  ended: "Void: no block can contain it any more",
  number_used: "Void: another transaction has its number",
};

/** How an order of the history stands, and why; `isExact` of one for an exact amount. */
export function orderEnd(status: string, why: string | null, isExact = false): string {
  if (status === "resting") return "Rests";
  if (status === "pending") return "Pending: in no block yet";
  const reason = why === null ? "" : why.replaceAll("_", " ");
  if (status === "refused") return `Refused: ${reason}`;
  if (isExact && status === "ended" && why !== null) return exactEnd(why);
  const known = why === null ? undefined : ENDS[why];
  if (known !== undefined) return known;
  return `${status.charAt(0).toUpperCase()}${status.slice(1)}${reason ? `: ${reason}` : ""}`;
}

/** Throws where a transaction's status is none that this page knows: what is unknown is not taken for committed. */
export function checkStatus(status: string): void {
  if (status === "pending" || status === "committed") return;
  throw new Told(`The node tells the status “${stranger(status, 40)}” of a transaction, which this page does not know: reload it, as the node may be newer.`);
}

/** The assets, and the decimals of one by its symbol. */
export type Known = { assets: ReadonlyMap<string, Asset>; decimals: (symbol: string) => number };

/** What a session key may do, in a table and in a sentence. */
export const SCOPES = { trade: "trade, cancel", cancel: "cancel only", duty: "a node's duties" };
const LETS = { trade: "trade", cancel: "cancel offers", duty: "post a node's duties", control: "freeze holders" };

/** What a transaction asks for, in a few words, with amounts as people count them. */
export function operationText(operation: Operation, known: Known): string {
  const { assets } = known;
  const decimals = (symbol: string) => known.decimals(symbol);
  switch (operation.type) {
    case "create_account":
      return "Register an account";
    case "create_offer":
      return askedText(operation, assets);
    case "exact":
      return askedText({ ...operation, amount: "0", limit: "1", exact: operation }, assets);
    case "replace":
      return `Replace order ${operation.offer}: ${askedText(operation, assets)}`;
    case "cancel":
      return `Cancel ${operation.offers.length === 1 ? `offer ${operation.offers[0]?.offer ?? ""}` : `${operation.offers.length} offers`}`;
    case "pay":
      return `Pay ${money(operation.amount, operation.asset, decimals(operation.asset))}`;
    case "issue":
      return `Issue ${money(operation.amount, operation.asset, decimals(operation.asset))}`;
    case "burn":
      return `Burn ${money(operation.amount, operation.asset, decimals(operation.asset))}`;
    case "stake":
      return "Stake";
    case "unstake":
      return "Unstake";
    case "issue_referenced":
      return `Issue ${money(operation.amount, operation.asset, decimals(operation.asset))} with a reference`;
    case "pay_referenced":
      return `Pay ${money(operation.amount, operation.asset, decimals(operation.asset))} with a reference`;
    case "approve":
      return `Approve rules ${operation.rules}`;
    case "unapprove":
      return `Withdraw the approval of rules ${operation.rules}`;
    case "present":
      return `Validator present, for epoch ${operation.epoch}`;
    case "accuse":
      return `Accuse validator ${operation.validator}`;
    case "withdraw":
      return `Withdraw ${money(operation.amount, operation.asset, decimals(operation.asset))} into the payment lane`;
    case "set_keys":
      return `Give ${operation.account} a policy of ${operation.keys.length + operation.wallets.length} signers`;
    case "recover_keys":
      return `Recover ${operation.account} by its guardians`;
    case "complete_keys":
      return `Let the waiting policy of ${operation.account} act`;
    case "set_receiving":
      return operation.references === "required" ? "Take no payment without a reference" : "Take payments without a reference, too";
    case "list_asset":
      return `List the asset ${operation.symbol}, with its number behind the symbol`;
    case "close_asset":
      return operation.closing === "announce" ? `Announce that ${operation.asset} closes` : `Take back that ${operation.asset} closes`;
    case "propose_parameter":
      return `Propose ${operation.parameter} = ${operation.value}`;
    case "propose_listing":
      return `Propose the asset ${operation.symbol}, issued by ${operation.issuer}`;
    case "propose_closing":
      return `Propose that ${operation.asset} closes`;
    case "propose_lane_terms":
      return operation.deposits === "taken"
        ? `Propose that the payment lane carries ${operation.asset}, with a fee of ${money(operation.fee, operation.asset, decimals(operation.asset))}`
        : `Propose that the payment lane takes no deposits of ${operation.asset}`;
    case "vote":
      return `Vote ${operation.word} on the proposal ${operation.proposal}`;
    case "set_holder":
      return operation.state === "frozen" ? `Freeze ${operation.account} in ${operation.asset}` : `Let ${operation.account} hold ${operation.asset}`;
    case "recover":
      return `Recover ${money(operation.amount, operation.asset, decimals(operation.asset))} of ${operation.from}`;
    case "authorize_session":
      return `Let a key ${LETS[operation.scope]} in slot ${operation.slot}`;
    case "revoke_session":
      return `End the session key in slot ${operation.slot}`;
    case "session_alive":
      return operation.through === "0" ? `End the offers of slot ${operation.slot}` : `Keep the offers of slot ${operation.slot} alive`;
    case "open_pool":
      return `Open the pool of ${operation.a} and ${operation.b}; a 256th of both amounts stays in it for ever`;
    case "provide":
      return `Provide to the pool of ${operation.a} and ${operation.b}`;
    case "leave":
      return `Leave the pool of ${operation.a} and ${operation.b}`;
    case "seal_duty":
      return `Part in sealing key ${operation.key}`;
    case "sealed":
      return `Sealed orders, to sealing key ${operation.key}`;
    case "lane":
      return "Post about the payment lane";
    case "venue":
      return `Venue ${operation.venue}: ${operation.action.replaceAll("_", " ")}`;
  }
}

function askedText(asked: Asked, assets: Known["assets"]): string {
  const order = described(asked, assets);
  return order ? orderText(order) : `Order of ${asked.buy} for ${asked.sell}`;
}

/** Why an exact order was not filled. */
const EXACT_WHY: Record<string, string> = {
  no_price: "there is no price between the two assets",
  beyond_bound: "the rate was beyond its bound",
  group_not_full: "not all offers that had to trade could",
  no_room: "there was no room for it beside the offers",
};

/** How an exact order ended in its batch. */
export function exactEnd(why: string): string {
  return why === "filled" ? "Filled exactly" : `Not filled: ${EXACT_WHY[why] ?? why.replaceAll("_", " ")}`;
}

/** What helps against each of these reasons. */
const EXACT_ADVICE: Record<string, string> = {
  no_price: "Nobody traded between the two assets in this batch. A limit order waits for somebody who does.",
  beyond_bound: "Send it again with a wider bound, or as a limit order, which waits for its price.",
  group_not_full: "Orders for exact amounts come after offers, and not all offers of these assets could trade. Send it again, or as a limit order.",
  no_room: "Orders for exact amounts take what offers leave. Send it again with a smaller amount, or as a limit order, which comes first.",
};

/** What whoever sent an exact order that was not filled can do; nothing for one that was. */
export const exactAdvice = (why: string | null): string => (why === null ? "" : (EXACT_ADVICE[why] ?? ""));

/** What became of a transaction, in a sentence. */
export function outcomeText(outcome: Outcome): string {
  if (outcome.result === "applied") return "Applied";
  if (outcome.result === "void") return "Paid, and did nothing: another operation counted";
  if (outcome.result === "cancelled") return outcome.missing ? `Cancelled ${outcome.found}; ${outcome.missing} had traded or ended` : `Cancelled ${outcome.found}`;
  if (outcome.result === "refused") return `Refused: ${outcome.message || outcome.code}`;
  if (outcome.result === "offered") return `Offer: ${why(outcome.why)}`;
  if (outcome.result === "exact") return exactEnd(outcome.why);
  if (outcome.result === "sealed") return sealedEnd(outcome);
  if (outcome.result === "listed") return `Listed under the number ${outcome.number}`;
  if (outcome.result === "pooled") return `${outcome.shares} shares of the pool`;
  if (outcome.result === "replaced") return `Replaced: ${why(outcome.why)}`;
  return "Unknown outcome";
}

/** What became of an envelope. */
function sealedEnd({ became, operations, message }: Extract<Outcome, { result: "sealed" }>): string {
  if (became === "opened") return `Opened, held ${operations === 1 ? "one order" : `${operations} orders`}`;
  return became === "garbage" ? "Opened and paid, held no signed orders" : `Opened, nothing in it counts: ${message ?? "it was not paid"}`;
}

/** A part of what an offer met in its batch, as people count its asset, what rests of it in its base; nothing for what is no offer. */
export function metText(operation: Operation, outcome: Outcome, part: "sold" | "bought" | "left" | "returned", known: Known): string {
  const decimals = (symbol: string) => known.decimals(symbol);
  if (outcome.result === "exact" && operation.type === "exact") {
    const symbol = part === "bought" ? operation.buy : operation.sell;
    return money(part === "left" ? "0" : outcome[part], symbol, decimals(symbol));
  }
  const isOffer = operation.type === "create_offer" || operation.type === "replace";
  if ((outcome.result !== "offered" && outcome.result !== "replaced") || !isOffer) return "";
  if (part === "left") return restText(outcome.left, operation, known.assets);
  const symbol = part === "bought" ? operation.buy : operation.sell;
  return money(outcome[part], symbol, decimals(symbol));
}

/** One word for a badge. */
export function outcomeWord({ outcome }: IdOutcome): string {
  return outcome.result === "offered" ? "offer" : outcome.result;
}

/** An amount with its asset, every digit. */
export function money(units: string, symbol: string, decimals: number): string {
  return `${formatAmount(units, decimals)} ${symbol}`;
}

/** What a node refuses about session keys, as the page's reader can mend it. */
const REMEDIES: Record<string, string> = {
  unknown_session: "The account has no session key in this slot any more: it was revoked. Choose who trades, or add a new key in the account's view.",
  wrong_session_key: "Another key than this one is in the slot. Unlock this browser's session key again.",
  session_scope: "This session key may not do this: it only cancels, or only trades. Choose the account's own key.",
  session_ended: "The session key has ended. Add a new key in the account's view, or choose the account's own key.",
  session_lapsed: "The timer of the session key is over, so it may only cancel. Renew its timer in the account's view.",
  session_cap: "This would use more of an asset than the session key may, fees included. Make the order smaller, or add a key with a higher cap.",
  session_slot: "Another session key was added at the same moment. Try again.",
  session_key_taken: "This key acts for the account already. Make a new key for each program.",
  sessions_full: "The account has 16 session keys, the most that there may be. Revoke one first.",
  session_terms: "A session key has caps for one to eight different assets, each above 0, and a timer that is not after its end.",
  session_heights: "A session key ends after the next block and within 4,194,304 blocks. Choose another time.",
  session_through: "The timer runs longer already, or past the end of the key. Choose a longer time, or wait.",
  session_crowded: "Too many offers of session keys end with that block. Choose another time, such as a minute more.",
};

/** A refusal by its code, with what can be done about it; what the node says where the page knows no better. */
export const remedy = (code: string, message: string): string => REMEDIES[code] ?? message;

/** An error in plain words, with what can be done about it. */
export function explain(error: unknown): string {
  if (error instanceof Told) return error.message;
  if (error instanceof ApiError && REMEDIES[error.code]) return remedy(error.code, error.message);
  if (!(error instanceof ApiError)) return `This view failed: ${error instanceof Error ? error.message : String(error)}`;
  if (error.status === 0) return `${error.message} The page tries again by itself.`;
  if (error.status === 404) return sentence(error.message, "The node does not know this.");
  if (error.status === 429) return "The node is busy and asked for a pause. The page tries again by itself.";
  if (error.status === 503) return "The node is recovering its state and not ready yet. The page tries again by itself.";
  return sentence(error.message, "The node refused the request.");
}

/** Tells in a notice what went wrong, until it goes right: then the error is null. */
export const tells = (notice: { say: (text: string | null) => void }) => (error: unknown) => notice.say(error === null ? null : explain(error));

function sentence(message: string, otherwise: string): string {
  const text = message.trim() || otherwise;
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capital) ? capital : capital + ".";
}
