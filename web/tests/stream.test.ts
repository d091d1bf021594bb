import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PAUSE_MS_MAX, PAUSE_MS_MIN, SILENCE_MS, Stream, type Connection, type Message, type Socket } from "@walras/client/stream";

/** A socket in the test's hand. */
class FakeSocket implements Socket {
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  onerror: Socket["onerror"] = null;
  sent: unknown[] = [];
  closed = false;
  send(data: string): void {
    this.sent.push(JSON.parse(data));
  }
  close(): void {
    this.closed = true;
  }
  accept(): void {
    this.onopen?.call(this as unknown as WebSocket, new Event("open"));
  }
  say(data: unknown): void {
    const text = typeof data === "string" ? data : JSON.stringify(data);
    this.onmessage?.call(this as unknown as WebSocket, { data: text } as MessageEvent);
  }
  fall(): void {
    this.onclose?.call(this as unknown as WebSocket, {} as CloseEvent);
  }
}

const heartbeat = (sequence: number) => ({ type: "heartbeat", height: 1, time_ms: 1, sequence });

let sockets: FakeSocket[];
let states: Connection[];
let messages: Message[];
let stream: Stream;
const last = () => sockets.at(-1)!;
const state = () => states.at(-1)!;

beforeEach(() => {
  vi.useFakeTimers();
  [sockets, states, messages] = [[], [], []];
  stream = new Stream(
    () => {
      sockets.push(new FakeSocket());
      return last();
    },
    (connection) => states.push(connection),
    (message) => messages.push(message),
    () => 0,
  );
});
afterEach(() => {
  stream.close();
  vi.useRealTimers();
});

function goLive(first = 0): void {
  stream.open();
  last().accept();
  last().say(heartbeat(first));
}

describe("a stream that works", () => {
  it("is live with its first message and delivers in order", () => {
    goLive();
    expect(state()).toEqual({ state: "live" });
    last().say(heartbeat(1));
    expect(messages).toHaveLength(2);
    expect(sockets).toHaveLength(1);
  });
  it("begins at whatever number the connection begins with", () => {
    goLive(17);
    last().say(heartbeat(18));
    expect(state()).toEqual({ state: "live" });
  });
  it("subscribes upon opening, and later as channels are wanted", () => {
    stream.subscribe("blocks", () => undefined);
    goLive();
    expect(last().sent).toEqual([{ subscribe: ["blocks"] }]);
    const stop = stream.subscribe("trades:EUR/USD", () => undefined);
    const stopOther = stream.subscribe("trades:EUR/USD", () => undefined);
    stop();
    stopOther();
    expect(last().sent.slice(1)).toEqual([{ subscribe: ["trades:EUR/USD"] }, { unsubscribe: ["trades:EUR/USD"] }]);
  });
  it("gives each channel its snapshot and its increments", () => {
    const heard: string[] = [];
    const listen = (name: string) => (message: Message) => heard.push(`${name} ${message.type}`);
    stream.subscribe("blocks", listen("blocks"));
    stream.subscribe("trades", listen("all"));
    stream.subscribe("trades:EUR/USD", listen("one"));
    stream.subscribe("account:0xaa", listen("account"));
    goLive();
    last().say({ type: "snapshot", channel: "blocks", blocks: [], sequence: 1 });
    last().say({ type: "block", height: 2, sequence: 2 });
    last().say({ type: "trade", market: "EUR/USD", sequence: 3 });
    last().say({ type: "trade", market: "GBP/USD", sequence: 4 });
    last().say({ type: "account", address: "0xaa", sequence: 5 });
    last().say({ type: "account", address: "0xbb", sequence: 6 });
    last().say({ type: "something new", sequence: 7 });
    expect(heard).toEqual(["blocks snapshot", "blocks block", "all trade", "one trade", "all trade", "account account"]);
    expect(state()).toEqual({ state: "live" });
  });
  it("gives the newest candle to those who look at its market and interval", () => {
    const heard: string[] = [];
    for (const channel of ["candles:EUR/USD:1m", "candles:EUR/USD:5m", "ticker:EUR/USD"]) stream.subscribe(channel, () => heard.push(channel));
    goLive();
    last().say({ type: "candle", height: 7, market: "EUR/USD", interval: "1m", candle: {}, sequence: 1 });
    last().say({ type: "ticker", market: "EUR/USD", sequence: 2 });
    expect(heard).toEqual(["candles:EUR/USD:1m", "ticker:EUR/USD"]);
  });
});

describe("a stream that is lost", () => {
  it("after a gap it connects again, subscribes again and counts anew", () => {
    stream.subscribe("blocks", () => undefined);
    goLive();
    const first = last();
    first.say(heartbeat(2));
    expect(messages).toHaveLength(1);
    expect(first.closed).toBe(true);
    expect(state()).toMatchObject({ state: "waiting", reason: "Messages of the stream were missed.", tries: 1 });
    vi.advanceTimersByTime(PAUSE_MS_MIN);
    expect(sockets).toHaveLength(2);
    last().accept();
    expect(last().sent).toEqual([{ subscribe: ["blocks"] }]);
    last().say(heartbeat(0));
    expect(state()).toEqual({ state: "live" });
  });
  it("a repeated number is a gap too", () => {
    goLive(4);
    last().say(heartbeat(4));
    expect(state().state).toBe("waiting");
  });
  it("five seconds of silence end it, but not one moment less", () => {
    goLive();
    vi.advanceTimersByTime(SILENCE_MS - 1);
    expect(state().state).toBe("live");
    last().say(heartbeat(1));
    vi.advanceTimersByTime(SILENCE_MS - 1);
    expect(state().state).toBe("live");
    vi.advanceTimersByTime(1);
    expect(state()).toMatchObject({ state: "waiting", reason: "The node has been silent for five seconds." });
  });
  it("a connection that never opens is given up as silent", () => {
    stream.open();
    vi.advanceTimersByTime(SILENCE_MS);
    expect(state().state).toBe("waiting");
    expect(last().closed).toBe(true);
  });
  it("what cannot be read ends it", () => {
    for (const bad of ["{", "null", "7", { type: "heartbeat" }, { sequence: 1 }]) {
      goLive();
      last().say(bad);
      expect(state()).toMatchObject({ state: "waiting", reason: "A message of the stream could not be read." });
    }
  });
  it("nothing from an old connection is heard", () => {
    goLive();
    const first = last();
    first.fall();
    vi.advanceTimersByTime(PAUSE_MS_MIN);
    last().accept();
    last().say(heartbeat(0));
    first.say(heartbeat(1));
    first.fall();
    expect(state()).toEqual({ state: "live" });
    expect(messages).toHaveLength(2);
  });
});

describe("the pauses between tries", () => {
  const pauses = () => states.flatMap((one) => (one.state === "waiting" ? [one.retry_ms] : []));
  const fail = (times: number) => {
    for (let i = 0; i < times; i += 1) {
      last().fall();
      vi.advanceTimersByTime(pauses().at(-1)!);
    }
  };
  it("double up to a bound", () => {
    stream.open();
    fail(8);
    expect(pauses()).toEqual([500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
  });
  it("begin anew after a message, not after a mere opening", () => {
    stream.open();
    fail(3);
    last().accept();
    fail(1);
    last().accept();
    last().say(heartbeat(0));
    fail(1);
    expect(pauses()).toEqual([500, 1000, 2000, 4000, 500]);
  });
  it("are cut short by open(), once", () => {
    goLive();
    last().fall();
    stream.open();
    expect(sockets).toHaveLength(2);
    stream.open();
    vi.advanceTimersByTime(PAUSE_MS_MIN);
    expect(sockets).toHaveLength(2);
  });
  it("end with close()", () => {
    goLive();
    last().fall();
    stream.close();
    vi.advanceTimersByTime(10 * PAUSE_MS_MAX);
    expect(sockets).toHaveLength(1);
  });
});

describe("channels of own orders", () => {
  const challenge = { type: "challenge", nonce: "0x11", server: "here", network: "0x22" };
  const login = { account: "0xa1", signature: "0x33" };
  let answers: { resolve: (login: { account: string; signature: string }) => void; reject: (error: Error) => void }[];

  beforeEach(() => {
    answers = [];
    const connect = () => {
      sockets.push(new FakeSocket());
      return last();
    };
    const sign = () => new Promise<typeof login>((resolve, reject) => answers.push({ resolve, reject }));
    stream = new Stream(connect, (connection) => states.push(connection), (message) => messages.push(message), () => 0, () => ({}), sign);
    stream.subscribe("blocks", () => undefined);
    stream.subscribe("orders:0xa1", () => undefined);
  });

  it("are begun after the login, on each connection anew", async () => {
    for (const connection of [0, 1]) {
      stream.open();
      last().accept();
      expect(last().sent).toEqual([{ subscribe: ["blocks"] }, { challenge: true }]);
      last().say({ ...challenge, sequence: 0 });
      answers[connection]!.resolve(login);
      await vi.advanceTimersByTimeAsync(0);
      last().say({ type: "login", account: "0xa1", sequence: 1 });
      expect(last().sent.slice(2)).toEqual([{ login }, { subscribe: ["orders:0xa1"] }]);
      expect(messages).toEqual([]);
      last().fall();
    }
  });
  it("send no signature to another connection than the one whose challenge was signed", async () => {
    stream.open();
    last().accept();
    last().say({ ...challenge, sequence: 0 });
    last().fall();
    stream.open();
    last().accept();
    answers[0]!.resolve(login);
    await vi.advanceTimersByTimeAsync(0);
    expect(last().sent).toEqual([{ subscribe: ["blocks"] }, { challenge: true }]);
  });
  it("say why a login failed, and try again", async () => {
    stream.open();
    last().accept();
    last().say({ ...challenge, sequence: 0 });
    answers[0]!.reject(new Error("the wallet is locked"));
    await vi.advanceTimersByTimeAsync(0);
    expect(state()).toMatchObject({ state: "waiting", reason: "The login failed: the wallet is locked" });
    await vi.advanceTimersByTimeAsync(PAUSE_MS_MIN);
    expect(sockets).toHaveLength(2);
  });
});
