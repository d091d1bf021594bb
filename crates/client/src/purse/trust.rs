//! Whom a purse believes about the ledger, and how the ledger proves the lane's keys to it.
//!
//! **What is trusted.** The keys of a lane epoch are those that the *ledger* has registered. A purse takes them with a
//! proof that leads to a state root which a quorum of the chain's validators has signed. The registrars' signatures
//! alone are not enough, since a registrar can sign two lists for one epoch. Of two lists the ledger has at most one.
//! The validators are those of the genesis file, or of the node with which the purse was made, and their successors
//! that handovers prove (see `walras light`). The first lane epoch's keys are pinned with the lane itself.
//!
//! A chain of one node has no validators and signs no states: there the registrars' signatures count, as the node
//! itself is trusted with everything else. Whether a chain has validators is pinned, too, so that no node can claim
//! later that it has none.

use std::path::Path;
use std::time::{Duration, Instant};

use api::{CertificateBody, LaneRegistrationsProofBody, ValidatorsProofBody};
use payments::{BridgeEntry, HomeEpoch, LaneRegistration};
use primitives::{Digest, PublicKey};
use proofs::{Certificate, Chain, Lineage, MEMBERS_MAX, Schedule, ValidatorsProof};

use super::error::{Invalid, PurseError};
use super::files::PROVED;
use super::pinned::{PinnedCommittee, PinnedTrust};
use super::registrations::registration;
use crate::light::{Beginning, LightClient, Pin, recall_fresh};
use crate::node::NodeClient;
/// Longest time between two uses of a purse, where committees change.
const TRUST_PERIOD: Duration = Duration::from_secs(7 * 86_400);
/// The age from which a proved committee is renewed.
const REFRESHED: Duration = Duration::from_secs(86_400);
/// Maximum wait for the first certificate of a chain, and the time between two looks for it.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);
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
    /// The committee of a chain of epochs.
    pub fn of(lineage: &Lineage, chain: &Chain, unbonding_epochs: u64) -> Anchor {
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
    fn shown(node: &NodeClient, network: &Digest, proof: &ValidatorsProof) -> Result<Option<Anchor>, PurseError> {
        let terms = proof.validators.terms;
        if terms.network != *network {
            return Err(PurseError::OtherValidators { server: node.url().into() });
        }
        let newest = node.height()?;
        for height in (newest.saturating_sub(NEWEST).max(1)..=newest).rev() {
            let found: Option<CertificateBody> = node.find(&format!("/v1/blocks/{height}/certificate"))?;
            let Some(found) = found else { continue };
            let certificate: Certificate = node.decoded("certificate", &found.certificate)?;
            let Certificate { epoch, statement, .. } = &certificate;
            let members = proof.validators.committee(*epoch);
            let members =
                members.ok_or_else(|| node.foreign("it does not show the validators that sign its blocks"))?;
            let anchor = Anchor {
                schedule: terms.schedule,
                lag: statement.height.saturating_sub(height),
                unbonding_epochs: terms.unbonding_epochs,
                epoch: *epoch,
                keys: members.iter().map(|member| member.key).collect(),
            };
            let unsigned = |cause| PurseError::Unsigned { server: node.url().into(), cause };
            certificate.verify(&anchor.lineage(network).chain).map_err(unsigned)?;
            return Ok(Some(anchor));
        }
        Ok(None)
    }

    fn encode(&self) -> PinnedCommittee {
        let Anchor { schedule: Schedule { epoch_heights, delay }, lag, unbonding_epochs, epoch, ref keys } = *self;
        let keys = keys.iter().map(ToString::to_string).collect();
        PinnedCommittee { epoch_heights, delay, lag, unbonding_epochs, epoch, keys }
    }

    fn parse(pinned: &PinnedCommittee) -> Result<Anchor, Invalid> {
        let PinnedCommittee { epoch_heights, delay, lag, unbonding_epochs, epoch, ref keys } = *pinned;
        let key = |key: &String| key.parse().map_err(|_| Invalid("key of a validator"));
        let keys: Vec<PublicKey> = keys.iter().map(key).collect::<Result<_, _>>()?;
        if !(1..=MEMBERS_MAX).contains(&keys.len()) {
            return Err(Invalid("number of validators"));
        }
        Ok(Anchor { schedule: Schedule { epoch_heights, delay }, lag, unbonding_epochs, epoch, keys })
    }
}

impl LedgerTrust {
    /// What a node shows, without a proof.
    ///
    /// # Errors
    /// [`PurseError`]; [`PurseError::NothingSigned`] if no block gets a certificate in 20 seconds.
    pub fn of_node(node: &NodeClient, network: &Digest) -> Result<LedgerTrust, PurseError> {
        let body: ValidatorsProofBody = node.get("/v1/validators/proof")?;
        let proof: ValidatorsProof = node.decoded("proof", &body.proof)?;
        if proof.validators.committee(proof.validators.last_epoch()).is_some_and(<[_]>::is_empty) {
            return Ok(LedgerTrust::SoloNode);
        }
        let begun = Instant::now();
        loop {
            if let Some(anchor) = Anchor::shown(node, network, &proof)? {
                return Ok(LedgerTrust::Committee(anchor));
            }
            if begun.elapsed() >= PATIENCE {
                return Err(PurseError::NothingSigned { server: node.url().into() });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The keys of the lane that the ledger has registered for epochs from `from` on, proved. `folder` stores how far
    /// the committees were followed.
    ///
    /// # Errors
    /// [`PurseError::Unproved`] if the node proves nothing, or what prevents [`LedgerTrust::client`].
    pub fn registrations(
        &self,
        network: &Digest,
        node: &NodeClient,
        from: HomeEpoch,
        folder: Option<&Path>,
    ) -> Result<Vec<LaneRegistration>, PurseError> {
        let mut client = self.client(network, node, folder)?;
        let listed = |body: &LaneRegistrationsProofBody| -> Result<Vec<LaneRegistration>, Invalid> {
            body.registrations.iter().map(registration).collect()
        };
        let entries = |body: &LaneRegistrationsProofBody| {
            let entries = listed(body).ok()?;
            Some(entries.iter().map(|one| BridgeEntry::registration(one).pair()).collect())
        };
        let body = client.lane_registrations(from, entries).map_err(PurseError::Unproved)?;
        client.remember()?;
        Ok(listed(&body)?)
    }

    /// Follows the validators where they change, at most once a day: a purse that is used loses no trust with time.
    ///
    /// # Errors
    /// [`PurseError`].
    pub fn keep_fresh(&self, network: &Digest, node: &NodeClient, folder: &Path) -> Result<(), PurseError> {
        let LedgerTrust::Committee(anchor) = self else { return Ok(()) };
        let proved = folder.join(PROVED);
        let is_fresh = || recall_fresh(&proved, &mut anchor.lineage(network), REFRESHED).is_ok();
        if anchor.schedule.is_fixed() || proved.exists() && is_fresh() {
            return Ok(());
        }
        let mut client = self.client(network, node, Some(folder))?;
        client.follow_newest()?;
        Ok(client.remember()?)
    }

    /// A light client that trusts this, or what was proved from it before.
    ///
    /// # Errors
    /// [`PurseError::NoValidators`], or [`PurseError::OldTrust`].
    pub fn client(
        &self,
        network: &Digest,
        node: &NodeClient,
        folder: Option<&Path>,
    ) -> Result<LightClient, PurseError> {
        let LedgerTrust::Committee(anchor) = self else { return Err(PurseError::NoValidators) };
        let mut lineage = anchor.lineage(network);
        let proved = folder.map(|folder| folder.join(PROVED)).filter(|_| !anchor.schedule.is_fixed());
        let base = match proved.as_ref().filter(|path| path.exists()) {
            Some(path) => recall_fresh(path, &mut lineage, TRUST_PERIOD).map_err(PurseError::OldTrust)?,
            None => Beginning::Pin,
        };
        Ok(LightClient::trusting(node.clone(), lineage, base, anchor.unbonding_epochs).remembering(proved))
    }

    /// The same trust from a state that somebody named: its committee is what the node shows of that state.
    ///
    /// # Errors
    /// If the node shows another state, or committees never change.
    pub fn begin_at(&self, network: &Digest, node: &NodeClient, pin: &Pin) -> Result<LedgerTrust, PurseError> {
        let LedgerTrust::Committee(anchor) = self else { return Err(PurseError::NoValidators) };
        if anchor.schedule.is_fixed() {
            return Err(PurseError::FixedValidators);
        }
        let lineage = anchor.lineage(network);
        let mut client = LightClient::trusting(node.clone(), lineage.clone(), Beginning::Pin, anchor.unbonding_epochs);
        client.begin_at(pin)?;
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
    ///
    /// # Errors
    /// [`Invalid`] names what is wrong.
    pub fn parse(pinned: Option<&PinnedTrust>) -> Result<LedgerTrust, Invalid> {
        match pinned {
            None => Ok(LedgerTrust::Unknown),
            Some(PinnedTrust::Word(solo)) if solo == "solo" => Ok(LedgerTrust::SoloNode),
            Some(PinnedTrust::Word(_)) => Err(Invalid("word for the validators")),
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
