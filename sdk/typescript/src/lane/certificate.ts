/** Answers of members, and certificates of quorums in their forms. */
import * as bls from "./bls.js";
import { type Committee, blsKeyAt, keyAt, quorums, shardFor } from "./committee.js";
import * as ed25519 from "./ed25519.js";
import { Reader, Refused, ascends, derived, join, need, parsed, u16, u32, u64, u8 } from "./layout.js";
import { CONFIRMATION, SHARED, head } from "./payment.js";
import * as trees from "./trees.js";

/** What answers are about. */
export type Claim = { kind: number; owner: Uint8Array; digest: Uint8Array };
/** A leaf in a tree. */
export type Place = { size: number; index: number; path: Uint8Array[] };
export type Answer = { validator: number; place: Place; position: bigint; signature: Uint8Array };
export type Aggregate = { bitmap: Uint8Array; signature: Uint8Array };
export type BatchPart = { validator: number; position: bigint; excluded: number[]; signature: Uint8Array };
export type Certificate =
  | { form: "answers"; answers: Answer[] }
  | { form: "aggregate"; aggregate: Aggregate }
  | { form: "shared answers"; place: Place; parts: BatchPart[] }
  | { form: "shared aggregate"; place: Place; excluded: number[]; aggregate: Aggregate }
  | { form: "threshold"; signature: Uint8Array };

type Root = { kind: number; validator: number; shard: number; size: number; position: bigint; root: Uint8Array };

function checkRoot({ kind, validator, shard, size, position, root }: Root, committee: Committee, signature: Uint8Array): void {
  const message = join(head(kind, committee.network, committee.epoch), u8(validator), u16(shard), u32(size), u64(position), root);
  need(ed25519.holds(keyAt(committee, validator, shard), message, signature), "WrongSignature", String(validator));
}

const encodePlace = ({ size, index, path }: Place): Uint8Array => join(u32(size), u32(index), ...path);
const rootOfPlace = ({ size, index, path }: Place, digest: Uint8Array): Uint8Array =>
  trees.rootOf(trees.SIGNED, trees.leaf(trees.SIGNED, digest), size, index, path);

function readPlace(reader: Reader): Place {
  const [size, index] = [reader.u32(), reader.u32()];
  return { size, index, path: trees.readPath(reader, size, index) };
}

export const encodeAnswer = ({ validator, place, position, signature }: Answer): Uint8Array =>
  join(u8(validator), u32(place.size), u32(place.index), u64(position), signature, ...place.path);

export function readAnswer(reader: Reader): Answer {
  const [validator, size, index] = [reader.u8(), reader.u32(), reader.u32()];
  const [position, signature] = [reader.u64(), reader.signature()];
  return { validator, place: { size, index, path: trees.readPath(reader, size, index) }, position, signature };
}

function rootOfAnswer({ validator, place, position }: Answer, committee: Committee, claim: Claim): Root {
  const root = rootOfPlace(place, claim.digest);
  return { kind: claim.kind, validator, shard: shardFor(committee, validator, claim.owner), size: place.size, position, root };
}

export const verifyAnswer = (answer: Answer, committee: Committee, claim: Claim): void =>
  checkRoot(rootOfAnswer(answer, committee, claim), committee, answer.signature);

function checkSigners(signers: number[], committee: Committee): void {
  const right = signers.length === quorums(committee.keys.length).certificate && ascends(signers);
  need(right, "WrongSigners", "q members in ascending order");
}

const signersOf = ({ bitmap }: Aggregate): number[] =>
  Array.from({ length: 8 * bitmap.length }, (_, bit) => bit).filter((bit) => (((bitmap[bit >> 3] ?? 0) >> (bit % 8)) & 1) === 1);

function checkedSigners(aggregate: Aggregate, committee: Committee, needed: number): number[] {
  const [members, signers] = [committee.keys.length, signersOf(aggregate)];
  const fits = aggregate.bitmap.length === (members + 7) >> 3 && signers.every((signer) => signer < members);
  need(fits && signers.length >= needed, "WrongSigners", "the bitmap");
  return signers;
}

function verifyAggregate(aggregate: Aggregate, committee: Committee, claim: Claim, needed: number): number[] {
  const signers = checkedSigners(aggregate, committee, needed);
  const keys = signers.map((signer) => blsKeyAt(committee, signer, shardFor(committee, signer, claim.owner)));
  const message = bls.signedBytes(committee.network, committee.epoch, claim.kind, 2, claim.digest);
  need(bls.holds(bls.totalOfKeys(keys), message, aggregate.signature), "WrongAggregate");
  return signers;
}

const encodeAggregate = ({ bitmap, signature }: Aggregate): Uint8Array => join(u8(bitmap.length), bitmap, signature);
const readAggregate = (reader: Reader): Aggregate => ({ bitmap: reader.take(reader.u8()), signature: reader.take(48) });

export const encodeExcluded = (places: number[]): Uint8Array => join(u16(places.length), ...places.map(u16));
export function readExcluded(reader: Reader): number[] {
  const places = reader.times(reader.u16(), (of) => of.u16());
  need(ascends(places), "Malformed", "excluded places ascend strictly");
  return places;
}

/** What is signed in place of the root of a broker's tree. */
function sharedDigest(place: Place, digest: Uint8Array, excluded: number[]): Uint8Array {
  const root = rootOfPlace(place, digest);
  need(!excluded.includes(place.index), "WrongPath", "the payment is excluded");
  return derived("walras 2026 lane shared tree v1", join(root, u32(place.size), encodeExcluded(excluded)));
}

function verifyPart(part: BatchPart, committee: Committee, claim: Claim, place: Place): void {
  const { validator, position, excluded, signature } = part;
  const root = sharedDigest(place, claim.digest, excluded);
  const shard = shardFor(committee, validator, claim.owner);
  checkRoot({ kind: SHARED, validator, shard, size: place.size, position, root }, committee, signature);
}

const readPart = (reader: Reader): BatchPart => ({
  validator: reader.u8(),
  position: reader.u64(),
  excluded: readExcluded(reader),
  signature: reader.signature(),
});
const encodePart = ({ validator, position, excluded, signature }: BatchPart): Uint8Array =>
  join(u8(validator), u64(position), encodeExcluded(excluded), signature);

export function encodeCertificate(of: Certificate): Uint8Array {
  switch (of.form) {
    case "answers":
      return join(u8(of.answers.length), ...of.answers.map(encodeAnswer));
    case "aggregate":
      return join(u8(0), u8(1), encodeAggregate(of.aggregate));
    case "shared answers":
      return join(u8(0), u8(2), encodePlace(of.place), u8(of.parts.length), ...of.parts.map(encodePart));
    case "shared aggregate":
      return join(u8(0), u8(3), encodePlace(of.place), encodeExcluded(of.excluded), encodeAggregate(of.aggregate));
    case "threshold":
      return join(u8(0), u8(4), of.signature);
  }
}

export function readCertificate(reader: Reader): Certificate {
  const count = reader.u8();
  if (count > 0) return { form: "answers", answers: reader.times(count, readAnswer) };
  const form = reader.u8();
  need(form >= 1 && form <= 4, "Malformed", "no form of a certificate");
  if (form === 1) return { form: "aggregate", aggregate: readAggregate(reader) };
  if (form === 4) return { form: "threshold", signature: reader.take(48) };
  const place = readPlace(reader);
  if (form === 2) return { form: "shared answers", place, parts: reader.times(reader.u8(), readPart) };
  return { form: "shared aggregate", place, excluded: readExcluded(reader), aggregate: readAggregate(reader) };
}

export const parseCertificate = (data: Uint8Array): Certificate => parsed(readCertificate, data);

const sharedClaim = (claim: Claim, place: Place, excluded: number[]): Claim => ({ ...claim, kind: SHARED, digest: sharedDigest(place, claim.digest, excluded) });

/** Whether a quorum of a committee signed a claim. */
export function verifyCertificate(of: Certificate, committee: Committee, claim: Claim): void {
  const needed = quorums(committee.keys.length).certificate;
  if (of.form.startsWith("shared")) need(claim.kind === CONFIRMATION, "WrongSigners", "only confirmations are shared");
  switch (of.form) {
    case "answers": {
      checkSigners(of.answers.map((one) => one.validator), committee);
      const roots = of.answers.map((one) => rootOfAnswer(one, committee, claim));
      of.answers.forEach((one, at) => checkRoot(roots[at] as Root, committee, one.signature));
      return;
    }
    case "aggregate":
      verifyAggregate(of.aggregate, committee, claim, needed);
      return;
    case "shared answers":
      checkSigners(of.parts.map((part) => part.validator), committee);
      of.parts.forEach((part) => verifyPart(part, committee, claim, of.place));
      return;
    case "shared aggregate":
      verifyAggregate(of.aggregate, committee, sharedClaim(claim, of.place, of.excluded), needed);
      return;
    case "threshold": {
      if (!committee.group) throw new Refused("NoGroupKey");
      const message = bls.signedBytes(committee.network, committee.epoch, claim.kind, 3, claim.digest);
      need(bls.holds(committee.group.key, message, of.signature), "WrongAggregate");
    }
  }
}

/** Whether exactly this part of a certificate shows that a validator signed a claim. */
export function verifySigner(of: Certificate, committee: Committee, claim: Claim, validator: number): void {
  switch (of.form) {
    case "answers": {
      const [answer] = of.answers;
      if (!answer || of.answers.length !== 1 || answer.validator !== validator) throw new Refused("WrongSigners");
      verifyAnswer(answer, committee, claim);
      return;
    }
    case "shared answers": {
      const [part] = of.parts;
      if (!part || of.parts.length !== 1 || part.validator !== validator) throw new Refused("WrongSigners");
      verifyPart(part, committee, claim, of.place);
      return;
    }
    case "threshold":
      throw new Refused("WrongSigners", "it shows nobody");
    default: {
      need(checkedSigners(of.aggregate, committee, 1).includes(validator), "WrongSigners");
      verifyAggregate(of.aggregate, committee, of.form === "aggregate" ? claim : sharedClaim(claim, of.place, of.excluded), 1);
    }
  }
}
