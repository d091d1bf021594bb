//! The hot state, and what it says of itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use clearing::{Minima, Params};
use primitives::{Address, Amount, AssetId, Digest, Evidence, Fraction, Height, Price, SessionSlot};
use proofs::{AccountKeys, Asset, Charter, Member, Pair, Refusal, Schedule, Validators, asset_digest};

use super::audit::{Audit, audit};
use crate::contracts::{EvmEngine, History, found_deployer, found_weth9};
use crate::places::accounts::Accounts;
use crate::places::assets::{Crowd, Listings};
use crate::places::bridge::LaneBridge;
use crate::places::charter::{Ballot, Electorate, LAW, Scene};
use crate::places::contracts::Contracts;
use crate::places::controls::{Controls, HeldOffers};
use crate::places::offers::OrderBook;
use crate::places::pools::Pools;
use crate::places::seals::{OpenedNames, Seals};
use crate::places::unsound::AuditError;
use crate::places::venues::Venues;
use crate::places::{Audited, Places, Rules};
use crate::sessions::{SessionRules, SlotOffers};
use crate::terms::{Genesis, GenesisError, Limits, Parameters, RULES_LEAST, RULES_NEWEST, manifest};

/// Issued units of an asset, and its valuation.
pub(crate) type AssetFigures = (Amount, Option<Price>);

/// The hot state of the exchange after a block.
///
/// A clone shares its memory with the original until either is changed: checkpoints are written from a clone.
#[derive(Clone)]
pub struct Ledger {
    pub(crate) chain: u64,
    pub(crate) fee: Amount,
    pub(crate) epsilon: Fraction,
    pub(crate) mu: Fraction,
    pub(crate) limits: Limits,
    pub(crate) height: Height,
    pub(crate) last_block: Digest,
    pub(crate) time_ms: u64,
    pub(crate) assets: Vec<Asset>,
    /// Where the units of the assets are.
    pub(crate) places: Places,
    /// The offers of session keys; derived.
    pub(crate) slots: SlotOffers,
    /// The offers of controlled assets; derived.
    pub(crate) held: HeldOffers,
    /// Executes contracts; not part of the state.
    pub(crate) engine: EvmEngine,
    /// What Ethereum saw at the last heights; not part of the state.
    pub(crate) history: History,
    /// Whether the book holds its maximum of resting offers and accepts no more.
    pub(crate) is_book_full: bool,
    /// How much of the book listed assets take; derived.
    pub(crate) crowd: Crowd,
    /// The names of envelopes that were opened.
    pub(crate) names: OpenedNames,
    /// Whether blocks may edit accounts; set by the genesis, not part of a checkpoint.
    pub(crate) is_developers: bool,
    /// The newest rules that this node follows; not part of the state.
    pub(crate) newest: u32,
}

impl Ledger {
    /// The state at height 0.
    ///
    /// # Errors
    /// [`GenesisError`] names the error of the genesis.
    pub fn new(genesis: &Genesis) -> Result<Ledger, GenesisError> {
        let assets = genesis.issued_assets()?;
        let (limits, last_block) = (genesis.limits, genesis.digest());
        let mut places = Places::found(genesis, last_block);
        if limits.has_contracts() {
            found_weth9(&mut places.accounts, &mut places.contracts);
            if genesis.is_developers {
                found_deployer(&mut places.accounts, &mut places.contracts);
            }
        }
        Ok(Ledger {
            chain: genesis.chain,
            fee: genesis.fee,
            epsilon: genesis.epsilon,
            mu: genesis.mu,
            limits,
            height: 0,
            last_block,
            time_ms: 0,
            assets,
            places,
            slots: SlotOffers::default(),
            held: HeldOffers::default(),
            engine: EvmEngine::default(),
            history: History::default(),
            is_book_full: false,
            crowd: Crowd::default(),
            names: OpenedNames::default(),
            is_developers: genesis.is_developers,
            newest: RULES_NEWEST,
        })
    }

    /// Adds the settings that only the genesis has to a state that was restored from a checkpoint.
    pub fn under(self, genesis: &Genesis) -> Ledger {
        Ledger { is_developers: genesis.is_developers, ..self }
    }

    /// Follows no rules above these, as an older program would: to rehearse an upgrade. It never follows more than
    /// the program implements.
    pub fn up_to_rules(self, newest: u32) -> Ledger {
        Ledger { newest: newest.min(RULES_NEWEST), ..self }
    }

    /// Which rules the chain follows at which height, and who approves of the next ones.
    pub fn charter(&self) -> &Charter {
        &self.places.charter.charter
    }

    /// What is proposed about parameters and assets, and what waits.
    pub fn proposals(&self) -> &Ballot {
        &self.places.charter.proposals
    }

    /// What is proposed as it is now, shared: a reader keeps it without holding up the ledger.
    pub fn shared_ballot(&self) -> Arc<Ballot> {
        self.places.charter.proposals.clone()
    }

    /// The parameters in force in the next block.
    pub fn parameters(&self) -> Parameters {
        Parameters::of(self.fee, &self.limits, &self.validators().terms, self.listings().terms())
    }

    /// The fee and the limits that the chain began with.
    pub fn founded(&self) -> (Amount, Limits) {
        let first = self.proposals().record().map(|record| record.first);
        first.map_or((self.fee, self.limits), |first| (first.fee(), first.limits(self.limits)))
    }

    /// What a unit of weight costs at most, now and under what has passed: a pool reserves as much.
    pub fn dearest_fee(&self) -> Amount {
        self.proposals().dearest_fee(self.fee)
    }

    /// The fewest least units that the band permits.
    pub(crate) fn band_least_units(&self) -> Amount {
        clearing::least_units(self.epsilon, self.mu)
    }

    /// What proposals in the next block are judged by.
    pub(crate) fn scene<'a>(&'a self, stakes: &BTreeMap<Address, Amount>) -> Scene<'a> {
        Scene {
            law: LAW,
            height: self.next_height(),
            now: self.parameters(),
            committee: self.validators().terms.committee,
            staked: stakes.values().map(|units| u128::from(*units)).sum(),
            listings: self.listings(),
            assets: &self.assets,
            least_units: self.band_least_units(),
            controls: self.controls(),
            lane: self.lane().map(LaneBridge::assets),
        }
    }

    /// The rules of a height, as far as they are confirmed.
    pub fn rules_at(&self, height: Height) -> u32 {
        self.charter().rules.at(height)
    }

    /// The height of the next block.
    pub(crate) fn next_height(&self) -> Height {
        self.height.saturating_add(1)
    }

    /// The rules of the next block.
    pub fn next_rules(&self) -> u32 {
        self.rules_at(self.height.saturating_add(1))
    }

    /// The newest rules whose number this node knows.
    pub fn newest_rules(&self) -> u32 {
        self.newest
    }

    /// Whether this node decides under rules of this number, and means the same by it.
    pub fn follows(&self, rules: u32, meant: &Digest) -> bool {
        (RULES_LEAST..=self.newest).contains(&rules) && manifest(rules).as_ref() == Some(meant)
    }

    /// Whether it decides under the rules of a height, as far as they are confirmed.
    pub fn follows_at(&self, height: Height) -> bool {
        let rules = &self.charter().rules;
        self.follows(rules.at(height), &rules.manifest_at(height))
    }

    /// Whether it decides under the confirmed rules.
    pub fn follows_confirmed(&self) -> bool {
        let rules = &self.charter().rules;
        self.follows(rules.confirmed, &rules.manifest)
    }

    /// The rules of the next block, if this node does not follow them: it must stop here until another program does.
    pub fn needs_rules(&self) -> Option<u32> {
        (!self.follows_at(self.height.saturating_add(1))).then(|| self.next_rules())
    }

    /// Whether a node makes the blocks of this chain alone.
    pub fn is_alone(&self) -> bool {
        self.validators().terms.committee == 0
    }

    /// Who may speak about the rules in the next block.
    pub(crate) fn electorate(&self) -> Electorate<'_> {
        let height = self.height.saturating_add(1);
        Electorate { registered: self.validators(), height, is_network: !self.is_alone() }
    }

    /// Whether this is a developers' chain, whose blocks may edit accounts.
    pub fn is_developers(&self) -> bool {
        self.is_developers
    }

    /// Height of the last block applied; 0 at genesis.
    pub fn height(&self) -> Height {
        self.height
    }

    /// Digest of the last block applied; of the genesis at height 0.
    pub fn last_block(&self) -> Digest {
        self.last_block
    }

    /// Time of the last block applied, milliseconds since 1970; 0 at genesis.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The chain's number.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// The identity of the network, which typed data names: it covers the genesis and the founders, and the restart
    /// if the network has restarted.
    pub fn network(&self) -> Digest {
        self.places.validators.registered.terms.network
    }

    /// Units of asset 0 that a transaction costs.
    pub fn fee(&self) -> Amount {
        self.fee
    }

    /// The commission ε.
    pub fn epsilon(&self) -> Fraction {
        self.epsilon
    }

    /// The band μ.
    pub fn mu(&self) -> Fraction {
        self.mu
    }

    /// The limits of the chain.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The assets, by number.
    pub fn assets(&self) -> &[Asset] {
        &self.assets
    }

    /// How assets were listed after the genesis, and which close.
    pub fn listings(&self) -> &Listings {
        &self.places.listings
    }

    /// The listings as they are now, shared: a reader keeps them without holding up the ledger.
    pub fn shared_listings(&self) -> Arc<Listings> {
        self.places.listings.clone()
    }

    /// What issuers control, and whom they have frozen or admitted.
    pub fn controls(&self) -> &Controls {
        &self.places.controls
    }

    /// The committee's sealing keys, if the chain has terms of them.
    pub fn seals(&self) -> Option<&Seals> {
        self.places.seals.as_deref()
    }

    /// The sealing keys as they are now, shared: a reader keeps them without holding up the ledger.
    pub fn shared_seals(&self) -> Option<Arc<Seals>> {
        self.places.seals.clone()
    }

    /// The controls as they are now, shared: a reader keeps them without holding up the ledger.
    pub fn shared_controls(&self) -> Arc<Controls> {
        self.places.controls.clone()
    }

    /// Open offers of an account that sell or buy a controlled asset.
    pub fn held_offers(&self, asset: AssetId, account: &Address) -> u32 {
        self.held.count(asset, account)
    }

    /// Fees that a listing in the next block costs.
    pub fn listing_fees(&self) -> u64 {
        self.listings().fees(self.assets.len(), self.next_height())
    }

    /// Whether both assets of a pair trade in the next block.
    pub(crate) fn trades(&self, pair: Pair) -> bool {
        self.listings().trades(pair, self.next_height())
    }

    /// Counts again how much of the book listed assets take.
    pub(crate) fn count_crowd(&mut self) {
        self.crowd = Crowd::of(&self.places.listings, self.assets.len(), &self.places.book, &self.limits);
    }

    /// The number of assets of the genesis, as pools need it: those with lower numbers.
    pub(crate) fn founded_assets(&self) -> u32 {
        self.listings().founded()
    }

    /// The accounts.
    pub fn accounts(&self) -> &Accounts {
        &self.places.accounts
    }

    /// The keys of an account by its policy, if it has one.
    pub fn account_keys(&self, account: &Address) -> Option<&AccountKeys> {
        self.places.keys.get(account)
    }

    /// The resting offers.
    pub fn book(&self) -> &OrderBook {
        &self.places.book
    }

    /// Open offers of the session key in an account's slot.
    pub fn open_in_slot(&self, account: Address, slot: SessionSlot) -> u32 {
        self.slots.open((account, slot))
    }

    /// The staked validators, and the pool of rewards.
    pub fn validators(&self) -> &Validators {
        &self.places.validators.registered
    }

    /// Storage and code of contracts, and what they see of the chain.
    pub fn contracts(&self) -> &Contracts {
        &self.places.contracts
    }

    /// The payment lane; `None` on a chain without one.
    pub fn lane(&self) -> Option<&LaneBridge> {
        self.places.lane.as_deref()
    }

    /// The venues of continuous markets; `None` on a chain without them.
    pub fn venues(&self) -> Option<&Venues> {
        self.places.venues.as_deref()
    }

    /// The venues as they are now, shared: a reader keeps them without holding up the ledger.
    pub fn shared_venues(&self) -> Option<Arc<Venues>> {
        self.places.venues.clone()
    }

    /// The pools; `None` on a chain without them.
    pub fn pools(&self) -> Option<&Pools> {
        self.places.pools.as_deref()
    }

    /// The pools as they are now, shared: a reader keeps them without holding up the ledger.
    pub fn shared_pools(&self) -> Option<Arc<Pools>> {
        self.places.pools.clone()
    }

    /// When committees change.
    pub fn schedule(&self) -> Schedule {
        self.places.validators.registered.terms.schedule
    }

    /// The committee of an epoch, by index in consensus; none if it is not drawn yet, or no longer needed.
    pub fn committee(&self, epoch: u64) -> Option<&[Member]> {
        self.places.validators.registered.committee(epoch)
    }

    /// What operations on places are checked by in the next block.
    pub(crate) fn rules(&self) -> Rules {
        Rules { chain: self.chain, height: self.height.saturating_add(1), limits: self.limits }
    }

    /// What session keys are checked by in the next block.
    pub(crate) fn session_rules(&self) -> SessionRules<'_> {
        SessionRules { height: self.height, slots: &self.slots }
    }

    /// The parameters of this chain's clearings.
    pub fn clearing_params(&self) -> Params {
        Params { epsilon: self.epsilon, mu: self.mu, ..Params::default() }
    }

    /// The least units of each asset.
    pub(crate) fn least_units(&self) -> Vec<Amount> {
        self.assets.iter().map(|asset| asset.least_units).collect()
    }

    /// The least sizes of a pair's offers; both assets are listed.
    pub(crate) fn minima(&self, pair: Pair) -> Minima {
        let least = |asset: AssetId| self.assets[asset.0 as usize].least_units;
        Minima { sell: least(pair.sell), buy: least(pair.buy) }
    }

    /// The digests of all assets.
    pub(crate) fn asset_digests(&self) -> Vec<(u32, [u8; 32])> {
        self.changed_assets(&[])
    }

    /// What changes of the records of assets.
    pub(crate) fn asset_figures(&self) -> Vec<AssetFigures> {
        self.assets.iter().map(|asset| (asset.issued, asset.valuation)).collect()
    }

    /// The digests of the assets that are new, or that had other figures.
    pub(crate) fn changed_assets(&self, before: &[AssetFigures]) -> Vec<(u32, [u8; 32])> {
        let is_same = |(number, asset): (usize, &Asset)| before.get(number) == Some(&(asset.issued, asset.valuation));
        let changed = self.assets.iter().enumerate().filter(|one| !is_same(*one));
        changed.map(|(number, asset)| (number as u32, asset_digest(asset))).collect()
    }

    /// Wei of one unit of asset 0.
    pub fn wei_per_unit(&self) -> u64 {
        10u64.pow(18 - u32::from(self.assets[0].decimals))
    }

    /// Whether an accusation with this evidence would be accepted in the next block.
    ///
    /// # Errors
    /// [`Refusal`] gives the reason why not: nothing is proved, or no account is left to convict.
    pub fn convicts(&self, evidence: &Evidence) -> Result<(), Refusal> {
        self.places.validators.convicted(evidence, self.height + 1).map(|_| ())
    }

    /// Sums what every place of custody holds, and compares the sums with what is issued; one entry per asset.
    ///
    /// # Errors
    /// [`AuditError`] names the asset, pair or place.
    pub fn audit(&self) -> Result<Vec<Audit>, AuditError> {
        let (assets, accounts) = (self.assets.as_slice(), &self.places.accounts);
        let (height, wei_per_unit, schedule) = (self.height, self.wei_per_unit(), self.schedule());
        let audited = Audited { assets, accounts, height, wei_per_unit, schedule };
        audit(&self.places, &self.slots, &self.held, &audited)
    }
}

#[cfg(test)]
mod tests {
    use primitives::Superblock;

    use super::*;
    use crate::{Listing, Roots, Signatures};

    /// A block costs by what it changed, and not by how many assets there are.
    #[test]
    fn only_assets_that_changed_are_hashed() {
        let assets = (0..1_000).map(|number| Listing::new(format!("A{number}"), 2, Address([9; 20]))).collect();
        let genesis = Genesis { mu: Fraction::power_of_two(10), assets, ..Genesis::default() };
        let mut ledger = Ledger::new(&genesis).expect("sound");
        let mut roots = Roots::of(&ledger);
        let block = |ledger: &Ledger| {
            let (height, parent) = (ledger.height() + 1, ledger.last_block());
            Superblock { height, parent, ..Superblock::default() }
        };
        // The valuations of the genesis' last batch are gone with the first block.
        for number in [7, 8] {
            ledger.assets[number].valuation = Some(Price::ONE);
        }
        let mut roots_of_valued = Roots::of(&ledger);
        let applied = ledger.apply(&block(&ledger), Signatures::Valid, &mut |_| {}).expect("sound");
        let changed: Vec<u32> = applied.changes.assets.iter().map(|(number, _)| *number).collect();
        assert_eq!(changed, [7, 8]);
        assert_eq!(roots_of_valued.apply(&applied.changes), Roots::of(&ledger).parts().root());
        let applied = ledger.apply(&block(&ledger), Signatures::Valid, &mut |_| {}).expect("sound");
        assert_eq!(applied.changes.assets, []);
        assert_eq!(roots.apply(&applied.changes), Roots::of(&ledger).parts().root());
    }
}
