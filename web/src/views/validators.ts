/** The network as this node's validator sees it: how far each validator is, and who was in the latest superblocks. */
import type { View } from "./view";
import type { Peer, Validator } from "@walras/client/bodies";
import { getIfThere } from "../api";
import { h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { table } from "../table";
import { count, tells } from "../words";
import { rulesPanels } from "./rules";

const PAUSE_MS = 1_000;

export type Row = Peer & {
  me: boolean;
  state: string;
  /** In how many of the blocks that were looked at it has a sub-block. */
  proposed: number;
  blocks: number;
};

export function validatorsView(live: Live): View {
  const problem = notice();
  const list = validatorsTable();
  const summary = h("p", { class: "quiet" });
  const listed = panel("Validators", {}, list.element);
  const rules = rulesPanels(live);
  const element = h("div", { class: "view" }, h("h1", { tabindex: -1 }, "Validators"), problem.element, summary, listed, ...rules.elements);
  let latest: Validator | null = null;

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => loading.request());
  loading.request();

  /** A solo node has none: that is no trouble. One that has just started may have some later. */
  async function load(signal: AbortSignal): Promise<void> {
    [latest] = await Promise.all([getIfThere<Validator>("validator", signal), rules.load(signal)]);
    listed.hidden = latest === null;
    if (!latest) return setText(summary, "This node makes its blocks alone: there are no other validators.");
    update();
  }

  function update(): void {
    if (!latest) return;
    setText(summary, inWords(latest));
    list.show(rows(latest, live.blocks.map((block) => block.proposers)));
  }

  return {
    title: "Validators",
    element,
    update,
    close() {
      stop();
      loading.close();
    },
  };
}

/** One row for each validator; `superblocks` says whose sub-blocks are in each of the latest blocks. */
export function rows(status: Validator, superblocks: number[][]): Row[] {
  return status.peers.map((peer) => ({
    ...peer,
    me: peer.validator === status.me,
    state: state(status, peer),
    proposed: superblocks.filter((proposers) => proposers.includes(peer.validator)).length,
    blocks: superblocks.length,
  }));
}

function state(status: Validator, peer: Peer): string {
  if (!peer.connected) return "not connected";
  if (peer.validator >= status.validators) return "follows";
  if (peer.validator === status.me && status.silent) return "listens";
  return status.benched.includes(peer.validator) ? "benched" : "votes";
}

/** Milliseconds there and back, with three digits at most. */
export function latency(row: Pick<Peer, "round_trip_ms">): string {
  if (row.round_trip_ms === null) return "–";
  const digits = row.round_trip_ms < 10 ? 2 : row.round_trip_ms < 100 ? 1 : 0;
  return `${row.round_trip_ms.toFixed(digits)} ms`;
}

/** What the ledger waits for, if envelopes of a decided block have stayed closed for a second. */
export function closed(status: Pick<Validator, "sealed_wait">): string {
  const wait = status.sealed_wait;
  if (!wait || wait.ms < 1_000) return "";
  const silent = wait.silent.length ? ` of validator ${wait.silent.join(", ")}` : "";
  return ` The ledger waits at height ${count(wait.height)} for shares${silent} that open sealed orders.`;
}

function inWords(status: Validator): string {
  const faulty = Math.floor((status.validators - 1) / 3);
  const away = status.validators - (status.follows ? 0 : 1) - status.connected;
  const bears = `${count(status.validators)} validators, of which ${count(faulty)} may be away or false.`;
  const sees = away === 0 ? "This node is connected to all others." : `This node is not connected to ${count(away)} of them.`;
  const lacks = status.stranded ? " It lacks blocks that nobody holds any more, and fetches a state instead." : "";
  const waits = status.admission ? ` It is ${status.admission}.` : "";
  return `${bears} ${sees}${lacks}${waits}${closed(status)}`;
}

function validatorsTable() {
  const height = (row: Row, known: number) => (row.connected ? count(known) : "–");
  return table<Row>({
    caption: "Validators",
    key: (row) => String(row.validator),
    empty: "No validators.",
    columns: [
      { name: "Validator", class: "number first", cell: (row) => ({ text: row.me ? `${row.validator} (this node)` : String(row.validator) }) },
      { name: "State", cell: (row) => ({ text: row.state, class: row.state === "votes" ? "" : "warned" }) },
      { name: "Height", class: "number", cell: (row) => height(row, row.decided) },
      { name: "Certified", class: "number wide", cell: (row) => height(row, row.certified) },
      { name: "Rounds", class: "number", cell: (row) => ({ text: row.rounds === null ? "–" : count(row.rounds), title: "in which its slot of the last height was decided" }) },
      { name: "Latency", class: "number", cell: (row) => ({ text: latency(row), title: "there and back" }) },
      {
        name: "Sub-blocks",
        class: "number",
        cell: (row) => ({ text: `${count(row.proposed)} of ${count(row.blocks)}`, title: "in the latest superblocks" }),
        order: (a, b) => a.proposed - b.proposed,
      },
    ],
  });
}
