/**
 * The own reports of a venue's stream.
 *
 * *Upon a connection*, it is attached as a session of the key. *Upon `attached`*, executions from the last one on are asked for, so
 * that each comes once and in order, also after a lost connection. *Upon a report*, it is handed out; an execution that came before
 * is dropped. A gap in the numbers of messages, or silence, breaks the connection, and another is made.
 *
 * What happened to orders while no connection was there, but for executions, is no event: `orders` and `order` say it.
 */
import type { Client } from "./client.js";
import { ForeignAnswerError, NoAnswerError, StreamError } from "./errors.js";
import { pause } from "./http.js";
import { SILENCE_MS, backoffMs } from "./stream.js";
import type { ExecutionsPage, OrderReport, ReportBody, VenueStatus } from "./venue-reports.js";
import type { VenueRequest } from "./venue.js";

/** A report, or that the connection broke and is made again. */
export type TraderEvent = OrderReport | { kind: "disconnected"; reason: string; retryMs: number };

export type ReportSource = {
  client: Client;
  hello: () => Promise<{ status: VenueStatus; request: VenueRequest }>;
  read: (body: ReportBody, isOwnSession: boolean) => Promise<OrderReport>;
  executions: (from: bigint) => Promise<ExecutionsPage>;
};
type Told =
  | { type: "attached"; sequence: number }
  | { type: "error"; sequence: number; error: { code: string; message: string } }
  | { type: "report"; sequence: number; report: ReportBody; own_session: boolean };

/** `first` is the first execution that is handed out, by default the next one. */
export async function* followReports(source: ReportSource, first: bigint | null): AsyncGenerator<TraderEvent, void, undefined> {
  const cursor = new Cursor(source, first);
  for (let tries = 0; ; tries += 1) {
    let reason: string;
    try {
      const request = await cursor.begin();
      for await (const text of messages(source.client, JSON.stringify({ id: "attach", attach: request }))) {
        yield* await cursor.receive(text);
        tries = 0;
      }
      reason = "the connection ended";
    } catch (error) {
      if (!(error instanceof ForeignAnswerError || error instanceof NoAnswerError)) throw error;
      reason = error.message;
    }
    const retryMs = backoffMs(tries);
    yield { kind: "disconnected", reason, retryMs };
    await pause(retryMs);
  }
}

class Cursor {
  private incarnation: number | null = null;
  private messages = 0;

  constructor(
    private readonly source: ReportSource,
    private next: bigint | null,
  ) {}

  /** The request of a new connection. */
  async begin(): Promise<VenueRequest> {
    const { status, request } = await this.source.hello();
    if (this.next === null) this.next = BigInt(status.fills);
    // Indices of another incarnation begin again.
    else if (this.incarnation !== null && this.incarnation !== status.incarnation) this.next = 0n;
    [this.incarnation, this.messages] = [status.incarnation, 0];
    return request;
  }

  async receive(text: string): Promise<OrderReport[]> {
    const { server } = this.source.client;
    let told: Told;
    try {
      told = JSON.parse(text) as Told;
    } catch {
      throw new ForeignAnswerError(server, "a message of its stream is no JSON");
    }
    if (told.sequence !== this.messages) throw new ForeignAnswerError(server, `message ${this.messages} of its stream is missing`);
    this.messages += 1;
    if (told.type === "error") throw new StreamError(server, told.error.code, told.error.message);
    if (told.type === "attached") return this.missed();
    if (told.type !== "report") return [];
    const report = await this.source.read(told.report, told.own_session);
    return this.isNew(report) ? [report] : [];
  }

  private async missed(): Promise<OrderReport[]> {
    const found: OrderReport[] = [];
    const nothing = { fate: null, lots: null, why: null, message: null, standing: null };
    for (;;) {
      const page = await this.source.executions(this.next ?? 0n);
      found.push(...page.executions.map((execution) => ({ ...nothing, number: execution.number, kind: "executed", execution, isOwnSession: false })));
      if (page.next === this.next) return found;
      this.next = page.next;
    }
  }

  private isNew({ execution }: OrderReport): boolean {
    if (!execution) return true;
    const first = this.next ?? 0n;
    if (execution.index >= first) this.next = execution.index + 1n;
    return execution.index >= first;
  }
}

/** The messages of one connection, after a first word; it ends with the connection, or in silence. */
async function* messages(client: Client, hello: string): AsyncGenerator<string, void, undefined> {
  const socket = client.open("/v1/venue/stream");
  const waiting: string[] = [];
  let [isOver, wake] = [false, () => {}];
  const end = () => {
    isOver = true;
    wake();
  };
  socket.onopen = () => socket.send(hello);
  socket.onclose = end;
  socket.onerror = end;
  socket.onmessage = ({ data }) => {
    waiting.push(String(data));
    wake();
  };
  try {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) yield next;
      else if (isOver) return;
      else {
        const heard = new Promise<boolean>((resolve) => (wake = () => resolve(true)));
        let timer: ReturnType<typeof setTimeout> | undefined;
        const silent = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), SILENCE_MS)));
        const isHeard = await Promise.race([heard, silent]);
        clearTimeout(timer);
        if (!isHeard) throw new NoAnswerError(client.server, "the venue has been silent");
      }
    }
  } finally {
    socket.close();
  }
}
