/**
 * Carries requests to shards, and their replies to a question. A node's HTTP door relays both: bytes in, bytes out. Replies
 * authenticate themselves, so a relay can withhold and nothing else; then another node is asked.
 */
import type { Client } from "../client.js";
import { ClientError } from "../errors.js";
import { pause } from "../http.js";
import type { Asking } from "../lane/collect.js";
import type { Committee } from "../lane/committee.js";
import { Refused } from "../lane/layout.js";
import { REPLY_BYTES_MAX, parseReply } from "../lane/wire.js";
import { LaneError } from "./errors.js";

/** After this time the same bytes are sent again to members that have not answered. */
const AGAIN_MS = 500;

/** Carries the body of a request to a shard of a home, and brings the body of its reply. */
export type Carrier = (to: { home: bigint; member: number; shard: number }, request: Uint8Array) => Promise<Uint8Array>;

export const relayOf = (client: Client): Carrier => ({ home, member, shard }, request) =>
  client.carry("/v1/lane/relay", { home: String(home), member, shard }, request);

/** Asks the shards of a home. Where one does not answer, the others are asked. */
export class Shards {
  constructor(
    readonly committee: Committee,
    private readonly carry: Carrier,
  ) {}

  /** Sends the same bytes until the answers decide. A `LaneError` if they do not. */
  async ask<T>(asking: Asking<T>, request: Uint8Array, patienceMs: number): Promise<T> {
    const [until, under] = [Date.now() + patienceMs, new Set<number>()];
    let [decided, wake]: [T | null, () => void] = [null, () => undefined];
    const told = (member: number, shard: number) =>
      this.one(asking, { member, shard }, request).then((found) => {
        under.delete(member);
        decided ??= found;
        if (decided !== null || asking.isHopeless) wake();
      });
    for (;;) {
      for (const { member, shard } of asking.toAsk().filter((one) => !under.has(one.member))) {
        under.add(member);
        void told(member, shard);
      }
      await Promise.race([pause(Math.min(AGAIN_MS, Math.max(1, until - Date.now()))), new Promise<void>((resolve) => (wake = resolve))]);
      if (decided !== null) return decided;
      if (asking.isHopeless) throw new LaneError(`refused by ${asking.refused.size} members: ${listed(asking.refused)}`);
      if (Date.now() < until) continue;
      const also = listed(new Map([...asking.excuses, ...asking.refused]));
      throw new LaneError(
        `${asking.answered().size} of ${asking.needed} needed answers in time${also && ` (${also})`}: try again, and do not pay this money to anyone else meanwhile`,
      );
    }
  }

  /** What the answers decide with one member's reply. Whatever goes wrong with it is an excuse of that member. */
  private async one<T>(asking: Asking<T>, { member, shard }: { member: number; shard: number }, request: Uint8Array): Promise<T | null> {
    try {
      const reply = await this.carry({ home: this.committee.epoch, member, shard }, request);
      if (reply.length > REPLY_BYTES_MAX) throw new Refused("its reply is longer than any");
      return asking.add(member, parseReply(reply));
    } catch (error) {
      if (!(error instanceof ClientError || error instanceof Refused)) throw error;
      asking.excuses.set(member, error.message);
      return null;
    }
  }
}

/** Reasons, each once with its members. */
function listed(reasons: Map<number, string>): string {
  const members = new Map<string, number[]>();
  for (const [member, reason] of [...reasons].sort(([one], [other]) => one - other)) members.set(reason, [...(members.get(reason) ?? []), member]);
  return [...members].map(([reason, of]) => `member ${of.join(", ")}: ${reason}`).join("; ");
}
