/** The picture of a batch for one pair, kept at the latest batch. */
import { parseDecimal } from "@walras/client/decimal";
import { formatAmount, formatPrice, formatShort } from "../amount";
import type { Curves } from "@walras/client/bodies";
import { get, path } from "../api";
import { curvesChart } from "../charts/curves";
import { WINDOWS, type Window } from "../charts/shape";
import { legend } from "../charts/theme";
import { facts, h, notice, panel, setText } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { tells } from "../words";

const PAUSE_MS = 500;
const POINTS = 200;

export type CurvesPanel = {
  element: HTMLElement;
  pair: () => [string, string] | null;
  choose: (base: string, quote: string) => void;
  close: () => void;
};

/** Compact: for the overview, with the pair's name as a link and without choices. */
export function curvesPanel(live: Live, options: { compact: boolean; height: number }): CurvesPanel {
  let pair: [string, string] | null = null;
  const picture = curvesChart(options.height);
  const [problem, empty] = [notice(), notice()];
  const numbers = facts({ price: "Batch price", sold: "Sold", bought: "Bought", block: "Block" });
  const caption = h("p", { class: "caption" });
  const link = h("a", { class: "more" });
  const element = panel(
    "Supply and demand",
    { class: "curves", aside: options.compact ? link : zoomChoice((window) => picture.zoom(window)) },
    problem.element,
    empty.element,
    picture.element,
    legend([
      { name: "Supply: offered at this price or less", colour: "supply" },
      { name: "Demand: wanted at this price or more", colour: "demand" },
      { name: "Batch price", colour: "accent", line: true },
    ]),
    options.compact ? null : numbers.element,
    options.compact ? null : caption,
  );

  const loading = refresh(load, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => loading.request());

  async function load(signal: AbortSignal): Promise<void> {
    if (!pair || live.assets.size === 0) return;
    const [base, quote] = pair;
    const curves = await get<Curves>(`${path("markets", base, quote)}/curves?points=${POINTS}`, signal);
    if (pair[0] === base && pair[1] === quote) show(curves, base, quote);
  }

  function show(curves: Curves, base: string, quote: string): void {
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
    setText(
      caption,
      `All pairs of a batch clear together at one set of valuations. Where the curves cross beside the price, ` +
        `the difference between ${base} sold and bought here is traded through other assets.`,
    );
  }

  return {
    element,
    pair: () => pair,
    choose(base, quote) {
      pair = [base, quote];
      link.href = href.market(base, quote);
      setText(link, `${base}/${quote}`);
      loading.request();
    },
    close() {
      stop();
      loading.close();
      picture.close();
    },
  };
}

function zoomChoice(choose: (window: Window) => void): HTMLElement {
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
