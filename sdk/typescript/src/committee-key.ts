/** The committee's sealing key, as a node names it; see `envelopes.ts`. Whoever lies about it reads what is sealed to another. */
import { SealError } from "./errors.js";
import { fromHex } from "./typed.js";

/** Blocks for which an envelope may count. The fewer, the less its first reader chooses. */
export const ENVELOPE_LASTS = 16;

/** What `/v1/seal` answers. */
export type SealState = {
  height: number;
  threshold: string | null;
  in_force: number | null;
  keys: { number: number; key: string; from: number; last: number | null }[];
  making: { number: number; step: string; ends: number; awaited: string[] } | null;
  failed: { number: number; step: string; again: number; silent: string[] } | null;
};
/** A key of the committee, 96 bytes, and its number. */
export type CommitteeKey = { number: number; key: Uint8Array };

/** Why a node names no key that is in force. */
export function whyNoKey({ height, threshold, keys, making, failed }: SealState): string {
  if (threshold === null) return "this network has no sealing key: its genesis does not name `seals`";
  const coming = keys.find((key) => key.from > height);
  if (coming) return `key ${coming.number} opens envelopes from block ${coming.from} on, and the newest is ${height}`;
  if (making) return `the committee makes key ${making.number}: the step \`${making.step}\` awaits ${making.awaited.join(", ") || "nobody"}, until block ${making.ends}`;
  if (failed) {
    return `the committee could not make key ${failed.number}: in the step \`${failed.step}\` these did not take part: ${failed.silent.join(", ")}. It tries again after block ${failed.again}`;
  }
  return "the committee has not begun to make one";
}

/** The key in force of what a node told; a `SealError` says why there is none. */
export function committeeOf(state: SealState, server: string): CommitteeKey {
  const found = state.keys.find((key) => key.number === state.in_force);
  if (!found) {
    throw new SealError(
      `${whyNoKey(state)}. Nothing was sent. Wait for a key, as ${server}/v1/seal tells of it, or send the order plain: validators then see it before its batch`,
    );
  }
  return { number: found.number, key: fromHex(found.key) };
}
