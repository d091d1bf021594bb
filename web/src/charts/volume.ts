/** Prices in the upper part of a chart, and bars of volume below them. */
import uPlot from "uplot";
import { colour } from "./theme";

/** The scale of prices. */
export const ABOVE: uPlot.Scale = { range: spread };
/** The scale of volume. */
export const BELOW: uPlot.Scale = { range: (_plot, _min, max) => [0, (max || 1) * 4.5] };

export function volumeBars(): uPlot.Series {
  const paths = uPlot.paths.bars ? { paths: uPlot.paths.bars({ size: [0.7, 12], gap: 0 }) } : {};
  const faint = () => colour("bar-faint");
  return { scale: "volume", fill: faint, stroke: faint, width: 0, points: { show: false }, ...paths };
}

/** The prices with air above and below, the lower part left to the volume. */
function spread(_plot: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  const height = max - min || Math.abs(max) * 0.01 || 1;
  return [min - 0.3 * height, max + 0.08 * height];
}
