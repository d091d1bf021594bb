/** Small drawings for controls; beside each stands its name in words. */
const SVG = "http://www.w3.org/2000/svg";

const PATHS = {
  home: "M3 11 12 4l9 7v9h-6v-6H9v6H3z",
  markets: "M4 20V10m5 10V4m6 16v-9m5 9V7",
  continuous: "M3 17l5-6 4 3 8-10m-5 0h5v5",
  payments: "M4 8h14l-4-4M20 16H6l4 4",
  account: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c1-4 4-6 8-6s7 2 8 6",
  network: "M12 6v5m0 0-6 5m6-5 6 5M12 3a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3zM5 16a2 2 0 1 0 0 4 2 2 0 0 0 0-4zm14 0a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 21 21",
} as const;

export type Icon = keyof typeof PATHS;

export function icon(name: Icon): SVGSVGElement {
  const element = document.createElementNS(SVG, "svg");
  element.setAttribute("class", "icon");
  element.setAttribute("viewBox", "0 0 24 24");
  element.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  element.append(path);
  return element;
}
