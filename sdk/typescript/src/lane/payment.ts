/** Payments: layout, digest, ids, and the rules of a network. */
import { accountOf } from "./ed25519.js";
import { Reader, ascends, derived, hex, join, need, parsed, same, text, u16, u32, u64, u8 } from "./layout.js";
import * as trees from "./trees.js";

export const [PAYMENT, CONFIRMATION, ACKNOWLEDGEMENT, VIEW, HALT, SHARED, QUESTION, REGISTRATION, POSSESSION, DEALING] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
export const PREFIX = join(text("walras-lane"), u8(1));
export const INPUTS_MAX = 16;
export const OUTPUTS_MAX = 16;
const ASSETS_MAX = 4;

/** What everything begins with that is signed in the lane. */
export const head = (kind: number, network: Uint8Array, epoch: bigint): Uint8Array => join(PREFIX, network, u64(epoch), u8(kind));

/** Kind 0 is for a key, 1 for an account. */
export type Output = { kind: 0 | 1; to: Uint8Array; asset: number; amount: bigint };
export type Spent = { id: Uint8Array; asset: number; amount: bigint };
export type Summary = { home: bigint; into: bigint; owner: Uint8Array; inputs: Uint8Array; outputs: number; root: Uint8Array };
/** A network, and for each asset its least units and its fee. */
export type Rules = { network: Uint8Array; assets: Map<number, { least: bigint; fee: bigint }> };
export type Payment = { network: Uint8Array; home: bigint; into: bigint; owner: Uint8Array; inputs: Spent[]; outputs: Output[] };

export const ruleOf = (rules: Rules, asset: number): { least: bigint; fee: bigint } => rules.assets.get(asset) ?? { least: 1n, fee: 0n };

export const encodeOutput = ({ kind, to, asset, amount }: Output): Uint8Array =>
  join(u8(kind), to, new Uint8Array(32 - to.length), u32(asset), u64(amount));
export const leafOf = (output: Output): Uint8Array => trees.leaf(trees.OUTPUTS, encodeOutput(output));

export function readOutput(reader: Reader): Output {
  const [kind, to] = [reader.u8(), reader.take(32)];
  need(kind <= 1, "Malformed", "an output is for a key or an account");
  need(kind === 0 || to.slice(20).every((byte) => byte === 0), "Malformed", "an account has 20 bytes");
  return { kind: kind as 0 | 1, to: kind === 0 ? to : to.slice(0, 20), asset: reader.u32(), amount: reader.amount() };
}

const encodeSpent = ({ id, asset, amount }: Spent): Uint8Array => join(id, u32(asset), u64(amount));
export const readSpent = (reader: Reader): Spent => ({ id: reader.digest(), asset: reader.u32(), amount: reader.amount() });

export const encodeSummary = ({ home, into, owner, inputs, outputs, root }: Summary): Uint8Array => join(u64(home), u64(into), owner, inputs, u8(outputs), root);
export const readSummary = (reader: Reader): Summary => ({
  home: reader.u64(),
  into: reader.u64(),
  owner: reader.digest(),
  inputs: reader.digest(),
  outputs: reader.u8(),
  root: reader.digest(),
});
export const summaryDigest = (summary: Summary, network: Uint8Array): Uint8Array =>
  derived("walras 2026 lane payment v1", join(u8(1), network, encodeSummary(summary)));

export function encodePayment({ network, home, into, owner, inputs, outputs }: Payment): Uint8Array {
  const counts = join(u8(1), u8(inputs.length), u8(outputs.length));
  return join(counts, u64(home), u64(into), network, owner, ...inputs.map(encodeSpent), ...outputs.map(encodeOutput));
}

export function summaryOf({ home, into, owner, inputs, outputs }: Payment): Summary {
  const hashed = derived("walras 2026 lane inputs v1", join(...inputs.map(encodeSpent)));
  return { home, into, owner, inputs: hashed, outputs: outputs.length, root: trees.root(trees.OUTPUTS, outputs.map(leafOf)) };
}

export const digestOf = (payment: Payment): Uint8Array => summaryDigest(summaryOf(payment), payment.network);
export const idAt = (payment: Payment, index: number): Uint8Array => outputId(payment.into, digestOf(payment), index);
/** What the owner signs. */
export const ownerBytes = (payment: Payment): Uint8Array => join(head(PAYMENT, payment.network, payment.home), digestOf(payment));

export const exitOf = (network: Uint8Array, home: bigint, owner: Uint8Array, spent: Spent): Payment => ({
  network,
  home,
  into: home,
  owner,
  inputs: [spent],
  outputs: [{ kind: 1, to: accountOf(owner), asset: spent.asset, amount: spent.amount }],
});

export function isExit(payment: Payment): boolean {
  const [input] = payment.inputs;
  if (!input || payment.inputs.length !== 1 || payment.outputs.length !== 1) return false;
  return same(encodePayment(payment), encodePayment(exitOf(payment.network, payment.home, payment.owner, input)));
}

const sum = (of: { asset: number; amount: bigint }[], asset: number): bigint =>
  of.filter((one) => one.asset === asset).reduce((total, one) => total + one.amount, 0n);

export function checkPayment(payment: Payment, rules: Rules): void {
  need(same(payment.network, rules.network), "ForeignNetwork");
  if (isExit(payment)) return;
  for (const { asset, amount } of payment.outputs) need(amount >= ruleOf(rules, asset).least, "TooSmall");
  const assets = new Set([...payment.inputs, ...payment.outputs].map((one) => one.asset));
  need(assets.size <= ASSETS_MAX, "TooManyAssets");
  for (const asset of assets) need(sum(payment.inputs, asset) === sum(payment.outputs, asset) + ruleOf(rules, asset).fee, "WrongSum");
}

export function readPayment(reader: Reader): Payment {
  need(reader.u8() === 1, "Malformed", "another version");
  const [inputs, outputs] = [reader.u8(), reader.u8()];
  need(inputs >= 1 && inputs <= INPUTS_MAX && outputs >= 1 && outputs <= OUTPUTS_MAX, "Malformed", "1 to 16 inputs and outputs");
  const [home, into] = [reader.u64(), reader.u64()];
  need(into === home || into === home + 1n, "Malformed", "outputs live in the home or after it");
  const [network, owner] = [reader.digest(), reader.digest()];
  const spent = reader.times(inputs, readSpent);
  need(ascends(spent.map((one) => hex(one.id))), "Malformed", "inputs ascend strictly");
  return { network, home, into, owner, inputs: spent, outputs: reader.times(outputs, readOutput) };
}

export const parsePayment = (data: Uint8Array): Payment => parsed(readPayment, data);

export function longPayment(payment: Payment): Uint8Array {
  const data = encodePayment(payment);
  return join(u16(data.length), data);
}
export const readLongPayment = (reader: Reader): Payment => parsePayment(reader.take(reader.u16()));

export const outputId = (into: bigint, digest: Uint8Array, index: number): Uint8Array =>
  derived("walras 2026 lane output id v1", join(u64(into), digest, u8(index)));
export const depositId = (network: Uint8Array, home: bigint, account: Uint8Array, sequence: bigint): Uint8Array =>
  derived("walras 2026 lane deposit id v1", join(network, u64(home), account, u64(sequence)));
export const genesisId = (network: Uint8Array, index: number): Uint8Array => derived("walras 2026 lane genesis id v1", join(network, u64(0), u32(index)));
export const carriedId = (network: Uint8Array, before: Uint8Array): Uint8Array => derived("walras 2026 lane output carried over v1", join(network, before));
