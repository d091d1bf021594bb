//! The charter: which rules a chain follows at which height, and who approves of the next ones.
//!
//! Its root is the digest of the rules and of the rest, so that a handover shows the rules of its epoch without the
//! list of approvals.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, Height, Upgrade};

const CONTEXT: &str = "walras 2026 charter v1";
const REST_CONTEXT: &str = "walras 2026 charter approvals v1";
/// Heights that are called a day.
const DAY: Height = 86_400;

/// The terms by which the rules of a chain change, from its genesis on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CharterTerms {
    /// On a chain of one node, the account that names the next rules; zero for nobody.
    pub operator: Address,
    /// The fewest heights of notice that an approval may name.
    pub notice_min: Height,
    /// Heights for which two thirds of the stake must have approved, until a few seats can no longer say no.
    pub patience: Height,
}

impl Default for CharterTerms {
    /// A week's notice, and four weeks of patience, of blocks of a second.
    fn default() -> CharterTerms {
        CharterTerms { operator: Address::default(), notice_min: 7 * DAY, patience: 28 * DAY }
    }
}

/// The rules of a chain by height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ChainRules {
    /// The last confirmed rules.
    pub confirmed: u32,
    /// The first height that they act at.
    pub since: Height,
    /// The rules below that height.
    pub before: u32,
    /// Rules that are agreed on and not confirmed yet.
    pub coming: Option<ComingRules>,
}

/// Rules that are agreed on and not confirmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ComingRules {
    /// The rules.
    pub upgrade: Upgrade,
    /// The first height that they act at, if they are confirmed.
    pub acts: Height,
    /// How often the confirmation was missing.
    pub tries: u8,
    /// Whether they were agreed on by n − f seats, because most of the stake had waited for long.
    pub is_patient: bool,
}

impl ChainRules {
    /// A chain that has always followed these rules.
    pub fn new(rules: u32) -> ChainRules {
        ChainRules { confirmed: rules, since: 0, before: rules, coming: None }
    }

    /// The rules of a height, as far as they are confirmed.
    pub fn at(&self, height: Height) -> u32 {
        if height >= self.since { self.confirmed } else { self.before }
    }
}

/// What an account has said about the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RulesConsent {
    /// The account.
    pub account: Address,
    /// The height of the block in which it last said something; 0 if there is none.
    pub said: Height,
    /// Whether it has not approved the confirmed rules: its node may be unable to follow them.
    pub is_unready: bool,
    /// What it approves to come next.
    pub next: Option<Upgrade>,
}

/// Rules that accounts with two thirds of all stake have approved at every boundary since a height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AwaitedRules {
    /// The rules.
    pub upgrade: Upgrade,
    /// The boundary at which they were first approved by so many.
    pub since: Height,
}

/// The charter of a chain.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Charter {
    /// The terms by which rules change.
    pub terms: CharterTerms,
    /// The rules by height.
    pub rules: ChainRules,
    /// Whether the confirmed rules needed n − f seats only; then as many of them may be empty.
    pub is_patient: bool,
    /// What most of the stake waits for.
    pub awaited: Option<AwaitedRules>,
    /// What accounts have said, by account. Who has said nothing approves the confirmed rules.
    pub consents: Vec<RulesConsent>,
}

impl Charter {
    /// The charter of a chain that begins with these rules.
    pub fn new(terms: CharterTerms, rules: u32) -> Charter {
        let rules = ChainRules::new(rules);
        Charter { terms, rules, is_patient: false, awaited: None, consents: Vec::new() }
    }

    /// What an account has said; `None` if it has said nothing.
    pub fn consent(&self, account: &Address) -> Option<&RulesConsent> {
        self.consents.binary_search_by_key(account, |one| one.account).ok().map(|at| &self.consents[at])
    }

    /// Whether an account has approved the confirmed rules.
    pub fn is_ready(&self, account: &Address) -> bool {
        self.consent(account).is_none_or(|consent| !consent.is_unready)
    }

    /// Whether an account approves these rules to come next.
    pub fn approves(&self, account: &Address, upgrade: &Upgrade) -> bool {
        self.consent(account).is_some_and(|consent| consent.next.as_ref() == Some(upgrade))
    }

    /// The digest of all but the rules.
    pub fn rest(&self) -> Digest {
        let rest = (&self.terms, self.is_patient, &self.awaited, &self.consents);
        Digest::of(REST_CONTEXT, &borsh::to_vec(&rest).expect("writing to memory cannot fail"))
    }

    /// The digest in the state root.
    pub fn digest(&self) -> Digest {
        charter_root(&self.rules, &self.rest())
    }
}

/// The root of a charter.
pub fn charter_root(rules: &ChainRules, rest: &Digest) -> Digest {
    Digest::of(CONTEXT, &borsh::to_vec(&(rules, rest)).expect("writing to memory cannot fail"))
}
