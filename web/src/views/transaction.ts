/** One transaction: whether it is committed, where, and what became of it. */
import type { View } from "./view";
import type { CommittedStatus, EthereumStatus, TransactionStatus } from "@walras/client/bodies";
import { get, getIfThere, path } from "../api";
import { facts, h, notice, panel } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { brief, checkStatus, count, metText, operationText, outcomeText, tells } from "../words";

export function transactionView(live: Live, id: string): View {
  const problem = notice();
  const list = facts({ id: "Id", status: "Status", block: "Block", outcome: "Outcome", asked: "Asked", account: "Account", sold: "Sold", bought: "Bought", left: "Rests", returned: "Returned" });
  list.element.classList.add("summary");
  const element = h("div", { class: "view" }, h("h1", { tabindex: -1 }, "Transaction"), problem.element, panel(brief(id, 12), {}, list.element));
  list.set("id", h("code", {}, id));

  let done = false;
  let committed: CommittedStatus | null = null;
  const loading = refresh(load, tells(problem), 1_000);
  const stop = live.onBlock(() => {
    if (!done) loading.request();
  });
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    const answer = await find(signal);
    if (!answer) return;
    checkStatus(answer.status);
    done = answer.status === "committed";
    list.set("status", done ? "Committed: final and durable" : "Pending: waits in the mempool for a block");
    if (answer.status !== "committed") return;
    list.set("block", h("a", { href: href.block(answer.height) }, count(answer.height)));
    list.set("outcome", outcomeText(answer.outcome));
    committed = answer;
    update();
  }

  /** The transaction; none if it is one of Ethereum, whose view takes over: both kinds are named by 32 bytes. */
  async function find(signal: AbortSignal): Promise<TransactionStatus | null> {
    const found = await getIfThere<TransactionStatus>(path("transactions", id), signal);
    if (found) return found;
    await get<EthereumStatus>(path("ethereum", id), signal);
    location.replace(href.ethereum(id));
    return null;
  }

  /** What needs the decimals of assets, which may come later. */
  function update(): void {
    if (!committed?.operation || live.assets.size === 0) return;
    const { account, operation, outcome } = committed;
    list.set("asked", operationText(operation, live));
    if (account) list.set("account", h("a", { href: href.account(account) }, h("code", {}, brief(account, 10))));
    for (const part of ["sold", "bought", "left", "returned"] as const) list.set(part, metText(operation, outcome, part, live) || "–");
  }

  return {
    title: "Transaction",
    element,
    update,
    close() {
      stop();
      loading.close();
    },
  };
}
