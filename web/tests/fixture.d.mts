export const ACCOUNT: string;
export const EMPTY_ACCOUNT: string;
export const QUIET_ACCOUNT: string;
export const TREASURY: string;
export const CONTRACT: string;
export const ETHEREUM: Record<"placed" | "swindle" | "settlement" | "created", string>;
export type Fixture = {
  url: string;
  height: () => number;
  streams: () => number;
  cut: () => void;
  skip: () => void;
  mute: () => void;
  lose: (history: "off" | "gone" | "behind") => void;
  mend: () => void;
  close: () => Promise<void>;
};
export function startFixture(options?: { port?: number; height?: number; interval_ms?: number }): Promise<Fixture>;
