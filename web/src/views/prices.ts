/** A pair's prices over time: batch by batch, or as candles of an interval; and the figures of the last day. */
import { formatPrice, formatShort } from "../amount";
import type { Candle, Candles, HistoryPoint } from "@walras/client/bodies";
import { get, path } from "../api";
import { candlesChart } from "../charts/candles";
import { historyChart } from "../charts/history";
import { facts, h, notice, panel } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { percent, tells } from "../words";
import { HOURS, dayOf } from "./day";

/** The intervals of candles, by name, in milliseconds. */
const INTERVALS = { "1m": 60_000, "5m": 300_000, "15m": 900_000, "1h": 3_600_000, "4h": 14_400_000, "1d": 86_400_000 } as const;
type Interval = keyof typeof INTERVALS;
type Choice = "batches" | Interval;

const PAUSE_MS = 5_000;
const CANDLES = 200;

export type PricesPanel = {
  element: HTMLElement;
  /** The figures of the last day, for the head of the page. */
  day: HTMLElement;
  show: (points: HistoryPoint[]) => void;
  close: () => void;
};

export function pricesPanel(live: Live, base: string, quote: string, height: number): PricesPanel {
  let choice: Choice = "batches";
  const batches = historyChart(height);
  const candles = candlesChart(height);
  const problem = notice();
  const none = h("p", { class: "empty", hidden: true }, "No interval has a trade yet.");
  const day = facts({ change: "24 h", high: "High", low: "Low", volume: "Volume" });
  day.element.classList.add("day");
  candles.element.hidden = true;
  const element = panel("Prices", { class: "prices", aside: choices() }, problem.element, none, batches.element, candles.element);

  const loading = refresh(loadCandles, tells(problem), PAUSE_MS);
  const dayLoading = refresh(loadDay, tells(problem), PAUSE_MS);
  const stop = live.onBlock(() => {
    if (choice !== "batches") loading.request();
    dayLoading.request();
  });
  dayLoading.request();

  const asset = (symbol: string) => ({ symbol, decimals: live.decimals(symbol) });

  async function ask(interval: Interval, limit: number, signal: AbortSignal): Promise<Candle[]> {
    const asked = `${path("markets", base, quote)}/candles?interval=${interval}&limit=${limit}`;
    return (await get<Candles>(asked, signal)).candles;
  }

  async function loadCandles(signal: AbortSignal): Promise<void> {
    const interval = choice;
    if (interval === "batches" || live.assets.size === 0) return;
    const answer = await ask(interval, CANDLES, signal);
    if (choice !== interval) return;
    candles.show(answer, INTERVALS[interval], asset(base), asset(quote));
    none.hidden = answer.length > 0;
  }

  async function loadDay(signal: AbortSignal): Promise<void> {
    if (live.assets.size === 0) return;
    const hours = await ask("1h", HOURS, signal);
    const figures = dayOf(hours, live.now_ms);
    if (!figures) return;
    const { text, direction } = percent(figures.change);
    day.set("change", h("span", { class: direction }, text), `since ${formatPrice(figures.open)} ${quote}`);
    day.set("high", `${formatPrice(figures.high)}`);
    day.set("low", `${formatPrice(figures.low)}`);
    day.set("volume", `${formatShort(figures.volume, live.decimals(base))} ${base}`);
  }

  function choices(): HTMLElement {
    const names: Choice[] = ["batches", ...(Object.keys(INTERVALS) as Interval[])];
    const one = (name: Choice) =>
      h(
        "label",
        {},
        h("input", { type: "radio", name: "interval", value: name, checked: name === choice, change: () => choose(name) }),
        h("span", {}, name === "batches" ? "Batches" : name),
      );
    return h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Prices by"), ...names.map(one));
  }

  function choose(name: Choice): void {
    choice = name;
    batches.element.hidden = name !== "batches";
    candles.element.hidden = name === "batches";
    none.hidden = true;
    if (name !== "batches") {
      candles.show([], INTERVALS[name], asset(base), asset(quote));
      loading.request();
    }
  }

  return {
    element,
    day: day.element,
    show: (points) => batches.show(points, asset(base), asset(quote)),
    close() {
      stop();
      loading.close();
      dayLoading.close();
      batches.close();
      candles.close();
    },
  };
}
