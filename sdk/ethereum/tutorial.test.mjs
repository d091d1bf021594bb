// The tutorial's commands, as they stand, against a demo that runs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

test("the tutorial leads from a demo to a contract's filled offer", () => {
  const text = readFileSync(join(root, "docs", "tutorial-contracts.md"), "utf8");
  const [demo, ...blocks] = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map((found) => found[1]);
  assert.equal(demo, "walras demo\n", "with-demo.sh has started it");
  rmSync(join(root, "target", "tutorial"), { recursive: true, force: true });
  const env = { ...process.env, npm_config_prefer_offline: "true" };
  // Each block begins where the tutorial does.
  const run = (block) => execFileSync("sh", ["-euc", block], { cwd: root, env, encoding: "utf8" });
  const said = blocks.map(run).join("");
  assert.match(said, /the batch of block \d+ filled it: [\d.]+ EUR for [\d.]+ USD/);
  const held = Number(said.match(/the contract now has ([\d.]+) USD/)[1]);
  assert.ok(held > 0, said);
  assert.match(said, /the payment of 1\.25 EUR is committed in block \d+/);
});
