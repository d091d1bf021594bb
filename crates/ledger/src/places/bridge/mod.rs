//! The bridge to the payment lane: withdrawals into the lane, redemptions out of it, contested outputs and halts.
//!
//! The `payments` crate defines what happens ([`payments::Bridge`]); this module connects it to the accounts. For a
//! block, the filter checks each operation against the bridge's state before the block, and verifies its certificates
//! and signatures. The operations that count are then applied together: withdrawals are debited and become outputs,
//! due claims are credited, and lane time advances to the next height, so that the next block's operations are
//! checked against the state after this one.
//!
//! *Escrow* is one more place of custody: units that are withdrawn and not paid out, and the deposits of open cases.
//! After each block its change is part of the sum over all places, so a failure of the lane cannot affect other
//! money.
//!
//! **Properties.** Operations of a block commute. A copy pays fee and sequence number and does nothing, whichever
//! account sends it. A chain without a lane has no such state: the lane costs it nothing and does not change its
//! hashes.
//!
//! *Convictions.* If a member signs contradictory statements ([`payments::LaneEvidence`]), the account that answers
//! for it ([`LaneTerms::accounts`]) loses a part of its stake, like a validator convicted in consensus. An account
//! that answers for a member with keys of an epoch that still counts is not paid back, so that there is a stake to
//! slash as long as evidence is accepted.
//!
//! **Assets.** The terms of each asset are those of its lane epoch; validators vote on them (`assets`).
//!
//! **Root.** The bridge's part of the state root is H(root of a trie of entries, digest of the rest). Entries are
//! outputs, spent outputs and certified payments, written once; an epoch's entries are removed together when nothing
//! of it can be redeemed any more. Open cases, their deposits and pending claims are entries, too, so that a block
//! costs what it changes and not what is open. The rest is a digest of the terms, the clock, totals and the remaining
//! allowance of limits, and of the terms of assets once a vote has changed them.
//!
//! **Deviations from the design.** Certificates are checked when a block is filtered, in replay too: the keys are part
//! of the state. So only the filter can verify a certificate. The checks use up a quota of each sub-block.

mod assets;
mod custody;
mod restarted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use payments::{
    Bridge, BridgeEntry, BridgeEvent, BridgeFact, BridgeKey, BridgeOperation, BridgeRefusal, CheckBudget, HomeEpoch,
    LaneCommittee, LaneRefusal, LaneRules, LaneSchedule, Output, POST_CHECKS_MAX, Quorums, RootCache,
};
use primitives::{Address, Amount, AssetId, Digest, LaneAssetTerms, Sequence, is_lane_duty};
use proofs::Refusal;

pub(crate) use assets::LaneTermsBounds;
pub use assets::{LANE_ASSETS_MAX, LaneAssets};
pub use payments::{LaneBls, LaneRegistration};

use crate::places::sums::{Credit, Sums};
use crate::terms::LaneTerms;

const CONTEXT: &str = "walras 2026 bridge state v3";
const TERMS_CONTEXT: &str = "walras 2026 bridge terms v2";
/// The asset of deposits for cases.
pub(crate) const DEPOSITED: AssetId = AssetId(0);

/// What an operation does to the bridge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BridgeEdit<'a> {
    /// The sender's units become an output, under the number of the transaction.
    Withdraw(Sequence, Output),
    /// A post about the lane.
    Post(&'a [u8]),
}

/// The ledger's state of the payment lane.
#[derive(Clone, Debug)]
pub struct LaneBridge {
    network: Digest,
    terms: Arc<LaneTerms>,
    /// Digest of network and terms, which never change.
    terms_digest: Digest,
    /// The terms of assets by home, and their digest if a vote has changed them.
    assets: Arc<LaneAssets>,
    assets_digest: Option<Digest>,
    bridge: Bridge,
    /// Committees of the epochs that count; derived from terms and bridge.
    committees: BTreeMap<HomeEpoch, LaneCommittee>,
}

/// The results of a block at the bridge.
#[derive(Default)]
pub(crate) struct Crossing {
    pub credits: Vec<Credit>,
    /// Change of what escrow holds.
    pub escrow: Sums,
    /// Bids that cases have used up.
    pub burnt: Amount,
    /// Accounts that answer for members that were convicted.
    pub convicted: Vec<Address>,
    pub events: Vec<BridgeEvent>,
    pub change: Option<BridgeChange>,
}

/// Input for the tries about the bridge.
#[derive(Clone, Debug)]
pub struct BridgeChange {
    /// Entries up to and including this key are removed.
    pub forget: Option<[u8; BridgeEntry::KEY]>,
    /// Entries that were written or removed, by key.
    pub entries: Vec<([u8; BridgeEntry::KEY], Option<[u8; 32]>)>,
    /// A digest of everything that is not an entry.
    pub rest: Digest,
}

/// What a snapshot contains of the lane besides its state.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct LaneRecord {
    pub network: Digest,
    pub terms: LaneTerms,
}

impl LaneBridge {
    /// The lane at the genesis, ready for block 1.
    pub(crate) fn found(terms: &LaneTerms, network: Digest) -> LaneBridge {
        let assets = LaneAssets::founded(terms);
        let (bridge, _) = Bridge::new(terms.bridge_rules(network, assets.limits(0)), &terms.genesis_outputs());
        let mut lane = LaneBridge::of(network, terms.clone(), assets, bridge);
        lane.seat_committees().expect("nobody has registered");
        lane.bridge.begin();
        lane
    }

    fn of(network: Digest, terms: LaneTerms, assets: LaneAssets, bridge: Bridge) -> LaneBridge {
        let bytes = borsh::to_vec(&(network, &terms)).expect("writing to memory cannot fail");
        let terms_digest = Digest::of(TERMS_CONTEXT, &bytes);
        let (assets_digest, committees) = (assets.digest(), BTreeMap::new());
        let (terms, assets) = (Arc::new(terms), Arc::new(assets));
        LaneBridge { network, terms, terms_digest, assets, assets_digest, bridge, committees }
    }

    /// Restores the lane of a snapshot.
    pub(crate) fn restore(
        record: LaneRecord,
        voted: Option<LaneAssets>,
        state: &[u8],
        assets: usize,
    ) -> Result<LaneBridge, &'static str> {
        let LaneRecord { network, terms } = record;
        if let Some(fault) = terms.fault(assets) {
            return Err(fault);
        }
        let undecodable = |_| "its state cannot be decoded";
        let (founded, epoch) = (LaneAssets::founded(&terms), Bridge::epoch_of(state).map_err(undecodable)?);
        if let Some(fault) = voted.as_ref().and_then(|voted| voted.fault(&founded, epoch, assets)) {
            return Err(fault);
        }
        let carried = voted.unwrap_or(founded);
        let rules = terms.bridge_rules(network, carried.limits(epoch));
        let bridge = Bridge::parse(rules, state).map_err(undecodable)?;
        if bridge.totals().keys().any(|asset| carried.get(*asset, epoch).is_none()) {
            return Err("escrow holds an asset that is not in the lane");
        }
        if bridge.convicted().iter().any(|member| usize::from(*member) >= terms.members.len()) {
            return Err("an account that answers for no member is convicted");
        }
        // Checked before a committee is built for each epoch: the state determines how many there are.
        let members = terms.members.len();
        let expected = bridge.oldest()..=bridge.clock().epoch() + 1;
        if !bridge.epochs().eq(expected.map(|epoch| (epoch, members))) {
            return Err("its committees are not those of the epochs that count");
        }
        let mut lane = LaneBridge::of(network, terms, carried, bridge);
        lane.seat_committees().map_err(|_| "a registered key is invalid")?;
        let epochs: Vec<HomeEpoch> = lane.committees.keys().copied().collect();
        epochs.into_iter().for_each(|epoch| lane.give_group_key(epoch));
        Ok(lane)
    }

    pub(crate) fn record(&self) -> LaneRecord {
        LaneRecord { network: self.network, terms: LaneTerms::clone(&self.terms) }
    }

    /// The identity that everything signed in the lane names.
    pub fn network(&self) -> Digest {
        self.network
    }

    /// The terms from the genesis.
    pub fn terms(&self) -> &LaneTerms {
        &self.terms
    }

    /// The rules of a home's payments. They never change once it has begun.
    pub fn rules(&self, home: HomeEpoch) -> LaneRules {
        self.assets.rules(self.network, home)
    }

    /// The terms of assets, by home.
    pub fn assets(&self) -> &LaneAssets {
        &self.assets
    }

    /// The same, shared: a block is judged by those before it, and a reader keeps them.
    pub fn shared_assets(&self) -> Arc<LaneAssets> {
        self.assets.clone()
    }

    /// Escrow, cases, claims, lane time. Its clock shows the height of the next block.
    pub fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    /// The committee of an epoch, from the oldest epoch that counts to the next one.
    pub fn committee(&self, epoch: HomeEpoch) -> Option<&LaneCommittee> {
        self.committees.get(&epoch)
    }

    /// The epochs whose members made a group key, ascending.
    pub fn group_keys(&self) -> impl Iterator<Item = HomeEpoch> + '_ {
        self.committees.iter().filter(|(_, committee)| committee.group().is_ok()).map(|(epoch, _)| *epoch)
    }

    /// Units of an asset in escrow, including deposits of cases.
    pub fn held(&self, asset: AssetId) -> u128 {
        let deposits = if asset == DEPOSITED { self.bridge.case_deposits() } else { 0 };
        self.bridge.escrow(asset) + deposits
    }

    /// The committees of the epochs that count, and of the next one, which is registered before it begins. The first
    /// epoch uses the keys of the genesis; so does every other one if there are no registrars.
    fn seat_committees(&mut self) -> Result<(), LaneRefusal> {
        let next = self.bridge.clock().epoch() + 1;
        let oldest = self.bridge.oldest().min(next);
        for epoch in oldest..=next {
            self.bridge.register(epoch, Quorums::new(self.terms.members.len()));
            if !self.committees.contains_key(&epoch) {
                self.committees.insert(epoch, self.committee_of(epoch)?);
            }
        }
        self.committees = self.committees.split_off(&oldest);
        Ok(())
    }

    /// Gives the committee of an epoch the group key that its members generated.
    fn give_group_key(&mut self, epoch: HomeEpoch) {
        let generation = self.bridge.generation(epoch).filter(|generation| generation.outcome().is_some());
        let (Some(generation), Some(committee)) = (generation, self.committees.get_mut(&epoch)) else { return };
        // The key belongs to this committee: the board opened with the keys of all its members.
        if let Ok(with) = committee.clone().with_threshold(generation) {
            *committee = with;
        }
    }

    fn committee_of(&self, epoch: HomeEpoch) -> Result<LaneCommittee, LaneRefusal> {
        if epoch == 0 || self.terms.registrars.is_empty() {
            return Ok(LaneCommittee::new(self.network, epoch, self.terms.members.clone()));
        }
        let mut committee = LaneCommittee::unregistered(self.network, epoch, self.terms.members.len());
        self.bridge.registrations(epoch).try_for_each(|registration| committee.seat(registration))?;
        Ok(committee)
    }

    /// Adds the keys that a member has just registered.
    fn seat(&mut self, epoch: HomeEpoch, member: u8) {
        let registration = self.bridge.registrations(epoch).find(|of| of.member == member);
        if let (Some(registration), Some(committee)) = (registration, self.committees.get_mut(&epoch)) {
            committee.seat(registration).expect("the filter has verified it");
        }
    }

    /// Checks an operation against the state before a block, and verifies what it carries.
    pub(crate) fn check(&self, sender: Address, edit: BridgeEdit<'_>) -> Result<(), Refusal> {
        let bytes = match edit {
            BridgeEdit::Withdraw(_, output) => {
                return self.assets.check_deposit(output.asset, output.amount, self.bridge.clock().epoch());
            }
            BridgeEdit::Post(bytes) => bytes,
        };
        let operation = parse(bytes)?;
        // No sub-block carries it: it would wait at the head of a pool for ever, and others behind it.
        if operation.cost() > POST_CHECKS_MAX {
            return Err(Refusal::LANE_POST_OVER_QUOTA);
        }
        if !self.knows(&operation) {
            return Err(Refusal::BAD_LANE_POST);
        }
        if bid_of(&operation).is_some_and(|(bid, _)| bid < self.terms.case_deposit) {
            return Err(Refusal::WRONG_CASE_DEPOSIT);
        }
        let fact = operation.fact(&self.network, sender).map_err(|_| Refusal::BAD_LANE_POST)?;
        self.bridge.check(&fact).map_err(told)?;
        // What is free must be of use, and only members' accounts have it: otherwise a copy would cost its sender.
        if is_lane_duty(bytes) && !(self.is_duty_of(sender, &operation) && self.bridge.changes(&fact)) {
            return Err(Refusal::NO_LANE_DUTY);
        }
        let is_accusation = matches!(operation, BridgeOperation::Accuse { .. });
        let (committee, mut budget) = (|epoch| self.committee(epoch), CheckBudget(operation.cost()));
        match operation.verify(
            &self.network,
            sender,
            committee,
            &self.terms.registrars,
            &mut RootCache::new(0),
            &mut budget,
        ) {
            Ok(_) => Ok(()),
            Err(_) if is_accusation => Err(Refusal::BAD_EVIDENCE),
            Err(LaneRefusal::UnknownCommittee(_)) => Err(Refusal::NOT_REDEEMABLE),
            Err(_) => Err(Refusal::UNPROVEN_LANE_POST),
        }
    }

    /// Whether this chain supports the operation: a chain without BLS keys keeps refusing what it always refused.
    fn knows(&self, operation: &BridgeOperation) -> bool {
        match operation {
            BridgeOperation::Register { registration, .. } => {
                self.terms.bls != LaneBls::None || registration.bls.is_empty()
            }
            BridgeOperation::Deal { .. } | BridgeOperation::Complain { .. } => self.terms.bls == LaneBls::Threshold,
            _ => true,
        }
    }

    /// Whether an operation is a duty of the member that this account belongs to: the account that answers for it, or
    /// that of its registrar, or that of its first key where keys do not change. To accuse, and to show the certificate
    /// of a contested payment, are duties of each member.
    pub fn is_duty_of(&self, account: Address, operation: &BridgeOperation) -> bool {
        let belongs = |member: u8| {
            self.terms.accounts.get(usize::from(member)) == Some(&account)
                || self.signer(member).is_some_and(|key| key.address() == account)
        };
        match operation {
            BridgeOperation::Accuse { .. } | BridgeOperation::Redeem { .. } => {
                (0..self.terms.members.len()).any(|member| belongs(member as u8))
            }
            other => other.member().is_some_and(belongs),
        }
    }

    /// The bytes of an account's post: marked as a duty if it is one.
    pub fn post_bytes(&self, account: Address, operation: &BridgeOperation) -> Vec<u8> {
        if self.is_duty_of(account, operation) { operation.encode_duty() } else { operation.encode() }
    }

    /// Applies the accepted operations of a block, and begins the next height, from which on these terms act.
    pub(crate) fn apply(&mut self, edits: &[(Address, BridgeEdit<'_>)], entering: &[LaneAssetTerms]) -> Crossing {
        let before = self.all_held();
        let oldest = self.bridge.oldest();
        let facts = edits.iter().map(|(sender, edit)| self.fact(*sender, *edit)).collect();
        let (mut events, entries) = self.bridge.step(facts);
        for event in &events {
            if let BridgeEvent::Registered(epoch, member) = event {
                self.seat(*epoch, *member);
            }
        }
        events.extend(self.bridge.begin());
        self.seat_committees().expect("the filter has verified the registered keys");
        for event in &events {
            match *event {
                BridgeEvent::GroupKey(epoch, true) => self.give_group_key(epoch),
                BridgeEvent::Epoch(epoch) => self.bridge.set_limits(self.assets.limits(epoch)),
                _ => {}
            }
        }
        self.follow_terms(entering, oldest);
        let forget = BridgeEntry::last_before(self.bridge.oldest()).filter(|_| self.bridge.oldest() > oldest);
        // The last block of an epoch may write entries that are removed at the epoch's end.
        let stays = |entry: &&BridgeEntry| forget.is_none_or(|last| entry.key > last);
        let mut entries: Vec<_> = entries.iter().filter(stays).map(|entry| (entry.key, entry.value)).collect();
        entries.sort_unstable();
        let change = Some(BridgeChange { forget, entries, rest: self.rest() });
        let mut crossing = Crossing { change, ..Crossing::default() };
        for event in &events {
            match *event {
                BridgeEvent::Credit { to, asset, amount } => crossing.credits.push(Credit { to, asset, amount }),
                BridgeEvent::ReturnDeposit(to, amount) => {
                    crossing.credits.push(Credit { to, asset: DEPOSITED, amount });
                }
                BridgeEvent::KeepDeposit(amount) => crossing.burnt += amount,
                BridgeEvent::Convicted(member) => {
                    crossing.convicted.extend(self.terms.accounts.get(usize::from(member)));
                }
                _ => {}
            }
        }
        for (asset, held) in self.all_held() {
            crossing.escrow.add(asset, held as i128 - before.get(&asset).map_or(0, |held| *held as i128));
        }
        crossing.events = events;
        crossing
    }

    /// Terms act from the next height on, and those are dropped that no kept epoch has.
    fn follow_terms(&mut self, entering: &[LaneAssetTerms], oldest_before: HomeEpoch) {
        let (clock, oldest) = (self.bridge.clock(), self.bridge.oldest());
        if entering.is_empty() && (oldest == oldest_before || self.assets_digest.is_none()) {
            return;
        }
        let assets = Arc::make_mut(&mut self.assets);
        assets.enter(entering, clock.epoch() + 1, clock.height());
        if assets.prune(oldest) || !entering.is_empty() {
            self.assets_digest = assets.digest();
        }
    }

    /// The accounts that answer for members with keys of an epoch for which evidence is accepted.
    pub(crate) fn answering(&self) -> impl Iterator<Item = Address> + '_ {
        let has_keys =
            |member: usize| self.committees.values().any(|committee| !committee.keys_of(member as u8).is_empty());
        self.terms.accounts.iter().enumerate().filter(move |(member, _)| has_keys(*member)).map(|(_, account)| *account)
    }

    /// Block heights that a stake waits for the lane at most: as long as a case may take, however slowly lane time
    /// passes.
    pub(crate) fn stake_heights(&self) -> u64 {
        let LaneTerms { epoch_heights, halt_heights, .. } = *self.terms;
        LaneSchedule { epoch_heights, halt_heights }.case_heights()
    }

    fn fact(&self, sender: Address, edit: BridgeEdit<'_>) -> BridgeFact {
        match edit {
            BridgeEdit::Withdraw(sequence, output) => BridgeFact::Withdraw { account: sender, sequence, output },
            BridgeEdit::Post(bytes) => {
                let operation = parse(bytes).expect("it passed the filter");
                operation.fact(&self.network, sender).expect("it passed the filter")
            }
        }
    }

    /// Units held of each asset of the lane, and of the asset of deposits.
    fn all_held(&self) -> BTreeMap<AssetId, u128> {
        let assets = self.assets.known().into_iter();
        assets.chain([DEPOSITED]).map(|asset| (asset, self.held(asset))).collect()
    }

    /// The whole bridge as input for the tries.
    pub(crate) fn whole(&self) -> BridgeChange {
        let mut entries: Vec<_> = self.bridge.entries().map(|entry| (entry.key, entry.value)).collect();
        entries.sort_unstable();
        BridgeChange { forget: None, entries, rest: self.rest() }
    }

    fn rest(&self) -> Digest {
        let rest = [self.terms_digest, self.bridge.rest_digest()].into_iter().chain(self.assets_digest);
        Digest::of(CONTEXT, &rest.map(|part| part.0).collect::<Vec<_>>().concat())
    }
}

fn parse(bytes: &[u8]) -> Result<BridgeOperation, Refusal> {
    BridgeOperation::parse(bytes).map_err(|_| Refusal::BAD_LANE_POST)
}

/// What a sender bids for each of how many cases.
fn bid_of(operation: &BridgeOperation) -> Option<(Amount, usize)> {
    match operation {
        BridgeOperation::Resolve { bid, outputs } => Some((*bid, outputs.len())),
        _ => None,
    }
}

/// The once-key of a post, and the bids of its sender.
pub(crate) fn claims(bytes: &[u8]) -> Result<(BridgeKey, Amount), Refusal> {
    let operation = parse(bytes)?;
    let key = operation.once().map_err(|_| Refusal::BAD_LANE_POST)?;
    let (bid, cases) = bid_of(&operation).unwrap_or((0, 0));
    let bids = bid.checked_mul(cases as Amount).ok_or(Refusal::WRONG_CASE_DEPOSIT)?;
    Ok((key, bids))
}

/// Units of a sub-block's quota that a post costs: its signature checks.
pub(crate) fn cost(bytes: &[u8]) -> u32 {
    parse(bytes).map_or(1, |operation| operation.cost().max(1))
}

/// The reason that a client is told.
fn told(refusal: BridgeRefusal) -> Refusal {
    match refusal {
        BridgeRefusal::NotRedeemable(_) => Refusal::NOT_REDEEMABLE,
        BridgeRefusal::Void => Refusal::VOID_PAYMENT,
        BridgeRefusal::TooLate(_) => Refusal::CASE_TOO_LATE,
        BridgeRefusal::UnknownOutput => Refusal::UNKNOWN_OUTPUT,
        BridgeRefusal::NoCase => Refusal::NO_CASE,
        BridgeRefusal::WrongRound { .. } => Refusal::WRONG_HALT_ROUND,
        BridgeRefusal::WrongRegistration(_) => Refusal::WRONG_LANE_KEYS,
        BridgeRefusal::EvidenceTooOld(_) => Refusal::EVIDENCE_TOO_OLD,
        BridgeRefusal::NotAwaited(_) => Refusal::NOT_AWAITED,
        BridgeRefusal::WrongComplaint => Refusal::UNPROVEN_LANE_POST,
    }
}
