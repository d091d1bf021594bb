/** The picture of a batch for one pair, kept at the latest batch while it is looked at. */
import { parseDecimal } from "@walras/client/decimal";
import { formatAmount, formatPrice, formatShort } from "../amount";
import type { Curves } from "@walras/client/bodies";
import { get, path } from "../api";
import { curvesChart } from "../charts/curves";
import { WINDOWS, type Window } from "../charts/shape";
import { legend } from "../charts/theme";
import { facts, h, notice } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { tells } from "../words";

const PAUSE_MS = 500;
const POINTS = 200;

export type CurvesPart = {
  elements: HTMLElement[];
  /** The choice of the prices that are shown. */
  choice: HTMLElement;
  /** Whether anybody looks at it: otherwise nothing is loaded. */
  look: (wanted: boolean) => void;
  close: () => void;
};

export function curvesPart(live: Live, base: string, quote: string): CurvesPart {
  const picture = curvesChart();
  const [problem, empty] = [notice(), notice()];
  const numbers = facts({ price: "Batch price", sold: "Sold", bought: "Bought", block: "Block" });
  numbers.element.title =
    "All pairs of a batch clear together at one set of valuations. Where the curves cross beside the price, " +
    `the difference between ${base} sold and bought here is traded through other assets.`;
  const key = legend([
    { name: "Supply: offered at this price or less", colour: "supply" },
    { name: "Demand: wanted at this price or more", colour: "demand" },
    { name: "Batch price", colour: "accent", line: true },
  ]);
  const body = h("div", { class: "curves" }, problem.element, empty.element, picture.element, key, numbers.element);
  let isLooked = false;

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => isLooked && loading.request());

  async function load(signal: AbortSignal): Promise<void> {
    if (live.assets.size === 0) return;
    show(await get<Curves>(`${path("markets", base, quote)}/curves?points=${POINTS}`, signal));
  }

  function show(curves: Curves): void {
    const decimals = { base: live.decimals(base), quote: live.decimals(quote) };
    const none = curves.supply.length + curves.demand.length === 0;
    empty.say(none ? `Nobody offered ${base} for ${quote} or ${quote} for ${base} in the latest batch.` : null);
    picture.show(curves, { symbol: base, decimals: decimals.base }, { symbol: quote, decimals: decimals.quote });
    const price = parseDecimal(curves.price ?? "");
    const indicative = `none: no trade; indicative ${formatPrice(parseDecimal(curves.indicative ?? ""))} ${quote}`;
    numbers.set("price", price ? `${formatPrice(price)} ${quote}` : indicative, curves.price_units ?? "");
    numbers.set("sold", `${formatShort(curves.sold, decimals.base)} ${base}`, formatAmount(curves.sold, decimals.base));
    numbers.set("bought", `${formatShort(curves.bought, decimals.base)} ${base}`, formatAmount(curves.bought, decimals.base));
    numbers.set("block", h("a", { href: href.block(curves.height) }, String(curves.height)));
  }

  return {
    elements: [body],
    choice: zoomChoice((window) => picture.zoom(window)),
    look(wanted) {
      isLooked = wanted;
      if (wanted) loading.request();
    },
    close() {
      stop();
      loading.close();
      picture.close();
    },
  };
}

export function zoomChoice(choose: (window: Window) => void): HTMLElement {
  const names = Object.keys(WINDOWS) as Window[];
  const choices = names.map((name) =>
    h(
      "label",
      {},
      h("input", { type: "radio", name: "zoom", value: name, checked: name === "auto", change: () => choose(name) }),
      h("span", {}, name),
    ),
  );
  return h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Prices shown around the batch price"), ...choices);
}
