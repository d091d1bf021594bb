/** The chain and this node at a glance: what operators look at. */
import { blocksTable } from "./blocks";
import type { View } from "./view";
import { stagesChart, throughputChart } from "../charts/blocks";
import { total } from "../charts/series";
import { facts, h, panel } from "../dom";
import type { Live } from "../live";
import { href } from "../router";
import { count, duration, milliseconds, rate } from "../words";

const BLOCKS_SHOWN = 12;
const CHART_HEIGHT = 210;

export function networkView(live: Live): View {
  const tiles = facts({
    height: "Height",
    rate: "Transactions per second",
    offers: "Resting offers",
    accounts: "Accounts",
    mempool: "In the mempool",
    committed: "Committed in total",
  });
  tiles.element.classList.add("tiles");
  const throughput = throughputChart(CHART_HEIGHT);
  const stages = stagesChart(CHART_HEIGHT);
  const latest = blocksTable("Latest blocks");

  const element = h(
    "div",
    { class: "view network" },
    h("h1", { tabindex: -1 }, "This node"),
    tiles.element,
    h(
      "div",
      { class: "grid" },
      panel("Throughput", {}, throughput.element),
      panel("Time by stage, in ms per block", {}, stages.element),
    ),
    panel("Latest blocks", { aside: h("a", { href: href.blocks, class: "more" }, "All blocks") }, latest.element),
  );

  function update(): void {
    showTiles();
    throughput.show(live.blocks);
    stages.show(live.blocks);
    latest.show(live.blocks.slice(-BLOCKS_SHOWN).reverse());
  }

  function showTiles(): void {
    const { status, latest: block } = live;
    tiles.set("height", count(block?.height ?? status?.height), block ? `the latest block took ${milliseconds(total(block))}` : "");
    tiles.set("rate", rate(status?.transactions_per_second), "over the last minute");
    tiles.set("offers", count(status?.offers));
    tiles.set("accounts", count(status?.accounts));
    tiles.set("mempool", count(status?.mempool.transactions), status ? `at most ${count(status.mempool.limit)}` : "");
    tiles.set("committed", count(status?.committed), status ? `${count(status.refused)} refused; up ${duration(status.uptime_ms)}` : "");
  }

  return {
    title: "This node",
    element,
    update,
    close() {
      throughput.close();
      stages.close();
    },
  };
}
