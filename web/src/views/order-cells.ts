/** The cells of an order in tables: everywhere its market, side, amount of base and price, as it was placed. */
import type { Asked } from "@walras/client/terms";
import type { Live } from "../live";
import { href } from "../router";
import type { Cell } from "../table";
import { amountText, described, priceText, sideWord } from "../trade/placing";

export function marketCell(live: Live, asked: Asked): Cell {
  const order = described(asked, live.assets);
  return order ? { text: `${order.base}/${order.quote}`, href: href.market(order.base, order.quote) } : `${asked.sell} → ${asked.buy}`;
}

export function sideCell(live: Live, asked: Asked): Cell {
  const order = described(asked, live.assets);
  return order ? { text: sideWord(order), class: order.side === "buy" ? "up" : "down" } : "–";
}

export function askedCell(live: Live, asked: Asked): Cell {
  const order = described(asked, live.assets);
  return order ? `${order.isExact ? "exactly " : ""}${amountText(order)}` : "–";
}

/** What was signed, digit by digit, is in the title. */
export function priceCell(live: Live, asked: Asked): Cell {
  const order = described(asked, live.assets);
  return order ? { text: priceText(order), title: `${order.quote} per ${order.base}; signed as ${asked.limit} units per unit` } : "–";
}
