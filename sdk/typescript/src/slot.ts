/** The numbers of session keys: each counts in its slot, which is in the upper bits. */

/** Bits of a number below the slot of its session key. */
export const SLOT_BITS = 43n;

/** The slot of a number: 0 of the account's own ones, and of those of contracts' offers. */
export const slotOf = (sequence: bigint): number => (sequence < 1n << 63n ? Number(sequence >> SLOT_BITS) : 0);

/** The number of a session key's transaction; `number` is counted from 1 in each slot. */
export const slotSequence = (slot: number, number: bigint): bigint => (BigInt(slot) << SLOT_BITS) | number;
