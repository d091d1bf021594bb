/** One block: its summary, its valuations, its trades and what became of each transaction. */
import type { View } from "./view";
import { divide, fromUnits } from "@walras/client/decimal";
import { formatAmount, formatPrice, formatShort } from "../amount";
import { methodName } from "../abi";
import type { Batch, BatchTrade, Block, BlockDetail, BlockOutcome, EthereumBlock, EthereumExecuted } from "@walras/client/bodies";
import { ApiError, get, path } from "../api";
import { stageColour } from "../charts/blocks";
import { stagesOf, total } from "../charts/series";
import { facts, h, notice, panel, setText } from "../dom";
import { batchPath, type Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { table } from "../table";
import { addressText, gasPriceText, weiText } from "../tokens";
import { batchPrice, numeraire } from "../value";
import { brief, count, dateAndClock, metText, milliseconds, operationText, outcomeText, outcomeWord, stageName, tells } from "../words";

const PAGE = 50;
const PAUSE_MS = 2_000;
/** Between pages of a list that somebody asked for. */
const PAGE_PAUSE_MS = 200;

export function blockView(live: Live, height: number): View {
  const summary = summaryFacts();
  const [problem, batchProblem] = [notice(), notice()];
  const stages = h("div", {});
  const solver = h("p", { class: "caption" });
  const valuations = valuationsTable(live);
  const trades = tradesTable(live);
  const outcomes = outcomesPanel(live, height);
  const contracts = contractsPanel(live, height);
  const next = h("a", { href: href.block(height + 1), hidden: true }, "Next");
  const element = h(
    "div",
    { class: "view" },
    h(
      "header",
      { class: "view-head" },
      h("h1", { tabindex: -1 }, `Block ${count(height)}`),
      h("nav", { class: "pages", "aria-label": "Blocks beside" }, height > 0 && h("a", { href: href.block(height - 1) }, "Previous"), next),
    ),
    problem.element,
    panel("Summary", {}, summary.element, stages),
    h(
      "div",
      { class: "grid" },
      panel("Valuations of the batch", { class: "tall" }, batchProblem.element, valuations.element, solver),
      panel("Trades of the batch", { class: "tall" }, trades.element),
    ),
    contracts.element,
    outcomes.element,
  );

  let block: BlockDetail | null = null;
  let batch: Batch | null = null;
  const loading = refresh(load, told, PAUSE_MS);
  const batchLoading = refresh(loadBatch, tells(batchProblem), PAUSE_MS);
  // What the page knows of the height may be old, so the node is asked all the same, only not upon each block before.
  const stop = live.onBlock(() => {
    if (height <= live.height && !block?.state_root) loading.request();
  });
  loading.request();

  function told(error: unknown): void {
    const isToCome = error instanceof ApiError && error.status === 404 && height > live.height && live.height > 0;
    if (!isToCome) return tells(problem)(error);
    problem.say(`Block ${count(height)} does not exist yet; the latest is ${count(live.height)}. It is shown when it comes.`);
  }

  async function load(signal: AbortSignal): Promise<void> {
    const answer = await get<BlockDetail>(`${path("blocks", height)}?offset=0&limit=${PAGE}`, signal);
    if (!block) {
      outcomes.start(answer);
      contracts.start();
      batchLoading.request();
    }
    block = answer;
    summary.show(answer);
    stages.replaceChildren(stageBar(answer));
  }

  async function loadBatch(signal: AbortSignal): Promise<void> {
    batch = await get<Batch>(batchPath(height), signal);
    update();
  }

  function update(): void {
    next.hidden = live.height <= height;
    outcomes.update();
    contracts.update();
    if (!batch || live.assets.size === 0) return;
    valuations.show(valuationRows(batch, live));
    trades.show(batch.trades);
    setText(solver, clearingText(batch));
  }

  return {
    title: `Block ${height}`,
    element,
    update,
    close() {
      stop();
      loading.close();
      batchLoading.close();
      outcomes.close();
      contracts.close();
    },
  };
}

/** How well the batch cleared and how its prices were found. */
function clearingText({ full, solver }: Batch): string {
  const cleared = full ? "Cleared in full." : "Cleared in part: some offers that should have traded did not.";
  if (!solver) return cleared;
  const ratio = solver.unrealized_utility_ratio;
  const left =
    ratio === null
      ? "no utility is realized."
      : `the utility left unrealized is ${(100 * ratio).toFixed(3)} % of that realized.`;
  return (
    `${cleared} Solver ${solver.name}: ${count(solver.iterations)} iterations, ` +
    `${count(solver.demand_queries)} demand queries; ${left}`
  );
}

function summaryFacts() {
  const list = facts({
    time: "Time",
    transactions: "Transactions",
    applied: "Applied",
    refused: "Refused",
    fills: "Fills",
    pairs: "Pairs traded",
    full: "Clearing",
    took: "Took",
    block: "Digest",
    parent: "Parent",
    receipts: "Receipts root",
    state: "State root",
  });
  list.element.classList.add("summary");
  const hex = (digest: string) => h("code", { title: digest }, brief(digest, 10));
  return {
    element: list.element,
    show(block: Block) {
      list.set("time", dateAndClock(block.time_ms));
      list.set("transactions", count(block.transactions));
      list.set("applied", count(block.applied));
      list.set("refused", count(block.refused));
      list.set("fills", count(block.fills));
      list.set("pairs", count(block.pairs));
      list.set("full", block.full ? "full" : "partial");
      list.set("took", milliseconds(total(block)));
      list.set("block", hex(block.block));
      list.set("parent", hex(block.parent));
      list.set("receipts", hex(block.receipts_root));
      list.set("state", block.state_root ? hex(block.state_root) : "being computed");
    },
  };
}

/** The stages side by side, as wide as they took. */
function stageBar(block: Block): HTMLElement {
  const stages = stagesOf([block]).map((stage): [string, number] => [stage, block.stages_ms[stage] ?? 0]);
  const sum = total(block) || 1;
  const parts = stages.map(([stage, ms], i) => {
    const part = h("span", { title: `${stageName(stage)}: ${milliseconds(ms)}` });
    part.style.flexGrow = String(ms / sum);
    part.style.background = `var(--${stageColour(i)})`;
    return part;
  });
  const names = stages.map(([stage, ms], i) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.setProperty("--swatch", `var(--${stageColour(i)})`);
    return h("li", {}, swatch, `${stageName(stage)} `, h("b", {}, milliseconds(ms)));
  });
  return h("div", { class: "stage-bar" }, h("div", { class: "bar", "aria-hidden": "true" }, ...parts), h("ul", { class: "legend" }, ...names));
}

type Valuation = { symbol: string; valuation: string; batch: Batch };

/** In the order of the assets' numbers. */
function valuationRows(batch: Batch, live: Live): Valuation[] {
  const number = (row: Valuation) => live.assets.get(row.symbol)?.asset ?? Infinity;
  const rows = Object.entries(batch.valuations).map(([symbol, valuation]) => ({ symbol, valuation, batch }));
  return rows.sort((a, b) => number(a) - number(b));
}

function valuationsTable(live: Live) {
  const first = () => numeraire(live.assets)?.symbol ?? "";
  return table<Valuation>({
    caption: "Valuations of the batch",
    key: (row) => row.symbol,
    empty: "Not loaded yet.",
    columns: [
      { name: "Asset", class: "strong", cell: (row) => row.symbol },
      { name: "One is worth", class: "number", cell: (row) => `${formatPrice(batchPrice(row.batch, live.assets, row.symbol, first()))} ${first()}` },
      { name: "Valuation of a unit", class: "number wide", cell: (row) => ({ text: row.valuation }) },
      {
        name: "Burnt",
        class: "number",
        cell: (row) => formatAmount(row.batch.burnt[row.symbol] ?? "0", live.decimals(row.symbol)),
      },
    ],
  });
}

function tradesTable(live: Live) {
  const amount = (units: string, symbol: string) => ({
    text: formatShort(units, live.decimals(symbol)),
    title: `${formatAmount(units, live.decimals(symbol))} ${symbol}`,
  });
  const rate = (trade: BatchTrade): string => {
    const [sold, bought] = [fromUnits(trade.sold, live.decimals(trade.sell)), fromUnits(trade.bought, live.decimals(trade.buy))];
    return formatPrice(sold && bought ? divide(bought, sold, 7) : null);
  };
  return table<BatchTrade>({
    caption: "Trades of the batch",
    key: (trade) => `${trade.sell}/${trade.buy}`,
    empty: "Nothing traded in this batch.",
    columns: [
      { name: "Sold for", cell: (t) => ({ text: `${t.sell} → ${t.buy}`, href: href.market(t.sell, t.buy) }) },
      { name: "Sold", class: "number", cell: (t) => amount(t.sold, t.sell) },
      { name: "Bought", class: "number", cell: (t) => amount(t.bought, t.buy) },
      { name: "Bought per sold", class: "number wide", cell: rate },
    ],
  });
}

function outcomesPanel(live: Live, height: number) {
  let rows: BlockOutcome[] = [];
  let more = false;
  const problem = notice();
  const button = h("button", { type: "button", hidden: true, click: () => loading.request() }, "Show more");
  const list = outcomesTable(live);
  const loading = refresh(load, tells(problem), PAGE_PAUSE_MS);

  function show(answer: BlockDetail): void {
    rows = [...rows, ...answer.outcomes];
    more = answer.more;
    update();
    button.hidden = !more;
    setText(button, `Show more (${count(rows.length)} of ${count(answer.transactions)} shown)`);
  }

  /** Amounts need the decimals of assets, which may come after the block. */
  function update(): void {
    if (live.assets.size > 0) list.show(rows);
  }

  async function load(signal: AbortSignal): Promise<void> {
    show(await get<BlockDetail>(`${path("blocks", height)}?offset=${rows.length}&limit=${PAGE}`, signal));
  }

  return {
    element: panel("Transactions and what became of them", {}, list.element, problem.element, button),
    start: show,
    update,
    close: () => loading.close(),
  };
}

/** What the contract phase executed, the settlement of contracts' offers first; hidden where it did nothing. */
function contractsPanel(live: Live, height: number) {
  let block: EthereumBlock | null = null;
  let rows: EthereumExecuted[] = [];
  const problem = notice();
  const button = h("button", { type: "button", hidden: true, click: () => loading.request() }, "Show more");
  const list = contractsTable(live);
  const note = h("p", { class: "caption" });
  const element = panel("Contracts", { class: "contracts" }, list.element, problem.element, button, note);
  element.hidden = true;
  const loading = refresh(load, tells(problem), PAGE_PAUSE_MS);

  async function load(signal: AbortSignal): Promise<void> {
    block = await get<EthereumBlock>(`${path("blocks", height)}/ethereum?offset=${rows.length}&limit=${PAGE}`, signal);
    rows = [...rows, ...block.transactions];
    update();
  }

  function update(): void {
    if (!block || live.assets.size === 0) return;
    element.hidden = rows.length === 0 && block.skipped === 0;
    button.hidden = !block.more;
    list.show(rows);
    const skipped = block.skipped > 0 ? ` ${count(block.skipped)} skipped.` : "";
    const gas = BigInt(block.gas_used).toLocaleString("en-US");
    setText(note, `${count(block.executed)} executed, with ${gas} gas at ${gasPriceText(BigInt(block.base_fee))} or more.${skipped}`);
  }

  return { element, start: () => loading.request(), update, close: () => loading.close() };
}

function contractsTable(live: Live) {
  const name = (address: string) => ({ text: addressText(live.assets, address), title: address, href: href.account(address) });
  const to = (row: EthereumExecuted) => {
    if (row.position === undefined) return "what the batch filled";
    return row.to !== undefined ? name(row.to) : row.contract !== undefined ? { ...name(row.contract), text: `creates ${brief(row.contract)}` } : "creates nothing";
  };
  const method = (row: EthereumExecuted) => {
    if (row.position === undefined) return "settlement";
    if (row.to === undefined) return "creation";
    return row.selector === "0x" ? "transfer of value" : (methodName(row.to, row.selector) ?? row.selector);
  };
  const badge = (row: EthereumExecuted) => ({ text: row.result, class: `badge ${row.result === "succeeded" ? "applied" : "refused"}` });
  return table<EthereumExecuted>({
    caption: "Contracts",
    key: (row) => row.hash,
    empty: "Nothing was executed.",
    columns: [
      { name: "Transaction", class: "hex", cell: (row) => ({ text: brief(row.hash), title: row.hash, href: href.ethereum(row.hash) }) },
      { name: "From", class: "hex wide", cell: (row) => name(row.sender) },
      { name: "To", class: "hex", cell: to },
      { name: "Function", cell: method },
      { name: "Result", cell: badge },
      { name: "Value", class: "number wide", cell: (row) => (row.value === "0" ? "–" : weiText(BigInt(row.value), live.assets)) },
      { name: "Gas", class: "number wide", cell: (row) => BigInt(row.gas_used).toLocaleString("en-US") },
      { name: "Logs", class: "number wide", cell: (row) => count(row.logs) },
    ],
  });
}

function outcomesTable(live: Live) {
  const met = (row: BlockOutcome, part: "sold" | "bought" | "left") => metText(row.operation, row.outcome, part, live);
  return table<BlockOutcome>({
    caption: "Transactions and what became of them",
    key: (row) => row.id,
    empty: "This block has no transactions.",
    columns: [
      { name: "Transaction", class: "hex", cell: (row) => ({ text: brief(row.id), title: row.id, href: href.transaction(row.id) }) },
      { name: "Account", class: "hex", cell: (row) => ({ text: brief(row.account), title: row.account, href: href.account(row.account) }) },
      { name: "Asked", cell: (row) => operationText(row.operation, live) },
      { name: "Kind", cell: (row) => ({ text: outcomeWord(row), class: `badge ${row.outcome.result}` }) },
      { name: "Outcome", class: "prose", cell: (row) => outcomeText(row.outcome) },
      { name: "Sold", class: "number wide", cell: (row) => met(row, "sold") },
      { name: "Bought", class: "number wide", cell: (row) => met(row, "bought") },
      { name: "Rests", class: "number wide", cell: (row) => met(row, "left") },
    ],
  });
}
