/** A line of a few recent prices, as small as a word. */
const WIDTH = 96;
const HEIGHT = 22;
const SVG = "http://www.w3.org/2000/svg";

export function sparkline(): { element: SVGSVGElement; show: (values: number[]) => void } {
  const element = document.createElementNS(SVG, "svg");
  element.setAttribute("class", "sparkline");
  element.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  element.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "polyline");
  element.append(line);
  return { element, show: (values) => line.setAttribute("points", values.length > 1 ? points(values) : "") };
}

function points(values: number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (i: number) => (1 + ((WIDTH - 2) * i) / (values.length - 1)).toFixed(1);
  const y = (value: number) => (high > low ? HEIGHT - 2 - ((HEIGHT - 4) * (value - low)) / (high - low) : HEIGHT / 2).toFixed(1);
  return values.map((value, i) => `${x(i)},${y(value)}`).join(" ");
}
