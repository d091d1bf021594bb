/** The chart of a market: its prices as live candles, and beside them, as tabs, other pictures of it. */
import type { Candle, HistoryPoint } from "@walras/client/bodies";
import { fromUnits, parseDecimal, toNumber } from "@walras/client/decimal";
import type { Message } from "@walras/client/stream";
import { candlesOf, drawn, type Drawn, type Traded } from "../charts/bodies";
import { attribution, candlesChart } from "../charts/candles";
import { h, panel, tabs } from "../dom";
import type { Live } from "../live";

/** The intervals of candles, by name, in milliseconds. Those below a minute are made here of the latest trades. */
export const INTERVALS = { "5s": 5_000, "1m": 60_000, "5m": 300_000, "15m": 900_000, "1h": 3_600_000, "4h": 14_400_000, "1d": 86_400_000 } as const;
export type Interval = keyof typeof INTERVALS;
const SHORT: Interval = "5s";
const FIRST: Interval = "1m";
/** With fewer candles of a minute the chart begins with short ones. */
const ENOUGH = 12;

/** A picture of the market, with what chooses within it. */
export type Picture = { title: string; elements: HTMLElement[]; choice: HTMLElement; look: (wanted: boolean) => void };

/** Two pictures as tabs; `foot` stands below both. */
export function picturesPanel(first: Picture, second: Picture, foot: HTMLElement): HTMLElement {
  const part = ({ title, elements, choice }: Picture) => ({ title, elements: [...elements, choice] });
  const parts = tabs("Pictures of the market", { first: part(first), second: part(second) }, (name) => {
    first.look(name === "first");
    second.look(name === "second");
  });
  const choices = h("div", { class: "choices" }, first.choice, second.choice);
  const element = panel("Chart", { class: "pictures", aside: choices }, ...first.elements, ...second.elements, h("div", { class: "chart-foot" }, foot, attribution()));
  element.querySelector("h2")?.replaceWith(parts.element);
  return element;
}

export function pricesPanel(live: Live, base: string, quote: string, other: Picture, foot: HTMLElement) {
  const chart = candlesChart();
  const none = h("p", { class: "empty", hidden: true }, "No interval has a trade yet.");
  const intervals = intervalChoice((name) => choose(name, true));
  const prices = h("div", { class: "prices" }, none, chart.element);
  const element = picturesPanel({ title: "Prices", elements: [prices], choice: intervals.element, look: () => undefined }, other, foot);
  let interval: Interval = FIRST;
  let [isChosen, isDrawn] = [false, false];
  let candles: Candle[] = [];
  let trades: Traded[] = [];
  let stop = () => undefined as void;

  function choose(name: Interval, byHand: boolean): void {
    stop();
    [interval, isChosen, candles] = [name, isChosen || byHand, []];
    intervals.mark(name);
    stop = name === SHORT ? () => undefined : live.stream.subscribe(`candles:${base}/${quote}:${name}`, receive);
    draw();
  }

  function receive(message: Message): void {
    if (message.type === "snapshot" && message.candles) {
      candles = message.candles;
      if (!isChosen && candles.length < ENOUGH) return choose(SHORT, false);
    }
    if (message.type === "candle") candles = [...candles.filter((candle) => candle.time_ms < message.candle.time_ms), message.candle];
    draw();
  }

  function draw(): void {
    if (live.assets.size === 0) return;
    const shown = shownOf(interval);
    chart.show(shown, INTERVALS[interval], base, quote);
    none.hidden = shown.length > 0 || (interval === SHORT && trades.length === 0);
  }

  const shownOf = (name: Interval): Drawn[] => (name === SHORT ? candlesOf(trades, INTERVALS[SHORT]) : drawn(candles, live.decimals(base)));

  choose(FIRST, false);
  return {
    element,
    /** The latest batches, for the short candles. */
    show(points: HistoryPoint[]): void {
      trades = tradesOf(points, live.decimals(base));
      if (interval === SHORT) draw();
    },
    /** Once the assets are known there are amounts to draw. */
    update(): void {
      if (isDrawn || live.assets.size === 0) return;
      isDrawn = true;
      draw();
    },
    close(): void {
      stop();
      chart.close();
    },
  };
}

/** Batches that traded, in whole assets. */
function tradesOf(points: HistoryPoint[], decimals: number): Traded[] {
  return points.flatMap(({ time_ms, price, base_volume }) => {
    const [at, units] = [parseDecimal(price), fromUnits(base_volume, decimals)];
    return at && units ? [{ at: time_ms, price: toNumber(at), volume: toNumber(units) }] : [];
  });
}

export function intervalChoice(choose: (name: Interval) => void, names = Object.keys(INTERVALS) as Interval[]) {
  const one = (name: Interval) => h("label", {}, h("input", { type: "radio", name: "interval", value: name, change: () => choose(name) }), h("span", {}, name));
  const element = h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Candles of"), ...names.map(one));
  return {
    element,
    mark(name: Interval): void {
      for (const input of element.querySelectorAll("input")) input.checked = input.value === name;
    },
  };
}
