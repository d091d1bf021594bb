/** Sealed orders without a node: what is asked, what is sent, and what is told of it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { whyNoKey, type SealState } from "../src/committee-key.js";
import { Client, Ed25519Key, EthereumKey, MemoryStore, SealError, SentBeforeError, Signed, TransactionRefusedError, type Options } from "../src/index.js";
import type { Fetch } from "../src/http.js";

const vectors = JSON.parse(readFileSync(new URL("../../../../docs/sealed-vectors.json", import.meta.url), "utf8")) as { made: { committee: string }[] };
const NO_KEY: SealState = { height: 9, threshold: "fewest", in_force: null, keys: [], making: null, failed: null };
const KEY: SealState = { ...NO_KEY, in_force: 3, keys: [{ number: 3, key: vectors.made[0]!.committee, from: 1, last: null }] };
const LIMITS = { chain: "1", network: `0x${"07".repeat(32)}`, fee: "5", fee_asset: "USD", sequence_window: 64, until_max: 256, block_interval_ms: 10, stream_channels: 1 };
const ASSETS = ["USD", "EUR"].map((symbol, asset) => ({ asset, symbol, decimals: 2, issuer: `0x${"1".repeat(40)}`, least_units: "1", issued: "0", valuation: null }));
const OFFERED = { result: "offered", sold: "0", bought: "0", left: "5000", returned: "0", why: "above_the_rate" };

/** A node that opens whatever it gets, as it is told to. */
class Node {
  asked: string[] = [];
  sent: Signed[] = [];
  seal = KEY;
  became: object = { became: "opened", operations: 1 };
  inside: object = OFFERED;
  refuses: string[] = [];
  opens = true;

  client(options: Options = {}): Client {
    return new Client("http://node.test", { key: new Ed25519Key(new Uint8Array(32)), patienceMs: 2_000, fetch: this.fetch, ...options });
  }

  readonly fetch: Fetch = async (url, request) => {
    const { pathname } = new URL(String(url));
    this.asked.push(pathname.split("/")[2] ?? pathname);
    const [status, body] = this.answer(pathname.split("/").slice(2), request?.body as Uint8Array | undefined);
    return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
  };

  private answer([what, id]: string[], body?: Uint8Array): [number, unknown] {
    if (body) {
      const code = this.refuses.shift();
      if (code !== undefined) return [422, { error: { code, message: "another one has it" } }];
      this.sent.push(new Signed(new Uint8Array(body)));
      return [202, { id: this.sent.at(-1)!.id, status: "pending" }];
    }
    if (what === undefined) return [200, {}];
    if (what === "seal") return [200, this.seal];
    if (what === "limits") return [200, LIMITS];
    if (what === "assets") return [200, { assets: ASSETS }];
    if (what === "status") return [200, { height: 9 }];
    if (what === "accounts") return [200, { height: 9, address: id, sequence: { highest: "0", next: "1" }, balances: [] }];
    if (what === "transactions" && this.opens && this.sent.some((one) => one.id === id)) {
      const operation = { type: "create_offer", sell: "USD", buy: "EUR", amount: "5000", limit: "2" };
      const inside = [{ id: `0x${"1".repeat(64)}`, account: "0x", sequence: "1", operation, outcome: this.inside }];
      return [200, { id, status: "committed", height: 10, until: "25", outcome: { result: "sealed", ...this.became }, inside }];
    }
    return [404, { error: { code: "not_found", message: "it is not kept" } }];
  }
}

test("without a key nothing is sent, and the reason is told", async () => {
  const node = new Node();
  node.seal = NO_KEY;
  await assert.rejects(node.client().offer("USD", "EUR", "50", "2", { sealed: true }), (error: Error) => error instanceof SealError && /has not begun to make one. Nothing was sent/.test(error.message));
  assert.equal(node.sent.length, 0);
  const making = { number: 4, step: "deal", ends: 40, awaited: ["0x01"] };
  assert.match(whyNoKey({ ...NO_KEY, making }), /`deal` awaits 0x01, until block 40/);
  assert.match(whyNoKey({ ...NO_KEY, threshold: null }), /does not name `seals`/);
});

test("a sealed order is told as its envelope opened it, and nothing is asked about it", async () => {
  const node = new Node();
  const fate = await node.client().buy("EUR/USD", "100", "0.5", { sealed: true });
  assert.deepEqual([fate.state, fate.sequence], ["executed", 1n]);
  const [envelope] = node.sent;
  // The order has the number below that of the envelope.
  assert.deepEqual([node.sent.length, envelope?.sequence, envelope?.operation[0]], [1, 2n, 32]);
  assert.deepEqual([...new Set(node.asked)].sort(), ["/readyz", "accounts", "assets", "limits", "seal", "transactions"]);
});

test("an unpaid envelope and a refused order are errors, and leave the number free", async () => {
  const node = new Node();
  const client = node.client();
  node.became = { became: "unpaid", operations: 0, code: "overdraft", message: "it cannot pay" };
  await assert.rejects(client.offer("USD", "EUR", "50", "2", { sealed: true }), (error: Error) => error instanceof TransactionRefusedError && error.code === "overdraft");
  node.became = { became: "opened", operations: 1 };
  node.inside = { result: "refused", code: "bad_signature", message: "it is signed as a plain transaction" };
  await assert.rejects(client.offer("USD", "EUR", "50", "2", { sealed: true }), /signed as a plain transaction/);
  node.opens = false;
  const pending = await client.offer("USD", "EUR", "50", "2", { sealed: true, wait: false });
  assert.deepEqual([pending.state, pending.sequence], ["pending", 1n]);
});

test("an envelope whose number is taken is sealed anew around the same order", async () => {
  const node = new Node();
  [node.opens, node.refuses] = [false, ["sequence_used"]];
  const pending = await node.client().offer("USD", "EUR", "50", "2", { sealed: true, wait: false });
  assert.deepEqual([pending.sequence, node.sent.map((one) => one.sequence)], [1n, [3n]]);
});

test("a wallet's key seals by a payer alone, and what no envelope holds is refused", async () => {
  const node = new Node();
  const key = new EthereumKey(`0x${"0".repeat(63)}1`);
  await assert.rejects(node.client({ key }).offer("USD", "EUR", "50", "2", { sealed: true }), /give it a `payer`/);
  node.opens = false;
  const payer = node.client();
  const pending = await node.client({ key, payer }).offer("USD", "EUR", "50", "2", { sealed: true, wait: false });
  assert.deepEqual([node.sent[0]?.account, node.sent[0]?.sequence, pending.sequence], [payer.address, 1n, 1n]);
  await assert.rejects(payer.pay(key.address, "USD", "1", { sealed: true }), /send Pay plain/);
  const offer = { kind: "CreateOffer", sell: 0, buy: 1, amount: 5_000n, limit: "2" } as const;
  await assert.rejects(payer.sendSealed(Array.from({ length: 33 }, () => offer)), /at most 32/);
});

test("an envelope whose result no call has told is told first", async () => {
  const [node, store] = [new Node(), new MemoryStore()];
  node.opens = false;
  await node.client({ store }).offer("USD", "EUR", "50", "2", { sealed: true, wait: false });
  node.opens = true;
  await assert.rejects(node.client({ store }).offer("USD", "EUR", "50", "2", { sealed: true }), SentBeforeError);
  assert.equal((await node.client({ store }).offer("USD", "EUR", "50", "2", { sealed: true })).state, "executed");
});
