import { expect, it } from "vitest";
import { find, href, parseRoute } from "../src/router";

const ADDRESS = "0x" + "a1".repeat(20);
const DIGEST = "0x" + "0f".repeat(32);

it("reads every address that the page writes", () => {
  expect(parseRoute("")).toEqual({ view: "home" });
  expect(parseRoute(href.home)).toEqual({ view: "home" });
  expect(parseRoute(href.network)).toEqual({ view: "network" });
  expect(parseRoute(href.markets)).toEqual({ view: "markets" });
  expect(parseRoute(href.market("E.U-R", "U_SD"))).toEqual({ view: "market", base: "E.U-R", quote: "U_SD" });
  expect(parseRoute(href.blocks)).toEqual({ view: "blocks", before: null });
  expect(parseRoute(href.blocksBefore(20))).toEqual({ view: "blocks", before: 20 });
  expect(parseRoute(href.block(7))).toEqual({ view: "block", height: 7 });
  expect(parseRoute(href.accounts)).toEqual({ view: "account", address: null });
  expect(parseRoute(href.validators)).toEqual({ view: "validators" });
  expect(parseRoute(href.lane)).toEqual({ view: "lane" });
  expect(parseRoute(href.fairness)).toEqual({ view: "fairness" });
  expect(parseRoute("#/fairness/1").view).toBe("unknown");
  expect(parseRoute(href.account(ADDRESS))).toEqual({ view: "account", address: ADDRESS });
  expect(parseRoute(href.transaction(DIGEST))).toEqual({ view: "transaction", id: DIGEST });
  expect(parseRoute(href.ethereum(DIGEST))).toEqual({ view: "ethereum", hash: DIGEST });
});

it("knows what it does not know", () => {
  for (const hash of ["#/block/x", "#/block/-1", "#/account/0x12", "#/transaction/1", "#/ethereum/0x12", "#/market/EUR", "#/nonsense", "#/%E0%A4%A"]) {
    expect(parseRoute(hash).view).toBe("unknown");
  }
});

it("finds blocks, accounts, transactions and pairs", () => {
  const symbols = ["USD", "EUR", "Gold"];
  expect(find("1,234", symbols)).toBe(href.block(1234));
  expect(find(" #17 ", symbols)).toBe(href.block(17));
  const mixed = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
  expect(find(mixed, symbols)).toBe(href.account(mixed));
  expect(parseRoute(href.account(mixed))).toEqual({ view: "account", address: mixed });
  expect(find(ADDRESS.toUpperCase().replace("0X", "0x"), symbols)).toBe(href.account(ADDRESS));
  expect(find(DIGEST, symbols)).toBe(href.transaction(DIGEST));
  expect(find("eur/usd", symbols)).toBe(href.market("EUR", "USD"));
  expect(find("gold usd", symbols)).toBe(href.market("Gold", "USD"));
  for (const nothing of ["", "eur", "eur/eur", "eur/abc", "0x1234", "-1"]) expect(find(nothing, symbols)).toBeNull();
});
