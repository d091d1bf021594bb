/** Receipts as people exchange them: what they prove, and what a purse takes. */
import { checkedAddress } from "../encoding.js";
import type { Certificate } from "../lane/certificate.js";
import type { SignedPayment } from "../lane/collect.js";
import { Refused, need, same } from "../lane/layout.js";
import { CONFIRMATION, type Output, idAt, summaryOf } from "../lane/payment.js";
import { type Receipt, type Slip, checkCertified, laneAddress, parsePayable, parseSlip, receiptOf, slipText, verifyReceipt } from "../lane/receipt.js";
import { fromHex } from "../typed.js";
import type { PurseContents } from "./contents.js";
import { ReceiptError, inWords } from "./errors.js";
import { idText } from "./files.js";
import type { Bill, Proved } from "./results.js";

/** What the lane refuses, in words. */
function told<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Refused ? inWords(error) : error;
  }
}

export function slipsOf({ network }: PurseContents, text: string): Slip[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new ReceiptError("Short", "the text contains no receipt");
  return told(() => lines.map((line) => parseSlip(line, network.id)));
}

export const shown = ({ network }: PurseContents, { kind, to }: Output): string => (kind === 0 ? laneAddress(network.id, to) : checkedAddress(idText(to)));

/** The key behind a lane address, and what the address asks for. */
export function payable({ network }: PurseContents, to: string): { key: Uint8Array; bill: Bill | null } {
  return told(() => {
    const { key, asked } = parsePayable(to, network.id);
    if (!asked) return { key, bill: null };
    const money = network.carried.find(({ asset }) => asset === asked.asset);
    if (!money) throw new Refused("UnknownAsset", String(asked.asset));
    return { key, bill: { asset: money.symbol, amount: money.amount(asked.amount) } };
  });
}

/** What a slip proves, with nothing but proved keys of the lane. */
export function verified(purse: PurseContents, slip: Slip): Proved[] {
  const { id, committee } = purse.network;
  const proved = (output: Output, outputId: Uint8Array, home: bigint | null): Proved => {
    const money = purse.network.numbered(output.asset);
    return { output: idText(outputId), to: shown(purse, output), asset: money.symbol, amount: money.amount(output.amount), home };
  };
  return told(() => {
    if (slip.kind === "deposit") throw new Refused("NoOutput");
    if (slip.kind === "receipt") {
      return [proved(slip.receipt.output, verifyReceipt(slip.receipt, id, committee), slip.receipt.proof.summary.into)];
    }
    const { payment, certificate } = slip;
    need(same(payment.network, id), "OtherNetwork");
    checkCertified(committee, CONFIRMATION, summaryOf(payment), certificate);
    return payment.outputs.flatMap((output, at) => (output.kind === 1 ? [proved(output, idAt(payment, at), null)] : []));
  });
}

/** The output and the receipt of a slip that pays this purse. With `now`, the present lane epoch, its money must be spendable. */
export function checked(purse: PurseContents, slip: Slip, now: bigint | null): { id: Uint8Array; receipt: Receipt } {
  if (slip.kind === "accounts") throw inWords(new Refused("PaysAccounts"));
  const [proved] = verified(purse, slip);
  if (slip.kind !== "receipt" || !proved || !purse.isOwn(slip.receipt.output)) {
    throw new ReceiptError("OtherOwner", `the receipt pays ${proved?.to ?? "nobody"}, which does not belong to this purse`);
  }
  const home = slip.receipt.proof.summary.into;
  if (now !== null && now > home + 1n) {
    throw new ReceiptError("Late", `the receipt is of lane epoch ${home}, and now is ${now}: too late to spend it. Ask the payer for a new payment`);
  }
  return { id: fromHex(proved.output), receipt: slip.receipt };
}

/** The receipts of a payment for others. */
export function forOthers(purse: PurseContents, { payment }: SignedPayment, certificate: Certificate): string[] {
  const slips: Slip[] = payment.outputs.flatMap((output, at) =>
    output.kind === 0 && !purse.isOwn(output) ? [{ kind: "receipt" as const, receipt: receiptOf(payment, at, certificate) }] : [],
  );
  if (payment.outputs.some((output) => output.kind === 1)) slips.push({ kind: "accounts", payment, certificate });
  return slips.map((slip) => slipText(slip, purse.network.id));
}
