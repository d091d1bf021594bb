/** The latest blocks, and all that the node still has, page by page. */
import type { View } from "./view";
import type { Block } from "@walras/client/bodies";
import { get } from "../api";
import { total } from "../charts/series";
import { h, notice, panel } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table, type Table } from "../table";
import { brief, clock, count, milliseconds, tells } from "../words";

const PAGE = 50;

export function blocksTable(caption: string): Table<Block> {
  return table<Block>({
    caption,
    key: (block) => block.block,
    empty: "No blocks yet.",
    columns: [
      { name: "Height", class: "number first", cell: (b) => ({ text: count(b.height), href: href.block(b.height) }) },
      { name: "Time", class: "number", cell: (b) => clock(b.time_ms) },
      { name: "Transactions", class: "number", cell: (b) => count(b.transactions) },
      { name: "Contracts", class: "number wide", cell: (b) => count(b.ethereum) },
      { name: "Refused", class: "number wide", cell: (b) => ({ text: count(b.refused), class: b.refused > 0 ? "warned" : "" }) },
      { name: "Fills", class: "number", cell: (b) => count(b.fills) },
      { name: "Pairs", class: "number wide", cell: (b) => count(b.pairs) },
      { name: "Clearing", class: "wide", cell: (b) => ({ text: b.full ? "full" : "partial", class: b.full ? "" : "warned" }) },
      { name: "Took", class: "number", cell: (b) => milliseconds(total(b)) },
      { name: "Digest", class: "wide hex", cell: (b) => ({ text: brief(b.block), title: b.block }) },
    ],
  });
}

/** Blocks below `before`, or the latest where that is null. */
export function blocksView(live: Live, before: number | null): View {
  const blocks = blocksTable("Blocks");
  const problem = notice();
  const pages = h("nav", { class: "pages", "aria-label": "Pages of blocks" });
  const element = h(
    "div",
    { class: "view" },
    h("h1", { tabindex: -1 }, "Blocks"),
    problem.element,
    panel(before === null ? "Latest blocks" : `Blocks below ${count(before)}`, { aside: pages }, blocks.element),
  );

  const loading = refresh(load, tells(problem), 1_000);
  const stop = before === null ? live.onBlock(() => loading.request()) : () => undefined;
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    const below = before === null ? "" : `&before=${before}`;
    const answer = await get<{ blocks: Block[] }>(`blocks?limit=${PAGE}${below}`, signal);
    blocks.show(answer.blocks);
    showPages(answer.blocks);
  }

  function showPages(shown: Block[]): void {
    const oldest = shown.at(-1)?.height ?? 0;
    const newer = before !== null && h("a", { href: before + PAGE > live.height ? href.blocks : href.blocksBefore(before + PAGE) }, "Newer");
    const older = shown.length === PAGE && oldest > 0 && h("a", { href: href.blocksBefore(oldest) }, "Older");
    const focused = pages.contains(document.activeElement);
    if (before === null && focused) return;
    pages.replaceChildren(...[newer, older].filter((link): link is HTMLAnchorElement => Boolean(link)));
  }

  return {
    title: "Blocks",
    element,
    update: () => undefined,
    close() {
      stop();
      loading.close();
    },
  };
}
