// What is kept in the tree is what the compiler makes of the sources.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { committed, compile, contracts } from "./compile.mjs";

test("the code of WETH9 and the ABI of the offers are those of their sources", () => {
  for (const [path, content] of committed) {
    assert.equal(readFileSync(path, "utf8"), content, `${path}: node sdk/ethereum/compile.mjs --committed writes it`);
  }
});

test("another source has other code", () => {
  const source = "// SPDX-License-Identifier: MIT\npragma solidity ^0.8.30;\ncontract WETH9 { uint8 public decimals = 6; }";
  assert.notEqual(compile({ "WETH9.sol": { content: source } }).WETH9.runtime, contracts.WETH9.runtime);
});
