/** The choice of who trades: a public account of a demo, a key or session key kept in this browser, or a browser wallet. */
import { h, notice } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { publicAccounts } from "../trade/demo";
import { pay } from "../trade/orders";
import { LEAST_PASSPHRASE, exportKey, forgetKey, keepKey, keptAddress, unlockKey, type Trader } from "../trade/keys";
import { onWallet, walletTrader, wallets } from "../trade/wallets";
import { choose, current } from "../trade/session";
import { keptSessions, unlockSession } from "../trade/session-keys";
import { brief, explain, tells } from "../words";

/** What a new key gets on a demo's chain, in whole units of each of the first two assets. */
const FIRST_MONEY = 100n;
const PAUSE_MS = 1_000;

type Choice = "none" | "unlock" | "new" | "import" | "export" | "forget" | `wallet ${string}` | `demo ${number}` | `session ${string}`;

export function traderChoice(live: Live) {
  const problem = notice();
  const select = h("select", { id: "trader", change: () => void chosen(select.value as Choice) });
  const passphrase = h("input", { id: "passphrase", type: "password", autocomplete: "current-password", minlength: LEAST_PASSPHRASE, required: true });
  const key = h("input", { id: "import", class: "hex", autocomplete: "off", spellcheck: "false" });
  const keyRow = h("div", { class: "field" }, h("label", { for: "import" }, "Private key"), key);
  const button = h("button", { type: "submit" }, "Unlock");
  const form = h("form", { class: "key-form", hidden: true, submit }, keyRow, h("div", { class: "field" }, h("label", { for: "passphrase" }, "Passphrase"), passphrase), button);
  const money = h("button", { type: "button", class: "plain", hidden: true, click: () => void firstMoney() }, "Get demo money");
  const element = h("div", { class: "trader" }, h("div", { class: "field" }, h("label", { for: "trader" }, "Trade as"), select), form, money, problem.element);
  let demos: Trader[] | null = null;
  let wanted: Choice = "none";
  let busy = false;
  const finding = refresh(findDemos, tells(problem), PAUSE_MS);

  /** The public accounts are offered only where a demo's genesis paid them. */
  async function findDemos(signal: AbortSignal): Promise<void> {
    if (demos !== null) return;
    demos = await publicAccounts(live, signal);
    draw();
  }

  function draw(): void {
    const kept = keptAddress();
    const options: [Choice, string][] = [
      ["none", "Choose…"],
      ...(demos ?? []).map((one, at): [Choice, string] => [`demo ${at}`, `${one.name} (${brief(one.address, 4)})`]),
      ...(kept === null ? [] : ([["unlock", `Key in this browser (${brief(kept, 4)})`]] as [Choice, string][])),
      ...keptSessions().map(({ key, account }): [Choice, string] => [`session ${key}`, `Session key ${brief(key, 4)} of ${brief(account, 4)}`]),
      ...wallets().map(({ id, name }): [Choice, string] => [`wallet ${id}`, walletText(id, name)]),
      ["new", kept === null ? "New key in this browser…" : "New key, in place of the one in this browser…"],
      ["import", "Import a key…"],
      ...(kept === null ? [] : ([["export", "Show this browser's key…"], ["forget", "Forget this browser's key"]] as [Choice, string][])),
    ];
    select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
    select.value = wanted === "none" ? choiceOf(current()) : wanted;
    const isForm = wanted === "unlock" || wanted === "new" || wanted === "import" || wanted === "export" || wanted.startsWith("session ");
    form.hidden = !isForm;
    keyRow.hidden = wanted !== "import";
    button.textContent = { unlock: "Unlock", new: "Create", import: "Import", export: "Show" }[wanted as string] ?? "Unlock";
    money.hidden = !(current()?.kind === "local" && (demos?.length ?? 0) > 0);
  }

  function choiceOf(trader: Trader | null): Choice {
    if (trader?.kind === "demo") return `demo ${(demos ?? []).findIndex((one) => one.address === trader.address)}`;
    if (trader?.session) return `session ${trader.session.key.public}`;
    if (trader?.kind === "local") return "unlock";
    return trader?.kind === "wallet" ? `wallet ${trader.wallet ?? ""}` : "none";
  }

  /** A wallet by its name, and the account that it showed. */
  function walletText(id: string, name: string): string {
    const trader = current();
    return trader?.kind === "wallet" && trader.wallet === id ? `${name} (${brief(trader.address, 4)})` : name;
  }

  async function chosen(choice: Choice): Promise<void> {
    problem.say(null);
    wanted = choice;
    try {
      if (choice.startsWith("demo ")) done(demos?.[Number(choice.slice(5))] ?? null);
      else if (choice === "none") done(null);
      else if (choice.startsWith("wallet ")) done(await walletTrader(choice.slice("wallet ".length)));
      else if (choice === "forget") forget();
    } catch (error) {
      wanted = "none";
      problem.say(explain(error));
    }
    draw();
    if (!form.hidden) (keyRow.hidden ? passphrase : key).focus();
  }

  function forget(): void {
    const sure = confirm("Forget the key of this browser? Without a copy of it, what its account holds is lost.");
    if (sure) forgetKey();
    done(sure && current()?.kind === "local" ? null : current());
  }

  function done(trader: Trader | null): void {
    wanted = "none";
    passphrase.value = "";
    key.value = "";
    choose(trader);
  }

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (busy) return;
    busy = true;
    button.disabled = true;
    problem.say(null);
    try {
      if (wanted === "unlock") done(await unlockKey(passphrase.value));
      else if (wanted.startsWith("session ")) done(await unlockSession(wanted.slice("session ".length), passphrase.value));
      else if (wanted === "export") show(await exportKey(passphrase.value));
      else done(await keepKey(passphrase.value, wanted === "import" ? key.value : null));
    } catch (error) {
      problem.say(explain(error));
    }
    busy = false;
    button.disabled = false;
    draw();
  }

  function show(secret: string): void {
    done(current());
    problem.say(`Private key: ${secret}. Whoever has it can spend everything of its account.`);
  }

  /** Public accounts of the demo pay a new key. */
  async function firstMoney(): Promise<void> {
    const [giver, to] = [demos?.[0], current()?.address];
    if (!giver || to === undefined || busy) return;
    busy = true;
    money.disabled = true;
    try {
      for (const asset of [...live.assets.values()].filter((one) => one.asset < 2)) {
        await pay(giver, to, asset.symbol, (FIRST_MONEY * 10n ** BigInt(asset.decimals)).toString(), live.assets, live.height);
      }
      problem.say(null);
    } catch (error) {
      problem.say(explain(error));
    }
    busy = false;
    money.disabled = false;
    choose(current());
  }

  const stop = onWallet(draw);
  draw();
  return {
    element,
    /** Looks for a demo's accounts once it is known which chain this is. */
    update(): void {
      if (demos === null && live.status !== null) finding.request();
    },
    draw,
    close(): void {
      stop();
      finding.close();
    },
  };
}
