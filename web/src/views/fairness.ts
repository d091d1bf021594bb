/** The market edge as its root sees it: who is in the tree, how simultaneous deliveries are, and the log of fairness. */
import type { View } from "./view";
import { getIfThere } from "../api";
import { h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { table } from "../table";
import { count, tells } from "../words";

const PAUSE_MS = 1_000;
/** Entries of the log that are shown. */
const ENTRIES = 50;

/** A figure with its label: proven if every gateway's clock has a bounded error, otherwise estimated. */
export type Figure = { p50_us: number; p99_us: number; label: Label };
export type Label = "proven" | "estimated";
/** How far a member's clock is ahead of the root's, by probes, and how wrong that can be. */
export type Clock = { member: number; ahead_us: number; bound_us: number; drift_ppm: number; share_of_pure_probes: number; label: Label };
export type Entry = { number: number; epoch: number; at_ns: string; what: { event: string; member: number; value_ns: string | null } };

/** The answer to `GET v1/fairness`; `null` from a venue without an edge. */
export type Fairness = {
  epoch: number;
  layers: number[];
  hedging: number;
  proxies: number[];
  gateways: number[];
  headroom_us: number;
  packets: number;
  orders: number;
  orders_restamped: number;
  order_copies: number;
  forged_or_malformed_datagrams: number;
  sampled_packets: number;
  delivery_window: Figure;
  lateness: Figure;
  hold_time: Figure;
  one_way_delay: Figure;
  clock_error_bound_us: number | null;
  clock_offsets: Clock[];
  share_within_1_us: { value: number; label: Label };
  share_proven_within_1_us: { value: number; label: Label };
  evictions: number;
  log: Entry[];
};

export type Row = { name: string; median: string; worst: string; label: string };

export function fairnessView(live: Live): View {
  const problem = notice();
  const [list, events] = [figuresTable(), logTable()];
  const summary = h("p", { class: "quiet" });
  const listed = panel("Deliveries", {}, list.element);
  const logged = panel("Log of fairness events", {}, events.element);
  const heading = h("h1", { tabindex: -1 }, "Fairness");
  const element = h("div", { class: "view" }, heading, problem.element, summary, listed, logged);
  let latest: Fairness | null = null;

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => loading.request());
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    latest = await getIfThere<Fairness | null>("fairness", signal);
    listed.hidden = logged.hidden = latest === null;
    if (latest) return update();
    // It will have none while the page is open.
    stop();
    setText(summary, "This node runs no market edge.");
  }

  function update(): void {
    if (!latest) return;
    setText(summary, inWords(latest));
    list.show(rows(latest));
    events.show(latest.log.slice(0, ENTRIES));
  }

  return {
    title: "Fairness",
    element,
    update,
    close() {
      stop();
      loading.close();
    },
  };
}

/** How the edge stands, in a few sentences. */
export function inWords(edge: Fairness): string {
  if (edge.epoch === 0) return "The market edge has no members yet.";
  const tree = `Epoch ${count(edge.epoch)}: layers of ${edge.layers.join(", ")}, hedging ${edge.hedging}; ${count(edge.proxies.length)} proxies and ${count(edge.gateways.length)} gateways.`;
  const sentences = [tree, `${count(edge.packets)} packets went out and ${count(edge.orders)} orders came in; deadlines are ${micros(edge.headroom_us)} ahead.`];
  if (edge.orders_restamped > 0) sentences.push(`Orders that came too late for their stamp: ${count(edge.orders_restamped)}.`);
  if (edge.evictions > 0) sentences.push(`Members that were silent and evicted: ${count(edge.evictions)}.`);
  if (edge.forged_or_malformed_datagrams > 0) sentences.push(`Datagrams of strangers that were refused: ${count(edge.forged_or_malformed_datagrams)}.`);
  return sentences.join(" ");
}

/** Microseconds with one place. */
export function micros(value: number | null): string {
  return value === null ? "unknown" : `${value.toFixed(1)} µs`;
}

const share = (value: number) => `${(100 * value).toFixed(1)} %`;

/** The table of figures. Nothing is shown without its label. */
export function rows(edge: Fairness): Row[] {
  const figure = (name: string, of: Figure) => ({ name, median: micros(of.p50_us), worst: micros(of.p99_us), label: of.label });
  const part = (name: string, of: { value: number; label: Label }) => ({ name, median: share(of.value), worst: "", label: of.label });
  return [
    figure("Delivery window", edge.delivery_window),
    figure("Lateness of the last gateway", edge.lateness),
    figure("Longest hold", edge.hold_time),
    figure("Longest one-way delay", edge.one_way_delay),
    part("Shown within 1 µs of each other", edge.share_within_1_us),
    part("Proven to be", edge.share_proven_within_1_us),
    { name: "Largest clock error", median: micros(edge.clock_error_bound_us), worst: "", label: edge.clock_error_bound_us === null ? "unknown" : "declared" },
    offset(edge.clock_offsets),
  ];
}

/** The clock that probes find furthest from the root's. */
function offset(clocks: Clock[]): Row {
  const name = "Largest clock offset by probes";
  if (clocks.length === 0) return { name, median: "unknown", worst: "", label: "unknown" };
  const worst = clocks.reduce((one, two) => (Math.abs(two.ahead_us) > Math.abs(one.ahead_us) ? two : one));
  return { name: `${name}, of member ${count(worst.member)}`, median: micros(worst.ahead_us), worst: `± ${micros(worst.bound_us)}`, label: worst.label };
}

function figuresTable() {
  return table<Row>({
    caption: "Figures of deliveries",
    key: (row) => row.name,
    empty: "No packet was sampled yet.",
    columns: [
      { name: "Figure", class: "first", cell: (row) => row.name },
      { name: "Median", class: "number", cell: (row) => row.median },
      { name: "99 %", class: "number", cell: (row) => row.worst },
      { name: "Label", cell: (row) => ({ text: row.label, class: row.label === "estimated" || row.label === "unknown" ? "warned" : "" }) },
    ],
  });
}

function logTable() {
  return table<Entry>({
    caption: "Log of fairness events",
    key: (row) => String(row.number),
    empty: "Nothing impaired fairness.",
    columns: [
      { name: "Number", class: "number first", cell: (row) => count(row.number) },
      { name: "Epoch", class: "number wide", cell: (row) => count(row.epoch) },
      { name: "Event", cell: (row) => row.what.event },
      { name: "Member", class: "number", cell: (row) => count(row.what.member) },
      { name: "Value", class: "number wide", cell: (row) => (row.what.value_ns === null ? "" : micros(Number(row.what.value_ns) / 1000)) },
    ],
  });
}
