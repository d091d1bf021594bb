/** Tables whose rows are kept by key while their cells change, so that focus and scroll stay where the reader left them. */
import { fill, h, setText, type Child } from "./dom";

export type Cell = Child | { text: string; title?: string; class?: string; href?: string };

export type Column<Row> = {
  name: string;
  /** `number` cells are aligned right; `wide` columns are left out on narrow screens. */
  class?: string;
  cell: (row: Row) => Cell;
  /** Makes the heading a button that sorts by this. */
  order?: (a: Row, b: Row) => number;
};

export type Table<Row> = { element: HTMLElement; show: (rows: Row[]) => void };

type Options<Row> = {
  caption: string;
  columns: Column<Row>[];
  key: (row: Row) => string;
  empty: string;
  rowClass?: (row: Row) => string;
  /** How much of the row's background is filled, 0 to 1. */
  depth?: (row: Row) => number;
  /** The column sorted by at first; a second press turns the order. */
  sortedBy?: string;
  descending?: boolean;
};

export function table<Row>(options: Options<Row>): Table<Row> {
  const body = h("tbody");
  // Hidden until the first rows are given: not yet known is not the same as none.
  const empty = h("p", { class: "empty", hidden: true }, options.empty);
  const kept = new Map<string, HTMLTableRowElement>();
  const sorting = { by: options.sortedBy, descending: options.descending ?? false };
  let latest: Row[] = [];

  const headings = options.columns.map((column) => heading(column, () => press(column)));
  const element = h(
    "div",
    { class: "table-scroll", role: "group", "aria-label": options.caption, tabindex: 0 },
    h("table", {}, h("caption", { class: "unseen" }, options.caption), h("thead", {}, h("tr", {}, ...headings)), body),
    empty,
  );

  function press(column: Column<Row>): void {
    sorting.descending = sorting.by === column.name ? !sorting.descending : column.class?.includes("number") === true;
    sorting.by = column.name;
    show(latest);
  }

  function show(rows: Row[]): void {
    latest = rows;
    markSorted(options.columns, headings, sorting);
    const wanted = sorted(rows, options.columns, sorting).map((row) => place(row));
    const used = new Set(wanted);
    for (const [key, row] of kept) if (!used.has(row)) kept.delete(key);
    if (wanted.length !== body.children.length || wanted.some((row, i) => body.children[i] !== row)) settle(body, wanted);
    empty.hidden = rows.length > 0;
  }

  function place(row: Row): HTMLTableRowElement {
    const key = options.key(row);
    let element = kept.get(key);
    if (!element) {
      element = h("tr", {}, ...options.columns.map((column) => h("td", { class: column.class })));
      kept.set(key, element);
    }
    element.className = options.rowClass?.(row) ?? "";
    if (options.depth) element.style.setProperty("--depth", `${(100 * options.depth(row)).toFixed(1)}%`);
    options.columns.forEach((column, i) => draw(element.cells[i] as HTMLTableCellElement, column, column.cell(row)));
    return element;
  }

  markSorted(options.columns, headings, sorting);
  return { element, show };
}

function heading<Row>(column: Column<Row>, press: () => void): HTMLTableCellElement {
  const name = column.order ? h("button", { type: "button", class: "sort", click: press }, column.name) : column.name;
  return h("th", { scope: "col", class: column.class }, name);
}

function markSorted<Row>(
  columns: Column<Row>[],
  headings: HTMLTableCellElement[],
  sorting: { by: string | undefined; descending: boolean },
): void {
  columns.forEach((column, i) => {
    if (!column.order) return;
    const direction = sorting.descending ? "descending" : "ascending";
    headings[i]?.setAttribute("aria-sort", sorting.by === column.name ? direction : "none");
  });
}

function sorted<Row>(rows: Row[], columns: Column<Row>[], sorting: { by: string | undefined; descending: boolean }): Row[] {
  const order = columns.find((column) => column.name === sorting.by)?.order;
  if (!order) return rows;
  return [...rows].sort((a, b) => (sorting.descending ? order(b, a) : order(a, b)));
}

/** Moves rows into order without touching those already in place: a moved row would lose the focus inside it. */
function settle(body: HTMLElement, wanted: HTMLTableRowElement[]): void {
  const keep = new Set<Element>(wanted);
  for (const row of [...body.children]) if (!keep.has(row)) row.remove();
  const focused = document.activeElement;
  wanted.forEach((row, i) => {
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null);
  });
  if (focused instanceof HTMLElement && body.contains(focused) && document.activeElement !== focused) focused.focus();
}

function draw<Row>(td: HTMLTableCellElement, column: Column<Row>, cell: Cell): void {
  if (cell instanceof Node) return td.firstChild === cell && td.childNodes.length === 1 ? undefined : fill(td, cell);
  if (typeof cell !== "object" || cell === null) return setText(td, typeof cell === "string" ? cell : "–");
  const name = `${column.class ?? ""} ${cell.class ?? ""}`.trim();
  if (td.className !== name) td.className = name;
  if ((td.title || undefined) !== cell.title) td.title = cell.title ?? "";
  if (cell.href === undefined) return setText(td, cell.text);
  link(td, cell.href, cell.text);
}

function link(td: HTMLTableCellElement, href: string, text: string): void {
  const there = td.firstElementChild;
  if (!(there instanceof HTMLAnchorElement)) return fill(td, h("a", { href }, text));
  if (there.getAttribute("href") !== href) there.setAttribute("href", href);
  setText(there, text);
}
