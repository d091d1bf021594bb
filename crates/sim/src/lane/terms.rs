//! Terms of assets that members vote while the lane runs (`ledger`'s `places::bridge::assets`).
//!
//! The genesis carries two of three assets. Members vote that the lane carries the third; then that the second becomes
//! dearer; then that it takes no deposits any more, while outputs of it are out. Payers deposit, pay and redeem all of
//! them, and try too little, too early and too late. Each member acts on the state that it knows, through its own pool.
//!
//! What must hold, beside the invariants of every run, by the heights at which terms act and epochs begin alone:
//!
//! - The lane takes a deposit if, and only if, the terms of the running epoch do.
//! - A certified payment has the fee and the least outputs of its home. No correct shard refuses one for other terms.
//! - An asset that takes no deposits still comes home.

use std::collections::BTreeMap;

use ledger::{LaneAsset, LaneOutflow, Ledger, Listing, Refusal, RootPart, Schedule};
use payments::{BridgeOperation, HomeEpoch, LaneRules, PaymentBody};
use primitives::{Address, Amount, AssetId, Digest, Height, LaneAssetTerms, Operation, ProposalWord, Transaction};

use super::{ASSET, EPOCH_HEIGHTS, LaneWorld, secret};
use crate::solo::rewritten::rewrite;
use crate::world::{LaneMistake, Mistake};

/// Listed in the genesis, and carried once a vote says so.
const LATE: AssetId = AssetId(1);
/// Carried from the genesis on, until a vote ends its deposits.
const LEAVING: AssetId = AssetId(2);
/// All assets of the chain.
pub(super) const ALL: [AssetId; 3] = [ASSET, LATE, LEAVING];
/// Blocks that a run with votes has more: what is voted about an asset follows one another.
const MORE_BLOCKS: u64 = EPOCH_HEIGHTS;
/// In a snapshot, the kind of a lane's chunk that has the terms of assets.
const VOTED_TERMS: u8 = 2;

/// Terms by asset and first home, each with the height at which they act.
type Entries = BTreeMap<(AssetId, HomeEpoch), (Height, LaneAssetTerms)>;

/// When committees of the chain change: a vote needs two boundaries, and must act before a lane epoch ends.
pub(super) fn schedule(are_terms_voted: bool) -> Schedule {
    if are_terms_voted { Schedule { epoch_heights: 3, delay: 1 } } else { Schedule::default() }
}

/// Blocks before the faults stop, of so many without votes.
pub(super) fn blocks(are_terms_voted: bool, blocks: u64) -> u64 {
    if are_terms_voted { blocks + MORE_BLOCKS } else { blocks }
}

pub(super) fn listings(are_terms_voted: bool) -> Vec<Listing> {
    let listed = if are_terms_voted { &["USD", "EUR", "GBP"][..] } else { &["USD", "EUR"] };
    listed.iter().map(|symbol| Listing::new(*symbol, 2, Address([9; 20]))).collect()
}

/// The assets that payers hold on the ledger.
pub(super) fn listed(are_terms_voted: bool) -> Vec<AssetId> {
    if are_terms_voted { ALL.to_vec() } else { vec![ASSET] }
}

/// The terms of the genesis.
pub(super) fn founded(are_terms_voted: bool, fee: Amount) -> Vec<LaneAsset> {
    let first = LaneAsset { asset: ASSET, least_units: 1, fee, outflow: None };
    let outflow = Some(LaneOutflow { most: 4_000, per_height: 400 });
    let leaving = LaneAsset { asset: LEAVING, least_units: 10, fee: 2, outflow };
    if are_terms_voted { vec![first, leaving] } else { vec![first] }
}

/// What members want by a state, and which of them proposes it.
pub(super) fn wishes(ledger: &Ledger) -> Vec<(u8, LaneAssetTerms)> {
    let lane = ledger.lane().expect("the chain has a lane");
    let (assets, now) = (lane.assets(), lane.bridge().clock().epoch());
    let newest = |asset| assets.get(asset, HomeEpoch::MAX).copied();
    let late =
        LaneAssetTerms { asset: LATE, least_units: 20, fee: 3, deposits: true, outflow_most: 0, outflow_per_height: 0 };
    let leaving = match newest(LEAVING) {
        Some(terms) if terms.fee == 2 => Some(LaneAssetTerms { fee: 4, least_units: 20, ..terms }),
        Some(terms) if terms.deposits && assets.get(LEAVING, now) == Some(&terms) => {
            Some(LaneAssetTerms { deposits: false, ..terms })
        }
        _ => None,
    };
    let waits = |terms: &LaneAssetTerms| ledger.proposals().coming().iter().any(|coming| coming.lane.contains(terms));
    let late = Some(late).filter(|_| newest(LATE).is_none()).map(|terms| (0, terms));
    late.into_iter().chain(leaving.map(|terms| (1, terms))).filter(|(_, terms)| !waits(terms)).collect()
}

/// The terms that act from the block after the next one on.
pub(super) fn entering(ledger: &Ledger) -> Vec<LaneAssetTerms> {
    let acts = ledger.height() + 2;
    let coming = ledger.proposals().coming().iter().filter(|coming| coming.acts == acts);
    coming.flat_map(|coming| &coming.lane).copied().collect()
}

/// Changes the terms of a ledger that a vote has changed, by way of a snapshot.
fn edit(ledger: &mut Ledger, change: impl Fn(&mut Entries)) {
    rewrite(ledger, |kind, content| {
        if kind == RootPart::ESCROW && content[0] == VOTED_TERMS {
            let mut entries: Entries = borsh::from_slice(&content[1..]).expect("terms");
            change(&mut entries);
            *content = [vec![VOTED_TERMS], borsh::to_vec(&entries).expect("encodes")].concat();
        }
    });
}

/// A restart that is mistaken has the fees and the ways in of the genesis again.
pub(super) fn forget(mistake: Option<Mistake>, ledger: &mut Ledger) {
    if mistake == Some(Mistake::Lane(LaneMistake::RestartForgetsTerms)) {
        let founded = founded(true, 0).pop().expect("two assets").terms();
        edit(ledger, |entries| {
            entries.values_mut().filter(|(_, terms)| terms.asset == LEAVING).for_each(|(_, terms)| *terms = founded);
        });
    }
}

/// Plain bookkeeping of terms: what was decided, and when epochs began.
#[derive(Default)]
pub(super) struct TermsBooks {
    /// Those that epoch 0 began with.
    first: BTreeMap<AssetId, LaneAssetTerms>,
    /// Terms with the height from which on they act, in order.
    decided: Vec<(Height, LaneAssetTerms)>,
    /// The first height of each epoch.
    began: BTreeMap<HomeEpoch, Height>,
}

impl TermsBooks {
    pub fn new(genesis: &Ledger) -> TermsBooks {
        let lane = genesis.lane().expect("the chain has a lane");
        let first = lane.terms().assets.iter().map(|of| (of.asset, of.terms())).collect();
        TermsBooks { first, decided: Vec::new(), began: BTreeMap::from([(0, 1)]) }
    }

    /// An epoch begins with the block of this height.
    pub fn begin(&mut self, epoch: HomeEpoch, height: Height) {
        self.began.insert(epoch, height);
    }

    /// The network restarts with the state after this height.
    pub fn begin_again(&mut self, height: Height) {
        let acted = self.decided.drain(..).filter(|(acts, _)| *acts <= height + 1);
        self.first.extend(acted.map(|(_, terms)| (terms.asset, terms)));
        self.began = BTreeMap::from([(0, height + 1)]);
    }

    /// The terms of a home: of those that acted before it began, the last ones.
    fn get(&self, asset: AssetId, home: HomeEpoch) -> Option<LaneAssetTerms> {
        let began = *self.began.get(&home)?;
        let acted = self.decided.iter().rev().find(|(acts, terms)| terms.asset == asset && *acts < began);
        acted.map(|(_, terms)| *terms).or_else(|| self.first.get(&asset).copied())
    }

    /// The epoch that runs.
    fn now(&self) -> HomeEpoch {
        self.began.keys().next_back().copied().unwrap_or(0)
    }

    /// Whether deposits of an asset are taken now.
    pub fn takes_deposits(&self, asset: AssetId) -> bool {
        self.get(asset, self.now()).is_some_and(|terms| terms.deposits)
    }
}

impl LaneWorld {
    /// Members say what they want.
    pub(super) fn vote(&mut self) {
        if !self.conditions.are_terms_voted || self.healed {
            return;
        }
        for at in 0..self.validators.len() {
            if self.dice.once_in(2) {
                self.validators[at].vote();
            }
        }
        // The Byzantine member wants whatever is open.
        let liar = secret(2, self.liar.index.into());
        let account = liar.public().address();
        let open = self.ledger.proposals().open().values().filter(|open| !open.votes.contains_key(&account));
        let open: Vec<Digest> = open.map(|open| open.id).collect();
        for proposal in open {
            if self.dice.once_in(2) {
                self.submit(&liar, Operation::Vote { proposal, word: ProposalWord::Yes });
            }
        }
    }

    /// An asset and an amount to deposit.
    pub(super) fn draw_deposit(&mut self) -> (AssetId, Amount) {
        if !self.conditions.are_terms_voted {
            return (ASSET, 100 + self.dice.below(900));
        }
        let asset = ALL[self.dice.index(ALL.len())];
        let amount = if self.dice.once_in(4) { 1 + self.dice.below(25) } else { 100 + self.dice.below(900) };
        (asset, amount)
    }

    /// The rules by which payers build payments of a home.
    pub(super) fn rules_for(&self, home: HomeEpoch) -> LaneRules {
        let is_mistaken = self.options.mistake == Some(Mistake::Lane(LaneMistake::PayersPayByNewest));
        self.lane().rules(if is_mistaken { HomeEpoch::MAX } else { home })
    }

    /// Terms act from the next height on.
    pub(super) fn follow_terms(&mut self, entering: Vec<LaneAssetTerms>) {
        let acts = self.ledger.height() + 1;
        self.report.terms += entering.len() as u64;
        let (now, mistake) = (self.now(), self.options.mistake.and_then(Mistake::of_lane));
        match mistake.filter(|_| !entering.is_empty()) {
            Some(LaneMistake::TermsAtOnce) => edit(&mut self.ledger, |entries| {
                let newest = entries.iter().filter(|(_, (since, _))| *since == acts);
                let newest: Vec<_> = newest.map(|((asset, _), decided)| ((*asset, now), *decided)).collect();
                entries.extend(newest);
            }),
            Some(LaneMistake::ClosedTakesDeposits) => edit(&mut self.ledger, |entries| {
                entries.values_mut().for_each(|(_, terms)| terms.deposits = true);
            }),
            _ => {}
        }
        self.terms.decided.extend(entering.into_iter().map(|terms| (acts, terms)));
    }

    /// A deposit was taken or refused: so the terms of the running epoch say.
    pub(super) fn on_deposit(
        &mut self,
        asset: AssetId,
        amount: Amount,
        refusal: Option<Refusal>,
    ) -> Result<(), String> {
        let home = self.terms.now();
        let terms = self.terms.get(asset, home);
        let due = terms.is_some_and(|terms| terms.deposits && amount >= terms.least_units);
        let of_terms =
            [Refusal::NOT_IN_LANE, Refusal::NO_WAY_IN, Refusal::WITHDRAWS_TOO_LITTLE, Refusal::DEPOSITS_TOO_LITTLE];
        let is_taken = match refusal {
            None => true,
            Some(refusal) if of_terms.contains(&refusal) => false,
            Some(_) => return Ok(()),
        };
        self.report.late_deposits += u64::from(is_taken && asset == LATE);
        self.report.no_way_in += u64::from(refusal == Some(Refusal::NO_WAY_IN));
        let told = if is_taken { "takes" } else { "refuses" };
        match is_taken == due {
            true => Ok(()),
            false => Err(format!(
                "the lane {told} {amount} units of asset {asset} in epoch {home}, whose terms have {terms:?}"
            )),
        }
    }

    /// A certified payment has the terms of its home.
    pub(super) fn check_paid(&self, body: &PaymentBody) -> Result<(), String> {
        let payment = &body.payment;
        if payment.is_exit() {
            return Ok(());
        }
        let mut left: BTreeMap<AssetId, i128> = BTreeMap::new();
        for input in &payment.inputs {
            *left.entry(input.asset).or_default() += i128::from(input.amount);
        }
        for output in &payment.outputs {
            *left.entry(output.asset).or_default() -= i128::from(output.amount);
        }
        let terms = |asset| self.terms.get(asset, payment.home).map_or((1, 0), |of| (of.least_units, of.fee));
        let pays = left.iter().all(|(asset, left)| *left == i128::from(terms(*asset).1));
        let is_large = payment.outputs.iter().all(|output| output.amount >= terms(output.asset).0);
        match pays && is_large {
            true => Ok(()),
            false => Err(format!("payment {} is certified under other terms than those of its home", body.digest)),
        }
    }

    /// Leaves out what pays out an asset that takes no deposits, if blocks are mistaken about it.
    pub(super) fn keep_in(&self, native: &mut Vec<Transaction>) {
        if self.options.mistake != Some(Mistake::Lane(LaneMistake::ClosedKeepsIn)) {
            return;
        }
        native.retain(|transaction| {
            let Operation::Lane(post) = &transaction.body.operation else { return true };
            let Ok(BridgeOperation::Redeem { payment, .. }) = BridgeOperation::parse(post) else { return true };
            let body = PaymentBody::parse(&payment).expect("payers build sound payments");
            body.payment.inputs.iter().all(|input| self.terms.takes_deposits(input.asset))
        });
    }
}
