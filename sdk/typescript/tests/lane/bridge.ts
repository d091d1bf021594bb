/** Posts to the ledger about the lane: what is verified before the ledger looks at its state. */
import { readAnswer, readCertificate, verifyAnswer, verifySigner } from "../../src/lane/certificate.js";
import { checkPossession, quorums, readDealing, readRegistration, soleBlsKeys, verifyDealing, verifyRegistration } from "../../src/lane/committee.js";
import * as ed25519 from "../../src/lane/ed25519.js";
import { Reader, Refused, ascends, derived, hex, join, need, same, u64 } from "../../src/lane/layout.js";
import {
  CONFIRMATION,
  HALT,
  VIEW,
  digestOf,
  exitOf,
  isExit,
  ownerBytes,
  readLongPayment,
  readSpent,
  readSummary,
  summaryDigest,
  summaryOf,
  type Payment,
} from "../../src/lane/payment.js";
import { checkCertified, idOf, known, readProof, type Committees } from "../../src/lane/receipt.js";

const DUTY = 128;

/** What the ledger verifies posts with. */
export class Ledger {
  constructor(
    readonly network: Uint8Array,
    readonly registrars: Uint8Array[],
    readonly committees: Committees,
  ) {}
}

type Check = (ledger: Ledger) => void;

const viewLeaf = (id: Uint8Array, paid: Uint8Array | null) => derived("walras 2026 lane view v1", join(id, paid ?? new Uint8Array()));
const checkNetwork = (payment: Payment, ledger: Ledger) => need(same(payment.network, ledger.network), "ForeignNetwork");
const claimOf = (payment: Payment) => ({ kind: CONFIRMATION, owner: payment.owner, digest: digestOf(payment) });

function redeem(reader: Reader): Check {
  const [payment, certificate] = [readLongPayment(reader), readCertificate(reader)];
  return (ledger) => {
    checkNetwork(payment, ledger);
    checkCertified(ledger.committees, CONFIRMATION, summaryOf(payment), certificate);
  };
}

const readContested = (reader: Reader) => ({
  spent: readSpent(reader),
  home: reader.u64(),
  owner: reader.digest(),
  signature: reader.signature(),
  proof: readProof(reader),
});

function resolve(reader: Reader): Check {
  reader.u64();
  const outputs = reader.times(reader.u8(), readContested);
  const owners = new Set(outputs.map(({ home, owner }) => `${home} ${hex(owner)}`));
  const right = outputs.length >= 1 && outputs.length <= 16 && ascends(outputs.map((one) => hex(one.spent.id))) && owners.size === 1;
  need(right, "Malformed", "1 to 16 outputs of one owner and home, by ascending id");
  return (ledger) => {
    for (const { spent, home, owner, proof } of outputs) {
      if (!proof) continue;
      const found = idOf(proof, ledger.network, { kind: 0, to: owner, asset: spent.asset, amount: spent.amount });
      need(same(found, spent.id) && proof.summary.into === home, "ProofOfAnother");
    }
    for (const { spent, home, owner, signature, proof } of outputs) {
      need(ed25519.holds(owner, ownerBytes(exitOf(ledger.network, home, owner, spent)), signature), "WrongOwnerSignature");
      if (proof) checkCertified(ledger.committees, CONFIRMATION, proof.summary, proof.certificate);
    }
  };
}

function vote(reader: Reader): Check {
  reader.digest();
  const [payment, signature, answer] = [readLongPayment(reader), reader.option((of) => of.signature()), readAnswer(reader)];
  return (ledger) => {
    checkNetwork(payment, ledger);
    need(signature ? ed25519.holds(payment.owner, ownerBytes(payment), signature) : isExit(payment), "WrongOwnerSignature");
    verifyAnswer(answer, known(ledger.committees, payment.home), claimOf(payment));
  };
}

function view(reader: Reader): Check {
  const [id, committee, owner] = [reader.digest(), reader.u64(), reader.digest()];
  const paid = reader.option((of) => ({ summary: readSummary(of), certificate: readCertificate(of) }));
  const answer = readAnswer(reader);
  return (ledger) => {
    const digest = viewLeaf(id, paid && summaryDigest(paid.summary, ledger.network));
    verifyAnswer(answer, known(ledger.committees, committee), { kind: VIEW, owner, digest });
    if (paid) checkCertified(ledger.committees, CONFIRMATION, paid.summary, paid.certificate);
  };
}

function halt(reader: Reader): Check {
  const [epoch, round, owner, answer] = [reader.u64(), reader.u64(), reader.digest(), readAnswer(reader)];
  const digest = derived("walras 2026 lane halt v1", join(u64(epoch), u64(round)));
  return (ledger) => verifyAnswer(answer, known(ledger.committees, epoch), { kind: HALT, owner, digest });
}

function register(reader: Reader): Check {
  const registration = readRegistration(reader);
  const proofs = reader.times(registration.keys.length, (of) => of.signature());
  return ({ network, registrars }) => {
    verifyRegistration(registration, network, registrars);
    checkPossession(registration, network, registrars[registration.member] as Uint8Array, proofs);
  };
}

function accuse(reader: Reader): Check {
  const kind = reader.u8();
  need(kind === 1 || kind === 2, "Malformed", "evidence of payments or of views");
  return kind === 1 ? accusePayments(reader) : accuseViews(reader);
}

function accusePayments(reader: Reader): Check {
  const [home, validator] = [reader.u64(), reader.u8()];
  const pair = reader.times(2, (of) => ({ payment: readLongPayment(of), certificate: readCertificate(of) }));
  const [one, other] = pair.map(({ payment }) => payment) as [Payment, Payment];
  return (ledger) => {
    const committee = known(ledger.committees, home);
    const ids = new Set(one.inputs.map(({ id }) => hex(id)));
    const here = [one, other].every((of) => of.home === home && same(of.network, ledger.network));
    const contradicts = other.inputs.some(({ id }) => ids.has(hex(id))) && here && hex(digestOf(one)) < hex(digestOf(other));
    need(contradicts, "Malformed", "no contradiction");
    for (const { payment, certificate } of pair) verifySigner(certificate, committee, claimOf(payment), validator);
  };
}

function accuseViews(reader: Reader): Check {
  const [committee, id, owner] = [reader.u64(), reader.digest(), reader.digest()];
  const pair = reader.times(2, (of) => ({ paid: of.option((one) => one.digest()), answer: readAnswer(of) }));
  const text = (at: number) => hex(pair[at]?.paid ?? new Uint8Array());
  return (ledger) => {
    const here = known(ledger.committees, committee);
    need(text(0) < text(1) && pair[0]?.answer.validator === pair[1]?.answer.validator, "Malformed", "no contradiction");
    for (const { paid, answer } of pair) verifyAnswer(answer, here, { kind: VIEW, owner, digest: viewLeaf(id, paid) });
  };
}

function deal(reader: Reader): Check {
  const [epoch, members] = [reader.u64(), reader.u8()];
  need(members >= 1 && members <= 32, "Malformed", "1 to 32 members make a group key");
  const [dealing, signature] = [readDealing(quorums(members))(reader), reader.signature()];
  return (ledger) => {
    const committee = known(ledger.committees, epoch);
    soleBlsKeys(committee);
    verifyDealing(dealing, committee, signature);
  };
}

/** What a complaint proves depends on the board, and only the ledger verifies it. */
function complain(reader: Reader): Check {
  reader.take(8 + 1 + 1 + 96 + 32 + 32);
  return () => undefined;
}

const READERS: Record<number, (reader: Reader) => Check> = { 2: redeem, 3: resolve, 4: vote, 5: view, 6: halt, 7: register, 8: accuse, 9: deal, 10: complain };

export function verifyPost(data: Uint8Array, ledger: Ledger): void {
  const reader = new Reader(data);
  const read = READERS[reader.u8() & ~DUTY];
  if (!read) throw new Refused("Malformed", "a post is of kind 2 to 10");
  const check = read(reader);
  reader.end();
  check(ledger);
}
