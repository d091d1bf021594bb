//! The demo's upgrade: its validators agree on the newest rules, and under these they vote a dearer fee. Epochs are so
//! short that both act within two minutes.

use std::time::{Duration, Instant};

use anyhow::Context;
use ledger::{CharterTerms, Genesis, RULES_NEWEST};
use primitives::{Body, Digest, Operation, Parameter, ProposalWord, ProposedChange, SecretKey, UNTIL_USUAL};
use zeroize::Zeroizing;

use crate::demo_network::{DemoNetwork, PASSPHRASE};
use crate::init::DEMO_CHAIN;
use crate::keystore;
use crate::validator_keys::ACCOUNT_KEY_FILE;

/// Heights from the agreement on rules until they act, at the least.
const NOTICE: u64 = 10;
/// Heights after which a single validator can no longer say no.
const PATIENCE: u64 = 1_000;
/// How often the nodes are asked how far it is, and what is missing is sent again.
const AGAIN: Duration = Duration::from_secs(2);

/// How far it is, in words.
#[derive(PartialEq, Eq)]
enum UpgradeStage {
    Begins,
    Approves(usize),
    Agreed(u64),
    Acts,
    Proposed(usize),
    Passed(u64),
    Over,
}

/// The chain begins under the rules before the newest, and changes soon.
pub fn with_upgrade(genesis: Genesis) -> Genesis {
    let charter = CharterTerms { notice_min: NOTICE, patience: PATIENCE, ..CharterTerms::default() };
    Genesis { rules: RULES_NEWEST - 1, charter, ..genesis }
}

/// What the validators of a demo agree on.
pub struct DemoUpgrade {
    /// Those of the validators' accounts.
    keys: Vec<SecretKey>,
    /// The fee of the genesis.
    fee: u64,
    stage: UpgradeStage,
    begun: Instant,
    acted: Option<Instant>,
}

impl DemoUpgrade {
    pub fn new(network: &DemoNetwork, count: usize, fee: u64) -> anyhow::Result<DemoUpgrade> {
        let passphrase = Zeroizing::new(PASSPHRASE.to_string());
        let key = |index: usize| keystore::open_under(&network.home(index).join(ACCOUNT_KEY_FILE), &passphrase);
        let keys = (0..count).map(key).collect::<Result<Vec<_>, _>>().context("a validator's account")?;
        Ok(DemoUpgrade { keys, fee, stage: UpgradeStage::Begins, begun: Instant::now(), acted: None })
    }

    /// Sends what is missing, and tells how far it is.
    pub fn tend(&mut self, network: &DemoNetwork, say: &impl Fn(String)) {
        let rests = self.acted.is_some_and(|acted| acted.elapsed() < AGAIN) || self.stage == UpgradeStage::Over;
        if rests {
            return;
        }
        self.acted = Some(Instant::now());
        // A validator that is down answers later.
        let Some(stage) = self.look(network) else { return };
        match stage {
            UpgradeStage::Acts => {
                let change = ProposedChange::Parameter { parameter: Parameter::Fee, value: 2 * self.fee };
                self.send(network, 0, Operation::Propose(Box::new(change)));
            }
            UpgradeStage::Proposed(_) => self.vote(network),
            _ => {}
        }
        if stage != self.stage {
            say(format!("upgrade, after {} s: {}", self.begun.elapsed().as_secs(), self.words(&stage)));
            self.stage = stage;
        }
    }

    fn look(&self, network: &DemoNetwork) -> Option<UpgradeStage> {
        let rules = network.node(0).upgrade().ok()?;
        if rules.rules < RULES_NEWEST {
            let approved = rules.approved.first().map_or(0, |approved| approved.accounts.len());
            let confirmed = (rules.confirmed == RULES_NEWEST).then_some(rules.since);
            let acts = confirmed.or(rules.coming.map(|coming| coming.acts));
            return Some(acts.map_or(UpgradeStage::Approves(approved), UpgradeStage::Agreed));
        }
        let parameters = network.node(0).parameters().ok()?;
        let fee = parameters.parameters.iter().find(|one| one.parameter == Parameter::Fee.name())?;
        Some(match (parameters.coming.first(), parameters.proposals.first()) {
            _ if fee.value != self.fee.to_string() => UpgradeStage::Over,
            (Some(coming), _) => UpgradeStage::Passed(coming.acts),
            (None, Some(open)) => UpgradeStage::Proposed(open.yes.len()),
            (None, None) => UpgradeStage::Acts,
        })
    }

    fn words(&self, stage: &UpgradeStage) -> String {
        let (old, new, count) = (RULES_NEWEST - 1, RULES_NEWEST, self.keys.len());
        match stage {
            UpgradeStage::Begins => format!("the chain follows rules {old}"),
            UpgradeStage::Approves(some) => {
                format!("rules {old} act; {some} of {count} validators approve rules {new}")
            }
            UpgradeStage::Agreed(acts) => format!("rules {new} are agreed on and act from height {acts} on"),
            UpgradeStage::Acts => format!("rules {new} act; validator 0 proposes a fee of {} units", 2 * self.fee),
            UpgradeStage::Proposed(yes) => format!("a fee of {} units: {yes} of {count} say yes", 2 * self.fee),
            UpgradeStage::Passed(acts) => {
                format!("it has passed; the fee is {} units from height {acts} on", 2 * self.fee)
            }
            UpgradeStage::Over => format!("the fee is {} units; `walras upgrade parameters` shows it", 2 * self.fee),
        }
    }

    /// Whoever has said nothing yet says yes.
    fn vote(&self, network: &DemoNetwork) {
        let Ok(parameters) = network.node(0).parameters() else { return };
        for open in &parameters.proposals {
            let Ok(proposal) = open.id.parse::<Digest>() else { continue };
            let is_silent = |key: &SecretKey| !open.yes.contains(&key.public().address().to_string());
            let silent = (0..self.keys.len()).filter(|index| is_silent(&self.keys[*index]));
            silent.for_each(|index| self.send(network, index, Operation::Vote { proposal, word: ProposalWord::Yes }));
        }
    }

    /// What fails is sent again later.
    fn send(&self, network: &DemoNetwork, index: usize, operation: Operation) {
        let account = self.keys[index].public().address();
        let Ok((_, sequence)) = network.node(0).sequence(&account) else { return };
        let until = network.next_height() + UNTIL_USUAL;
        let body = Body { chain: DEMO_CHAIN, account, sequence, until, operation };
        drop(network.node(0).submit(&body.sign(network.identity(), &self.keys[index])));
    }
}
