//! The rules of a watcher, which acts for wallets that are offline.
//!
//! A wallet gives its receipts to a watcher, which has no key. The watcher settles each receipt, posts the
//! certificate of a payment that is contested, and sends unmoved outputs home: in the third epoch of a home anyone
//! may ask for an exit, which pays the owner's own ledger account.

use std::collections::BTreeMap;

use primitives::{Digest, Signature};

use crate::{
    CaseEvent, FastReceipt, Holding, HomeEpoch, HomePhase, LaneRefusal, OutputId, OutputProof, Payment, PaymentBody,
    PaymentCertificate, Recipient, SpentOutput, is_redeemable, spend_request,
};

/// The next action of a watcher for a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchAction {
    /// Send this request to the owner's shard of each validator of the epoch until q have acknowledged.
    Settle(HomeEpoch, Vec<u8>),
    /// Send this request to the owner's shard of each validator of the epoch until q have confirmed the exit.
    SendHome(HomeEpoch, Vec<u8>),
    /// Post the certificate of this payment to the ledger: it pays an account, or is contested.
    Post(Digest),
}

/// A watched receipt.
#[derive(Clone, Debug)]
struct Watched {
    receipt: FastReceipt,
    holding: Holding,
    settled: bool,
    posted: bool,
    exit: Option<PaymentCertificate>,
}

/// The watched receipts of one network.
#[derive(Clone, Debug)]
pub struct LaneWatcher {
    network: Digest,
    watched: BTreeMap<OutputId, Watched>,
    receipts_max: usize,
}

impl LaneWatcher {
    /// A watcher of at most this many receipts.
    pub fn new(network: Digest, receipts_max: usize) -> LaneWatcher {
        LaneWatcher { network, watched: BTreeMap::new(), receipts_max }
    }

    /// Adds a verified receipt, with the holding that its verification returned.
    ///
    /// # Errors
    /// [`LaneRefusal::Full`].
    pub fn watch(&mut self, receipt: FastReceipt, holding: Holding) -> Result<OutputId, LaneRefusal> {
        let id = holding.id;
        if self.watched.len() >= self.receipts_max && !self.watched.contains_key(&id) {
            return Err(LaneRefusal::Full);
        }
        let new = Watched { receipt, holding, settled: false, posted: false, exit: None };
        self.watched.entry(id).or_insert(new);
        Ok(id)
    }

    /// Number of receipts.
    pub fn len(&self) -> usize {
        self.watched.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// Records that q validators have acknowledged the payment of a receipt.
    pub fn settled(&mut self, id: &OutputId) {
        if let Some(watched) = self.watched.get_mut(id) {
            watched.settled = true;
        }
    }

    /// Records that the certificate of a payment was committed.
    pub fn posted(&mut self, digest: &Digest) {
        for watched in self.watched.values_mut() {
            watched.posted |= watched.receipt.proof.summary.digest(&self.network) == *digest;
        }
    }

    /// Records that the exit of a receipt's output has a certificate; returns what to post to the ledger, once.
    pub fn sent_home(
        &mut self,
        id: &OutputId,
        certificate: PaymentCertificate,
    ) -> Option<(Payment, PaymentCertificate)> {
        let network = self.network;
        let watched = self.watched.get_mut(id)?;
        watched.exit = Some(certificate.clone());
        Some((watched.exit_of(network)?, certificate))
    }

    /// Records that the owner moved the output, or the ledger paid it: nothing is left to do.
    pub fn done(&mut self, id: &OutputId) {
        self.watched.remove(id);
    }

    /// The actions that a case requires.
    pub fn contested(&self, event: &CaseEvent) -> Vec<WatchAction> {
        let CaseEvent::Fixed(_, bodies) = event else { return Vec::new() };
        let is =
            |watched: &&Watched, body: &PaymentBody| watched.receipt.proof.summary.digest(&self.network) == body.digest;
        let ours = |body: &PaymentBody| self.watched.values().any(|watched| is(&watched, body));
        bodies.iter().filter(|body| ours(body)).map(|body| WatchAction::Post(body.digest)).collect()
    }

    /// The actions in lane epoch `now`. Calling it again returns the actions that are still not done.
    pub fn actions(&mut self, now: HomeEpoch) -> Vec<WatchAction> {
        let mut actions = Vec::new();
        // An output cannot be saved if its home has ended and its certificate is not redeemable.
        let lost = |watched: &Watched| {
            let summary = &watched.receipt.proof.summary;
            let account = matches!(watched.holding.output.to, Recipient::Account(_));
            let home = if account { summary.home } else { summary.into };
            now > home && !is_redeemable(home, now)
        };
        self.watched.retain(|_, watched| !lost(watched));
        for watched in self.watched.values() {
            let summary = &watched.receipt.proof.summary;
            if matches!(watched.holding.output.to, Recipient::Account(_)) {
                if !watched.posted {
                    actions.push(WatchAction::Post(summary.digest(&self.network)));
                }
                continue;
            }
            if !watched.settled && HomePhase::of(summary.home, now) <= HomePhase::Exit {
                actions.push(WatchAction::Settle(summary.home, watched.receipt.settle_request()));
            }
            if watched.exit.is_none()
                && HomePhase::of(summary.into, now) == HomePhase::Exit
                && let Some(exit) = watched.exit_of(self.network)
            {
                let proof = OutputProof::Payment(Box::new(watched.receipt.proof.clone()));
                let request = spend_request(&exit.encode(), &Signature([0; 64]), &[proof]);
                actions.push(WatchAction::SendHome(summary.into, request));
            }
        }
        actions
    }
}

impl Watched {
    fn exit_of(&self, network: Digest) -> Option<Payment> {
        let Recipient::Key(owner) = self.holding.output.to else { return None };
        let Holding { id, output, .. } = &self.holding;
        let spent = SpentOutput { id: *id, asset: output.asset, amount: output.amount };
        Some(Payment::exit(network, self.receipt.proof.summary.into, owner, spent))
    }
}
