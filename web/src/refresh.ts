/** Repeated loading that never overlaps, never hurries and stops when its view closes. */
import { ApiError } from "./api";

/** A node that asks for a longer pause is asked again after this one. */
const LONGEST_PAUSE_MS = 60_000;

export type Refresh = {
  /** Loads soon: at once, or when the running load has ended and the pause after the last has passed. */
  request(): void;
  /** Aborts what runs and loads no more. */
  close(): void;
};

/**
 * Calls `load` upon request, one at a time and at least `pause_ms` apart; requests in between become one.
 * An error goes to `failed`, and the next request tries again.
 */
export function refresh(
  load: (signal: AbortSignal) => Promise<void>,
  failed: (error: unknown) => void,
  pause_ms: number,
): Refresh {
  const abort = new AbortController();
  let running = false;
  let wanted = false;
  let earliest = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function schedule(): void {
    if (running || !wanted || timer !== undefined || abort.signal.aborted) return;
    const wait = earliest - Date.now();
    if (wait <= 0) return void run();
    timer = setTimeout(() => {
      timer = undefined;
      void run();
    }, wait);
  }

  async function run(): Promise<void> {
    running = true;
    wanted = false;
    earliest = Date.now() + pause_ms;
    try {
      await load(abort.signal);
    } catch (error) {
      if (!abort.signal.aborted) {
        failed(error);
        later(error);
      }
    }
    running = false;
    schedule();
  }

  /** A node that asked for a pause is asked again after it, without another request. */
  function later(error: unknown): void {
    const pause = error instanceof ApiError ? error.retryAfterMs : null;
    if (pause === null) return;
    wanted = true;
    earliest = Math.max(earliest, Date.now() + Math.min(pause, LONGEST_PAUSE_MS));
  }

  return {
    request() {
      wanted = true;
      schedule();
    },
    close() {
      abort.abort();
      clearTimeout(timer);
    },
  };
}
