/** A browser for tests, and what is seen on a page in it: what axe finds, pixels of charts, pale texts. */
import axe from "axe-core";
import { existsSync } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";

/** What is used of axe inside the page. */
type Axe = { run: (options: { runOnly: string[] }) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };

const EXECUTABLE = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** Starts the browser. */
export async function launched(): Promise<Browser> {
  if (!existsSync(EXECUTABLE)) throw new Error(`${EXECUTABLE} is missing: install Chromium, or name one in CHROMIUM`);
  return chromium.launch({ executablePath: EXECUTABLE, args: FLAGS });
}

/** With `PAGE_SLOWDOWN` = 8 the page's own code takes eight times as long, as on a busy machine: what comes too early or too late shows. */
export async function slowed(page: Page): Promise<Page> {
  const rate = Number(process.env["PAGE_SLOWDOWN"] ?? 1);
  if (rate > 1) await (await page.context().newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate });
  return page;
}

/** What axe finds on a page as it is. */
export async function axeFindings(of: Page): Promise<string[]> {
  await of.evaluate(axe.source);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await of.evaluate((tags) => (globalThis as unknown as { axe: Axe }).axe.run({ runOnly: tags }), tags);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}

/** How many pixels of a chart's canvases are drawn in about this colour of the page. */
export async function inkedOn(page: Page, chart: string, variable: string): Promise<number> {
  await page.locator(`[data-chart=${chart}] canvas`).first().waitFor({ state: "attached" });
  const canvases = await page.locator(`[data-chart=${chart}] canvas`).all();
  const counts = await Promise.all(canvases.map((canvas) => canvas.evaluate(inked, variable)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** In the page: the same of one canvas. */
function inked(element: Element, name: string): number {
  const canvas = element as HTMLCanvasElement;
  if (canvas.width === 0 || canvas.height === 0) return 0;
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const probe = copy.getContext("2d", { willReadFrequently: true })!;
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
  probe.fillRect(0, 0, 1, 1);
  const wanted = probe.getImageData(0, 0, 1, 1).data;
  probe.clearRect(0, 0, 1, 1);
  probe.drawImage(canvas, 0, 0);
  const { data } = probe.getImageData(0, 0, copy.width, copy.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    const near = [0, 1, 2].every((c) => Math.abs(data[i + c]! - wanted[c]!) < 12);
    if (near && data[i + 3]! > 200) count += 1;
  }
  return count;
}

/** In the page: texts whose contrast with what is painted behind them is below 4.5, or 3 if they are large. */
export function paleTexts(): string[] {
  type Paint = [number, number, number, number];
  const paint = (colour: string): Paint => {
    const numbers = (colour.match(/[\d.]+/g) ?? []).map(Number);
    return [numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0, numbers[3] ?? 1];
  };
  const over = (top: Paint, under: Paint): Paint =>
    [0, 1, 2].map((at) => top[at]! * top[3] + under[at]! * (1 - top[3])).concat(1) as Paint;
  const luminance = (colour: Paint) => {
    const linear = colour.slice(0, 3).map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0]! + 0.7152 * linear[1]! + 0.0722 * linear[2]!;
  };
  const ground = (element: Element | null): Paint => {
    if (!element) return [255, 255, 255, 1];
    const { backgroundColor, backgroundImage } = getComputedStyle(element);
    const own = paint(backgroundColor);
    const under = own[3] === 1 ? own : over(own, ground(element.parentElement));
    // The bar of a book's level.
    const wash = backgroundImage.match(/rgba?\([^)]*\)/)?.[0];
    return wash ? over(paint(wash), under) : under;
  };
  const pale: string[] = [];
  for (const element of document.querySelectorAll("body *")) {
    const hint = element instanceof HTMLInputElement && element.value === "" ? element.placeholder : "";
    const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent).join("").trim();
    const text = hint || own;
    const { color, fontSize, fontWeight } = getComputedStyle(element, hint ? "::placeholder" : null);
    if (!text || element.getClientRects().length === 0 || element.closest(".unseen, option, [disabled]")) continue;
    const under = ground(element);
    const [bright, dim] = [luminance(over(paint(color), under)), luminance(under)].sort((a, b) => b - a);
    const large = parseFloat(fontSize) >= 24 || (parseFloat(fontSize) >= 18.66 && Number(fontWeight) >= 700);
    const contrast = (bright! + 0.05) / (dim! + 0.05);
    if (contrast < (large ? 3 : 4.5)) pale.push(`${element.tagName}.${element.className} ${contrast.toFixed(2)} ${text.slice(0, 20)}`);
  }
  return pale;
}
