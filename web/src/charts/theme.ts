/** What all charts share: the page's colours, sizes that follow the layout, and words for those who do not see them. */
import uPlot from "uplot";
import { h } from "../dom";

const charts = new Set<() => void>();
const scheme = matchMedia("(prefers-color-scheme: dark)");
scheme.addEventListener("change", () => charts.forEach((redraw) => redraw()));

/** The value of one of the page's colours in the present scheme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const FAMILY = 'ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
export const FONT = `11px ${FAMILY}`;

/** Calls `redraw` when the reader's scheme changes; returns the way to stop it. */
export function onScheme(redraw: () => void): () => void {
  charts.add(redraw);
  return () => charts.delete(redraw);
}

/** An axis with the page's quiet lines. */
export function axis(more: uPlot.Axis): uPlot.Axis {
  return {
    stroke: () => colour("quiet"),
    font: FONT,
    labelFont: FONT,
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { stroke: () => colour("line"), width: 1, size: 4 },
    ...more,
  };
}

export type Chart = {
  element: HTMLElement;
  plot: uPlot;
  /** What a screen reader says in place of the picture. */
  describe: (text: string) => void;
  close: () => void;
};

/** A chart as wide as its place and `height` pixels high, or as high as the place that the layout gives it. */
export function chart(
  name: string,
  height: number | null,
  options: Omit<uPlot.Options, "width" | "height">,
  data: uPlot.AlignedData,
): Chart {
  const place = h("div", { class: height === null ? "chart fills" : "chart", "data-chart": name, role: "img", "aria-label": "A chart without data yet" });
  if (height !== null) place.style.height = `${height}px`;
  const plot = new uPlot({ ...options, width: 300, height: height ?? 150 }, data, place);
  plot.root.querySelector("canvas")?.setAttribute("aria-hidden", "true");
  const watch = new ResizeObserver(([entry]) => {
    const [width, high] = [Math.floor(entry?.contentRect.width ?? 0), height ?? Math.floor(entry?.contentRect.height ?? 0)];
    if (width > 0 && high > 0 && (width !== plot.width || high !== plot.height)) plot.setSize({ width, height: high });
  });
  watch.observe(place);
  const stop = onScheme(() => plot.redraw(false));
  return {
    element: place,
    plot,
    describe: (text) => place.setAttribute("aria-label", text),
    close() {
      watch.disconnect();
      stop();
      plot.destroy();
    },
  };
}

/** A legend whose swatches are the page's colours. */
export function legend(entries: { name: string; colour: string; line?: boolean }[]): HTMLElement {
  const items = entries.map(({ name, colour, line }) => {
    const swatch = h("span", { class: line ? "swatch line" : "swatch" });
    swatch.style.setProperty("--swatch", `var(--${colour})`);
    return h("li", {}, swatch, name);
  });
  return h("ul", { class: "legend" }, ...items);
}

/** A short number for an axis. */
export function tick(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e12) return `${+(value / 1e12).toPrecision(4)}T`;
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)}B`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  if (size === 0) return "0";
  return size < 1e-4 ? value.toExponential(1) : String(+value.toPrecision(5));
}

/** Device pixels per page pixel on a uPlot canvas. */
export function pixels(plot: uPlot): number {
  return plot.ctx.canvas.width / plot.width;
}

/** Draws a small plate with text, centred at `x` but kept between the plot's sides, its middle at `y`. */
export function plate(plot: uPlot, text: string, x: number, y: number, background: string): void {
  const { ctx, bbox } = plot;
  const px = pixels(plot);
  ctx.save();
  ctx.font = `600 ${12 * px}px ui-sans-serif, system-ui, "Segoe UI", Roboto, Arial, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "center";
  const width = ctx.measureText(text).width + 14 * px;
  const height = 20 * px;
  const left = Math.min(Math.max(x - width / 2, bbox.left), bbox.left + bbox.width - width);
  const top = y - height / 2;
  ctx.fillStyle = background;
  ctx.beginPath();
  ctx.roundRect(left, top, width, height, 4 * px);
  ctx.fill();
  ctx.fillStyle = colour("on-accent");
  ctx.fillText(text, left + width / 2, top + height / 2 + px);
  ctx.restore();
}

/** A tip inside the plot beside the pointer; null hides it. */
export function tipOf(plot: uPlot): (text: string | null) => void {
  const tip = document.createElement("output");
  tip.className = "tip";
  tip.hidden = true;
  plot.over.append(tip);
  return (text) => {
    tip.hidden = text === null || (plot.cursor.left ?? -1) < 0;
    if (text !== null) tip.textContent = text;
    tip.classList.toggle("left", (plot.cursor.left ?? 0) > plot.over.clientWidth / 2);
  };
}
