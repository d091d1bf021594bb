/**
 * Holders of assets whose issuers control them, on chains since rules 17: what they may do, and what an issuer says of them.
 * What an issuer controls is fixed when its asset is listed.
 */
import type { Amount } from "./assets.js";
import type { Holder } from "./bodies.js";
import type { Committee } from "./certificate.js";
import { plainAddress, type Operation } from "./encoding.js";
import type { Fate } from "./models.js";
import type { ProvedHolder } from "./proof.js";
import { referenceBytes, referenceOf, type PaymentReference } from "./references.js";
import type { Session } from "./session.js";
import type { SendOptions } from "./sending.js";

/** Why, such as the number of a case: it is public for ever, so no personal data. */
type Grounds = PaymentReference | string;
type Send = (operation: Operation, options: SendOptions) => Promise<Fate>;

const said = (grounds: Grounds) => {
  const reference = referenceOf(grounds);
  return { referenceKind: reference.kind, reference: referenceBytes(reference) };
};

/** `client.holders`: to say something of a holder, the client's account issues the asset. */
export class Holders {
  constructor(
    private readonly session: Session,
    private readonly send: Send,
  ) {}

  /** What an account may do with an asset, as the node says. */
  standing(asset: string, holder: string): Promise<Holder> {
    return this.session.holder(asset, holder);
  }
  /** The same with a proof; with a committee, in a state that its quorum signed. */
  proved(asset: string, holder: string, committee: Committee | null = null): Promise<ProvedHolder> {
    return this.session.provedHolder(asset, holder, committee);
  }

  private async say(symbol: string, holder: string, state: "frozen" | "open", grounds: Grounds, options: SendOptions): Promise<Fate> {
    const [asset, account] = [(await this.session.assets(symbol)).get(symbol), plainAddress(holder)];
    return this.send({ kind: "SetHolder", asset: asset.number, holder: account, state, ...said(grounds) }, options);
  }

  /**
   * Freezes a holder: from the next block on it neither spends, buys nor receives the asset; its offers end and its shares of
   * pools are paid out to it. At venues the freeze counts after their delay.
   */
  freeze(asset: string, holder: string, grounds: Grounds, options: SendOptions = {}): Promise<Fate> {
    return this.say(asset, holder, "frozen", grounds, options);
  }
  /** Admits a holder to an asset that is for admitted holders, or opens one that was frozen. */
  admit(asset: string, holder: string, grounds: Grounds, options: SendOptions = {}): Promise<Fate> {
    return this.say(asset, holder, "open", grounds, options);
  }
  /** Moves units of a holder who has been frozen for 86,400 heights to the issuer, or to an open holder. */
  async recover(symbol: string, holder: string, amount: Amount, grounds: Grounds, { to, ...options }: SendOptions & { to?: string } = {}): Promise<Fate> {
    const asset = (await this.session.assets(symbol)).get(symbol);
    const [from, receiver] = [plainAddress(holder), plainAddress(to ?? asset.body.issuer)];
    return this.send({ kind: "Recover", asset: asset.number, from, to: receiver, amount: asset.units(amount), ...said(grounds) }, options);
  }
  /** Collects all that such a holder has at a venue, for the holder: then it can be recovered. */
  async recall(symbol: string, holder: string, venue: number, options: SendOptions = {}): Promise<Fate> {
    const [asset, account] = [(await this.session.assets(symbol)).get(symbol), plainAddress(holder)];
    return this.send({ kind: "VenueRecall", venue, asset: asset.number, holder: account }, options);
  }
}
