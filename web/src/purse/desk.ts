/** What the parts of the purse's panel share: one act at a time, and errors in words of the page. */
import { ClientError } from "@walras/client/errors";
import { h, notice } from "../dom";
import { Told } from "../trade/told";
import { explain } from "../words";

export type Desk = {
  /** Does one thing at a time, so that nothing is paid by a second press. What goes wrong is told. */
  act(work: () => Promise<void>): Promise<void>;
  action(text: string, work: () => Promise<void>): HTMLButtonElement;
  form(label: string, verb: string, fields: (HTMLElement | null)[], work: () => Promise<void>): HTMLFormElement;
};

export function deskOf(problem: ReturnType<typeof notice>, isBusy: (busy: boolean) => void): Desk {
  let busy = false;
  // Those that are taken out of the page meanwhile come back to it.
  let buttons: WeakRef<HTMLButtonElement>[] = [];
  function say(now: boolean): void {
    busy = now;
    isBusy(now);
    buttons = buttons.filter((one) => one.deref());
    // Not `disabled`: who presses by the keyboard would lose the place.
    for (const one of buttons) one.deref()!.ariaDisabled = now ? "true" : null;
  }
  async function act(work: () => Promise<void>): Promise<void> {
    if (busy) return;
    say(true);
    problem.say(null);
    try {
      await work();
    } catch (error) {
      problem.say(explain(error instanceof ClientError ? new Told(inPageWords(error.message)) : error));
    }
    say(false);
  }
  /** A button that waits, as all others do, for the end of what is under way: no press is lost. */
  function button(attributes: { type?: string; click?: () => void }, text: string): HTMLButtonElement {
    const made = h("button", { ...attributes, "aria-disabled": busy && "true" }, text);
    buttons.push(new WeakRef(made));
    return made;
  }
  const submits = (work: () => Promise<void>) => (event: Event) => {
    event.preventDefault();
    void act(work);
  };
  return {
    act,
    action: (text, work) => button({ type: "button", click: () => void act(work) }, text),
    form: (label, verb, fields, work) => h("form", { class: "purse-form", "aria-label": label, submit: submits(work) }, ...fields, button({}, verb)),
  };
}

/** The client's errors name its methods; the page has buttons. */
const BUTTONS: [said: string, shown: string][] = [
  [" To do it twice, give `again: true`", " To do it twice, settle first"],
  [", or receipts to `redeemReceipts`", ", or take a receipt that pays an account"],
  ["give it to `redeemReceipts`", "Take it posts it for an account that is chosen"],
  ["give it to `receive`", "take it as a receipt of the purse"],
  ["`settle()`", "Settle"],
  ["`balance()`", "the table"],
  ["`history()`", "the history"],
];

/** A client's error as a sentence of the page. */
export function inPageWords(message: string): string {
  const text = BUTTONS.reduce((known, [said, shown]) => known.replaceAll(said, shown), message);
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

export const field = (name: string, input: HTMLElement): HTMLElement => h("label", {}, h("span", {}, name), input);
export const secret = (kind: string): HTMLInputElement => h("input", { type: "password", autocomplete: kind });
export const amountInput = (): HTMLInputElement => h("input", { autocomplete: "off", inputmode: "decimal" });
export const assetChoice = (symbols: string[]): HTMLSelectElement => h("select", {}, ...symbols.map((symbol) => h("option", {}, symbol)));
