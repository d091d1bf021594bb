// Compiles the contract, offline; writes its ABI and code for the clients that are not JavaScript.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import solc from "solc";

const here = dirname(fileURLToPath(import.meta.url));

const input = {
  language: "Solidity",
  sources: { "Guestbook.sol": { content: readFileSync(join(here, "Guestbook.sol"), "utf8") } },
  settings: {
    optimizer: { enabled: true },
    outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
  },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
const errors = (output.errors ?? []).filter((error) => error.severity === "error");
if (errors.length > 0) {
  throw new Error(errors.map((error) => error.formattedMessage).join("\n"));
}
const { abi, evm } = output.contracts["Guestbook.sol"].Guestbook;
const artifact = { abi, bytecode: `0x${evm.bytecode.object}` };
mkdirSync(join(here, "build"), { recursive: true });
writeFileSync(join(here, "build", "Guestbook.json"), JSON.stringify(artifact, null, 2));
