/** What a view is to the page, and what a view may ask of it. */
import type { Live } from "../live";

export type View = {
  title: string;
  element: HTMLElement;
  /** Draws again after something that the page knows has changed. */
  update: () => void;
  /** Stops loading, and lets charts and subscriptions go. */
  close: () => void;
};

export type MakeView = (live: Live) => View;
