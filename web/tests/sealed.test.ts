/** Sealed orders in the ticket: when they can be chosen, what is said of them, and what the node is asked meanwhile. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { committeeOf, type SealState } from "@walras/client/committee-key";
import { Ed25519Key } from "@walras/client/keys";
import { demoTraders, type Trader } from "../src/trade/keys";
import { SEALED_WORDS, sealed, sealingOf } from "../src/trade/sealed";
import { sealedPlanWords } from "../src/views/ticket-words";

const NONE: SealState = { height: 9, threshold: "fewest", in_force: null, keys: [], making: null, failed: null };
const POINT = "0x" + "ab".repeat(96);
const KEY: SealState = { ...NONE, in_force: 3, keys: [{ number: 3, key: POINT, from: 5, last: null }] };
const key = Ed25519Key.generate();
const OWNER = demoTraders()[0]!;
const SESSION: Trader = { ...OWNER, kind: "session", session: { slot: 2, key } };
const ORDER = { side: "buy", base: "EUR", quote: "USD", amount: "1", price: "0.5" } as const;

afterEach(() => vi.unstubAllGlobals());

describe("the switch of the ticket", () => {
  it("is not there where the network makes no keys, and says why one is missing", () => {
    expect(sealingOf(null, SESSION)).toBeNull();
    expect(sealingOf({ ...NONE, threshold: null }, SESSION)).toBeNull();
    const making = { number: 4, step: "deal", ends: 40, awaited: ["0x01"] };
    expect(sealingOf({ ...NONE, making }, SESSION)).toEqual({ can: false, words: "Orders cannot be sealed now: the committee makes key 4: the step `deal` awaits 0x01, until block 40." });
  });

  it("is on where a session key trades and a key is in force, and says what shows in spite of it", () => {
    expect(sealingOf(KEY, SESSION)).toEqual({ can: true, words: SEALED_WORDS });
    expect(SEALED_WORDS).toContain("that this account sends one, when, and its rough size show");
    expect(sealingOf(KEY, OWNER)?.can).toBe(false);
    expect(sealingOf(KEY, OWNER)?.words).toContain("Only a session key seals");
  });

  it("lets the ticket say that no node is asked about the order", () => {
    const terms = { sell: "USD", buy: "EUR", amount: "500000", limit: "2" };
    const words = sealedPlanWords({ kind: "limit", order: ORDER, terms, life: "rests" });
    expect(words).toBe("Buy 1 EUR at 0.5 USD. No node is asked what the batch would do with it. What its batch does not fill waits in the book, where everybody sees it.");
  });
});

describe("a sealed order", () => {
  /** The page's node, which notes what it is asked. */
  function node(answers: Record<string, unknown>): string[] {
    const asked: string[] = [];
    const answer = async (url: URL, request?: RequestInit) => {
      const path = url.pathname.replace(/^.*\/v1\//, "");
      asked.push(`${request?.method ?? "GET"} ${path}`);
      return new Response(JSON.stringify(answers[path]), { status: 200, headers: { "content-type": "application/json" } });
    };
    vi.stubGlobal("document", { baseURI: "http://page.test/" });
    vi.stubGlobal("fetch", answer);
    return asked;
  }
  const ACCOUNT = { sessions: [{ slot: 2, key: key.public, sequence: { highest: "0", next: "17592186044417" } }] };
  const operation = { kind: "CreateOffer", sell: 0, buy: 1, amount: 500_000n, limit: "2" } as const;

  it("is refused in words where no key is in force, and nothing is sent", async () => {
    const asked = node({ limits: { chain: "31337", network: "0x" + "07".repeat(32) }, seal: NONE, [`accounts/${SESSION.address}`]: ACCOUNT });
    await expect(sealed(SESSION, operation)).rejects.toThrow(/cannot be sealed now.*Nothing was sent/);
    expect(asked.every((one) => one.startsWith("GET"))).toBe(true);
    expect(() => committeeOf(NONE, "")).toThrow(/Nothing was sent/);
  });

  it("asks the node nothing about itself", async () => {
    const asked = node({ limits: { chain: "31337", network: "0x" + "07".repeat(32) }, seal: KEY, [`accounts/${SESSION.address}`]: ACCOUNT });
    const given: unknown[] = [];
    class Sealer {
      onmessage: ((event: { data: unknown }) => void) | null = null;
      postMessage(asked: unknown): void {
        given.push(asked);
        this.onmessage?.({ data: { sealed: { size: 0, point: new Uint8Array(96), box: new Uint8Array(512) } } });
      }
    }
    vi.stubGlobal("Worker", Sealer);
    const made = await sealed(SESSION, operation);
    expect(asked.sort()).toEqual(["GET accounts/" + SESSION.address, "GET limits", "GET seal"]);
    expect(given).toHaveLength(1);
    expect([made.sequence, made.until]).toEqual(["17592186044417", "25"]);
    expect(made.id).not.toBe(made.envelope);
    // The envelope has the number behind that of the order, and no byte of the order.
    const bytes = made.transaction.slice(2);
    expect(BigInt("0x" + bytes.slice(56, 72).match(/../g)!.reverse().join(""))).toBe(17592186044418n);
    expect(bytes.slice(88, 90)).toBe("20");
  });
});
