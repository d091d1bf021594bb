/** Proofs that outputs exist, receipts, and the texts that people exchange. */
import { type Certificate, encodeCertificate, parseCertificate, readCertificate, verifyCertificate } from "./certificate.js";
import type { Committee } from "./committee.js";
import { AMOUNT_MAX, Reader, Refused, derived, hex, join, need, parsed, same, u16, u32, u64, u8 } from "./layout.js";
import {
  ACKNOWLEDGEMENT,
  CONFIRMATION,
  OUTPUTS_MAX,
  type Output,
  type Payment,
  type Summary,
  encodeOutput,
  encodePayment,
  encodeSummary,
  leafOf,
  outputId,
  parsePayment,
  readOutput,
  readSummary,
  summaryDigest,
  summaryOf,
} from "./payment.js";
import * as trees from "./trees.js";

/** The committee of an epoch; null if its keys are not proved. */
export type Committees = (epoch: bigint) => Committee | null;
const SLIP_BYTES_MAX = 1 << 20;

export function known(committees: Committees, epoch: bigint): Committee {
  const committee = committees(epoch);
  if (!committee) throw new Refused("UnknownCommittee", String(epoch));
  return committee;
}

export function checkCertified(committees: Committees, kind: number, summary: Summary, certificate: Certificate): void {
  const committee = known(committees, summary.home);
  verifyCertificate(certificate, committee, { kind, owner: summary.owner, digest: summaryDigest(summary, committee.network) });
}

export type PaidProof = { summary: Summary; index: number; path: Uint8Array[]; certificate: Certificate };

const encodePaidProof = ({ summary, index, path, certificate }: PaidProof): Uint8Array =>
  join(encodeSummary(summary), u8(index), ...path, encodeCertificate(certificate));

/** The id of the output, if the payment created it there. No signature is checked. */
export function idOf({ summary, index, path }: PaidProof, network: Uint8Array, output: Output): Uint8Array {
  const root = trees.rootOf(trees.OUTPUTS, leafOf(output), summary.outputs, index, path);
  need(same(root, summary.root), "WrongPath", "another output");
  return outputId(summary.into, summaryDigest(summary, network), index);
}

export function readPaidProof(reader: Reader): PaidProof {
  const [summary, index] = [readSummary(reader), reader.u8()];
  need(summary.outputs <= OUTPUTS_MAX, "Malformed", "1 to 16 outputs");
  const path = trees.readPath(reader, summary.outputs, index);
  return { summary, index, path, certificate: readCertificate(reader) };
}

export const encodeProof = (proof: PaidProof | null): Uint8Array => (proof ? join(u8(1), encodePaidProof(proof)) : u8(0));
export const readProof = (reader: Reader): PaidProof | null => reader.option(readPaidProof);

export type Receipt = { output: Output; proof: PaidProof };

export const encodeReceipt = ({ output, proof }: Receipt): Uint8Array => join(encodeOutput(output), encodePaidProof(proof));
export const parseReceipt = (data: Uint8Array): Receipt => parsed((reader) => ({ output: readOutput(reader), proof: readPaidProof(reader) }), data);

/** The id of an output that exists: it is *fast*. */
export function verifyReceipt({ output, proof }: Receipt, network: Uint8Array, committees: Committees): Uint8Array {
  const id = idOf(proof, network, output);
  checkCertified(committees, CONFIRMATION, proof.summary, proof.certificate);
  return id;
}

/** The same: it is *settled*. */
export function verifySettled(receipt: Receipt, network: Uint8Array, committees: Committees, acknowledgement: Certificate): Uint8Array {
  const id = verifyReceipt(receipt, network, committees);
  checkCertified(committees, ACKNOWLEDGEMENT, receipt.proof.summary, acknowledgement);
  return id;
}

export function receiptOf(payment: Payment, index: number, certificate: Certificate): Receipt {
  const path = trees.path(trees.OUTPUTS, payment.outputs.map(leafOf), index);
  return { output: payment.outputs[index] as Output, proof: { summary: summaryOf(payment), index, path, certificate } };
}

export type Slip =
  | { kind: "receipt"; receipt: Receipt }
  | { kind: "accounts"; payment: Payment; certificate: Certificate }
  | { kind: "deposit"; home: bigint; id: Uint8Array; owner: Uint8Array; asset: number; amount: bigint };

export function slipText(slip: Slip, network: Uint8Array): string {
  const body = () => {
    if (slip.kind === "receipt") return join(u8(1), network, encodeReceipt(slip.receipt));
    if (slip.kind === "deposit") return join(u8(3), network, u64(slip.home), slip.id, slip.owner, u32(slip.asset), u64(slip.amount));
    const data = encodePayment(slip.payment);
    return join(u8(2), network, u16(data.length), data, encodeCertificate(slip.certificate));
  };
  return "WALRAS:" + hex(join(u8(1), body())).toUpperCase();
}

export function parseSlip(line: string, network: Uint8Array): Slip {
  const trimmed = line.trim();
  need(trimmed.startsWith("WALRAS:"), "Prefix");
  const digits = trimmed.slice("WALRAS:".length);
  need(digits.length <= 2 * SLIP_BYTES_MAX, "Long");
  need(/^([0-9a-fA-F]{2})*$/.test(digits), "Digits");
  const data = bytesOf(digits);
  need(data.length >= 2, "Short");
  need(data[0] === 1, "Strange", "version");
  need(data.length >= 34, "Short");
  need(same(data.slice(2, 34), network), "OtherNetwork");
  return slipOf(data[1] as number, data.slice(34));
}

function bytesOf(digits: string): Uint8Array {
  const bytes = new Uint8Array(digits.length / 2);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = parseInt(digits.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

function slipOf(kind: number, body: Uint8Array): Slip {
  if (kind === 1) return { kind: "receipt", receipt: parseReceipt(body) };
  if (kind === 2) {
    need(body.length >= 2, "Short");
    const end = 2 + new Reader(body).u16();
    need(body.length >= end, "Short");
    return { kind: "accounts", payment: parsePayment(body.slice(2, end)), certificate: parseCertificate(body.slice(end)) };
  }
  need(kind === 3, "Strange", "kind");
  need(body.length === 84, "Deposit");
  const reader = new Reader(body);
  const slip = { kind: "deposit", home: reader.u64(), id: reader.digest(), owner: reader.digest(), asset: reader.u32(), amount: reader.u64() } as const;
  need(slip.amount >= 1n && slip.amount <= AMOUNT_MAX, "Deposit");
  return slip;
}

const checksum = (network: Uint8Array, key: Uint8Array): Uint8Array => derived("walras 2026 lane address v1", join(network, key)).slice(0, 4);

export const laneAddress = (network: Uint8Array, key: Uint8Array): string => "lane:" + hex(join(key, checksum(network, key)));

/** What a lane address asks for, beside its key; an address that asks for it is a *bill*. */
export type Asked = { asset: number; amount: bigint };
const billed = (key: Uint8Array, { asset, amount }: Asked): Uint8Array => join(key, u32(asset), u64(amount));
const billSum = (network: Uint8Array, body: Uint8Array): Uint8Array => derived("walras 2026 lane bill v1", join(network, body)).slice(0, 4);

export function laneBill(network: Uint8Array, key: Uint8Array, asked: Asked): string {
  const body = billed(key, asked);
  return "lane:" + hex(join(body, billSum(network, body)));
}

/** The key of a lane address or a bill, and what a bill asks for. */
export function parsePayable(given: string, network: Uint8Array): { key: Uint8Array; asked: Asked | null } {
  const digits = given.trim().toLowerCase().replace(/^lane:/, "");
  need(/^([0-9a-f]{72}|[0-9a-f]{96})$/.test(digits), "Mistyped");
  const bytes = bytesOf(digits);
  const [key, body] = [bytes.slice(0, 32), bytes.slice(0, -4)];
  const sum = body.length === 32 ? checksum(network, key) : billSum(network, body);
  need(same(bytes.slice(-4), sum), "Mistyped");
  if (body.length === 32) return { key, asked: null };
  const reader = new Reader(body.slice(32));
  const asked = { asset: reader.u32(), amount: reader.u64() };
  need(asked.amount >= 1n && asked.amount <= AMOUNT_MAX, "Mistyped");
  return { key, asked };
}
