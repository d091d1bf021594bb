/** The latest blocks as bars: transactions with the rate beside them, and the time each stage took. */
import uPlot from "uplot";
import type { Block } from "@walras/client/bodies";
import { clock, milliseconds, rate, stageName } from "../words";
import { rates, stagesOf, sums, total } from "./series";
import { axis, chart, colour, legend, tick, tipOf } from "./theme";

const BAR_BLOCKS_MAX = 60;
export const STAGE_COLOURS = 8;

export type BlocksChart = { element: HTMLElement; show: (blocks: Block[]) => void; close: () => void };

export function throughputChart(height: number): BlocksChart {
  let shown: Block[] = [];
  const made = chart(
    "throughput",
    height,
    {
      legend: { show: false },
      padding: [8, 4, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: aroundBars }, y: { range: fromZero }, rate: { range: fromZero } },
      axes: [
        timeAxis(() => shown),
        axis({ size: 46, space: 30, values: (_u, ticks) => ticks.map(tick) }),
        axis({ scale: "rate", side: 1, size: 46, space: 30, grid: { show: false }, values: (_u, ticks) => ticks.map(tick) }),
      ],
      series: [{}, bars("warn"), bars("bar"), { scale: "rate", stroke: () => colour("accent"), width: 2, points: { show: false }, spanGaps: true }],
      hooks: { setCursor: [(plot) => tell(plot)] },
    },
    [[], [], [], []],
  );
  const tip = tipOf(made.plot);
  const element = document.createElement("div");
  element.append(
    made.element,
    legend([
      { name: "Transactions applied", colour: "bar" },
      { name: "refused", colour: "warn" },
      { name: "Per second, over ten blocks", colour: "accent", line: true },
    ]),
  );

  function tell(plot: uPlot): void {
    const block = shown[plot.cursor.idx ?? -1];
    tip(block ? `Block ${block.height}, ${clock(block.time_ms)}: ${block.transactions} transactions, ${block.refused} refused` : null);
  }

  return {
    element,
    show(blocks) {
      const perSecond = rates(blocks).slice(-BAR_BLOCKS_MAX);
      shown = blocks.slice(-BAR_BLOCKS_MAX);
      made.plot.setData([
        shown.map((block) => block.height),
        shown.map((block) => block.transactions),
        shown.map((block) => block.applied),
        perSecond,
      ]);
      made.describe(
        `Transactions of the latest ${shown.length} blocks; about ${rate(perSecond.at(-1) ?? undefined)} per second at the end.`,
      );
    },
    close: made.close,
  };
}

export function stageColour(index: number): string {
  return `stage-${index % STAGE_COLOURS}`;
}

/** Stacked bars of the stages; the chart is made anew when another set of stages appears. */
export function stagesChart(height: number): BlocksChart {
  const element = document.createElement("div");
  let current: { stages: string[]; show: (blocks: Block[]) => void; close: () => void } | null = null;
  return {
    element,
    show(blocks) {
      const stages = stagesOf(blocks);
      if (current?.stages.join() !== stages.join()) {
        current?.close();
        current = makeStages(element, stages, height);
      }
      current.show(blocks);
    },
    close: () => current?.close(),
  };
}

function makeStages(element: HTMLElement, stages: string[], height: number) {
  let shown: Block[] = [];
  // The tallest sum is drawn first and each shorter one over it.
  const series = stages.map((_, i) => bars(stageColour(i))).reverse();
  const made = chart(
    "stages",
    height,
    {
      legend: { show: false },
      padding: [8, 24, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: aroundBars }, y: { range: fromZero } },
      axes: [timeAxis(() => shown), axis({ size: 46, space: 30, values: (_u, ticks) => ticks.map((v) => `${tick(v)}`) })],
      series: [{}, ...series],
      hooks: { setCursor: [(plot) => tell(plot)] },
    },
    [[], ...series.map(() => [])],
  );
  const tip = tipOf(made.plot);
  element.replaceChildren(made.element, legend(stages.map((stage, i) => ({ name: stageName(stage), colour: stageColour(i) }))));

  function tell(plot: uPlot): void {
    const block = shown[plot.cursor.idx ?? -1];
    if (!block) return tip(null);
    const parts = stages.map((stage) => `${stageName(stage)} ${milliseconds(block.stages_ms[stage] ?? 0)}`);
    tip([`Block ${block.height}: ${milliseconds(total(block))}`, ...parts].join("\n"));
  }

  return {
    stages,
    show(blocks: Block[]) {
      shown = blocks.slice(-BAR_BLOCKS_MAX);
      made.plot.setData([shown.map((block) => block.height), ...sums(shown, stages).reverse()]);
      const latest = shown.at(-1);
      if (latest) made.describe(`Time of each stage in the latest blocks, in milliseconds; block ${latest.height} took ${milliseconds(total(latest))}.`);
    },
    close: made.close,
  };
}

function bars(name: string): uPlot.Series {
  return {
    stroke: () => colour(name),
    fill: () => colour(name),
    width: 0,
    points: { show: false },
    ...(uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.78, 14], gap: 0 }) } : {}),
  };
}

function timeAxis(blocks: () => Block[]): uPlot.Axis {
  const label = (height: number): string => {
    const block = blocks().find((candidate) => candidate.height === height);
    return block ? clock(block.time_ms) : "";
  };
  return axis({ size: 28, space: 80, incrs: [1, 2, 5, 10, 20, 50, 100], grid: { show: false }, values: (_u, ticks) => ticks.map(label) });
}

/** Room for half a bar at both ends, and for a few blocks where there are few. */
function aroundBars(_plot: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  return [Math.min(min, max - 20) - 0.6, max + 0.6];
}

function fromZero(_plot: uPlot, _min: number | null, max: number | null): [number, number] {
  return [0, max ? max * 1.08 : 1];
}
