/** Which rules the chain follows and which come, and its parameters: who approves, who wants what, and when it acts. */
import { getIfThere } from "../api";
import { facts, h, panel } from "../dom";
import type { Live } from "../live";
import { href } from "../router";
import { table } from "../table";
import { brief, count, duration } from "../words";

/** Rules that accounts approve. */
type Approved = { rules: number; notice: number; stake: string; all_stake: string; seats: number; seats_needed: number; all_seats: number; accounts: string[] };

/** The answer of `/v1/upgrade`, as far as the page shows it. */
export type Upgrade = {
  rules: number;
  since: number;
  coming: { rules: number; acts: number; confirms: number | null; tries: number } | null;
  known: number;
  operator: string | null;
  approved: Approved[];
  unready: string[];
};

type Parameter = { parameter: string; value: string; least: string; most: string; rests_until: number | null };
type Coming = { acts: number; parameters: { parameter: string; value: string }[]; lists: string[]; closes: string[]; lane?: string[] };
type Proposal = { id: string; proposer: string; words: string; boundaries_left: number; seats: number; seats_needed: number; all_seats: number; stake: string; all_stake: string; yes: string[]; no: string[] };

/** The answer of `/v1/parameters`, likewise. */
export type Parameters = { parameters: Parameter[]; coming: Coming[]; proposals: Proposal[] };

/** A share of all stake, in whole percent, never more than there is. */
const share = (part: string, all: string): string => (BigInt(all) === 0n ? "no stake" : `${(BigInt(part) * 100n) / BigInt(all)} % of the stake`);

/** A whole number, whatever its size. */
const whole = (units: string): string => BigInt(units).toLocaleString("en-US");

/** Accounts, each a link. */
const accounts = (all: string[]) => h("span", {}, ...(all.length === 0 ? ["nobody"] : all.flatMap((one, at) => [at > 0 && ", ", h("a", { href: href.account(one) }, brief(one, 4))])));

/** When a height comes, at the pace of the latest blocks. */
export function when(height: number, now: number, pace_ms: number): string {
  return height <= now ? `block ${count(height)}` : `block ${count(height)}, in about ${duration((height - now) * pace_ms)}`;
}

/** What will have changed, in words. */
export function changes({ parameters, lists, closes, lane = [] }: Coming): string {
  const values = parameters.map(({ parameter, value }) => `${parameter} becomes ${whole(value)}`);
  const inLane = lane.map((name) => `terms of ${name} in the payment lane are decided`);
  return [...values, ...lists.map((name) => `${name} is listed`), ...closes.map((name) => `${name} closes`), ...inLane].join("; ");
}

/** Which rules act next, and from which block on. */
export function nextRules({ coming, rules, since }: Upgrade, now: number, pace_ms: number): string {
  if (coming === null) return since > now ? `rules ${rules} act from ${when(since, now, pace_ms)}` : "none is agreed on";
  const confirmed = coming.confirms === null ? "" : `; they are confirmed at ${when(coming.confirms, now, pace_ms)}`;
  const tried = coming.tries === 0 ? "" : `, tried ${count(coming.tries)} of 3 times`;
  return `rules ${coming.rules} act from ${when(coming.acts, now, pace_ms)}${confirmed}${tried}`;
}

export function rulesPanels(live: Live) {
  const terms = facts({ rules: "In force", next: "Next", known: "This node knows", operator: "Named by", unready: "Not ready for them" });
  const approvals = table<Approved>({
    caption: "Approvals of the next rules",
    key: (row) => `${row.rules} ${row.notice} ${row.accounts[0] ?? ""}`,
    empty: "Nobody approves of other rules.",
    columns: [
      { name: "Rules", class: "number first", cell: (row) => String(row.rules) },
      { name: "Seats", class: "number", cell: (row) => ({ text: `${row.seats} of ${row.all_seats}`, title: `${row.seats_needed} must approve` }) },
      { name: "Stake", class: "number", cell: (row) => share(row.stake, row.all_stake) },
      { name: "Notice", class: "number wide", cell: (row) => `${count(row.notice)} blocks` },
      { name: "Who approves", cell: (row) => accounts(row.accounts) },
    ],
  });
  const proposals = table<Proposal>({
    caption: "Open proposals",
    key: (row) => row.id,
    empty: "Nothing is proposed.",
    columns: [
      { name: "What", cell: (row) => ({ text: row.words, title: row.id }) },
      { name: "Seats", class: "number", cell: (row) => ({ text: `${row.seats} of ${row.all_seats}`, title: `${row.seats_needed} must want it` }) },
      { name: "Stake", class: "number", cell: (row) => ({ text: share(row.stake, row.all_stake), title: "two thirds must want it" }) },
      { name: "Who wants it", cell: (row) => accounts(row.yes) },
      { name: "Counted", class: "number wide", cell: (row) => `${count(row.boundaries_left)} times more` },
    ],
  });
  const coming = table<Coming>({
    caption: "What has passed",
    key: (row) => String(row.acts),
    empty: "Nothing waits.",
    columns: [
      { name: "Acts from", cell: (row) => when(row.acts, live.height, live.pace_ms) },
      { name: "What", cell: changes },
    ],
  });
  const parameters = table<Parameter>({
    caption: "Parameters",
    key: (row) => row.parameter,
    empty: "The chain has none.",
    columns: [
      { name: "Parameter", cell: (row) => row.parameter },
      { name: "Now", class: "number strong", cell: (row) => whole(row.value) },
      { name: "May become", class: "number", cell: (row) => (row.least === row.most ? "nothing else" : `${whole(row.least)} to ${whole(row.most)}`) },
      { name: "Rests until", class: "number wide", cell: (row) => (row.rests_until === null ? "–" : when(row.rests_until, live.height, live.pace_ms)) },
    ],
  });
  const ofRules = panel("Rules", { class: "rules" }, terms.element, approvals.element);
  const ofParameters = panel("Parameters by vote", { class: "parameters" }, proposals.element, coming.element, parameters.element);
  ofRules.hidden = ofParameters.hidden = true;

  function showRules(now: Upgrade): void {
    terms.set("rules", `rules ${now.rules}`, now.since <= live.height ? `since block ${count(now.since)}` : "");
    terms.set("next", nextRules(now, live.height, live.pace_ms));
    terms.set("known", `up to rules ${now.known}`);
    terms.set("operator", accounts(now.operator === null ? [] : [now.operator]));
    terms.show("operator", now.operator !== null);
    terms.set("unready", accounts(now.unready));
    terms.show("unready", now.unready.length > 0);
    approvals.show(now.approved);
  }

  return {
    elements: [ofRules, ofParameters],
    async load(signal: AbortSignal): Promise<void> {
      const [now, all] = await Promise.all([getIfThere<Upgrade>("upgrade", signal), getIfThere<Parameters>("parameters", signal)]);
      ofRules.hidden = now === null;
      ofParameters.hidden = all === null;
      if (now) showRules(now);
      if (!all) return;
      proposals.show(all.proposals);
      coming.show(all.coming);
      parameters.show(all.parameters);
    },
  };
}
