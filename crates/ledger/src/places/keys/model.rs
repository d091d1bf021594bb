//! A model of accounts with policies: owners, a thief who had keys for an hour, guardians, and whoever posts old
//! requests again. All short histories, and random longer ones, are judged by the real ledger and by an oracle, which
//! shares no code with it: it counts sets of letters.
//!
//! A rule that is wrong is a [`Wrong`]: the model with it must find a history in which the two differ.

use std::collections::BTreeSet;
use std::sync::Arc;

use primitives::{
    Address, AssetId, Body, ChangedBy, Digest, Fraction, KeyPolicy, KeySignature, KeySignatures, KeySigner, KeysChange,
    Operation, PublicKey, RULES_OF_KEYS, RecoverKeys, SecretKey, SessionsFate, SetKeys, Signature, SignedBy,
    Transaction,
};
use proofs::{ChainRules, Charter, Refusal};

use super::KeysEdit;
use crate::places::charter::ChainCharter;
use crate::terms::{Genesis, Listing};
use crate::{Account, Ledger};

/// The delay of every policy.
const DELAY: u64 = 3;
/// What a recovery waits, by the page of the protocol.
const DAY: u64 = 86_400;

/// A rule that looks as good and is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// A key that stands twice among signatures counts twice.
    KeyCountsTwice,
    /// A request may name an earlier change of keys.
    StaleRequest,
    /// A change may name an earlier one, so that it counts again.
    ChangeCountsTwice,
    /// A change stands under the numbers of the account itself.
    OwnNumbers,
    /// A change may be completed before its wait is over.
    CompletesEarly,
    /// A change acts at once.
    ActsAtOnce,
    /// A recovery voids a change that waits.
    RecoveryVoids,
    /// A recovery goes on when those who govern answer.
    RecoverySurvives,
    /// A recovery waits for the delay alone.
    RecoverySoon,
    /// Nobody of the new policy needs to sign.
    TypoAccepted,
    /// The account's first key signs alone for ever.
    OldKeySigns,
    /// The weight that spends changes the keys.
    MoversGovern,
}

/// A policy of the model: letters that sign, each with weight 1. One spends, two govern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named(&'static str);

const OWNERS: Named = Named("abc");
/// The owners without the stolen keys.
const RENEWED: Named = Named("cde");
const STOLEN: Named = Named("tuv");
const RECOVERED: Named = Named("cxy");
const GUARDIANS: &str = "gh";

/// What somebody tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// A change to this policy, signed by these letters.
    Set(Named, &'static str),
    Recover(Named, &'static str),
    Complete,
    /// A payment that these letters sign. The last of two equal ones is the same key again.
    Pay(&'static str),
    /// The account's first key pays alone.
    PayAlone,
    /// What was signed first of all is posted again.
    OldPay,
    /// The change that was accepted first, after that which made the policy, is posted again.
    OldChange,
    /// Whoever spends uses up every number of the account.
    Flood,
    /// So many heights pass.
    Pass(u64),
}

const ACTS: &[Act] = &[
    Act::Set(OWNERS, "0abc"),
    Act::Set(RENEWED, "abcde"),
    // Thieves have the keys a and b.
    Act::Set(STOLEN, "abtu"),
    // One key governs nothing, nor does a mistyped policy act.
    Act::Set(STOLEN, "atu"),
    Act::Set(RENEWED, "ab"),
    Act::Recover(RECOVERED, "ghxy"),
    Act::Recover(RECOVERED, "gxy"),
    Act::Recover(RECOVERED, "gh"),
    Act::Complete,
    Act::Pay("a"),
    Act::Pay("cd"),
    Act::Pay("x"),
    Act::Pay("tz"),
    // One key stands twice.
    Act::Pay("bb"),
    Act::PayAlone,
    Act::OldPay,
    Act::OldChange,
    Act::Flood,
    Act::Pass(1),
    Act::Pass(DELAY),
    Act::Pass(DAY),
];

fn key(letter: char) -> PublicKey {
    PublicKey(std::array::from_fn(|at| if at == 0 { letter as u8 } else { 7 }))
}

/// The key whose hash is the address of the account.
fn first() -> PublicKey {
    SecretKey::from_seed([9; 32]).public()
}

fn account() -> Address {
    first().address()
}

fn sender() -> PublicKey {
    SecretKey::from_seed([8; 32]).public()
}

/// Signatures of these letters; `0` is the first key. The order is that of the letters, as it is of the keys.
fn signatures(letters: &str) -> KeySignatures {
    let one = |letter: char| KeySignature {
        key: if letter == '0' { first() } else { key(letter) },
        signature: Signature([0; 64]),
    };
    let mut keys: Vec<KeySignature> = letters.chars().map(one).collect();
    keys.sort_by_key(|one| one.key);
    KeySignatures { keys: keys.into(), wallets: [].into() }
}

fn policy(named: Named) -> KeyPolicy {
    KeyPolicy {
        keys: named.0.chars().map(|letter| KeySigner { key: key(letter), weight: 1 }).collect(),
        wallets: [].into(),
        moves: 1,
        governs: 2,
        guardian_keys: GUARDIANS.chars().map(key).collect(),
        guardian_wallets: [].into(),
        guardians: 2,
        delay: DELAY as u32,
    }
}

/// The ledger, and what somebody has kept to post it again.
#[derive(Clone)]
struct Machine {
    wrong: Wrong,
    ledger: Ledger,
    old_pay: Option<Transaction>,
    old_change: Option<Operation>,
    /// Whether every number of the account is used up.
    is_flooded: bool,
}

impl Machine {
    fn new(wrong: Wrong) -> Machine {
        let assets = vec![Listing::new("USD", 2, Address([1; 20]))];
        let balances = [account(), sender().address()].map(|one| (one, AssetId(0), 1_000)).into();
        let genesis = Genesis { mu: Fraction::power_of_two(10), assets, balances, ..Genesis::default() };
        let mut ledger = Ledger::new(&genesis).expect("sound");
        let rules = ChainRules::new(RULES_OF_KEYS, Digest::default());
        let charter = Charter::new(ledger.charter().terms, rules);
        ledger.places.charter = Arc::new(ChainCharter { charter, proposals: Arc::default() });
        ledger.height = 10;
        Machine { wrong, ledger, old_pay: None, old_change: None, is_flooded: false }
    }

    fn last(&self) -> Digest {
        self.ledger.account_keys(&account()).map_or(Digest::default(), |keys| keys.last)
    }

    /// Tries something; whether it counts.
    fn try_act(&mut self, act: Act) -> bool {
        match act {
            Act::Set(to, by) => {
                let (change, signatures) = (self.change(to), signatures(by));
                self.change_keys(Operation::SetKeys(Box::new(SetKeys { change, first: first(), signatures })))
            }
            Act::Recover(to, by) => {
                let (change, signatures) = (self.change(to), signatures(by));
                self.change_keys(Operation::RecoverKeys(Box::new(RecoverKeys { change, signatures })))
            }
            Act::Complete => self.change_keys(Operation::CompleteKeys { account: account() }),
            Act::Pay(by) => self.pay(Transaction::by_policy(self.body(), self.last(), signatures(by))),
            Act::PayAlone => self.pay(Transaction::by_key(self.body(), first(), Signature([0; 64]))),
            Act::OldPay => self.old_pay.clone().is_some_and(|old| self.pay(old)),
            Act::OldChange => self.old_change.clone().is_some_and(|old| self.change_keys(old)),
            Act::Flood => {
                self.is_flooded = true;
                true
            }
            Act::Pass(heights) => {
                self.ledger.height += heights;
                true
            }
        }
    }

    fn change(&self, to: Named) -> KeysChange {
        KeysChange { account: account(), last: self.last(), policy: policy(to), sessions: SessionsFate::Close }
    }

    fn body(&self) -> Body {
        let operation = Operation::Pay { to: Address([1; 20]), asset: AssetId(0), amount: 1 };
        Body { chain: self.ledger.chain(), account: account(), sequence: 1, until: self.ledger.height() + 1, operation }
    }

    fn pay(&mut self, mut transaction: Transaction) -> bool {
        self.old_pay.get_or_insert_with(|| transaction.clone());
        transaction.body.until = self.ledger.height() + 1;
        let last = self.last();
        match &mut transaction.signed_by {
            SignedBy::Policy(signed) if self.wrong == Wrong::StaleRequest => signed.last = last,
            SignedBy::Key { .. } if self.wrong == Wrong::OldKeySigns => return true,
            _ => {}
        }
        self.admits(&transaction)
    }

    /// Whether the ledger admits it. With the wrong rule it does not look whether a key stands twice.
    fn admits(&self, transaction: &Transaction) -> bool {
        match self.ledger.admit(transaction) {
            Err(Refusal::KEY_SIGNATURES) if self.wrong == Wrong::KeyCountsTwice => {
                let SignedBy::Policy(signed) = &transaction.signed_by else { return false };
                self.ledger.places.keys.permit(&account(), signed, transaction.body.operation.row().needs).is_ok()
            }
            judged => judged.is_ok(),
        }
    }

    fn change_keys(&mut self, operation: Operation) -> bool {
        let sender = sender();
        let body = Body { account: sender.address(), operation, ..self.body() };
        let mut transaction = Transaction::by_key(body, sender, Signature([0; 64]));
        self.mistake(&mut transaction.body.operation);
        let height = self.ledger.height() + 1;
        let wait = self.ledger.account_keys(&account()).and_then(|keys| keys.waiting.clone());
        let judged = self.judge_change(&transaction);
        if judged.is_err() || (self.wrong == Wrong::OwnNumbers && self.is_flooded) {
            return false;
        }
        let edit = match &transaction.body.operation {
            Operation::CompleteKeys { account } => KeysEdit::Complete(*account),
            operation => {
                if self.ledger.account_keys(&account()).is_some() {
                    self.old_change.get_or_insert_with(|| operation.clone());
                }
                KeysEdit::Change(operation.key_change().expect("it is one"))
            }
        };
        let early = if self.wrong == Wrong::CompletesEarly { DAY } else { 0 };
        self.ledger.places.keys.edit(edit, height + early);
        self.ledger.places.accounts.get_or_insert(&account()).mark_policy();
        let is_set = matches!(transaction.body.operation, Operation::SetKeys(_));
        let by_guardians = wait.filter(|wait| wait.by == ChangedBy::Guardians && is_set);
        self.rewrite(|keys, wrong| match (wrong, keys.waiting.clone()) {
            (Wrong::ActsAtOnce, Some(waits)) => (keys.policy, keys.waiting) = (waits.policy, None),
            (Wrong::RecoverySoon, Some(waits)) if waits.by == ChangedBy::Guardians => {
                keys.waiting = Some(proofs::WaitingKeys { due: height + DELAY, ..waits });
            }
            (Wrong::RecoverySurvives, _) if by_guardians.is_some() => keys.waiting = by_guardians,
            _ => {}
        });
        true
    }

    /// Judges a change by the ledger, or by the ledger with a wrong rule.
    fn judge_change(&mut self, transaction: &Transaction) -> Result<(), Refusal> {
        let before = self.ledger.places.keys.clone();
        if self.wrong == Wrong::RecoveryVoids && matches!(transaction.body.operation, Operation::RecoverKeys(_)) {
            self.rewrite(|keys, _| keys.waiting = None);
        }
        if self.wrong == Wrong::MoversGovern {
            self.rewrite(|keys, _| keys.policy.governs = 1);
        }
        if self.wrong == Wrong::CompletesEarly {
            self.rewrite(|keys, _| keys.waiting.iter_mut().for_each(|waiting| waiting.due = 0));
        }
        let judged = self.ledger.admit(transaction);
        self.ledger.places.keys = before;
        match judged {
            Err(Refusal::NEW_SIGNERS_MISSING) if self.wrong == Wrong::TypoAccepted => Ok(()),
            judged => judged,
        }
    }

    fn mistake(&self, operation: &mut Operation) {
        let last = self.last();
        if self.wrong == Wrong::ChangeCountsTwice {
            match operation {
                Operation::SetKeys(set) => set.change.last = last,
                Operation::RecoverKeys(recover) => recover.change.last = last,
                _ => {}
            }
        }
    }

    fn rewrite(&mut self, change: impl FnOnce(&mut proofs::AccountKeys, Wrong)) {
        if let Some(mut keys) = self.ledger.account_keys(&account()).cloned() {
            change(&mut keys, self.wrong);
            self.ledger.places.keys.set(account(), keys);
        }
    }
}

/// What should be.
#[derive(Clone, Debug)]
struct Oracle {
    height: u64,
    /// The letters that sign; none before the first change.
    signers: Option<BTreeSet<char>>,
    waiting: Option<(BTreeSet<char>, u64)>,
    /// How often keys have changed or begun to.
    changes: u32,
    /// When the first request was signed, and by whom: after so many changes.
    old_pay: Option<(u32, Result<&'static str, ()>)>,
    /// The first change that counted, and after how many changes.
    old_change: Option<(u32, Act)>,
}

impl Oracle {
    fn signed(letters: &str, by: &BTreeSet<char>) -> usize {
        letters.chars().filter(|letter| by.contains(letter)).count()
    }

    fn try_act(&mut self, act: Act) -> bool {
        match act {
            Act::Set(..) | Act::Recover(..) => self.change(act, self.changes),
            Act::Complete => match self.waiting.take() {
                Some((signers, due)) if due <= self.height + 1 => {
                    self.signers = Some(signers);
                    true
                }
                other => {
                    self.waiting = other;
                    false
                }
            },
            Act::Pay(by) => self.pay(Ok(by), self.changes),
            Act::PayAlone => self.pay(Err(()), self.changes),
            Act::OldPay => self.old_pay.is_some_and(|(when, by)| self.pay(by, when)),
            Act::OldChange => self.old_change.is_some_and(|(when, act)| self.change(act, when)),
            Act::Flood => true,
            Act::Pass(heights) => {
                self.height += heights;
                true
            }
        }
    }

    fn pay(&mut self, by: Result<&'static str, ()>, when: u32) -> bool {
        self.old_pay.get_or_insert((when, by));
        match (by, &self.signers) {
            (Err(()), signers) => signers.is_none(),
            (Ok(_), None) => false,
            (Ok(letters), Some(signers)) => {
                let distinct: BTreeSet<char> = letters.chars().collect();
                let all_sign = distinct.is_subset(signers) && distinct.len() == letters.len();
                all_sign && !distinct.is_empty() && when == self.changes
            }
        }
    }

    fn change(&mut self, act: Act, when: u32) -> bool {
        let (to, by, guards) = match act {
            Act::Set(to, by) => (to, by, false),
            Act::Recover(to, by) => (to, by, true),
            _ => unreachable!("it is a change"),
        };
        let new: BTreeSet<char> = to.0.chars().collect();
        let mut may = new.clone();
        let agrees = match (&self.signers, guards) {
            (None, true) => false,
            (None, false) => {
                may.insert('0');
                by.contains('0')
            }
            (Some(signers), false) => {
                may.extend(signers);
                Oracle::signed(by, signers) >= 2
            }
            (Some(_), true) => {
                may.extend(GUARDIANS.chars());
                GUARDIANS.chars().all(|guard| by.contains(guard)) && self.waiting.is_none()
            }
        };
        let nobody_else = by.chars().all(|letter| may.contains(&letter));
        if !agrees || !nobody_else || Oracle::signed(by, &new) < 2 || when != self.changes {
            return false;
        }
        if self.signers.is_some() {
            self.old_change.get_or_insert((when, act));
        }
        self.changes += 1;
        match &self.signers {
            None => self.signers = Some(new),
            Some(_) => self.waiting = Some((new, self.height + 1 + if guards { DAY } else { DELAY })),
        }
        true
    }
}

#[derive(Clone)]
struct History {
    machine: Machine,
    oracle: Oracle,
}

impl History {
    fn new(wrong: Wrong) -> History {
        let machine = Machine::new(wrong);
        let height = machine.ledger.height();
        let oracle = Oracle { height, signers: None, waiting: None, changes: 0, old_pay: None, old_change: None };
        History { machine, oracle }
    }

    /// Whether the ledger and the oracle agree on what an act does.
    fn agrees(&mut self, act: Act) -> bool {
        let is_same = self.machine.try_act(act) == self.oracle.try_act(act);
        let keys = self.machine.ledger.account_keys(&account());
        let letters = |policy: &KeyPolicy| policy.keys.iter().map(|one| one.key.0[0] as char).collect::<BTreeSet<_>>();
        let waiting = keys.and_then(|keys| keys.waiting.as_ref()).map(|one| (letters(&one.policy), one.due));
        let is_marked = self.machine.ledger.accounts().get(&account()).is_some_and(Account::has_policy);
        is_same
            && keys.map(|keys| letters(&keys.policy)) == self.oracle.signers
            && waiting == self.oracle.waiting
            && is_marked == keys.is_some()
    }
}

/// The first history of at most so many acts in which the two differ.
fn differs(history: &History, depth: usize, acts: &mut Vec<Act>) -> bool {
    if depth == 0 {
        return false;
    }
    for act in ACTS {
        let mut next = history.clone();
        acts.push(*act);
        if !next.agrees(*act) || differs(&next, depth - 1, acts) {
            return true;
        }
        acts.pop();
    }
    false
}

/// A random history of many acts, which begins with a policy.
fn random_differs(wrong: Wrong, seed: u64) -> Option<Vec<Act>> {
    let mut history = History::new(wrong);
    let mut acts = Vec::new();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for step in 0..24 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let act = if step == 0 { ACTS[0] } else { ACTS[(state >> 33) as usize % ACTS.len()] };
        acts.push(act);
        if !history.agrees(act) {
            return Some(acts);
        }
    }
    None
}

#[test]
fn every_short_history_of_keys_ends_as_the_oracle_says() {
    let (bare, mut with_policy) = (History::new(Wrong::Nothing), History::new(Wrong::Nothing));
    assert!(with_policy.agrees(ACTS[0]));
    for history in [bare, with_policy] {
        let mut acts = Vec::new();
        assert!(!differs(&history, 3, &mut acts), "{acts:?}");
    }
    // It can happen at all: a policy, a change, its wait, and its completion.
    let mut history = History::new(Wrong::Nothing);
    for act in [ACTS[0], Act::Set(RENEWED, "abcde"), Act::Pass(DELAY), Act::Complete, Act::Pay("cd")] {
        assert!(history.machine.try_act(act) && history.oracle.try_act(act), "{act:?}");
    }
}

#[test]
fn random_histories_of_keys_end_as_the_oracle_says() {
    for seed in 1..=2_000 {
        assert_eq!(random_differs(Wrong::Nothing, seed), None, "seed {seed}");
    }
}

/// A check that never fires proves nothing.
#[test]
fn every_wrong_rule_of_keys_is_found() {
    let all = [
        Wrong::KeyCountsTwice,
        Wrong::StaleRequest,
        Wrong::ChangeCountsTwice,
        Wrong::OwnNumbers,
        Wrong::CompletesEarly,
        Wrong::ActsAtOnce,
        Wrong::RecoveryVoids,
        Wrong::RecoverySurvives,
        Wrong::RecoverySoon,
        Wrong::TypoAccepted,
        Wrong::OldKeySigns,
        Wrong::MoversGovern,
    ];
    for wrong in all {
        let found = (1..=2_000).find_map(|seed| random_differs(wrong, seed));
        assert!(found.is_some(), "{wrong:?} is never found");
    }
}
