/** A batch's picture for one pair: what is offered and what would be taken at each price, and the price that cleared. */
import uPlot from "uplot";
import { humanPrice, formatPrice, formatShort, fromUnits, toNumber } from "../amount";
import type { Curves, CurvePoint } from "../api";
import { axis, chart, colour, pixels, plate, tick, tipOf } from "./theme";

type Point = { x: number; y: number };
type Shape = { price: number | null; label: string; supply: Point[]; demand: Point[] };

/** Half-widths of the window around the batch price, as parts of it. `auto` takes the least that shows most of the curves. */
export const WINDOWS = { auto: null, "±1 %": 0.01, "±5 %": 0.05, "±25 %": 0.25, all: Infinity } as const;
export type Window = keyof typeof WINDOWS;

const CANDIDATES = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5];
/** The part of all points that an automatic window must hold. */
const MOST = 0.8;

/** Both curves' amounts at `price`. */
export function amountsAt(shape: { supply: Point[]; demand: Point[] }, price: number): { supply: number; demand: number } {
  const supply = shape.supply.findLast((point) => point.x <= price)?.y ?? 0;
  const demand = shape.demand.find((point) => point.x >= price)?.y ?? 0;
  return { supply, demand };
}

/** The lowest and highest price to show. */
export function windowOf(shape: { price: number | null; supply: Point[]; demand: Point[] }, window: Window): [number, number] {
  const xs = [...shape.supply, ...shape.demand].map((point) => point.x).sort((a, b) => a - b);
  const [first, last] = [xs[0] ?? 0, xs.at(-1) ?? 1];
  const { price } = shape;
  if (price === null || window === "all") return first < last ? [first, last] : [first * 0.99, last * 1.01 + 1e-12];
  const inside = (w: number) => xs.filter((x) => Math.abs(x / price - 1) <= w).length;
  const half = WINDOWS[window] ?? CANDIDATES.find((w) => inside(w) >= MOST * xs.length) ?? null;
  if (half === null) return [Math.min(first, price), Math.max(last, price)];
  return [price * (1 - half), price * (1 + half)];
}

export type CurvesChart = {
  element: HTMLElement;
  show: (curves: Curves, base: { symbol: string; decimals: number }, quote: { symbol: string; decimals: number }) => void;
  zoom: (window: Window) => void;
  close: () => void;
};

export function curvesChart(height: number, compact = false): CurvesChart {
  let shape: Shape = { price: null, label: "", supply: [], demand: [] };
  let window: Window = "auto";
  let symbol = "";

  const options: Omit<uPlot.Options, "width" | "height"> = {
    legend: { show: false },
    padding: [22, 12, 0, 0],
    cursor: { show: !compact, y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => windowOf(shape, window) },
      y: { range: () => [0, tallest(shape, windowOf(shape, window)) * 1.06 || 1] },
    },
    axes: [
      axis({ space: 70, values: (_u, ticks) => ticks.map((value) => tick(value)) }),
      axis({ size: 52, space: 32, values: (_u, ticks) => ticks.map((value) => tick(value)) }),
    ],
    series: [
      {},
      stepSeries("supply", 1),
      stepSeries("demand", -1),
    ],
    hooks: { draw: [(plot) => drawPrice(plot, shape)], setCursor: compact ? [] : [(plot) => tell(plot)] },
  };
  const made = chart("curves", height, options, [[0], [0], [0]]);
  const tip = tipOf(made.plot);

  function tell(plot: uPlot): void {
    if (shape.supply.length + shape.demand.length === 0) return tip(null);
    const price = plot.posToVal(plot.cursor.left ?? -1, "x");
    const { supply, demand } = amountsAt(shape, price);
    tip(`at ${+price.toPrecision(6)}\n${tick(supply)} ${symbol} offered\n${tick(demand)} ${symbol} wanted`);
  }

  return {
    element: made.element,
    show(curves, base, quote) {
      shape = shapeOf(curves, base.decimals, quote.decimals);
      symbol = base.symbol;
      made.plot.setData(aligned(shape, windowOf(shape, window)));
      made.describe(describe(curves, shape, base, quote));
      made.element.dataset["price"] = shape.label;
    },
    zoom(chosen) {
      window = chosen;
      made.plot.setData(aligned(shape, windowOf(shape, window)));
    },
    close: made.close,
  };
}

function shapeOf(curves: Curves, baseDecimals: number, quoteDecimals: number): Shape {
  const price = curves.price === null ? null : humanPrice(curves.price, baseDecimals, quoteDecimals);
  const points = (list: CurvePoint[]) => list.flatMap((point) => toPoint(point, baseDecimals, quoteDecimals));
  return {
    price: price && toNumber(price),
    label: formatPrice(price),
    supply: points(curves.supply),
    demand: points(curves.demand),
  };
}

function toPoint(point: CurvePoint, baseDecimals: number, quoteDecimals: number): Point[] {
  const price = humanPrice(point.price, baseDecimals, quoteDecimals);
  const amount = fromUnits(point.amount, baseDecimals);
  return price && amount ? [{ x: toNumber(price), y: toNumber(amount) }] : [];
}

/**
 * Both curves over one list of prices from `low` to `high`. Supply holds its value to the right of each point and is 0
 * before its first; demand holds its value to the left and is 0 after its last.
 */
export function aligned(shape: { supply: Point[]; demand: Point[] }, [low, high]: [number, number]): uPlot.AlignedData {
  const between = [...shape.supply, ...shape.demand].map((point) => point.x).filter((x) => x > low && x < high);
  const xs = [...new Set([low, ...between, high])].sort((a, b) => a - b);
  let [s, d] = [0, 0];
  const offered = xs.map((x) => {
    while (s < shape.supply.length && shape.supply[s]!.x <= x) s += 1;
    return shape.supply[s - 1]?.y ?? 0;
  });
  const wanted = xs.map((x) => {
    while (d < shape.demand.length && shape.demand[d]!.x < x) d += 1;
    return shape.demand[d]?.y ?? 0;
  });
  return [xs, offered, wanted];
}

function tallest(shape: Shape, [low, high]: [number, number]): number {
  return Math.max(amountsAt(shape, high).supply, amountsAt(shape, low).demand);
}

function stepSeries(name: "supply" | "demand", align: 1 | -1): uPlot.Series {
  return {
    label: name,
    stroke: () => colour(name),
    fill: () => colour(`${name}-wash`),
    width: 2,
    points: { show: false },
    ...(uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align }) } : {}),
  };
}

function drawPrice(plot: uPlot, { price, label }: Shape): void {
  if (price === null) return;
  const { ctx, bbox } = plot;
  const px = pixels(plot);
  const x = plot.valToPos(price, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = colour("accent");
  ctx.lineWidth = 1.5 * px;
  ctx.setLineDash([5 * px, 4 * px]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
  plate(plot, label, x, 11 * px, colour("accent"));
}

function describe(curves: Curves, shape: Shape, base: { symbol: string; decimals: number }, quote: { symbol: string }): string {
  return (
    `Supply and demand of ${base.symbol} for ${quote.symbol} in the batch of block ${curves.height}. ` +
    `Batch price ${shape.label} ${quote.symbol} per ${base.symbol}; ` +
    `${formatShort(curves.sold, base.decimals)} ${base.symbol} sold, ` +
    `${formatShort(curves.bought, base.decimals)} ${base.symbol} bought.`
  );
}
