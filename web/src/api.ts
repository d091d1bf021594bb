/** One way to ask the node that serves the page. The shapes of its answers are those of `@walras/client/bodies`. */

import { retryAfterMs } from "@walras/client/http";

/** A node that says nothing for so long has not answered. */
const PATIENCE_MS = 60_000;

/** An answer that is no success: what the node said, or that it said nothing that can be read (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** The pause that the node asked for before the next try; null where it asked for none. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}

/** Refusals that say nothing of the next time: what is not there may come, and a busy node may have time. */
const PASSING = [404, 408, 425, 429];

/** Whether the same question would get the same answer: the node refuses the question itself, or its operator chose so. */
export function isFinal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code === "no_history" || (error.status >= 400 && error.status < 500 && !PASSING.includes(error.status));
}

/** The answer to `GET v1/{path}`. Throws an `ApiError`, or what `signal` was aborted with. */
export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return ask<T>(path, {}, signal);
}

/** The same, or null where the node says that there is none. */
export async function getIfThere<T>(path: string, signal: AbortSignal): Promise<T | null> {
  try {
    return await get<T>(path, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** The answer to `POST v1/{path}` with `body` as JSON. Throws an `ApiError`. */
export function post<T>(path: string, body: unknown): Promise<T> {
  return ask<T>(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

/** A path of the interface whose parts may contain any character. */
export function path(...parts: (string | number)[]): string {
  return parts.map((part) => encodeURIComponent(part)).join("/");
}

/** One question and its whole answer. Nobody waits for ever for a silent node. */
async function ask<T>(path: string, request: RequestInit, signal?: AbortSignal): Promise<T> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const headers = { accept: "application/json", ...request.headers };
  try {
    const response = await fetch(new URL("v1/" + path, document.baseURI), { ...request, headers, signal: signal ? AbortSignal.any([signal, patience]) : patience });
    if (!response.ok) throw await refusal(response);
    return (await response.json()) as T;
  } catch (error) {
    if (signal?.aborted || error instanceof ApiError) throw error;
    if (error instanceof SyntaxError) throw new ApiError(0, "malformed", "The node's answer could not be read.");
    throw new ApiError(0, "unreachable", "The node does not answer.");
  }
}

async function refusal(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as { error?: { code?: string; message?: string } } | null;
  return new ApiError(
    response.status,
    body?.error?.code ?? "unknown",
    body?.error?.message ?? `The node answered with status ${response.status}.`,
    response.headers.has("retry-after") ? retryAfterMs(response.headers.get("retry-after"), Date.now()) : null,
  );
}
