/** What the trader has: each asset with its worth, and the worth of all. */
import type { Balance } from "@walras/client/bodies";
import { fromUnits, round, toNumber, trimZeros, type Decimal } from "@walras/client/decimal";
import { format, formatAmount } from "../amount";
import { assetNames } from "./controls";
import { h, panel, setText } from "../dom";
import type { Live } from "../live";
import { table } from "../table";
import { numeraire, worth } from "../value";

type Row = { balance: Balance; total: string; worth: Decimal | null };

/** Places of a worth that people read. */
const PLACES = 2;

const totalOf = ({ available, locked }: Balance): string => String(BigInt(available) + BigInt(locked));

/** What balances are worth at the valuations of the newest batch, in whole units of the numeraire: a guess, as nobody has bought them. */
export function portfolioWorth(live: Live, balances: Balance[]): Decimal | null {
  const batch = live.batches.at(-1);
  if (!batch || live.assets.size === 0) return null;
  const parts = balances.map((balance) => worth(batch, live.assets, balance.asset, totalOf(balance)));
  const digits = parts.reduce((sum, part) => sum + (part ? round(part, PLACES).digits : 0n), 0n);
  return { digits, scale: PLACES };
}

/** The sentence that tells it. */
export function worthText(live: Live, balances: Balance[]): string {
  const all = portfolioWorth(live, balances);
  return all ? `about ${format(all)} ${numeraire(live.assets)?.symbol ?? ""}` : "–";
}

export function moneyPanel(live: Live, base: string, quote: string) {
  const all = h("strong", { "data-portfolio": "" }, "–");
  const symbol = () => numeraire(live.assets)?.symbol ?? "";
  const whole = (units: string, asset: string) => {
    const value = fromUnits(units, live.decimals(asset));
    return value ? format(trimZeros(value, Math.min(2, live.decimals(asset)))) : units;
  };
  const named = assetNames(live, () => null);
  const list = table<Row>({
    caption: "Your balances",
    key: ({ balance }) => balance.asset,
    empty: "Nothing yet.",
    rowClass: ({ balance }) => (balance.asset === base || balance.asset === quote ? "own" : ""),
    columns: [
      { name: "Asset", cell: ({ balance }) => named(balance.asset) },
      {
        name: "Amount",
        class: "number",
        cell: ({ balance, total }) => ({ text: whole(total, balance.asset), title: `${formatAmount(balance.available, live.decimals(balance.asset))} available, ${formatAmount(balance.locked, live.decimals(balance.asset))} in orders` }),
      },
      { name: "Worth", class: "number", cell: (row) => (row.worth ? { text: format(round(row.worth, PLACES)), title: symbol() } : "–") },
    ],
  });
  const hint = h("p", { class: "empty" }, "Choose who trades to see what they have.");
  const element = panel("Balances", { class: "money", aside: all }, hint, list.element);
  let latest: Balance[] | null = null;
  let drawnAt = -1;

  function draw(): void {
    hint.hidden = latest !== null;
    list.element.hidden = latest === null;
    setText(all, latest === null ? "" : worthText(live, latest));
    const batch = live.batches.at(-1);
    const rows = (latest ?? []).map((balance) => ({ balance, total: totalOf(balance), worth: batch ? worth(batch, live.assets, balance.asset, totalOf(balance)) : null }));
    const rank = ({ balance, worth: value }: Row) => (balance.asset === base ? Infinity : balance.asset === quote ? Number.MAX_VALUE : value ? toNumber(value) : 0);
    list.show(rows.filter(({ total }) => total !== "0").sort((a, b) => rank(b) - rank(a)));
  }

  draw();
  return {
    element,
    /** Null where nobody is chosen. */
    show(balances: Balance[] | null): void {
      latest = balances;
      draw();
    },
    /** The worth follows the batches. */
    update(): void {
      const height = live.batches.at(-1)?.height ?? 0;
      if (height === drawnAt || latest === null) return;
      drawnAt = height;
      draw();
    },
  };
}
