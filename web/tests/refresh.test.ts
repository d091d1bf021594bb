import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ApiError } from "../src/api";
import { refresh } from "../src/refresh";

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(0);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

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

it("reports an error, and loads at once when asked, whatever pause was to come", async () => {
  const errors: unknown[] = [];
  const { ends, load } = slow();
  const one = refresh(load, (error) => errors.push(error), 10);
  one.request();
  ends[0]!.reject("no");
  await vi.advanceTimersByTimeAsync(100);
  expect(errors).toEqual(["no"]);
  one.request();
  expect(ends).toHaveLength(2);
  one.close();
});

it("hurries for whoever waits, but never runs two loads together", async () => {
  const { ends, load } = slow();
  const one = refresh(load, () => undefined, 60_000);
  one.request();
  one.hurry();
  await vi.advanceTimersByTimeAsync(0);
  expect(ends).toHaveLength(1);
  ends[0]!.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(ends).toHaveLength(2);
});

/** When loads begin within `span_ms`, of which each fails with the next of `errors`, and the last of them for ever. */
async function tries(errors: unknown[], span_ms: number): Promise<number[]> {
  const times: number[] = [];
  const start = Date.now();
  const load = async () => {
    const error = errors[Math.min(times.length, errors.length - 1)];
    times.push(Date.now() - start);
    if (error !== null) throw error;
  };
  const one = refresh(load, () => undefined, 1_000);
  one.request();
  await vi.advanceTimersByTimeAsync(span_ms);
  one.close();
  await vi.advanceTimersByTimeAsync(100_000);
  return times;
}

const refused = (status: number, code = "code") => new ApiError(status, code, "no");

it.each([
  ["silence", refused(0)],
  ["what may come", refused(404)],
  ["a timeout", refused(408)],
  ["a pause without its length", refused(429)],
  ["a fault of the node", refused(500)],
  ["a proxy before the node", refused(502)],
  ["a node that starts", refused(503)],
  ["an answer of another shape", new TypeError("undefined is no list")],
])("asks again after %s, after pauses that double to fifteen seconds", async (_, error) => {
  expect(await tries([error], 60_000)).toEqual([0, 500, 1_500, 3_500, 7_500, 15_500, 30_500, 45_500]);
});

it("tells what went wrong until it goes right", async () => {
  const told: unknown[] = [];
  const { ends, load } = slow();
  const one = refresh(load, (error) => told.push(error), 0);
  for (const end of [() => ends[0]!.resolve(), () => ends[1]!.reject("no"), () => ends[2]!.resolve(), () => ends[3]!.resolve()]) {
    one.request();
    end();
    await vi.advanceTimersByTimeAsync(0);
  }
  expect(told).toEqual(["no", null]);
});

it("asks until it has an answer, and then begins with the shortest pause", async () => {
  expect(await tries([refused(500), refused(0), null], 60_000)).toEqual([0, 500, 1_500]);
  const { ends, load } = slow();
  const one = refresh(load, () => undefined, 0);
  const fail = async (at: number, pause_ms: number) => {
    ends[at]!.reject("no");
    await vi.advanceTimersByTimeAsync(pause_ms - 1);
    expect(ends).toHaveLength(at + 1);
    await vi.advanceTimersByTimeAsync(1);
    expect(ends).toHaveLength(at + 2);
  };
  one.request();
  await fail(0, 500);
  await fail(1, 1_000);
  ends[2]!.resolve();
  await vi.advanceTimersByTimeAsync(100_000);
  one.request();
  await fail(3, 500);
  one.close();
});

it.each([refused(400), refused(401), refused(403), refused(410, "history_gone"), refused(422), refused(404, "no_history")])(
  "asks no more by itself after a refusal that is final: %o",
  async (error) => expect(await tries([error], 600_000)).toEqual([0]),
);

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
  // A refusal that asks for no pause is followed by the page's own, here the third.
  expect(times).toEqual([0, 3_000, 63_000, 65_000]);
  one.close();
});
