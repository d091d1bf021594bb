/** Elements from code: text is always text, never markup, so nothing that a node sends can become part of the page. */

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

/** An element with attributes (a function is a listener for its event; null, undefined and false leave one out). */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) if (child) parent.append(child);
}

/** Sets the text only where it differs, so that a selection survives. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Empties fields while what they say is sent: what is written meanwhile is the next, and nothing wipes it. If sending fails,
 * what nobody wrote over comes back.
 */
export async function spending(fields: { value: string }[], send: () => Promise<void>): Promise<void> {
  const said = fields.map((field) => field.value);
  for (const field of fields) field.value = "";
  try {
    await send();
  } catch (error) {
    fields.forEach((field, index) => (field.value ||= said[index]!));
    throw error;
  }
}

/** Replaces what an element holds. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...children.filter((child): child is Node | string => Boolean(child)));
}

/** A part of a view under its own heading. */
export function panel(title: string, attributes: { class?: string; aside?: Child }, ...children: Child[]): HTMLElement {
  const heading = h("h2", {}, title);
  const head = h("header", { class: "panel-head" }, heading, attributes.aside);
  return h("section", { class: `panel ${attributes.class ?? ""}`, "aria-label": title }, head, ...children);
}

/** A notice in plain words; `hidden` until it has something to say. */
export function notice(): { element: HTMLElement; say: (text: string | null) => void } {
  const element = h("p", { class: "notice", role: "status", hidden: true });
  return {
    element,
    say(text) {
      element.hidden = text === null;
      setText(element, text ?? "");
    },
  };
}

/** An address or digest in short, with a button that copies all of it. */
export function copyable(hex: string, shown: string, to?: string): HTMLElement {
  const code = h("code", { title: hex }, shown);
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy ${hex}`, click: () => void copy(hex, code, button) }, "Copy");
  return h("span", { class: "copyable" }, to === undefined ? code : h("a", { href: to }, code), " ", button);
}

/** Without access to the clipboard the whole text is shown and selected, so that the reader can copy it. */
async function copy(text: string, code: HTMLElement, button: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    setText(button, "Copied");
  } catch {
    setText(code, text);
    getSelection()?.selectAllChildren(code);
    setText(button, "Selected");
  }
  setTimeout(() => setText(button, "Copy"), 1_500);
}

/** Term and value pairs whose values are set by name. */
export function facts<Name extends string>(
  names: Record<Name, string>,
): { element: HTMLElement; set: (name: Name, value: Child, title?: string) => void; show: (name: Name, shown: boolean) => void } {
  const element = h("dl", { class: "facts" });
  const values = new Map<Name, HTMLElement>();
  const rows = new Map<Name, HTMLElement>();
  for (const name of Object.keys(names) as Name[]) {
    const value = h("dd", {}, "–");
    values.set(name, value);
    const row = h("div", { "data-fact": name }, h("dt", {}, names[name]), value);
    rows.set(name, row);
    element.append(row);
  }
  return {
    element,
    set(name, value, title) {
      const cell = values.get(name);
      if (!cell) return;
      if (typeof value === "string") setText(cell, value);
      else fill(cell, value);
      if (title !== undefined) cell.title = title;
    },
    /** Facts that do not apply are left out. */
    show(name, shown) {
      const row = rows.get(name);
      if (row) row.hidden = !shown;
    },
  };
}

/** Parts of which one is shown at a time; `chosen` is told which. */
export function tabs<Name extends string>(
  label: string,
  parts: Record<Name, { title: string; elements: HTMLElement[] }>,
  chosen: (name: Name) => void = () => undefined,
): { element: HTMLElement; choose: (name: Name) => void } {
  const names = Object.keys(parts) as Name[];
  const group = `tabs ${label}`;
  const choices = names.map((name, at) => {
    const input = h("input", { type: "radio", name: group, value: name, checked: at === 0, change: () => choose(name) });
    return h("label", {}, input, h("span", {}, parts[name].title));
  });
  const element = h("fieldset", { class: "choice tabs" }, h("legend", { class: "unseen" }, label), ...choices);

  function show(name: Name): void {
    for (const one of names) for (const part of parts[one].elements) part.hidden = one !== name;
  }

  function choose(name: Name): void {
    for (const input of element.querySelectorAll("input")) input.checked = input.value === name;
    show(name);
    chosen(name);
  }

  if (names[0]) show(names[0]);
  return { element, choose };
}
