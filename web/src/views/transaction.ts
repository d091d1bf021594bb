/** One transaction: whether it is committed, where, and what became of it. */
import type { View } from "./view";
import { formatAmount } from "../amount";
import { get, path, type TransactionStatus } from "../api";
import { facts, h, notice, panel } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { brief, count, explain, outcomeText } from "../words";

export function transactionView(live: Live, id: string): View {
  const problem = notice();
  const list = facts({ id: "Id", status: "Status", block: "Block", outcome: "Outcome", sold: "Sold, units", bought: "Bought, units", left: "Left, units", returned: "Returned, units" });
  list.element.classList.add("summary");
  const element = h("div", { class: "view" }, h("h1", { tabindex: -1 }, "Transaction"), problem.element, panel(brief(id, 12), {}, list.element));
  list.set("id", h("code", {}, id));

  let done = false;
  const loading = refresh(load, (error) => problem.say(explain(error)), 1_000);
  const stop = live.onBlock(() => {
    if (!done) loading.request();
  });
  loading.request();

  async function load(signal: AbortSignal): Promise<void> {
    const answer = await get<TransactionStatus>(path("transactions", id), signal);
    problem.say(null);
    done = answer.status === "committed";
    list.set("status", done ? "Committed: final and durable" : "Pending: waits in the mempool for a block");
    if (answer.status !== "committed") return;
    list.set("block", h("a", { href: href.block(answer.height) }, count(answer.height)));
    list.set("outcome", outcomeText(answer.outcome));
    if (answer.outcome.result !== "offered") return;
    for (const name of ["sold", "bought", "left", "returned"] as const) list.set(name, formatAmount(answer.outcome[name], 0));
  }

  return {
    title: "Transaction",
    element,
    update: () => undefined,
    close() {
      stop();
      loading.close();
    },
  };
}
