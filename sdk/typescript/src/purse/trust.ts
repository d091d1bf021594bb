/**
 * Whom a purse believes about the ledger, and how the ledger proves the lane's keys to it.
 *
 * The keys of a lane epoch are those that the *ledger* has registered: proved by a path to a state root that a quorum of the
 * chain's validators has signed. The registrars' signatures alone are not enough, since a registrar can sign two lists. The
 * validators are those that the purse was made with, and their successors that handovers prove.
 *
 * A chain of one node has no validators and signs no states: there the registrars' signatures count. Whether a chain has validators
 * is pinned, so that no node can claim later that it has none.
 */
import type { Client } from "../client.js";
import { ClientError, NotFoundError, RefusedError } from "../errors.js";
import { pause } from "../http.js";
import { type Registration, encodeRegistration, readRegistration } from "../lane/committee.js";
import { derived, hex, join, parsed, same, u64, u8 } from "../lane/layout.js";
import { ProofError, Reader, prove } from "../proof.js";
import { fromHex } from "../typed.js";
import { OtherLaneError, PurseError, PurseFileError, UnprovedError } from "./errors.js";
import { FETCHED_AGAIN, type PurseFiles, damaged, idText, readJson, writeJson } from "./files.js";
import {
  type Chain,
  ESCROW,
  MEMBERS_MAX,
  type Registry,
  type Schedule,
  committeeOf,
  epochOf,
  follow,
  isFixed,
  outcomeOf,
  readCertificate,
  readHandover,
  readParts,
  readValidators,
  verifyCertificate,
} from "./lineage.js";

export const PROVED = "validators.json";
const [PATIENCE_MS, PAUSE_MS] = [20_000, 100];
const [TRUST_PERIOD_MS, REFRESHED_MS] = [7 * 86_400_000, 86_400_000];
/** Number of blocks below the newest one among which the newest certificate is looked for. */
const NEWEST = 64;

/** A committee of the chain, and what is needed to follow its successors. */
export type Anchor = { schedule: Schedule; lag: bigint; unbondingEpochs: bigint; epoch: bigint; keys: Uint8Array[] };
/** A committee, a chain of one node, or null in purses of versions that knew nothing about validators. */
export type Trust = Anchor | "solo" | null;
export type PinnedTrust = "solo" | null | { epoch_heights: number; delay: number; lag: number; unbonding_epochs: number; epoch: number; keys: string[] };
type CertificateBody = { height: number; certificate: string; state_root: string; receipts_root: string };

/** The same; null if there is no such thing. */
export async function find<T>(client: Client, path: string): Promise<T | null> {
  try {
    return await client.ask<T>(path);
  } catch (error) {
    if (error instanceof NotFoundError) return null;
    throw error;
  }
}

export function keysOf(texts: string[]): Uint8Array[] {
  const keys = texts.map(fromHex);
  if (keys.length < 1 || keys.length > MEMBERS_MAX || keys.some((key) => key.length !== 32)) throw new Error("a committee has 1 to 256 keys of 32 bytes");
  return keys;
}

export function readTrust(pinned: PinnedTrust | undefined): Trust {
  if (pinned === undefined || pinned === null || pinned === "solo") return pinned ?? null;
  const { epoch_heights, delay, lag, unbonding_epochs, epoch, keys } = pinned;
  const [heights, wait, below, unbondingEpochs, from] = [epoch_heights, delay, lag, unbonding_epochs, epoch].map(BigInt) as [bigint, bigint, bigint, bigint, bigint];
  return { schedule: { heights, delay: wait }, lag: below, unbondingEpochs, epoch: from, keys: keysOf(keys) };
}

export function pinnedTrust(trust: Trust): unknown {
  if (trust === null || trust === "solo") return trust;
  const { schedule, lag, unbondingEpochs, epoch, keys } = trust;
  return { epoch_heights: schedule.heights, delay: schedule.delay, lag, unbonding_epochs: unbondingEpochs, epoch, keys: keys.map(idText) };
}

export function knownAnchor(trust: Trust): Anchor {
  if (trust !== null && trust !== "solo") return trust;
  throw new PurseError(
    "the purse does not know the chain's validators, who prove the lane's keys: name them once with `walras pay trust --genesis FILE`",
  );
}

/** What a node shows of the newest committee, without a proof; null if no quorum has signed a state yet. */
async function shown(client: Client, registry: Registry): Promise<Anchor | null> {
  const { height: newest } = await client.status();
  for (let height = newest; height > Math.max(0, newest - NEWEST); height -= 1) {
    const body = await find<CertificateBody>(client, `/v1/blocks/${height}/certificate`);
    if (!body) continue;
    const certificate = readCertificate(new Reader(fromHex(body.certificate)));
    const keys = committeeOf(registry, certificate.epoch);
    if (!keys) throw new ProofError("it does not show the validators that sign its blocks");
    const { schedule, unbondingEpochs, network } = registry;
    verifyCertificate(certificate, { network, schedule, epoch: certificate.epoch, keys });
    return { schedule, lag: certificate.height - BigInt(height), unbondingEpochs, epoch: certificate.epoch, keys };
  }
  return null;
}

/** What a node shows of the chain's validators: it is trusted with them. */
export async function trustOfNode(client: Client, network: Uint8Array): Promise<Anchor | "solo"> {
  const { proof } = await client.ask<{ proof: string }>("/v1/validators/proof");
  try {
    const { registry } = readValidators(new Reader(fromHex(proof)));
    if ((registry.committees.at(-1) ?? []).length === 0) return "solo";
    if (!same(registry.network, network)) throw new OtherLaneError(`the validators, at ${client.server}, are of another network: give another node`);
    for (const until = Date.now() + PATIENCE_MS; ; await pause(PAUSE_MS)) {
      const anchor = await shown(client, registry);
      if (anchor) return anchor;
      if (Date.now() >= until) throw new UnprovedError(`no quorum of validators has signed a block yet, says the node at ${client.server}: try again later`);
    }
  } catch (error) {
    if (error instanceof ClientError) throw error;
    throw new UnprovedError(`the node at ${client.server} proves nothing: ${(error as Error).message}; give another node`);
  }
}

export type RegistrationBody = { epoch: number; member: number; keys: string[]; bls: { key: string; proof: string }[]; signature: string };

/** A registration as the interface and files have it. */
export function registrationOf(body: RegistrationBody): Registration {
  const bls = body.bls.map(({ key, proof }) => ({ key: fromHex(key), proof: fromHex(proof) }));
  const made = { epoch: BigInt(body.epoch), member: body.member, keys: body.keys.map(fromHex), bls, signature: fromHex(body.signature) };
  if (!sameRegistration(parsed(readRegistration, encodeRegistration(made)), made)) throw new Error("a registration is not as long as its fields say");
  return made;
}

export const sameRegistration = (one: Registration, other: Registration): boolean => same(encodeRegistration(one), encodeRegistration(other));

/** The same for a file. */
export const registrationBody = (of: Registration): unknown => ({
  epoch: of.epoch,
  member: of.member,
  keys: of.keys.map(idText),
  bls: of.bls.map(({ key, proof }) => ({ key: hex(key), proof: hex(proof) })),
  signature: hex(of.signature),
});

type Remembered = { network: string; epoch: number; keys: string[]; proved_ms: number };

/**
 * Asks an untrusted node, and believes what a quorum of validators has signed. It begins with the committee of an anchor, or with
 * the one that was proved from it before, and follows handovers no further than the stakes of that committee can be punished.
 */
export class Light {
  private shown: bigint;

  private constructor(
    private readonly client: Client,
    private readonly anchor: Anchor,
    private readonly memory: PurseFiles | null,
    private readonly chains: [Chain, ...Chain[]],
  ) {
    this.shown = chains[0].epoch;
  }

  static async of(client: Client, network: Uint8Array, anchor: Anchor, files: PurseFiles): Promise<Light> {
    const first: Chain = { network, schedule: anchor.schedule, epoch: anchor.epoch, keys: anchor.keys };
    if (isFixed(anchor.schedule)) return new Light(client, anchor, null, [first]);
    return new Light(client, anchor, files, [(await recalled(files, first)) ?? first]);
  }

  private async committee(epoch: bigint): Promise<Chain> {
    const [first] = this.chains;
    if (epoch > first.epoch + this.anchor.unbondingEpochs && !isFixed(this.anchor.schedule)) {
      throw new ProofError(
        `epoch ${epoch} is further from epoch ${first.epoch}, which is trusted, than stakes can be punished: \`walras pay trust --pin\` takes a newer start`,
      );
    }
    if (epoch < first.epoch) throw new ProofError(`epoch ${epoch} is before epoch ${first.epoch}, from which on validators are trusted`);
    for (let last = this.chains.at(-1) ?? first; last.epoch < epoch; last = this.chains.at(-1) ?? first) {
      const { handovers } = await this.client.ask<{ handovers: { handover: string }[] }>("/v1/handovers", { from: String(last.epoch + 1n) });
      if (handovers.length === 0) throw new ProofError(`no handover to epoch ${last.epoch + 1n} is shown`);
      for (const { handover } of handovers) this.chains.push(follow(readHandover(fromHex(handover)), this.chains.at(-1) ?? first));
    }
    if (epoch > this.shown) this.shown = epoch;
    return this.chains[Number(epoch - first.epoch)] ?? first;
  }

  /** The state root of a block, which its certificate proves. */
  private async state(height: number, body: CertificateBody): Promise<Uint8Array> {
    const certificate = readCertificate(new Reader(fromHex(body.certificate)));
    const signed = BigInt(height) + this.anchor.lag;
    if (body.height !== height || certificate.height !== signed) throw new ProofError("the certificate is of another block");
    verifyCertificate(certificate, await this.committee(epochOf(this.anchor.schedule, signed)));
    const state = fromHex(body.state_root);
    if (!same(certificate.outcome, outcomeOf(state, fromHex(body.receipts_root)))) throw new ProofError("the roots differ from the signed ones");
    return state;
  }

  /** What `tell` proves; waits while its block is not certified. */
  private async proved<T>(tell: () => Promise<T | null>): Promise<T> {
    const nothing = "the lane's keys are not proved, so nothing was sent";
    for (const until = Date.now() + PATIENCE_MS; ; await pause(PAUSE_MS)) {
      try {
        const told = await tell();
        if (told !== null) return told;
        if (Date.now() >= until) throw new UnprovedError(`${nothing}: no block is certified yet, says the node at ${this.client.server}`);
      } catch (error) {
        if (error instanceof RefusedError && error.code === "not_certified" && Date.now() < until) continue;
        if (error instanceof RefusedError) throw new UnprovedError(`${nothing}: ${error.message}`);
        if (error instanceof ClientError) throw error;
        throw new UnprovedError(`${nothing}: the node at ${this.client.server} does not show what the validators signed (${(error as Error).message}); give another node`);
      }
    }
  }

  /** The keys that the ledger has registered for lane epochs from `start` on. */
  async registrations(start: bigint): Promise<Registration[]> {
    type Body = { height: number; proof: string; registrations: RegistrationBody[]; certificate: CertificateBody };
    const found = await this.proved(async () => {
      const body = await this.client.ask<Body>("/v1/lane/registrations/proof", { from: String(start), certified: "true" });
      const told = body.registrations.map(registrationOf);
      checkEntries(await this.state(body.height, body.certificate), fromHex(body.proof), told);
      return told;
    });
    await this.remember();
    return found;
  }

  /** Moves to the committee of the newest certificate. */
  async followNewest(): Promise<void> {
    await this.proved(async () => {
      const status = await find<{ certified: number }>(this.client, "/v1/validator");
      if (!status) throw new ProofError("it is no validator's node, and shows no certificate");
      const height = status.certified - Number(this.anchor.lag);
      const body = height > 0 ? await find<CertificateBody>(this.client, `/v1/blocks/${height}/certificate`) : null;
      return body && this.state(height, body);
    });
    await this.remember();
  }

  private async remember(): Promise<void> {
    const [first] = this.chains;
    const newest = this.chains[Number(this.shown - first.epoch)] ?? first;
    const body = { epoch: newest.epoch, keys: newest.keys.map(idText), network: idText(newest.network), proved_ms: Date.now() };
    if (this.memory) await writeJson(this.memory, PROVED, body);
  }
}

async function recalled(files: PurseFiles, first: Chain): Promise<Chain | null> {
  if (!(await files.read(PROVED))) return null;
  const body = (await readJson(files, PROVED, FETCHED_AGAIN)) as Remembered;
  const kept = damaged(files, PROVED, FETCHED_AGAIN, () => ({ ...first, network: fromHex(body.network), epoch: BigInt(body.epoch), keys: keysOf(body.keys) }));
  if (!same(kept.network, first.network)) throw new PurseFileError(`${files.place}/${PROVED}`, `it is of another network: ${FETCHED_AGAIN}`);
  const age = Math.abs(Date.now() - body.proved_ms);
  if (age <= TRUST_PERIOD_MS) return kept;
  throw new UnprovedError(
    `the purse followed the chain's validators last ${Math.round(age / 86_400_000)} days ago, and keys of that time may have been sold since: \`walras pay trust --pin\` takes a newer start`,
  );
}

/** Follows the validators where they change, at most once a day: a purse that is used loses no trust with time. */
export async function keepFresh(client: Client, network: Uint8Array, anchor: Anchor, files: PurseFiles): Promise<void> {
  if (isFixed(anchor.schedule)) return;
  const body = (await files.read(PROVED)) ? ((await readJson(files, PROVED, FETCHED_AGAIN)) as Remembered) : null;
  if (body && Math.abs(Date.now() - body.proved_ms) < REFRESHED_MS) return;
  await (await Light.of(client, network, anchor, files)).followNewest();
}

/** Whether the state has exactly these registrations, each under its epoch and member. */
export function checkEntries(state: Uint8Array, proof: Uint8Array, told: Registration[]): void {
  const reader = new Reader(proof);
  const { root, parts } = readParts(reader);
  const [entries, rest] = [reader.take(32), reader.take(32)];
  const paths: Uint8Array[] = [];
  for (let left = reader.count(4); left > 0; left -= 1) paths.push(reader.take(reader.count(4)));
  reader.end();
  const escrow = parts.get(ESCROW);
  if (!same(root, state) || !escrow || !same(escrow, derived("walras 2026 bridge root v1", join(entries, rest)))) {
    throw new ProofError("the proof is for another state root");
  }
  if (paths.length !== told.length) throw new ProofError("it proves another number of registrations than it tells");
  told.forEach((one, at) => {
    const key = join(u64(one.epoch).reverse(), u8(7), u8(one.member), new Uint8Array(31));
    const found = prove(key, entries, paths[at] as Uint8Array);
    if (!found || !same(found, derived("walras 2026 lane bridge entry v1", encodeRegistration(one)))) {
      throw new ProofError(`the ledger has other keys of member ${one.member} in lane epoch ${one.epoch}`);
    }
  });
}
