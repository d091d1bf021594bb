#!/usr/bin/env node
// The compiler of npm under the command line that forge expects of solc: `--version`, and JSON from input to output.

import { readFileSync } from "node:fs";
import solc from "solc";

if (process.argv.includes("--version")) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${solc.version().replace(/Emscripten\.clang/, "Linux.g++")}`);
} else if (process.argv.includes("--standard-json")) {
  process.stdout.write(solc.compile(readFileSync(0, "utf8")));
} else {
  console.error("solc.mjs knows --version and --standard-json");
  process.exitCode = 2;
}
