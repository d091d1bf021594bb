//! Whom a purse believes about the ledger, and how the ledger proves the lane's keys to it.
//!
//! **What is trusted.** The keys of a lane epoch are those that the *ledger* has registered: a purse takes them with a
//! proof that leads to a state root which a quorum of the chain's validators has signed. The registrars' signatures
//! alone are not enough, since a registrar can sign two lists for one epoch; of two lists the ledger has at most one.
//! The validators are those of the genesis file, or of the node with which the purse was made, and their successors
//! that handovers prove (see `walras light`). The first lane epoch's keys are pinned with the lane itself.
//!
//! A chain of one node has no validators and signs no states: there the registrars' signatures count, as the node
//! itself is trusted with everything else. Whether a chain has validators is pinned, too, so that no node can claim
//! later that it has none.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use api::{CertificateBody, LaneRegistrationsProofBody, ValidatorsProofBody};
use client::light::{Beginning, LightClient, LightError, Pin, recall_fresh};
use founding::Founding;
use ledger::Genesis;
use payments::{BridgeEntry, HomeEpoch, LaneRegistration};
use primitives::{Digest, PublicKey};
use proofs::{Certificate, Chain, Lineage, MEMBERS_MAX, Schedule, ValidatorsProof};

use super::pinned::{PinnedCommittee, PinnedTrust};
use super::registrations::registration;
use crate::light::advised;
use crate::wallet::server::Server;

/// The file that stores the newest committee that was proved, where committees change.
pub const PROVED: &str = "validators.json";
/// Longest time between two uses of a purse, where committees change.
const TRUST_PERIOD: Duration = Duration::from_secs(7 * 86_400);
/// The age from which a proved committee is renewed.
const REFRESHED: Duration = Duration::from_secs(86_400);
/// Maximum wait for the first certificate of a chain.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of blocks below the newest one among which the newest certificate is looked for.
const NEWEST: u64 = 64;

/// What a purse verifies the ledger with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerTrust {
    /// Nothing yet: the purse was made by an earlier version.
    Unknown,
    /// The chain is that of a single node, which certifies nothing.
    SoloNode,
    /// A committee of validators.
    Committee(Anchor),
}

/// A committee, and what is needed to follow its successors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    schedule: Schedule,
    /// How many heights an outcome is below the certificate that signs it.
    lag: u64,
    unbonding_epochs: u64,
    epoch: u64,
    keys: Vec<PublicKey>,
}

impl Anchor {
    fn of(lineage: &Lineage, chain: &Chain, unbonding_epochs: u64) -> Anchor {
        let Lineage { schedule, lag, .. } = *lineage;
        Anchor { schedule, lag, unbonding_epochs, epoch: chain.epoch, keys: chain.keys.clone() }
    }

    fn lineage(&self, network: &Digest) -> Lineage {
        let Anchor { schedule, lag, epoch, ref keys, .. } = *self;
        let heights = schedule.first_height(epoch)..=schedule.last_height(epoch);
        // Where the chain begins matters only for pins of its first epochs.
        Lineage { schedule, lag, begins: 0, chain: Chain { genesis: *network, epoch, heights, keys: keys.clone() } }
    }

    /// What a node shows, without a proof; `None` if no quorum has signed a state yet.
    fn shown(server: &Server, network: &Digest, proof: &ValidatorsProof) -> anyhow::Result<Option<Anchor>> {
        let terms = proof.validators.terms;
        ensure!(terms.network == *network, "the node's validators are of another network: give another --server");
        let node = server.node();
        let newest = node.height()?;
        for height in (newest.saturating_sub(NEWEST).max(1)..=newest).rev() {
            let found: Option<CertificateBody> = node.find(&format!("/v1/blocks/{height}/certificate"))?;
            let Some(found) = found else { continue };
            let certificate: Certificate = node.decoded("certificate", &found.certificate)?;
            let Certificate { epoch, statement, .. } = &certificate;
            let members = proof.validators.committee(*epoch).context("the node does not show its validators")?;
            let anchor = Anchor {
                schedule: terms.schedule,
                lag: statement.height.saturating_sub(height),
                unbonding_epochs: terms.unbonding_epochs,
                epoch: *epoch,
                keys: members.iter().map(|member| member.key).collect(),
            };
            let signed = certificate.verify(&anchor.lineage(network).chain);
            signed.context("the node shows a block that its validators have not signed: give another --server")?;
            return Ok(Some(anchor));
        }
        Ok(None)
    }

    fn encode(&self) -> PinnedCommittee {
        let Anchor { schedule: Schedule { epoch_heights, delay }, lag, unbonding_epochs, epoch, ref keys } = *self;
        let keys = keys.iter().map(ToString::to_string).collect();
        PinnedCommittee { epoch_heights, delay, lag, unbonding_epochs, epoch, keys }
    }

    fn parse(pinned: &PinnedCommittee) -> anyhow::Result<Anchor> {
        let PinnedCommittee { epoch_heights, delay, lag, unbonding_epochs, epoch, ref keys } = *pinned;
        let key = |key: &String| key.parse().context("invalid key of a validator");
        let keys: Vec<PublicKey> = keys.iter().map(key).collect::<anyhow::Result<_>>()?;
        ensure!((1..=MEMBERS_MAX).contains(&keys.len()), "invalid number of validators");
        Ok(Anchor { schedule: Schedule { epoch_heights, delay }, lag, unbonding_epochs, epoch, keys })
    }
}

impl LedgerTrust {
    /// The founders of a genesis file.
    pub fn of_genesis(genesis: &Genesis, founding: Option<&Founding>) -> LedgerTrust {
        let Some(founding) = founding else { return LedgerTrust::SoloNode };
        let lineage = founding.lineage(genesis);
        LedgerTrust::Committee(Anchor::of(&lineage, &lineage.chain, founding.succession.unbonding_epochs))
    }

    /// What a node shows, without a proof.
    pub fn of_server(server: &Server, network: &Digest) -> anyhow::Result<LedgerTrust> {
        let body: ValidatorsProofBody = server.node().get("/v1/validators/proof")?;
        let proof: ValidatorsProof = server.node().decoded("proof", &body.proof)?;
        if proof.validators.committee(proof.validators.last_epoch()).is_some_and(<[_]>::is_empty) {
            return Ok(LedgerTrust::SoloNode);
        }
        let begun = Instant::now();
        loop {
            if let Some(anchor) = Anchor::shown(server, network, &proof)? {
                return Ok(LedgerTrust::Committee(anchor));
            }
            let late = "no quorum of validators has signed a block yet: try again later, or give --genesis";
            ensure!(begun.elapsed() < PATIENCE, late);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The keys of the lane that the ledger has registered for epochs from `from` on, proved. `folder` stores how far
    /// the committees were followed.
    ///
    /// # Errors
    /// If the node proves nothing, or this trust is too old; the error says what to do.
    pub fn registrations(
        &self,
        network: &Digest,
        server: &Server,
        from: HomeEpoch,
        folder: Option<&Path>,
    ) -> anyhow::Result<Vec<LaneRegistration>> {
        let mut client = self.client(network, server, folder)?;
        let listed = |body: &LaneRegistrationsProofBody| -> anyhow::Result<Vec<LaneRegistration>> {
            body.registrations.iter().map(registration).collect()
        };
        let entries = |body: &LaneRegistrationsProofBody| {
            let entries = listed(body).ok()?;
            Some(entries.iter().map(|one| BridgeEntry::registration(one).pair()).collect())
        };
        let unproved = |error: LightError| {
            let why = "the lane's keys are not proved, so nothing was sent. `walras pay trust --help` says more";
            advised(error).context(why)
        };
        let body = client.lane_registrations(from, entries).map_err(unproved)?;
        client.remember().map_err(advised)?;
        listed(&body)
    }

    /// Follows the validators where they change, at most once a day: a purse that is used loses no trust with time.
    pub fn keep_fresh(&self, network: &Digest, server: &Server, folder: &Path) -> anyhow::Result<()> {
        let LedgerTrust::Committee(anchor) = self else { return Ok(()) };
        let proved = folder.join(PROVED);
        let is_fresh = || recall_fresh(&proved, &mut anchor.lineage(network), REFRESHED).is_ok();
        if anchor.schedule.is_fixed() || proved.exists() && is_fresh() {
            return Ok(());
        }
        let mut client = self.client(network, server, Some(folder))?;
        client.follow_newest().map_err(advised)?;
        client.remember().map_err(advised)
    }

    /// A light client that trusts this, or what was proved from it before.
    pub fn client(&self, network: &Digest, server: &Server, folder: Option<&Path>) -> anyhow::Result<LightClient> {
        let LedgerTrust::Committee(anchor) = self else {
            bail!(
                "the purse does not know the chain's validators, who prove the lane's keys: name them once with \
                 walras pay trust --genesis FILE"
            )
        };
        let mut lineage = anchor.lineage(network);
        let proved = folder.map(|folder| folder.join(PROVED)).filter(|_| !anchor.schedule.is_fixed());
        let base = match proved.as_ref().filter(|path| path.exists()) {
            Some(path) => recall_fresh(path, &mut lineage, TRUST_PERIOD)
                .map_err(advised)
                .context("`walras pay trust --pin` takes a newer start; `walras pay trust --help` says more")?,
            None => Beginning::Pin,
        };
        Ok(LightClient::trusting(server.node(), lineage, base, anchor.unbonding_epochs).remembering(proved))
    }

    /// The same trust from a state that somebody named: its committee is what the node shows of that state.
    ///
    /// # Errors
    /// If the node shows another state, or committees never change.
    pub fn begin_at(&self, network: &Digest, server: &Server, pin: &Pin) -> anyhow::Result<LedgerTrust> {
        let LedgerTrust::Committee(anchor) = self else {
            bail!("the purse does not know how its network changes validators: give --genesis")
        };
        ensure!(!anchor.schedule.is_fixed(), "the validators of this network never change: it needs no pin");
        let lineage = anchor.lineage(network);
        let mut client = LightClient::trusting(server.node(), lineage.clone(), Beginning::Pin, anchor.unbonding_epochs);
        client.begin_at(pin).map_err(advised)?;
        Ok(LedgerTrust::Committee(Anchor::of(&lineage, client.newest(), anchor.unbonding_epochs)))
    }

    /// As a file has it.
    pub fn encode(&self) -> Option<PinnedTrust> {
        match self {
            LedgerTrust::Unknown => None,
            LedgerTrust::SoloNode => Some(PinnedTrust::Word("solo".into())),
            LedgerTrust::Committee(anchor) => Some(PinnedTrust::Committee(anchor.encode())),
        }
    }

    /// Reads what [`LedgerTrust::encode`] makes.
    pub fn parse(pinned: Option<&PinnedTrust>) -> anyhow::Result<LedgerTrust> {
        match pinned {
            None => Ok(LedgerTrust::Unknown),
            Some(PinnedTrust::Word(solo)) if solo == "solo" => Ok(LedgerTrust::SoloNode),
            Some(PinnedTrust::Word(other)) => bail!("{other:?} names no validators"),
            Some(PinnedTrust::Committee(committee)) => Anchor::parse(committee).map(LedgerTrust::Committee),
        }
    }

    /// Whether the chain's validators change.
    pub fn changes(&self) -> bool {
        matches!(self, LedgerTrust::Committee(anchor) if !anchor.schedule.is_fixed())
    }

    /// The keys of validators that never change: part of the lane's fingerprint.
    pub fn fixed_keys(&self) -> &[PublicKey] {
        match self {
            LedgerTrust::Committee(anchor) if anchor.schedule.is_fixed() => &anchor.keys,
            _ => &[],
        }
    }
}
