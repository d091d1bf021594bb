// Compiles the contracts, offline; writes ABI and code for the clients. With --committed it also writes what is kept in
// the tree: the code of the genesis' WETH9 and of the reserved addresses, and the ABI of the offers.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import solc from "solc";

const here = dirname(fileURLToPath(import.meta.url));
const own = join(here, "contracts");
const genesis = join(here, "..", "..", "crates", "ledger", "contracts");
const read = (folder, name) => ({ content: readFileSync(join(folder, name), "utf8") });

// Without metadata, the code depends on the source's meaning alone.
export function compile(sources, evmVersion = "osaka", runs = 1000) {
  const input = {
    language: "Solidity",
    sources,
    settings: {
      optimizer: { enabled: true, runs },
      evmVersion,
      metadata: { bytecodeHash: "none", appendCBOR: false },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const faults = output.errors ?? [];
  if (faults.length > 0) {
    throw new Error(faults.map((fault) => fault.formattedMessage).join("\n"));
  }
  const all = Object.values(output.contracts).flatMap((file) => Object.entries(file));
  const artifact = ([name, { abi, evm }]) => [
    name,
    { abi, bytecode: `0x${evm.bytecode.object}`, runtime: evm.deployedBytecode.object },
  ];
  return Object.fromEntries(all.map(artifact));
}

const names = ["Guestbook.sol", "IOffers.sol", "Vault.sol", "LimitOrders.sol"];
const sources = Object.fromEntries(names.map((name) => [name, read(own, name)]));
// What reserved addresses show runs in tools of any age, and has to save gas there.
const ofGenesis = { WETH9: [], Token: ["london", 1_000_000], Offers: ["london"] };
const ofLedger = Object.entries(ofGenesis).map(([name, settings]) =>
  compile({ [`${name}.sol`]: read(genesis, `${name}.sol`) }, ...settings),
);
export const contracts = Object.assign({}, compile(sources), ...ofLedger);

// What is kept in the tree, as it should be.
export const committed = [
  ...Object.keys(ofGenesis).map((name) => [join(genesis, `${name}.hex`), `${contracts[name].runtime}\n`]),
  [join(here, "abi", "IOffers.json"), `${JSON.stringify(contracts.IOffers.abi, null, 2)}\n`],
];

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(join(here, "build"), { recursive: true });
  for (const [name, { abi, bytecode }] of Object.entries(contracts)) {
    writeFileSync(join(here, "build", `${name}.json`), JSON.stringify({ abi, bytecode }, null, 2));
  }
  if (process.argv.includes("--committed")) {
    mkdirSync(join(here, "abi"), { recursive: true });
    committed.forEach(([path, content]) => writeFileSync(path, content));
  }
}
