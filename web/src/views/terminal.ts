/**
 * The layout of both kinds of market: prices, book, tape, ticket, own orders and money in one window. On a phone they stand below
 * one another, and the ticket is a sheet that *Buy* and *Sell* open.
 */
import { h } from "../dom";

export type Parts = { head: HTMLElement; problem: HTMLElement; chart: HTMLElement; book: HTMLElement; tape: HTMLElement; ticket: HTMLElement; money: HTMLElement; orders: HTMLElement };
export type Side = "buy" | "sell";

/** `take` tells the ticket which side was asked for. */
export function terminal(parts: Parts, take: (side: Side) => void): { element: HTMLElement; close: () => void } {
  const { head, problem, chart, book, tape, ticket, money, orders } = parts;
  const done = h("button", { type: "button", class: "plain sheet-close", click: shut }, "Close");
  const open = (side: Side, text: string) => h("button", { type: "button", class: `take ${side}`, "aria-expanded": "false", click: () => show(side) }, text);
  const buttons = { buy: open("buy", "Buy"), sell: open("sell", "Sell") };
  const bar = h("div", { class: "take-bar" }, buttons.buy, buttons.sell);
  ticket.append(done);
  const areas = { chart, book, tape, orders };
  for (const [name, part] of Object.entries(areas)) part.classList.add("area", `area-${name}`);
  const desk = h("div", { class: "area area-desk" }, ticket, money);
  const grid = h("div", { class: "terminal-grid" }, chart, book, tape, desk, orders);
  const element = h("div", { class: "view market" }, head, problem, grid, bar);
  let opener: HTMLElement | null = null;

  function show(side: Side): void {
    opener = buttons[side];
    opener.setAttribute("aria-expanded", "true");
    element.classList.add("sheet-open");
    take(side);
    ticket.querySelector<HTMLElement>("form.ticket:not([hidden]) input[inputmode]")?.focus({ preventScroll: true });
  }

  function shut(): void {
    element.classList.remove("sheet-open");
    opener?.setAttribute("aria-expanded", "false");
    opener?.focus();
    opener = null;
  }

  const keys = (event: KeyboardEvent) => void (event.key === "Escape" && opener !== null && shut());
  addEventListener("keydown", keys);
  return { element, close: () => removeEventListener("keydown", keys) };
}
