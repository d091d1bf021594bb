/** Amounts of transactions stand in the decimals of their assets. */
import { describe, expect, it } from "vitest";
import type { Asset, Operation, Outcome } from "@walras/client/bodies";
import { checkStatus, exactAdvice, metText, operationText, orderEnd, outcomeText } from "../src/words";

const decimals = (symbol: string): number => ({ USD: 2, BTC: 8, JPY: 0 })[symbol] ?? 0;
const asset = (number: number, symbol: string): [string, Asset] => [symbol, { asset: number, symbol, decimals: decimals(symbol), issuer: "0x", least_units: "1", issued: "0", valuation: null }];
const known = { assets: new Map([asset(0, "USD"), asset(1, "BTC"), asset(2, "JPY")]), decimals };

describe("transactions in words", () => {
  it("counts what is asked for as people do", () => {
    const pay: Operation = { type: "pay", to: "0x11", asset: "USD", amount: "1250" };
    expect(operationText(pay, known)).toBe("Pay 12.50 USD");
    expect(operationText({ ...pay, type: "issue", asset: "JPY" }, known)).toBe("Issue 1,250 JPY");
    expect(operationText({ type: "burn", asset: "BTC", amount: "1" }, known)).toBe("Burn 0.00000001 BTC");
    expect(operationText({ type: "venue", action: "raise_floor", venue: 3, key: "0x", floor: { incarnation: 0, day: 1, reference: 2 } }, known)).toBe("Venue 3: raise floor");
  });

  it("counts each side of an offer in its own asset", () => {
    const offer: Operation = { type: "create_offer", sell: "BTC", buy: "USD", amount: "150000000", limit: "0.05", life: "rests" };
    const met: Outcome = { result: "offered", sold: "120000000", bought: "7705200", left: "30000000", returned: "0", why: "part" };
    expect(operationText(offer, known)).toBe("Sell 1.5 BTC at 50,000 USD");
    expect(metText(offer, met, "sold", known)).toBe("1.20000000 BTC");
    expect(metText(offer, met, "bought", known)).toBe("77,052.00 USD");
    expect(metText(offer, met, "left", known)).toBe("0.3 BTC");
    expect(metText(offer, { result: "applied" }, "sold", known)).toBe("");
  });
});

describe("exact orders", () => {
  const asked: Operation = { type: "exact", sell: "USD", buy: "BTC", side: "buy", units: "5000000", bound: "300000" };
  const filled: Outcome = { result: "exact", sold: "250000", bought: "5000000", returned: "50000", why: "filled" };

  it("say which amount is exact, and what they moved", () => {
    expect(operationText(asked, known)).toBe("Buy exactly 0.05 BTC at 60,000 USD");
    expect(["sold", "bought", "returned", "left"].map((part) => metText(asked, filled, part as never, known))).toEqual(["2,500.00 USD", "0.05000000 BTC", "500.00 USD", "0.00 USD"]);
    expect(outcomeText(filled)).toBe("Filled exactly");
  });

  it("say why they were not filled, and what helps", () => {
    expect(outcomeText({ ...filled, why: "no_room" })).toBe("Not filled: there was no room for it beside the offers");
    for (const why of ["no_price", "beyond_bound", "group_not_full", "no_room"]) {
      expect(orderEnd("ended", why, true)).toMatch(/^Not filled: /);
      expect(exactAdvice(why)).toMatch(/\.$/);
    }
    expect([orderEnd("ended", "filled", true), exactAdvice("filled"), exactAdvice(null)]).toEqual(["Filled exactly", "", ""]);
    expect(orderEnd("refused", "exact_too_small", true)).toBe("Refused: exact too small");
    expect(orderEnd("ended", "by_magic", true)).toBe("Not filled: by magic");
  });
});

describe("what became of it", () => {
  it("says how an order ended and why, and what it does not know as it stands", () => {
    expect(orderEnd("ended", "filled")).toBe("Filled");
    expect(orderEnd("ended", "expired")).toBe("Expired at its last block");
    expect(orderEnd("refused", "sells_too_little")).toBe("Refused: sells too little");
    expect(orderEnd("void", "ended")).toBe("Void: no block can contain it any more");
    expect(orderEnd("paused", "by_the_venue")).toBe("Paused: by the venue");
  });

  it("takes no unknown status for committed", () => {
    checkStatus("pending");
    checkStatus("committed");
    expect(() => checkStatus("reverted")).toThrow("“reverted”");
    expect(() => checkStatus("a".repeat(500) + "\u202e")).toThrow("…”");
  });
});
