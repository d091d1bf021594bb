/** What a till has received for one bill. */
import { parseDecimal, plainText, subtract, type Decimal } from "@walras/client/decimal";
import type { Bill, Proved } from "@walras/client/purse/index";

/** The digits of the key: a bill and its plain address have the same. */
const keyOf = (address: string): string => address.toLowerCase().slice("lane:".length, "lane:".length + 64);
const decimal = (text: string): Decimal => parseDecimal(text) ?? { digits: 0n, scale: 0 };

export class Tally {
  /** Each output counts once. */
  private readonly outputs = new Map<string, Decimal>();

  constructor(
    readonly address: string,
    readonly asked: Bill,
  ) {}

  private ours = (proved: Proved[]): Proved[] => proved.filter(({ to, asset }) => keyOf(to) === keyOf(this.address) && asset === this.asked.asset);
  /** Whether something of it pays this bill. */
  isPaidBy(proved: Proved[]): boolean {
    return this.ours(proved).length > 0;
  }
  /** Counts what pays this bill. */
  add(proved: Proved[]): void {
    for (const { output, amount } of this.ours(proved)) this.outputs.set(output, decimal(amount));
  }

  /** What is missing still; below 0 is more than was asked for. */
  private get missing(): Decimal {
    return [...this.outputs.values()].reduce(subtract, decimal(this.asked.amount));
  }
  get isPaid(): boolean {
    return this.missing.digits <= 0n;
  }

  /** How it stands, in a sentence. */
  get words(): string {
    const { asset, amount } = this.asked;
    const missing = this.missing;
    if (this.outputs.size === 0) return `Waits for the receipt of ${amount} ${asset}.`;
    if (missing.digits > 0n) return `${plainText(missing)} ${asset} of ${amount} ${asset} are missing: ask for another receipt.`;
    if (missing.digits === 0n) return `Paid: ${amount} ${asset}.`;
    return `Paid: ${amount} ${asset}, and ${plainText({ ...missing, digits: -missing.digits })} ${asset} more than asked for.`;
  }
}
