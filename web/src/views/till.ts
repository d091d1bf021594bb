/**
 * A till: an amount, a code that the customer's purse reads, and a tick once a receipt for it is verified. Each customer has an
 * address of their own, so a receipt of somebody else's payment never counts.
 */
import type { Purse } from "@walras/client/purse/index";
import { copyable, fill, h } from "../dom";
import { amountInput, assetChoice, field, type Desk } from "../purse/desk";
import { qrPicture } from "../purse/qr";
import { scanner } from "../purse/scan";
import { Tally } from "../purse/tally";
import { Told } from "../trade/told";
import { brief } from "../words";
import { FAST, SETTLED } from "./purse-words";

const SETTLE_PAUSE_MS = 2_000;
type Customer = { tally: Tally; receipts: string[]; isSettling: boolean };
type Draw = (isSettled: boolean) => void;
const OTHER = "The receipt pays another address than this bill's: it is not this customer's money. Close the till to take it, if it is the purse's.";

export function tillPart(purse: Purse, desk: Desk, leave: () => Promise<void>) {
  const body = h("div", {});
  const element = h("section", { class: "till", "aria-label": "Till" }, h("h3", {}, "Till"), body, desk.action("Close the till", leave));
  const asset = assetChoice(purse.assets);
  /** The customer of this moment. */
  let serves: Customer | null = null;
  ask();

  function ask(): void {
    serves = null;
    const amount = amountInput();
    const asking = desk.form("Ask for an amount", "Show the code", [field("Amount to ask for", amount), field("Asset to ask for", asset)], async () => {
      const bill = await purse.bill(asset.value, amount.value.trim());
      const asked = purse.asked(bill);
      if (asked) serve({ tally: new Tally(bill, asked), receipts: [], isSettling: false });
    });
    fill(body, asking);
    amount.focus();
  }

  function serve(customer: Customer): void {
    const { tally, receipts } = customer;
    serves = customer;
    const state = h("div", { class: "till-state", role: "status" });
    const text = h("textarea", { rows: 2, spellcheck: "false", autocomplete: "off", placeholder: "WALRAS:…", keydown, input });
    const taking = desk.form("Take the customer's receipt", "Check it", [field("The customer's receipt", text)], take);
    const code = h("div", { class: "till-bill" }, h("p", { class: "till-amount" }, `${tally.asked.amount} ${tally.asked.asset}`), qrPicture(tally.address.toUpperCase(), "The bill as a QR code"), copyable(tally.address, brief(tally.address, 9)));
    const next = h("button", { type: "button", click: ask }, "Next customer");
    const scan = scanner(desk, readCode);
    fill(body, code, state, taking, scan, next);
    let verifiedMs: number | null = null;
    draw(false);
    text.focus();

    function draw(isSettled: boolean): void {
      const isPaid = tally.isPaid;
      code.hidden = taking.hidden = scan.hidden = isPaid;
      const how = !isPaid ? null : h("p", {}, isSettled ? SETTLED : FAST);
      const ms = verifiedMs === null ? null : h("p", { class: "caption" }, `Verified in ${Math.ceil(verifiedMs)} ms.`);
      fill(state, isPaid ? tick() : null, h("p", { class: isPaid ? "till-amount" : "" }, tally.words), how, ms);
      if (isPaid) next.focus();
    }

    /** Hand-held readers type the text and press Enter. */
    function keydown(event: KeyboardEvent): void {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      void desk.act(take);
    }
    function input(event: Event): void {
      if ((event as InputEvent).inputType === "insertFromPaste") void desk.act(take);
    }
    async function readCode(found: string): Promise<void> {
      text.value = found;
      await take();
    }

    async function take(): Promise<void> {
      const begun = performance.now();
      const given = text.value.trim();
      text.value = "";
      const proved = await purse.verify(given);
      if (!tally.isPaidBy(proved)) throw new Told(OTHER);
      // It is stored before it is shown. The address is of today, so its money cannot be of a lane epoch that is over.
      const taken = await purse.receive(given, { settle: false });
      tally.add(proved);
      receipts.push(given);
      verifiedMs = performance.now() - begun;
      draw(taken.every(({ isSettled }) => isSettled));
      void settle(customer, draw);
      if (taken.every(({ isNew }) => !isNew)) throw new Told("This receipt was here already, and counts once.");
    }
  }

  /** Until all is final, or another customer is served: the purse settles what remains. */
  async function settle(customer: Customer, draw: Draw): Promise<void> {
    if (customer.isSettling) return;
    customer.isSettling = true;
    while (serves === customer && element.isConnected) {
      const count = customer.receipts.length;
      const taken = await purse.receive(customer.receipts.join("\n")).catch(() => []);
      if (taken.length > 0 && taken.every(({ isSettled }) => isSettled) && count === customer.receipts.length) {
        draw(true);
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, SETTLE_PAUSE_MS));
    }
    customer.isSettling = false;
  }

  return element;
}

function tick(): HTMLElement {
  return h("p", { class: "till-tick", "aria-hidden": "true" }, "✓");
}
