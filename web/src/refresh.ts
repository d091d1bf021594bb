/** Repeated loading that never overlaps, asks until it has an answer, and stops when its view closes. */
import { backoffMs } from "@walras/client/stream";
import { ApiError, isFinal } from "./api";

/** A node that asks for a longer pause is asked again after this one. */
const LONGEST_PAUSE_MS = 60_000;

export type Refresh = {
  /** Loads soon: at once, or when the running load has ended and the pause after the last has passed. */
  request(): void;
  /** Loads without that pause, for whoever waits. */
  hurry(): void;
  /** Aborts what runs and loads no more. */
  close(): void;
};

/**
 * Calls `load` upon request, one at a time and at least `pause_ms` apart; requests in between become one. An error goes to
 * `tell`, and unless it is final the load is tried again without a request, after a pause that grows. The first load that goes
 * right after one that did not is told as null.
 */
export function refresh(
  load: (signal: AbortSignal) => Promise<void>,
  tell: (error: unknown) => void,
  pause_ms: number,
): Refresh {
  const abort = new AbortController();
  let running = false;
  /** When the next load is due; never, where nobody asks and the last one ended well. */
  let due = Infinity;
  /** Requests are not served before this. */
  let earliest = 0;
  /** Until then the node wants no question. */
  let held = 0;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function schedule(at: number): void {
    due = Math.min(due, at);
    if (running || abort.signal.aborted || due === Infinity) return;
    clearTimeout(timer);
    const wait = Math.max(due, held) - Date.now();
    if (wait <= 0) void run();
    else timer = setTimeout(() => schedule(due), wait);
  }

  async function run(): Promise<void> {
    running = true;
    due = Infinity;
    earliest = Date.now() + pause_ms;
    try {
      await load(abort.signal);
      if (failures > 0) tell(null);
      failures = 0;
    } catch (error) {
      if (!abort.signal.aborted) again(error);
    }
    running = false;
    schedule(due);
  }

  /** Plans the next try after an error, and tells of it. */
  function again(error: unknown): void {
    const pause = error instanceof ApiError ? error.retryAfterMs : null;
    if (pause !== null) held = Date.now() + Math.min(pause, LONGEST_PAUSE_MS);
    if (!isFinal(error)) schedule(Date.now() + backoffMs(failures));
    failures += 1;
    tell(error);
  }

  return {
    request: () => schedule(earliest),
    hurry: () => schedule(0),
    close() {
      abort.abort();
      clearTimeout(timer);
    },
  };
}
