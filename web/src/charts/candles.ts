/** A pair's prices by interval: a body from open to close, a wick from low to high, and the volume below. */
import uPlot from "uplot";
import { parseDecimal } from "@walras/client/decimal";
import { formatPrice, shorten } from "../amount";
import type { Candle } from "@walras/client/bodies";
import { clock, dateAndClock } from "../words";
import { drawn, type Drawn } from "./bodies";
import { axis, chart, colour, pixels, tick, tipOf } from "./theme";
import { ABOVE, BELOW, volumeBars } from "./volume";

export type CandlesChart = {
  element: HTMLElement;
  show: (candles: Candle[], interval_ms: number, base: { symbol: string; decimals: number }, quote: { symbol: string; decimals: number }) => void;
  close: () => void;
};

/** Least and greatest width of a body, in pixels of the page. */
const BODY_PX: [number, number] = [1, 14];
/** Part of an interval that a body is wide. */
const BODY_PART = 0.7;

export function candlesChart(height: number): CandlesChart {
  let shown: Drawn[] = [];
  let interval_ms = 60_000;
  let assets = { base: { symbol: "", decimals: 0 }, quote: { symbol: "", decimals: 0 } };
  const made = chart(
    "candles",
    height,
    {
      legend: { show: false },
      padding: [10, 4, 0, 24],
      cursor: { y: false, drag: { x: true, y: false }, points: { show: false } },
      scales: {
        x: { time: true, range: (_u, min, max) => [min - interval_ms / 1000, max + interval_ms / 1000] },
        y: ABOVE,
        volume: BELOW,
      },
      axes: [
        axis({ size: 28, space: 80, grid: { show: false }, values: (_u, ticks) => ticks.map((s) => stamp(1000 * s)) }),
        axis({ side: 1, size: 64, space: 30, values: (_u, ticks) => ticks.map(tick) }),
      ],
      series: [
        {},
        volumeBars(),
        { stroke: () => "transparent", points: { show: false } },
        { stroke: () => "transparent", points: { show: false } },
      ],
      hooks: { draw: [(plot) => draw(plot)], setCursor: [(plot) => tell(plot)] },
    },
    [[], [], [], []],
  );
  const tip = tipOf(made.plot);

  const stamp = (ms: number) => (interval_ms < 86_400_000 ? clock(ms) : new Date(ms).toISOString().slice(5, 10));

  function draw(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const px = pixels(plot);
    const across = (ms: number) => plot.valToPos(ms / 1000, "x", true);
    const up = (price: number) => plot.valToPos(price, "y", true);
    const step = Math.abs(across(interval_ms) - across(0));
    const width = Math.max(BODY_PX[0] * px, Math.min(BODY_PX[1] * px, step * BODY_PART));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const candle of shown) {
      const paint = colour(candle.close < candle.open ? "supply" : "demand");
      const x = Math.round(across(candle.at));
      const [top, bottom] = [Math.max(candle.open, candle.close), Math.min(candle.open, candle.close)].map(up) as [number, number];
      ctx.fillStyle = paint;
      ctx.fillRect(x - px / 2, up(candle.high), px, up(candle.low) - up(candle.high));
      ctx.fillRect(x - width / 2, top, width, Math.max(px, bottom - top));
    }
    ctx.restore();
  }

  function tell(plot: uPlot): void {
    const candle = shown[plot.cursor.idx ?? -1];
    if (!candle) return tip(null);
    const { base, quote } = assets;
    const price = (value: number) => formatPrice(parseDecimal(String(value)));
    const volume = parseDecimal(String(candle.volume));
    tip(
      `${dateAndClock(candle.at)}\nopen ${price(candle.open)}, high ${price(candle.high)}, low ${price(candle.low)}, ` +
        `close ${price(candle.close)} ${quote.symbol}\n${volume ? shorten(volume) : "–"} ${base.symbol}`,
    );
  }

  return {
    element: made.element,
    show(candles, interval, base, quote) {
      shown = drawn(candles, base.decimals);
      interval_ms = interval;
      assets = { base, quote };
      made.plot.setData([
        shown.map((candle) => candle.at / 1000),
        shown.map((candle) => candle.volume),
        shown.map((candle) => candle.low),
        shown.map((candle) => candle.high),
      ]);
      const last = candles.at(-1);
      made.describe(
        last
          ? `Candles of ${base.symbol} in ${quote.symbol}: ${candles.length} intervals; the latest closes at ${formatPrice(parseDecimal(last.close))}.`
          : `No candles of ${base.symbol} in ${quote.symbol} yet.`,
      );
    },
    close: made.close,
  };
}
