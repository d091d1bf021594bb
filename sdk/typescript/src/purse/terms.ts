/**
 * The terms of the lane's assets, by lane epoch, as a node tells them. Nothing proves them, and nothing needs to: members refuse a
 * payment on wrong terms before they reserve anything, and the ledger refuses a deposit. What a purse shows to people is another
 * matter: the name and the decimals of an asset stay as the purse first knew them.
 */
import { AssetInfo, type Amount } from "../assets.js";
import type * as bodies from "../bodies.js";
import type { Rule } from "./choose.js";

/** Terms of an asset from a lane epoch on, as `/v1/lane` has them. */
export type TermsBody = { asset: string; number: number; decimals: number; from: number; least_units: string; fee: string; deposits: string };

/** An asset of the lane, on the terms of some epoch. */
export class Money {
  private readonly info: AssetInfo;

  constructor(
    readonly asset: number,
    readonly symbol: string,
    readonly decimals: number,
    readonly least: bigint,
    readonly fee: bigint,
  ) {
    this.info = new AssetInfo({ asset, symbol, decimals } as bodies.Asset);
  }
  units(amount: Amount): bigint {
    return this.info.units(amount);
  }
  amount(units: bigint): string {
    return this.info.amount(units);
  }
}

type Told = { from: bigint; money: Money; takesDeposits: boolean };

const toldOf = (of: TermsBody): Told => ({
  from: BigInt(of.from),
  money: new Money(of.number, of.asset, of.decimals, BigInt(of.least_units), BigInt(of.fee)),
  takesDeposits: of.deposits === "taken",
});

/** What a node told last. */
export class ToldTerms {
  private readonly terms = new Map<number, Told[]>();

  constructor(readonly bodies: TermsBody[]) {
    const sorted = [...bodies].sort((one, other) => one.number - other.number || one.from - other.from).map(toldOf);
    for (const one of sorted) this.terms.set(one.money.asset, [...(this.terms.get(one.money.asset) ?? []), one]);
  }

  /** An asset that is called otherwise than before, or like another one. */
  renamed(known: Money[]): Money | null {
    const told = [...this.terms.values()].flat().map(({ money }) => money);
    const everything = [...known, ...told];
    const differs = (one: Money, other: Money) => {
      const isSame = one.asset === other.asset;
      return isSame !== (one.symbol === other.symbol) || (isSame && one.decimals !== other.decimals);
    };
    return told.find((one) => everything.some((other) => differs(one, other))) ?? null;
  }

  private ofHome(asset: number, home: bigint): Told | undefined {
    return this.terms.get(asset)?.findLast(({ from }) => from <= home);
  }
  /** Least output and fee of an asset in a home; null if nothing was told about it. */
  rule(asset: number, home: bigint): Rule | null {
    return this.ofHome(asset, home)?.money ?? null;
  }
  /** Whether deposits are taken in an epoch. A node of an older version tells nothing: then the ledger judges. */
  takesDeposits(asset: number, epoch: bigint): boolean {
    return this.ofHome(asset, epoch)?.takesDeposits ?? this.terms.size === 0;
  }
  /** The assets, on their newest terms. */
  assets(): Money[] {
    return [...this.terms.values()].flatMap((of) => of.slice(-1)).map(({ money }) => money);
  }
}
