//! A superblock becomes changes of the state: filter, orders, clearing, settlement, effects, contracts.
//!
//! For a decided block, the filter names the transactions that count. Their offers and cancellations are applied to
//! the book, the whole book is cleared as one batch, and executed offers leave it, in order of limit price, with at
//! most one partial fill a pair. What is left of offers whose last batch this was leaves after it. Then the registry
//! of validators processes the block. Each shard of accounts marks sequence numbers, takes debits, and receives
//! refunds, payments and fills. The auctioneer's surplus is burnt.
//!
//! The clearing of a block is the one that the deterministic solver finds: no proposer chooses prices. A replay or a
//! node that catches up has the batch in the archived receipts; it checks that batch instead of solving
//! ([`Ledger::apply_attached`], SPEEDEX §K.3). An offer that the marginal key shows to trade in full then goes
//! directly from its transaction to its fill and never enters book or trie. The resulting state is the same.
//!
//! **Properties.** Every step works on disjoint parts of the state, so the outcome does not depend on threads. The
//! filter, the book and the clearing do not depend on the order of transactions (rule 6). After each block and for
//! every asset, the change of spendable balances, locked, staked, escrowed, deposited and bonded units equals the
//! change of issued units. Each sum is taken where the values are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use payments::BridgeEvent;
use primitives::{Address, AssetId, Digest, Height, Operation, Sequence, Superblock, Transaction};
use proofs::{Asset, Batch, ContractReceipts, EndedOffer, Fill, Outcome, Pair, Refusal, SealKeyRecord, SettledFills};
use sealing::{OpeningKey, SealingKey};

use super::attached::Attached;
use super::conservation::{burn, check_conservation};
use super::effects::apply_effects;
use super::ethereum::{Phase, execute_contracts, note_hash};
use super::exacts::{exact_credits, mark_exacts};
use super::fault::Fault;
use super::filter::{admit, filter};
use super::orders::{Orders, merged};
use super::outcomes::{mark_listed, mark_pooled, mark_void, outcomes};
use super::quotas::beyond;
use super::sealed::{
    OpenedEnvelopes, OpenedOperation, OpeningRules, Unsealing, envelopes_per_sub_block, filter_inside, opened, unseal,
};
use super::stage::Stage;
use super::trade::{Traded, end_offers, trade, trade_as};
use crate::contracts::{SeenBefore, Undo};
use crate::places::accounts::{AccountDigests, account_digest};
use crate::places::contracts::ContractsChange;
use crate::places::keys::Rekeyed;
use crate::places::offers::PairChange;
use crate::places::pools::PoolTurn;
use crate::places::seals::{self, OpenedNames, Seals};
use crate::places::sums::Credit;
use crate::places::{Kept, PlaceChanges, PlaceSums, Readiness, Turn, charter};
use crate::sessions::{SessionTurn, released};
use crate::state::{AssetFigures, Changes, Ledger};
use crate::terms::{RULES_FLOOR, manifest};

/// What is known about a block's signatures.
#[derive(Clone, Copy, Debug)]
pub enum Signatures<'a> {
    /// All were verified before: on arrival, or before the block was logged.
    Valid,
    /// For each native transaction of the block, in order, whether its signature is valid.
    Known(&'a [bool]),
    /// None is verified yet.
    Unchecked,
}

impl<'a> Signatures<'a> {
    /// What is known after the unchecked signatures are verified; `None` if all are valid.
    fn known(self, checked: Option<&'a [bool]>) -> Option<&'a [bool]> {
        match self {
            Signatures::Known(valid) => Some(valid),
            Signatures::Valid | Signatures::Unchecked => checked,
        }
    }
}

/// What a block did.
#[derive(Debug)]
pub struct Applied {
    /// Height of the block.
    pub height: Height,
    /// Digest of the block.
    pub block: Digest,
    /// The outcome of each native transaction, in the order of the block.
    pub outcomes: Vec<Outcome>,
    /// The operations of the block's envelopes, in the order of these, each with its outcome.
    pub opened: Vec<OpenedOperation>,
    /// The batch.
    pub batch: Batch,
    /// The results of Ethereum transactions.
    pub contracts: ContractReceipts,
    /// Accounts that changed, by address.
    pub modified: Vec<Address>,
    /// How the prices were found; none if nothing was for sale, or the clearing was given.
    pub report: Option<clearing::Report>,
    /// Events at the bridge to the payment lane, which the lane learns once the block is certified.
    pub lane: Vec<BridgeEvent>,
    /// The settles of venues that counted.
    pub venues: Vec<SettledFills>,
    /// Input for the tries.
    pub changes: Changes,
}

/// What the places did in a block.
struct AtPlaces {
    kept: Kept,
    /// Events at the bridge to the payment lane.
    lane: Vec<BridgeEvent>,
    /// Settles of venues that counted.
    venues: Vec<SettledFills>,
    /// Operations that pay and do nothing.
    void: BTreeSet<(Address, Sequence)>,
    /// Changes of accounts' keys that act.
    rekeyed: Vec<Rekeyed>,
    /// Accounts that are concerned though their balances may not change, some of them twice.
    concerned: Vec<Address>,
    /// Assets that the block lists.
    listed: Vec<Asset>,
}

impl Ledger {
    /// Applies the next block by the clearing that the solver finds. `stage` is called at the end of each step.
    ///
    /// # Errors
    /// [`Fault`] if the block is not the next one, or an invariant is violated.
    pub fn apply(
        &mut self,
        block: &Superblock,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        self.run(block, None, None, signatures, stage)
    }

    /// Applies the next block as [`Ledger::apply`] does, but checks the given clearing instead of searching for one.
    /// Of the book, the groups are solved of which that clearing says that not every offer could be served: there it
    /// must be what the solver finds.
    ///
    /// A book has many clearings that pass, so the check alone does not prove that this is the block's clearing. Use
    /// it for batches of certified receipts or of the node's own receipts, and compare the state root with the one
    /// that the next block names.
    ///
    /// # Errors
    /// [`Fault`] if the block is not the next one, the clearing is wrong (the state is unchanged), or an invariant is
    /// violated.
    pub fn apply_attached(
        &mut self,
        block: &Superblock,
        attached: &Attached,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        self.run(block, Some(attached), None, signatures, stage)
    }

    /// Applies the next block with these keys, in place of those of the state and of the block's record: by a given
    /// clearing as [`Ledger::apply_attached`] does, or else as [`Ledger::apply`].
    ///
    /// # Errors
    /// As these, and [`Fault::OpeningKeys`] or [`Fault::OpeningKey`] (the state is unchanged).
    pub fn apply_unsealed(
        &mut self,
        block: &Superblock,
        attached: Option<&Attached>,
        unsealing: &Unsealing,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        self.run(block, attached, Some(unsealing), signatures, stage)
    }

    /// Which envelopes the next block opens, under the committee's keys of these numbers. `valid` is as in [`opened`].
    pub fn opening(&self, block: &Superblock, valid: Option<&[bool]>, keys: &[u64]) -> OpenedEnvelopes {
        let per_sub_block = envelopes_per_sub_block(self.validators().terms.committee);
        let (chain, network, names) = (self.chain, self.network(), &self.names);
        opened(block, valid, &OpeningRules { chain, network, keys, per_sub_block, names })
    }

    /// The keys in force at a block's height, and those that its record says open its envelopes. Reading a key costs
    /// more than a small block: a block without envelopes needs none.
    fn keys_of(&self, block: &Superblock, native: &[&Transaction]) -> (Vec<(u64, SealingKey)>, Vec<OpeningKey>) {
        let keys = self.seals().map_or(&[][..], Seals::keys);
        let has_envelopes = native.iter().any(|one| matches!(one.body.operation, Operation::Sealed(_)));
        let in_force = keys.iter().filter(|key| has_envelopes && key.is_in_force(block.height));
        let parsed =
            |key: &SealKeyRecord| (key.number, SealingKey::parse(&key.group).expect("the generation has made a point"));
        (in_force.map(parsed).collect(), block.openings.iter().map(|key| OpeningKey(*key)).collect())
    }

    /// The names of the envelopes that the last blocks have opened.
    pub fn opened_names(&self) -> &OpenedNames {
        &self.names
    }

    /// Checks a block's transactions against the present state, and changes nothing: for each native transaction, in
    /// order, the reason why the filter would remove it, if it would.
    pub fn judge(&self, block: &Superblock, signatures: Signatures) -> Vec<Option<Refusal>> {
        let transactions = native(block);
        let checked = matches!(signatures, Signatures::Unchecked)
            .then(|| primitives::verify_transactions(&self.network(), &transactions));
        filter(self, &transactions, signatures.known(checked.as_deref()), &beyond(self, block)).refusals
    }

    /// Checks one transaction against the present state, as the filter would if it were alone in the next block.
    ///
    /// A node calls this before it adds a transaction to its mempool. The signature is not checked here.
    ///
    /// # Errors
    /// [`Refusal`] gives the reason why the transaction would be removed.
    pub fn admit(&self, transaction: &Transaction) -> Result<(), Refusal> {
        admit(self, transaction)
    }

    fn run(
        &mut self,
        block: &Superblock,
        attached: Option<&Attached>,
        unsealing: Option<&Unsealing>,
        signatures: Signatures,
        stage: &mut dyn FnMut(Stage),
    ) -> Result<Applied, Fault> {
        check_succession(self, block)?;
        let transactions = native(block);
        let (in_force, keys) = self.keys_of(block, &transactions);
        let of_block =
            Unsealing { in_force: &in_force, keys: &keys, are_checked: !matches!(signatures, Signatures::Unchecked) };
        let unsealing = unsealing.unwrap_or(&of_block);
        let digest = Superblock::digest(&block.to_bytes());
        let checked = matches!(signatures, Signatures::Unchecked)
            .then(|| primitives::verify_transactions(&self.network(), &transactions));
        stage(Stage::Signatures);
        let valid = signatures.known(checked.as_deref());
        let mut filtered = filter(self, &transactions, valid, &beyond(self, block));
        let unsealed = unseal(self, block, (&transactions, valid), unsealing, &mut filtered)?;
        let inside = unsealed.inside.iter().map(|one| &one.transaction);
        let transactions: Vec<&Transaction> = transactions.into_iter().chain(inside).collect();
        filter_inside(self, &unsealed.inside, &transactions, &mut filtered);
        stage(Stage::Filter);
        let mut orders = Orders::of(&transactions, &filtered, self);
        let (before, figures) = (undo_before(self, &orders), self.asset_figures());
        let mut pools =
            self.pools().map_or_else(PoolTurn::default, |pools| pools.turn(&orders.edits.pools, self.founded_assets()));
        let mut traded = match attached {
            None => trade(self, block.height, &orders, &pools, stage)?,
            Some(attached) => trade_as(self, block.height, &orders, &pools, attached, stage)?,
        };
        pools.trade(self.pools(), &traded.batch.pools, &self.controls().freezes(&orders.edits.controls));
        let sessions = SessionTurn::of(&orders.sessions);
        end_offers(self, block.height, &sessions, &mut orders, &mut traded);
        let mut outcomes = outcomes(&transactions, &filtered, &traded.pairs, &orders.replaced);
        mark_exacts(&mut outcomes, &traded.exacts);
        mark_pooled(&mut outcomes, &filtered, &transactions, &pools);
        stage(Stage::Settlement);
        let has_named = self.names.note(block.height, unsealed.names.clone());
        let names = has_named.then(|| self.names.clone());
        let AtPlaces { kept, lane, venues, void, rekeyed, concerned, listed } =
            apply_places(self, block, &orders, (&transactions, &filtered.refusals), names);
        mark_void(&mut outcomes, &filtered, &transactions, &void);
        mark_listed(&mut outcomes, &filtered, &transactions, self.assets.len());
        let Kept { credits: payouts, burnt, mut held, changes: mut places } = kept;
        let pooled = commit_pools(self, pools, &mut held, &mut places);
        let exacts = exact_credits(&orders.exacts, &traded.exacts);
        orders.released.extend(released(&traded.batch, exacts.iter().copied()));
        let sessions = sessions.changes(block.height, &orders.sessions, &orders.rekeyed, &rekeyed, &orders.released);
        let own = orders.credits.iter().copied().chain(exacts.into_iter().map(|(_, credit)| credit));
        let credits: Vec<Credit> = own.chain(moved(&traded.batch)).chain(payouts).chain(pooled).collect();
        let mut effects = apply_effects(self, &transactions, &filtered, (&credits, &orders.taken), &sessions);
        let fees = i128::from(self.fee) * i128::from(filtered.weight(&transactions)) + i128::from(burnt);
        burn(self, block.height, fees, &mut traded.batch, &mut effects.issued)?;
        (held.accounts, held.book) = (effects.balances, traded.locked);
        check_conservation(self, block.height, &held, &effects.issued)?;
        stage(Stage::Effects);
        let mut phase = execute_contracts(self, block, &traded.batch)?;
        advance(self, block, digest, listed);
        note_history(self, effects.seen, (before, &figures), &traded.batch, std::mem::take(&mut phase.undo));
        let accounts = redigest(self, effects.changed, &phase.accounts);
        let pairs = traded.pairs.into_iter().map(|pair| pair.change).collect();
        let modified = with_concerned(accounts.iter().map(|(address, _)| Address(*address)).collect(), concerned);
        let Phase { receipts: contracts, slots, .. } = phase;
        (places.accounts, places.book) = (accounts, with_later(pairs, phase.pairs));
        places.contracts = ContractsChange { slots, rest: self.places.contracts.digest() };
        let changes = Changes { places, assets: self.changed_assets(&figures) };
        stage(Stage::Contracts);
        let opened = unsealed.outcomes(&mut outcomes);
        let Traded { batch, report, .. } = traded;
        let height = block.height;
        Ok(Applied {
            height,
            block: digest,
            outcomes,
            opened,
            batch,
            contracts,
            modified,
            report,
            lane,
            venues,
            changes,
        })
    }
}

/// Makes a block's changes of pools; returns what is paid to accounts.
fn commit_pools(ledger: &mut Ledger, turn: PoolTurn, held: &mut PlaceSums, changes: &mut PlaceChanges) -> Vec<Credit> {
    let Some(pools) = &mut ledger.places.pools else { return Vec::new() };
    let (credits, change, rows) = Arc::make_mut(pools).commit(turn);
    (held.pools, changes.pools) = (change, Some(rows));
    credits
}

/// What the native phase may change of what Ethereum sees of offers of contracts that leave.
fn undo_before(ledger: &Ledger, orders: &Orders) -> Undo {
    let mut before = Undo::default();
    if ledger.places.contracts.head().is_some() {
        before.note_leaving(&orders.leaving, &ledger.places.book);
        let said = orders.edits.controls.iter().map(|(_, edit)| edit.id());
        before.holders.extend(said.map(|id| (id, ledger.controls().standing(id.0, &id.1))));
    }
    before
}

/// The block is the ledger's last one from now on, what it listed can be used, and the record of the next height acts.
fn advance(ledger: &mut Ledger, block: &Superblock, digest: Digest, listed: Vec<Asset>) {
    if let Some(record) = ledger.proposals().record() {
        (ledger.fee, ledger.limits) = (record.now.fee(), record.now.limits(ledger.limits));
    }
    ledger.assets.extend(listed);
    ledger.count_crowd();
    ledger.is_book_full = ledger.places.book.len() as u64 >= ledger.limits.resting_offers;
    (ledger.height, ledger.last_block, ledger.time_ms) = (block.height, digest, block.time_ms);
    note_hash(ledger);
}

/// Stores what Ethereum saw before each phase of a block, with the figures of assets before it.
fn note_history(
    ledger: &mut Ledger,
    native: Vec<SeenBefore>,
    (mut before, figures): (Undo, &[AssetFigures]),
    batch: &Batch,
    of_contracts: Undo,
) {
    if ledger.places.contracts.head().is_none() {
        return;
    }
    before.note_batch(batch);
    let valuations = ledger.assets.iter().zip(figures).enumerate();
    let changed = valuations.filter(|(_, (asset, (_, before)))| asset.valuation != *before);
    let valuations = changed.map(|(number, (_, (_, before)))| (AssetId(number as u32), *before)).collect();
    let Undo { native_offers, holders, .. } = before;
    let mut undo = Undo { native_offers, holders, valuations, ..of_contracts };
    for before in native {
        if let Some(now) = ledger.places.accounts.get(&before.address) {
            undo.note_native(before, now);
        }
    }
    ledger.history.push(undo);
}

/// Digests of the accounts that a block changed: accounts that contracts wrote are hashed again.
fn redigest(ledger: &Ledger, changed: Vec<([u8; 20], Option<[u8; 32]>)>, written: &[Address]) -> AccountDigests {
    if written.is_empty() {
        return changed;
    }
    let mut room = Vec::new();
    let digest = |address: &Address| {
        let account = ledger.places.accounts.get(address).expect("it was written");
        (address.0, Some(account_digest(account, &mut room)))
    };
    let mut all: Vec<_> = written.iter().map(digest).collect();
    // The sort is stable, so of two digests of an account the one after contracts is kept.
    all.extend(changed);
    all.sort_by_key(|(address, _)| *address);
    all.dedup_by_key(|(address, _)| *address);
    all
}

fn check_succession(ledger: &Ledger, block: &Superblock) -> Result<(), Fault> {
    if block.height != ledger.height + 1 {
        return Err(Fault::Height { height: ledger.height, got: block.height });
    }
    if block.parent != ledger.last_block {
        return Err(Fault::Parent { height: block.height, parent: ledger.last_block, got: block.parent });
    }
    check_rules(ledger, block.height)
}

/// A program replays the rules that it knows, and of these only what it means by them.
fn check_rules(ledger: &Ledger, height: Height) -> Result<(), Fault> {
    let (rules, meant, newest) = (ledger.rules_at(height), ledger.charter().rules.manifest_at(height), ledger.newest);
    match manifest(rules) {
        _ if !(RULES_FLOOR..=newest).contains(&rules) => Err(Fault::Rules { height, rules, newest }),
        Some(own) if own == meant => Ok(()),
        _ => Err(Fault::OtherRules { height, rules, meant }),
    }
}

/// Applies the operations on places that keep units for accounts.
fn apply_places(
    ledger: &mut Ledger,
    block: &Superblock,
    orders: &Orders,
    (transactions, refusals): (&[&Transaction], &[Option<Refusal>]),
    names: Option<OpenedNames>,
) -> AtPlaces {
    let entering = ledger.proposals().coming_at(block.height + 1).cloned();
    let (parameters, least_units) = (ledger.parameters(), ledger.band_least_units());
    let is_judged = ledger.schedule().is_boundary(block.height) || !orders.edits.charter.is_empty();
    let listings = is_judged.then(|| ledger.shared_listings());
    let lane_assets = ledger.lane().filter(|_| is_judged).map(|lane| lane.shared_assets());
    let stakes = if is_judged { charter::stakes_of(ledger.validators()) } else { BTreeMap::new() };
    let mut turn = Turn {
        block,
        limits: &ledger.limits,
        refusals,
        transactions,
        pays_back: ledger.schedule().is_boundary(block.height),
        is_alone: ledger.is_alone(),
        assets: ledger.assets.len(),
        records: &ledger.assets,
        least_units,
        now: parameters,
        committee: ledger.validators().terms.committee,
        entering,
        listings,
        lane_assets,
        stakes,
        listed: Vec::new(),
        controlled: Vec::new(),
        controls: ledger.places.controls.clone(),
        acting: ledger.seals().map(|_| seals::Acting::after(ledger.validators(), block.height)),
        names,
        readiness: readiness(ledger, block.height),
        drawn: None,
        convicted: Vec::new(),
        answering: BTreeSet::new(),
        answering_heights: 0,
        lane: Vec::new(),
        void: Vec::new(),
        rekeyed: Vec::new(),
        settled: Vec::new(),
        concerned: Vec::new(),
    };
    let kept = ledger.places.apply(&mut turn, &orders.edits);
    let Turn { lane, void, rekeyed, settled: venues, mut concerned, listed, .. } = turn;
    let holders = orders.edits.controls.iter().map(|(_, edit)| edit.account);
    concerned.extend(holders.filter(|holder| ledger.places.accounts.get(holder).is_some()));
    AtPlaces { kept, lane, venues, void: void.into_iter().collect(), rekeyed, concerned, listed }
}

/// Who cannot follow the confirmed rules: asked at a boundary only.
fn readiness(ledger: &Ledger, height: Height) -> Readiness {
    let charter = ledger.charter();
    match ledger.schedule().is_boundary(height) {
        true => Readiness { unready: charter::unready(charter), is_patient: charter.is_patient },
        false => Readiness::default(),
    }
}

/// Merges changes of pairs with later ones that remove no ranges; both are in order.
fn with_later(changes: Vec<PairChange>, later: Vec<PairChange>) -> Vec<PairChange> {
    if later.is_empty() {
        return changes;
    }
    let mut all: BTreeMap<Pair, PairChange> = changes.into_iter().map(|change| (change.pair, change)).collect();
    for PairChange { pair, through, edits } in later {
        let change = all.entry(pair).or_insert(PairChange { pair, through, edits: Vec::new() });
        change.edits = merged(change.edits.iter().copied(), edits.into_iter());
    }
    all.into_values().collect()
}

/// What a batch pays to accounts: what they bought, and what returned of offers that traded or ended.
fn moved(batch: &Batch) -> impl Iterator<Item = Credit> + '_ {
    let paid = |fill: &Fill| Credit { to: fill.place.account, asset: fill.pair.buy, amount: fill.bought };
    let returned = |fill: &Fill| Credit { to: fill.place.account, asset: fill.pair.sell, amount: fill.returned };
    let ended = |one: &EndedOffer| Credit { to: one.place.account, asset: one.pair.sell, amount: one.returned };
    let rest = batch.fills.iter().filter(|fill| fill.returned > 0).map(returned);
    batch.fills.iter().map(paid).chain(rest).chain(batch.ended.iter().map(ended))
}

/// A block's native transactions, in order.
fn native(block: &Superblock) -> Vec<&Transaction> {
    block.sub_blocks.iter().flat_map(|sub| &sub.native).collect()
}

/// Adds accounts that are concerned though their balances may not have changed, by address.
fn with_concerned(mut modified: Vec<Address>, concerned: Vec<Address>) -> Vec<Address> {
    if !concerned.is_empty() {
        modified.extend(concerned);
        modified.sort_unstable();
        modified.dedup();
    }
    modified
}
