// What JavaScript's libraries say of the vectors' second envelope: see rows.py. Runs where they are installed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { bls12_381 } from "@noble/curves/bls12-381.js";
import mcl from "mcl-wasm";

const vectors = JSON.parse(readFileSync(process.argv[2]));
const made = vectors.made[1];
const packages = createRequire(`${process.cwd()}/package.json`)("./package-lock.json").packages;
const raw = (text) => new Uint8Array(Buffer.from(text.slice(2), "hex"));

const said = (name, element, read, more = "") => {
  const wrong = vectors.refused_points.filter(({ what, bytes }) => {
    try {
      return read(what, raw(bytes)) !== false;
    } catch {
      return false;
    }
  });
  const words = wrong.map(({ what, why }) => `${why} (${what === "opening_key" ? "G1" : "G2"})`);
  const version = packages[`node_modules/${name}`].version;
  console.log([`${name} ${version}${more} (JavaScript)`, Buffer.from(element).toString("hex"), ...words].join("|"));
};

const [G1, G2] = [bls12_381.G1.Point, bls12_381.G2.Point];
const shared = bls12_381.pairing(G1.fromBytes(raw(made.opening_key)), G2.fromBytes(raw(made.point)));
said("@noble/curves", bls12_381.fields.Fp12.toBytes(shared), (what, bytes) => (what === "opening_key" ? G1 : G2).fromBytes(bytes));
const validated = (what, bytes) => (what === "opening_key" ? G1 : G2).fromBytes(bytes).assertValidity();
said("@noble/curves", bls12_381.fields.Fp12.toBytes(shared), validated, " with `assertValidity`");

await mcl.init(mcl.BLS12_381);
mcl.setETHserialization(true);
const read = (what, bytes) => {
  const point = what === "opening_key" ? new mcl.G1() : new mcl.G2();
  point.deserialize(bytes);
  return point;
};
const element = mcl.pairing(read("opening_key", raw(made.opening_key)), read("point", raw(made.point)));
said("mcl-wasm", element.serialize(), read, " with ETH serialization");
