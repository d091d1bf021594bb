import { describe, expect, it } from "vitest";
import { divide, fromUnits, multiply, parseDecimal, plainText, round, roundSignificant, shift, subtract, toNumber } from "@walras/client/decimal";
import { format, formatAmount, formatPrice, formatShort, humanPrice, placesFor, shorten, trimmed } from "../src/amount";

const decimal = (text: string) => parseDecimal(text)!;

describe("parseDecimal", () => {
  it("reads plain decimals exactly", () => {
    expect(decimal("1.0973")).toEqual({ digits: 10973n, scale: 4 });
    expect(decimal("-0.5")).toEqual({ digits: -5n, scale: 1 });
    expect(decimal("007")).toEqual({ digits: 7n, scale: 0 });
  });
  it("refuses everything else", () => {
    for (const text of ["", ".", "1.", ".5", "1e3", "1,000", " 1", "0x10", "NaN", "--1", "1.2.3"]) expect(parseDecimal(text)).toBeNull();
  });
});

describe("amounts", () => {
  it("is plain where a field or the interface takes it", () => {
    const plain = (text: string) => plainText(parseDecimal(text)!);
    expect(["1234.50", "0.00012300", "100", "0", "0.0"].map(plain)).toEqual(["1234.5", "0.000123", "100", "0", "0"]);
    expect(plainText({ digits: 12n, scale: -3 })).toBe("12000");
  });

  it("are told without zeros behind the point", () => {
    const told = (text: string) => format(trimmed(decimal(text)));
    expect(["1.150", "1.15", "100", "0.0", "1234.500", "-2.0"].map(told)).toEqual(["1.15", "1.15", "100", "0", "1,234.5", "−2"]);
  });

  it("place the point by the asset's decimals", () => {
    expect(formatAmount("123456", 2)).toBe("1,234.56");
    expect(formatAmount("5", 2)).toBe("0.05");
    expect(formatAmount("0", 8)).toBe("0.00000000");
    expect(formatAmount("18450221", 0)).toBe("18,450,221");
  });
  it("keep every digit of the largest issue, where doubles would not", () => {
    expect(formatAmount("9223372036854775807", 2)).toBe("92,233,720,368,547,758.07");
    expect(formatAmount("9223372036854775807", 18)).toBe("9.223372036854775807");
  });
  it("show what cannot be read as it came", () => {
    expect(formatAmount("many", 2)).toBe("many");
  });
  it("shorten without losing the size", () => {
    expect(formatShort("0", 8)).toBe("0");
    expect(formatShort("227890000", 8)).toBe("2.2789");
    expect(formatShort("1576300", 8)).toBe("0.015763");
    expect(formatShort("42926055", 2)).toBe("429,260.55");
    expect(formatShort("2337000000", 2)).toBe("23.37\u202fM");
    expect(formatShort("99999999999", 2)).toBe("1,000.0\u202fM");
    expect(formatShort("9223372036854775807", 0)).toBe("9,223,000\u202fT");
  });
});

describe("prices", () => {
  it("are shifted from units to how people count", () => {
    // 0.0634 cents per satoshi are 63,400 dollars per bitcoin.
    expect(formatPrice(humanPrice("0.0634", 8, 2))).toBe("63,400.00");
    expect(formatPrice(humanPrice("15.77", 2, 8))).toBe("0.00001577000");
    expect(formatPrice(humanPrice("1.0973", 2, 2))).toBe("1.097300");
    expect(formatPrice(null)).toBe("–");
  });
  it("show seven significant digits, or the places asked for", () => {
    expect(formatPrice(decimal("1.10983048492"))).toBe("1.109830");
    expect(formatPrice(decimal("1.10983548492"))).toBe("1.109835");
    expect(formatPrice(decimal("1.1"), 4)).toBe("1.1000");
    expect(formatPrice(decimal("123456789.5"))).toBe("123,456,789.50");
  });
});

describe("arithmetic", () => {
  it("rounds half away from zero", () => {
    expect(format(round(decimal("2.345"), 2))).toBe("2.35");
    expect(format(round(decimal("-2.345"), 2))).toBe("−2.35");
    expect(format(round(decimal("2.344999"), 2))).toBe("2.34");
    expect(format(round(decimal("2"), 3))).toBe("2.000");
  });
  it("divides to as many digits as asked", () => {
    expect(format(divide(decimal("1"), decimal("3"), 5)!)).toBe("0.33333");
    expect(format(divide(decimal("2"), decimal("0.003"), 6)!)).toBe("666.667");
    expect(divide(decimal("1"), decimal("0"))).toBeNull();
  });
  it("multiplies and subtracts exactly", () => {
    expect(format(multiply(decimal("1.5"), decimal("0.25")))).toBe("0.375");
    expect(format(subtract(decimal("1"), decimal("0.99")))).toBe("0.01");
  });
  it("counts places and digits", () => {
    expect(placesFor(decimal("63400"), 7)).toBe(2);
    expect(placesFor(decimal("0.000123"), 7)).toBe(10);
    expect(format(roundSignificant(decimal("123456"), 3))).toBe("123,000");
    expect(toNumber(shift(decimal("15"), -1))).toBe(1.5);
    expect(shorten(fromUnits("100", 2)!, 2)).toBe("1.00");
  });
});
