//! Whom the issuer of EUR froze and admitted, in plain books: they judge fills, recalls and recoveries, and share no
//! rule with the ledger.

use std::collections::BTreeMap;

use ledger::{HolderRecord, Ledger};
use primitives::{Address, AssetControl, Height, HolderState};

use super::people::DAY;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    is_open: bool,
    was_open: bool,
    since: Height,
}

/// What the issuer has said of holders.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    pub is_controlled: bool,
    pub admits: bool,
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
