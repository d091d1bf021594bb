/**
 * A purse of the payment lane in this browser: its files lie in the browser's database, its seed under a passphrase. The node carries
 * requests to the lane's shards; what their validators sign is checked here.
 */
import { Client } from "@walras/client/client";
import { ClientError } from "@walras/client/errors";
import { DatabaseFiles } from "@walras/client/purse/browser";
import { Purse, type Balance, type Entry, type Received, type Sent } from "@walras/client/purse/index";
import { copyable, fill, h, notice, panel } from "../dom";
import { qrPicture } from "../purse/qr";
import { table } from "../table";
import { LEAST_PASSPHRASE } from "../trade/keys";
import { Told } from "../trade/told";
import { brief, explain } from "../words";

const NAME = "page";
const SETTLE_PAUSE_MS = 30_000;

export const FAST = "Fast: no other payment of this money can be confirmed. It can lapse if the payer contests it and nobody settles it for a lane epoch.";
export const SETTLED = "Settled: final.";
const STATES: Record<Entry["state"], string> = {
  settled: "settled: final",
  fast: "fast: not final yet",
  pending: "pending: its block is not certified yet",
  "not confirmed": "not confirmed: nobody has it yet",
  contested: "contested: the ledger decides",
};
const KINDS: Record<Entry["kind"], string> = { received: "Received", deposited: "Deposited", sent: "Sent", moved: "Moved within" };

type Detector = { detect(image: ImageBitmap): Promise<{ rawValue: string }[]> };
declare global {
  interface Window {
    BarcodeDetector?: new (options: { formats: string[] }) => Detector;
  }
}

/** The page's purse while it is open; it stays open when the reader looks at other views. */
let opened: Purse | null = null;

export function pursePanel() {
  const problem = notice();
  const body = h("div", { class: "purse" });
  const intro = h("p", { class: "caption" }, "A purse pays in one round trip. Its money is in this browser alone: keep the passphrase, and a copy (Export). The command line deposits money from an account, and takes it back.");
  const element = panel("Purse", {}, intro, problem.element, body);
  const client = new Client(new URL(".", document.baseURI).href);
  let busy = false;
  const timer = setInterval(() => void settleQuietly(), SETTLE_PAUSE_MS);
  void act(draw);

  /** One thing at a time, so that nothing is paid by a second press; what goes wrong is told in words. */
  async function act(work: () => Promise<void>): Promise<void> {
    if (busy) return;
    busy = true;
    element.setAttribute("aria-busy", "true");
    problem.say(null);
    try {
      await work();
    } catch (error) {
      problem.say(explain(error instanceof ClientError ? new Told(sentence(error.message)) : error));
    }
    busy = false;
    element.removeAttribute("aria-busy");
  }

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
      opened = await Purse.create(files, { client, passphrase: passphrase.value });
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
      opened = await Purse.open(files, { client, passphrase: passphrase.value });
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

  async function drawOpen(purse: Purse): Promise<void> {
    const money = moneyTable();
    const past = historyTable();
    const asset = h("select", {});
    const shown = async () => {
      const rows = await purse.balance();
      money.show(rows);
      const symbols = rows.map((row) => row.asset);
      if (symbols.join() !== [...asset.options].map((option) => option.value).join()) fill(asset, ...symbols.map((symbol) => h("option", {}, symbol)));
      past.show((await purse.history()).reverse());
    };
    const lock = action("Lock", async () => {
      opened = null;
      await purse.close();
      await draw();
    });
    const settle = action("Settle", async () => {
      const { failed } = await purse.settle();
      await shown();
      if (failed.length > 0) throw new Told(sentence(failed.join("; ")));
    });
    const buttons = h("p", { class: "actions" }, settle, lock);
    fill(body, money.element, addressPart(purse), payPart(purse, asset, shown), receivePart(purse, shown), past.element, buttons, exporting(await DatabaseFiles.open(NAME)));
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
    const to = h("input", { autocomplete: "off", spellcheck: "false", placeholder: "lane:…" });
    const amount = h("input", { autocomplete: "off", inputmode: "decimal" });
    const result = h("div", { "aria-live": "polite" });
    const paying = form("Pay", "Pay", [field("To", to), field("Amount", amount), field("Asset", asset)], async () => {
      const sent = await purse.send(to.value.trim(), asset.value, amount.value.trim());
      fill(result, ...paidWords(sent).map((line) => h("p", {}, line)), ...receiptParts(sent));
      [to.value, amount.value] = ["", ""];
      await shown();
    });
    return h("section", { "aria-label": "Pay from the purse" }, h("h3", {}, "Pay"), paying, result);
  }

  function receivePart(purse: Purse, shown: () => Promise<void>): HTMLElement {
    const text = h("textarea", { rows: 3, spellcheck: "false", autocomplete: "off", placeholder: "WALRAS:…" });
    const result = h("div", { "aria-live": "polite" });
    const taking = form("Take a receipt", "Take it", [field("Receipt", text)], async () => {
      const taken = await purse.receive(text.value);
      fill(result, ...taken.map((one) => h("p", {}, takenWords(one))));
      text.value = "";
      await shown();
    });
    return h("section", { "aria-label": "Take a receipt" }, h("h3", {}, "Take a receipt"), taking, scanner(text), result);
  }

  /** A picture of a code, where the browser reads codes. */
  function scanner(into: HTMLTextAreaElement): HTMLElement | null {
    const { BarcodeDetector } = window;
    if (!BarcodeDetector) return null;
    const file = h("input", {
      type: "file",
      accept: "image/*",
      capture: "environment",
      change: () =>
        void act(async () => {
          const [picture] = file.files ?? [];
          if (!picture) return;
          const [code] = await new BarcodeDetector({ formats: ["qr_code"] }).detect(await createImageBitmap(picture));
          if (!code) throw new Told("There is no code in the picture: take it again, nearer and straight.");
          into.value = code.rawValue;
        }),
    });
    return field("Scan a code", file);
  }

  const action = (text: string, work: () => Promise<void>) => h("button", { type: "button", click: () => void act(work) }, text);

  function form(label: string, verb: string, fields: HTMLElement[], work: () => Promise<void>): HTMLFormElement {
    const submit = (event: Event) => {
      event.preventDefault();
      void act(work);
    };
    return h("form", { class: "purse-form", "aria-label": label, submit }, ...fields, h("button", {}, verb));
  }

  return {
    element,
    close(): void {
      clearInterval(timer);
    },
  };
}

const field = (name: string, input: HTMLElement): HTMLElement => h("label", {}, h("span", {}, name), input);
const secret = (kind: string): HTMLInputElement => h("input", { type: "password", autocomplete: kind });
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

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

