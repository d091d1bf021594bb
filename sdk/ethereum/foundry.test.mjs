// foundry's cast and forge, as npm packages them: a token that was just bought in a batch is sent on, and a contract is
// created from its source.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const url = process.env.WALRAS_ETHEREUM;
const here = fileURLToPath(new URL(".", import.meta.url));
const OFFERS = "0x57616c7261730000000000000000000100000000";
const USD = "0x57616c7261730000000000000000000000000000";
const EUR = "0x57616c7261730000000000000000000000000001";
const buyer = {
  key: "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
  address: "0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f",
};
const seller = { key: "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6" };
const friend = "0x0000000000000000000000000000000000c0ffee";

/**
 * The package of the platform has the binary; without it nothing can be tested here, which is said. The script of npm in
 * front of it loses the exit status.
 */
function binary(tool) {
  const system = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  try {
    const found = createRequire(import.meta.url).resolve(`@foundry-rs/${tool}-${system}/package.json`);
    return join(dirname(found), "bin", tool);
  } catch {
    console.error(`NOT TESTED: @foundry-rs/${tool} has no binary for ${system}`);
    return null;
  }
}

const [castPath, forgePath] = [binary("cast"), binary("forge")];
const skip = castPath && forgePath ? false : "foundry has no binary for this platform";
const env = { ...process.env, ETH_RPC_URL: url, FOUNDRY_DISABLE_NIGHTLY_WARNING: "1", NO_COLOR: "1" };
const run = (tool, ...args) => execFileSync(tool, args, { cwd: here, encoding: "utf8", env, stdio: "pipe" }).trim();
const cast = (...args) => run(castPath, ...args);
const send = (who, ...args) => JSON.parse(cast("send", "--json", "--private-key", who.key, ...args));
/** Numbers are followed by their scientific form in brackets. */
const number = (text) => BigInt(text.split(" ")[0]);
const balance = (token, holder) => number(cast("call", token, "balanceOf(address)(uint256)", holder));

test("a token that was just bought in a batch is sent on by cast", { skip }, () => {
  assert.equal(cast("chain-id"), "31337");
  const place = (who, ...terms) => send(who, OFFERS, "place(address,address,uint64,uint64)(bytes32)", ...terms);
  const before = balance(EUR, buyer.address);
  // Far better than the market on both sides, so that a batch takes both, whatever the demo's traders do.
  place(seller, EUR, USD, "30000000", "300000");
  const placed = place(buyer, USD, EUR, "45000000", "300000");
  assert.equal(placed.status, "0x1");
  const filled = "Filled(address indexed,bytes32 indexed,uint64,uint64,uint64,uint64)";
  const from = ["--from-block", String(Number(placed.blockNumber))];
  let fills = [];
  while (fills.length === 0) fills = JSON.parse(cast("logs", "--json", "--address", OFFERS, ...from, filled, buyer.address));
  const bought = balance(EUR, buyer.address) - before;
  assert.ok(bought >= 300_000n, String(bought));

  const estimate = number(cast("estimate", "--from", buyer.address, EUR, "transfer(address,uint256)", friend, String(bought)));
  const sent = send(buyer, EUR, "transfer(address,uint256)", friend, String(bought));
  assert.ok(BigInt(sent.gasUsed) <= estimate, `${sent.gasUsed} of ${estimate}`);
  assert.equal(balance(EUR, friend), bought);
  assert.equal(balance(EUR, buyer.address), before);
  const receipt = JSON.parse(cast("receipt", "--json", sent.transactionHash));
  assert.deepEqual([receipt.status, receipt.logs.length, receipt.to.toLowerCase()], ["0x1", 1, EUR]);
  const [transfer] = JSON.parse(
    cast("logs", "--json", "--address", EUR, "--from-block", String(Number(sent.blockNumber)), "Transfer(address indexed,address indexed,uint256)", buyer.address),
  );
  assert.deepEqual([transfer.transactionHash, BigInt(transfer.data)], [sent.transactionHash, bought]);
});

test("why a transfer is refused is said", { skip }, () => {
  const most = String(2n ** 63n);
  const refused = (error) => /transfer amount exceeds balance/.test(error.stderr);
  assert.throws(() => cast("call", "--from", friend, EUR, "transfer(address,uint256)", buyer.address, most), refused);
  assert.throws(() => cast("estimate", "--from", friend, EUR, "transfer(address,uint256)", buyer.address, most), refused);
});

test("forge creates a contract from its source, and cast calls it", { skip }, () => {
  const forge = [
    ...["create", "contracts/Vault.sol:Vault", "--broadcast", "--json", "--rpc-url", url, "--private-key", buyer.key],
    ...["--root", ".", "--contracts", "contracts", "--out", "build/forge", "--cache-path", "build/forge-cache"],
    ...["--offline", "--use", `${here}solc.mjs`, "--evm-version", "osaka", "--optimize"],
    ...["--constructor-args", EUR],
  ];
  const { deployedTo, deployer } = JSON.parse(run(forgePath, ...forge));
  assert.equal(deployer, buyer.address);
  assert.equal(cast("call", deployedTo, "manager()(address)"), buyer.address);
  assert.equal(cast("call", deployedTo, "asset()(address)").toLowerCase(), EUR);
  assert.notEqual(cast("code", deployedTo), "0x");
  send(buyer, deployedTo, "join()", "--value", "3ether");
  assert.equal(number(cast("call", deployedTo, "totalShares()(uint256)")), 3n * 10n ** 18n);
  assert.equal(cast("balance", deployedTo), String(3n * 10n ** 18n));
});

test("forge tests a contract that trades over the mock of the exchange, without a node", { skip }, () => {
  const forge = [
    ...["test", "--root", ".", "--contracts", "contracts", "--match-path", "contracts/test/*", "--json"],
    ...["--out", "build/forge", "--cache-path", "build/forge-cache"],
    ...["--offline", "--use", `${here}solc.mjs`, "--evm-version", "osaka", "--optimize"],
  ];
  const suites = Object.values(JSON.parse(run(forgePath, ...forge)));
  const results = suites.flatMap((suite) => Object.values(suite.test_results).map((result) => result.status));
  assert.deepEqual(results, ["Success", "Success"]);
});
