//! The chain: the real ledger, block after block, with the books beside it and what blocks say to roots.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use ledger::{BustReason, FillVerdict, Ledger, Outcome, Signatures, Venues};
use primitives::venue::{Delay, Settle, VenueOperation};
use primitives::{
    AssetControl, Body, Digest, Height, Operation, Sequence, SubBlock, Superblock, Transaction, TransactionId,
};
use venue::{CertifiedFacts, ChainState, FillFate, facts_since, fate_of, settles_of};

use super::oracle::Oracle;
use super::people::{BLOCK_MS, DAY, DELAY, Person, VENUE, address, genesis, key, operates};
use crate::world::MarketMistake;

/// Ledgers a day later, by their last block: the runs with a controlled asset begin alike.
static DAY_LATER: Mutex<BTreeMap<Digest, Ledger>> = Mutex::new(BTreeMap::new());

pub(super) struct Chain {
    pub ledger: Ledger,
    pub oracle: Oracle,
    pub time_ms: u64,
    /// What each block changed.
    facts: Vec<CertifiedFacts>,
    before: ChainState,
    /// Every settle that pools were sent in this incarnation, in order.
    pub settles: Vec<Transaction>,
    mistake: Option<MarketMistake>,
    /// Verdicts that nobody has taken yet.
    verdicts: (u64, Vec<BustReason>),
    pub voids: u64,
    /// After how many changes of the operator each settle was first sent.
    sent_under: BTreeMap<TransactionId, u8>,
    pub refused: u64,
    /// Empty blocks that passed before the run.
    passed: Height,
}

/// What a host reads of the ledger, with the account of the present operator.
fn state_of(ledger: &Ledger, changes: u8) -> ChainState {
    ChainState::of(ledger, &address(operates(changes))).expect("the chain has venues")
}

impl Chain {
    pub fn new(mistake: Option<MarketMistake>, control: AssetControl, has_lists: bool) -> Chain {
        let shorter = u64::from(mistake == Some(MarketMistake::DelayTooShort));
        let delay = Delay { heights: DELAY.heights - shorter, ..DELAY };
        let ledger = Ledger::new(&genesis(delay, control, has_lists)).expect("a sound genesis");
        Chain {
            oracle: Oracle::new(ledger.network(), control),
            before: state_of(&ledger, 0),
            ledger,
            time_ms: 1_000_000,
            facts: Vec::new(),
            settles: Vec::new(),
            mistake,
            verdicts: (0, Vec::new()),
            voids: 0,
            sent_under: BTreeMap::new(),
            refused: 0,
            passed: 0,
        }
    }

    /// Blocks of the run.
    pub fn blocks(&self) -> u64 {
        self.height() - self.passed
    }

    fn day_later(&self) -> Result<Ledger, String> {
        let mut ledger = self.ledger.clone();
        for second in 1..=DAY {
            let (height, parent) = (ledger.height() + 1, ledger.last_block());
            let block =
                Superblock { height, parent, time_ms: self.time_ms + second * BLOCK_MS, ..Superblock::default() };
            ledger.apply(&block, Signatures::Valid, &mut |_| {}).map_err(|fault| fault.to_string())?;
        }
        Ok(ledger)
    }

    /// A day of empty blocks.
    pub fn pass_a_day(&mut self) -> Result<(), String> {
        let mut known = DAY_LATER.lock().unwrap_or_else(PoisonError::into_inner);
        let time_ms = self.time_ms;
        self.ledger = match known.entry(self.last_block()) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => place.insert(self.day_later()?).clone(),
        };
        self.oracle.pass((1..=DAY).map(|second| time_ms + second * BLOCK_MS));
        self.time_ms += DAY * BLOCK_MS;
        self.before = state_of(&self.ledger, self.oracle.changes);
        self.facts.clear();
        self.passed = DAY;
        Ok(())
    }

    pub fn height(&self) -> Height {
        self.ledger.height()
    }

    pub fn network(&self) -> Digest {
        self.ledger.network()
    }

    pub fn last_block(&self) -> Digest {
        self.ledger.last_block()
    }

    pub fn venues(&self) -> Arc<Venues> {
        self.before.venues.clone()
    }

    /// The next number of an account.
    pub fn next_sequence(&self, person: Person) -> Sequence {
        self.ledger.accounts().get(&address(person)).map_or(0, |of| of.window().highest()) + 1
    }

    /// An operation in a transaction.
    pub fn sign(&self, person: Person, sequence: Sequence, operation: VenueOperation) -> Transaction {
        self.sign_any(person, sequence, Operation::Venue(Box::new(operation)))
    }

    /// Any operation in a transaction.
    pub fn sign_any(&self, person: Person, sequence: Sequence, operation: Operation) -> Transaction {
        let until = self.height() + 8;
        let body = Body { chain: 1, account: address(person), sequence, until, operation };
        body.sign(&self.network(), &key(person))
    }

    /// A settle that the operator signs as its next transaction.
    pub fn settle(&self, settle: Settle) -> Transaction {
        let person = operates(self.oracle.changes);
        self.sign(person, self.next_sequence(person), VenueOperation::Settle(settle))
    }

    /// A block of operations that must apply.
    pub fn must(&mut self, operations: Vec<(Person, VenueOperation)>) -> Result<(), String> {
        let outcomes = self.block(operations, Vec::new(), BLOCK_MS)?;
        match outcomes.iter().find(|outcome| **outcome != Outcome::Applied) {
            None => Ok(()),
            Some(other) => Err(format!("an operation that must count is {other:?}")),
        }
    }

    /// A block; returns the outcomes of the operations.
    pub fn block(
        &mut self,
        operations: Vec<(Person, VenueOperation)>,
        settles: Vec<Transaction>,
        passes_ms: u64,
    ) -> Result<Vec<Outcome>, String> {
        let count = operations.len();
        let mut native: Vec<Transaction> = Vec::new();
        for (at, (person, operation)) in operations.iter().enumerate() {
            let own = operations[..at].iter().filter(|(other, _)| other == person).count() as u64;
            native.push(self.sign(*person, self.next_sequence(*person) + own, operation.clone()));
        }
        native.extend(settles);
        // Positions in a block mean nothing: proposers choose them.
        let turn = self.height() as usize % native.len().max(1);
        native.rotate_left(turn);
        self.time_ms += passes_ms;
        let (height, parent, time_ms) = (self.height() + 1, self.ledger.last_block(), self.time_ms);
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, time_ms, sub_blocks, ..Superblock::default() };
        let signatures = match self.mistake {
            Some(MarketMistake::OrdersUnverified) => Signatures::Valid,
            _ => Signatures::Unchecked,
        };
        let applied = self.ledger.apply(&block, signatures, &mut |_| {}).map_err(|fault| fault.to_string())?;
        let mut judged = applied.venues;
        if self.mistake == Some(MarketMistake::BustsApplied) {
            judged.iter_mut().flat_map(|of| &mut of.verdicts).for_each(|verdict| *verdict = FillVerdict::Applied);
        }
        let mut outcomes = applied.outcomes;
        let all = block.sub_blocks[0].native.iter().zip(&outcomes);
        let counted: Vec<&Transaction> = all.filter(|(_, of)| **of == Outcome::Applied).map(|(one, _)| one).collect();
        let void = block.sub_blocks[0].native.iter().zip(&outcomes).filter(|(_, of)| **of == Outcome::Void);
        self.voids += void.filter(|(settle, _)| !self.is_of_an_earlier_operator(settle)).count() as u64;
        self.refused += outcomes.iter().filter(|of| of.refusal().is_some()).count() as u64;
        self.oracle.follow(&self.ledger, time_ms, &counted, &judged)?;
        self.ledger.audit().map_err(|error| format!("bookkeeping: {error}"))?;
        self.note_verdicts(judged.iter().flat_map(|of| &of.verdicts));
        let state = state_of(&self.ledger, self.oracle.changes);
        let mut facts = settles_of(&judged, VENUE);
        facts.extend(facts_since(&state, Some(&self.before), VENUE));
        self.before = state;
        self.facts.push(CertifiedFacts { height, time_ms, newest: height, facts });
        outcomes.rotate_right(turn);
        outcomes.truncate(count);
        Ok(outcomes)
    }

    /// Pools have a settle of each root.
    pub fn send(&mut self, settle: Transaction) {
        self.sent_under.entry(settle.id()).or_insert(self.oracle.changes);
        self.settles.retain(|one| *one != settle);
        self.settles.push(settle);
    }

    /// Another operator settled meanwhile what this one had sent. Once the account operates again, a stale pool may
    /// still propose that settle, which then pays and does nothing.
    fn is_of_an_earlier_operator(&self, settle: &Transaction) -> bool {
        self.sent_under.get(&settle.id()).is_some_and(|changes| *changes < self.oracle.changes)
    }

    fn note_verdicts<'a>(&mut self, verdicts: impl Iterator<Item = &'a FillVerdict>) {
        for verdict in verdicts {
            match verdict {
                FillVerdict::Applied => self.verdicts.0 += 1,
                FillVerdict::Bust(reason, _) => self.verdicts.1.push(*reason),
            }
        }
    }

    /// The number of fills that were applied since the last call, and why others are bust.
    pub fn take_verdicts(&mut self) -> (u64, Vec<BustReason>) {
        std::mem::take(&mut self.verdicts)
    }

    /// What a root that knows a height is told up to another one. One that knows nothing is told the present state.
    pub fn facts_for(&self, known: Option<Height>, height: Height) -> Vec<CertifiedFacts> {
        let newest = self.height();
        let Some(known) = known else {
            let facts = facts_since(&self.before, None, VENUE);
            return vec![CertifiedFacts { height: newest, time_ms: self.time_ms, newest, facts }];
        };
        let next = self.facts.iter().filter(|of| of.height > known && of.height <= height);
        next.map(|of| CertifiedFacts { newest, ..of.clone() }).collect()
    }

    /// What the ledger made of a fill of the present incarnation.
    pub fn fate(&self, index: u64) -> Option<FillFate> {
        self.oracle.verdicts.get(index as usize).map(fate_of)
    }
}
