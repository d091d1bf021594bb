/**
 * A purse of the payment lane in this browser: its files lie in the browser's database, its seed under a passphrase. The node carries
 * requests to the lane's shards; what their validators sign is checked here.
 */
import { DatabaseFiles } from "@walras/client/purse/browser";
import { Purse, ReceiptError, type Balance, type Entry, type Sent } from "@walras/client/purse/index";
import { copyable, fill, h, notice, panel, spending } from "../dom";
import type { Live } from "../live";
import { clientOf } from "../purse/accounts";
import { amountInput, assetChoice, deskOf, field, inPageWords, secret } from "../purse/desk";
import { scanner } from "../purse/scan";
import { qrPicture } from "../purse/qr";
import { table } from "../table";
import { LEAST_PASSPHRASE } from "../trade/keys";
import { Told } from "../trade/told";
import { brief } from "../words";
import { accountPart } from "./purse-account";
import { KINDS, STATES, paidWords, takenWords } from "./purse-words";
import { tillPart } from "./till";

const NAME = "page";
const SETTLE_PAUSE_MS = 30_000;
const INTRO =
  "A purse pays in one round trip. Its money is in this browser alone: keep the passphrase, and a copy (Export). The seed is encrypted with the passphrase; addresses, receipts and payments lie in the clear. Who reads them here or in a copy sees what was paid, and can spend nothing.";

/** The page's purse while it is open; it stays open when the reader looks at other views. */
let opened: Purse | null = null;

export function pursePanel(live: Live) {
  const problem = notice();
  const body = h("div", { class: "purse" });
  const element = panel("Purse", {}, h("p", { class: "caption" }, INTRO), problem.element, body);
  const desk = deskOf(problem, (busy) => (element.ariaBusy = busy ? "true" : null));
  const { act, action, form } = desk;
  let account: ReturnType<typeof accountPart> | null = null;
  const timer = setInterval(() => void settleQuietly(), SETTLE_PAUSE_MS);
  void act(draw);

  /** What is fast becomes final by itself, and money is renewed in time. Where that fails, the next try or the reader does it. */
  async function settleQuietly(): Promise<void> {
    await opened?.settle().catch(() => undefined);
  }

  async function draw(): Promise<void> {
    if (opened) return drawOpen(opened);
    const files = await DatabaseFiles.open(NAME);
    const isThere = (await files.read("lane.json")) !== null;
    fill(body, ...(isThere ? lockedParts(files) : newParts(files)));
  }

  function newParts(files: DatabaseFiles): HTMLElement[] {
    const passphrase = secret("new-password");
    const making = form("Make a purse", "Make a purse", [field("Passphrase", passphrase)], async () => {
      if (passphrase.value.length < LEAST_PASSPHRASE) throw new Told(`A passphrase has at least ${LEAST_PASSPHRASE} characters.`);
      opened = await Purse.create(files, { client: await clientOf(null), passphrase: passphrase.value });
      await draw();
    });
    const text = h("textarea", { rows: 3, spellcheck: "false", autocomplete: "off" });
    const importing = form("Import a purse", "Import", [field("What was exported", text)], async () => {
      await files.imported(text.value.trim());
      await draw();
    });
    return [making, h("details", {}, h("summary", {}, "Import a purse"), importing)];
  }

  function lockedParts(files: DatabaseFiles): HTMLElement[] {
    const passphrase = secret("current-password");
    const opening = form("Open the purse", "Open", [field("Passphrase", passphrase)], async () => {
      opened = await Purse.open(files, { client: await clientOf(null), passphrase: passphrase.value });
      await draw();
    });
    return [opening, exporting(files)];
  }

  function exporting(files: DatabaseFiles): HTMLElement {
    const copy = h("textarea", { rows: 3, readonly: true, hidden: true, "aria-label": "The whole purse as text" });
    const button = action("Export", async () => {
      copy.value = await files.exported();
      copy.hidden = false;
      copy.select();
    });
    return h("div", { class: "purse-export" }, button, copy);
  }

  function forgetAccount(): void {
    account?.close();
    account = null;
  }

  async function drawOpen(purse: Purse): Promise<void> {
    const money = moneyTable();
    const past = historyTable();
    const asset = assetChoice(purse.assets);
    const shown = async () => {
      const rows = await purse.balance();
      money.show(rows);
      // Of what the purse has none, nothing can be paid.
      if (rows[0] && !rows.some((row) => row.asset === asset.value)) asset.value = rows[0].asset;
      past.show((await purse.history()).reverse());
    };
    const lock = action("Lock", async () => {
      opened = null;
      forgetAccount();
      await purse.close();
      await draw();
    });
    const settle = action("Settle", async () => {
      const { failed } = await purse.settle();
      await shown();
      if (failed.length > 0) throw new Told(inPageWords(failed.join("; ")));
    });
    const till = action("Open the till", async () => {
      forgetAccount();
      fill(body, tillPart(purse, desk, draw));
    });
    forgetAccount();
    account = accountPart(live, purse, desk, shown);
    const buttons = h("p", { class: "actions" }, settle, till, lock);
    fill(body, money.element, buttons, addressPart(purse), payPart(purse, asset, shown), receivePart(purse, shown), account.element, past.element, exporting(await DatabaseFiles.open(NAME)));
    await shown();
  }

  function addressPart(purse: Purse): HTMLElement {
    const place = h("div", { "aria-live": "polite" });
    const button = action("New address", async () => {
      const address = await purse.address();
      // In capitals a code is smaller, and readers take both.
      fill(place, copyable(address, brief(address, 9)), qrPicture(address.toUpperCase(), "The address as a QR code"));
    });
    return h("section", { "aria-label": "Be paid" }, h("h3", {}, "Be paid"), button, place);
  }

  function payPart(purse: Purse, asset: HTMLSelectElement, shown: () => Promise<void>): HTMLElement {
    const to = h("input", { autocomplete: "off", spellcheck: "false", placeholder: "lane:…", input: () => read() });
    const amount = amountInput();
    const asks = h("p", { class: "caption", "aria-live": "polite", hidden: true });
    const result = h("div", { "aria-live": "polite" });
    /** A bill says how much it is; what is half typed says nothing. */
    function read(): void {
      const bill = billOf(purse, to.value);
      asks.hidden = bill === null;
      fill(asks, bill && `The address asks for ${bill.amount} ${bill.asset}.`);
      if (bill) [amount.value, asset.value] = [bill.amount, bill.asset];
    }
    const scan = scanner(desk, (text) => {
      to.value = text;
      read();
    });
    const paying = form("Pay", "Pay", [field("To", to), scan, asks, field("Amount", amount), field("Asset", asset)], async () => {
      const [payee, paid] = [to.value.trim(), amount.value.trim()];
      await spending([to, amount], async () => {
        const sent = await purse.send(payee, asset.value, paid);
        fill(result, ...paidWords(sent).map((line) => h("p", {}, line)), ...receiptParts(sent));
      });
      read();
      await shown();
    });
    return h("section", { "aria-label": "Pay from the purse" }, h("h3", {}, "Pay"), paying, result);
  }

  function receivePart(purse: Purse, shown: () => Promise<void>): HTMLElement {
    const text = h("textarea", { rows: 3, spellcheck: "false", autocomplete: "off", placeholder: "WALRAS:…" });
    const result = h("div", { "aria-live": "polite" });
    const taking = form("Take a receipt", "Take it", [field("Receipt", text)], async () => {
      const receipt = text.value;
      await spending([text], async () => {
        const lines = await taken(purse, receipt);
        fill(result, ...lines.map((line) => h("p", {}, line)));
      });
      await shown();
    });
    return h("section", { "aria-label": "Take a receipt" }, h("h3", {}, "Take a receipt"), taking, scanner(desk, (found) => void (text.value = found)), result);
  }

  /** A receipt pays the purse, or accounts: then the chosen account posts it. */
  async function taken(purse: Purse, text: string): Promise<string[]> {
    try {
      return (await purse.receive(text)).map(takenWords);
    } catch (error) {
      if (!account || !(error instanceof ReceiptError) || error.reason !== "PaysAccounts") throw error;
      return [await account.redeemReceipts(text)];
    }
  }

  return {
    element,
    update: () => account?.update(),
    close(): void {
      clearInterval(timer);
      forgetAccount();
    },
  };
}

function billOf(purse: Purse, to: string) {
  try {
    return purse.asked(to);
  } catch (error) {
    if (error instanceof ReceiptError) return null;
    throw error;
  }
}

function receiptParts({ receipt }: Sent): (HTMLElement | SVGSVGElement | null)[] {
  if (receipt === "") return [];
  const text = h("textarea", { rows: 3, readonly: true, "aria-label": "The receipt" });
  text.value = receipt;
  return [text, qrPicture(receipt, "The receipt as a QR code")];
}

function moneyTable() {
  return table<Balance>({
    caption: "Money of the purse",
    key: (row) => row.asset,
    empty: "The purse is empty.",
    columns: [
      { name: "Asset", class: "strong", cell: (row) => row.asset },
      { name: "Settled", class: "number", cell: (row) => ({ text: row.settled, title: "final" }) },
      { name: "Fast", class: "number", cell: (row) => ({ text: row.fast, title: "no other payment of it can be confirmed; not final yet" }) },
      { name: "Pending", class: "number", cell: (row) => ({ text: row.pending, title: "not confirmed yet" }) },
      { name: "Goes home", class: "number wide", cell: (row) => ({ text: row.homeOnly, title: "it can only return to the ledger: Settle does" }) },
    ],
  });
}

function historyTable() {
  return table<Entry>({
    caption: "History of the purse",
    key: (row) => `${row.kind} ${row.id} ${row.to ?? ""}`,
    empty: "Nothing was paid or received yet.",
    columns: [
      { name: "When", class: "wide", cell: (row) => (row.timeMs === null ? "–" : new Date(row.timeMs).toLocaleString()) },
      { name: "What", cell: (row) => KINDS[row.kind] },
      { name: "Amount", class: "number", cell: (row) => `${row.amount} ${row.asset}` },
      { name: "To", class: "hex wide", cell: (row) => (row.to === null ? "–" : { text: brief(row.to, 9), title: row.to }) },
      { name: "State", class: "prose", cell: (row) => STATES[row.state] },
    ],
  });
}

