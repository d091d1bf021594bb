/** A pair's batch prices over time with the volume of each batch below. */
import uPlot from "uplot";
import { fromUnits, parseDecimal, toNumber } from "@walras/client/decimal";
import { formatPrice, shorten } from "../amount";
import type { HistoryPoint } from "@walras/client/bodies";
import { clock, dateAndClock } from "../words";
import { axis, chart, colour, tick, tipOf } from "./theme";
import { ABOVE, BELOW, volumeBars } from "./volume";

export type HistoryChart = {
  element: HTMLElement;
  show: (points: HistoryPoint[], base: { symbol: string; decimals: number }, quote: { symbol: string; decimals: number }) => void;
  close: () => void;
};

export function historyChart(height: number): HistoryChart {
  let shown: HistoryPoint[] = [];
  let assets = { base: { symbol: "", decimals: 0 }, quote: { symbol: "", decimals: 0 } };
  const made = chart(
    "history",
    height,
    {
      legend: { show: false },
      padding: [10, 4, 0, 24],
      cursor: { y: false, drag: { x: true, y: false }, points: { size: 6 } },
      scales: { x: { time: true }, y: ABOVE, volume: BELOW },
      axes: [
        axis({ size: 28, space: 80, grid: { show: false }, values: (_u, ticks) => ticks.map((s) => clock(1000 * s)) }),
        axis({ side: 1, size: 64, space: 30, values: (_u, ticks) => ticks.map(tick) }),
      ],
      series: [
        {},
        volumeBars(),
        { stroke: () => colour("accent"), width: 1.75, points: { show: false } },
      ],
      hooks: { setCursor: [(plot) => tell(plot)] },
    },
    [[], [], []],
  );
  const tip = tipOf(made.plot);

  function tell(plot: uPlot): void {
    const point = shown[plot.cursor.idx ?? -1];
    if (!point) return tip(null);
    const { base, quote } = assets;
    const volume = fromUnits(point.base_volume, base.decimals);
    const price = formatPrice(parseDecimal(point.price));
    tip(`${dateAndClock(point.time_ms)}, block ${point.height}\n${price} ${quote.symbol}, ${volume ? shorten(volume) : "–"} ${base.symbol}`);
  }

  return {
    element: made.element,
    show(points, base, quote) {
      shown = points;
      assets = { base, quote };
      const price = (p: HistoryPoint) => parseDecimal(p.price);
      const volume = (p: HistoryPoint) => fromUnits(p.base_volume, base.decimals);
      const number = (value: ReturnType<typeof price>) => (value ? toNumber(value) : null);
      made.plot.setData([
        points.map((p) => p.time_ms / 1000),
        points.map((p) => number(volume(p))),
        points.map((p) => number(price(p))),
      ]);
      const last = points.at(-1);
      if (last) made.describe(`Batch prices of ${base.symbol} in ${quote.symbol} over ${points.length} batches; the latest is ${formatPrice(price(last))}.`);
    },
    close: made.close,
  };
}
