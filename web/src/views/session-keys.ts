/** The session keys of an account: how they stand, and for its owner the ways to add, renew and revoke them. */
import type { Account, Asset, SessionBody } from "@walras/client/bodies";
import { ApiError, get } from "../api";
import { copyable, fill, h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { table } from "../table";
import { LEAST_PASSPHRASE } from "../trade/keys";
import {
  addSession, agreed, forgetSession, hasAgreed, heightsOf, keepSession, keptSessions, keyTermsOf, nextSlot, pasted, renewSession, revokeSession, toAgree,
  type Adding, type Chain, type Scope,
} from "../trade/session-keys";
import { current, onChoice } from "../trade/session";
import { Told } from "../trade/told";
import { SCOPES, brief, count, duration, explain } from "../words";
import { whole } from "./own-orders";
import { traderChoice } from "./trader";

const LEARN_PAUSE_MS = 1_000;

/** A key of the account, or one that this browser made for it and the account does not have. */
type Row = { key: string; on: SessionBody | null };

export function sessionsPanel(live: Live, address: string, changed: () => void) {
  const problem = notice();
  const choice = traderChoice(live);
  const adding = addingForm(live, address, (work) => act(work));
  const whose = h("p", { class: "quiet" });
  const owner = h("details", { class: "owner" }, h("summary", {}, "Add, renew and revoke keys"), choice.element, whose, adding.element);
  const keys = keysTable(live, address, {
    revoke: (one) => leaving(() => revokeSession(trader(), one, live.assets, live.height)),
    renew: (one) => act(() => renewSession(trader(), one.slot, adding.timer(one), live.assets, live.height)),
    forget: (key) => confirm("Forget this key? If its account adds it after all, nobody can use it.") && leaving(async () => forgetSession(key)),
  });
  const intro = h("p", { class: "caption" }, "A session key lets a program, or this browser, place orders and cancel for the account, within caps. It cannot pay or withdraw, and its owner revokes it at any time.");
  const element = panel("Session keys", { class: "session-keys" }, intro, keys.element, owner, problem.element);
  let account: Account | null = null;
  let busy = false;
  let wasOwn = false;
  const stop = onChoice(() => {
    choice.draw();
    update();
  });

  function trader() {
    const chosen = current();
    if (!chosen || !isOwner()) throw new Told("Choose the key of this account under “Trade as” first.");
    return chosen;
  }

  function isOwner(): boolean {
    const chosen = current();
    return chosen !== null && !chosen.session && chosen.address === address;
  }

  /** What takes its own button away leaves the focus on the list. */
  function leaving(work: () => Promise<void>): Promise<void> {
    keys.element.focus();
    return act(work);
  }

  async function act(work: () => Promise<void>): Promise<void> {
    if (busy) return;
    busy = true;
    problem.say(null);
    update();
    try {
      await work();
    } catch (error) {
      problem.say(explain(error));
    }
    busy = false;
    choice.draw();
    update();
    changed();
  }

  function update(): void {
    choice.update();
    const [chosen, isOwn] = [current(), isOwner()];
    if (isOwn && !wasOwn) owner.open = true;
    wasOwn = isOwn;
    whose.hidden = isOwn;
    const other = chosen?.session ? "A session key cannot add or revoke keys" : chosen ? `You trade as ${brief(chosen.address, 4)}, another account` : "Nobody is chosen";
    setText(whose, `${other}: choose the key of this account, which signs for it.`);
    adding.show(isOwn, busy);
    if (account) keys.show(account, isOwn && !busy);
  }

  return {
    element,
    show(loaded: Account): void {
      account = loaded;
      update();
    },
    update,
    close() {
      stop();
      choice.close();
      adding.close();
    },
  };
}

function keysTable(live: Live, address: string, does: { revoke: (one: SessionBody) => void; renew: (one: SessionBody) => void; forget: (key: string) => void }) {
  let height = 0;
  let isOwn = false;
  // Kept by key, so that the focus stays on a button while blocks come.
  const codes = new Map<string, HTMLElement>();
  const actions = new Map<string, HTMLElement>();
  const shown = table<Row>({
    caption: "Session keys",
    key: (row) => row.key,
    empty: "This account has no session keys.",
    columns: [
      { name: "Slot", class: "number first", cell: ({ on }) => (on ? String(on.slot) : "–") },
      { name: "Key", class: "hex", cell: ({ key }) => code(key) },
      { name: "May", class: "wide", cell: ({ on }) => (on ? SCOPES[on.scope] : "–") },
      { name: "Left of its caps", class: "prose caps", cell: ({ on }) => (on ? capsText(on) : "–") },
      { name: "Timer", cell: ({ on }) => (on ? timer(on) : "–") },
      { name: "Ends", class: "wide", cell: ({ on }) => (on ? until(on.ends) : "–") },
      { name: "State", class: "prose", cell: ({ key, on }) => ({ text: state(key, on) }) },
      { name: "Action", cell: (row) => (isOwn || !row.on ? buttons(row) : "–") },
    ],
  });

  function code(key: string): HTMLElement {
    const known = codes.get(key) ?? copyable(key, brief(key, 4));
    codes.set(key, known);
    return known;
  }

  function buttons({ key, on }: Row): HTMLElement {
    const name = `${key} ${on ? "on" : "off"}`;
    const known = actions.get(name);
    if (known) return known;
    const button = (text: string, label: string, click: () => void) => h("button", { type: "button", class: "plain", "aria-label": label, click }, text);
    const made = on
      ? h("span", { class: "actions" }, button("Renew", `Renew the timer of session key ${on.slot}`, () => does.renew(on)), button("Revoke", `Revoke session key ${on.slot}`, () => does.revoke(on)))
      : button("Forget", `Forget the session key ${brief(key, 4)}`, () => does.forget(key));
    actions.set(name, made);
    return made;
  }

  const capsText = ({ caps }: SessionBody) => caps.map(({ asset, units, used }) => `${money(left(units, used), asset)} of ${money(units, asset)} ${asset}`).join(", ");
  const money = (units: string, asset: string) => whole(units, live.decimals(asset));

  function until(block: string): { text: string; title: string } {
    const blocks = Number(block) - height;
    return { text: blocks < 0 ? "over" : `in ${duration(blocks * live.pace_ms)}`, title: `Up to block ${count(Number(block))}` };
  }

  const timer = ({ alive, ends }: SessionBody) => (alive === ends ? "as it ends" : until(alive));

  function state(key: string, on: SessionBody | null): string {
    const here = keptSessions().some((one) => one.key === key) ? ", in this browser" : "";
    if (!on) return "Made here, and not on the account: it was revoked, or never added";
    return { live: "Live", lapsed: "Timer over: its offers have ended, and it may only cancel", ended: "Over" }[on.status] + here;
  }

  return {
    element: shown.element,
    show(account: Account, owns: boolean): void {
      [height, isOwn] = [Math.max(account.height, live.height), owns];
      const rows: Row[] = (account.sessions ?? []).map((on) => ({ key: on.key, on }));
      const known = new Set(rows.map(({ key }) => key));
      const mine = keptSessions().filter((one) => one.account === address && !known.has(one.key));
      shown.show([...rows, ...mine.map(({ key }) => ({ key, on: null }))]);
    },
  };
}

/** Units that a key may still use; what it bought more than it sold adds to its cap. */
const left = (units: string, used: string): string => (BigInt(units) - BigInt(used)).toString();

type Limits = { network: string; block_interval_ms: number; fee_asset: string };

/** The form for a new key. `act` shows what goes wrong with what it is given. */
function addingForm(live: Live, address: string, act: (work: () => Promise<void>) => Promise<void>) {
  const choices = (legend: string, name: string, ...options: [string, string][]) => {
    const labels = options.map(([value, text], at) => h("label", {}, h("input", { type: "radio", name, value, checked: at === 0, change: draw }), h("span", {}, text)));
    return h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, legend), ...labels);
  };
  const field = (id: string, label: string, attributes: Record<string, string | number | boolean> = {}) => {
    const input = h("input", { id, autocomplete: "off", spellcheck: "false", input: draw, ...attributes });
    return { input, element: h("div", { class: "field" }, h("label", { for: id }, label), input) };
  };
  const passphrase = field("session-passphrase", "Passphrase", { type: "password", autocomplete: "new-password", minlength: LEAST_PASSPHRASE });
  const key = field("session-key", "Its public key", { class: "hex" });
  const bytes = h("p", { class: "caption to-sign" });
  const possession = field("session-possession", "Its agreement", { class: "hex" });
  const hours = field("session-hours", "Lasts, hours", { inputmode: "decimal", value: "24" });
  const minutes = field("session-minutes", "Timer, minutes", { inputmode: "decimal", placeholder: "none" });
  const caps = h("div", { role: "group", "aria-label": "Caps" }, h("p", { class: "quiet" }, "The most that it may use, fees included"));
  const more = h("button", { type: "button", class: "plain", click: () => addCap(unused()) }, "Add an asset");
  const says = h("p", { class: "preview quiet", "aria-live": "polite" });
  const button = h("button", { type: "submit" }, "Add key");
  const origins = choices("Where the key is made", "session-origin", ["here", "Made in this browser"], ["pasted", "A program's key"]);
  const scopes = choices("What the key may do", "session-scope", ["trade", "Trade and cancel"], ["cancel", "Cancel only"]);
  const heading = h("h3", {}, "A new key");
  const fields = [passphrase.element, key.element, bytes, possession.element, hours.element, minutes.element, caps, more];
  const element = h("form", { class: "session-form", hidden: true, submit }, heading, h("div", { class: "choices" }, origins, scopes), ...fields, says, button);
  const rows: { element: HTMLElement; asset: HTMLSelectElement; most: HTMLInputElement }[] = [];
  let limits: Limits | null = null;
  let slot = 1;

  const chosen = (name: string) => element.querySelector<HTMLInputElement>(`input[name=${name}]:checked`)?.value;
  const chain = (): Chain => ({ height: live.height, block_interval_ms: live.pace_ms, fee_asset: limits?.fee_asset ?? "" });
  const unused = () => [...live.assets.keys()].find((symbol) => rows.every(({ asset }) => asset.value !== symbol)) ?? "";

  function addCap(symbol: string): void {
    const at = rows.length + 1;
    const options = [...live.assets.keys()].map((one) => h("option", { value: one, selected: one === symbol }, one));
    const asset = h("select", { "aria-label": `Asset of cap ${at}`, change: draw }, ...options);
    const most = h("input", { "aria-label": `The most of cap ${at}`, inputmode: "decimal", autocomplete: "off", placeholder: "at most", input: draw });
    const remove = h("button", { type: "button", class: "plain", "aria-label": `Remove cap ${at}`, click: () => removeCap(row) }, "Remove");
    const row = { asset, most, element: h("div", { class: "cap" }, asset, most, remove) };
    rows.push(row);
    caps.append(row.element);
    draw();
  }

  function removeCap(row: (typeof rows)[number]): void {
    rows.splice(rows.indexOf(row), 1);
    row.element.remove();
    more.focus();
    draw();
  }

  function terms() {
    const written = { scope: (chosen("session-scope") ?? "trade") as Scope, hours: hours.input.value, minutes: minutes.input.value };
    return keyTermsOf({ ...written, caps: rows.map(({ asset, most }) => ({ asset: asset.value, most: most.value })) }, chain(), live.assets);
  }

  function draw(): void {
    const isHere = chosen("session-origin") !== "pasted";
    passphrase.element.hidden = !isHere;
    passphrase.input.required = isHere;
    for (const one of [key, possession]) {
      one.element.hidden = isHere;
      one.input.required = !isHere;
    }
    const toSign = limits && toAgree(key.input.value, limits.network, address, slot);
    bytes.hidden = isHere || toSign === null;
    if (!bytes.hidden && bytes.dataset["of"] !== String(toSign)) {
      bytes.dataset["of"] = String(toSign);
      fill(bytes, `Its program agrees to slot ${slot} by its signature of these bytes (agree of the client libraries): `, copyable(String(toSign), brief(String(toSign), 8)));
    }
    more.hidden = rows.length >= 8 || rows.length >= live.assets.size;
    const asks = terms();
    setText(says, typeof asks === "string" ? (rows.every(({ most }) => most.value === "") ? `Write the most that the key may use of each asset, fees in ${chain().fee_asset} included.` : asks) : inWords(asks));
  }

  function inWords({ scope, ends, alive, caps }: Exclude<ReturnType<typeof keyTermsOf>, string>): string {
    const list = caps.map(({ asset, units }) => `${whole(units, live.decimals(asset))} ${asset}`).join(", ");
    const does = scope === "trade" ? `The key places orders and cancels, and uses at most ${list}, fees included; of other assets it can only buy.` : `The key cancels offers and does nothing else; fees take at most ${list}.`;
    const timer = alive === ends ? "" : ` Its offers end after ${duration((alive - live.height) * live.pace_ms)}, unless its timer is raised before.`;
    return `${does}${timer} It ends after about ${duration((ends - live.height) * live.pace_ms)}.`;
  }

  // It is asked again before anything is sent, which says what is wrong.
  const learning = refresh(learn, () => undefined, LEARN_PAUSE_MS);

  async function learn(signal?: AbortSignal): Promise<void> {
    limits = await get<Limits>("limits", signal);
    slot = await nextSlot(address);
    if (rows.length === 0) [limits.fee_asset, unusedBeside(limits.fee_asset, live.assets)].filter(Boolean).forEach(addCap);
    draw();
  }

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    await act(add);
  }

  async function add(): Promise<void> {
    await learn();
    const [asks, trader] = [terms(), current()];
    if (typeof asks === "string") throw new Told(asks);
    if (!trader || !limits) return;
    if (chosen("session-origin") === "pasted") await addSession(trader, asks, adopted(limits.network), live.assets, live.height);
    else await addMade(limits.network, asks);
    for (const one of [passphrase, key, possession]) one.input.value = "";
    for (const { most } of rows) most.value = "";
  }

  function adopted(network: string): Adding {
    const found = pasted(key.input.value, possession.input.value, slot);
    if (typeof found === "string") throw new Told(found);
    if (!hasAgreed(found, network, address)) throw new Told(`The agreement is no signature of this key for slot ${slot} of this account: have its program sign the bytes that are shown.`);
    return found;
  }

  /** A key that was surely not added is forgotten; of one that may have been, the secret stays. */
  async function addMade(network: string, asks: Exclude<ReturnType<typeof keyTermsOf>, string>): Promise<void> {
    const trader = current();
    if (!trader) return;
    const made = await keepSession(passphrase.input.value, network, address);
    try {
      await addSession(trader, asks, await agreed(made, network, address), live.assets, live.height);
    } catch (error) {
      const isDoubtful = error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);
      if (!isDoubtful) forgetSession(made.public);
      throw error;
    }
  }

  return {
    element,
    show(isOwn: boolean, isBusy: boolean): void {
      if (isOwn && element.hidden) learning.request();
      element.hidden = !isOwn;
      button.disabled = isBusy;
      draw();
    },
    close: () => learning.close(),
    /** The height to which a timer is raised: by the minutes that are written, or to the end of its key. */
    timer({ ends }: SessionBody): number {
      const blocks = heightsOf(minutes.input.value, 60_000, chain());
      return Math.min(Number(ends), blocks === null ? Number(ends) : live.height + blocks);
    },
  };
}

/** Another asset to begin with: an order needs two. */
const unusedBeside = (first: string, assets: Map<string, Asset>): string => [...assets.keys()].find((symbol) => symbol !== first) ?? "";
