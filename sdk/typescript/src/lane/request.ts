/** Requests of clients to shards. */
import { type Certificate, encodeCertificate } from "./certificate.js";
import * as ed25519 from "./ed25519.js";
import { join, u16, u32, u64, u8 } from "./layout.js";
import { type Payment, QUESTION, type Summary, encodePayment, encodeSummary, head } from "./payment.js";
import { type PaidProof, encodeProof } from "./receipt.js";

export const [SPEND, SETTLE, BATCH, ASK, UNDER_BLS] = [1, 2, 3, 4, 5];

export const spendRequest = (payment: Payment, signature: Uint8Array, proofs: (PaidProof | null)[]): Uint8Array =>
  join(u8(SPEND), encodePayment(payment), signature, ...proofs.map(encodeProof));
export const settleRequest = (summary: Summary, certificate: Certificate): Uint8Array => join(u8(SETTLE), encodeSummary(summary), encodeCertificate(certificate));
export const batchRequest = (requests: Uint8Array[]): Uint8Array =>
  join(u8(BATCH), u16(requests.length), ...requests.map((one) => join(u32(one.length), one)));

export const questionBytes = (network: Uint8Array, home: bigint, output: Uint8Array): Uint8Array => join(head(QUESTION, network, home), output);
export const questionRequest = (network: Uint8Array, home: bigint, seed: Uint8Array, output: Uint8Array): Uint8Array =>
  join(u8(ASK), u64(home), ed25519.publicOf(seed), output, ed25519.sign(seed, questionBytes(network, home, output)));

/** The request for an answer under a scheme; answers in trees are asked for as they are. */
export const under = (scheme: number, request: Uint8Array): Uint8Array => (scheme === 0 ? request : join(u8(UNDER_BLS), u8(scheme), request));
