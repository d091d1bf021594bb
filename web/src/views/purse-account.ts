/** Between a purse and an account of the ledger: deposits into the purse, and money that is taken back. */
import type { Deposited, Purse, Redeemed } from "@walras/client/purse/index";
import { fill, h, spending } from "../dom";
import type { Live } from "../live";
import { clientOf } from "../purse/accounts";
import { amountInput, assetChoice, field, type Desk } from "../purse/desk";
import { current, onChoice } from "../trade/session";
import { Told } from "../trade/told";
import { brief } from "../words";
import { traderChoice } from "./trader";

const WHO = "Choose an account first: it gives the money, or gets it, and pays the ledger's fee.";

export function accountPart(live: Live, purse: Purse, desk: Desk, shown: () => Promise<void>) {
  const choice = traderChoice(live);
  const [amount, asset] = [amountInput(), assetChoice(purse.assets)];
  const result = h("p", { "aria-live": "polite" });
  const stop = onChoice(() => choice.draw());

  /** The chosen account: from then on it is the purse's. */
  async function account(): Promise<string> {
    const trader = current();
    if (!trader) throw new Told(WHO);
    const client = await clientOf(trader);
    // An account that the ledger does not have could not post what is redeemed.
    await client.account();
    await purse.uses(client);
    return trader.address;
  }

  async function deposit(): Promise<void> {
    const wanted = amount.value.trim();
    if (wanted === "") throw new Told("Write the amount that goes into the purse.");
    const from = await account();
    await spending([amount], async () => fill(result, depositWords(await purse.deposit(asset.value, wanted), from)));
    await shown();
  }

  async function redeem(): Promise<void> {
    const wanted = amount.value.trim();
    const to = await account();
    const what = wanted === "" ? null : { asset: asset.value, amount: wanted };
    await spending([amount], async () => fill(result, redeemWords(await purse.redeem(what), to)));
    await shown();
  }

  const hint = h("p", { class: "caption" }, "Without an amount, Take back posts what was taken out before and did not reach the account.");
  const form = desk.form("Account of the ledger", "Deposit", [field("Amount to move", amount), field("Asset to move", asset)], deposit);
  form.append(h("p", { class: "actions" }, ...form.querySelectorAll("button"), desk.action("Take back", redeem)));
  return {
    element: h("section", { "aria-label": "Account of the ledger" }, h("h3", {}, "Account of the ledger"), choice.element, form, hint, result),
    /** Posts receipts that pay accounts. */
    async redeemReceipts(text: string): Promise<string> {
      const from = await account();
      return redeemWords(await purse.redeemReceipts(text), from);
    },
    update: () => choice.update(),
    close(): void {
      stop();
      choice.close();
    },
  };
}

/** What became of a deposit, in words. */
export function depositWords({ asset, amount, isSpendable }: Deposited, from: string): string {
  const when = isSpendable ? "It can be spent." : "It can be spent once its block is certified: Settle looks again.";
  return `Deposited ${amount} ${asset} from ${brief(from)}. ${when}`;
}

/** What became of money that was taken back, in words. */
export function redeemWords({ payments, waitingClaims }: Redeemed, to: string): string {
  const what = payments.length === 1 ? "The payment is" : `${payments.length} payments are`;
  const claims = waitingClaims === 0 ? "" : ` ${waitingClaims} claims wait for the limit on outflow; they are paid in order and do not expire.`;
  return `${what} on the ledger, posted by ${brief(to)}. A copy of it changes nothing.${claims}`;
}
