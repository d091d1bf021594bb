//! The place and the model side by side: the same blocks, and after each the same state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use primitives::venue::{
    Delay, Horizon, Mandate, MarketMandate, MarketTerms, OrderNumber, Settle, VenueOperation, VenueOperator,
};
use primitives::{
    Address, Amount, AssetId, Body, Digest, Operation, PublicKey, SecretKey, Sequence, Signature, Transaction,
};
use proofs::{FillVerdict, Refusal, VenueRecordId};

use super::model::{Plain, PlainDeposit, PlainEntry, VENUE, zero};
use crate::places::venues::Venues;
use crate::places::venues::chunks::{VenuesReader, chunks};
use crate::places::venues::edit::{VenueEdit, VenueOnce};
use crate::places::venues::mistake::VenueMistake;
use crate::places::venues::records::{VenueRow, number_of};
use crate::places::venues::step::Step;
use crate::places::{ReadChunks, Restored};
use crate::terms::{Limits, VenueTerms};

pub const NETWORK: Digest = Digest([9; 32]);
pub const OWNER: u8 = 1;
pub const OPERATOR: u8 = 2;
pub const TRADERS: [u8; 3] = [3, 4, 5];

pub fn account(person: u8) -> Address {
    Address([person; 20])
}

/// The trading key of a person; keys are not verified here.
pub fn public(person: u8) -> PublicKey {
    PublicKey([100 + person; 32])
}

pub fn reporting(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

pub fn operator(person: u8, report: u8) -> VenueOperator {
    VenueOperator { account: account(person), report_key: reporting(report).public() }
}

pub fn terms() -> VenueTerms {
    VenueTerms {
        delay: Delay { heights: 2, ms: 3 },
        bond_min: 20,
        bond_delay: Delay { heights: 4, ms: 8 },
        settle_bytes: 1 << 16,
        entries_max: 9,
        penalty_min: 1,
        venues_max: 2,
        per_block: 10_000,
        life_max: 6,
    }
}

pub fn market() -> MarketTerms {
    let (base, quote) = (AssetId(1), AssetId(0));
    MarketTerms { base, quote, lot_units: 1, tick_units: 1, lots_max: 6, fee_cap_ppm: 400_000, penalty: 2 }
}

/// Both of them, and the operations of the last block for a second look.
#[derive(Clone)]
pub struct World {
    pub venues: Venues,
    pub plain: Plain,
    pub sequence: Sequence,
}

/// What a block did outside of the records.
type Outside = (BTreeMap<(Address, AssetId), Amount>, Amount, BTreeSet<Sequence>, Vec<FillVerdict>);

impl World {
    /// A venue with two markets, and keys of all traders; deposits of units of both assets.
    pub fn new(mistake: VenueMistake, units: Amount, bond: Amount) -> World {
        let mut venues = Venues::new(NETWORK, terms(), Horizon::new(terms().delay, 0, 0));
        venues.mistake = mistake;
        let plain = Plain {
            network: NETWORK,
            terms: terms(),
            times: vec![0],
            owner: account(OWNER),
            operator: operator(OPERATOR, 0),
            fee_cap: 500_000,
            incarnation: 0,
            judged: 0,
            report_keys: vec![reporting(0).public()],
            leaves: Vec::new(),
            ended: Vec::new(),
            bond,
            leaving: None,
            markets: vec![market(), MarketTerms { penalty: 3, fee_cap_ppm: 1_000_000, ..market() }],
            deposits: BTreeMap::new(),
            keys: BTreeMap::new(),
            entries: BTreeMap::new(),
            claimed: BTreeSet::new(),
            paid: BTreeMap::new(),
            burnt: 0,
        };
        let mut world = World { venues, plain, sequence: 0 };
        world.found(bond);
        for trader in TRADERS {
            let cap = if trader == 5 { 4 } else { 1_000 };
            let band = |market| MarketMandate { market, tick_min: 1, tick_max: 3 };
            let mandate = Mandate {
                markets: vec![band(0), band(1)],
                caps: vec![(AssetId(0), cap), (AssetId(1), cap)],
                ..Mandate::default()
            };
            let (key, possession) = (public(trader), Signature([0; 64]));
            let authorize = VenueOperation::Authorize { venue: VENUE, key, mandate, possession };
            let deposit = |asset| VenueOperation::Deposit { venue: VENUE, asset: AssetId(asset), units };
            world.sequence += 10;
            let edits: Vec<_> = [authorize, deposit(0), deposit(1)].map(|one| (account(trader), one)).to_vec();
            world.block(1, &edits).expect("no mistake shows");
        }
        world
    }

    /// Opens the venue and lists its markets; the model has them from the start.
    fn found(&mut self, bond: Amount) {
        let mut step = Step::new(&[], &[]);
        let open = VenueOperation::Open { venue: VENUE, operator: operator(OPERATOR, 0), fee_cap_ppm: 500_000, bond };
        self.venues.edit(account(OWNER), &open, &mut step);
        for (market, terms) in (0..).zip(self.plain.markets.clone()) {
            self.venues.edit(account(OWNER), &VenueOperation::List { venue: VENUE, market, terms }, &mut step);
        }
    }

    /// The place's judgement of an operation on the state before a block, which must be the model's.
    fn check(&self, sender: Address, operation: &VenueOperation) -> Result<bool, String> {
        let permits = self.plain.permits(sender, operation);
        let refusal: Option<Refusal> = self.venues.check(sender, operation).err();
        match refusal.is_none() == permits {
            true => Ok(permits),
            false => Err(format!("{operation:?}: the model says {permits}, the place {refusal:?}")),
        }
    }

    /// Runs a block with those of the operations that are admitted; an error names the first difference.
    pub fn block(&mut self, passes: u64, operations: &[(Address, VenueOperation)]) -> Result<Vec<FillVerdict>, String> {
        let mut admitted = Vec::new();
        let mut once = BTreeSet::new();
        for (sender, operation) in operations {
            // Of what counts once the first one is kept here; the filter keeps the lowest id.
            let key = VenueOnce::of(operation);
            let is_first = key.is_none_or(|key| match key {
                VenueOnce::Collected(..) => once.insert((Some(*sender), key)),
                _ => once.insert((None, key)),
            });
            if self.check(*sender, operation)? && is_first {
                self.sequence += 1;
                admitted.push((*sender, self.sequence, operation.clone()));
            }
        }
        let time = self.plain.times.last().expect("the genesis") + passes;
        let transactions: Vec<Transaction> = admitted.iter().map(transaction).collect();
        let before = self.venues.clone();
        let place = run(&mut self.venues, time, &admitted, &transactions);
        let model = self.model_block(time, &admitted, &transactions);
        compare("outside", &place, &model)?;
        self.compare_state()?;
        self.compare_again(before, time, &admitted, &transactions)?;
        Ok(place.3)
    }

    fn model_block(
        &mut self,
        time: u64,
        admitted: &[(Address, Sequence, VenueOperation)],
        transactions: &[Transaction],
    ) -> Outside {
        let plain = &mut self.plain;
        plain.times.push(time);
        (plain.paid, plain.burnt) = (BTreeMap::new(), 0);
        let as_settle = |(at, (_, sequence, operation)): (usize, &(Address, Sequence, VenueOperation))| match operation
        {
            VenueOperation::Settle(settle) => Some((settle.clone(), *sequence, transactions[at].id())),
            _ => None,
        };
        let settles: Vec<(Settle, Sequence, Digest)> = admitted.iter().enumerate().filter_map(as_settle).collect();
        let mut void: BTreeSet<Sequence> = settles.iter().map(|(_, sequence, _)| *sequence).collect();
        let mut counting: Vec<_> = settles.iter().filter(|(settle, ..)| plain.counts(settle)).collect();
        counting.sort_by_key(|(settle, _, id)| (std::cmp::Reverse(settle.fills.len()), *id));
        let mut verdicts = Vec::new();
        if let Some((settle, sequence, _)) = counting.first() {
            void.remove(sequence);
            verdicts = plain.settle(settle);
        }
        let stages: [fn(&VenueOperation) -> bool; 7] = [
            |one| matches!(one, VenueOperation::Accuse(_) | VenueOperation::AccuseStep(_)),
            |one| matches!(one, VenueOperation::Claim(_) | VenueOperation::ClaimStep(_)),
            |one| matches!(one, VenueOperation::Bond { .. }),
            |one| matches!(one, VenueOperation::Unbond { .. }),
            |one| matches!(one, VenueOperation::Deposit { .. }),
            |one| {
                use VenueOperation::*;
                matches!(
                    one,
                    Collect { .. } | Authorize { .. } | Revoke { .. } | RaiseFloor { .. } | ChangeOperator { .. }
                )
            },
            |one| matches!(one, VenueOperation::Fence { .. }),
        ];
        for is_of_stage in stages {
            let of_stage = admitted.iter().filter(|(.., operation)| is_of_stage(operation));
            of_stage.for_each(|(sender, _, operation)| plain.act(*sender, operation));
        }
        plain.end();
        (plain.paid.clone(), plain.burnt, void, verdicts)
    }

    /// Compares all records.
    fn compare_state(&self) -> Result<(), String> {
        let (venues, plain) = (&self.venues, &self.plain);
        let venue = venues.get(VENUE).expect("it is open");
        let leaving = venue.leaving.map(|of| (of.units, of.since.height as usize));
        compare("bond", &(venue.bond, leaving), &(plain.bond, plain.leaving))?;
        compare("incarnation", &(venue.incarnation, venue.judged), &(plain.incarnation, plain.judged))?;
        compare("report keys", &venue.report_keys, &plain.report_keys)?;
        compare("operator", &venue.operator, &plain.operator)?;
        let counts = (venue.fills.count() as usize, venue.finals.count() as usize, venue.entries as usize);
        compare("counts", &counts, &(plain.leaves.len(), plain.ended.len(), plain.entries.len()))?;
        let deposits: BTreeMap<(Address, AssetId), PlainDeposit> = venues
            .deposits
            .iter()
            .map(|(id, of)| {
                let leaving = of.leaving.map(|leaving| (leaving.units, leaving.since as usize));
                ((id.1, id.2), PlainDeposit { free: of.free, leaving })
            })
            .collect();
        compare("deposits", &deposits, &plain.deposits)?;
        let entries: BTreeMap<(PublicKey, OrderNumber), PlainEntry> = venues
            .filled
            .iter()
            .map(|(id, of)| {
                let quote = of.quote as i128;
                (
                    (id.2, number_of(id)),
                    PlainEntry { digest: of.digest, lots: of.lots, quote, fee: of.fee, expiry: of.expiry },
                )
            })
            .collect();
        compare("entries", &entries, &plain.entries)?;
        for (public, key) in &plain.keys {
            let of = venues.key(VENUE, public).expect("authorised");
            let nets: BTreeMap<u32, i128> =
                key.net.iter().filter(|(_, net)| **net != 0).map(|(a, n)| (*a, *n)).collect();
            compare("gains", &of.net.iter().map(|(asset, net)| (asset.0, *net)).collect(), &nets)?;
            compare("floor", &venues.floor_in_force(of).max(zero()), &plain.floor(key))?;
            compare("revoked", &of.revoked.map(|height| height as usize), &key.revoked)?;
        }
        Ok(())
    }

    /// The place after a snapshot, and after the same block in another order, is the same place.
    fn compare_again(
        &self,
        mut before: Venues,
        time: u64,
        admitted: &[(Address, Sequence, VenueOperation)],
        transactions: &[Transaction],
    ) -> Result<(), String> {
        let written: Vec<Vec<u8>> = chunks(&self.venues).collect();
        let reversed: Vec<_> = admitted.iter().rev().cloned().collect();
        let in_order: Vec<_> = transactions.iter().rev().cloned().collect();
        run(&mut before, time, &reversed, &in_order);
        compare("another order", &chunks(&before).collect(), &written)?;
        let mut reader = VenuesReader::default();
        written.iter().for_each(|chunk| reader.push(&chunk[1..]).expect("a chunk of a snapshot"));
        let restored = reader.finish(&Restored { assets: 2, issuers: Vec::new(), limits: Limits::default() });
        let restored: Option<Arc<Venues>> = restored.map_err(|error| error.to_string())?;
        let queues = |venues: &Venues| {
            let queues = &venues.queues;
            let payouts: Vec<_> = queues.payouts.iter().map(|(id, ())| *id).collect();
            let expiries: Vec<_> = queues.expiries.iter().map(|(id, ())| *id).collect();
            let claims: Vec<_> = queues.claims.iter().map(|(id, ())| *id).collect();
            (payouts, expiries, claims)
        };
        let restored = restored.expect("there are venues");
        let live = |(payouts, expiries, claims): (Vec<(u64, _)>, _, _)| {
            // A request that fills have used up leaves its place in the queue, which finds nothing.
            let leaves = |(since, id): &(u64, proofs::DepositId)| {
                self.venues.deposits.get(id).is_some_and(|of| of.leaving.is_some_and(|of| of.since == *since))
            };
            (payouts.into_iter().filter(leaves).collect::<Vec<_>>(), expiries, claims)
        };
        compare("queues", &queues(&restored), &live(queues(&self.venues)))
    }
}

/// Runs a block at the place.
fn run(
    venues: &mut Venues,
    time: u64,
    admitted: &[(Address, Sequence, VenueOperation)],
    transactions: &[Transaction],
) -> Outside {
    let by_reference: Vec<&Transaction> = transactions.iter().collect();
    let refusals = vec![None; transactions.len()];
    let mut step = Step::new(&by_reference, &refusals);
    let edits: Vec<(Address, VenueEdit<'_>)> = admitted
        .iter()
        .map(|(sender, sequence, operation)| (*sender, VenueEdit { sequence: *sequence, operation }))
        .collect();
    let settles = edits.iter().any(|(_, edit)| matches!(edit.operation, VenueOperation::Settle(_)));
    let before = settles.then(|| values(venues));
    venues.apply_block(time, &edits, &mut step);
    let (touched, rows) = (std::mem::take(&mut venues.touched), std::mem::take(&mut venues.rows));
    if let Some(before) = before {
        assert_eq!(followed(before, venues, touched, rows), values(venues), "the trie has the records as they are");
    }
    venues.moved = Default::default();
    let mut paid = BTreeMap::new();
    for credit in &step.credits {
        *paid.entry((credit.to, credit.asset)).or_default() += credit.amount;
    }
    let void = step.void.iter().map(|(_, sequence)| *sequence).collect();
    let verdicts = step.settled.iter().flat_map(|settled| settled.verdicts.clone()).collect();
    (paid, step.burnt, void, verdicts)
}

/// What the trie has after a block that touched these records.
fn followed(
    mut values: BTreeMap<[u8; 32], [u8; 32]>,
    venues: &Venues,
    touched: Vec<VenueRecordId>,
    rows: Vec<VenueRow>,
) -> BTreeMap<[u8; 32], [u8; 32]> {
    let change = venues.change(touched, rows).expect("there are venues");
    assert!(change.records.is_sorted_by(|one, next| one.0 < next.0), "the trie takes each key once, in order");
    for (key, value) in change.records {
        match value {
            Some(value) => values.insert(key, value),
            None => values.remove(&key),
        };
    }
    values
}

/// What the trie has of all records.
fn values(venues: &Venues) -> BTreeMap<[u8; 32], [u8; 32]> {
    let change = venues.change(venues.all_ids(), Vec::new()).expect("there are venues");
    change.records.into_iter().map(|(key, value)| (key, value.expect("it exists"))).collect()
}

fn transaction((sender, sequence, operation): &(Address, Sequence, VenueOperation)) -> Transaction {
    let operation = Operation::Venue(Box::new(operation.clone()));
    let body = Body { chain: 1, account: *sender, sequence: *sequence, until: 9, operation };
    Transaction::by_key(body, PublicKey([1; 32]), Signature([0; 64]))
}

fn compare<T: PartialEq + std::fmt::Debug>(what: &str, place: &T, model: &T) -> Result<(), String> {
    if place == model { Ok(()) } else { Err(format!("{what}: the place has {place:?}, and the model {model:?}")) }
}
