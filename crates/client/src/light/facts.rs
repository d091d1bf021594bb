//! Facts that a quorum has signed: accounts, their policies, outcomes of transactions, records of venues, keys of the
//! payment lane.

use api::{AccountProofBody, LaneRegistrationsProofBody, RecordProofBody, TransactionBody};
use borsh::BorshDeserialize;
use primitives::venue::VenueId;
use primitives::{Address, AssetId, Digest, Height, TransactionId};
use proofs::{
    AccountKeys, AccountProof, AccountState, Asset, AssetProof, AssetTerms, AssetTermsProof, KeysProof, LaneProof,
    Outcome, ParametersProof, ParametersRecord, ProofFault, ReceiptProof, VenueDeposit, VenueProof, VenueRecord,
    VenueRecordId,
};

use super::error::LightError;
use super::trust::{self, Beginning, Pin};
use super::{Certified, LightClient};

/// The record of an asset and its terms, each if it exists.
pub type AssetFacts = (Option<Asset>, Option<AssetTerms>);

/// A fact, with what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedFact<T> {
    /// The fact.
    pub fact: T,
    /// The block after which it holds, or in which it happened.
    pub height: Height,
    /// The time of that block, milliseconds since 1970.
    pub time_ms: u64,
    /// The state root after the block.
    pub state: Digest,
    /// The block's receipts root.
    pub receipts: Digest,
    /// Number of validators that signed.
    pub signed_by: usize,
    /// Number of validators of the committee.
    pub validators: usize,
    /// The epoch of the committee.
    pub epoch: u64,
    /// Number of witnesses that show the same block.
    pub witnesses: usize,
    /// What the client started from.
    pub begun_with: Beginning,
}

impl LightClient {
    /// The account at an address, or its absence.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn account(&mut self, address: &Address) -> Result<ProvedFact<Option<AccountState>>, LightError> {
        let body: AccountProofBody = self.certified_answer(&format!("/v1/accounts/{address}/proof?certified=true"))?;
        let proof: AccountProof = self.node.decoded("proof", &body.proof)?;
        let certified = self.certified_with(body.height, body.certificate.as_ref())?;
        let time_ms = self.check_fresh(&certified)?;
        self.ask_witnesses(&certified)?;
        let account = proof.verify(&certified.state, address).map_err(|fault| self.unproved(fault.to_string()))?;
        Ok(self.proved(account.cloned(), &certified, time_ms))
    }

    /// The policy of an account, or its absence: then its own key signs alone.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn keys(&mut self, address: &Address) -> Result<ProvedFact<Option<AccountKeys>>, LightError> {
        let path = format!("/v1/accounts/{address}/keys/proof?certified=true");
        self.proved_by(&path, |proof: &KeysProof, state| Ok(proof.verify(state, address)?.cloned()))
    }

    /// The parameters of the chain, and those that wait; `None` if nothing was ever proposed: they are those of the
    /// genesis.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn parameters(&mut self) -> Result<ProvedFact<Option<ParametersRecord>>, LightError> {
        let path = "/v1/parameters/proof?certified=true";
        self.proved_by(path, |proof: &ParametersProof, state| Ok(proof.verify(state)?.cloned()))
    }

    /// The outcome of a transaction in the block that the node names; `None` if it is proved not to be in it.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn transaction(&mut self, id: &TransactionId) -> Result<ProvedFact<Option<Outcome>>, LightError> {
        let head = self.head()?;
        self.check_fresh(&head)?;
        let path = format!("/v1/transactions/{id}?proof=true&certified=true");
        let body: TransactionBody = self.certified_answer(&path)?;
        let pending = || LightError::Pending { server: self.node.url().into() };
        let height = body.height.ok_or_else(pending)?;
        let proof = body.proof.ok_or_else(|| self.unproved("the transaction comes without a proof"))?;
        let proof: ReceiptProof = self.node.decoded("proof", &proof)?;
        let certified = self.certified_with(height, body.certificate.as_ref())?;
        // The signers may have been paid back since, although the newest committee has not.
        let at_risk = trust::last_epoch(certified.epoch, self.unbonding_epochs) >= head.epoch;
        if !at_risk && self.witnesses.is_empty() {
            return Err(LightError::Unwitnessed { height, epoch: certified.epoch });
        }
        let time_ms = self.time_of(&certified)?;
        self.ask_witnesses(&certified)?;
        let outcome = proof.verify(&certified.receipts, id).map_err(|fault| self.unproved(fault.to_string()))?;
        Ok(self.proved(outcome, &certified, time_ms))
    }

    /// A deposit at a venue, or its absence. The symbol is the asset's.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn deposit(
        &mut self,
        address: &Address,
        venue: VenueId,
        (asset, symbol): (AssetId, &str),
    ) -> Result<ProvedFact<Option<VenueDeposit>>, LightError> {
        let id = VenueRecordId::Deposit((venue, *address, asset));
        self.record(&format!("/v1/accounts/{address}/deposits/{venue}/{symbol}/proof?certified=true"), &id)
    }

    /// An asset's record and its terms, or their absence.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn asset(&mut self, asset: AssetId) -> Result<ProvedFact<AssetFacts>, LightError> {
        let body: RecordProofBody = self.certified_answer(&format!("/v1/assets/{asset}/proof?certified=true"))?;
        let (record, terms): (AssetProof, AssetTermsProof) = self.node.decoded("proof", &body.proof)?;
        let certified = self.certified_with(body.height, body.certificate.as_ref())?;
        let time_ms = self.check_fresh(&certified)?;
        self.ask_witnesses(&certified)?;
        let unproved = |fault: ProofFault| self.unproved(fault.to_string());
        let record = record.verify(&certified.state, asset).map_err(unproved)?.cloned();
        let terms = terms.verify(&certified.state, asset).map_err(unproved)?.copied();
        Ok(self.proved((record, terms), &certified, time_ms))
    }

    /// A venue, or its absence.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn venue(&mut self, venue: VenueId) -> Result<ProvedFact<Option<VenueRecord>>, LightError> {
        self.record(&format!("/v1/venues/{venue}/proof?certified=true"), &VenueRecordId::Venue(venue))
    }

    /// A record of venues that the node proves.
    fn record<T: BorshDeserialize>(
        &mut self,
        path: &str,
        id: &VenueRecordId,
    ) -> Result<ProvedFact<Option<T>>, LightError> {
        self.proved_by(path, |proof: &VenueProof, state| proof.verify(state, id))
    }

    /// What the proof at a path proves of a certified state.
    fn proved_by<P: BorshDeserialize, T>(
        &mut self,
        path: &str,
        verify: impl FnOnce(&P, &Digest) -> Result<Option<T>, ProofFault>,
    ) -> Result<ProvedFact<Option<T>>, LightError> {
        let body: RecordProofBody = self.certified_answer(path)?;
        let proof: P = self.node.decoded("proof", &body.proof)?;
        let certified = self.certified_with(body.height, body.certificate.as_ref())?;
        let time_ms = self.check_fresh(&certified)?;
        self.ask_witnesses(&certified)?;
        let record = verify(&proof, &certified.state).map_err(|fault| self.unproved(fault.to_string()))?;
        Ok(self.proved(record, &certified, time_ms))
    }

    /// The keys that members of the payment lane registered for epochs from `from` on, in a state that a quorum has
    /// signed. `entries` makes the bridge's entries of the answer (`payments::BridgeEntry`).
    ///
    /// # Errors
    /// [`LightError`], also if the ledger has other entries.
    pub fn lane_registrations<Key: AsRef<[u8]>>(
        &mut self,
        from: u64,
        entries: impl Fn(&LaneRegistrationsProofBody) -> Option<Vec<(Key, Option<[u8; 32]>)>>,
    ) -> Result<LaneRegistrationsProofBody, LightError> {
        let path = format!("/v1/lane/registrations/proof?from={from}&certified=true");
        let body: LaneRegistrationsProofBody = self.certified_answer(&path)?;
        let proof: LaneProof = self.node.decoded("proof", &body.proof)?;
        let certified = self.certified_with(body.height, body.certificate.as_ref())?;
        let told = entries(&body).ok_or_else(|| self.unproved("the lane's keys cannot be decoded"))?;
        let other = |fault| self.unproved(format!("the ledger has other keys of the lane than the node says: {fault}"));
        proof.verify(&certified.state, &told).map_err(other)?;
        Ok(body)
    }

    /// A pin for another client: the state that shows the newest committee, or the newest state if validators never
    /// change.
    ///
    /// # Errors
    /// [`LightError`].
    pub fn pin(&mut self) -> Result<ProvedFact<Pin>, LightError> {
        let head = self.head()?;
        let time_ms = self.check_fresh(&head)?;
        self.ask_witnesses(&head)?;
        let pin = match head.epoch {
            0 => Pin { height: head.height, state: head.state },
            epoch => self.pin_of(epoch)?,
        };
        Ok(self.proved(pin, &head, time_ms))
    }

    /// The pin of a trusted epoch: its committee is proved from the state that shows it.
    fn pin_of(&self, epoch: u64) -> Result<Pin, LightError> {
        let handover = self.handover(epoch)?;
        let pin = Pin { height: self.lineage.state_height(epoch), state: handover.validators.parts.root() };
        let mut from_pin = self.lineage.clone();
        let begun = from_pin.begin_at(epoch, &pin.state, &handover.validators);
        begun.map_err(|error| self.unproved(error.to_string()))?;
        let known = self.chains.iter().find(|chain| chain.epoch == epoch).expect("the walk has come there");
        match from_pin.chain == *known {
            true => Ok(pin),
            false => Err(self.unproved(format!("another committee of epoch {epoch} than the proved one is shown"))),
        }
    }

    /// Whether the validators of the network never change.
    pub fn is_fixed(&self) -> bool {
        self.lineage.schedule.is_fixed()
    }

    fn proved<T>(&self, fact: T, certified: &Certified, time_ms: u64) -> ProvedFact<T> {
        ProvedFact {
            fact,
            height: certified.height,
            time_ms,
            state: certified.state,
            receipts: certified.receipts,
            signed_by: certified.certificate.signatures.len(),
            validators: certified.validators,
            epoch: certified.epoch,
            witnesses: self.witnesses.len(),
            begun_with: self.base,
        }
    }
}
