/**
 * The lane of a purse: pinned when the purse is made, so that no node can substitute other validators later; and what was learned
 * about its epochs, each with the ledger's proof.
 */
import type { Client } from "../client.js";
import { RefusedError, UnknownAssetError } from "../errors.js";
import { type Committee, type Registration, quorums, seated, verifyRegistration, withBoard } from "../lane/committee.js";
import { Refused, hex, same } from "../lane/layout.js";
import type { Rules } from "../lane/payment.js";
import { fromHex } from "../typed.js";
import type { Rule } from "./choose.js";
import { OtherLaneError, PurseError, PurseFileError, UnprovedError } from "./errors.js";
import { FETCHED_AGAIN, type PurseFiles, RESTORE, damaged, readJson, writeJson } from "./files.js";
import { Money, type TermsBody, ToldTerms } from "./terms.js";
import {
  Light,
  type PinnedTrust,
  type RegistrationBody,
  type Trust,
  keepFresh,
  keysOf,
  knownAnchor,
  pinnedTrust,
  readTrust,
  registrationBody,
  registrationOf,
  sameRegistration,
  trustOfNode,
} from "./trust.js";

export const LANE = "lane.json";
export const EPOCHS = "proved-epochs.json";
export const BOARDS = "boards.json";
/** The terms of assets that a node told last. */
export const TERMS = "terms.json";
/** Number of epochs whose keys are kept: those whose receipts may still have value, and some more. */
const EPOCHS_KEPT = 16n;

type PinnedMoney = { asset: number; symbol: string; decimals: number; least_units: number | bigint | string; fee: number | bigint | string };
export type PinnedLane = { network: string; members: string[][]; registrars?: string[]; assets: PinnedMoney[]; validators?: PinnedTrust };
type LaneBody = {
  network: string;
  epoch: number;
  heights_left: number;
  halted: boolean;
  members: string[][];
  registrars: string[];
  registrations: RegistrationBody[];
  group_keys: number[];
  addresses: string[][];
  assets: { asset: string; least_units: string; fee: string }[];
  terms?: TermsBody[];
};

/** The state of the lane, as a node tells it. `hasShards` says whether the node knows where they are. */
export type LaneNow = { epoch: bigint; heightsLeft: number; halted: boolean; hasShards: boolean };

/** What a new purse may hold a node to. */
export type Expected = { network?: string; validators?: string[] };

/** The constants of a lane, and the proved keys of its epochs. */
export class LaneNetwork {
  readonly id: Uint8Array;
  private readonly assets: Money[];
  readonly trust: Trust;
  private readonly members: Uint8Array[][];
  private readonly registrars: Uint8Array[];
  private keys = new Map<string, Registration>();
  private boards = new Map<bigint, string>();
  private readonly committees = new Map<bigint, Committee>();
  private told = new ToldTerms([]);
  private files: PurseFiles | null = null;

  constructor(readonly pinned: PinnedLane) {
    this.id = fromHex(pinned.network);
    this.members = pinned.members.map(keysOf);
    this.registrars = (pinned.registrars ?? []).map(fromHex);
    this.assets = pinned.assets.map((of) => new Money(of.asset, of.symbol, of.decimals, BigInt(of.least_units), BigInt(of.fee)));
    this.trust = readTrust(pinned.validators);
    const fits = this.registrars.length === 0 || this.registrars.length === this.members.length;
    if (this.id.length !== 32 || !fits || this.members.length < 1 || this.members.length > 256) {
      throw new Error("a lane has an identity of 32 bytes and 1 to 256 members, all or none with registrars");
    }
  }

  /** The lane of a node, which is trusted with what is not given. */
  static async ofNode(client: Client, { network, validators }: Expected): Promise<LaneNetwork> {
    const body = await client.ask<LaneBody>("/v1/lane");
    if (network !== undefined && !same(fromHex(body.network), fromHex(network))) {
      throw new OtherLaneError(`the node at ${client.server} has the lane ${body.network}, not ${network}: give another node`);
    }
    const trust = await trustOfNode(client, fromHex(body.network));
    const told = trust === "solo" ? [] : knownAnchor(trust).keys.map(hex);
    if (validators !== undefined && told.join() !== validators.map((key) => hex(fromHex(key))).join()) {
      throw new OtherLaneError(`the node at ${client.server} shows other validators than those given: give another node`);
    }
    const listed = await client.assets();
    const assets = body.assets.map(({ asset, least_units, fee }) => {
      const { number, symbol, decimals } = listed.get(asset);
      return { asset: number, symbol, decimals, least_units, fee };
    });
    const { members, registrars } = body;
    return new LaneNetwork({ network: body.network, members, registrars, assets, validators: pinnedTrust(trust) as PinnedTrust });
  }

  static async read(files: PurseFiles): Promise<LaneNetwork> {
    const body = (await readJson(files, LANE)) as PinnedLane;
    const network = damaged(files, LANE, RESTORE, () => new LaneNetwork(body));
    await network.recall(files);
    await network.recallTerms(files);
    return network;
  }

  write(files: PurseFiles): Promise<void> {
    const assets = this.pinned.assets.map((of) => ({ ...of, least_units: BigInt(of.least_units), fee: BigInt(of.fee) }));
    return writeJson(files, LANE, { ...this.pinned, assets });
  }

  private async recall(files: PurseFiles): Promise<void> {
    this.files = files;
    if (await files.read(EPOCHS)) {
      const told = (await readJson(files, EPOCHS, FETCHED_AGAIN)) as RegistrationBody[];
      damaged(files, EPOCHS, FETCHED_AGAIN, () => told.map(registrationOf).forEach((one) => this.admit(one)));
    }
    if (await files.read(BOARDS)) {
      const boards = (await readJson(files, BOARDS, FETCHED_AGAIN)) as Record<string, string>;
      this.boards = damaged(files, BOARDS, FETCHED_AGAIN, () => new Map(Object.entries(boards).map(([epoch, board]) => [BigInt(epoch), board])));
    }
  }

  private async recallTerms(files: PurseFiles): Promise<void> {
    if (!(await files.read(TERMS))) return;
    const told = (await readJson(files, TERMS, FETCHED_AGAIN)) as TermsBody[];
    this.told = damaged(files, TERMS, FETCHED_AGAIN, () => new ToldTerms(told));
  }

  private admit(one: Registration): void {
    verifyRegistration(one, this.id, this.registrars);
    const place = `${one.epoch} ${one.member}`;
    if (!this.keys.has(place)) this.keys.set(place, one);
    this.committees.delete(one.epoch);
  }

  /** The assets that are known, on their newest terms: those that were pinned, and those that a node told since. */
  get carried(): Money[] {
    const told = this.told.assets();
    return [...told, ...this.assets.filter(({ asset }) => told.every((one) => one.asset !== asset))];
  }
  /** Least output and fee of an asset for payments of a home. */
  rule(asset: number, home: bigint): Rule {
    const { least, fee } = this.told.rule(asset, home) ?? this.numbered(asset);
    return { least, fee };
  }
  /** What the members of a home check. */
  rules(home: bigint): Rules {
    return { network: this.id, assets: new Map(this.carried.map(({ asset }) => [asset, this.rule(asset, home)])) };
  }

  checkDeposit(money: Money, units: bigint, epoch: bigint): void {
    if (!this.told.takesDeposits(money.asset, epoch)) {
      throw new PurseError(
        `the lane takes no deposits of ${money.symbol} in this lane epoch: nothing was sent; what is in it can be paid and redeemed`,
      );
    }
    const { least } = this.rule(money.asset, epoch);
    if (units < least) throw new PurseError(`a deposit of this asset has at least ${this.shown(money.asset, least)}: nothing was sent`);
  }

  /** The asset with a symbol. */
  money(symbol: string): Money {
    const found = this.carried.find((money) => money.symbol === symbol);
    if (found) return found;
    throw new UnknownAssetError(`the lane carries no asset ${JSON.stringify(symbol)}; there are ${this.carried.map((money) => money.symbol).join(", ")}`);
  }
  numbered(asset: number): Money {
    return this.carried.find((money) => money.asset === asset) ?? new Money(asset, `asset ${asset}`, 0, 1n, 0n);
  }
  shown(asset: number, units: bigint): string {
    const money = this.numbered(asset);
    return `${money.amount(units)} ${money.symbol}`;
  }

  private of(epoch: bigint): Registration[] {
    return [...this.keys.values()].filter((one) => one.epoch === epoch);
  }

  /** The committee of an epoch; null if the keys of a quorum are not proved. */
  readonly committee = (epoch: bigint): Committee | null => {
    const isFirst = epoch === 0n || this.registrars.length === 0;
    if (!isFirst && this.of(epoch).length < quorums(this.registrars.length).certificate) return null;
    const found = this.committees.get(epoch) ?? this.seat(epoch);
    this.committees.set(epoch, found);
    return found;
  };

  private plain(epoch: bigint): Committee {
    if (epoch !== 0n && this.registrars.length > 0) return seated(this.id, epoch, this.registrars, this.of(epoch));
    return { network: this.id, epoch, keys: this.members, bls: this.members.map(() => []), group: null };
  }

  private seat(epoch: bigint): Committee {
    const [plain, board] = [this.plain(epoch), this.boards.get(epoch)];
    try {
      return board === undefined ? plain : withBoard(plain, fromHex(board));
    } catch {
      // A file may be damaged: without a group key aggregates are used.
      return plain;
    }
  }

  /** Asks a node of this lane how it is, and learns terms of assets, and the keys of epochs with their proofs. */
  async learn(client: Client): Promise<LaneNow> {
    const body = await client.ask<LaneBody>("/v1/lane");
    const constants = (of: { network: string; members: string[][]; registrars?: string[] }) =>
      JSON.stringify([of.network, of.members, of.registrars ?? []]).toLowerCase();
    if (constants(body) !== constants(this.pinned)) {
      throw new OtherLaneError(`the node at ${client.server} has another lane than this purse, or other keys: nothing was sent; give another node`);
    }
    await this.learnTerms(client, body.terms ?? []);
    await this.learnKeys(client, body);
    await this.learnBoards(client, body);
    return { epoch: BigInt(body.epoch), heightsLeft: body.heights_left, halted: body.halted, hasShards: body.addresses.length > 0 };
  }

  /** Takes the terms that a node tells, if it calls assets as before. Nodes of older versions tell none. */
  private async learnTerms(client: Client, bodies: TermsBody[]): Promise<void> {
    if (bodies.length === 0 || JSON.stringify(bodies) === JSON.stringify(this.told.bodies)) return;
    const told = new ToldTerms(bodies);
    const other = told.renamed(this.carried);
    if (other) {
      throw new OtherLaneError(
        `the node at ${client.server} calls asset ${other.asset} ${JSON.stringify(other.symbol)} with ${other.decimals} decimals, and this purse knows another name for it, or another asset of this name: nothing was sent; give another node`,
      );
    }
    if (this.files) await writeJson(this.files, TERMS, bodies);
    this.told = told;
  }

  private async learnKeys(client: Client, body: LaneBody): Promise<void> {
    const { trust, files } = this;
    if (files && trust !== null && trust !== "solo") await keepFresh(client, this.id, trust, files);
    const now = BigInt(body.epoch);
    const told = body.registrations.map(registrationOf).filter((one) => one.epoch <= now);
    const other = `the keys of the lane, at ${client.server}, are not those that the ledger has: give another node`;
    const isKnown = (one: Registration) => this.keys.has(`${one.epoch} ${one.member}`);
    const unknown = told.filter((one) => !isKnown(one)).map((one) => one.epoch);
    if (unknown.length > 0) {
      const first = unknown.reduce((least, epoch) => (epoch < least ? epoch : least));
      const proved = trust === "solo" ? told : await this.proved(client, first);
      try {
        for (const one of proved) if (one.epoch <= now) this.admit(one);
      } catch (error) {
        if (error instanceof Refused) throw new UnprovedError(`${other} (${error.message})`);
        throw error;
      }
      await this.keepKeys();
    }
    const epochs = new Set([...this.keys.values()].map((one) => one.epoch));
    const isOther = (one: Registration) => {
      const known = this.keys.get(`${one.epoch} ${one.member}`);
      return epochs.has(one.epoch) && !(known && sameRegistration(known, one));
    };
    if (told.some(isOther)) throw new UnprovedError(other);
  }

  private async proved(client: Client, first: bigint): Promise<Registration[]> {
    if (!this.files) throw new PurseFileError("purse", "it is not open: nothing was asked");
    return (await Light.of(client, this.id, knownAnchor(this.trust), this.files)).registrations(first);
  }

  private async keepKeys(): Promise<void> {
    const sorted = [...this.keys.entries()].sort(([, one], [, other]) => Number(one.epoch - other.epoch) || one.member - other.member);
    const last = sorted.at(-1)?.[1].epoch ?? 0n;
    this.keys = new Map(sorted.filter(([, one]) => one.epoch + EPOCHS_KEPT >= last));
    if (this.files) await writeJson(this.files, EPOCHS, [...this.keys.values()].map(registrationBody));
  }

  /** Learns group keys of epochs that have begun. The node cannot invent one: members have signed their dealings. */
  private async learnBoards(client: Client, body: LaneBody): Promise<void> {
    const fresh = body.group_keys.filter((epoch) => epoch <= body.epoch).map(BigInt).filter((epoch) => !this.boards.has(epoch));
    for (const epoch of fresh) {
      const board = await boardOf(client, epoch);
      // The board may be discarded by now; without it aggregates are used.
      if (board === null) continue;
      try {
        this.committees.set(epoch, withBoard(this.plain(epoch), fromHex(board)));
      } catch (error) {
        throw new UnprovedError(`the group key of lane epoch ${epoch}, at ${client.server}, is not that of its members (${(error as Error).message}): give another node`);
      }
      this.boards.set(epoch, board);
    }
    if (fresh.length === 0 || !this.files) return;
    const last = [...this.boards.keys()].reduce((most, epoch) => (epoch > most ? epoch : most), 0n);
    this.boards = new Map([...this.boards].filter(([epoch]) => epoch + EPOCHS_KEPT >= last));
    await writeJson(this.files, BOARDS, Object.fromEntries(this.boards));
  }
}

async function boardOf(client: Client, epoch: bigint): Promise<string | null> {
  try {
    return (await client.ask<{ board: string }>(`/v1/lane/boards/${epoch}`)).board.replace(/^0x/, "");
  } catch (error) {
    if (error instanceof RefusedError) return null;
    throw error;
  }
}
