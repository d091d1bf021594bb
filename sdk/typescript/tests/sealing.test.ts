/** Envelopes against the vectors that the Rust implementation wrote. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Signed, encodeBody, type Body } from "../src/encoding.js";
import { SealError, isOpeningKey, labelOf, open, padded, saltOf, seal, sealedIdOf, sealedSigningBytes, sealedTypedData, unpadded } from "../src/sealing.js";
import { fromHex, hashTypedData, toHex } from "../src/typed.js";

type Made = {
  terms: { network: string; signer: string; key: string; payer: string; sequence: string; until: string };
  committee: string;
  operations: string[];
  drawn: string;
  size: number;
  point: string;
  label: string;
  opening_key: string;
  box: string;
};
type Inside = Record<"network" | "payer" | "sequence" | "by" | "secret" | "body" | "signing_bytes" | "domain_name" | "salt" | "hash" | "transaction" | "id", string>;
type Vectors = { inside: Inside[]; made: Made[]; refused_points: { what: string; bytes: string; why: string }[]; refused_texts: { text: string; why: string }[] };

const vectors = JSON.parse(readFileSync(new URL("../../../../docs/sealed-vectors.json", import.meta.url), "utf8")) as Vectors;
const termsOf = ({ terms }: Made) => ({
  network: fromHex(terms.network),
  signer: fromHex(terms.signer),
  key: BigInt(terms.key),
  payer: fromHex(terms.payer),
  sequence: BigInt(terms.sequence),
  until: BigInt(terms.until),
});
const last = () => vectors.made.at(-1)!;
const envelopeOf = ({ size, point, box }: Made) => ({ size, point: fromHex(point), box: fromHex(box) });

test("an envelope has the same bytes here", () => {
  for (const made of vectors.made) {
    const envelope = seal(fromHex(made.committee), termsOf(made), made.operations.map(fromHex), fromHex(made.drawn));
    assert.deepEqual([envelope.size, toHex(envelope.point), toHex(envelope.box)], [made.size, made.point, made.box]);
    assert.equal(toHex(labelOf(termsOf(made), made.size, envelope.point)), made.label);
  }
});

test("the committee's signature opens it, and another's does not", () => {
  for (const made of vectors.made) {
    const [label, key] = [fromHex(made.label), fromHex(made.opening_key)];
    assert.ok(isOpeningKey(fromHex(made.committee), label, key));
    assert.deepEqual(open(envelopeOf(made), label, key).map(toHex), made.operations);
  }
  const [one, other] = [vectors.made[1]!, vectors.made[2]!];
  const [label, theirs] = [fromHex(one.label), fromHex(other.opening_key)];
  assert.ok(!isOpeningKey(fromHex(one.committee), label, theirs));
  assert.throws(() => open(envelopeOf(one), label, theirs), SealError);
});

test("what is inside is signed for its envelope", () => {
  assert.equal(vectors.inside.length, 3);
  for (const inside of vectors.inside) {
    const within = { network: fromHex(inside.network), payer: fromHex(inside.payer), sequence: BigInt(inside.sequence) };
    const account = toHex(fromHex(inside.body).slice(8, 28));
    const body: Body = { chain: 31337n, account, sequence: 9n, until: 250n, operation: { kind: "CreateOffer", sell: 1, buy: 0, amount: 10_000n, limit: "1" } };
    assert.equal(toHex(encodeBody(body)), inside.body);
    assert.equal(toHex(sealedSigningBytes(within, body)), inside.signing_bytes);
    assert.equal(toHex(saltOf(within)), inside.salt);
    assert.equal(sealedTypedData(within, body).domain.name, inside.domain_name);
    assert.equal(toHex(hashTypedData(sealedTypedData(within, body))), inside.hash);
    const signed = new Signed(fromHex(inside.transaction));
    assert.equal(sealedIdOf(within, signed), inside.id);
    assert.notEqual(signed.id, inside.id);
  }
});

test("points that no client may take are refused", () => {
  const { refused_points: points } = vectors;
  assert.equal(points.length, 6);
  for (const { what, bytes, why } of points) {
    const made = last();
    const point = fromHex(bytes);
    if (what === "point") {
      assert.throws(() => seal(point, termsOf(made), [], fromHex(made.drawn)), SealError, why);
      assert.throws(() => open({ ...envelopeOf(made), point }, fromHex(made.label), fromHex(made.opening_key)), SealError, why);
      assert.ok(!isOpeningKey(point, fromHex(made.label), fromHex(made.opening_key)), why);
    } else {
      assert.ok(!isOpeningKey(fromHex(made.committee), fromHex(made.label), point), why);
      assert.throws(() => open(envelopeOf(made), fromHex(made.label), point), SealError, why);
    }
  }
});

test("a text that is not of its form is garbage", () => {
  assert.ok(vectors.refused_texts.length >= 6);
  for (const { text, why } of vectors.refused_texts) assert.throws(() => unpadded(fromHex(text)), SealError, why);
  assert.throws(() => padded(Array.from({ length: 33 }, () => new Uint8Array(1))), /at most 32/);
  assert.throws(() => padded([new Uint8Array(9_000)]), /largest box/);
});
