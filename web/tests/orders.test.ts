/** Orders and keys of the page, held against the published vectors and against a node that lies. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Asset, Quote } from "@walras/client/bodies";
import { parseDecimal, toNumber } from "@walras/client/decimal";
import { addressOf } from "@walras/client/ethereum";
import { demoTraders, exportKey, forgetKey, keepKey, keptAddress, unlockKey } from "../src/trade/keys";
import { exactTermsOf, exactly, lockedBy, orderOf, termsOf, type ExactOrder, type Order, type Terms } from "@walras/client/terms";
import { boundsOf, check, filledOf } from "../src/trade/orders";
import { insteadPrice, marketLimit, planOf, type Plan } from "@walras/client/placing";
import { described, orderText, restText } from "../src/trade/placing";
import { partOf, planWords } from "../src/views/ticket-words";
import { fromHex, hashTypedData, toHex, type TypedData } from "@walras/client/typed";

type Vector = { key: string; account: string; hash: string; signature: string; typed_data: TypedData };
const vectors = (JSON.parse(readFileSync(new URL("../../docs/vectors.json", import.meta.url), "utf8")) as { typed_data: Vector[] }).typed_data;

const asset = (number: number, symbol: string, decimals: number, least_units = "1"): [string, Asset] => [
  symbol,
  { asset: number, symbol, decimals, issuer: "0x", least_units, issued: "0", valuation: null },
];
const ASSETS = new Map([asset(0, "USD", 2), asset(1, "EUR", 4), asset(2, "JPY", 0, "100")]);

const stored = new Map<string, string>();
beforeEach(() => {
  stored.clear();
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, value: string) => stored.set(name, value),
    removeItem: (name: string) => stored.delete(name),
  });
});
afterEach(() => vi.unstubAllGlobals());

describe("typed data", () => {
  it("has the published hashes, for every kind of transaction", () => {
    expect(vectors.length).toBeGreaterThan(8);
    for (const vector of vectors) expect(toHex(hashTypedData(vector.typed_data))).toBe(vector.hash);
  });

  it("is signed as the published vectors are", async () => {
    for (const { key, account, signature, typed_data } of vectors) {
      expect(addressOf(fromHex(key))).toBe(account);
      const trader = await keepKey("a good passphrase", key);
      const full = fromHex(await trader.sign(typed_data));
      // The compact form of EIP-2098 has the parity in the highest bit of s.
      const compact = full.slice(0, 64);
      if (full[64] === 28) compact[32] = compact[32]! | 0x80;
      expect(toHex(compact)).toBe(signature);
      if (typed_data.primaryType === "Pay") break;
    }
  });
});

describe("a key in the browser", () => {
  it("is encrypted, and opens with its passphrase only", async () => {
    const trader = await keepKey("a good passphrase", null);
    expect(keptAddress()).toBe(trader.address);
    const secret = await exportKey("a good passphrase");
    expect(addressOf(fromHex(secret))).toBe(trader.address);
    expect([...stored.values()].join()).not.toContain(secret.slice(2));
    expect((await unlockKey("a good passphrase")).address).toBe(trader.address);
    await expect(unlockKey("another passphrase")).rejects.toThrow("The passphrase is wrong.");
    forgetKey();
    await expect(unlockKey("a good passphrase")).rejects.toThrow("keeps no key");
  });

  it("is refused where it is none", async () => {
    await expect(keepKey("a good passphrase", "0x1234")).rejects.toThrow("64 hexadecimal digits");
    await expect(keepKey("a good passphrase", "0".repeat(64))).rejects.toThrow("no private key");
    expect(keptAddress()).toBe(null);
  });

  it("of a demo is the one that development tools know", () => {
    expect(demoTraders()[0]!.address).toBe("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
  });
});

describe("an order", () => {
  const order = (change: Partial<Order> = {}): Order => ({ side: "sell", base: "EUR", quote: "USD", amount: "100", price: "1.05", ...change });

  it("to sell offers the amount at the price, in units", () => {
    // One unit of EUR is 0.0001, one of USD 0.01: 1.05 USD for one EUR are 0.0105 units for one.
    expect(termsOf(order(), ASSETS)).toEqual({ sell: "EUR", buy: "USD", amount: "1000000", limit: "0.0105" });
    expect(termsOf(order({ quote: "JPY", price: "150", amount: "0.7" }), ASSETS)).toEqual({ sell: "EUR", buy: "JPY", amount: "7000", limit: "0.015" });
  });

  it("to buy offers what it costs, for no less than the amount", () => {
    expect(termsOf(order({ side: "buy", price: "1.25" }), ASSETS)).toEqual({ sell: "USD", buy: "EUR", amount: "12500", limit: "80" });
    // 1 ÷ 0.000108 in the ledger's digits, rounded up.
    expect(termsOf(order({ side: "buy", quote: "USD", price: "0.0108", amount: "1000" }), ASSETS)).toMatchObject({ limit: "9259.2592592592593" });
    // Parts of a unit are paid, never left out of the amount.
    expect(termsOf(order({ side: "buy", amount: "0.3333", price: "1.07" }), ASSETS)).toMatchObject({ sell: "USD", amount: "36" });
  });

  it("that cannot be is refused in words that say what to write", () => {
    expect(termsOf(order({ amount: "0.00001" }), ASSETS)).toContain("EUR has 4 places after the point");
    expect(termsOf(order({ amount: "-5" }), ASSETS)).toContain("above 0");
    expect(termsOf(order({ amount: "1e3" }), ASSETS)).toContain("above 0");
    expect(termsOf(order({ price: "1.23456789012345678" }), ASSETS)).toContain("at most 17 digits");
    expect(termsOf(order({ price: "" }), ASSETS)).toContain("price in USD for one EUR");
    expect(termsOf(order({ quote: "XYZ" }), ASSETS)).toContain("XYZ is not an asset");
    expect(termsOf(order({ quote: "JPY", amount: "0.5", price: "150" }), ASSETS)).toContain("asks for 75 JPY; the least is 100 JPY");
  });

  it("says what it gives and gets at its limit, and what a batch would make of it", () => {
    const buy = order({ side: "buy", price: "1.06" });
    const terms = termsOf(buy, ASSETS) as Terms;
    const bounds = boundsOf(terms, ASSETS)!;
    expect([toNumber(bounds.gives), toNumber(bounds.gets)]).toEqual([106, 100]);
    // The batch was better: half of the money bought 50.25.
    const quote = { ...terms, sold: "5300", bought: "502500", left: "5300" } as unknown as Quote;
    const filled = filledOf(quote, buy, terms, ASSETS)!;
    expect([filled.share, toNumber(filled.bought)]).toEqual([0.5, 50.25]);
    expect(filled.price).toBeCloseTo(53 / 50.25);
    expect(filledOf({ ...quote, sold: "0", bought: "0" }, buy, terms, ASSETS)!.share).toBe(0);
  });
});

describe("an exact order", () => {
  const order = (change: Partial<ExactOrder> = {}): ExactOrder => ({ side: "buy", base: "EUR", quote: "USD", amount: "100", bound: "120", ...change });

  it("names the units, and the bound in all, of the two assets", () => {
    const bought = exactTermsOf(order(), ASSETS);
    expect(bought).toEqual({ sell: "USD", buy: "EUR", side: "buy", units: "1000000", bound: "12000" });
    const sold = exactTermsOf(order({ side: "sell" }), ASSETS);
    expect(sold).toEqual({ sell: "EUR", buy: "USD", side: "sell", units: "1000000", bound: "12000" });
    expect([bought, sold].map((terms) => lockedBy(terms as never))).toEqual(["12000", "1000000"]);
  });

  it("that cannot be is refused in words that say what to write", () => {
    expect(exactTermsOf(order({ amount: "0" }), ASSETS)).toContain("exact amount of EUR as a number above 0");
    expect(exactTermsOf(order({ amount: "0.00001" }), ASSETS)).toContain("EUR has 4 places after the point");
    expect(exactTermsOf(order({ bound: "" }), ASSETS)).toContain("the most that you pay in all, in USD");
    expect(exactTermsOf(order({ side: "sell", bound: "-1" }), ASSETS)).toContain("the least that you receive in all, in USD");
    expect(exactTermsOf(order({ bound: "1.001" }), ASSETS)).toContain("USD has 2 places after the point");
    expect(exactTermsOf(order({ base: "JPY", amount: "99" }), ASSETS)).toContain("for at least 100 JPY");
    expect(exactTermsOf(order({ bound: "92233720368547758.08" }), ASSETS)).toContain("more than an account can have");
    expect(typeof exactTermsOf(order({ bound: "92233720368547758.07" }), ASSETS)).toBe("object");
    expect(exactTermsOf(order({ quote: "XYZ" }), ASSETS)).toContain("XYZ is not an asset");
  });
});

describe("one description of an order", () => {
  const base = ASSETS.get("EUR")!;
  const quote = ASSETS.get("USD")!;
  const draw = (seed: number) => () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;

  it("is what was written, whatever the ledger made of it", () => {
    const random = draw(7);
    for (let turn = 0; turn < 2_000; turn += 1) {
      const price = ((0.01 + 100 * random()) as number).toFixed(1 + Math.floor(6 * random()));
      const amount = (1 + 10_000 * random()).toFixed(Math.floor(5 * random()));
      if (Number(price) === 0) continue;
      for (const side of ["buy", "sell"] as const) {
        const written: Order = { side, base: "EUR", quote: "USD", amount: trimmed(amount), price: trimmed(price) };
        const terms = termsOf(written, ASSETS);
        if (typeof terms === "string") continue;
        const told = orderOf(terms, base, quote)!;
        expect([told.side, told.price]).toEqual([side, written.price]);
        // Cents cannot tell apart amounts that cost as many of them: the simplest of these is told.
        expect(termsOf(told, ASSETS)).toEqual(terms);
        if (side === "sell") expect(told.amount).toBe(written.amount);
        else expect(told.amount.length).toBeLessThanOrEqual(written.amount.length);
      }
    }
  });

  it("tells a purchase by its base amount, and so its rest", () => {
    const terms = termsOf({ side: "buy", base: "EUR", quote: "USD", amount: "50", price: "1.2" }, ASSETS) as Terms;
    expect(terms).toEqual({ sell: "USD", buy: "EUR", amount: "6000", limit: "83.333333333333334" });
    const told = described(terms, ASSETS)!;
    expect(orderText(told)).toBe("Buy 50 EUR at 1.2 USD");
    expect(restText("6000", terms, ASSETS)).toBe("50 EUR");
    expect(restText("3000", terms, ASSETS)).toBe("25 EUR");
    // The market is that of the asset with the higher number, or the one that is asked for.
    expect(orderText(described({ sell: "EUR", buy: "JPY", amount: "7000", limit: "0.015" }, ASSETS)!)).toBe("Buy 105 JPY at 0.006666666666666667 EUR");
    expect(orderText(described({ sell: "EUR", buy: "JPY", amount: "7000", limit: "0.015" }, ASSETS, "EUR")!)).toBe("Sell 0.7 EUR at 150 JPY");
  });

  it("tells an exact order by its amount and the price of its bound", () => {
    const exact = (side: "buy" | "sell") => exactTermsOf(exactly({ side, base: "EUR", quote: "USD", amount: "50", price: "1.2" }, ASSETS) as ExactOrder, ASSETS) as never as { sell: string; buy: string; side: "buy" | "sell"; units: string; bound: string };
    for (const side of ["buy", "sell"] as const) {
      const terms = exact(side);
      expect(orderText(described({ ...terms, amount: "0", limit: "1", exact: terms }, ASSETS)!)).toBe(`${side === "buy" ? "Buy" : "Sell"} exactly 50 EUR at 1.2 USD`);
    }
  });
});

describe("a purchase of a base amount", () => {
  const order: Order = { side: "buy", base: "EUR", quote: "USD", amount: "50", price: "1.2" };

  it("that the next batch would fill whole buys exactly that, for no more than its price", () => {
    const plan = planOf(order, "rests", { sold: "6000", amount: "6000" }, ASSETS);
    expect(plan).toMatchObject({ kind: "exact", terms: { sell: "USD", buy: "EUR", side: "buy", units: "500000", bound: "6000" } });
    // Parts of a unit are never paid on top.
    expect(planOf({ ...order, amount: "0.3333", price: "1.07" }, "one batch", { sold: "36", amount: "36" }, ASSETS)).toMatchObject({ terms: { units: "3333", bound: "35" } });
  });

  it("that would be filled in part, or wait, is an offer of what it costs at its limit", () => {
    for (const sold of ["0", "5999"]) expect(planOf(order, "rests", { sold, amount: "6000" }, ASSETS)).toMatchObject({ kind: "limit", life: "rests", terms: { amount: "6000" } });
    expect(planOf(order, "one batch", null, ASSETS)).toMatchObject({ kind: "limit", life: "one batch" });
    expect(planOf(order, "whole", null, ASSETS)).toMatchObject({ kind: "exact" });
  });

  it("for which the offers leave no room may go as an offer at about the price of the batch, and never beyond its own", () => {
    const at = insteadPrice(order, { sold: "6000", bought: "560000" }, ASSETS);
    expect(at).toBe("1.0725");
    // 53.625 USD: at the batch's price they buy a thousandth more than was asked for.
    expect(planOf({ ...order, price: at }, "rests", null, ASSETS)).toMatchObject({ kind: "limit", terms: { amount: "5363" } });
    expect(insteadPrice(order, { sold: "6000", bought: "500001" }, ASSETS)).toBe("1.2");
    expect(insteadPrice(order, { sold: "0", bought: "0" }, ASSETS)).toBe("");
  });

  it("is no concern of a sale, which stops at its amount by itself", () => {
    expect(planOf({ ...order, side: "sell" }, "rests", { sold: "500000", amount: "500000" }, ASSETS)).toMatchObject({ kind: "limit", terms: { sell: "EUR", amount: "500000" } });
    expect(planOf({ ...order, side: "sell" }, "whole", null, ASSETS)).toMatchObject({ kind: "exact", terms: { units: "500000", bound: "6000" } });
  });

  it("by a part of what is available costs no more than that, fees included", () => {
    expect(partOf("10000", 0n, 100, 2, parseDecimal("1.2"), 4)).toBe("83.3333");
    expect(partOf("10000", 40n, 50, 2, parseDecimal("1.2"), 4)).toBe("41.5");
    expect(partOf("500001", 0n, 25, 4, null, 4)).toBe("12.5");
    expect(partOf("10", 40n, 100, 2, null, 4)).toBe("0");
    expect([marketLimit("buy", "1.2"), marketLimit("sell", "1.2"), marketLimit("buy", "")]).toEqual(["1.26", "1.14", ""]);
  });
});

describe("the ticket's words", () => {
  const order: Order = { side: "buy", base: "EUR", quote: "USD", amount: "50", price: "1.2" };
  const words = (sold: string, bought: string, change: Partial<Order> = {}, life: "rests" | "one batch" | "whole" = "rests", why: string | null = null) => {
    const asked = { ...order, ...change };
    const terms = termsOf(asked, ASSETS) as Terms;
    const quote = { ...terms, sold, bought } as unknown as Quote;
    const exact = why === null ? null : ({ why } as Quote);
    return planWords(planOf(asked, life, quote, ASSETS) as Plan, terms, quote, ASSETS, exact);
  };

  it("say what a purchase buys, what it costs at most, and that nothing else happens", () => {
    expect(words("6000", "560000")).toBe("You buy exactly 50 EUR in the next batch and pay at most 60 USD, or nothing happens. As things stand: about 1.071429 USD each.");
    expect(words("3000", "280000", {}, "whole")).toContain("As things stand it would not");
  });

  it("say that there is no room for an exact order", () => {
    for (const life of ["rests", "whole"] as const) expect(words("6000", "560000", {}, life, "no_room")).toContain("As things stand it would not: Orders for exact amounts take what offers leave.");
    expect(words("6000", "560000", {}, "rests", "filled")).toContain("As things stand: about 1.071429 USD each.");
  });

  it("say of one that waits that its money may buy more", () => {
    expect(words("0", "0")).toBe("In the next batch nobody would take it at this price: it would wait. It pays 60 USD at most; should a later batch be better than your limit, the same money buys more.");
    expect(words("3000", "280000", {}, "one batch")).toBe("If nothing else came, the next batch would fill 50.0\u202f% of it, at about 1.071429 USD each. The rest would return.");
  });

  it("say of a sale what the batch would make of it", () => {
    expect(words("500000", "6500", { side: "sell" })).toBe("If nothing else came, the next batch would fill all of it, at about 1.300000 USD each.");
    expect(words("0", "0", { side: "sell" })).toBe("In the next batch nobody would take it at this price: it would wait.");
  });
});

const trimmed = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

describe("a node that lays out something else than was asked for", () => {
  const trader = { address: "0x4a62316623ad457f02cdc5d997ded67a383ec569" };
  const network = { chain: "31337", network: "0x" + "4e".repeat(32) };
  const operation = { type: "create_offer", sell: "EUR", buy: "USD", amount: "1000000", limit: "0.0105", life: "rests", client: "0x" + "00".repeat(16) };
  const field = (name: string, type: string) => ({ name, type });
  const told = (change: (data: TypedData) => void = () => undefined) => {
    const typed_data: TypedData = {
      types: {
        EIP712Domain: [field("name", "string"), field("version", "string"), field("chainId", "uint256"), field("salt", "bytes32")],
        CreateOffer: [field("account", "address"), field("sequence", "uint64"), field("until", "uint64"), field("sell", "uint32"), field("buy", "uint32"), field("amount", "uint64"), field("limit", "string"), field("life", "string"), field("client", "bytes16")],
      },
      primaryType: "CreateOffer",
      domain: { name: "Walras", version: "1", chainId: 31337, salt: network.network },
      message: { account: trader.address, sequence: "5", until: "70", sell: "1", buy: "0", amount: "1000000", limit: "0.0105", life: "rests", client: "0x" + "00".repeat(16) },
    };
    change(typed_data);
    return { sequence: "5", until: "70", unsigned: "0x00", hash: toHex(hashTypedData(typed_data)), typed_data };
  };
  const checked = (change?: (data: TypedData) => void) => () => check(told(change), trader, operation, "70", network, ASSETS);

  it("gets no signature", () => {
    expect(checked()).not.toThrow();
    const lies: ((data: TypedData) => void)[] = [
      (data) => (data.message["amount"] = "1000001"),
      (data) => (data.message["limit"] = "0.0104"),
      (data) => (data.message["life"] = "one batch"),
      (data) => (data.message["sell"] = "0"),
      (data) => (data.message["account"] = "0x" + "11".repeat(20)),
      (data) => (data.message["until"] = "71"),
      (data) => (data.message["sequence"] = "6"),
      (data) => (data.domain["salt"] = "0x" + "4f".repeat(32)),
      (data) => (data.domain["chainId"] = 1),
      (data) => {
        data.types["CreateOffer"]!.push({ name: "more", type: "uint64" });
        data.message["more"] = "1";
      },
      (data) => {
        data.types["Pay"] = data.types["CreateOffer"]!;
        data.primaryType = "Pay";
      },
    ];
    for (const lie of lies) expect(checked(lie)).toThrow("nothing was signed");
    const honest = told();
    const offer = (id: string, sell = "EUR") => ({ sell, buy: "USD", limit: "0.0105", offer: id });
    const cancel = (offers: Record<string, string>[]) => {
      const typed_data: TypedData = {
        ...told().typed_data,
        types: {
          ...told().typed_data.types,
          Cancel: [field("account", "address"), field("sequence", "uint64"), field("until", "uint64"), field("offers", "Offer[]")],
          Offer: [field("sell", "uint32"), field("buy", "uint32"), field("limit", "string"), field("offer", "uint64")],
        },
        primaryType: "Cancel",
        message: { account: trader.address, sequence: "5", until: "70", offers: offers.map((one) => ({ ...one, sell: one["sell"] === "EUR" ? "1" : "0", buy: "0" })) },
      };
      const laid = { sequence: "5", until: "70", unsigned: "0x00", hash: toHex(hashTypedData(typed_data)), typed_data };
      return () => check(laid, trader, { type: "cancel", offers: [offer("7"), offer("8")] }, "70", network, ASSETS);
    };
    expect(cancel([offer("7"), offer("8")])).not.toThrow();
    for (const lie of [[offer("7")], [offer("7"), offer("9")], [offer("7"), offer("8", "USD")]]) {
      expect(cancel(lie)).toThrow("nothing was signed");
    }
    const terms = { sell: "EUR", buy: "USD", side: "sell", units: "1000000", bound: "12000" };
    const exact = (change: (message: Record<string, unknown>) => void = () => undefined) => {
      const typed_data: TypedData = {
        ...told().typed_data,
        types: {
          ...told().typed_data.types,
          Exact: [field("account", "address"), field("sequence", "uint64"), field("until", "uint64"), field("sell", "uint32"), field("buy", "uint32"), field("side", "string"), field("units", "uint64"), field("bound", "uint64"), field("client", "bytes16")],
        },
        primaryType: "Exact",
        message: { account: trader.address, sequence: "5", until: "70", ...terms, sell: "1", buy: "0", client: operation.client },
      };
      change(typed_data.message);
      const laid = { sequence: "5", until: "70", unsigned: "0x00", hash: toHex(hashTypedData(typed_data)), typed_data };
      return () => check(laid, trader, { type: "exact", ...terms, client: operation.client }, "70", network, ASSETS);
    };
    expect(exact()).not.toThrow();
    for (const [name, value] of [["side", "buy"], ["units", "1000001"], ["bound", "1"], ["sell", "0"]]) {
      expect(exact((message) => (message[name!] = value))).toThrow("nothing was signed");
    }
    expect(() => check({ ...honest, hash: "0x" + "00".repeat(32) }, trader, operation, "70", network, ASSETS)).toThrow("hash");
  });
});
