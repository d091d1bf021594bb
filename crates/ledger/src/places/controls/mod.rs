//! Issuer controls: whom the issuer of an asset freezes, whom it admits, and what it recovers.
//!
//! # The protocol
//!
//! What an issuer controls is fixed when its asset is listed, or by the genesis: it *freezes* holders (F). It may also
//! *admit* them (A): then nobody else holds the asset. It may also *recover* units of those frozen for long (C). Asset
//! 0 is open. An issuer is exempt from its own controls. Every block is judged by the state before it.
//!
//! A holder of a controlled asset is *open* or *frozen*. Who was never mentioned is open, but frozen if the asset is
//! for admitted holders.
//!
//! - Upon *SetHolder{asset, account, state, reference}* by the issuer: from the next block on the holder is so. Of
//!   several in a block for one holder that with the highest number counts. To say what is so already changes nothing,
//!   and restarts no wait.
//! - Upon a freeze, after the batch of its block and before its contract phase: the holder's resting offers of the
//!   asset end, and its shares of pools with the asset are paid out in both assets. No fill of that block changes.
//! - Upon any operation that *spends* or *buys* a controlled asset, or *sends* it: the sender, and whoever receives,
//!   must be open (`block::uses`). Cancels, leaving pools and collections always work: they bring one's own custody
//!   home.
//! - Upon *Recover{asset, from, to, amount, reference}* by the issuer: units of a holder who has been frozen for
//!   [`RECOVERY_WAIT`] heights move to the issuer or to an open holder. The holder must have them by the state before.
//!   Of several in a block for one holder that with the highest number counts.
//! - Upon *Recall{venue, asset, account}* by the issuer: all that such a holder has at a venue is collected for the
//!   holder, with a collection that waits, whose time begins anew.
//!
//! | place | what a freeze does |
//! |---|---|
//! | resting offers | end after the batch of its block; at most [`HELD_OFFERS_MAX`] rest of an account and a controlled asset |
//! | pools | shares leave after that batch, at the reserves after it |
//! | contracts | the contract phase of its block has the new bits, which are constant in it |
//! | venues | fills of the holder bust once the freeze is *past*, or at once if it was never admitted; so do all fills of its own venues |
//! | payment lane | has no controlled assets: its outputs are bearer money |
//!
//! A token's `transfer` needs both sides open, and `transferFrom` a caller whom no record freezes. The owner of a venue
//! takes its fees, so it must be open to list a market, and is a party to each fill.
//!
//! # Properties
//!
//! (`model` checks them for all short histories against an oracle that keeps lists of words.)
//!
//! - *No option*: no fill changes in the block of a freeze, nor at a venue until the freeze is past.
//! - *No rest*: after the block of a freeze the holder has no offer of the asset and no share of a pool with it.
//! - *Home*: whatever a frozen holder has in offers, pools or venues comes home; nothing is lost or stuck.
//! - *No stranger delays a freeze*: a freeze that ends nothing is never refused for what others do.
//! - *Recovery*: takes exactly what it names, of nobody who was not frozen for the whole wait.
//! - *Open assets*: cost no look-up.
//! - *Commute*: shuffling the transactions of a block changes nothing.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | an issuer freezes a trader to escape a batch that it dislikes | the batch is cleared before the freeze acts |
//! | it freezes a counterparty to bust fills of the last seconds | a freeze counts at venues once it is past |
//! | a frozen holder sells by offers that rest | they end with the block of the freeze |
//! | by an offer that a contract places in that block | the contract phase has the new bits |
//! | by a friend who buys the asset out of a pool, while the holder leaves with the other asset | shares leave at once |
//! | by its trading key at a venue | fills bust, nobody is guilty, so that no friend is paid for them |
//! | by a venue of its own, as fees | the owner is a party to each fill |
//! | by an allowance | `transferFrom` asks for all three |
//! | by a contract that holds for many | the contract is a holder, and is frozen with all its users |
//! | by a fresh account in each block | admission answers it, freezing does not: receivers must be admitted |
//! | an account rests a million offers, so that its freeze is a heavy block | at most 4,096, and a bound for each sub-block |
//! | strangers' freezes use up that bound | a freeze that ends nothing counts for nothing; each offer paid its fees |
//! | many pools, so that looking for shares is dear | shares are found by account |
//! | a thief of the issuer's key recovers everybody's units | it must freeze first, in public, and wait a day |
//! | a thief of a session key silences a currency | it freezes only, and as many holders as its cap has units |
//! | a thief with such a key freezes again and again, so that no recovery ripens | what is so already restarts nothing |
//! | a recovery beside the holder's own payment overdraws | a holder frozen before the block pays nothing |
//! | a holder moves its balance to venues to escape recovery | the issuer recalls it |
//! | a recovery is sent twice, by retry or for two requests | once for each holder and block, and never more than is there |
//! | units are recovered to an account that the asset does not permit | the receiver must be the issuer, or open |
//! | an issuer freezes, recovers and opens at once | the wait; everybody sees the freeze before |
//! | an issuer freezes itself out, or a reserved address | refused |
//! | controls are added to an asset that people hold | they are fixed at the listing |
//! | the lane carries a controlled asset to unknown keys | the genesis refuses it, and so do votes on terms of the lane |
//! | frozen pools deadlock, as elsewhere | what brings home needs nobody's consent |
//! | a venue is told late of a freeze | it has D heights and τ, as for a revocation |
//! | a never admitted holder is "frozen" to be open at venues until that is past | the record says that it was not open |
//!
//! # Deviations
//!
//! From the design of a network that lives for years:
//!
//! - *Recover names units that the holder has*, instead of taking fewer if there are fewer. The balance of a frozen
//!   holder falls by recoveries alone, so the receipt then says what moved.
//! - *Recall is an operation at a venue*, with the others that change its records.
//! - *A freeze that says what is so changes nothing*: else who can freeze could put off recoveries for ever.
//! - *Open offers are counted by the state before*, as the whole book is: an account exceeds the bound by the offers of
//!   one block, which its 64 numbers bound. Contracts are counted in the same way, bounded by gas.
//! - *F8 is judged before the other rules of a fill but the first*: else a frozen trader's empty deposit would pay a
//!   friend for the bust.
//! - *References are required.* Whoever is frozen wants to know why.
//! - *A pool counts what a freeze ends when it admits it*, and the rule when the block comes. A holder who has rested
//!   more offers meanwhile can have the freeze refused as over the quota; it is sent again.
//!
//! # What a payment costs
//!
//! Of an asset that is open: a comparison of its number. Of a controlled asset two look-ups, the sender and the
//! receiver.

mod custody;
mod held;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use primitives::{Address, AssetControl, AssetId, Height, HolderRecovery, HolderState};
use proofs::{ControlledAsset, HolderRecord, Refusal};

use super::contracts::reserved::is_reserved;
use super::shared_map::SharedMap;

pub(crate) use custody::HolderEdit;
pub(crate) use held::HeldOffers;

/// Heights that a holder is frozen before units are recovered: a day of blocks of a second.
pub const RECOVERY_WAIT: Height = 86_400;
/// The most open offers of an account that sell or buy one controlled asset.
pub const HELD_OFFERS_MAX: u32 = 4_096;
/// Offers and holdings of pools that the freezes of a sub-block may end.
pub const FREEZE_ENDS_PER_SUB_BLOCK: u32 = 32_768;

#[cfg(test)]
thread_local! {
    /// How often this thread has looked for a record.
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A holder of an asset: the account may be any.
pub(crate) type HolderId = (AssetId, Address);

/// What may be done with an asset at an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderStanding {
    /// Everything.
    Open,
    /// Nothing: the issuer has frozen it.
    Frozen,
    /// Nothing: the issuer has never admitted it.
    NotAdmitted,
}

/// An asset with what its issuer controls of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Controlled {
    control: AssetControl,
    issuer: Address,
}

/// What issuers control, and whom they have frozen or admitted.
#[derive(Clone, Debug, Default)]
pub struct Controls {
    /// By number of the asset, up to the last controlled one.
    assets: Vec<Controlled>,
    holders: SharedMap<HolderId, HolderRecord>,
}

impl Controls {
    /// Whether no asset of the chain is controlled.
    pub fn is_empty(&self) -> bool {
        self.assets.is_empty()
    }

    /// What the issuer of an asset controls.
    pub fn control(&self, asset: AssetId) -> AssetControl {
        self.assets.get(asset.0 as usize).map_or(AssetControl::Open, |one| one.control)
    }

    /// The controlled assets, by number.
    pub fn assets(&self) -> Vec<ControlledAsset> {
        let all = (0..).map(AssetId).zip(&self.assets);
        all.filter(|(_, one)| one.control.freezes()).map(|(asset, one)| (asset, one.control)).collect()
    }

    /// What an issuer has said of a holder.
    pub fn record(&self, asset: AssetId, account: &Address) -> Option<&HolderRecord> {
        #[cfg(test)]
        LOOKS.with(|looks| looks.set(looks.get() + 1));
        self.holders.get(&(asset, *account))
    }

    /// The account that issues a controlled asset; `None` for one that is open.
    pub fn issuer(&self, asset: AssetId) -> Option<Address> {
        self.assets.get(asset.0 as usize).filter(|one| one.control.freezes()).map(|one| one.issuer)
    }

    /// The holders of whom another state of the same chain says something else, in no order. What two states share is
    /// not looked at, so that it takes no longer than the blocks between them.
    pub fn changes_since(&self, before: &Controls) -> Vec<(AssetId, Address)> {
        self.holders.differences(&before.holders)
    }

    /// All that issuers have said of holders.
    pub fn holders(&self) -> impl Iterator<Item = (&(AssetId, Address), &HolderRecord)> {
        self.holders.iter()
    }

    /// What may be done with an asset at an account.
    pub fn standing(&self, asset: AssetId, account: &Address) -> HolderStanding {
        let Some(one) = self.controlled(asset, account) else { return HolderStanding::Open };
        match self.record(asset, account) {
            Some(record) if record.is_open => HolderStanding::Open,
            Some(_) => HolderStanding::Frozen,
            None if one.control.admits() => HolderStanding::NotAdmitted,
            None => HolderStanding::Open,
        }
    }

    /// Whether a fill at a venue may move an asset of an account; `is_past` tells whether what happened at a height
    /// counts there.
    pub(crate) fn may_fill(&self, asset: AssetId, account: &Address, is_past: impl Fn(Height) -> bool) -> bool {
        let Some(one) = self.controlled(asset, account) else { return true };
        match self.record(asset, account) {
            Some(record) => record.is_open || (record.was_open && !is_past(record.since)),
            None => !one.control.admits(),
        }
    }

    /// The asset, if the account is subject to its controls.
    fn controlled(&self, asset: AssetId, account: &Address) -> Option<&Controlled> {
        self.assets.get(asset.0 as usize).filter(|one| one.control.freezes() && one.issuer != *account)
    }

    /// Whether an account may spend or buy an asset.
    pub(crate) fn check_uses(&self, asset: AssetId, account: &Address) -> Result<(), Refusal> {
        match self.standing(asset, account) {
            HolderStanding::Open => Ok(()),
            HolderStanding::Frozen => Err(Refusal::FROZEN),
            HolderStanding::NotAdmitted => Err(Refusal::NOT_ADMITTED),
        }
    }

    /// Whether an account may receive an asset of somebody else.
    pub(crate) fn check_receives(&self, asset: AssetId, account: &Address) -> Result<(), Refusal> {
        match self.standing(asset, account) {
            HolderStanding::Open => Ok(()),
            HolderStanding::Frozen => Err(Refusal::RECEIVER_FROZEN),
            HolderStanding::NotAdmitted => Err(Refusal::RECEIVER_NOT_ADMITTED),
        }
    }

    /// Whether the issuer of an asset may freeze or open an account.
    pub(crate) fn check_holder(&self, asset: AssetId, account: &Address) -> Result<(), Refusal> {
        match () {
            _ if !self.control(asset).freezes() => Err(Refusal::NOT_FREEZABLE),
            _ if is_reserved(account) || self.controlled(asset, account).is_none() => Err(Refusal::HOLDER_EXEMPT),
            _ => Ok(()),
        }
    }

    /// Whether the issuer of an asset may act for a holder at a height: recover its units, or recall its deposits.
    pub(crate) fn check_acts(&self, asset: AssetId, account: &Address, height: Height) -> Result<(), Refusal> {
        let frozen = self.record(asset, account).filter(|record| !record.is_open);
        let is_long = frozen.is_some_and(|record| height.saturating_sub(record.since) >= RECOVERY_WAIT);
        match () {
            _ if !self.control(asset).recovers() => Err(Refusal::NOT_RECOVERABLE),
            _ if !is_long => Err(Refusal::NOT_FROZEN_LONG),
            _ => Ok(()),
        }
    }

    /// Whether the issuer may recover units at a height from a holder with this balance.
    pub(crate) fn check_recovery(
        &self,
        recovery: &HolderRecovery,
        balance: u64,
        height: Height,
    ) -> Result<(), Refusal> {
        let HolderRecovery { asset, from, to, amount, .. } = recovery;
        self.check_acts(*asset, from, height)?;
        self.check_receives(*asset, to)?;
        if *amount > balance { Err(Refusal::RECOVERS_TOO_MUCH) } else { Ok(()) }
    }

    /// The holders whom a block's accepted operations freeze, of those who are not: in order, each once.
    pub(crate) fn freezes(&self, edits: &[(Address, HolderEdit)]) -> Vec<HolderId> {
        let is_frozen = |edit: &HolderEdit| {
            edit.state == HolderState::Frozen && self.standing(edit.asset, &edit.account) == HolderStanding::Open
        };
        let mut frozen: Vec<HolderId> =
            edits.iter().map(|(_, edit)| edit).filter(|edit| is_frozen(edit)).map(|edit| edit.id()).collect();
        frozen.sort_unstable();
        frozen.dedup();
        frozen
    }

    /// An issuer says of a holder what it is from the next block on; `height` is that of the block. Returns whether
    /// that changes anything.
    pub(super) fn set_holder(&mut self, HolderEdit { asset, account, state }: HolderEdit, height: Height) -> bool {
        let (is_open, standing) = (state == HolderState::Open, self.standing(asset, &account));
        let was_open = standing == HolderStanding::Open;
        if is_open == was_open && standing != HolderStanding::NotAdmitted {
            return false;
        }
        // Who is open without a record has none again.
        match is_open && !self.control(asset).admits() {
            true => self.holders.remove(&(asset, account)),
            false => self.holders.insert((asset, account), HolderRecord { is_open, since: height, was_open }),
        };
        true
    }

    /// An asset is for admitted holders, and has one: for tests of what operations do with it.
    #[cfg(test)]
    pub(crate) fn admit_only(&mut self, asset: AssetId, account: Address) {
        self.add(asset, AssetControl::Admitted, Address::default());
        self.set_holder(HolderEdit { asset, account, state: HolderState::Open }, 1);
    }

    /// From now on an issuer controls its asset.
    pub(super) fn add(&mut self, asset: AssetId, control: AssetControl, issuer: Address) {
        if control.freezes() {
            let at = asset.0 as usize;
            self.assets.resize(self.assets.len().max(at + 1), Controlled::default());
            self.assets[at] = Controlled { control, issuer };
        }
    }
}
