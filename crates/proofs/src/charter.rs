//! The charter: which rules a chain follows at which height, and who approves of the next ones.
//!
//! Its root is the digest of the rules and of the rest, so that a handover shows the rules of its epoch without the
//! list of approvals. Once something was proposed, the rest is the digest of the approvals, of the values of all
//! parameters, and of what is proposed: so a client is shown the parameters without the proposals.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, Height, Parameter, Upgrade};

use crate::root_parts::{ProofFault, RootPart, RootParts};

const CONTEXT: &str = "walras 2026 charter v1";
const REST_CONTEXT: &str = "walras 2026 charter approvals v1";
const PARAMETERS_CONTEXT: &str = "walras 2026 charter parameters v1";
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
    /// The digest of what they mean: a program that means something else by the number does not follow them.
    pub manifest: Digest,
    /// The first height that they act at.
    pub since: Height,
    /// The rules below that height.
    pub before: u32,
    /// The digest of what these mean.
    pub manifest_before: Digest,
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
    /// A chain that has always followed these rules, with this meaning.
    pub fn new(rules: u32, manifest: Digest) -> ChainRules {
        let (confirmed, before, manifest_before) = (rules, rules, manifest);
        ChainRules { confirmed, manifest, since: 0, before, manifest_before, coming: None }
    }

    /// The rules of a height, as far as they are confirmed.
    pub fn at(&self, height: Height) -> u32 {
        if height >= self.since { self.confirmed } else { self.before }
    }

    /// The digest of what the rules of a height mean.
    pub fn manifest_at(&self, height: Height) -> Digest {
        if height >= self.since { self.manifest } else { self.manifest_before }
    }

    /// The newest rules that are agreed on, whether they are confirmed or not: number, manifest and first height.
    pub fn agreed(&self) -> (u32, Digest, Height) {
        let ChainRules { confirmed, manifest, since, .. } = *self;
        let coming = |of: ComingRules| (of.upgrade.rules, of.upgrade.manifest, of.acts);
        self.coming.map_or((confirmed, manifest, since), coming)
    }
}

/// Whether the node of an account can follow the confirmed rules, as far as the chain knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum RulesReadiness {
    /// It has approved them, or has said that it is ready since.
    Ready,
    /// It was present when they were confirmed, and has not approved them: it will stop before them, and from there on
    /// can post nothing. It stays in the draw all the same, until it is ready, takes back or unstakes.
    Stopped,
    /// It was absent then, or has taken back that it is ready: it is drawn only if it says that it is present.
    Unready,
}

/// What an account has said about the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RulesConsent {
    /// The account.
    pub account: Address,
    /// The height of the block in which it last said something; 0 if there is none.
    pub said: Height,
    /// Whether its node can follow the confirmed rules.
    pub readiness: RulesReadiness,
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
    pub fn new(terms: CharterTerms, rules: ChainRules) -> Charter {
        Charter { terms, rules, is_patient: false, awaited: None, consents: Vec::new() }
    }

    /// What an account has said; `None` if it has said nothing.
    pub fn consent(&self, account: &Address) -> Option<&RulesConsent> {
        self.consents.binary_search_by_key(account, |one| one.account).ok().map(|at| &self.consents[at])
    }

    /// Whether the node of an account can follow the confirmed rules.
    pub fn readiness(&self, account: &Address) -> RulesReadiness {
        self.consent(account).map_or(RulesReadiness::Ready, |consent| consent.readiness)
    }

    /// Whether it can.
    pub fn is_ready(&self, account: &Address) -> bool {
        self.readiness(account) == RulesReadiness::Ready
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

/// The values of the parameters of a chain on which something was proposed, by code.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ParametersRecord {
    /// Those of the genesis.
    pub first: [u64; Parameter::ALL.len()],
    /// Those in force.
    pub now: [u64; Parameter::ALL.len()],
    /// Those that have passed, by the height from which on they act.
    pub coming: Vec<(Height, [u64; Parameter::ALL.len()])>,
}

impl ParametersRecord {
    /// The values of a height, as far as they are decided.
    pub fn at(&self, height: Height) -> &[u64; Parameter::ALL.len()] {
        let acts = self.coming.iter().rev().find(|(acts, _)| *acts <= height);
        acts.map_or(&self.now, |(_, values)| values)
    }

    /// The digest of all but the rules of a charter: of the approvals, of these values, and of what is proposed.
    pub fn rest(&self, approvals: &Digest, proposed: &Digest) -> Digest {
        Digest::of(
            PARAMETERS_CONTEXT,
            &borsh::to_vec(&(approvals, self, proposed)).expect("writing to memory cannot fail"),
        )
    }
}

/// A proof of the parameters of a chain.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ParametersProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The rules of the chain by height.
    pub rules: ChainRules,
    /// The digest of the approvals.
    pub approvals: Digest,
    /// The values, and the digest of what is proposed; `None` proves that nothing ever was, so that the parameters are
    /// those of the genesis.
    pub record: Option<(ParametersRecord, Digest)>,
}

impl ParametersProof {
    /// Checks the proof against a state root; returns the values, or `None` if they are those of the genesis.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest) -> Result<Option<&ParametersRecord>, ProofFault> {
        let rest =
            self.record.as_ref().map_or(self.approvals, |(record, proposed)| record.rest(&self.approvals, proposed));
        match self.parts.part(root, RootPart::CHARTER)? == charter_root(&self.rules, &rest) {
            true => Ok(self.record.as_ref().map(|(record, _)| record)),
            false => Err(ProofFault::OtherValue),
        }
    }
}

/// The root of a charter.
pub fn charter_root(rules: &ChainRules, rest: &Digest) -> Digest {
    Digest::of(CONTEXT, &borsh::to_vec(&(rules, rest)).expect("writing to memory cannot fail"))
}
