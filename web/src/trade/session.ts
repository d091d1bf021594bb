/** Who trades on this page at the moment: one choice for all views, kept over a reload where no passphrase is needed. */
import { demoTraders, type Trader } from "./keys";

const CHOSEN = "walras.trader";
const listeners = new Set<() => void>();
let trader: Trader | null = remembered();

export const current = (): Trader | null => trader;

export function choose(next: Trader | null): void {
  trader = next;
  if (next?.kind === "demo") localStorage.setItem(CHOSEN, next.address);
  else localStorage.removeItem(CHOSEN);
  listeners.forEach((listener) => listener());
}

/** Calls `listener` upon each choice; returns the way to stop it. */
export function onChoice(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function remembered(): Trader | null {
  const address = localStorage.getItem(CHOSEN);
  return address === null ? null : (demoTraders().find((one) => one.address === address) ?? null);
}
