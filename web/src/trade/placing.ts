/** How the page tells an order: side, amount of the base, price, as it was placed. */
import type { Asset } from "@walras/client/bodies";
import { parseDecimal } from "@walras/client/decimal";
import { marketOf } from "@walras/client/placing";
import { orderOf, type Asked, type Order } from "@walras/client/terms";
import { format, trimmed } from "../amount";

/** An order as the page tells it everywhere: side, amount of base, price. */
export type Described = Order & { isExact: boolean };

/** Orders that were told before: tables tell the same ones again with each block. */
const told = new Map<string, Described | null>();
const TOLD_MOST = 2_000;

/** What terms ask for, in the terms of their market, or of the pair with this base; null where the assets are not known. */
export function described(asked: Asked, assets: ReadonlyMap<string, Asset>, base?: string): Described | null {
  const market = marketOf(asked.sell, asked.buy, assets)?.map((symbol) => assets.get(symbol)!);
  if (!market) return null;
  const { sell, buy, amount, limit, exact } = asked;
  const scale = market.map(({ asset, decimals }) => `${asset}:${decimals}`).join();
  const key = [scale, sell, buy, amount, limit, exact?.side, exact?.units, exact?.bound, base].join(" ");
  const known = told.get(key);
  if (known !== undefined) return known;
  const [first, second] = base === market[1]!.symbol ? market.toReversed() : market;
  const order = orderOf(asked, first!, second!);
  if (told.size >= TOLD_MOST) told.clear();
  const made = order && { ...order, isExact: Boolean(exact) };
  told.set(key, made);
  return made;
}

const grouped = (text: string): string => {
  const value = parseDecimal(text);
  return value ? format(trimmed(value)) : text;
};

export const sideWord = ({ side }: { side: string }): string => (side === "buy" ? "Buy" : "Sell");

/** The one sentence of an order: `Buy 50 EUR at 1.2 USD`. */
export function orderText(order: Order & { isExact?: boolean }): string {
  return `${sideWord(order)} ${order.isExact ? "exactly " : ""}${grouped(order.amount)} ${order.base} at ${grouped(order.price)} ${order.quote}`;
}

/** The amount and the price as people read them. */
export const amountText = ({ amount, base }: Order): string => `${grouped(amount)} ${base}`;
export const priceText = ({ price }: Order): string => grouped(price);

/** What rests of an offer, in its base: `units` are those of the asset that it sells. */
export function restText(units: string, asked: Asked, assets: ReadonlyMap<string, Asset>, base?: string): string {
  const order = described({ ...asked, amount: units }, assets, base);
  return order ? amountText(order) : units;
}
