/**
 * Orders in envelopes, which nobody reads before their block is decided. A session key signs both the order and its envelope, and
 * pays under its cap. Nothing of the order goes to the node but the envelope: neither a question about it nor its typed data.
 */
import type { Account } from "@walras/client/bodies";
import { ENVELOPE_LASTS, committeeOf, whyNoKey, type SealState } from "@walras/client/committee-key";
import { sealedIdOf } from "@walras/client/enclosure";
import type { Operation } from "@walras/client/encoding";
import { SealError } from "@walras/client/errors";
import { fromHex, toHex } from "@walras/client/typed";
import { get, path } from "../api";
import type { Trader } from "./keys";
import type { Answered, Asked } from "./sealer";
import { Told } from "./told";

/** A sealed order: the envelope as the node takes it, and the order by its id in it. */
export type SealedOrder = { id: string; envelope: string; sequence: string; until: string; transaction: string; signature: string };

const SIGNATURE_BYTES = 64;
export const SEALED_WORDS = "Nobody, no validator either, reads the order before its batch is fixed; that this account sends one, when, and its rough size show.";

/** What the ticket says of sealing: whether it can be chosen, and why not. Nothing where the network has no such keys. */
export function sealingOf(state: SealState | null, trader: Trader | null): { can: boolean; words: string } | null {
  if (state === null || state.threshold === null) return null;
  if (state.in_force === null) return { can: false, words: `Orders cannot be sealed now: ${whyNoKey(state)}.` };
  if (trader !== null && !trader.session) return { can: false, words: "Only a session key seals: add one in the account's view, and trade as it." };
  return { can: true, words: SEALED_WORDS };
}

/** Signs an operation for an envelope, seals it, and signs the envelope. */
export async function sealed(trader: Trader, operation: Operation): Promise<SealedOrder> {
  if (!trader.session) throw new Told("Only a session key seals orders. Nothing was sent.");
  const { address, session } = trader;
  const [{ chain, network }, state, { sessions = [] }] = await Promise.all([
    get<{ chain: string; network: string }>("limits"),
    get<SealState>("seal"),
    get<Account>(path("accounts", address)),
  ]);
  const committee = keyOf(state);
  const found = sessions.find((one) => one.slot === session.slot && one.key === session.key.public);
  if (!found) throw new Told(`The account has no session key in slot ${session.slot} any more: it was revoked. Choose who trades, or add a new key in the account's view.`);
  const sequence = BigInt(found.sequence.next);
  const [number, until] = [sequence + 1n, BigInt(state.height + ENVELOPE_LASTS)];
  const body = { chain: BigInt(chain), account: address, until };
  const within = { network: fromHex(network), payer: fromHex(address), sequence: number };
  const inside = await session.key.signInside({ ...body, sequence, operation }, within);
  const terms = { ...within, signer: fromHex(session.key.public), key: BigInt(committee.number), until };
  const drawn = crypto.getRandomValues(new Uint8Array(32));
  const { size, point, box } = await inWorker([committee.key, terms, [inside.bytes], drawn]);
  const brings: Operation = { kind: "Sealed", key: terms.key, size, point: toHex(point), sealed: toHex(box) };
  const signed = await session.key.sign({ ...body, sequence: number, operation: brings }, network);
  const [bytes, at] = [signed.bytes, -SIGNATURE_BYTES];
  const places = { id: sealedIdOf(within, inside), envelope: signed.id, sequence: String(sequence), until: String(until) };
  return { ...places, transaction: toHex(bytes.slice(0, at)), signature: toHex(bytes.slice(at)) };
}

function keyOf(state: SealState) {
  try {
    return committeeOf(state, "");
  } catch (error) {
    throw error instanceof SealError ? new Told(`Orders cannot be sealed now: ${whyNoKey(state)}. Nothing was sent: wait, or send it unsealed, which validators see before its batch.`) : error;
  }
}

let worker: Worker | null = null;
let turn: Promise<unknown> = Promise.resolve();

/** Seals in a worker, one text at a time. */
function inWorker(asked: Asked): Promise<Extract<Answered, { sealed: unknown }>["sealed"]> {
  const mine = turn.then(
    () =>
      new Promise<Extract<Answered, { sealed: unknown }>["sealed"]>((resolve, reject) => {
        worker ??= new Worker(new URL("./sealer.ts", import.meta.url), { type: "module" });
        worker.onmessage = ({ data }: MessageEvent<Answered>) => ("sealed" in data ? resolve(data.sealed) : reject(new Told(`${data.failed}. Nothing was sent.`)));
        worker.onerror = () => reject(new Told("This browser's worker cannot seal. Nothing was sent: load the page again."));
        worker.postMessage(asked);
      }),
  );
  turn = mine.catch(() => undefined);
  return mine;
}
