/** Orders at a venue before they are signed, and what the page sees of its executions. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Asset, VenueTrade, VenueTrades } from "@walras/client/bodies";
import { tooLittle, type Pair, type VenueMarket } from "../src/trade/venue";
import { VenueFeed } from "../src/trade/venue-feed";
import { depthOf, lotsOf, reachOf, tickOf } from "../src/trade/venue-sums";

const market: VenueMarket = {
  market: 0, symbol: "EUR/USD", base: 1, quote: 0, lot_units: "1000000", tick_units: "100", lots_max: 1_000_000,
  fee_cap_ppm: 2_000, least_quote_units: "1880000000", phase: "trading", bid: 10_000, ask: 10_010, last: null, day: null,
};
const asset = (number: number, symbol: string): Asset => ({ asset: number, symbol, decimals: 6, issuer: "0x", least_units: "1", issued: "0", valuation: null });
const pair: Pair = { base: asset(1, "EUR"), quote: asset(0, "USD") };

describe("an order", () => {
  it("says what it must be worth to pay for its entry", () => {
    expect(tooLittle({ lots: 1_708, tick: 10_999 }, market)).toBe("1880000000");
    expect(tooLittle({ lots: 1_710, tick: 10_999 }, market)).toBeNull();
    expect(tooLittle({ lots: 1, tick: 1 }, { ...market, least_quote_units: null })).toBeNull();
  });

  it("at the market's price reaches 3 % beyond the best, and nowhere where nobody is", () => {
    expect([reachOf("buy", market), reachOf("sell", market)]).toEqual([10_310, 9_700]);
    expect([reachOf("buy", { bid: 1, ask: null }), reachOf("sell", { bid: null, ask: 1 }), reachOf("sell", { bid: 1, ask: 2 })]).toEqual([null, null, 1]);
  });

  it("of a part of the deposit can be paid with its fees, and has no more lots than an order may", () => {
    expect(lotsOf("sell", "400000000", 25, 1, market)).toBe(100);
    // 400 USD at 1.0000 with 0.2 % fees are 399 lots.
    expect(lotsOf("buy", "400000000", 100, 10_000, market)).toBe(399);
    expect(lotsOf("buy", "999999", 100, 10_000, market)).toBe(0);
    expect(lotsOf("sell", "9".repeat(18), 100, 1, market)).toBe(1_000_000);
    expect(["1.00019", "0.00001", "0", "x"].map((text) => tickOf(text, market, pair))).toEqual([10_001, null, null, null]);
  });
});

it("the depth adds the levels up from the best price on", () => {
  const curves = depthOf({ bids: [[10_000, 3, 1], [9_990, 2, 1]], asks: [[10_010, 1, 1], [10_030, 4, 2]], phase: "trading" }, market, pair);
  expect(curves.price).toBe("1.0005");
  expect(curves.supply.map(({ price, amount }) => [price, amount])).toEqual([["1.001", "1000000"], ["1.003", "5000000"]]);
  expect(curves.demand.map(({ price, amount }) => [price, amount])).toEqual([["0.999", "5000000"], ["1", "3000000"]]);
  expect(depthOf({ bids: [], asks: [], phase: "call" }, market, pair)).toMatchObject({ price: null, supply: [], demand: [] });
});

describe("executions as the page sees them", () => {
  class Line {
    sent: string[] = [];
    isClosed = false;
    onopen: ((event: never) => void) | null = null;
    onmessage: ((event: never) => void) | null = null;
    onclose: ((event: never) => void) | null = null;
    send = (text: string) => void this.sent.push(text);
    close = () => {
      if (this.isClosed) return;
      this.isClosed = true;
      this.onclose?.({} as never);
    };
    says = (text: string) => this.onmessage?.({ data: text } as never);
  }
  let lines: Line[];
  let feed: VenueFeed;
  /** What the venue tells of before, and how often it is asked. */
  let past: VenueTrade[];
  let asked: number;
  let fails: boolean;
  const executed = (event: number, index: string, tick = 10_000) => ({ event, executed: { id: "1", lots: 2, tick, index } });
  const image = (event: number, sequence = 0) => JSON.stringify({ sequence, type: "image", id: 0, image: { market: 7, event } });
  const book = (sequence: number, ...events: object[]) => JSON.stringify({ sequence, type: "book", market: 7, events });

  beforeEach(() => {
    vi.useFakeTimers();
    lines = [];
    const connect = () => (lines.push(new Line()), lines.at(-1) as never);
    [past, asked, fails] = [[], 0, false];
    const told = async (): Promise<VenueTrades> => {
      asked += 1;
      if (fails) throw new Error("busy");
      return { market: 7, trades: past, next: null };
    };
    feed = new VenueFeed(7, { connect, past: told }, () => undefined, () => Date.now());
  });
  afterEach(() => {
    feed.close();
    vi.useRealTimers();
  });

  it("begin with the image, and go on in order", () => {
    const [line] = lines;
    line!.onopen?.({} as never);
    expect(line!.sent).toEqual([JSON.stringify({ id: 0, books: [7] })]);
    line!.says(image(4));
    line!.says(book(1, { event: 5, added: {} }, executed(6, "0", 10_000), executed(7, "1", 10_020)));
    line!.says(JSON.stringify({ sequence: 2, type: "heartbeat" }));
    line!.says(book(3, executed(8, "2", 9_990)));
    expect(feed.trades.map(({ index, tick }) => [index, tick])).toEqual([["0", 10_000], ["1", 10_020], ["2", 9_990]]);
  });

  const before = (index: string, tick: number): VenueTrade => ({ index, time_ms: 1, side: "buy", tick, lots: 3 });

  it("have those of before in front of them, and each once", async () => {
    past = [before("11", 10_050), before("10", 10_040), before("9", 10_030)];
    lines[0]!.says(image(4));
    // It executes before the venue is asked: both tell it. An auction tells a trade for both of its orders.
    lines[0]!.says(book(1, executed(5, "11", 10_050), executed(6, "12"), executed(7, "12")));
    await vi.advanceTimersByTimeAsync(0);
    expect(feed.trades.map(({ index }) => index)).toEqual(["9", "10", "11", "12"]);
  });

  it("ask again for those of before until they are told", async () => {
    [past, fails] = [[before("3", 10_000)], true];
    lines[0]!.says(image(4));
    await vi.advanceTimersByTimeAsync(0);
    expect([asked, feed.trades]).toEqual([1, []]);
    fails = false;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(feed.trades.map(({ index }) => index)).toEqual(["3"]);
  });

  it("ask anew after a gap, and go on where nothing was missed", async () => {
    lines[0]!.says(image(4));
    lines[0]!.says(book(1, executed(5, "0")));
    lines[0]!.close();
    vi.advanceTimersByTime(1_000);
    lines[1]!.says(image(5));
    expect([feed.trades.length, asked]).toEqual([1, 1]);
    lines[1]!.close();
    vi.advanceTimersByTime(2_000);
    past = [before("1", 10_000), before("0", 10_000)];
    lines[2]!.says(image(9));
    await vi.advanceTimersByTimeAsync(0);
    expect([feed.trades.map(({ index }) => index), asked]).toEqual([["0", "1"], 2]);
  });

  it.each([["a message is missed", (line: Line) => line.says(book(2, executed(6, "1")))], ["what is said is no message", (line: Line) => line.says("{")], ["nothing is said", () => vi.advanceTimersByTime(6_000)]])(
    "end their connection, which is made again, where %s",
    (_, fault) => {
      lines[0]!.says(image(4));
      fault(lines[0]!);
      expect(lines[0]!.isClosed).toBe(true);
      vi.advanceTimersByTime(20_000);
      expect(lines.length).toBeGreaterThan(1);
    },
  );

  it("end with the view", () => {
    feed.close();
    expect(lines[0]!.isClosed).toBe(true);
    vi.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(1);
  });
});
