/** Colours keep the contrast of WCAG 2.2 AA in both themes: 4.5 for text, 3 for borders of controls and for graphics. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

type Colour = [number, number, number];
const css = readFileSync(fileURLToPath(new URL("../src/style.css", import.meta.url)), "utf8");
const [light = "", dark = ""] = css.split("@media (prefers-color-scheme: dark)");

function colours(text: string): Map<string, string> {
  return new Map([...text.matchAll(/--([\w-]+): (#[0-9a-f]{6,8});/g)].map((found) => [found[1]!, found[2]!]));
}

function rgb(hex: string): Colour {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Colour;
}

/** A colour with an alpha over another one. */
function over(top: string, under: Colour): Colour {
  const alpha = top.length === 9 ? parseInt(top.slice(7), 16) / 255 : 1;
  return rgb(top).map((value, at) => value * alpha + under[at]! * (1 - alpha)) as Colour;
}

function luminance(colour: Colour): number {
  const linear = colour.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0]! + 0.7152 * linear[1]! + 0.0722 * linear[2]!;
}

function contrast(a: Colour, b: Colour): number {
  const [bright, dim] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (bright! + 0.05) / (dim! + 0.05);
}

const TEXTS = ["text", "quiet", "accent", "supply", "demand", "warn", "good"];
const WASHES = ["supply-wash", "demand-wash", "warn-wash"];
const GRAPHICS = ["edge", "bar", "bar-faint", ...Array.from({ length: 8 }, (_, stage) => `stage-${stage}`)];

describe.each([["light", colours(light)], ["dark", colours(dark)]] as const)("the %s theme has the contrast of WCAG AA", (_, theme) => {
  const named = (name: string) => theme.get(name) ?? expect.fail(`no colour ${name}`);
  const surface = rgb(named("surface"));
  const grounds = ["ground", "surface", "raised"].map((name) => [name, rgb(named(name))] as const);
  const washed = WASHES.map((name) => [name, over(named(name), surface)] as const);

  it.each(TEXTS)("in text coloured %s", (name) => {
    for (const [under, colour] of [...grounds, ...washed]) expect(contrast(rgb(named(name)), colour), under).toBeGreaterThanOrEqual(4.5);
  });
  it("in text on the accent", () => {
    expect(contrast(rgb(named("on-accent")), rgb(named("accent")))).toBeGreaterThanOrEqual(4.5);
  });
  it.each(GRAPHICS)("in graphics coloured %s", (name) => {
    expect(contrast(rgb(named(name)), surface)).toBeGreaterThanOrEqual(3);
  });
});

it("no rule makes text paler than its colour", () => {
  const faint = [...css.matchAll(/([^{}]*)\{[^{}]*opacity: (0?\.\d+)/g)].map((found) => found[1]!.trim());
  // A dot that pulses has no text, and 0 hides.
  expect(faint.filter((rule) => rule !== "50%")).toEqual([]);
});
