/** The chain at a glance. */
import { blocksTable } from "./blocks";
import { curvesPanel } from "./curves";
import type { View } from "./view";
import { parseDecimal, toNumber, type Decimal } from "@walras/client/decimal";
import { formatPrice, shorten } from "../amount";
import type { Market } from "@walras/client/bodies";
import { stagesChart, throughputChart } from "../charts/blocks";
import { total } from "../charts/series";
import { facts, h, panel, type Child } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table } from "../table";
import { numeraire, pairKey, tradedWorth } from "../value";
import { count, duration, milliseconds, rate } from "../words";

const BLOCKS_SHOWN = 12;
const PAIRS_SHOWN = 12;
const BATCHES_SUMMED = 24;
const MARKETS_PAUSE_MS = 2_000;
const CHART_HEIGHT = 210;

export function overviewView(live: Live): View {
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
  const traded = tradedTable(live);
  const picture = curvesPanel(live, { compact: true, height: CHART_HEIGHT });
  const markets = refresh((signal) => live.loadMarkets(signal), () => undefined, MARKETS_PAUSE_MS);
  const stop = live.onBlock(() => markets.request());
  markets.request();

  const element = h(
    "div",
    { class: "view overview" },
    h("h1", { class: "unseen", tabindex: -1 }, "Overview"),
    tiles.element,
    h(
      "div",
      { class: "grid three" },
      picture.element,
      panel("Throughput", {}, throughput.element),
      panel("Time by stage, in ms per block", {}, stages.element),
    ),
    h(
      "div",
      { class: "grid beside" },
      panel(`Most traded in the latest ${BATCHES_SUMMED} batches`, { aside: more("All markets", href.markets) }, traded.element),
      panel("Latest blocks", { aside: more("All blocks", href.blocks) }, latest.element),
    ),
  );

  function update(): void {
    showTiles();
    throughput.show(live.blocks);
    stages.show(live.blocks);
    latest.show(live.blocks.slice(-BLOCKS_SHOWN).reverse());
    const pairs = mostTraded(live).slice(0, PAIRS_SHOWN);
    traded.show(pairs);
    const first = pairs[0];
    // Until enough batches are there to tell, the pair may change; then it stays.
    const settling = live.batches.length < BATCHES_SUMMED;
    const pair = picture.pair();
    const other = pair?.[0] !== first?.market.base || pair?.[1] !== first?.market.quote;
    if (first && (!pair || (settling && other))) picture.choose(first.market.base, first.market.quote);
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
    title: "Overview",
    element,
    update,
    close() {
      stop();
      markets.close();
      throughput.close();
      stages.close();
      picture.close();
    },
  };
}

function more(text: string, to: string): Child {
  return h("a", { href: to, class: "more" }, text);
}

type Traded = { market: Market; worth: Decimal };

function tradedTable(live: Live) {
  return table<Traded>({
    caption: `Most traded in the latest ${BATCHES_SUMMED} batches`,
    key: ({ market }) => market.market,
    empty: "Nothing has traded yet.",
    columns: [
      { name: "Market", cell: ({ market: m }) => ({ text: m.market, href: href.market(m.base, m.quote) }) },
      {
        name: "Batch price",
        class: "number",
        cell: ({ market: m }) => formatPrice(parseDecimal(m.price ?? "")),
      },
      { name: "Offers", class: "number wide", cell: ({ market: m }) => count(m.offers) },
      { name: "Worth", class: "number", cell: (t) => `${shorten(t.worth, 2)} ${numeraire(live.assets)?.symbol ?? ""}` },
    ],
  });
}

/** The markets by what they traded in the latest batches: over several, so that the order is calm. */
function mostTraded(live: Live): Traded[] {
  const worths = tradedWorth(live.batches.slice(-BATCHES_SUMMED), live.assets);
  return (live.markets ?? [])
    .flatMap((market) => {
      const worth = worths.get(pairKey(market.base, market.quote));
      return worth && worth.digits > 0n ? [{ market, worth }] : [];
    })
    .sort((a, b) => toNumber(b.worth) - toNumber(a.worth));
}
