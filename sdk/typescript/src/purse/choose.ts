/** What to pay with: outputs of one owner and one home make one payment. */
import { hex } from "../lane/layout.js";
import { INPUTS_MAX } from "../lane/payment.js";
import type { Holding } from "../lane/collect.js";

/** A payment to be built: it spends its inputs whole. */
export type Part = { inputs: Holding[]; paid: bigint; change: bigint };
export type Rule = { least: bigint; fee: bigint };

const unitsOf = (group: Holding[]): bigint => group.reduce((sum, one) => sum + one.output.amount, 0n);
const compare = (one: bigint, other: bigint): number => (one < other ? -1 : one > other ? 1 : 0);

/** Outputs that make up an amount, in as few payments as are easily found; or the units that are missing. `rule` is that of a home. */
export function choose(held: Holding[], asset: number, rule: (home: bigint) => Rule, amount: bigint, now: bigint): Part[] | bigint {
  const groups = new Map<string, Holding[]>();
  for (const one of held) {
    if (one.output.asset !== asset || (one.home !== now && one.home + 1n !== now)) continue;
    const place = `${hex(one.output.to)} ${one.home}`;
    groups.set(place, [...(groups.get(place) ?? []), one]);
  }
  const cut = [...groups.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, group]) => largest(group));
  const ruleOf = (group: Holding[]) => rule(group[0]?.home ?? now);
  const suffices = (group: Holding[]) => unitsOf(group) >= amount + ruleOf(group).fee;
  // The smallest group that suffices alone comes first, then the largest ones.
  cut.sort((one, other) => {
    if (suffices(one) !== suffices(other)) return suffices(one) ? -1 : 1;
    return suffices(one) ? compare(unitsOf(one), unitsOf(other)) : compare(unitsOf(other), unitsOf(one));
  });
  const parts: Part[] = [];
  let left = amount;
  for (const group of cut) {
    const part = left > 0n ? partOf(group, ruleOf(group), left) : null;
    if (!part) continue;
    parts.push(part);
    left -= part.paid;
  }
  return left === 0n ? parts : left;
}

const largest = (group: Holding[]): Holding[] => group.sort((one, other) => compare(other.output.amount, one.output.amount)).slice(0, INPUTS_MAX);

/** The part of a payment that one group contributes; null if it contributes nothing. */
function partOf(group: Holding[], { least, fee }: Rule, left: bigint): Part | null {
  const inputs: Holding[] = [];
  for (const one of group) {
    if (unitsOf(inputs) >= left + fee) break;
    inputs.push(one);
  }
  const usable = unitsOf(inputs) - fee;
  const isTooSmall = (units: bigint) => units > 0n && units < least;
  let paid = usable < left ? usable : left;
  // Neither the change nor the amount that others have to pay may be too small for an output.
  if (isTooSmall(usable - paid) || isTooSmall(left - paid)) paid -= least;
  const [change, later] = [usable - paid, left - paid];
  if (paid < least || paid < 1n || isTooSmall(change) || isTooSmall(later)) return null;
  return { inputs, paid, change };
}
