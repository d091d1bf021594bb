/**
 * What issuers control of assets in the hands of others: a badge with words wherever such an asset is shown, and what an issuer
 * has said of an account.
 */
import type { Asset, AssetControl, Holder } from "@walras/client/bodies";
import { get, path } from "../api";
import { h } from "../dom";
import type { Live } from "../live";
import { refresh } from "../refresh";
import { href } from "../router";
import { count } from "../words";

/** Issuers seldom speak. */
const PAUSE_MS = 2_000;

type Controlled = Exclude<AssetControl, "open">;

const BADGES: Record<Controlled, string> = {
  freezable: "can be frozen",
  admitted: "admitted holders only",
  recoverable: "can be frozen and recovered",
  admitted_recoverable: "admitted holders only, can be recovered",
};

const FREEZES = "Its issuer can freeze holders: who is frozen neither spends, buys nor receives it, and its orders end.";
const ADMITS = " Only holders that the issuer has admitted may have it.";
const RECOVERS = " It can take back units of a holder who has been frozen for a day of blocks.";

const MEANS: Record<Controlled, string> = {
  freezable: FREEZES,
  admitted: FREEZES + ADMITS,
  recoverable: FREEZES + RECOVERS,
  admitted_recoverable: FREEZES + ADMITS + RECOVERS,
};

const controlOf = (asset: Asset | undefined): Controlled | null => (asset?.control && asset.control !== "open" ? asset.control : null);

/** What that means for a holder, in sentences; null for an asset that nobody controls. */
export function controlText(asset: Asset | undefined): string | null {
  const control = controlOf(asset);
  return control && MEANS[control];
}

/** A few words beside the name of an asset; null for one that nobody controls. */
export function controlBadge(asset: Asset | undefined): HTMLElement | null {
  const control = controlOf(asset);
  return control && h("span", { class: "badge control", title: MEANS[control] }, BADGES[control]);
}

/** Names of assets with their badges, each element made once, so that the focus stays on a link while tables change. */
export function assetNames(live: Live, link: (symbol: string) => string | null) {
  const kept = new Map<string, HTMLElement>();
  return (symbol: string): HTMLElement | { text: string; href?: string } => {
    const [asset, to] = [live.assets.get(symbol), link(symbol)];
    if (!controlOf(asset)) return to === null ? { text: symbol } : { text: symbol, href: to };
    const name = kept.get(symbol) ?? h("span", {}, to === null ? symbol : h("a", { href: to }, symbol), " ", controlBadge(asset));
    kept.set(symbol, name);
    return name;
  };
}

/** What issuers control of some assets, each behind its name: nothing where all are open or not known yet. */
export function controlBadges(live: Live, symbols: string[]): HTMLElement[] {
  return symbols.flatMap((symbol) => {
    const badge = controlBadge(live.assets.get(symbol));
    return badge ? [h("span", { class: "control-of" }, `${symbol} `, badge)] : [];
  });
}

/** A line of that below the name of a market, which shows itself once there is something to say. */
export function controlsLine(live: Live) {
  const element = h("p", { class: "controls-of", hidden: true });
  return {
    element,
    show(symbols: string[]): void {
      if (!element.hidden) return;
      element.replaceChildren(...controlBadges(live, symbols).flatMap((badge) => [badge, " "]));
      element.hidden = element.childElementCount === 0;
    },
  };
}

/** Names of markets, with what issuers control of both assets below them; each element made once, as in `assetNames`. */
export function marketNames(live: Live) {
  const kept = new Map<string, HTMLElement>();
  return (text: string, to: string, symbols: string[]): HTMLElement | { text: string; href: string } => {
    const known = kept.get(text);
    if (known) return known;
    const badges = controlBadges(live, symbols);
    if (badges.length === 0) return { text, href: to };
    const name = h("div", { class: "controlled" }, h("a", { href: to }, text), ...badges);
    kept.set(text, name);
    return name;
  };
}

/** What an account may not do with an asset, and what remains possible; null if nothing is in its way. */
export function standingText(symbol: string, asset: Asset, holder: Holder): string | null {
  const since = holder.since === undefined ? "" : ` since block ${count(holder.since)}`;
  const home = "What it has in orders, pools and at venues comes home; it can cancel, leave pools and collect.";
  const recovered = asset.control?.includes("recoverable") ? " The issuer can take units back once it has been frozen for 86,400 blocks." : "";
  switch (holder.standing) {
    case "frozen":
      return `The issuer of ${symbol} has frozen this account${since}: it neither spends, buys nor receives ${symbol} until the issuer opens it. ${home}${recovered}`;
    case "not_admitted":
      return `The issuer of ${symbol} has not admitted this account: it neither spends, buys nor receives ${symbol} until it is. ${home}`;
    default:
      return null;
  }
}

/** Notices of what issuers have said of an account, for those of some assets that are controlled. */
export function standings(live: Live) {
  const element = h("div", { class: "standings", role: "status" });
  let of: { address: string; symbols: string[] } | null = null;
  const loading = refresh(load, () => undefined, PAUSE_MS);

  async function load(signal: AbortSignal): Promise<void> {
    const asked = of;
    const assets = (asked?.symbols ?? []).map((symbol) => live.assets.get(symbol)).filter((asset) => asset !== undefined && controlOf(asset) !== null);
    const texts = await Promise.all(
      assets.map(async (asset) => {
        if (!asset || !asked || asset.issuer.toLowerCase() === asked.address.toLowerCase()) return null;
        const text = standingText(asset.symbol, asset, await get<Holder>(path("assets", asset.asset, "holders", asked.address), signal));
        return text && h("p", { class: "notice", "data-standing": asset.symbol }, text, " ", h("a", { href: href.account(asset.issuer) }, "The issuer"));
      }),
    );
    if (of === asked) element.replaceChildren(...texts.filter((text) => text !== null));
  }

  return {
    element,
    /** Asks again; null where nobody is chosen. */
    show(address: string | null, symbols: string[]): void {
      of = address === null ? null : { address, symbols };
      if (of === null) element.replaceChildren();
      else loading.request();
    },
    close: () => loading.close(),
  };
}
