import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError } from "../src/api";
import { refresh } from "../src/refresh";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A load that ends when the test says so. */
function slow() {
  const ends: { resolve: () => void; reject: (error: unknown) => void; signal: AbortSignal }[] = [];
  const load = (signal: AbortSignal) => new Promise<void>((resolve, reject) => ends.push({ resolve, reject, signal }));
  return { ends, load };
}

it("loads at once, then no sooner than the pause, and once for many requests", async () => {
  const times: number[] = [];
  const one = refresh(async () => void times.push(Date.now()), () => undefined, 1000);
  const start = Date.now();
  for (let i = 0; i < 5; i += 1) one.request();
  await vi.advanceTimersByTimeAsync(5000);
  expect(times.map((time) => time - start)).toEqual([0, 1000]);
});

it("never runs two loads together", async () => {
  const { ends, load } = slow();
  const one = refresh(load, () => undefined, 10);
  one.request();
  one.request();
  await vi.advanceTimersByTimeAsync(1000);
  expect(ends).toHaveLength(1);
  ends[0]!.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(ends).toHaveLength(2);
});

it("reports an error and loads again when asked", async () => {
  const errors: unknown[] = [];
  const { ends, load } = slow();
  const one = refresh(load, (error) => errors.push(error), 10);
  one.request();
  ends[0]!.reject("no");
  await vi.advanceTimersByTimeAsync(100);
  expect(errors).toEqual(["no"]);
  one.request();
  expect(ends).toHaveLength(2);
});

it("aborts and stays silent when closed", async () => {
  const errors: unknown[] = [];
  const { ends, load } = slow();
  const one = refresh(load, (error) => errors.push(error), 10);
  one.request();
  one.request();
  one.close();
  expect(ends[0]!.signal.aborted).toBe(true);
  ends[0]!.reject("aborted");
  await vi.advanceTimersByTimeAsync(1000);
  one.request();
  expect(errors).toEqual([]);
  expect(ends).toHaveLength(1);
});

it("comes again by itself after the pause that a busy node asks for, a minute at most", async () => {
  const times: number[] = [];
  const pauses = [3_000, 3_600_000, null];
  const start = Date.now();
  const load = async () => {
    times.push(Date.now() - start);
    const pause = pauses.shift();
    if (pause !== undefined) throw new ApiError(429, "too_many_requests", "later", pause);
  };
  const one = refresh(load, () => undefined, 1000);
  one.request();
  await vi.advanceTimersByTimeAsync(200_000);
  // A refusal that asks for no pause waits for the next request.
  expect(times).toEqual([0, 3_000, 63_000]);
  one.close();
});
