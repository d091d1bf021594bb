/** The numbers behind the picture of a batch: both curves as steps, and the part of them worth showing. */
import { fromUnits, parseDecimal, toNumber } from "@walras/client/decimal";
import { formatPrice } from "../amount";
import type { CurvePoint, Curves } from "@walras/client/bodies";

export type Point = { x: number; y: number };
export type Shape = { price: number | null; label: string; supply: Point[]; demand: Point[] };

/** Half-widths of the window around the batch price, as parts of it. `auto` takes the least that shows most of the curves. */
export const WINDOWS = { auto: null, "±1 %": 0.01, "±5 %": 0.05, "±25 %": 0.25, all: Infinity } as const;
export type Window = keyof typeof WINDOWS;

const CANDIDATES = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5];
/** Times the larger amount at the price that an automatic window is high. */
const HEADROOM = 3;
/** The part of all points that an automatic window must hold. */
const MOST = 0.8;

/** Both curves' amounts at `price`. */
export function amountsAt(shape: Pick<Shape, "supply" | "demand">, price: number): { supply: number; demand: number } {
  const supply = shape.supply.findLast((point) => point.x <= price)?.y ?? 0;
  const demand = shape.demand.find((point) => point.x >= price)?.y ?? 0;
  return { supply, demand };
}

/** The lowest and highest price to show. */
export function windowOf(shape: Shape, window: Window): [number, number] {
  const xs = [...shape.supply, ...shape.demand].map((point) => point.x).sort((a, b) => a - b);
  const [first, last] = [xs[0] ?? 0, xs.at(-1) ?? 1];
  const { price } = shape;
  if (price === null || window === "all") return first < last ? [first, last] : [first * 0.99, last * 1.01 + 1e-12];
  const inside = (w: number) => xs.filter((x) => Math.abs(x / price - 1) <= w).length;
  const half = WINDOWS[window] ?? CANDIDATES.find((w) => inside(w) >= MOST * xs.length) ?? null;
  if (half === null) return [Math.min(first, price), Math.max(last, price)];
  // Not beyond the points that are known, lest the curves seem to end where only the answer ends.
  const low = Math.min(price, Math.max(first, price * (1 - half)));
  const high = Math.max(price, Math.min(last, price * (1 + half)));
  return low < high ? [low, high] : [price * 0.99, price * 1.01];
}

export function shapeOf(curves: Curves, baseDecimals: number): Shape {
  const price = parseDecimal(curves.price ?? curves.indicative ?? "");
  const points = (list: CurvePoint[]) => list.flatMap((point) => toPoint(point, baseDecimals));
  return {
    price: price && toNumber(price),
    label: curves.price === null && price ? `indicative ${formatPrice(price)}` : formatPrice(price),
    supply: points(curves.supply),
    demand: points(curves.demand),
  };
}

function toPoint(point: CurvePoint, baseDecimals: number): Point[] {
  const price = parseDecimal(point.price);
  const amount = fromUnits(point.amount, baseDecimals);
  return price && amount ? [{ x: toNumber(price), y: toNumber(amount) }] : [];
}

/**
 * Both curves over one list of prices from `low` to `high`. Supply holds its value to the right of each point and is 0
 * before its first; demand holds its value to the left and is 0 after its last.
 */
export function aligned(shape: Pick<Shape, "supply" | "demand">, [low, high]: [number, number]): [number[], number[], number[]] {
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

/**
 * The amount at the top. An automatic window stops at a few times what the curves reach at the price, so that one huge
 * offer far from it does not press the crossing flat.
 */
export function heightOf(shape: Shape, window: Window): number {
  const [low, high] = windowOf(shape, window);
  const tallest = Math.max(amountsAt(shape, high).supply, amountsAt(shape, low).demand);
  if (window !== "auto" || shape.price === null) return tallest;
  const { supply, demand } = amountsAt(shape, shape.price);
  return Math.min(tallest, HEADROOM * Math.max(supply, demand) || tallest);
}
