/**
 * Exact decimal text for money. Amounts arrive as strings of whole units and prices as decimal strings in units per
 * unit; neither is ever parsed into a double for display. Doubles come out of here for the pixels of charts alone.
 */

/** The number `digits × 10^-scale`; `scale` may be negative. */
export type Decimal = { readonly digits: bigint; readonly scale: number };

const PLAIN = /^(-?)(\d+)(?:\.(\d+))?$/;

/** The decimal that `text` writes, or `null` where it is no plain decimal number. */
export function parseDecimal(text: string): Decimal | null {
  const parts = PLAIN.exec(text);
  if (!parts) return null;
  const fraction = parts[3] ?? "";
  const digits = BigInt((parts[2] ?? "") + fraction);
  return { digits: parts[1] === "-" ? -digits : digits, scale: fraction.length };
}

/** `value × 10^places`. */
export function shift(value: Decimal, places: number): Decimal {
  return { digits: value.digits, scale: value.scale - places };
}

/** Whole units of an asset as people count it: 123456 units with 2 decimals are 1234.56. */
export function fromUnits(units: string, decimals: number): Decimal | null {
  const whole = parseDecimal(units);
  return whole && shift(whole, -decimals);
}

/** A price in units of quote per unit of base, as people count the two assets. */
export function humanPrice(price: string, baseDecimals: number, quoteDecimals: number): Decimal | null {
  const units = parseDecimal(price);
  return units && shift(units, baseDecimals - quoteDecimals);
}

/** Rounded to `decimals` places, half away from zero. */
export function round(value: Decimal, decimals: number): Decimal {
  const drop = value.scale - decimals;
  if (drop <= 0) return { digits: value.digits * 10n ** BigInt(-drop), scale: decimals };
  return { digits: divideRounding(value.digits, 10n ** BigInt(drop)), scale: decimals };
}

/** `a ÷ b`, rounded to `significant` digits; `null` where `b` is zero. */
export function divide(a: Decimal, b: Decimal, significant = 17): Decimal | null {
  if (b.digits === 0n) return null;
  const more = Math.max(0, significant + length(b.digits) - length(a.digits));
  const digits = divideRounding(a.digits * 10n ** BigInt(more), b.digits);
  return roundSignificant({ digits, scale: a.scale - b.scale + more }, significant);
}

/** `a × b`, exactly. */
export function multiply(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale };
}

/** `a − b`, exactly. */
export function subtract(a: Decimal, b: Decimal): Decimal {
  const scale = Math.max(a.scale, b.scale);
  return { digits: round(a, scale).digits - round(b, scale).digits, scale };
}

/** Rounded to `significant` digits. */
export function roundSignificant(value: Decimal, significant: number): Decimal {
  if (value.digits === 0n) return { digits: 0n, scale: 0 };
  return round(value, value.scale - (length(value.digits) - significant));
}

/** Places after the point that show `significant` digits of `value`, from 0 to 18: one choice for a whole column. */
export function placesFor(value: Decimal, significant: number): number {
  const magnitude = length(value.digits) - value.scale;
  return Math.min(18, Math.max(0, significant - magnitude));
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

/** Every digit without groups, exponent or zeros at the end: what fields and the interface take. */
export function plainText(value: Decimal): string {
  const { digits, scale } = trimZeros(value.scale < 0 ? round(value, 0) : value, 0);
  const text = digits.toString().padStart(scale + 1, "0");
  return scale > 0 ? `${text.slice(0, -scale)}.${text.slice(-scale)}` : text;
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
  const magnitude = length(value.digits) - value.scale;
  for (const [size, suffix] of [[13, "T"], [10, "B"], [7, "M"]] as const) {
    if (magnitude >= size) return format(roundSignificant(shift(value, 1 - size), 4)) + "\u202f" + suffix;
  }
  return format(round(value, Math.min(decimals, magnitude > 3 ? 2 : placesFor(value, 5))));
}

/** A price with `places` after the point; where that is left out, with seven significant digits and two places at least. */
export function formatPrice(price: Decimal | null, places?: number): string {
  if (!price) return "–";
  return format(round(price, places ?? Math.max(2, placesFor(price, 7))));
}

/** Without zeros at the end, but with `least` places after the point. */
export function trimZeros(value: Decimal, least: number): Decimal {
  let { digits, scale } = value;
  while (scale > least && digits % 10n === 0n) {
    digits /= 10n;
    scale -= 1;
  }
  return { digits, scale };
}

/** The nearest double: for pixels, never for text that names money. */
export function toNumber(value: Decimal): number {
  return Number(`${value.digits}e${-value.scale}`);
}

function length(digits: bigint): number {
  return (digits < 0n ? -digits : digits).toString().length;
}

/** The nearest integer to `a / b`, half away from zero. */
function divideRounding(a: bigint, b: bigint): bigint {
  const negative = a < 0n !== b < 0n;
  const [top, bottom] = [a < 0n ? -a : a, b < 0n ? -b : b];
  const nearest = (2n * top + bottom) / (2n * bottom);
  return negative ? -nearest : nearest;
}
