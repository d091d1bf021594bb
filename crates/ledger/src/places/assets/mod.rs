//! Assets after the genesis: how one is listed on a running chain, and how one closes.
//!
//! # The protocol
//!
//! The genesis says who lists: nobody (*closed*), whoever pays (*priced*), or a vote of the validators (*voted*). A
//! vote can change that (`charter::proposals`). What an asset is stands in its record
//! ([`proofs::Asset`]), as ever. Beside it stand its *terms* ([`proofs::AssetTerms`]): how it was listed, and when it
//! closes. Every block is judged by the state before it.
//!
//! - Upon *ListAsset{symbol, decimals, control, least_units, supply_max, document, fees}*: the sender issues the asset
//!   from the next block on. `fees` must be exactly what a listing costs by the state before: the fees of the genesis,
//!   doubled for each whole eighth of `assets_max` that open listed assets take. They are burnt with the transaction's
//!   own fee. Whatever is refused costs nothing.
//! - *Number*: a block's listings get the next numbers, by rising id. If fewer fit than ask, the lowest ids get them
//!   and the others are refused. A sub-block holds two. The receipt tells the number ([`proofs::Outcome::Listed`]).
//! - *Name*: SYMBOL.NUMBER, at most six signs before the point, everywhere and never shortened. A symbol is refused if
//!   its name, with its number or without, could be taken for a plain one (`names`), whether that asset is open or
//!   closed.
//! - *Room*: closed assets aside, at most `assets_max` exist. Of resting offers those that sell listed assets take at
//!   most half, and those that sell one of them a sixteenth. Of pairs those with a listed asset take at most half, and
//!   those with one of them a sixteenth; of pools those with a listed asset take half (`room`).
//! - Upon *CloseAsset{asset, announce}* by its issuer, at height h: the asset *closes*, and h + notice is the last
//!   height that it trades at. From then on every new offer must end there or before. Upon *CloseAsset{asset, revoke}*
//!   below that height it stays. Of several words in a block that with the highest number counts.
//! - *Closed*, above the last height: no offer, exact order, issue, pool, share of a pool, deposit at a venue or way
//!   into the lane. It takes no part in batches, and has no price. After each batch from the last height on, the first
//!   65,536 of its resting offers return, by pair and place.
//! - *For ever* an asset is paid, burnt, redeemed from the lane, collected from venues, taken out of pools and moved as
//!   a token; offers are cancelled; fills of deposits settle. Its number and its name never return.
//!
//! Asset 0 pays fees and never closes.
//!
//! # Properties
//!
//! (`model` checks them for all short histories of listings and closings against an oracle that keeps lists of words.)
//!
//! - *Commute*: shuffling the transactions of a block changes neither numbers nor anything else.
//! - *One meaning*: a number and a name mean one asset for ever.
//! - *Price*: who lists pays what the listing says, or nothing.
//! - *Room*: listings never exceed `assets_max`; nothing that listed assets do takes the half of offers, pairs and
//!   pools that is left to others.
//! - *Supply*: no more than `supply_max` of an asset exist after any block.
//! - *Home*: whatever an asset's holders have locked in offers, pools, deposits or the lane comes home after it closes.
//! - *Warning*: an offer that was accepted is in the batches that its life promises, but for those that rest without an
//!   end when the closing is announced.
//! - *One state*: the same at all validators, whenever they start, also in the middle of a closing.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | a listing is held back until its price has doubled | it names its fees exactly, or nothing happens |
//! | a proposer lists before others, to get their number | numbers follow ids; nobody may use one before its receipt |
//! | USD, usd, U5D or USD.- beside USD; USD as number 17 beside a plain USD17 | refused by folded names |
//! | a symbol that somebody else listed | its number tells them apart, and it is never left out |
//! | junk fills `assets_max` | each eighth doubles the fees; closed ones leave their room |
//! | junk offers fill the book, and keep out others | half of it, and a sixteenth for each asset |
//! | dust that *buys* junk opens a pair with each of a thousand assets | pairs count whichever side is listed |
//! | junk pools take all places | half of them |
//! | several issues in a block exceed `supply_max` together | all of them are removed, as for the cap of all assets |
//! | an issuer closes to trap offers | thirty days; what rests returns; whoever placed may cancel before |
//! | an issuer announces and revokes each day | nothing happens to anybody but new offers that need an end, and each costs a fee |
//! | 2^25 offers return at one height | 65,536 a block; the others are in no batch meanwhile |
//! | who catches up does not know what returned | it follows from the state: terms and book |
//! | a contract trusted an address before it had a token | unlisted numbers revert, so no allowance is older than the listing |
//! | records of closed assets pile up | each has cost a listing; only what changed is hashed |
//!
//! # Deviations
//!
//! From the design of a network that lives for years:
//!
//! - *A listing names its fees.* The page has a price by the state alone: then who signs does not know what is paid.
//! - *A listed symbol is refused if it alone could be taken for a plain one*, though the number tells it apart:
//!   `USD.17` beside `USD` is what people fall for.
//! - *A symbol of a listing begins with a letter*, so that no name looks like a number.
//! - *Pairs count if either side is listed*, not the selling one alone: an offer that buys junk costs next to nothing.
//! - *Assets that a vote lists* have plain names, and numbers behind those that their block lists otherwise.
//! - *The lane* carries a listed asset once validators vote its terms there (`bridge::assets`).
//! - *Venues* list markets in a closed asset: they can trade what was deposited before, and no more can come.
//! - *A revocation* must count below the last height: at that height offers begin to return.
//! - *Controls are values of one byte*, of which programs before rules 17 decode `open` alone (`controls`).
//! - *Receipts list the valuation of every asset*, eight bytes each: 8 KiB of a block at 1,024 assets. Nobody signs
//!   them, but validators with older programs fetch receipts from newer ones, so another form must follow the rules of
//!   each height, as the forms of sub-blocks do. What is undone and what is hashed follow what changed alone. A block
//!   in which ten of 1,000 assets trade takes 1.05 to 1.09 times one with ten assets, by medians of three runs on a
//!   loaded machine (`many_assets` of the rules' tests). So there is no other form.
//!
//! # What every payment costs
//!
//! Nothing more: a number is compared with how many assets there are, as before. Offers look whether any asset closes,
//! which is a look at an empty map, and only then which; and whether a number is one of the genesis.

mod custody;
mod names;
mod room;

#[cfg(test)]
mod model;

use std::collections::BTreeMap;

use primitives::{
    Address, Amount, AssetControl, AssetId, AssetListing, Closing, Height, Life, MAX_ISSUED, PlainListing,
    TransactionId,
};
use proofs::{Asset, AssetTerms, ListedTerms, Pair, Refusal};

pub(crate) use custody::ListingEdit;
pub(crate) use names::are_alike;
use names::is_look_alike;
pub(crate) use room::Crowd;

use crate::places::charter::Coming;
use crate::terms::{ListingPolicy, ListingTerms};

/// Offers of closed assets that return after a batch.
pub const CLOSED_RETURNS: usize = 1 << 16;
/// A listing costs twice as much for each of so many parts of the room that listed assets take.
const PARTS: u64 = 8;

/// How assets were listed, and which close.
#[derive(Clone, Debug)]
pub struct Listings {
    terms: ListingTerms,
    /// Assets of the genesis: those with lower numbers.
    founded: u32,
    /// By number; an asset of the genesis that does not close has none.
    assets: BTreeMap<AssetId, AssetTerms>,
    /// The last heights of those that close or are closed; derived.
    closes: BTreeMap<AssetId, Height>,
}

impl Listings {
    pub(super) fn new(terms: ListingTerms, founded: usize) -> Listings {
        let founded = u32::try_from(founded).expect("fewer than 2^32 assets");
        Listings { terms, founded, assets: BTreeMap::new(), closes: BTreeMap::new() }
    }

    /// The terms of the genesis.
    pub fn terms(&self) -> &ListingTerms {
        &self.terms
    }

    /// Assets of the genesis: those with lower numbers.
    pub fn founded(&self) -> u32 {
        self.founded
    }

    /// Whether every asset is of the genesis, and none closes.
    pub fn is_empty(&self) -> bool {
        self.assets.is_empty()
    }

    /// What stands of an asset beside its record.
    pub fn get(&self, asset: AssetId) -> Option<&AssetTerms> {
        self.assets.get(&asset)
    }

    /// Whether an asset was listed after the genesis.
    pub fn is_listed(&self, asset: AssetId) -> bool {
        asset.0 >= self.founded
    }

    /// Whether either asset of a pair was listed after the genesis.
    pub(crate) fn touches(&self, pair: Pair) -> bool {
        self.is_listed(pair.sell) || self.is_listed(pair.buy)
    }

    /// What the issuer of an asset controls, if it was listed.
    pub(super) fn control(&self, asset: AssetId) -> AssetControl {
        self.get(asset).and_then(|terms| terms.listed).map_or(AssetControl::Open, |listed| listed.control)
    }

    /// The last height that an asset trades at, if it closes or is closed.
    pub fn closes(&self, asset: AssetId) -> Option<Height> {
        if self.closes.is_empty() { None } else { self.closes.get(&asset).copied() }
    }

    /// Whether an asset is closed at a height.
    pub fn is_closed(&self, asset: AssetId, height: Height) -> bool {
        self.closes(asset).is_some_and(|last| height > last)
    }

    /// Whether both assets of a pair trade at a height.
    pub fn trades(&self, pair: Pair, height: Height) -> bool {
        !self.is_closed(pair.sell, height) && !self.is_closed(pair.buy, height)
    }

    /// Whether any asset is closed at a height.
    pub(crate) fn has_closed(&self, height: Height) -> bool {
        self.closes.values().any(|last| height > *last)
    }

    /// Whether an asset may still be offered, issued and locked at a height.
    pub(crate) fn check_open(&self, asset: AssetId, height: Height) -> Result<(), Refusal> {
        if self.is_closed(asset, height) { Err(Refusal::ASSET_CLOSED) } else { Ok(()) }
    }

    /// Whether an offer with this life may be placed at a height.
    pub(crate) fn check_life(&self, pair: Pair, life: Life, height: Height) -> Result<(), Refusal> {
        for last in [pair.sell, pair.buy].into_iter().filter_map(|asset| self.closes(asset)) {
            match life {
                _ if height > last => return Err(Refusal::ASSET_CLOSED),
                Life::Rests => return Err(Refusal::OUTLIVES_ASSET),
                Life::Until(until) if until > last => return Err(Refusal::OUTLIVES_ASSET),
                Life::Until(_) | Life::OneBatch => {}
            }
        }
        Ok(())
    }

    /// The most units of an asset that may exist at one time.
    pub(crate) fn supply_max(&self, asset: AssetId) -> Amount {
        if self.is_listed(asset) { self.get(asset).map_or(MAX_ISSUED, AssetTerms::supply_max) } else { MAX_ISSUED }
    }

    /// Assets that are not closed at a height, of so many: all, and those that were listed.
    fn open(&self, assets: usize, height: Height) -> (usize, usize) {
        let closed = || self.closes.iter().filter(|(_, last)| height > **last);
        let listed = closed().filter(|(asset, _)| self.is_listed(**asset)).count();
        (assets - closed().count(), assets - self.founded as usize - listed)
    }

    /// How many of so many assets are open at a height, those of the genesis included.
    pub fn open_assets(&self, assets: usize, height: Height) -> usize {
        self.open(assets, height).0
    }

    /// How many assets there were after a height.
    pub fn assets_after(&self, height: Height) -> usize {
        let listed = self.assets.values().filter_map(|terms| terms.listed);
        self.founded as usize + listed.filter(|listed| listed.height <= height).count()
    }

    /// Assets that may still be listed at a height, beside so many.
    pub(crate) fn room(&self, assets: usize, height: Height) -> usize {
        (self.terms.assets_max as usize).saturating_sub(self.open(assets, height).0)
    }

    /// Fees that a listing costs at a height, beside so many assets.
    pub fn fees(&self, assets: usize, height: Height) -> u64 {
        let parts = self.open(assets, height).1 as u64 * PARTS / u64::from(self.terms.assets_max.max(1));
        self.terms.fees << parts.min(PARTS)
    }

    /// Checks a listing at a height beside these assets, and beside plain names that wait; `least_units` is the minimum
    /// that the chain's band permits.
    pub(crate) fn check_listing(
        &self,
        listing: &AssetListing,
        (assets, coming): (&[Asset], &[&str]),
        least_units: Amount,
        height: Height,
    ) -> Result<(), Refusal> {
        let next = assets.len() as u32;
        let (founded, listed) = assets.split_at(self.founded as usize);
        let is_alike = |plain: &str| is_look_alike(&listing.symbol, plain, next);
        let mut voted = listed.iter().map(|asset| asset.symbol.as_str()).filter(|name| is_plain(name));
        match () {
            _ if self.terms.policy != ListingPolicy::Priced => Err(Refusal::NO_LISTINGS),
            _ if listing.least_units < least_units => Err(Refusal::LISTED_LEAST_UNITS),
            _ if founded.iter().any(|asset| is_alike(&asset.symbol)) => Err(Refusal::LOOK_ALIKE),
            _ if voted.any(is_alike) || coming.iter().any(|plain| is_alike(plain)) => Err(Refusal::LOOK_ALIKE),
            _ if self.room(assets.len(), height) <= coming.len() => Err(Refusal::TOO_MANY_ASSETS),
            _ if listing.fees != self.fees(assets.len(), height) => Err(Refusal::LISTING_FEES),
            _ => Ok(()),
        }
    }

    /// Checks at a height an asset that a vote lists beside these assets, and beside plain names that wait.
    pub(crate) fn check_plain(
        &self,
        listing: &PlainListing,
        (assets, coming): (&[Asset], &[&str]),
        least_units: Amount,
        height: Height,
    ) -> Result<(), Refusal> {
        let is_alike = |name: &str| are_alike(&listing.symbol, name);
        match () {
            _ if self.terms.policy != ListingPolicy::Voted => Err(Refusal::NOT_LISTED_BY_VOTE),
            _ if listing.least_units < least_units => Err(Refusal::LISTED_LEAST_UNITS),
            _ if assets.iter().any(|asset| is_alike(&asset.symbol)) => Err(Refusal::LOOK_ALIKE),
            _ if coming.iter().any(|name| is_alike(name)) => Err(Refusal::LOOK_ALIKE),
            _ if self.room(assets.len(), height) <= coming.len() => Err(Refusal::TOO_MANY_ASSETS),
            _ => Ok(()),
        }
    }

    /// Checks what an issuer says at a height about the end of its asset.
    pub(crate) fn check_closing(&self, asset: AssetId, closing: Closing, height: Height) -> Result<(), Refusal> {
        match (closing, self.closes(asset)) {
            _ if asset.0 == 0 => Err(Refusal::FIRST_ASSET),
            (Closing::Announce, Some(_)) => Err(Refusal::CLOSES_ALREADY),
            (Closing::Announce, None) => Ok(()),
            (Closing::Revoke, None) => Err(Refusal::NOT_CLOSING),
            (Closing::Revoke, Some(last)) if height >= last => Err(Refusal::CLOSES_NOW),
            (Closing::Revoke, Some(_)) => Ok(()),
        }
    }

    /// Writes what an issuer says, in a block of this height.
    pub(super) fn close(&mut self, asset: AssetId, closing: Closing, height: Height) {
        let closes = (closing == Closing::Announce).then(|| height.saturating_add(self.terms.notice));
        let listed = self.get(asset).and_then(|terms| terms.listed);
        self.set(asset, AssetTerms { listed, closes });
    }

    /// Lists what a block's accepted listings ask for, by rising id; returns the records, the first of them with this
    /// number.
    pub(super) fn list(&mut self, next: usize, mut asked: Vec<AskedListing<'_>>, height: Height) -> Vec<Asset> {
        asked.sort_unstable_by_key(|asked| asked.id);
        let record = |(number, asked): (u32, &AskedListing)| {
            let AssetListing { decimals, control, least_units, supply_max, document, .. } = *asked.listing;
            let asset = AssetId(number);
            let listed = Some(ListedTerms { height, control, supply_max, document });
            self.set(asset, AssetTerms { listed, closes: None });
            let (symbol, issuer) = (asked.listing.name(asset), asked.sender);
            Asset { symbol, decimals, issuer, least_units, issued: 0, valuation: None }
        };
        (next as u32..).zip(&asked).map(record).collect()
    }

    /// What validators have voted acts from the next height on: terms, assets behind those that the block `listed`, and
    /// ends, unless the issuer has announced an earlier one. Returns the assets that close.
    pub(super) fn enter(
        &mut self,
        coming: &Coming,
        before: &[Asset],
        listed: &mut Vec<Asset>,
        height: Height,
    ) -> Vec<AssetId> {
        self.terms = coming.values.listings(self.terms);
        for plain in &coming.lists {
            let PlainListing { issuer, decimals, control, least_units, supply_max, document, .. } = *plain;
            // The block that the vote passed in may have listed the name with its number as its end.
            if before.iter().chain(&*listed).any(|asset| are_alike(&asset.symbol, &plain.symbol)) {
                continue;
            }
            let number = AssetId((before.len() + listed.len()) as u32);
            let terms = ListedTerms { height, control, supply_max, document };
            self.set(number, AssetTerms { listed: Some(terms), closes: None });
            let symbol = plain.symbol.clone();
            listed.push(Asset { symbol, decimals, issuer, least_units, issued: 0, valuation: None });
        }
        let stays = |asset: &AssetId| self.closes(*asset).is_none();
        let closes: Vec<AssetId> = coming.closes.iter().copied().filter(stays).collect();
        closes.iter().for_each(|asset| self.close(*asset, Closing::Announce, height));
        closes
    }

    fn set(&mut self, asset: AssetId, terms: AssetTerms) {
        match terms.closes {
            Some(last) => self.closes.insert(asset, last),
            None => self.closes.remove(&asset),
        };
        match terms == AssetTerms::default() {
            true => self.assets.remove(&asset),
            false => self.assets.insert(asset, terms),
        };
    }
}

/// Whether a name is one without a number: that of a listing that was paid for has a point.
fn is_plain(name: &str) -> bool {
    !name.contains('.')
}

/// An accepted listing of a block.
pub(crate) struct AskedListing<'a> {
    pub id: TransactionId,
    pub sender: Address,
    pub listing: &'a AssetListing,
}
