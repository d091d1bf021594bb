//! The issuer of EUR in some runs: it freezes and admits holders, recalls what they have at the venue, and recovers units
//! of their accounts. Plain books of what it said judge fills, recalls and recoveries; they share no rule with the
//! ledger.

use std::collections::BTreeMap;

use kernel::Dice;
use ledger::{HolderRecord, Ledger};
use primitives::venue::VenueOperation;
use primitives::{
    Address, AssetControl, Height, HolderRecovery, HolderState, Operation, Reference, ReferenceKind, Transaction,
};

use super::MarketWorld;
use super::people::{EUR, EVERYBODY, HOSTILE, ISSUER, OWNER, Person, VENUE, address};

/// Heights that a holder is frozen before its units are recalled or recovered.
pub(super) const DAY: Height = 24 * 60 * 60;
/// Frozen since the day before the run.
pub(super) const LONG_FROZEN: Person = HOSTILE[1];
/// Where holders are admitted, nobody has mentioned this one before the run.
pub(super) const UNKNOWN: Person = HOSTILE[0];

/// The control of EUR in the run of a seed: mostly none.
pub(super) fn control_of(seed: u64) -> AssetControl {
    match seed % 16 {
        6 | 7 => AssetControl::Recoverable,
        9 | 14 => AssetControl::AdmittedRecoverable,
        _ => AssetControl::Open,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    is_open: bool,
    was_open: bool,
    since: Height,
}

/// What the issuer has said of holders.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    is_controlled: bool,
    admits: bool,
    words: BTreeMap<Address, Word>,
}

/// What an issuer did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IssuerCounts {
    pub frozen: u64,
    pub recalled: u64,
    pub recovered: u64,
}

impl Holders {
    pub fn new(control: AssetControl) -> Holders {
        let admits = control == AssetControl::AdmittedRecoverable;
        Holders { is_controlled: control != AssetControl::Open, admits, words: BTreeMap::new() }
    }

    /// Whether an account may hold EUR now.
    pub fn is_open(&self, account: &Address) -> bool {
        self.words.get(account).map_or(!self.admits, |word| word.is_open)
    }

    /// Whether a fill may move EUR of an account, where freezes since these heights are past.
    pub fn trades(&self, account: &Address, is_past: impl Fn(Height) -> bool) -> bool {
        let frozen = self.words.get(account).filter(|word| !word.is_open);
        self.is_open(account) || frozen.is_some_and(|word| word.was_open && !is_past(word.since))
    }

    /// Whether units of an account may be recalled and recovered in a block of a height.
    pub fn is_due(&self, account: &Address, height: Height) -> bool {
        self.words.get(account).is_some_and(|word| !word.is_open && word.since + DAY <= height)
    }

    /// The issuer speaks; returns whether that freezes somebody who was not.
    pub fn say(&mut self, account: Address, state: HolderState, height: Height) -> bool {
        let (was_open, is_open) = (self.is_open(&account), state == HolderState::Open);
        // What is so already changes nothing, but that somebody unknown is known from now on.
        if was_open == is_open && (was_open || self.words.contains_key(&account)) {
            return false;
        }
        self.words.insert(account, Word { is_open, was_open, since: height });
        if is_open && !self.admits {
            self.words.remove(&account);
        }
        was_open
    }

    /// The ledger has heard the same.
    pub fn compare(&self, ledger: &Ledger) -> Result<(), String> {
        let word = |of: &HolderRecord| Word { is_open: of.is_open, was_open: of.was_open, since: of.since };
        let theirs: BTreeMap<Address, Word> =
            ledger.controls().holders().map(|((_, account), record)| (*account, word(record))).collect();
        if theirs == self.words {
            Ok(())
        } else {
            Err(format!("of holders the ledger says {theirs:?}, and the books say {:?}", self.words))
        }
    }
}

fn reference() -> Reference {
    Reference::read(ReferenceKind::Text, "case 7").expect("plain")
}

fn says(person: Person, state: HolderState) -> Operation {
    Operation::SetHolder { asset: EUR, account: address(person), state, reference: reference() }
}

fn recalls(person: Person) -> Operation {
    let recall = VenueOperation::Recall { venue: VENUE, asset: EUR, account: address(person) };
    Operation::Venue(Box::new(recall))
}

impl MarketWorld {
    /// Before anything else: whoever trades is admitted, if somebody must be, but for one.
    pub(super) fn admit_first(&mut self) -> Result<(), String> {
        if !self.chain.oracle.holders.admits {
            return Ok(());
        }
        let others = EVERYBODY.into_iter().chain([OWNER]).filter(|person| *person != UNKNOWN);
        self.issue(others.map(|person| says(person, HolderState::Open)).collect())
    }

    /// One trader is frozen, and a day passes, so that the issuer may recall and recover.
    pub(super) fn freeze_first(&mut self) -> Result<(), String> {
        if !self.chain.oracle.holders.is_controlled {
            return Ok(());
        }
        self.issue(vec![says(LONG_FROZEN, HolderState::Frozen)])?;
        self.chain.pass_a_day()
    }

    fn issue(&mut self, operations: Vec<Operation>) -> Result<(), String> {
        let signed = self.signed_by_issuer(operations);
        self.chain.block(Vec::new(), signed, super::BLOCK_MS).map(drop)
    }

    fn signed_by_issuer(&self, operations: Vec<Operation>) -> Vec<Transaction> {
        let next = self.chain.next_sequence(ISSUER);
        (next..).zip(operations).map(|(number, operation)| self.chain.sign_any(ISSUER, number, operation)).collect()
    }

    /// What the issuer does in a block: now and then a word, a recall and a recovery, many of them too early. At most
    /// one of each, so that all that count do something.
    pub(super) fn of_issuer(&mut self) -> Vec<Transaction> {
        let (Some(dice), false) = (&mut self.issuer, self.healed) else { return Vec::new() };
        let oracle = &self.chain.oracle;
        let all: Vec<Person> = EVERYBODY.into_iter().chain([OWNER]).collect();
        let frozen: Vec<Person> =
            all.iter().copied().filter(|person| !oracle.holders.is_open(&address(*person))).collect();
        let some = |dice: &mut Dice, of: &[Person]| of[dice.index(of.len())];
        let suspect =
            |dice: &mut Dice| if frozen.is_empty() || dice.once_in(4) { some(dice, &all) } else { some(dice, &frozen) };
        let mut operations = Vec::new();
        if dice.once_in(5) {
            // Mostly somebody is opened again, so that there is a market; whom the issuer pursues seldom is.
            let pardoned: Vec<Person> =
                frozen.iter().copied().filter(|one| *one != LONG_FROZEN || dice.once_in(4)).collect();
            operations.push(match pardoned.is_empty() || dice.once_in(3) {
                true => says(some(dice, &all), HolderState::Frozen),
                false => says(some(dice, &pardoned), HolderState::Open),
            });
        }
        if dice.once_in(6) {
            operations.push(recalls(suspect(dice)));
        }
        if dice.once_in(5) {
            let person = suspect(dice);
            let held = oracle.balance(person, EUR);
            if held > 0 {
                let (from, to, amount) = (address(person), address(ISSUER), 1 + dice.below(held));
                let recovery = HolderRecovery { asset: EUR, from, to, amount, reference: reference() };
                operations.push(Operation::Recover(Box::new(recovery)));
            }
        }
        self.signed_by_issuer(operations)
    }
}
