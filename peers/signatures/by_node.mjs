// What JavaScript's libraries do with the signatures and hashes of made.py, as rows of a table. Runs where they are installed.
import { createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as chainsafe from "@chainsafe/blst";
import { TypedDataUtils } from "@metamask/eth-sig-util";
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { ed25519 } from "@noble/curves/ed25519.js";
import { blake3 } from "@noble/hashes/blake3.js";
import * as stablelib from "@stablelib/ed25519";
import { getMessage } from "eip-712";
import elliptic from "elliptic";
import * as hashWasm from "hash-wasm";
import sodium from "libsodium-wrappers";
import mcl from "mcl-wasm";
import { TypedData } from "ox";
import nacl from "tweetnacl";
import { getEncodedEip712Data } from "web3-eth-abi";

const [known, vectors] = process.argv.slice(2, 4).map((path) => JSON.parse(readFileSync(path)));
const OURS = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
const packages = createRequire(`${process.cwd()}/package.json`)("./package-lock.json").packages;
const bytes = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hex = (content) => Buffer.from(content).toString("hex");

const row = (name, what, did, more = "") => {
  const version = name === "Node.js" ? process.version : packages[`node_modules/${name}`].version;
  console.log(`| ${name} ${version}${more} (JavaScript) | ${what} | ${did} |`);
};

const accepted = (check) => {
  const holds = ([, { key, message, signature }]) => check(bytes(key), bytes(message), bytes(signature));
  return `accepts ${Object.entries(known.ed25519).filter(holds).map(([name]) => name).join(", ")}`;
};

const derived = (derive) => {
  const same = ([length, digest]) => hex(derive(new Uint8Array(Number(length)).fill(7))) === digest;
  return Object.entries(known.derived).every(same) ? "derives the same keys" : "derives other keys";
};

const hashed = (hash) => {
  const right = vectors.filter((one) => hash(one.typed_data).replace(/^0x/, "") === one.hash.slice(2)).length;
  return `hashes ${right} of ${vectors.length} right`;
};

const spki = (key) => Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key]);
const byNode = (key, message, signature) =>
  verify(null, message, createPublicKey({ key: spki(key), format: "der", type: "spki" }), signature);
const byElliptic = (key, message, signature) => new elliptic.eddsa("ed25519").verify([...message], hex(signature), hex(key));

const { key, message, signature, tag } = known.bls;
const short = bls12_381.shortSignatures;
const byNoble = (underTag) => short.verify(bytes(signature), short.hash(bytes(message), underTag), bytes(key));

// A signature by noble under our tag, verified by mcl-wasm, whose own tag cannot be set.
const byMcl = () => {
  const secret = new Uint8Array(32).fill(7);
  const made = short.sign(short.hash(bytes(message), OURS), secret);
  const [publicKey, generator, own] = [new mcl.G2(), new mcl.G2(), new mcl.G1()];
  publicKey.deserialize(short.getPublicKey(secret).toBytes());
  generator.deserialize(bls12_381.G2.Point.BASE.toBytes());
  own.deserialize(made.toBytes());
  return mcl.pairing(mcl.hashAndMapToG1(bytes(message)), publicKey).isEqual(mcl.pairing(own, generator));
};

const keyIsRead = () => {
  try {
    chainsafe.PublicKey.fromBytes(bytes(key));
    return "reads the key";
  } catch (error) {
    return `has keys of 48 bytes only: ${error.message}`;
  }
};

await sodium.ready;
await mcl.init(mcl.BLS12_381);
mcl.setETHserialization(true);
mcl.setMapToMode(5);
row("Node.js", "Ed25519", accepted(byNode));
row("@noble/curves", "Ed25519", accepted((k, m, s) => ed25519.verify(s, m, k)));
row("@noble/curves", "Ed25519", accepted((k, m, s) => ed25519.verify(s, m, k, { zip215: false })), " with `zip215: false`");
row("tweetnacl", "Ed25519", accepted((k, m, s) => nacl.sign.detached.verify(m, s, k)));
row("@stablelib/ed25519", "Ed25519", accepted((k, m, s) => stablelib.verify(k, m, s)));
row("libsodium-wrappers", "Ed25519", accepted((k, m, s) => sodium.crypto_sign_verify_detached(s, m, k)));
row("elliptic", "Ed25519", accepted(byElliptic));
row("@noble/hashes", "BLAKE3 `derive_key`", derived((content) => blake3(content, { context: Buffer.from(known.context) })));
const modes = Object.keys(hashWasm).filter((name) => /blake3.*deriv|deriv.*blake3/i.test(name));
row("hash-wasm", "BLAKE3 `derive_key`", modes.length ? modes.join(", ") : "has no such mode, only hashes and keyed hashes");
row("@noble/curves", "BLS", byNoble(tag) ? "verifies, by `shortSignatures` with the tag given to `hash`" : "does not verify");
row("mcl-wasm", "BLS", byMcl() ? `verifies under our tag, ${OURS}, and under no other` : "does not verify under our tag");
row("@chainsafe/blst", "BLS", keyIsRead());
row("@metamask/eth-sig-util", "typed data", hashed((typed) => hex(TypedDataUtils.eip712Hash(typed, "V4"))));
row("eip-712", "typed data", hashed((typed) => hex(getMessage(typed, true))));
row("ox", "typed data", hashed((typed) => TypedData.getSignPayload(typed)));
row("web3-eth-abi", "typed data", hashed((typed) => getEncodedEip712Data(typed, true)));
