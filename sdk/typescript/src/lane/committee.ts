/** Committees: quorums, shards, registrations, BLS keys, and the group key of an epoch. */
import * as bls from "./bls.js";
import * as ed25519 from "./ed25519.js";
import { Reader, Refused, ascends, derived, hex, join, need, parsed, u16, u64, u8 } from "./layout.js";
import { DEALING, POSSESSION, PREFIX, REGISTRATION, head } from "./payment.js";

const WITH_BLS = 1 << 15;

export type Quorums = { members: number; faulty: number; certificate: number; binding: number; witness: number };

export function quorums(members: number): Quorums {
  const faulty = Math.floor((members - 1) / 3);
  const certificate = Math.floor((members + faulty) / 2) + 1;
  return { members, faulty, certificate, binding: members + faulty + 1 - certificate, witness: faulty + 1 };
}

/** The shard of so many that signs for an owner. */
export function shardOf(owner: Uint8Array, shards: number): number {
  const place = new Reader(derived("walras 2026 lane shard v1", owner)).u64();
  return Number((place * BigInt(shards)) >> 64n);
}

export type Registration = { epoch: bigint; member: number; keys: Uint8Array[]; bls: { key: Uint8Array; proof: Uint8Array }[]; signature: Uint8Array };

/** The fields that the registrar signs. */
export function signedFields({ member, keys, bls: blsKeys }: Registration): Uint8Array {
  const count = keys.length + (blsKeys.length > 0 ? WITH_BLS : 0);
  return join(u8(member), u16(count), ...keys, ...blsKeys.map(({ key, proof }) => join(key, proof)));
}

export const encodeRegistration = (of: Registration): Uint8Array => join(u64(of.epoch), signedFields(of), of.signature);

export function readRegistration(reader: Reader): Registration {
  const [epoch, member, count] = [reader.u64(), reader.u8(), reader.u16()];
  const [hasBls, shards] = [(count & WITH_BLS) !== 0, count & ~WITH_BLS];
  need(shards >= 1 && shards <= (hasBls ? 16 : 256), "Malformed", "a number of shards out of bounds");
  const keys = reader.times(shards, (of) => of.digest());
  const pairs = reader.times(hasBls ? shards : 0, (of) => ({ key: of.take(96), proof: of.take(48) }));
  return { epoch, member, keys, bls: pairs, signature: reader.signature() };
}

export function verifyRegistration(of: Registration, network: Uint8Array, registrars: Uint8Array[]): void {
  const registrar = registrars[of.member];
  if (!registrar) throw new Refused("WrongRegistration", "no such member");
  need(new Set(of.keys.map(hex)).size === of.keys.length, "WrongRegistration", "a key twice");
  need(new Set(of.bls.map(({ key }) => hex(key))).size === of.bls.length, "WrongRegistration", "a BLS key twice");
  const message = join(head(REGISTRATION, network, of.epoch), signedFields(of));
  need(ed25519.holds(registrar, message, of.signature), "WrongRegistration", "the registrar did not sign");
  for (const { key, proof } of of.bls) {
    const possession = join(PREFIX, network, ed25519.accountOf(registrar), u8(2), key);
    need(bls.holds(bls.keyOf(key), possession, proof, bls.POSSESSIONS), "WrongBlsKey", "possession is not proved");
  }
}

/** Whether each key's holder has signed for it, as a registration on its way into the ledger shows. */
export function checkPossession(of: Registration, network: Uint8Array, registrar: Uint8Array, proofs: Uint8Array[]): void {
  of.keys.forEach((key, shard) => {
    const message = join(head(POSSESSION, network, of.epoch), u8(of.member), u16(shard), registrar);
    need(ed25519.holds(key, message, proofs[shard] ?? new Uint8Array()), "WrongRegistration", "possession is not proved");
  });
}

/** A group key, the keys of the shares, and the members that are struck. */
export type Group = { key: bls.Key; shares: bls.Key[]; struck: Set<number> };
/** The keys of each member's shards in an epoch; none of a member that registered none. */
export type Committee = { network: Uint8Array; epoch: bigint; keys: Uint8Array[][]; bls: Uint8Array[][]; group: Group | null };

export function shardFor(committee: Committee, member: number, owner: Uint8Array): number {
  const keys = committee.keys[member];
  if (!keys) throw new Refused("WrongSigners", "no member");
  need(keys.length > 0, "Unregistered");
  return shardOf(owner, keys.length);
}

export function keyAt(committee: Committee, member: number, shard: number): Uint8Array {
  const key = committee.keys[member]?.[shard];
  if (!key) throw new Refused("ForeignShard", `member ${member} has no shard ${shard}`);
  return key;
}

export function blsKeyAt(committee: Committee, member: number, shard: number): bls.Key {
  const key = committee.bls[member]?.[shard];
  if (!key) throw new Refused("WrongBlsKey", "no BLS key");
  return bls.keyOf(key);
}

/** The committee of an epoch by what its members registered. The caller has proved that the ledger has these. */
export function seated(network: Uint8Array, epoch: bigint, registrars: Uint8Array[], registrations: Registration[]): Committee {
  const committee: Committee = { network, epoch, keys: registrars.map(() => []), bls: registrars.map(() => []), group: null };
  for (const one of registrations.filter((of) => of.epoch === epoch)) {
    verifyRegistration(one, network, registrars);
    committee.keys[one.member] = one.keys;
    committee.bls[one.member] = one.bls.map(({ key }) => key);
  }
  return committee;
}

export type Dealing = { dealer: number; commitments: Uint8Array[]; ephemeral: Uint8Array; shares: Uint8Array[]; proofs: Uint8Array[] };

const dealingBody = (of: Dealing): Uint8Array => join(u8(of.dealer), ...of.commitments, of.ephemeral, ...of.shares);
export const encodeDealing = (of: Dealing): Uint8Array => join(dealingBody(of), ...of.proofs);
export const dealingContext = (of: Dealing, committee: Committee): Uint8Array =>
  join(PREFIX, committee.network, u64(committee.epoch), u8(3), u8(of.dealer), ...soleBlsKeys(committee));

/** Who deals, and that it knows what it deals. */
export function verifyDealing(of: Dealing, committee: Committee, signature: Uint8Array): void {
  const [keys, { certificate }] = [soleBlsKeys(committee), quorums(committee.keys.length)];
  need(of.dealer < keys.length, "WrongSigners", "no member");
  need(of.commitments.length === certificate && of.shares.length === keys.length, "WrongDealing", "for another number of members");
  const message = join(head(DEALING, committee.network, committee.epoch), derived("walras 2026 lane dkg dealing v1", encodeDealing(of)));
  need(ed25519.holds(keyAt(committee, of.dealer, 0), message, signature), "WrongDealing", "not signed");
  const points = [...of.commitments, of.ephemeral].map(bls.keyOrNull);
  need(!points.includes(null), "WrongDealing", "no point");
  const possession = join(dealingContext(of, committee), dealingBody(of));
  [points[0], points.at(-1)].forEach((point, at) => {
    need(bls.holds(point as bls.Key, possession, of.proofs[at] as Uint8Array, bls.POSSESSIONS), "WrongDealing", "not proved");
  });
}

export const readDealing = ({ certificate, members }: Quorums) => (reader: Reader): Dealing => ({
  dealer: reader.u8(),
  commitments: reader.times(certificate, (of) => of.take(96)),
  ephemeral: reader.take(96),
  shares: reader.times(members, (of) => of.digest()),
  proofs: reader.times(2, (of) => of.take(48)),
});

/** The BLS keys of members with one shard each. */
export function soleBlsKeys(committee: Committee): Uint8Array[] {
  const hasOne = committee.bls.length === committee.keys.length && committee.bls.every((keys) => keys.length === 1);
  need(hasOne, "WrongBlsKey", "each member has one shard with a BLS key");
  return committee.bls.flat();
}

type Board = { dealings: { dealing: Dealing; signature: Uint8Array }[]; out: number[]; struck: number[] };

export const readBoard = (of: Quorums) => (reader: Reader): Board => ({
  dealings: reader.times(reader.u8(), (one) => ({ dealing: readDealing(of)(one), signature: one.signature() })),
  out: [...reader.take(reader.u8())],
  struck: [...reader.take(reader.u8())],
});

/** The committee with the group key that its board gives. */
export function withBoard(committee: Committee, board: Uint8Array): Committee {
  soleBlsKeys(committee);
  const of = quorums(committee.keys.length);
  const { dealings, out, struck } = parsed(readBoard(of), board);
  const dealers = dealings.map(({ dealing }) => dealing.dealer);
  for (const members of [dealers, out, struck]) {
    need(ascends(members) && members.every((member) => member < of.members), "Malformed", "members ascend strictly");
  }
  need(dealers.length > 0 && out.every((member) => dealers.includes(member)), "Malformed", "who is out has dealt");
  for (const { dealing, signature } of dealings) verifyDealing(dealing, committee, signature);
  const standing = dealings.map(({ dealing }) => dealing).filter(({ dealer }) => !out.includes(dealer));
  return { ...committee, group: groupOf(standing, struck, of) };
}

function groupOf(standing: Dealing[], struck: number[], of: Quorums): Group {
  const enough = standing.length >= of.witness && struck.length <= of.faulty;
  need(enough && of.members - struck.length >= of.certificate, "NoGroupKey");
  const points = standing.map(({ commitments }) => commitments.map(bls.keyOf));
  const sums = Array.from({ length: of.certificate }, (_, at) => bls.totalOfKeys(points.map((row) => row[at] as bls.Key)));
  const share = (member: number) => bls.totalOfKeys(sums.map((point, power) => point.multiply(bls.Fr.pow(BigInt(member + 1), BigInt(power)))));
  return { key: sums[0] as bls.Key, shares: Array.from({ length: of.members }, (_, member) => share(member)), struck: new Set(struck) };
}

/** The signature under the group key, of signatures of q shares by member. */
export function combine(parts: Map<number, Uint8Array>): Uint8Array {
  const points = [...parts].map(([member, data]) => {
    let [above, below] = [1n, 1n];
    for (const other of parts.keys()) {
      if (other === member) continue;
      above = bls.Fr.mul(above, BigInt(other + 1));
      below = bls.Fr.mul(below, bls.Fr.create(BigInt(other - member)));
    }
    const point = bls.signatureOrNull(data);
    if (!point) throw new Refused("WrongSignature", String(member));
    return point.multiply(bls.Fr.div(above, below));
  });
  return bls.totalOfSignatures(points).toBytes(true);
}
