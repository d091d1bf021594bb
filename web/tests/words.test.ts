/** Amounts of transactions stand in the decimals of their assets. */
import { describe, expect, it } from "vitest";
import type { Operation, Outcome } from "@walras/client/bodies";
import { metText, operationText } from "../src/words";

const decimals = (symbol: string): number => ({ USD: 2, BTC: 8, JPY: 0 })[symbol] ?? 0;

describe("transactions in words", () => {
  it("counts what is asked for as people do", () => {
    const pay: Operation = { type: "pay", to: "0x11", asset: "USD", amount: "1250" };
    expect(operationText(pay, decimals)).toBe("Pay 12.50 USD");
    expect(operationText({ ...pay, type: "issue", asset: "JPY" }, decimals)).toBe("Issue 1,250 JPY");
    expect(operationText({ type: "burn", asset: "BTC", amount: "1" }, decimals)).toBe("Burn 0.00000001 BTC");
  });

  it("counts each side of an offer in its own asset", () => {
    const offer: Operation = { type: "create_offer", sell: "BTC", buy: "USD", amount: "150000000", limit: "0.05", life: "rests" };
    const met: Outcome = { result: "offered", sold: "120000000", bought: "7705200", left: "30000000", returned: "0", why: "part" };
    expect(operationText(offer, decimals)).toBe("Sell 1.50000000 BTC for USD");
    expect(metText(offer, met, "sold", decimals)).toBe("1.20000000 BTC");
    expect(metText(offer, met, "bought", decimals)).toBe("77,052.00 USD");
    expect(metText(offer, met, "left", decimals)).toBe("0.30000000 BTC");
    expect(metText(offer, { result: "applied" }, "sold", decimals)).toBe("");
  });
});
