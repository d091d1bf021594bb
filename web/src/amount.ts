/**
 * Text of amounts and prices. It is made from exact decimals; doubles come out of `toNumber` for the pixels of charts
 * alone.
 */
import { fromUnits, magnitude, parseDecimal, round, roundSignificant, shift, type Decimal } from "@walras/client/decimal";

/** A price in units of quote per unit of base, as people count the two assets. */
export function humanPrice(price: string, baseDecimals: number, quoteDecimals: number): Decimal | null {
  const units = parseDecimal(price);
  return units && shift(units, baseDecimals - quoteDecimals);
}

/** Places after the point that show `significant` digits of `value`, from 0 to 18: one choice for a whole column. */
export function placesFor(value: Decimal, significant: number): number {
  return Math.min(18, Math.max(0, significant - magnitude(value)));
}

/** Plain text with grouped thousands, exactly as many places as the scale says, at least `places`. */
export function format(value: Decimal, places = 0): string {
  const shown = value.scale < places ? round(value, places) : value.scale < 0 ? round(value, 0) : value;
  const negative = shown.digits < 0n;
  const text = (negative ? -shown.digits : shown.digits).toString().padStart(shown.scale + 1, "0");
  const point = text.length - shown.scale;
  const whole = text.slice(0, point).replace(/\B(?=(\d{3})+$)/g, ",");
  return (negative ? "−" : "") + whole + (shown.scale > 0 ? "." + text.slice(point) : "");
}

/** The same number without zeros behind the point: what one person writes as 1.150 is what another writes as 1.15. */
export function trimmed(value: Decimal): Decimal {
  let { digits, scale } = value;
  for (; scale > 0 && digits % 10n === 0n; scale -= 1) digits /= 10n;
  return { digits, scale };
}

/** Every digit of an amount, as people count the asset; the units themselves where `units` is no number. */
export function formatAmount(units: string, decimals: number): string {
  const value = fromUnits(units, decimals);
  return value ? format(value) : units;
}

/** An amount in about seven characters, for dense tables; the exact amount belongs in the title beside it. */
export function formatShort(units: string, decimals: number): string {
  const value = fromUnits(units, decimals);
  return value ? shorten(value, decimals) : units;
}

/** A decimal in about seven characters: grouped, then with M, B or T for millions, billions (10^9), trillions. */
export function shorten(value: Decimal, decimals = 18): string {
  if (value.digits === 0n) return "0";
  const whole = magnitude(value);
  for (const [size, suffix] of [[13, "T"], [10, "B"], [7, "M"]] as const) {
    if (whole >= size) return format(roundSignificant(shift(value, 1 - size), 4)) + "\u202f" + suffix;
  }
  return format(round(value, Math.min(decimals, whole > 3 ? 2 : placesFor(value, 5))));
}

/** A price with `places` after the point; where that is left out, with seven significant digits and two places at least. */
export function formatPrice(price: Decimal | null, places?: number): string {
  if (!price) return "–";
  return format(round(price, places ?? Math.max(2, placesFor(price, 7))));
}
