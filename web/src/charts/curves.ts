/** A batch's picture for one pair: what is offered and what would be taken at each price, and the price that cleared. */
import uPlot from "uplot";
import { formatShort } from "../amount";
import type { Curves } from "@walras/client/bodies";
import { aligned, amountsAt, heightOf, shapeOf, windowOf, type Shape, type Window } from "./shape";
import { axis, chart, colour, pixels, plate, tick, tipOf } from "./theme";

type Counted = { symbol: string; decimals: number };
type Words = (curves: Curves, shape: Shape, base: Counted, quote: Counted) => string;

export type CurvesChart = {
  element: HTMLElement;
  show: (curves: Curves, base: Counted, quote: Counted) => void;
  zoom: (window: Window) => void;
  close: () => void;
};

/** `words` is what is said in place of the picture. */
export function curvesChart(name = "curves", words: Words = describe): CurvesChart {
  let shape: Shape = { price: null, label: "", supply: [], demand: [] };
  let window: Window = "auto";
  let symbol = "";

  const options: Omit<uPlot.Options, "width" | "height"> = {
    legend: { show: false },
    padding: [22, 12, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => windowOf(shape, window) },
      y: { range: () => [0, heightOf(shape, window) * 1.06 || 1] },
    },
    axes: [
      axis({ size: 28, space: 70, values: (_u, ticks) => ticks.map((value) => tick(value)) }),
      axis({ size: 52, space: 32, values: (_u, ticks) => ticks.map((value) => tick(value)) }),
    ],
    series: [{}, stepSeries("supply", 1), stepSeries("demand", -1)],
    hooks: { draw: [(plot) => drawPrice(plot, shape)], setCursor: [(plot) => tell(plot)] },
  };
  const made = chart(name, null, options, [[0], [0], [0]]);
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
      shape = shapeOf(curves, base.decimals);
      symbol = base.symbol;
      made.plot.setData(aligned(shape, windowOf(shape, window)));
      made.describe(words(curves, shape, base, quote));
      made.element.dataset["price"] = shape.label;
    },
    zoom(chosen) {
      window = chosen;
      made.plot.setData(aligned(shape, windowOf(shape, window)));
    },
    close: made.close,
  };
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

function describe(curves: Curves, shape: Shape, base: Counted, quote: Counted): string {
  return (
    `Supply and demand of ${base.symbol} for ${quote.symbol} in the batch of block ${curves.height}. ` +
    `${curves.price === null ? "No trade;" : "Batch price"} ${shape.label} ${quote.symbol} per ${base.symbol}; ` +
    `${formatShort(curves.sold, base.decimals)} ${base.symbol} sold, ` +
    `${formatShort(curves.bought, base.decimals)} ${base.symbol} bought.`
  );
}
