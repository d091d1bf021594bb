//! A light client: asks untrusted nodes, and believes what a quorum of validators has signed.
//!
//! Certificates are signed by the committee of their epoch. Starting from the founders, or from a committee that was
//! proved before, the client follows the handovers ([`proofs::Handover`]) to the epoch of the certificate that it
//! verifies, and accepts only what the committee before has signed. `trust` says how far it follows committees.
//!
//! **A missing certificate is not a missing answer.** A node that does not answer ends the question at once
//! ([`LightError::Node`]). Only a node that answers, and says that a block is not certified yet, is asked again, for
//! [`PATIENCE`] at most ([`LightError::NotCertified`]).

mod error;
mod facts;
mod trust;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use api::{CertificateBody, HandoversBody, ModifiedBody};
use primitives::{Address, Digest, Height, Superblock};
use proofs::{Certificate, Chain, Handover, Lineage, ModifiedProof, outcome_root};
use serde::de::DeserializeOwned;

pub use error::{LightError, LightRemedy};
pub use facts::{AssetFacts, ProvedFact};
pub use trust::{
    Beginning, Pin, PinError, check_epoch, check_freshness, last_epoch, now_ms, recall, recall_fresh, remember,
};

use crate::node::NodeClient;

/// Maximum wait for a certificate.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(200);

/// A client that trusts a committee of the network.
#[derive(Debug)]
pub struct LightClient {
    node: NodeClient,
    witnesses: Vec<NodeClient>,
    base: Beginning,
    unbonding_epochs: u64,
    /// The trusted committees, of consecutive epochs.
    chains: Vec<Chain>,
    /// The state of the walk over committees.
    lineage: Lineage,
    /// The last epoch for which a certificate was requested.
    shown: u64,
    /// The file that stores the last proved committee.
    remembered: Option<PathBuf>,
    /// Maximum age of the newest block.
    max_age: Duration,
}

/// A block's certified facts.
struct Certified {
    height: Height,
    state: Digest,
    receipts: Digest,
    certificate: Certificate,
    /// Number of validators of the committee.
    validators: usize,
    epoch: u64,
}

impl LightClient {
    /// A client that trusts the committee of a lineage, and asks this node.
    pub fn trusting(node: NodeClient, lineage: Lineage, base: Beginning, unbonding_epochs: u64) -> LightClient {
        LightClient {
            node,
            witnesses: Vec::new(),
            base,
            unbonding_epochs,
            chains: vec![lineage.chain.clone()],
            shown: lineage.chain.epoch,
            lineage,
            remembered: None,
            max_age: Duration::MAX,
        }
    }

    /// Stores in this file how far it comes.
    pub fn remembering(self, file: Option<PathBuf>) -> LightClient {
        LightClient { remembered: file, ..self }
    }

    /// Believes only what these nodes show, too.
    pub fn witnessed_by(self, witnesses: Vec<NodeClient>) -> LightClient {
        LightClient { witnesses, ..self }
    }

    /// Refuses a newest block that is older than this.
    pub fn no_older_than(self, max_age: Duration) -> LightClient {
        LightClient { max_age, ..self }
    }

    /// Starts from a pinned state. Where validators never change, the state only has to be the one that they signed.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn begin_at(&mut self, pin: &Pin) -> Result<(), LightError> {
        let Pin { height, state } = *pin;
        if self.lineage.schedule.is_fixed() {
            if self.wait_for(height)?.state != state {
                return Err(LightError::TwoHistories { height });
            }
        } else {
            let epoch = self.lineage.epoch_shown_at(height).ok_or(LightError::NoCommittee { height })?;
            let handover = self.handover(epoch)?;
            let begun = self.lineage.begin_at(epoch, &state, &handover.validators);
            begun.map_err(|_| LightError::OtherState { server: self.node.url().into(), height })?;
            (self.chains, self.shown) = (vec![self.lineage.chain.clone()], epoch);
        }
        self.base = Beginning::Pin;
        Ok(())
    }

    /// Starts from the newest committee that the node shows, without a proof: for a node that one runs oneself.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn believe_newest(&mut self) -> Result<(), LightError> {
        let newest = self.node.height()?;
        // The next committee may be proved before its epoch begins.
        let last = self.lineage.schedule.epoch_of(newest.saturating_sub(self.lineage.lag + 2));
        if last > self.lineage.chain.epoch {
            let handover = self.handover(last)?;
            let state = handover.validators.parts.root();
            self.begin_at(&Pin { height: self.lineage.state_height(last), state })?;
        }
        Ok(())
    }

    /// Moves to the committee of the newest certificate.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn follow_newest(&mut self) -> Result<(), LightError> {
        self.head().map(drop)
    }

    /// Stores the progress: up to the epoch of the newest certificate. The walk may have gone further, but then the
    /// next certificate could be of an epoch before the trusted one.
    ///
    /// # Errors
    /// [`LightError::Node`] if the file cannot be written.
    pub fn remember(&self) -> Result<(), LightError> {
        let path = self.remembered.as_ref();
        path.map_or(Ok(()), |path| Ok(trust::remember(path, self.newest())?))
    }

    /// The committee of the newest certificate that was verified.
    pub fn newest(&self) -> &Chain {
        let shown = self.chains.iter().find(|chain| chain.epoch == self.shown);
        shown.expect("the walk has come there")
    }

    /// The proof of the committee of an epoch.
    fn handover(&self, epoch: u64) -> Result<Handover, LightError> {
        let body: HandoversBody = self.node.get(&format!("/v1/handovers?from={epoch}"))?;
        let none = || self.unproved(format!("no committee of epoch {epoch} is shown; a node that lags has none yet"));
        let first = body.handovers.first().ok_or_else(none)?;
        Ok(self.node.decoded("handover", &first.handover)?)
    }

    /// The committee of an epoch, proved by handovers from the last trusted one.
    fn committee(&mut self, epoch: u64) -> Result<&Chain, LightError> {
        let first = self.chains[0].epoch;
        trust::check_epoch(self.base, first, epoch, self.unbonding_epochs)?;
        while self.lineage.chain.epoch < epoch {
            self.walk_on(epoch)?;
        }
        let known = epoch.checked_sub(first).and_then(|at| self.chains.get(usize::try_from(at).ok()?));
        self.shown = self.shown.max(known.map_or(0, |chain| chain.epoch));
        known.ok_or(LightError::BeforeTrust { epoch, first, begun_with: self.base.name() })
    }

    /// Follows the next handovers that the node shows, at least one, towards an epoch.
    fn walk_on(&mut self, towards: u64) -> Result<(), LightError> {
        let from = self.lineage.chain.epoch + 1;
        // A network that restarted shows none of the committees before.
        let body = self.node.get(&format!("/v1/handovers?from={from}")).map_err(|error| match error.code() {
            Some("not_found") => self.unsigned(format!("the committee of epoch {from} is not proved ({error})")),
            _ => error.into(),
        });
        let body: HandoversBody = body?;
        if body.handovers.is_empty() {
            let what = format!("no handover to epoch {from} is shown, which epoch {towards} is proved by");
            return Err(self.unproved(what));
        }
        for entry in &body.handovers {
            let handover: Handover = self.node.decoded("handover", &entry.handover)?;
            let followed = self.lineage.follow(&handover);
            followed.map_err(|error| self.unsigned(error.to_string()))?;
            self.chains.push(self.lineage.chain.clone());
        }
        Ok(())
    }

    /// An answer that comes once its block is certified. Before the first block there is none to certify.
    fn certified_answer<T: DeserializeOwned>(&self, path: &str) -> Result<T, LightError> {
        let begun = Instant::now();
        loop {
            match self.node.get(path) {
                Err(error) if error.code() == Some("not_certified") => {
                    self.wait_a_little(begun, || "the block of the answer".into())?;
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// Pauses before a node that has no certificate yet is asked again.
    fn wait_a_little(&self, begun: Instant, what: impl Fn() -> String) -> Result<(), LightError> {
        wait_a_little(&self.node, begun, what)
    }

    /// The verified certificate that came with an answer about a block.
    fn certified_with(
        &mut self,
        height: Height,
        certificate: Option<&CertificateBody>,
    ) -> Result<Certified, LightError> {
        let certificate = certificate.ok_or_else(|| self.unproved("an answer comes without a certificate"))?;
        if certificate.height != height {
            return Err(self.unproved("the certificate is of another block"));
        }
        self.verified(certificate)
    }

    /// The newest certified block.
    fn head(&mut self) -> Result<Certified, LightError> {
        let begun = Instant::now();
        loop {
            let solo = || LightError::Solo { server: self.node.url().into() };
            let status = self.node.validator()?.ok_or_else(solo)?;
            let height = status.certified.saturating_sub(self.lineage.lag);
            let is_known = height > 0 && !self.is_before(height);
            if is_known && let Some(certified) = self.certified(height)? {
                return Ok(certified);
            }
            self.wait_a_little(begun, || format!("a block near {}", status.decided))?;
        }
    }

    /// Whether a block is certified by a committee earlier than the first trusted one.
    fn is_before(&self, height: Height) -> bool {
        self.lineage.schedule.epoch_of(height.saturating_add(self.lineage.lag)) < self.chains[0].epoch
    }

    fn wait_for(&mut self, height: Height) -> Result<Certified, LightError> {
        let begun = Instant::now();
        loop {
            if let Some(certified) = self.certified(height)? {
                return Ok(certified);
            }
            self.wait_a_little(begun, || format!("block {height}"))?;
        }
    }

    /// The verified certificate of a block's outcome; `None` if there is none yet.
    fn certified(&mut self, height: Height) -> Result<Option<Certified>, LightError> {
        let found: Option<CertificateBody> = self.node.find(&format!("/v1/blocks/{height}/certificate"))?;
        found.map(|body| self.verified(&body)).transpose()
    }

    /// What a certificate certifies, once it is verified.
    fn verified(&mut self, body: &CertificateBody) -> Result<Certified, LightError> {
        let height = body.height;
        let certificate: Certificate = self.node.decoded("certificate", &body.certificate)?;
        let lag = self.lineage.lag;
        let epoch = self.lineage.schedule.epoch_of(height.saturating_add(lag));
        let chain = self.committee(epoch)?;
        let (validators, signed) = (chain.keys.len(), certificate.verify(chain));
        signed.map_err(|error| {
            let what =
                format!("the certificate of block {height} is invalid for the validators that this client trusts");
            self.unsigned(format!("{what}: {error}"))
        })?;
        let (state, receipts): (Digest, Digest) = (
            self.node.number("state root", &body.state_root)?,
            self.node.number("receipts root", &body.receipts_root)?,
        );
        let statement = certificate.statement;
        if Some(statement.height) != height.checked_add(lag) {
            return Err(self.unproved("the certificate is of another block"));
        }
        if statement.root != outcome_root(&state, &receipts) {
            return Err(self.unproved("the roots differ from the signed ones"));
        }
        Ok(Certified { height, state, receipts, certificate, validators, epoch })
    }

    /// Refuses a block that is too old; returns its time.
    fn check_fresh(&self, certified: &Certified) -> Result<u64, LightError> {
        let time_ms = self.time_of(certified)?;
        trust::check_freshness(certified.height, time_ms, now_ms(), self.max_age)?;
        Ok(time_ms)
    }

    /// The time of a certified block: the receipts root contains the block's digest, and the block contains its time.
    fn time_of(&self, certified: &Certified) -> Result<u64, LightError> {
        let height = certified.height;
        let body: ModifiedBody = self.node.get(&format!("/v1/blocks/{height}/accounts/{}", Address([0; 20])))?;
        let proof: ModifiedProof = self.node.decoded("proof", &body.proof)?;
        let (_, bytes) = self.node.bytes(&format!("/v1/blocks/{height}/raw"))?;
        let is_signed = proof.parts.root() == certified.receipts && Superblock::digest(&bytes) == proof.parts.block;
        let block: Option<Superblock> = borsh::from_slice(&bytes).ok().filter(|_| is_signed);
        let block = block.ok_or_else(|| self.unproved(format!("block {height} is not the one that was signed")))?;
        Ok(block.time_ms)
    }

    /// Every witness must show the same signed statement.
    fn ask_witnesses(&self, certified: &Certified) -> Result<(), LightError> {
        self.witnesses.iter().try_for_each(|witness| self.ask_witness(witness, certified))
    }

    fn ask_witness(&self, witness: &NodeClient, certified: &Certified) -> Result<(), LightError> {
        let (begun, height) = (Instant::now(), certified.height);
        let unheard = |cause| LightError::Witness { server: witness.url().into(), cause: Box::new(cause) };
        let body: CertificateBody = loop {
            let found = witness.find(&format!("/v1/blocks/{height}/certificate"));
            if let Some(body) = found.map_err(unheard)? {
                break body;
            }
            wait_a_little(witness, begun, || format!("block {height}"))?;
        };
        let shown: Certificate = witness.decoded("certificate", &body.certificate).map_err(unheard)?;
        match shown.statement == certified.certificate.statement {
            true => Ok(()),
            false => {
                let (witness, server) = (witness.url().into(), self.node.url().into());
                Err(LightError::Contradicted { witness, server, height })
            }
        }
    }

    fn unproved(&self, what: impl Into<String>) -> LightError {
        LightError::Unproved { server: self.node.url().into(), what: what.into() }
    }

    fn unsigned(&self, what: String) -> LightError {
        LightError::Unsigned { server: self.node.url().into(), what }
    }
}

/// Pauses before a node that has no certificate yet is asked again; refuses to after [`PATIENCE`].
fn wait_a_little(node: &NodeClient, begun: Instant, what: impl Fn() -> String) -> Result<(), LightError> {
    if begun.elapsed() >= PATIENCE {
        return Err(LightError::NotCertified { server: node.url().into(), what: what() });
    }
    std::thread::sleep(PAUSE);
    Ok(())
}
