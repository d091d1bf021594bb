/** What contracts say: decoded where it fits exactly, in the decimals of its assets, and cleaned. */
import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { describe, expect, it } from "vitest";
import { ENTRIES, OFFERS, WETH9, decodeCall, decodeError, decodeLog, offerName, panicText, type Said } from "../src/abi";
import type { Asset } from "@walras/client/bodies";
import { bytesText, contractName, reasonText, valueText, weiText } from "../src/tokens";
import { stranger } from "../src/words";
import abi from "../../sdk/ethereum/abi/IOffers.json";

const token = (asset: number) => `0x57616c72617300000000000000000000${asset.toString(16).padStart(8, "0")}`;
const asset = (symbol: string, asset: number, decimals: number): [string, Asset] => [
  symbol,
  { asset, symbol, decimals, issuer: "0x", least_units: "1", issued: "1", valuation: null, token: token(asset) },
];
const ASSETS = new Map([asset("GAS", 0, 6), asset("EUR", 1, 2), asset("JPY", 2, 0)]);
const SOMEBODY = "0x" + "ab".repeat(20);
const word = (value: bigint | number | string) => BigInt(value).toString(16).padStart(64, "0");
const hex = (text: string) => Buffer.from(text).toString("hex");
const error = (text: string) => "0x08c379a0" + word(32) + word(hex(text).length / 2) + hex(text);
const shown = (said: Said | null, at: string) => said && [said.name, ...said.values.map((value) => valueText(value, said, at, ASSETS))];
const keccak = (text: string) => "0x" + bytesToHex(keccak_256(utf8ToBytes(text)));
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const FILLED = "0xb2d7fea430b1eabdf217d9a790b493ee386ebcd511e4028bd9894a13b9d31d2f";
const offer = "0x" + "0".repeat(16) + "00000001" + "00000002" + "1".repeat(16) + ((1n << 63n) + 5n).toString(16);

describe("the tables of functions, errors and logs", () => {
  it("have the keys that their names hash to", () => {
    for (const [key, { name, fields }] of ENTRIES) {
      expect([name, keccak(`${name}(${fields.map((field) => field.type).join(",")})`).slice(0, key.length)]).toEqual([name, key]);
    }
  });

  it("have every event, error and change of the offers, as the ABI has them", () => {
    const known = ENTRIES.map(([, { name, fields }]) => `${name}(${fields.map(({ name, type, indexed }) => `${type} ${name}${indexed ? "+" : ""}`).join(",")})`);
    type Item = { type: string; name: string; stateMutability?: string; inputs: { type: string; name: string; indexed?: boolean }[] };
    for (const { type, name, inputs, stateMutability } of abi as Item[]) {
      if (stateMutability === "view") continue;
      expect(known, type).toContain(`${name}(${inputs.map((one) => `${one.type} ${one.name}${one.indexed ? "+" : ""}`).join(",")})`);
    }
  });
});

describe("calls and logs", () => {
  it("are told in the decimals of their tokens, beyond what a double holds", () => {
    const transfer = (amount: bigint | number) => "0xa9059cbb" + word(SOMEBODY) + word(amount);
    expect(shown(decodeCall(token(1), transfer(1_250_50)), token(1))).toEqual(["transfer", "0xabababab…abababab", "1,250.50 EUR"]);
    expect(shown(decodeCall(token(2), transfer(2n ** 63n + 1n)), token(2))?.[2]).toBe("9,223,372,036,854,775,809 JPY");
    expect(shown(decodeCall(WETH9, transfer(10n ** 18n + 1n)), WETH9)?.[2]).toBe("1.000000000000000001 WGAS");
    expect(shown(decodeCall(SOMEBODY, transfer(7)), SOMEBODY)?.[2]).toBe("7 units");
    const approve = "0x095ea7b3" + word(OFFERS) + word(2n ** 256n - 1n);
    expect(shown(decodeCall(token(1), approve), token(1))).toEqual(["approve", "Offers", "unlimited"]);
    const topics = [TRANSFER, "0x" + word(SOMEBODY), "0x" + word(OFFERS)];
    expect(shown(decodeLog(token(1), topics, "0x" + word(5)), token(1))).toEqual(["Transfer", "0xabababab…abababab", "Offers", "0.05 EUR"]);
    const filled = decodeLog(OFFERS, [FILLED, "0x" + word(SOMEBODY), offer], "0x" + [100, 17, 3, 0].map(word).join(""));
    expect(shown(filled, OFFERS)).toEqual(["Filled", "0xabababab…abababab", "EUR → JPY, number 5", "1.00 EUR", "17 JPY", "0.03 EUR", "0.00 EUR"]);
    expect(weiText(10n ** 30n + 1n, ASSETS)).toBe("1,000,000,000,000.000000000000000001 GAS");
  });

  it("name each offer of a list", () => {
    const list = (...words: string[]) => "0xbdccc3f4" + word(32) + word(words.length) + words.join("");
    expect(shown(decodeCall(OFFERS, list(offer.slice(2), word(7))), OFFERS)).toEqual(["cancel", `EUR → JPY, number 5; 0x${word(7)}`]);
    expect(shown(decodeCall(OFFERS, list()), OFFERS)).toEqual(["cancel", "none"]);
    expect(decodeCall(OFFERS, list(word(7)).slice(0, -2))).toBeNull();
    expect(decodeCall(OFFERS, "0xbdccc3f4" + word(32) + word(2n ** 31n))).toBeNull();
  });

  it("are left alone where they do not fit, or stand elsewhere", () => {
    const topics = [TRANSFER, "0x" + word(SOMEBODY), "0x" + word(OFFERS)];
    for (const [address, all, data] of [
      [token(1), topics.slice(0, 2), "0x" + word(5)],
      [token(1), [...topics, "0x" + word(1)], "0x"],
      [token(1), topics, "0x"],
      [token(1), topics, "0x" + word(5) + word(6)],
      [token(1), [TRANSFER, "0x" + word(2n ** 160n), topics[2]!], "0x" + word(5)],
      [token(1), topics, "0xzz" + word(5).slice(2)],
      [OFFERS, topics, "0x" + word(5)],
      [SOMEBODY, [FILLED, "0x" + word(SOMEBODY), offer], "0x" + [1, 2, 3, 4].map(word).join("")],
      [OFFERS, [FILLED, "0x" + word(SOMEBODY), offer], "0x" + [2n ** 64n, 2, 3, 4].map(word).join("")],
      [token(1), [], "0x"],
    ] as [string, string[], string][]) {
      expect(decodeLog(address, all, data)).toBeNull();
    }
    expect(decodeCall(token(1), "0xa9059cbb" + word(1))).toBeNull();
    expect(decodeCall(token(1), "0x")).toBeNull();
    expect(offerName("0x" + word(7))).toBeNull();
    expect(contractName(ASSETS, token(3))).toBeNull();
  });
});

describe("reasons", () => {
  it("are told in words, and as bytes where nobody knows them", () => {
    const told = (output: string) => reasonText(output, (output.length - 2) / 2, ASSETS);
    expect(told(error("not enough"))).toBe("It reverted: “not enough”");
    expect(told("0x4e487b71" + word(0x11))).toBe("It reverted: Panic 0x11: arithmetic overflow or underflow");
    expect(told("0xad61e2ba" + word(token(1)))).toBe("It reverted: UnknownAsset (token EUR)");
    expect(told("0x9cce15fc")).toBe("It reverted: BookFull");
    expect(told("0x12345678")).toBe("It reverted with 0x12345678");
    expect(told("0x")).toBe("It reverted and gave no reason.");
    expect(panicText(2n ** 255n)).toContain("Panic 0x8000");
  });

  it("do not follow lies about offsets and lengths", () => {
    for (const [offset, length] of [[32, 4], [32, 2n ** 32n - 1n], [32, 2n ** 255n], [2n ** 32n - 1n, 3], [2n ** 255n, 3], [33, 3]] as const) {
      expect(decodeError("0x08c379a0" + word(offset) + word(length) + hex("no!"))).toBeNull();
    }
  });

  it("are cut where they are long", () => {
    const long = reasonText(error("x".repeat(100_000)), 100_068, ASSETS);
    expect(long.length).toBeLessThan(400);
    const bytes = bytesText("0x" + "ab".repeat(4_096), 1_000_000);
    expect(bytes.length).toBeLessThan(2_100);
    expect(bytes.endsWith("… (1000000 bytes)")).toBe(true);
  });
});

describe("texts of strangers", () => {
  it("are one line of visible characters in their own direction", () => {
    for (const bad of ["\n", "\r", "\t", "\u0000", "\u001b", "\u0085", "\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff", "\u{e0041}", "\ud800"]) {
      expect(stranger(`a${bad}b`, 10)).toBe("a\ufffdb");
    }
    expect(stranger("<b>plain</b> größer 漢字 😀", 50)).toBe("<b>plain</b> größer 漢字 😀");
    expect(stranger("a" + "\u0301".repeat(50) + "b", 50)).toBe("a\u0301\u0301\u0301b");
    expect(stranger("😀".repeat(20), 5)).toBe("😀".repeat(5) + "…");
    expect(stranger("\u0301".repeat(10_000_000), 5).length).toBeLessThan(10);
  });
});
