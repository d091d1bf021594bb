/**
 * What became of a transaction, as definitely as the node can say it.
 *
 * The node is asked for the transaction by its id. Its index is bounded, so that it may have forgotten one that was
 * executed. If it knows none, the account's window of used numbers decides: a number that is still free after block `until`
 * was never used, so the transaction is void. Of a used number the blocks since the signing say which transaction used it.
 * Where the node does not keep them all, the answer is *unknown*, never *void*.
 */
import type { Operation as OperationBody, Outcome as OutcomeBody } from "./bodies.js";
import { checkCertificate, isProved, type CertificateBody, type Committee } from "./certificate.js";
import { number, type Signed } from "./encoding.js";
import { NotFoundError } from "./errors.js";
import { ProofError, isFree, proveOutcome, windowOf, type Window } from "./proof.js";
import * as models from "./models.js";
import type { Fate } from "./models.js";
import { PAGE, type Session } from "./session.js";
import { fromHex } from "./typed.js";

/** Blocks for which a transaction may count after it is signed. A node that keeps so many blocks knows its fate. */
export const LASTS_MAX = 256;

export type TransactionBody = {
  id: string;
  status: "pending" | "committed";
  height?: number;
  outcome?: OutcomeBody;
  account?: string;
  sequence?: string;
  until?: string;
  operation?: OperationBody;
  receipts_root?: string;
  proof?: string;
  certificate?: CertificateBody;
};

/** What the node's answer about a transaction means. */
export async function told(session: Session, body: TransactionBody, signed: Signed | null): Promise<Fate> {
  const assets = await session.assets();
  return session.http.decoded(() => {
    if (signed && body.id !== signed.id) throw new Error(`it names the transaction ${signed.id} as ${body.id}`);
    const own = signed ? { sequence: signed.sequence, until: signed.until } : {};
    if (body.status === "pending") return { id: body.id, state: "pending", ...own };
    // A status that a later node may tell is not taken for one of these: money may hang on it.
    if (body.status !== "committed") throw new Error(`it tells the status ${JSON.stringify(body.status)} of a transaction; this client knows pending and committed`);
    if (!body.outcome) throw new Error("it tells a committed transaction without its outcome");
    const known = body.sequence === undefined || body.sequence === null ? own : { sequence: BigInt(body.sequence), until: BigInt(body.until ?? 0) };
    const { operation } = body;
    let pair: [string, string] | null = operation?.type === "create_offer" || operation?.type === "exact" ? [operation.sell, operation.buy] : null;
    if (!operation && signed && [1, 14].includes(signed.operation[0] ?? 0)) {
      const [sell, buy] = [1, 5].map((at) => assets.numbered(Number(number(signed.operation, at, 4))).symbol) as [string, string];
      pair = [sell, buy];
    }
    const height = Number(body.height);
    session.saw(height);
    const outcome = models.outcome(body.outcome, assets, pair);
    const place = { id: body.id, ...known, height };
    if (outcome.result === "refused") return { ...place, state: "refused", code: outcome.code, message: outcome.message };
    // What is void at a venue has its number and its fee: it is executed, to no effect.
    return { ...place, state: "executed", outcome };
  });
}

/** What became of a transaction; see the top. */
export async function fateOf(session: Session, id: string, signed: Signed | null): Promise<Fate> {
  const first = await asked(session, id, signed);
  if (signed === null) return first ?? { id, state: "unknown", message: "it is not stored here, and the node does not know it" };
  if (first && (first.state !== "refused" || first.height !== undefined)) return first;
  // The window is read first: a transaction whose number it shows as used was indexed before.
  const { height, window } = await usedNumbers(session, signed);
  const again = await asked(session, id, signed);
  if (again && (again.state !== "refused" || again.height !== undefined)) return again;
  const verdict = await judge(session, signed, height, window);
  return verdict.state === "void" ? verdict : (again ?? verdict);
}

/** The fate of a transaction that a block refused for its number; null if the number is free. */
export async function fateOfNumber(session: Session, signed: Signed): Promise<Fate | null> {
  const { height, window } = await usedNumbers(session, signed);
  return isFree(window, signed.sequence) ? null : numberUser(session, signed, height);
}

/** The fate of a committed transaction, proved against a receipts root that a quorum of the committee signed. */
export async function provedFate(session: Session, id: string, signed: Signed | null, committee: Committee): Promise<Fate> {
  const { network } = await session.limits();
  const body = await session.http.get<TransactionBody>(`/v1/transactions/${id}`, { proof: "true", certified: "true" });
  session.http.decoded(() => {
    const { receipts_root, certificate, proof } = body;
    if (!receipts_root || !certificate || !proof || !body.outcome) throw new ProofError("it is without its proof");
    if (certificate.receipts_root !== receipts_root) throw new ProofError("the certificate is for another receipts root");
    checkCertificate(certificate, network, committee);
    if (!isProved(body.outcome, proveOutcome(fromHex(id), fromHex(receipts_root), fromHex(proof)))) {
      throw new ProofError("the proof has another outcome than the node states");
    }
  });
  return told(session, body, signed);
}

/** The used numbers after a block, of the account or of its session key that signed. */
async function usedNumbers(session: Session, { account, sequence }: Signed): Promise<{ height: number; window: Window }> {
  const body = await session.http.get<{ height: number; proof: string }>(`/v1/accounts/${account}/proof`);
  return session.http.decoded(() => ({ height: body.height, window: windowOf(fromHex(body.proof), sequence) }));
}

async function asked(session: Session, id: string, signed: Signed | null): Promise<Fate | null> {
  try {
    return await told(session, await session.http.get<TransactionBody>(`/v1/transactions/${id}`), signed);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    if (error.code !== "refused") return null;
    const own = signed ? { sequence: signed.sequence, until: signed.until } : {};
    return { id, state: "refused", ...own, code: error.code, message: error.remedy };
  }
}

/** The fate of a transaction that the node does not know, after a block of `height`. */
async function judge(session: Session, signed: Signed, height: number, window: Window): Promise<Fate> {
  const place = { id: signed.id, sequence: signed.sequence, until: signed.until };
  if (isFree(window, signed.sequence)) {
    if (BigInt(height) < signed.until) {
      return { ...place, state: "unknown", message: `the node does not know it; it may count up to block ${signed.until}` };
    }
    const message = `it could count up to block ${signed.until}, and its number is unused after block ${height}`;
    return { ...place, state: "void", code: "ended", message };
  }
  return numberUser(session, signed, height);
}

/** The fate of a transaction whose number is used after a block of `height`: the blocks say by which transaction. */
async function numberUser(session: Session, signed: Signed, height: number): Promise<Fate> {
  const place = { id: signed.id, sequence: signed.sequence, until: signed.until };
  const last = Math.min(height, Number(signed.until));
  for (let at = last; at >= Math.max(1, Number(signed.until) - LASTS_MAX); at -= 1) {
    try {
      const found = await userInBlock(session, signed, at);
      if (found) return found;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      const message = "its number is used, and the node does not keep the blocks since it was signed: ask another node";
      return { ...place, state: "unknown", message };
    }
  }
  const orStopped = signed.slot === 0 ? "" : `, or slot ${signed.slot} was stopped or ended`;
  return { ...place, state: "void", code: "number_taken", message: `number ${signed.sequence} was used before it was signed${orStopped}` };
}

type BlockPage = { outcomes: { id: string; account: string; sequence: string; outcome: OutcomeBody; operation: OperationBody }[]; next?: string | null };

/** What a block says about the transaction, or about the one that used its number; null if neither is in it. */
async function userInBlock(session: Session, signed: Signed, height: number): Promise<Fate | null> {
  const { account, sequence, until } = signed;
  let { changed } = await session.http.get<{ changed: boolean }>(`/v1/blocks/${height}/accounts/${account}`);
  for (let cursor: string | undefined; changed; changed = cursor !== undefined) {
    const page: BlockPage = await session.http.get<BlockPage>(`/v1/blocks/${height}`, { limit: PAGE, cursor });
    const user = page.outcomes.find((one) => one.account === account && BigInt(one.sequence) === sequence && one.outcome.result !== "refused");
    if (user?.id === signed.id) return told(session, { ...user, status: "committed", height, until: String(until) }, signed);
    if (user) {
      const message = `transaction ${user.id} used its number, ${sequence}, in block ${height}`;
      return { id: signed.id, sequence, until, state: "void", code: "number_taken", message };
    }
    cursor = page.next ?? undefined;
  }
  return null;
}
