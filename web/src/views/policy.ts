/** The policy of an account: who signs with which weight, who recovers it, and the change that waits, with how to undo it. */
import type { Account } from "@walras/client/bodies";
import type { AccountKeys, KeyPolicy } from "@walras/client/policy";
import { copyable, facts, fill, h, panel, setText } from "../dom";
import type { Live } from "../live";
import { table } from "../table";
import { brief, count, duration } from "../words";

/** A signer, by a key or a wallet, or a guardian; with what becomes of it when a change acts. */
type Row = { who: string; kind: "key" | "wallet"; weight: number | null; after: string | null };
type Waiting = NonNullable<AccountKeys["waiting"]>;

export function policyPanel(live: Live, address: string) {
  const terms = facts({ move: "Spends", govern: "Changes keys", guardians: "Recovers keys", delay: "A change waits", last: "Last change" });
  const holders = holdersTable();
  const waits = waitingPart(address);
  const intro = h("p", { class: "caption" }, "Several keys sign for this account: no key alone spends. Who has the weight that spends spends everything; who has the weight that changes keys has the account.");
  const element = panel("Policy", { class: "policy" }, intro, terms.element, holders.element, waits.element);
  element.hidden = true;
  let keys: AccountKeys | null = null;

  function update(): void {
    element.hidden = keys === null;
    if (!keys) return;
    const { policy, waiting } = keys;
    const all = weightOf(policy);
    terms.set("move", `weight ${policy.move} of ${all}`);
    terms.set("govern", `weight ${policy.govern} of ${all}`);
    const guards = policy.guardian_keys.length + policy.guardian_wallets.length;
    terms.set("guardians", policy.guardians === 0 ? "nobody" : `${policy.guardians} of ${guards} guardians`);
    terms.set("delay", blocks(policy.delay, live.pace_ms));
    holders.show(rowsOf(policy, waiting?.policy ?? null));
    waits.show(waiting, live);
  }

  return {
    element,
    show(account: Account): void {
      const changed = account.keys?.last !== keys?.last;
      keys = account.keys ?? null;
      if (keys && changed) terms.set("last", copyable(keys.last, brief(keys.last, 6)));
      update();
    },
    update,
  };
}

const weightOf = (policy: KeyPolicy): number => [...policy.keys, ...policy.wallets].reduce((sum, one) => sum + one.weight, 0);

const blocks = (number: number, pace_ms: number): string =>
  number === 0 ? "not at all" : `${count(number)} blocks, about ${duration(number * pace_ms)}`;

/** Who signs and who recovers; if a change waits, what becomes of each, and who comes. */
function rowsOf(policy: KeyPolicy, next: KeyPolicy | null): Row[] {
  const now = holdersOf(policy);
  const later = next && holdersOf(next);
  const words = (row: Row) => (row.weight === null ? "guardian" : `weight ${row.weight}`);
  const after = (row: Row): string | null => {
    const same = later?.find((other) => isSame(other, row));
    return later && (same ? (same.weight === row.weight ? "stays" : words(same)) : "goes");
  };
  const coming = (later ?? []).filter((row) => !now.some((other) => isSame(other, row)));
  return [...now.map((row) => ({ ...row, after: after(row) })), ...coming.map((row) => ({ ...row, weight: null, after: `comes, ${words(row)}` }))];
}

const isSame = (one: Row, other: Row): boolean => one.who === other.who && (one.weight === null) === (other.weight === null);

function holdersOf(policy: KeyPolicy): Row[] {
  const row = (who: string, kind: Row["kind"], weight: number | null): Row => ({ who, kind, weight, after: null });
  return [
    ...policy.keys.map((one) => row(one.key, "key", one.weight)),
    ...policy.wallets.map((one) => row(one.wallet, "wallet", one.weight)),
    ...policy.guardian_keys.map((one) => row(one.key, "key", null)),
    ...policy.guardian_wallets.map((one) => row(one.wallet, "wallet", null)),
  ];
}

function holdersTable() {
  const codes = new Map<string, HTMLElement>();
  const code = (who: string, row: string): HTMLElement => {
    const known = codes.get(row) ?? copyable(who, brief(who, 6));
    codes.set(row, known);
    return known;
  };
  const part = ({ weight, after }: Row) => (weight !== null ? `Weight ${weight}` : after?.startsWith("comes") ? "–" : "Guardian");
  const name = (row: Row) => `${row.who} ${part(row)} ${row.after ?? ""}`;
  return table<Row>({
    caption: "Signers and guardians",
    key: name,
    empty: "Nobody signs.",
    columns: [
      { name: "Who", class: "hex first", cell: (row) => code(row.who, name(row)) },
      { name: "By", class: "wide", cell: ({ kind }) => (kind === "key" ? "ed25519 key" : "wallet") },
      { name: "Signs with", cell: part },
      { name: "After the change", cell: ({ after }) => after ?? "–" },
    ],
  });
}

/** The change that waits: who has signed it, what is missing, when it acts, and how to undo it. */
function waitingPart(address: string) {
  const says = h("p", { "aria-live": "polite" });
  const terms = facts({ signed: "Signed by", missing: "Missing", acts: "Acts", then: "Then", sessions: "Session keys" });
  const steps = h("ol", { class: "steps" });
  const undo = h("details", { class: "owner" }, h("summary", {}, "How to undo it"), steps);
  const element = h("div", { class: "waiting" }, h("h3", {}, "A change that waits"), says, terms.element, undo);
  element.hidden = true;
  let shown = "";

  function draw(waiting: Waiting): void {
    const command = (line: string) => h("code", { class: "command" }, line);
    const by = waiting.by === "signers" ? "those who change keys" : "its guardians";
    terms.set("signed", `${by}, and those who will change keys`);
    terms.set("then", `weight ${waiting.policy.move} spends, weight ${waiting.policy.govern} changes keys`);
    terms.set("sessions", waiting.sessions === "keep" ? "stay" : "close");
    fill(
      steps,
      h("li", {}, "Write another change, with the policy that shall be in force: ", command(`walras wallet keys set --account ${address} --policy policy.json --out change.json`)),
      h("li", {}, "Have those sign it who change keys now: ", command("walras wallet request sign change.json --key FILE")),
      h("li", {}, "Anybody sends it: the later change counts, and this one is void. ", command("walras wallet keys send change.json --key FILE")),
    );
  }

  return {
    element,
    show(waiting: Waiting | null, live: Live): void {
      element.hidden = waiting === null;
      if (!waiting) return;
      const name = JSON.stringify(waiting);
      if (name !== shown) draw(waiting);
      shown = name;
      const left = Number(waiting.due) - live.height;
      const due = `Block ${count(Number(waiting.due))}`;
      terms.set("acts", left > 0 ? `${due}, in about ${duration(left * live.pace_ms)}, once it is completed` : "as soon as it is completed");
      terms.set("missing", left > 0 ? "nothing but its wait" : `its completion: walras wallet keys complete --of ${address} --key FILE`);
      setText(says, waiting.by === "signers" ? "Those who change keys replace the policy." : "Guardians recover the account. Its signers void this by a change of their own.");
    },
  };
}
