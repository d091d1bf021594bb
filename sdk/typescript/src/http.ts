/** A node, asked over HTTP. Nothing that it says is verified here. */
import { BusyError, ClientError, ForeignAnswerError, NoAnswerError, NotFoundError, RefusedError } from "./errors.js";

export type Fetch = typeof globalThis.fetch;
type Parameters = Record<string, string | number | undefined>;

const PATIENCE_MS = 60_000;
/** Tries of a question that changes nothing, while the node is busy. */
const TRIES = 4;
const BUSY_MS_MAX = 5_000;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The pause that `Retry-After` asks for: seconds or a date (RFC 9110 §10.2.3); a second where it is absent or says nothing. */
export function retryAfterMs(text: string | null, now_ms: number): number {
  const given = text?.trim() ?? "";
  if (/^\d{1,9}$/.test(given)) return 1000 * Number(given);
  const until_ms = /^[A-Z][a-z]{2}, /.test(given) ? Date.parse(given) : Number.NaN;
  return Number.isNaN(until_ms) ? 1000 : Math.max(0, until_ms - now_ms);
}

export class Http {
  readonly server: string;

  constructor(
    server: string,
    private readonly token: string | null,
    private readonly fetch: Fetch,
  ) {
    this.server = server.replace(/\/+$/, "");
  }

  /** The answer at a path; waits a little where the node is busy. */
  async get<T>(path: string, parameters: Parameters = {}): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.read<T>(await this.ask(path, parameters, {}));
      } catch (error) {
        if (!(error instanceof BusyError) || tries === TRIES) throw error;
        await pause(Math.min(error.retryAfterMs, BUSY_MS_MAX));
      }
    }
  }

  /** The answer to bytes, which are sent once. */
  async post<T>(path: string, body: Uint8Array): Promise<T> {
    const headers = { "content-type": "application/octet-stream" };
    return this.read<T>(await this.ask(path, {}, { method: "POST", headers, body: body as BufferSource }));
  }

  /** The answer to JSON, which is sent once. */
  async tell<T>(path: string, body: unknown): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.read<T>(await this.ask(path, {}, { method: "POST", headers, body: JSON.stringify(body) }));
  }

  /** The bytes that answer bytes, which are sent once. */
  async carry(path: string, parameters: Parameters, body: Uint8Array): Promise<Uint8Array> {
    const headers = { "content-type": "application/octet-stream" };
    const response = await this.ask(path, parameters, { method: "POST", headers, body: body as BufferSource });
    if (!response.ok) await this.read(response);
    try {
      return new Uint8Array(await response.arrayBuffer());
    } catch (error) {
      throw new NoAnswerError(this.server, error);
    }
  }

  /** The status at a path, without regard to what its text says when it is 200. */
  async check(path: string): Promise<void> {
    const response = await this.ask(path, {}, {});
    if (!response.ok) await this.read(response);
  }

  private async ask(path: string, parameters: Parameters, more: RequestInit): Promise<Response> {
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
    const query = given.length > 0 ? "?" + new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString() : "";
    const headers = { ...(more.headers as Record<string, string>), ...(this.token === null ? {} : { authorization: `Bearer ${this.token}` }) };
    try {
      return await this.fetch(this.server + path + query, { ...more, headers, signal: AbortSignal.timeout(PATIENCE_MS) });
    } catch (error) {
      throw new NoAnswerError(this.server, error);
    }
  }

  private async read<T>(response: Response): Promise<T> {
    const { status, ok } = response;
    let body: unknown;
    try {
      body = await response.json();
    } catch (error) {
      // A connection that broke within the answer is none.
      if (!(error instanceof SyntaxError)) throw new NoAnswerError(this.server, error);
      throw new ForeignAnswerError(this.server, `its answer with status ${status} is not JSON`);
    }
    if (ok) return body as T;
    const { error } = body as { error?: { code?: unknown; message?: unknown } };
    if (typeof error?.code !== "string") throw new ForeignAnswerError(this.server, `it answers ${status} without a reason`);
    const said = String(error.message);
    if (status === 404) throw new NotFoundError(this.server, status, error.code, said);
    if (status === 429) {
      throw new BusyError(this.server, status, error.code, said, retryAfterMs(response.headers.get("retry-after"), Date.now()));
    }
    throw new RefusedError(this.server, status, error.code, said);
  }

  /** What an answer means; one that lacks a field is foreign. */
  decoded<T>(decode: () => T): T {
    try {
      return decode();
    } catch (error) {
      if (error instanceof ClientError) throw error;
      throw new ForeignAnswerError(this.server, `its answer cannot be decoded: ${String(error)}`);
    }
  }
}
