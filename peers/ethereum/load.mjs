// Loads an Ethereum node by JSON-RPC with transactions that were signed beforehand, and prints one JSON line.
// usage: load.mjs URL PID TOKEN.json TRANSACTIONS
//   PID: the node's process, whose processor time counts. TOKEN.json: a compiled token with `mint` and `transfer`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { HDNodeWallet, Mnemonic, Transaction, Interface, getCreateAddress } = createRequire(process.env.ETHERS)("ethers");
const [url, pid, tokenPath, count] = [process.argv[2], process.argv[3], process.argv[4], Number(process.argv[5])];
const BATCH = 50;
const GWEI = 1_000_000_000n;

const post = async (calls) => {
    const body = JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params })));
    const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const answers = await answer.json();
    if (!Array.isArray(answers)) throw new Error(JSON.stringify(answers));
    return answers.sort((one, other) => one.id - other.id).map((one) => {
        if (one.error) throw new Error(`${url}: ${JSON.stringify(one.error)}`);
        return one.result;
    });
};
const call = async (method, ...params) => (await post([[method, params]]))[0];
const receipt = async (hash) => {
    for (;;) {
        const found = await call("eth_getTransactionReceipt", hash).catch(() => null);
        if (found && found.status !== "0x1") throw new Error(`${hash} failed`);
        if (found) return found;
    }
};
// Seconds of the node's processor.
const used = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
};
const median = (values) => values.sort((one, other) => one - other)[values.length >> 1];

const chainId = BigInt(await call("eth_chainId"));
const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk");
const wallets = [...Array(10).keys()].map((place) => HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${place}`));
const [from] = await call("eth_accounts");
for (const { address } of wallets) {
    if (BigInt(await call("eth_getBalance", address, "latest")) > 10n ** 19n) continue;
    await receipt(await call("eth_sendTransaction", { from, to: address, value: "0x3635c9adc5dea00000" }));
}
const nonces = await post(wallets.map(({ address }) => ["eth_getTransactionCount", [address, "latest"]]));
const next = nonces.map(Number);
const sign = (place, fields) => {
    const common = { type: 2, chainId, nonce: next[place]++, maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI };
    const transaction = Transaction.from({ ...common, gasLimit: 400_000n, ...fields });
    transaction.signature = wallets[place].signingKey.sign(transaction.unsignedHash);
    return transaction.serialized;
};

// One transaction after another, each seen in a block before the next is sent.
const waits = [];
for (let turn = 0; turn < 100; turn++) {
    const signed = sign(0, { to: wallets[1].address, value: 1n, gasLimit: 21_000n });
    const begun = performance.now();
    await receipt(await call("eth_sendRawTransaction", signed));
    waits.push(performance.now() - begun);
}

const token = JSON.parse(readFileSync(tokenPath, "utf8"));
const abi = new Interface(token.abi);
const address = getCreateAddress({ from: wallets[0].address, nonce: next[0] });
const data = token.bytecode + abi.encodeDeploy([]).slice(2);
await receipt(await call("eth_sendRawTransaction", sign(0, { data, gasLimit: 3_000_000n })));
for (const place of wallets.keys()) {
    await receipt(await call("eth_sendRawTransaction", sign(place, { to: address, data: abi.encodeFunctionData("mint", [10n ** 9n]) })));
}
const someone = (number) => `0x${(0xabcd00000000 + number).toString(16).padStart(40, "0")}`;

// Each account sends its own, in order, by calls of BATCH transactions; it ends when all are in blocks.
const load = async (of) => {
    const signed = wallets.map((_, place) => [...Array(count / 10).keys()].map((turn) => sign(place, of(place * count + turn))));
    const [begun, before] = [performance.now(), used()];
    await Promise.all(signed.map(async (own, place) => {
        for (let at = 0; at < own.length; at += BATCH) {
            await post(own.slice(at, at + BATCH).map((bytes) => ["eth_sendRawTransaction", [bytes]]));
        }
        const { address } = wallets[place];
        while (Number(await call("eth_getTransactionCount", address, "latest")) < next[place]) {
            await new Promise((done) => setTimeout(done, 5));
        }
    }));
    const seconds = (performance.now() - begun) / 1000;
    await receipt(Transaction.from(signed.at(-1).at(-1)).hash);
    return { transactions_per_second: Math.round(count / seconds), processor_us: Math.round((used() - before) / count * 1e6) };
};
const transfers = await load((number) => ({ to: someone(number), value: 1n, gasLimit: 21_000n }));
const tokens = await load((number) => ({ to: address, data: abi.encodeFunctionData("transfer", [someone(number), 1n]) }));
const memory = readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1];
console.log(JSON.stringify({ wait_ms: median(waits), transfers, tokens, memory_mb: Math.round(Number(memory) / 1024) }));
