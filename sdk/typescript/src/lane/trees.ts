/** Merkle trees: leaves and nodes have keys of their own, and the last one of an odd level is promoted. */
import { Reader, derived, join, keyed, need, u8 } from "./layout.js";

export const SIGNED = "walras 2026 lane signed tree v1";
export const OUTPUTS = "walras 2026 lane outputs tree v1";
export const LEAVES_MAX = 4_096;

export const leaf = (family: string, data: Uint8Array): Uint8Array => keyed(derived(family, u8(0)), data);
const node = (family: string, left: Uint8Array, right: Uint8Array): Uint8Array => keyed(derived(family, u8(1)), join(left, right));

function levels(family: string, leaves: Uint8Array[]): Uint8Array[][] {
  const found = [leaves];
  for (let level = leaves; level.length > 1; found.push(level)) {
    const below = level;
    level = [];
    for (let at = 0; at < below.length; at += 2) {
      const [left, right] = [below[at] as Uint8Array, below[at + 1]];
      level.push(right ? node(family, left, right) : left);
    }
  }
  return found;
}

export const root = (family: string, leaves: Uint8Array[]): Uint8Array => (levels(family, leaves).at(-1) as Uint8Array[])[0] as Uint8Array;

export function path(family: string, leaves: Uint8Array[], index: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (const level of levels(family, leaves).slice(0, -1)) {
    const sibling = level[index ^ 1];
    if (sibling) found.push(sibling);
    index >>= 1;
  }
  return found;
}

/** For each digest of a path, whether it is on the left. */
function sides(size: number, index: number): boolean[] {
  need(index < size && size <= LEAVES_MAX, "WrongPath", "no such leaf");
  const found: boolean[] = [];
  for (; size > 1; index >>= 1, size = (size + 1) >> 1) if ((index ^ 1) < size) found.push(index % 2 === 1);
  return found;
}

export const readPath = (reader: Reader, size: number, index: number): Uint8Array[] => sides(size, index).map(() => reader.digest());

export function rootOf(family: string, hashed: Uint8Array, size: number, index: number, siblings: Uint8Array[]): Uint8Array {
  const places = sides(size, index);
  need(places.length === siblings.length, "WrongPath", "another length");
  return siblings.reduce((below, sibling, at) => (places[at] ? node(family, sibling, below) : node(family, below, sibling)), hashed);
}
