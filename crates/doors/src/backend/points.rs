//! Reads of the ledger, of a bounded size: one account, one page of offers, one proof.

use ledger::{
    AccountKeys, AccountProof, AccountState, AssetProof, AssetTermsProof, HolderProof, KeysProof, Ledger, NextBatch,
    Offer, OfferProof, Pair, ParametersProof, Place, SealsProof, SlotProof, ValidatorsProof,
};
use primitives::{Address, AssetId, Digest, Height};

/// Reads of the ledger, of a bounded size: one account, one page of offers, one proof.
pub trait PointReads {
    /// An account in the current state.
    fn account(&self, address: &Address) -> AccountRead;

    /// At most `count` offers of a pair from `first` to `last`, in order of execution.
    fn offers(&self, pair: Pair, first: Place, last: Place, count: usize) -> OffersRead;

    /// What the next batch needs of the present state.
    fn next_batch(&self) -> NextBatch;

    /// An account, or its absence, with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_account(&self, address: &Address) -> Result<Proved<AccountProof>, ReadError>;

    /// The policy of an account, or its absence, with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_keys(&self, address: &Address) -> Result<Proved<KeysProof>, ReadError>;

    /// The parameters, with their path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_parameters(&self) -> Result<Proved<ParametersProof>, ReadError>;

    /// The sealing keys, or that the chain has none, with their path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_seals(&self) -> Result<Proved<SealsProof>, ReadError>;

    /// A resting offer, or its absence, with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_offer(&self, pair: Pair, place: &Place) -> Result<Proved<OfferProof>, ReadError>;

    /// The record of an asset and its terms, or their absence, each with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_asset(&self, asset: AssetId) -> Result<Proved<(AssetProof, AssetTermsProof)>, ReadError>;

    /// What an issuer has said of a holder, or that it has said nothing, with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_holder(&self, asset: AssetId, account: &Address) -> Result<Proved<HolderProof>, ReadError>;

    /// The registry of validators with its path to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_validators(&self) -> Result<Proved<ValidatorsProof>, ReadError>;

    /// An account and some of its slots, with their paths to the state root.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_storage(
        &self,
        address: &Address,
        slots: &[[u8; 32]],
    ) -> Result<Proved<(AccountProof, Vec<SlotProof>)>, ReadError>;
}

/// An account at a height.
#[derive(Clone, Debug)]
pub struct AccountRead {
    /// Height of the state.
    pub height: Height,
    /// The account; `None` if there is none.
    pub account: Option<AccountState>,
    /// Its policy of several keys, if it has one.
    pub keys: Option<AccountKeys>,
}

impl AccountRead {
    /// An account in the state of a ledger.
    pub fn of(ledger: &Ledger, address: &Address) -> AccountRead {
        let account = ledger.accounts().get(address).map(|account| account.state());
        AccountRead { height: ledger.height(), account, keys: ledger.account_keys(address).cloned() }
    }
}

/// Offers of one pair at a height.
#[derive(Clone, Debug)]
pub struct OffersRead {
    /// Height of the state.
    pub height: Height,
    /// In order of execution.
    pub offers: Vec<Offer>,
}

/// A value with a proof against the state root of a height.
#[derive(Clone, Debug)]
pub struct Proved<P> {
    /// Height of the root.
    pub height: Height,
    /// The state root.
    pub root: Digest,
    /// The proof.
    pub proof: P,
}

/// Why something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The archive is damaged or unreadable.
    #[error("the archive cannot be read: {0}")]
    Archive(String),
    /// The node is recovering, stopping, or has failed.
    #[error("the node is recovering or stopping")]
    Stopping,
}
