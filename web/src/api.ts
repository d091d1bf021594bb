/** One way to ask the node that serves the page. The shapes of its answers are those of `@walras/client/bodies`. */

import { retryAfterMs } from "@walras/client/http";

/** An answer that is no success: what the node said, or that it said nothing (status 0). */
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

/** The answer to `GET v1/{path}`. Throws an `ApiError`, or an `AbortError` where `signal` says so. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await reach(new URL("v1/" + path, document.baseURI), signal);
  if (!response.ok) throw await refusal(response);
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(response.status, "malformed", "The node's answer could not be read.");
  }
}

/** The answer to `POST v1/{path}` with `body` as JSON. Throws an `ApiError`. */
export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { accept: "application/json", "content-type": "application/json" };
  const response = await fetch(new URL("v1/" + path, document.baseURI), { method: "POST", headers, body: JSON.stringify(body) }).catch(() => {
    throw new ApiError(0, "unreachable", "The node does not answer.");
  });
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

/** A path of the interface whose parts may contain any character. */
export function path(...parts: (string | number)[]): string {
  return parts.map((part) => encodeURIComponent(part)).join("/");
}

async function reach(url: URL, signal?: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { signal: signal ?? null, headers: { accept: "application/json" } });
  } catch (error) {
    if (signal?.aborted) throw error;
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
