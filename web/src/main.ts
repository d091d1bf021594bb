/** The page: a frame that stays, and in it the view that the address bar names. */
import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./controls.css";
import "./terminal.css";
import { h, setText } from "./dom";
import { icon, type Icon } from "./icons";
import { Live } from "./live";
import { find, href, parseRoute, type Route } from "./router";
import { accountView } from "./views/account";
import { blockView } from "./views/block";
import { blocksView } from "./views/blocks";
import { ethereumView } from "./views/ethereum";
import { fairnessView } from "./views/fairness";
import { homeView } from "./views/home";
import { laneView } from "./views/lane";
import { marketView } from "./views/market";
import { marketsView } from "./views/markets";
import { networkView } from "./views/network";
import { transactionView } from "./views/transaction";
import { validatorsView } from "./views/validators";
import { venueView } from "./views/venue";
import type { View } from "./views/view";
import { count, explain } from "./words";

const live = new Live(() => new WebSocket(streamAddress()));
const main = h("main", { id: "main" });
const NETWORK: Route["view"][] = ["network", "blocks", "block", "transaction", "ethereum", "validators", "fairness"];
const links = [
  navLink("Home", href.home, ["home"], "home"),
  navLink("Markets", href.markets, ["markets", "market"], "markets"),
  navLink("Continuous", href.venues, ["venue"], "continuous"),
  navLink("Payments", href.lane, ["lane"], "payments"),
  navLink("Account", href.accounts, ["account"], "account"),
  navLink("Network", href.network, NETWORK, "network"),
];
/** What is known of the nodes themselves, behind *Network*. */
const within = [
  navLink("This node", href.network, ["network"]),
  navLink("Blocks", href.blocks, ["blocks", "block", "transaction", "ethereum"]),
  navLink("Validators", href.validators, ["validators"]),
  navLink("Fairness", href.fairness, ["fairness"]),
];
const inside = h("nav", { class: "inside", "aria-label": "Network", hidden: true }, ...within.map((link) => link.element));
/** Views that fill the window and scroll inside their panels. */
const TERMINALS: Route["view"][] = ["market", "venue"];
const state = connectionState();
const search = searchForm();
const banner = h("p", { class: "banner", role: "alert", hidden: true });

document.body.append(
  h("a", { class: "skip", href: "#main", click: skip }, "Skip to the content"),
  h(
    "header",
    { class: "top" },
    h("a", { class: "brand", href: href.home }, h("img", { src: "./icon.svg", alt: "", width: 24, height: 24 }), "Walras"),
    h("nav", { "aria-label": "Views" }, ...links.map((link) => link.element)),
    search.toggle,
    search.form,
    state.element,
  ),
  banner,
  inside,
  main,
  h("footer", { class: "bottom" }, footer()),
);

let view = show(parseRoute(location.hash));
addEventListener("hashchange", () => {
  view.close();
  view = show(parseRoute(location.hash));
  main.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo(0, 0);
  main.scrollTop = 0;
});
addEventListener("online", () => live.stream.open());
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") live.stream.open();
});
live.onChange(update);
live.open();

function show(route: Route): View {
  const made = makeView(route);
  document.title = `${made.title} · Walras`;
  main.replaceChildren(made.element);
  for (const link of [...links, ...within]) link.mark(route.view);
  inside.hidden = !NETWORK.includes(route.view);
  document.body.classList.toggle("terminal", TERMINALS.includes(route.view));
  search.close();
  guard(() => made.update());
  return made;
}

function makeView(route: Route): View {
  switch (route.view) {
    case "home":
      return homeView(live);
    case "network":
      return networkView(live);
    case "markets":
      return marketsView(live);
    case "market":
      return marketView(live, route.base, route.quote);
    case "blocks":
      return blocksView(live, route.before);
    case "block":
      return blockView(live, route.height);
    case "venue":
      return venueView(live, route.market);
    case "validators":
      return validatorsView(live);
    case "lane":
      return laneView(live);
    case "fairness":
      return fairnessView(live);
    case "account":
      return accountView(live, route.address);
    case "transaction":
      return transactionView(live, route.id);
    case "ethereum":
      return ethereumView(live, route.hash);
    case "unknown":
      return unknownView();
  }
}

function unknownView(): View {
  const text = "There is nothing at this address of the page. The views are linked above.";
  const element = h("div", { class: "view" }, h("h1", { tabindex: -1 }, "Not found"), h("p", {}, text));
  return { title: "Not found", element, update: () => undefined, close: () => undefined };
}

function update(): void {
  state.update();
  guard(() => view.update());
}

/** An answer that is not as documented must not stop the rest of the page. */
function guard(draw: () => void): void {
  try {
    draw();
  } catch (error) {
    banner.hidden = false;
    setText(banner, explain(error));
    console.error(error);
  }
}

function navLink(text: string, to: string, views: Route["view"][], sign?: Icon) {
  const element = h("a", { href: to }, sign ? icon(sign) : null, text);
  return {
    element,
    mark(name: Route["view"]) {
      if (views.includes(name)) element.setAttribute("aria-current", "page");
      else element.removeAttribute("aria-current");
    },
  };
}

/** The sign that the page is live, and the banner that says what is wrong when it is not. */
function connectionState() {
  const text = h("span", { class: "state-text" }, "Connecting");
  const element = h("div", { class: "state", role: "status", "data-state": "connecting" }, h("span", { class: "dot", "aria-hidden": "true" }), text);
  const height = h("span", { class: "state-height", "data-height": "", "aria-hidden": "true" });
  element.append(height);
  return {
    element,
    update() {
      const { connection } = live;
      const stalled = connection.state === "live" ? (live.status?.stalled ?? null) : null;
      element.dataset["state"] = stalled ? "stalled" : connection.state;
      document.documentElement.classList.toggle("stale", connection.state === "waiting");
      setText(text, stalled ? "Stalled" : { connecting: "Connecting", live: "Live", waiting: "Reconnecting" }[connection.state]);
      setText(height, live.height > 0 ? count(live.height) : "");
      height.dataset["height"] = String(live.height);
      const problem = live.problem ? explain(live.problem) : stalled;
      const trouble = connection.state === "waiting" ? reconnecting(connection.reason) : problem;
      banner.hidden = trouble === null;
      if (trouble) setText(banner, trouble);
    },
  };
}

function reconnecting(reason: string): string {
  const kept = live.height > 0 ? ` What is shown is as of block ${count(live.height)}.` : "";
  return `Reconnecting. ${reason}${kept}`;
}

/** The search; on a phone it is an icon until it is needed. */
function searchForm() {
  const input = h("input", {
    type: "search",
    name: "search",
    "aria-label": "Find a block, market, account or transaction",
    placeholder: "Block, EUR/USD, 0x…",
    autocomplete: "off",
    spellcheck: "false",
    input: () => input.setCustomValidity(""),
  });
  const form = h("form", { class: "search", role: "search", id: "search", submit: go });
  form.append(input);
  const toggle = h("button", { type: "button", class: "search-toggle", "aria-label": "Search", "aria-expanded": "false", "aria-controls": "search", click: () => open(!form.classList.contains("open")) });
  toggle.append(icon("search"));

  function open(wanted: boolean): void {
    form.classList.toggle("open", wanted);
    toggle.setAttribute("aria-expanded", String(wanted));
    if (wanted) input.focus();
  }

  function go(event: Event): void {
    event.preventDefault();
    if (input.value.trim() === "") return;
    const there = find(input.value, [...live.assets.keys()]);
    input.setCustomValidity(there ? "" : "Not a block height, a pair such as EUR/USD, an address or a transaction id");
    if (!there) return void input.reportValidity();
    input.value = "";
    location.hash = there;
  }

  return { form, toggle, close: () => open(false) };
}

function footer(): HTMLElement {
  const text = h("span", {});
  live.onChange(() => {
    const { status } = live;
    if (status) setText(text, `Chain ${status.chain}, engine ${status.engine}, version ${status.version}. `);
  });
  return h("p", {}, text, h("a", { href: "./v1/openapi.json" }, "Interface description"));
}

/** The skip link moves the focus without changing the view's address. */
function skip(event: Event): void {
  event.preventDefault();
  main.querySelector("h1")?.focus();
}

function streamAddress(): string {
  const url = new URL("v1/stream", document.baseURI);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}
