/** One Ethereum transaction: what it asked for, what it came to, and what contracts logged. */
import type { View } from "./view";
import { decodeCall, decodeLog, type Said } from "../abi";
import type { EthereumLog, EthereumOutput, EthereumReceipt, EthereumStatus, EthereumTransaction } from "@walras/client/bodies";
import { get, path } from "../api";
import { copyable, facts, fill, h, notice, panel } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { addressText, bytesText, contractName, gasPriceText, reasonText, valueText, weiText } from "../tokens";
import { brief, checkStatus, count, explain, stranger, tells } from "../words";

const LOGS_SHOWN = 100;
const HALT_MAX = 100;
const RESULTS = { succeeded: "Succeeded", reverted: "Reverted", halted: "Halted" };

export function ethereumView(live: Live, hash: string): View {
  const [problem, reasonProblem] = [notice(), notice()];
  const summary = summaryFacts(live);
  const input = h("div", {});
  const logs = h("div", {});
  const [inputPanel, logsPanel] = [panel("What it asks for", {}, input), panel("Logs", {}, logs)];
  const heading = h("h1", { tabindex: -1 }, "Ethereum transaction");
  summary.hash(hash);
  const element = h("div", { class: "view" }, heading, problem.element, panel(brief(hash, 12), {}, summary.element, reasonProblem.element), inputPanel, logsPanel);
  [inputPanel.hidden, logsPanel.hidden] = [true, true];

  let found: EthereumStatus | null = null;
  let output: EthereumOutput | null = null;
  let drawn = "";
  const loading = refresh(load, tells(problem), 1_000);
  const reason = refresh(loadOutput, (error) => reasonProblem.say(error === null ? null : `Why it failed cannot be told. ${explain(error)}`), 5_000);
  const stop = live.onBlock(() => {
    if (found?.status !== "committed") loading.request();
  });
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    found = await get<EthereumStatus>(path("ethereum", hash), signal);
    const result = found.receipt?.result;
    if (result !== undefined && result !== "succeeded" && !output) reason.request();
    update();
  }

  async function loadOutput(signal: AbortSignal): Promise<void> {
    output = await get<EthereumOutput>(`${path("ethereum", hash)}/output`, signal);
    update();
  }

  /** Symbols and decimals of assets may come later; what is drawn is drawn once, so that a selection stays. */
  function update(): void {
    if (!found || live.assets.size === 0) return;
    const now = `${found.status} ${output !== null} ${live.assets.size}`;
    if (now === drawn) return;
    drawn = now;
    const { transaction, receipt } = found;
    const isSettlement = receipt !== undefined && receipt.position === undefined;
    if (isSettlement) heading.textContent = `Settlement of block ${count(receipt.height)}`;
    summary.show(found, output);
    inputPanel.hidden = transaction === undefined;
    if (transaction) fill(input, ...inputParts(live, transaction));
    logsPanel.hidden = receipt === undefined;
    if (receipt) fill(logs, ...logParts(live, receipt));
  }

  return {
    title: "Ethereum transaction",
    element,
    update,
    close() {
      stop();
      loading.close();
      reason.close();
    },
  };
}

/** A link to an account under the name of its contract, with the whole address to copy. */
function account(live: Live, address: string): HTMLElement {
  return copyable(address, addressText(live.assets, address, 10), href.account(address));
}

function summaryFacts(live: Live) {
  const list = facts({
    id: "Hash",
    status: "Status",
    outcome: "Outcome",
    block: "Block",
    from: "From",
    to: "To",
    created: "Contract created",
    value: "Value",
    gas: "Gas used",
    price: "Price of gas",
    fee: "Paid for gas",
    nonce: "Nonce",
    type: "Type",
  });
  list.element.classList.add("summary");

  function show({ status, transaction, receipt }: EthereumStatus, output: EthereumOutput | null): void {
    checkStatus(status);
    const isSettlement = receipt !== undefined && receipt.position === undefined;
    const present = { to: transaction?.to, created: receipt?.contract, value: transaction, gas: receipt, price: receipt, fee: receipt, nonce: transaction, type: transaction };
    for (const [name, what] of Object.entries(present)) list.show(name as keyof typeof present, what !== undefined && !(isSettlement && name !== "to"));
    list.set("status", status === "committed" ? "Committed: final and durable" : "Pending: waits in the mempool for a block");
    const sender = transaction?.sender ?? receipt?.sender;
    if (sender !== undefined) list.set("from", account(live, sender));
    if (transaction) showTransaction(transaction);
    list.show("outcome", receipt !== undefined);
    list.show("block", receipt !== undefined);
    if (receipt) showReceipt(receipt, transaction, isSettlement ? settlementText(receipt) : outcome(receipt, output));
  }

  function showTransaction(transaction: EthereumTransaction): void {
    if (transaction.to !== undefined) list.set("to", account(live, transaction.to));
    list.set("value", weiText(BigInt(transaction.value), live.assets), `${transaction.value} wei`);
    list.set("nonce", count(transaction.nonce));
    list.set("type", String(transaction.type));
  }

  function showReceipt(receipt: EthereumReceipt, transaction: EthereumTransaction | undefined, outcomeText: string): void {
    const [used, price] = [BigInt(receipt.gas_used), BigInt(receipt.gas_price)];
    list.set("block", h("a", { href: href.block(receipt.height) }, count(receipt.height)));
    list.set("outcome", h("span", { class: `badge ${receipt.result === "succeeded" ? "applied" : "refused"}` }, outcomeText));
    if (receipt.contract !== undefined) list.set("created", account(live, receipt.contract));
    const of = transaction ? ` of ${BigInt(transaction.gas_limit).toLocaleString("en-US")}` : "";
    list.set("gas", used.toLocaleString("en-US") + of);
    list.set("price", gasPriceText(price), `${price} wei`);
    list.set("fee", weiText(used * price, live.assets), `${used * price} wei`);
  }

  function outcome(receipt: EthereumReceipt, output: EthereumOutput | null): string {
    if (receipt.result === "succeeded" || !output) return RESULTS[receipt.result];
    if (output.halt !== undefined) return `Halted: ${stranger(output.halt, HALT_MAX)}`;
    return reasonText(output.output, output.output_bytes, live.assets);
  }

  return { element: list.element, show, hash: (text: string) => list.set("id", h("code", {}, text)) };
}

function settlementText(receipt: EthereumReceipt): string {
  return `What the batch of the block did with offers that contracts placed: ${count(receipt.logs.length)} of them changed`;
}

function inputParts(live: Live, { to, input }: EthereumTransaction): HTMLElement[] {
  if (to === undefined) return [h("p", {}, `Creates a contract with ${count((input.length - 2) / 2)} bytes of code.`), raw(input)];
  if (input === "0x") return [h("p", {}, "Moves value alone: it has no input.")];
  const said = decodeCall(to, input);
  const name = contractName(live.assets, to);
  if (!said) return [h("p", {}, `Calls the function ${input.slice(0, 10)} of ${name ?? "a contract that the page does not know"}.`), raw(input)];
  return [h("p", {}, "Calls ", h("b", {}, said.name), ` of ${addressText(live.assets, to)}.`), values(live, said, to), raw(input)];
}

function raw(hex: string): HTMLElement {
  return h("details", {}, h("summary", {}, `Input, ${count((hex.length - 2) / 2)} bytes`), h("code", { class: "bytes" }, bytesText(hex)));
}

/** What a call or a log says, name by name. */
function values(live: Live, said: Said, at: string): HTMLElement {
  const list = h("dl", { class: "facts" });
  for (const value of said.values) {
    const text = valueText(value, said, at, live.assets);
    const isAddress = value.field.type === "address" && typeof value.value === "string";
    const shown = isAddress ? h("a", { href: href.account(String(value.value)), title: String(value.value) }, text) : text;
    list.append(h("div", { "data-value": value.field.name }, h("dt", {}, value.field.name), h("dd", { title: String(value.value) }, shown)));
  }
  return list;
}

function logParts(live: Live, { logs }: EthereumReceipt): HTMLElement[] {
  if (logs.length === 0) return [h("p", { class: "empty" }, "Contracts logged nothing.")];
  const list = h("ol", { class: "logs", start: 0 }, ...logs.slice(0, LOGS_SHOWN).map((log) => logItem(live, log)));
  const rest = h("p", { class: "caption" }, `Only the first ${LOGS_SHOWN} of ${count(logs.length)} logs are shown.`);
  return logs.length > LOGS_SHOWN ? [list, rest] : [list];
}

function logItem(live: Live, { address, topics, data }: EthereumLog): HTMLElement {
  const said = decodeLog(address, topics, data);
  const of = h("a", { href: href.account(address), title: address }, addressText(live.assets, address));
  if (said) return h("li", {}, h("p", {}, h("b", {}, said.name), " of ", of), values(live, said, address));
  const words = topics.map((topic, i) => h("div", {}, h("dt", {}, `topic ${i}`), h("dd", {}, h("code", {}, topic))));
  const rest = h("div", {}, h("dt", {}, "data"), h("dd", {}, h("code", { class: "bytes" }, data === "0x" ? "none" : bytesText(data))));
  return h("li", {}, h("p", {}, "Log of ", of), h("dl", { class: "facts raw" }, ...words, rest));
}
