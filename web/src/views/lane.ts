/** The payment lane as the ledger sees it: its epoch, what is in escrow, and what waits for a decision. */
import type { View } from "./view";
import type { Lane, LaneAsset } from "@walras/client/bodies";
import { getIfThere } from "../api";
import { formatAmount } from "../amount";
import { h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { table } from "../table";
import { count, tells } from "../words";

const PAUSE_MS = 1_000;

export function laneView(live: Live): View {
  const problem = notice();
  const list = escrowTable(live);
  const summary = h("p", { class: "quiet" });
  const listed = panel("Escrow", {}, list.element);
  const purse = h("div", {});
  const element = h("div", { class: "view" }, h("h1", { tabindex: -1 }, "Payment lane"), problem.element, summary, purse, listed);
  let latest: Lane | null = null;
  let purses: { update: () => void; close: () => void } | null = null;
  let isAsked = false;
  let isClosed = false;

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => loading.request());
  loading.request();

  /** A chain without a lane has none: that is no trouble. */
  async function load(signal: AbortSignal): Promise<void> {
    latest = await getIfThere<Lane>("lane", signal);
    listed.hidden = latest === null;
    if (!latest) return setText(summary, "This chain has no payment lane.");
    update();
    await addPurse();
  }

  /** What a purse needs is loaded with it, and not with the page. */
  async function addPurse(): Promise<void> {
    if (isAsked) return;
    isAsked = true;
    const { pursePanel } = await import("./purse");
    if (isClosed) return;
    const made = pursePanel(live);
    purses = made;
    purse.append(made.element);
  }

  function update(): void {
    if (!latest) return;
    setText(summary, inWords(latest));
    list.show(latest.assets);
    purses?.update();
  }

  return {
    title: "Payment lane",
    element,
    update,
    close() {
      stop();
      loading.close();
      isClosed = true;
      purses?.close();
    },
  };
}

/** How the lane stands, in a few sentences. */
export function inWords(lane: Lane): string {
  const sentences = [
    lane.halted ? "The lane is halted: its validators confirm no payments now." : "The lane confirms payments.",
    `Epoch ${count(lane.epoch)} has ${count(lane.heights_left)} of ${count(lane.epoch_heights)} blocks left.`,
    `${count(lane.members.length)} validators confirm.`,
  ];
  if (lane.open_cases > 0) sentences.push(`Contested outputs without a verdict: ${count(lane.open_cases)}.`);
  if (lane.waiting_claims > 0) sentences.push(`Claims that wait for the limit on outflow: ${count(lane.waiting_claims)}.`);
  return sentences.join(" ");
}

function escrowTable(live: Live) {
  const cell = (asset: LaneAsset, units: string) => formatAmount(units, live.assets.get(asset.asset)?.decimals ?? 0);
  return table<LaneAsset>({
    caption: "Escrow of the payment lane",
    key: (row) => row.asset,
    empty: "The lane carries no assets.",
    columns: [
      { name: "Asset", class: "strong", cell: (row) => row.asset },
      { name: "In escrow", class: "number", cell: (row) => ({ text: cell(row, row.escrow), title: "withdrawn into the lane, and not redeemed" }) },
      { name: "Fee", class: "number wide", cell: (row) => ({ text: cell(row, row.fee), title: "of each payment" }) },
      { name: "Least output", class: "number wide", cell: (row) => cell(row, row.least_units) },
    ],
  });
}
