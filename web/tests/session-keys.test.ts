/** Session keys of the page: what an owner writes, what is signed for it, and how a key is kept. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Asset } from "@walras/client/bodies";
import { encodeBody, sessionPossessionBytes } from "@walras/client/encoding";
import { Ed25519Key } from "@walras/client/keys";
import { fromHex, hashTypedData, toHex, type TypedData } from "@walras/client/typed";
import { check, operationOf, type Asked } from "../src/trade/orders";
import { forgetSession, hasAgreed, keepSession, keptSessions, keyTermsOf, pasted, toAgree, unlockSession, type Written } from "../src/trade/session-keys";
import { explain } from "../src/words";
import { ApiError } from "../src/api";

type Vector = { account: string; body: string; hash: string; sequence: string; until: string; network: string; typed_data: TypedData };
const vectors = (JSON.parse(readFileSync(new URL("../../docs/vectors.json", import.meta.url), "utf8")) as { typed_data: Vector[] }).typed_data;
const SYMBOLS = ["USD", "EUR", "JPY", "GBP", "CHF", "SEK", "NOK", "BTC"];
const ASSETS = new Map(SYMBOLS.map((symbol, asset): [string, Asset] => [symbol, { asset, symbol, decimals: 2, issuer: "0x", least_units: "1", issued: "0", valuation: null }]));
const CHAIN = { height: 100, block_interval_ms: 500, fee_asset: "USD" };
const [NETWORK, OWNER] = ["0x" + "4e".repeat(32), "0x" + "a1".repeat(20)];

const stored = new Map<string, string>();
beforeEach(() => {
  stored.clear();
  vi.stubGlobal("localStorage", { getItem: (name: string) => stored.get(name) ?? null, setItem: (name: string, value: string) => stored.set(name, value), removeItem: (name: string) => stored.delete(name) });
});
afterEach(() => vi.unstubAllGlobals());

/** What the page asks for where a vector shows what is signed. */
function askedBy({ typed_data: { primaryType, message } }: Vector): Asked {
  const { account: _, sequence: __, until: ___, ...given } = message;
  const type = { AuthorizeSession: "authorize_session", RevokeSession: "revoke_session", SessionAlive: "session_alive" }[primaryType] ?? "";
  const caps = (given["caps"] as { asset: string; units: string }[] | undefined)?.map(({ asset, units }) => ({ asset: SYMBOLS[Number(asset)]!, units }));
  return { type, ...(given as Record<string, string>), slot: Number(given["slot"]), ...(caps ? { caps } : {}) };
}

describe("what is signed about a session key", () => {
  const ours = vectors.filter(({ typed_data }) => typed_data.primaryType.includes("Session"));
  const checked = (vector: Vector, data = vector.typed_data) => () =>
    check({ sequence: vector.sequence, until: vector.until, unsigned: "0x", hash: toHex(hashTypedData(data)), typed_data: data }, { address: vector.account }, askedBy(vector), vector.until, { chain: "31337", network: vector.network }, ASSETS);

  it("is what was asked for, by the published vectors, in bytes too", () => {
    expect(ours.map(({ typed_data }) => typed_data.primaryType)).toEqual(["AuthorizeSession", "RevokeSession", "SessionAlive"]);
    for (const vector of ours) {
      expect(checked(vector)).not.toThrow();
      const body = { chain: 31337n, account: vector.account, sequence: BigInt(vector.sequence), until: BigInt(vector.until), operation: operationOf(askedBy(vector), ASSETS) };
      expect(toHex(encodeBody(body))).toBe(vector.body);
    }
  });

  it("is refused where a node lays out anything else", () => {
    const [vector] = ours as [Vector];
    const lies: ((message: Record<string, unknown>) => void)[] = [
      (message) => (message["key"] = "0x" + "66".repeat(32)),
      (message) => (message["scope"] = "cancel"),
      (message) => (message["slot"] = "9"),
      (message) => (message["ends"] = "601"),
      (message) => (message["alive"] = "9"),
      (message) => (message["possession"] = "0x" + "11".repeat(64)),
      (message) => (message["caps"] as { units: string }[])[3]!.units = "1",
      (message) => (message["caps"] as { asset: string }[])[3]!.asset = "7",
      (message) => (message["caps"] as object[]).pop(),
    ];
    for (const lie of lies) {
      const data = structuredClone(vector.typed_data);
      lie(data.message as Record<string, unknown>);
      expect(checked(vector, data)).toThrow("nothing was signed");
    }
  });
});

describe("the terms of a session key", () => {
  const written = (change: Partial<Written> = {}): Written => ({ scope: "trade", hours: "1", minutes: "30", caps: [{ asset: "EUR", most: "20" }, { asset: "USD", most: "30.5" }], ...change });

  it("are heights at the chain's pace, and units in the order of assets", () => {
    expect(keyTermsOf(written(), CHAIN, ASSETS)).toEqual({ scope: "trade", ends: 7_300, alive: 3_700, caps: [{ asset: "USD", units: "3050" }, { asset: "EUR", units: "2000" }] });
    expect(keyTermsOf(written({ minutes: " " }), CHAIN, ASSETS)).toMatchObject({ ends: 7_300, alive: 7_300 });
    // What passes while its owner signs is not the end of it.
    expect(keyTermsOf(written({ hours: "0.0001", minutes: "" }), CHAIN, ASSETS)).toMatchObject({ ends: 110, alive: 110 });
  });

  it("are refused in words where they are none", () => {
    const usd = { asset: "USD", most: "1" };
    const cases: [Partial<Written>, string][] = [
      [{ hours: "" }, "for how many hours"],
      [{ hours: "-1" }, "for how many hours"],
      [{ hours: "1e400" }, "for how many hours"],
      [{ hours: "583" }, "at most 4,194,304 blocks, about 582 hours"],
      [{ minutes: "half" }, "a number of minutes"],
      [{ minutes: "61" }, "longer than the key counts"],
      [{ caps: [] }, "a fee in USD"],
      [{ caps: [{ asset: "EUR", most: "1" }] }, "a fee in USD"],
      [{ caps: [{ asset: "USD", most: "0" }] }, "above 0"],
      [{ caps: [{ asset: "USD", most: "-3" }] }, "above 0"],
      [{ caps: [{ asset: "USD", most: "0.001" }] }, "2 places after the point"],
      [{ caps: [{ asset: "USD", most: "92233720368547758.08" }] }, "more than an account can have"],
      [{ caps: [usd, usd] }, "USD has two caps"],
      [{ caps: [usd, { asset: "XYZ", most: "1" }] }, "XYZ is not an asset"],
    ];
    for (const [change, says] of cases) expect(keyTermsOf(written(change), CHAIN, ASSETS)).toContain(says);
    const nine = [...SYMBOLS, "XAU"].map((asset) => ({ asset, most: "1" }));
    const more = new Map([...ASSETS, ["XAU", { ...ASSETS.get("USD")!, symbol: "XAU", asset: 8 }]]);
    expect(keyTermsOf(written({ caps: nine }), CHAIN, more)).toContain("at most 8 assets");
  });

  it("have remedies where the ledger refuses them", () => {
    for (const code of ["session_slot", "sessions_full", "session_key_taken", "session_cap", "session_lapsed", "unknown_session"]) {
      expect(explain(new ApiError(422, code, "raw"))).toMatch(/^[A-Z].* .*\.$/);
      expect(explain(new ApiError(422, code, "raw"))).not.toContain("Raw");
    }
  });
});

describe("a session key", () => {
  it("made here is encrypted, and opens with its passphrase while the account has it", async () => {
    const key = await keepSession("a good passphrase", NETWORK, OWNER);
    const other = await keepSession("a good passphrase", NETWORK, OWNER);
    expect(keptSessions().map((one) => one.key)).toEqual([key.public, other.public]);
    const sessions = [{ slot: 3, key: key.public, scope: "trade", status: "live", ends: "1", alive: "1", sequence: { highest: "0", next: "1" }, caps: [] }];
    vi.stubGlobal("document", { baseURI: "http://node.example/" });
    vi.stubGlobal("fetch", async (url: URL) => new Response(JSON.stringify(url.href.endsWith("limits") ? { network: NETWORK } : { sessions })));
    await expect(unlockSession(key.public, "another passphrase")).rejects.toThrow("The passphrase is wrong.");
    const trader = await unlockSession(key.public, "a good passphrase");
    expect([trader.address, trader.session?.slot, trader.session?.key.public]).toEqual([OWNER, 3, key.public]);
    await expect(trader.sign({} as TypedData)).rejects.toThrow("only places orders in batch markets and cancels");
    await expect(unlockSession(other.public, "a good passphrase")).rejects.toThrow("it was revoked, or was never added");
    forgetSession(key.public);
    expect(keptSessions().map((one) => one.key)).toEqual([other.public]);
    await expect(unlockSession(key.public, "a good passphrase")).rejects.toThrow("keeps this session key no more");
    stored.set("walras.sessions", "{");
    expect(keptSessions()).toEqual([]);
  });

  it("of a program agrees by its signature for this slot of this account", () => {
    const key = new Ed25519Key("07".repeat(32));
    const bytes = toAgree(key.public, NETWORK, OWNER, 4)!;
    expect(bytes).toBe(toHex(sessionPossessionBytes(NETWORK, OWNER, 4, key.public)));
    const agreement = toHex(key.agree(fromHex(bytes)));
    const adding = (slot: number) => pasted(` ${key.public.slice(2).toUpperCase()} `, agreement, slot) as { slot: number; key: string; possession: string };
    expect(adding(4)).toEqual({ slot: 4, key: key.public, possession: agreement });
    expect([4, 5].map((slot) => hasAgreed(adding(slot), NETWORK, OWNER))).toEqual([true, false]);
    expect(hasAgreed({ ...adding(4), key: "0x" + "ff".repeat(32) }, NETWORK, OWNER)).toBe(false);
    expect(pasted("0x12", agreement, 4)).toContain("64 hexadecimal digits");
    expect(pasted(key.public, "0x12", 4)).toContain("128 hexadecimal digits");
    expect(toAgree("0x12", NETWORK, OWNER, 4)).toBe(null);
  });
});
