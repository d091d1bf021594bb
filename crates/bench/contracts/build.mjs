// Compiles the contracts beside this file: `npm install solc@0.8.30 && node build.mjs` writes NAME.hex, the code that
// creates each contract.
import { readFileSync, writeFileSync } from "node:fs";
import solc from "solc";

for (const name of ["Token", "Pool", "Exchange", "Counter", "Game", "Rides", "Videos"]) {
  const file = `${name}.sol`;
  const content = readFileSync(new URL(file, import.meta.url), "utf8");
  const settings = {
    evmVersion: "osaka",
    optimizer: { enabled: true, runs: 10000 },
    metadata: { bytecodeHash: "none", appendCBOR: false },
    outputSelection: { "*": { "*": ["evm.bytecode.object"] } },
  };
  const input = JSON.stringify({ language: "Solidity", sources: { [file]: { content } }, settings });
  const output = JSON.parse(solc.compile(input));
  for (const error of output.errors ?? []) console.error(error.formattedMessage);
  writeFileSync(new URL(`${name}.hex`, import.meta.url), `${output.contracts[file][name].evm.bytecode.object}\n`);
}
