/**
 * Decimals for money without rounding. Amounts arrive as strings of whole units and prices as decimal strings; neither is ever
 * parsed into a double, except for the pixels of charts.
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

/** Every digit without groups, exponent or zeros at the end: what fields and the interface take. */
export function plainText(value: Decimal): string {
  const { digits, scale } = trimZeros(value.scale < 0 ? round(value, 0) : value, 0);
  const text = digits.toString().padStart(scale + 1, "0");
  return scale > 0 ? `${text.slice(0, -scale)}.${text.slice(-scale)}` : text;
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

/** Digits before the point: 3 of 123.4, −1 of 0.0123. */
export function magnitude(value: Decimal): number {
  return length(value.digits) - value.scale;
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

