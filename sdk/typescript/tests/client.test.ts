/** The client against a running exchange, whose address `sdk/ethereum/with-demo.sh` puts in WALRAS_HTTP. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import WebSocket from "ws";
import {
  AddressError,
  AmountError,
  Client,
  ClientError,
  EthereumKey,
  Ed25519Key,
  ForeignAnswerError,
  MemoryStore,
  NoAnswerError,
  NotFoundError,
  OtherNetworkError,
  ProofError,
  RefusedError,
  StreamError,
  TransactionRefusedError,
  TradingKey,
  UndecidedError,
  UnknownAssetError,
  VenueTrader,
  VoidError,
  WalletKey,
  checkCertificate,
  checkedAddress,
  proveAccount,
  proveOutcome,
  quorumOf,
  type Key,
  type Options,
} from "../src/index.js";
import { sealKey } from "../src/keystore.js";
import { FolderStore } from "../src/node-store.js";
import { typedDataOf, type Body } from "../src/encoding.js";
import { referenceOf } from "../src/references.js";
import { signTyped } from "../src/ethereum.js";
import type { Socket } from "../src/stream.js";
import { fromHex, toHex } from "../src/typed.js";

const SERVER = process.env["WALRAS_HTTP"] ?? "";
const skip = SERVER === "" ? "WALRAS_HTTP is not set: run `make test-typescript`" : false;
const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
// Two of the accounts that every tool for development knows.
const SECRET = "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6";
const OTHER = new EthereumKey("0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a").address;
const socket = (url: string) => new WebSocket(url) as unknown as Socket;
const made = (key: Key, options: Options = {}) => new Client(SERVER, { key, socket, ...options });
const client = made(new EthereumKey(SECRET));

async function funded(key: Key): Promise<string> {
  await Promise.all([client.pay(key.address, "USD", "20"), client.pay(key.address, "EUR", "20")]);
  return key.address;
}

const held = async (address: string, asset: string) => {
  const { balances } = await client.account(address);
  return balances.find((one) => one.asset === asset)?.available ?? "0";
};

test("a payment and an offer live their lives", { skip }, async () => {
  const said = { kind: "uuid", value: "8a562c67-ca16-48ba-b074-65581be6f001" } as const;
  for (const remittance of ["INV-2026-1107", said, { kind: "number", value: "1107" } as const]) {
    const { id } = await client.pay(OTHER, "EUR", "0.01", { remittance });
    const { rows } = await client.transfers(undefined, 10, client.address, remittance);
    assert.deepEqual(rows.map((row) => [row.id, row.reference]), [[id, referenceOf(remittance)]]);
  }
  await assert.rejects(client.pay(OTHER, "EUR", "0.01", { remittance: "Gebühr" }), RangeError);
  const paid = await client.pay(checkedAddress(OTHER), "EUR", "1.25");
  assert.equal(paid.state, "executed");
  assert.equal((await client.fate(paid.id)).state, "executed");
  const placed = await client.sell("EUR/USD", "10", "500");
  assert.ok(placed.outcome?.result === "offered" && placed.outcome.left === "10" && placed.sequence !== undefined);
  const offer = await client.offerOf(placed.sequence);
  assert.deepEqual([offer?.amount, offer?.price, offer?.sell], ["10", "500", "EUR"]);
  assert.equal((await client.account()).balances.find((one) => one.asset === "EUR")?.locked, "10");
  assert.ok((await client.book("EUR/USD")).sells.some((level) => level.price === "500"));
  assert.equal((await client.cancel(placed.sequence)).state, "executed");
  // For one batch: nobody pays that much, so it returns; it bears the caller's own name.
  const once = await client.sell("EUR/USD", "10", "500", { life: "one batch", client: `0x${"ab".repeat(16)}` });
  assert.ok(once.outcome?.result === "offered" && once.sequence !== undefined);
  assert.deepEqual([once.outcome.left, once.outcome.returned, await client.offerOf(once.sequence)], ["0", "10", null]);
  await client.buy("EUR/USD", "1", "0.0625");
  assert.equal((await client.cancelAll("EUR/USD")).length, 1);
  assert.deepEqual([await client.offers(), await client.stored()], [[], []]);
});

test("an issuer controls what others hold", { skip }, async () => {
  const key = Ed25519Key.generate();
  const [address, holder, { holders }] = [await funded(key), made(key), client];
  const terms = { decimals: 2, control: "recoverable", leastUnits: 4_096n, supplyMax: 10n ** 9n, document: `0x${"11".repeat(32)}`, fees: 10_000_000n } as const;
  const listed = await client.send({ kind: "ListAsset", symbol: "REG", ...terms });
  assert.ok(listed.outcome?.result === "listed");
  const [number, symbol] = [listed.outcome.number, `REG.${listed.outcome.number}`];
  await client.send({ kind: "Issue", to: address, asset: number, amount: 50_000n });
  const [standing, proved] = [await holders.standing(symbol, address), await holders.proved(symbol, address)];
  assert.deepEqual([standing.control, standing.standing, proved.isOpen], ["recoverable", "open", true]);
  const frozen = await holders.freeze(symbol, address, "case 7 of 2026");
  const told = await holder.holders.standing(symbol, address);
  assert.deepEqual([told.standing, told.since], ["frozen", frozen.height]);
  // What is certified is a block or two behind.
  const committee = await holder.committee();
  let seen = await holder.holders.proved(symbol, address, committee);
  while (seen.isOpen) seen = await holder.holders.proved(symbol, address, committee);
  assert.deepEqual([seen.control, Number(seen.since)], ["recoverable", frozen.height]);
  const refuses = (code: string) => (error: unknown) => error instanceof TransactionRefusedError && error.code === code;
  await assert.rejects(holder.pay(OTHER, symbol, "1"), refuses("frozen"));
  await assert.rejects(holder.sell(`${symbol}/USD`, "100", "2"), refuses("frozen"));
  await assert.rejects(client.pay(address, symbol, "1"), refuses("receiver_frozen"));
  // Nobody is frozen for a day of blocks here.
  await assert.rejects(holders.recover(symbol, address, "10", { kind: "number", value: "7" }), refuses("not_frozen_long"));
  await assert.rejects(holders.recall(symbol, address, 0), refuses("not_frozen_long"));
  await assert.rejects(holder.holders.freeze(symbol, OTHER, "mine"), refuses("not_issuer"));
  await holders.admit(symbol, address, "case 7 is closed");
  assert.equal((await holders.standing(symbol, address)).standing, "open");
  assert.equal((await holder.pay(OTHER, symbol, "1.5")).state, "executed");
  assert.equal(await held(OTHER, symbol), "1.5");
});

test("what the market did is read in whole assets", { skip }, async () => {
  // Two offers that cross, whatever the demo's traders do.
  await client.sell("EUR/USD", "20", "2.5");
  const filled = await client.buy("EUR/USD", "1", "3");
  const { outcome } = filled;
  assert.ok(outcome?.result === "offered" || outcome?.result === "exact");
  assert.ok(Number(outcome.bought) >= 0.9 && Number(outcome.bought) < 1.1 && Number(outcome.sold) <= 3, JSON.stringify(outcome));
  const point = (await client.history("EUR/USD")).at(-1);
  assert.ok(point);
  const batch = await client.batch(point.height);
  const rate = Number(batch.valuations["EUR"]) / Number(batch.valuations["USD"]);
  assert.ok(Math.abs(rate / Number(point.price) - 1) < 1e-9 && batch.trades.length > 0);
  assert.ok((await client.candles("EUR/USD", { interval: "1m" })).at(-1));
  assert.ok((await client.markets()).some((market) => market.market === "EUR/USD"));
  assert.equal((await client.blocks(3, 4)).at(-1)?.height, 1);
  await client.cancelAll();
});

test("parallel senders never take the same number", { skip }, async () => {
  const key = Ed25519Key.generate();
  const address = await funded(key);
  const store = new MemoryStore();
  const clients = [made(key, { store }), made(key, { store })];
  const fates = [await clients[0]!.pay(OTHER, "EUR", "0.01"), await clients[1]!.pay(OTHER, "EUR", "0.01")];
  fates.push(...(await Promise.all(Array.from({ length: 98 }, (_, at) => clients[at % 2]!.pay(OTHER, "EUR", "0.01")))));
  assert.equal(new Set(fates.map((fate) => fate.sequence)).size, 100);
  assert.equal(await held(address, "EUR"), "19");
  // Numbers that were taken and never used do not block the account.
  await store.took(address, 10_000n);
  assert.equal((await made(key, { store }).pay(OTHER, "EUR", "1")).state, "executed");
  // Without a common store they take the same numbers: the slower one signs again, for its first is dead.
  const strangers = [made(key), made(key)];
  await Promise.all(Array.from({ length: 20 }, (_, at) => strangers[at % 2]!.pay(OTHER, "EUR", at % 2 ? "0.1" : "0.2")));
  assert.equal(await held(address, "EUR"), "15");
});

test("a lost answer never pays twice", { skip }, async () => {
  const key = EthereumKey.generate();
  const address = await funded(key);
  const sent = new Set<string>();
  let lost = 3;
  const fetch: typeof globalThis.fetch = async (url, asked) => {
    const answer = await globalThis.fetch(url, asked);
    if (asked?.method === "POST" && lost > 0) {
      lost -= 1;
      sent.add(Buffer.from(asked.body as Uint8Array).toString("hex"));
      throw new TypeError("lost");
    }
    return answer;
  };
  assert.equal((await made(key, { fetch }).pay(OTHER, "EUR", "5")).state, "executed");
  assert.equal(sent.size, 1, "the same bytes, however often");
  assert.equal(await held(address, "EUR"), "15");
});

test("a reference is paid once, also after a crash", { skip }, async () => {
  const key = EthereumKey.generate();
  const address = await funded(key);
  const folder = mkdtempSync(join(tmpdir(), "walras-"));
  const begun = () => made(key, { store: new FolderStore(folder) });
  const first = await begun().pay(OTHER, "EUR", "5", { reference: "invoice 7" });
  assert.equal((await begun().pay(OTHER, "EUR", "5", { reference: "invoice 7" })).id, first.id);
  const one = begun();
  const many = await Promise.all(Array.from({ length: 8 }, () => one.pay(OTHER, "EUR", "1", { reference: "invoice 8" })));
  assert.equal(new Set(many.map((fate) => fate.id)).size, 1);
  assert.equal(await held(address, "EUR"), "14");
  // What was refused is sent unchanged once it can be paid.
  await assert.rejects(begun().pay(OTHER, "EUR", "30", { reference: "invoice 9" }), TransactionRefusedError);
  await client.pay(address, "EUR", "20");
  assert.equal((await begun().pay(OTHER, "EUR", "30", { reference: "invoice 9" })).state, "executed");
  assert.equal(await held(address, "EUR"), "4");
});

test("a reference is paid once, although another call sends its bytes first", { skip }, async () => {
  const key = EthereumKey.generate();
  const address = await funded(key);
  const store = new MemoryStore();
  let other: Promise<{ id: string }> | null = null;
  const fetch: typeof globalThis.fetch = async (url, asked) => {
    if (asked?.method !== "POST" || other) return globalThis.fetch(url, asked);
    // Before the first call sends what it has signed, another one finds it by its reference, and it is executed. The node
    // knows its number as used a moment before it tells the transaction.
    await (other = made(key, { store }).pay(OTHER, "EUR", "5", { reference: "invoice 7" }));
    const error = { code: "sequence_used", message: "the number is used" };
    return new Response(JSON.stringify({ error }), { status: 422, headers: { "content-type": "application/json" } });
  };
  const first = await made(key, { store, fetch }).pay(OTHER, "EUR", "5", { reference: "invoice 7" });
  assert.equal(first.id, (await other!).id);
  assert.equal(await held(address, "EUR"), "15");
});

test("a refused transaction is dead once its number is used", { skip }, async () => {
  const key = EthereumKey.generate();
  await funded(key);
  const own = made(key);
  const refused = await own.pay(OTHER, "EUR", "1000").then(() => assert.fail(), (error: unknown) => error);
  assert.ok(refused instanceof TransactionRefusedError && refused.code === "overdraft" && refused.remedy.includes("has 20 EUR"));
  const substitute = await own.pay(OTHER, "EUR", "1");
  assert.equal(substitute.sequence, refused.sequence);
  assert.ok((substitute.until ?? 0n) > refused.until);
});

test("a transaction that was not sent and has ended is void", { skip }, async () => {
  const key = EthereumKey.generate();
  await funded(key);
  const store = new MemoryStore();
  const deaf = made(key, { store, lasts: 1, patienceMs: 0, fetch: async (url, asked) => {
    if (asked?.method === "POST") throw new TypeError("lost before it was sent");
    return globalThis.fetch(url, asked);
  } });
  const undecided = await deaf.pay(OTHER, "EUR", "5").then(() => assert.fail(), (error: unknown) => error);
  assert.ok(undecided instanceof UndecidedError && undecided.leavesDoubt);
  const own = made(key, { store });
  for await (const event of own.stream(["blocks"])) if (event.type === "block" && BigInt(event.block.height) > undecided.until) break;
  assert.equal((await own.fate(undecided.id)).state, "void");
  await assert.rejects(own.retry(undecided.id), VoidError);
  assert.deepEqual(await own.stored(), []);
});

test("a browser wallet signs what its owner sees", { skip }, async () => {
  const secret = fromHex("0x" + "2b".repeat(32));
  const address = await funded(new EthereumKey(secret));
  const shown: string[] = [];
  const provider = {
    request: async ({ method, params }: { method: string; params?: unknown[] }) => {
      if (method === "eth_requestAccounts") return [checkedAddress(address)];
      shown.push(String(params?.[1]));
      return signTyped(secret, JSON.parse(String(params?.[1])));
    },
  };
  const own = made(await WalletKey.connect(provider));
  assert.equal((await own.pay(OTHER, "EUR", "1")).state, "executed");
  assert.match(shown[0] ?? "", /"primaryType":"Pay"/);
});

test("bad input is refused with its code", { skip }, async () => {
  const { chain, network } = await client.limits();
  const height = (await client.status()).height;
  const key = EthereumKey.generate();
  await funded(key);
  const good: Body = { chain, account: key.address, sequence: 1n, until: BigInt(height + 200), operation: { kind: "Pay", to: OTHER, asset: 1, amount: 5n } };
  const code = async (changed: Partial<Body>, other = network, signer: Key = key) => {
    const signed = await signer.sign({ ...good, ...changed }, other);
    const headers = { "content-type": "application/octet-stream" };
    const answer = await fetch(`${SERVER}/v1/transactions?wait=committed`, { method: "POST", headers, body: signed.bytes as BufferSource });
    const body = (await answer.json()) as { error?: { code: string } };
    return body.error?.code ?? answer.status;
  };
  const seed = Ed25519Key.generate();
  assert.equal(await code({ account: seed.address }, "0x" + "11".repeat(32), seed), "bad_signature");
  assert.equal(await code({}, "0x" + "11".repeat(32)), "wrong_chain");
  assert.equal(await code({ until: 1n }), "ended");
  assert.equal(await code({ sequence: 100n }), "sequence_too_far");
  assert.equal(await code({ operation: { kind: "Pay", to: OTHER, asset: 99, amount: 5n } }), "unknown_asset");
  assert.equal(await code({}), 200);
  assert.equal(await code({}), 200, "the same bytes are harmless");
  assert.equal(await code({ until: good.until + 1n }), "sequence_used");
  assert.equal(typedDataOf(good, network).primaryType, "Pay");
});

test("bad input is refused before anything is signed", { skip }, async () => {
  const wrong = "0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
  const mistakes: [new (...given: never[]) => ClientError, () => Promise<unknown>][] = [
    [AmountError, () => client.pay(OTHER, "EUR", "1.2500001")],
    [AmountError, () => client.pay(OTHER, "EUR", 1.25 as unknown as string)],
    [AmountError, () => client.sell("EUR/USD", "1", "0")],
    [AmountError, () => client.buy("EUR/USD", "0.000001", "1")],
    [AddressError, () => client.pay(wrong, "EUR", "1")],
    [UnknownAssetError, () => client.pay(OTHER, "XYZ", "1")],
    [UnknownAssetError, () => client.book("EUR-USD")],
    [OtherNetworkError, () => new Client(SERVER, { network: "0x" + "00".repeat(32) }).assets()],
    [NoAnswerError, () => new Client("http://127.0.0.1:1").status()],
    [NotFoundError, () => client.account("0x" + "77".repeat(20))],
    [NotFoundError, () => client.cancel(77n)],
    [RefusedError, () => client.offersPage(client.address, "stale")],
    [ClientError, async () => new Client(SERVER).pay(OTHER, "EUR", "1")],
  ];
  const before = (await client.account()).highest;
  for (const [kind, mistake] of mistakes) await assert.rejects(mistake, kind);
  assert.equal((await client.account()).highest, before);
});

test("a stream resumes at a height without gaps", { skip }, async () => {
  const first = Math.max(1, (await client.status()).height - 40);
  const heights: Record<string, number[]> = { block: [], batch: [] };
  let paid: Promise<unknown> | null = null;
  for await (const event of client.stream(["blocks", "batches", "trades", `account:${client.address}`], { fromHeight: first })) {
    if (event.type === "block") heights["block"]!.push(event.block.height);
    if (event.type === "batch") heights["batch"]!.push(event.batch.height);
    if (event.type === "snapshot") {
      assert.equal(event.account?.address, client.address);
      paid = client.pay(OTHER, "EUR", "0.5");
    }
    if (event.type === "account" && Object.keys(event.outcomes).length > 0) break;
  }
  await paid;
  for (const one of Object.values(heights)) {
    assert.ok(one.length > 30);
    assert.deepEqual(one, one.map((_, at) => first + at));
  }
});

test("a local book follows the blocks", { skip }, async () => {
  let placed: Promise<unknown> | null = null;
  await client.sell("EUR/USD", "20", "2.5");
  await client.buy("EUR/USD", "2", "3");
  const started = (await client.status()).height;
  for await (const { book } of client.followBook("EUR/USD")) {
    placed ??= client.sell("EUR/USD", "3", "0.5");
    const seen = await client.book("EUR/USD", 100);
    if (book?.height === seen.height) assert.deepEqual([book.sells, book.buys], [seen.sells, seen.buys]);
    if (book && book.height > started + 3) break;
  }
  const dear = await client.quoteExact("buy", "EUR/USD", "1", "0.01");
  assert.ok(["beyond_bound", "no_price"].includes(dear.why) && dear.returned === "0.01", JSON.stringify(dear));
  const ticker = await client.ticker("EUR/USD");
  assert.ok(ticker.price !== null && ticker.day !== null && ticker.day.batches > 0);
  await placed;
  await client.cancelAll();
});

test("an account's orders and fills are there afterwards, and each order has a definite answer", { skip }, async () => {
  const named = `0x${"a7".repeat(16)}`;
  const placed = await client.sell("EUR/USD", "3", "499", { client: named });
  const resting = await client.orderFate({ client: named });
  assert.deepEqual([resting.status, resting.sequence, resting.order?.amount], ["resting", placed.sequence, "3"]);
  await client.cancelAll();
  const ended = await client.orderFate({ number: resting.sequence });
  assert.deepEqual([ended.status, ended.why, ended.sold, ended.returned], ["ended", "cancelled", "0", "3"]);
  const { rows, next } = await client.orders(undefined, 1);
  assert.equal(rows.length, 1);
  const older = next === null ? [] : (await client.orders(next)).rows;
  assert.ok([...rows, ...older].some((order) => order.client === named && order.why === "cancelled"));
  await client.sell("EUR/USD", "20", "2.5");
  const bought = await client.buy("EUR/USD", "2", "3");
  const fill = (await client.fills(undefined, 10)).rows.find((one) => one.offer === bought.sequence);
  assert.ok(fill?.sell === "USD" && Number(fill.sold) <= 6 && Number(fill.bought) >= 1.8 && Number(fill.bought) < 2.2);
  const told = (await client.orderFate({ number: bought.sequence! })).order!.asked!;
  assert.deepEqual([told.side, told.base, told.quote], ["buy", "EUR", "USD"]);
  assert.ok(Number(told.amount) >= 1.9 && Number(told.amount) < 2.001 && Number(told.price) <= 3, JSON.stringify(told));
  await assert.rejects(client.orderFate({ number: 999n }), NotFoundError);
  await client.cancelAll();
});

test("what a quorum signed needs no trust in a node", { skip }, async () => {
  const committee = await client.committee();
  assert.deepEqual([committee.keys.length, quorumOf(committee)], [1, 1]);
  assert.equal((await client.provedAccount(client.address, committee)).address, client.address);
  const placed = await client.sell("EUR/USD", "3", "500");
  const proved = await client.provedFate(placed.id, committee);
  assert.deepEqual([proved.outcome, proved.height], [placed.outcome, placed.height]);
  await client.cancelAll();
  const key = Ed25519Key.generate().public;
  const strangers = [{ keys: [key], epoch: 0 }, { ...committee, epoch: 1 }, { keys: [...committee.keys, key], epoch: 0 }];
  for (const stranger of strangers) {
    await assert.rejects(client.provedAccount(client.address, stranger), ForeignAnswerError);
    await assert.rejects(client.provedFate(placed.id, stranger), ForeignAnswerError);
  }
  const ask = async (path: string) => (await fetch(SERVER + path)).json() as Promise<Record<string, string>>;
  const flipped = (bytes: Uint8Array, at: number) => bytes.map((byte, position) => (position === at ? byte ^ 1 : byte));
  const told = await ask(`/v1/transactions/${placed.id}?proof=true&certified=true`);
  const [id, receipts, proof] = [placed.id, told["receipts_root"]!, told["proof"]!].map(fromHex) as [Uint8Array, Uint8Array, Uint8Array];
  assert.ok(proveOutcome(id, receipts, proof));
  for (let at = 0; at < proof.length; at += 1) assert.throws(() => proveOutcome(id, receipts, flipped(proof, at)), ProofError);
  const certificate = told["certificate"] as unknown as { certificate: string; state_root: string; receipts_root: string };
  const { network } = await client.limits();
  for (let at = 0; at < fromHex(certificate.certificate).length; at += 1) {
    const changed = { ...certificate, certificate: toHex(flipped(fromHex(certificate.certificate), at)) };
    assert.throws(() => checkCertificate(changed, network, committee), ProofError);
  }
  for (const address of [client.address, "0x" + "77".repeat(20)]) {
    const body = await ask(`/v1/accounts/${address}/proof`);
    const [root, bytes] = [fromHex(body["root"]!), fromHex(body["proof"]!)];
    assert.equal(proveAccount(fromHex(address), root, bytes)?.address ?? null, address === client.address ? address : null);
    for (let at = 0; at < bytes.length; at += 1) assert.throws(() => proveAccount(fromHex(address), root, flipped(bytes, at)), ProofError);
  }
});

const run = async (file: string, ...given: string[]) => {
  const env = { ...process.env, WALRAS_SERVER: SERVER, WALRAS_KEY: SECRET, WALRAS_PASSPHRASE: "demo" };
  return (await promisify(execFile)(process.execPath, [file, ...given], { env, cwd: PACKAGE })).stdout;
};

/** A trading key that the client's account has authorised at the demo's venue, with a deposit of both assets, as a file. */
async function tradingFile(folder: string): Promise<string> {
  const seed = crypto.getRandomValues(new Uint8Array(32));
  const trader = new VenueTrader(client, new TradingKey(seed));
  const lose = { USD: "1000", EUR: "1000" };
  for (const [asset, amount] of Object.entries(lose)) await trader.deposit(asset, amount);
  await trader.authorize({ "EUR/USD": ["0.0001", "200000"] }, lose);
  const file = join(folder, "trading.json");
  writeFileSync(file, await sealKey(seed, "demo", [64, 1]));
  return file;
}

test("own orders are followed after a login, and nobody else's", { skip }, async () => {
  for (const key of [EthereumKey.generate(), Ed25519Key.generate()]) {
    await funded(key);
    const own = made(key);
    const followed = own.followOrders();
    const first = (await followed.next()).value!;
    assert.deepEqual([first.isSnapshot, first.orders, first.pending, first.account], [true, [], [], key.address.toLowerCase()]);
    /** The next state of an order. */
    const state = async (number: bigint) => {
      for (;;) {
        const found = (await followed.next()).value!.orders.find((one) => one.sequence === number);
        if (found) return [found.status, found.why, found.left];
      }
    };
    const placed = await own.sell("EUR/USD", "2", "500");
    assert.deepEqual(await state(placed.sequence!), ["resting", null, "2"]);
    await own.cancel(placed.sequence!);
    assert.deepEqual(await state(placed.sequence!), ["ended", "cancelled", "0"]);
    await followed.return();
    const refused = (error: Error) => error instanceof StreamError && error.code === "login_required";
    const others = async () => {
      for await (const event of own.stream([`orders:${OTHER}`])) assert.equal(event.type, "heartbeat");
    };
    await assert.rejects(others(), refused);
  }
  const keyless = new Client(SERVER, { socket });
  const events = keyless.stream([`orders:${OTHER}`]);
  // Without a key nobody signs: the connection is given up, with the reason.
  for (;;) {
    const event = (await events.next()).value!;
    if (event.type === "disconnected") {
      assert.match(event.reason, /own orders need a key/);
      break;
    }
  }
  await events.return();
});

test("what executed at the venue of late is told by pages", { skip }, async () => {
  // The demo's venue opens some blocks after its start, and its makers trade.
  for (let tries = 0; tries < 300; tries += 1) {
    const markets = await client.venueMarkets().catch(() => []);
    if ((markets[0]?.day?.trades ?? 0) >= 3) break;
    await new Promise((resume) => setTimeout(resume, 200));
  }
  const [market] = await client.venueMarkets();
  assert.ok(market && market.last !== null && market.day !== null && market.day.trades >= 3, JSON.stringify(market));
  assert.ok(market.day.low <= market.day.close && market.day.close <= market.day.high);
  const first = await client.venueTrades(market.market, { limit: 2 });
  assert.ok(first.trades.length === 2 && first.next !== null);
  const next = await client.venueTrades(market.market, { limit: 1, cursor: first.next });
  const indices = [...first.trades, ...next.trades].map(({ index }) => Number(index));
  assert.deepEqual(indices, [...indices].sort((a, b) => b - a));
  const { trades } = await client.venueTrades(market.market, { since_ms: first.trades[0]!.time_ms });
  assert.ok(trades.length >= 1 && trades.every(({ time_ms }) => time_ms >= first.trades[0]!.time_ms));
  await assert.rejects(client.venueTrades(99), NotFoundError);
});

test("every example runs", { skip }, async () => {
  await client.sell("EUR/USD", "20", "2.5");
  await client.buy("EUR/USD", "1", "3");
  const folder = mkdtempSync(join(tmpdir(), "walras-"));
  const invoice = [OTHER, "EUR", "1.50", "invoice 7", folder];
  const told: Record<string, string> = {
    "ccxt-bot.mjs": await run("examples/ccxt-bot.mjs"),
    "market-data.mjs": await run("examples/market-data.mjs"),
    "market-maker.mjs": await run("examples/market-maker.mjs", "EUR/USD", "5", "4"),
    "pay-once.mjs": await run("examples/pay-once.mjs", ...invoice),
    "venue-maker.mjs": await run("examples/venue-maker.mjs", await tradingFile(folder), "0", "10", "4"),
    "watch.mjs": await run("examples/watch.mjs", client.address, "2"),
  };
  assert.deepEqual(Object.keys(told), readdirSync(join(PACKAGE, "examples")).sort());
  assert.match(told["ccxt-bot.mjs"]!, /order \d+ is open, 1 remain\nopen: [\d,]+\nfree: [^]*EUR: /);
  assert.match(told["market-data.mjs"]!, /EUR\/USD: last /);
  assert.match(told["market-maker.mjs"]!, /buys .* at .*, sells .* at /);
  assert.deepEqual(await client.offers(), []);
  assert.match(told["venue-maker.mjs"]!, /buys at tick \d+, sells at \d+/);
  assert.match(told["watch.mjs"]!, /batch \d+: [^]*holds /);
  assert.equal(await run("examples/pay-once.mjs", ...invoice), told["pay-once.mjs"]);
});

test("the code of the README runs as it stands", { skip }, async () => {
  const text = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const orders = JSON.stringify(join(mkdtempSync(join(tmpdir(), "walras-")), "trading.orders"));
  const placed = (piece: string) => piece.replaceAll("http://127.0.0.1:8080", SERVER).replaceAll('"trading.orders"', orders);
  const code = [...text.matchAll(/```js\n([^]*?)```/g)].map((match) => placed(match[1]!));
  const file = join(PACKAGE, "dist", "readme.mjs");
  writeFileSync(file, code.join("\n"));
  const told = await run(file);
  assert.match(told, /executed \d+\n/);
  assert.match(told, /overdraft: the account cannot pay/);
  assert.match(told, /session live\n/);
  assert.match(told, /batch \d+/);
  assert.match(told, /ladder open,open,open 10\n3 cancelled; executed\n/);
});
