//! Ethereum transactions as bytes: decoding, checks that need only the transaction, and the sender.

use std::sync::Arc;

use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::{EthereumTxEnvelope, Transaction as _, TxEip4844};
use revm::context::either::Either;
use revm::context::transaction::{AccessList, SignedAuthorization};
use revm::context::{TransactionType, TxEnv};
use revm::context_interface::cfg::gas_params::Eip2780TxInfo;
use revm::handler::validation::validate_initial_tx_gas;
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address as EvmAddress, B256, Bytes, U256, eip3860, eip7954};

use primitives::{Address, Digest};

use crate::terms::TRANSACTION_GAS_MAX;

/// The most bytes of initialisation code of a creation.
fn init_code_max(spec: SpecId) -> usize {
    if spec.is_enabled_in(SpecId::AMSTERDAM) { eip7954::MAX_INITCODE_SIZE } else { eip3860::MAX_INITCODE_SIZE }
}

/// A decoded transaction: legacy, with an access list (EIP-2930), with a dynamic fee (EIP-1559), with delegations
/// (EIP-7702). Blob transactions (EIP-4844) are decoded for tests and refused by [`EthereumTransaction::check`].
#[derive(Clone, Debug)]
pub struct EthereumTransaction {
    envelope: EthereumTxEnvelope<TxEip4844>,
}

/// The parts of a transaction, for display.
#[derive(Clone, Debug)]
pub struct EthereumParts {
    /// Its type: 0, 1, 2 or 4.
    pub kind: u8,
    /// The chain that it is for.
    pub chain: Option<u64>,
    /// Its nonce.
    pub nonce: u64,
    /// The gas that it declares.
    pub gas_limit: u64,
    /// The most wei that it pays for a unit of gas.
    pub max_fee: u128,
    /// The most of these wei for the proposer; `None` where the type has only one price.
    pub max_tip: Option<u128>,
    /// The account that is called; `None` creates a contract.
    pub to: Option<Address>,
    /// Wei to send.
    pub value: U256,
    /// Input of the call, or code that creates the contract.
    pub input: Bytes,
    /// Its access list.
    pub access_list: Option<AccessList>,
    /// The delegations that it carries.
    pub authorizations: Option<Vec<SignedAuthorization>>,
    /// The parity of the signature's point.
    pub y_is_odd: bool,
    /// The signature.
    pub r: U256,
    /// The signature.
    pub s: U256,
}

impl EthereumParts {
    /// A call without data and gas that no one signed.
    pub fn unsigned(to: Address) -> EthereumParts {
        EthereumParts {
            kind: 0,
            chain: None,
            nonce: 0,
            gas_limit: 0,
            max_fee: 0,
            max_tip: None,
            to: Some(to),
            value: U256::ZERO,
            input: Bytes::new(),
            access_list: None,
            authorizations: None,
            y_is_odd: false,
            r: U256::ZERO,
            s: U256::ZERO,
        }
    }
}

/// What a transaction is judged by before any state is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthereumRules {
    /// The chain's number.
    pub chain: u64,
    /// The rules of its fork.
    pub spec: SpecId,
}

/// Why a chain rejects bytes as a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EthereumFault {
    /// The bytes are not the canonical encoding of a known type.
    #[error("the bytes are not the canonical encoding of an Ethereum transaction of type 0, 1, 2 or 4")]
    Undecodable,
    /// A blob transaction.
    #[error("blob transactions (EIP-4844) are not supported")]
    Blob,
    /// The transaction has no chain id, so anyone can replay it on another chain.
    #[error("the transaction names no chain (EIP-155): sign it for chain {0}")]
    Unprotected(u64),
    /// The transaction is for another chain.
    #[error("the transaction is for chain {got}, this is chain {chain}")]
    Chain {
        /// This chain.
        chain: u64,
        /// The chain that was signed for.
        got: u64,
    },
    /// A delegation is valid on every chain, or on another one.
    #[error("an authorization (EIP-7702) is for chain {got}, this is chain {chain}")]
    Authorization {
        /// This chain.
        chain: u64,
        /// The chain that was signed for, truncated to 64 bits.
        got: u64,
    },
    /// The gas limit is too low for the transaction itself.
    #[error("the gas limit {limit} is below {needed}, which the transaction costs before it does anything")]
    IntrinsicGas {
        /// The limit given.
        limit: u64,
        /// The required minimum.
        needed: u64,
    },
    /// The transaction declares more gas than allowed (EIP-7825).
    #[error("the gas limit {0} is above 16777216, the most for one transaction")]
    GasCap(u64),
    /// The initialisation code is too long (EIP-3860, and EIP-7954 from Amsterdam on).
    #[error("{got} bytes of initialisation code; at most {most}")]
    InitCode {
        /// Its length.
        got: usize,
        /// What the fork permits.
        most: usize,
    },
    /// The tip is above the fee, the nonce cannot be incremented, or a required authorization is missing.
    #[error("the transaction contradicts itself: {0}")]
    Inconsistent(&'static str),
    /// The transaction declares more gas than is left of the quota of its sub-block.
    #[error("the gas limit {gas} is above {left}, the rest of the sub-block's quota")]
    Quota {
        /// The gas that it declares.
        gas: u64,
        /// What is left.
        left: u64,
    },
    /// The signature recovers to no address, or has a high s.
    #[error("the signature is invalid")]
    Signature,
}

impl EthereumFault {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            EthereumFault::Undecodable => "undecodable",
            EthereumFault::Blob => "blob",
            EthereumFault::Unprotected(_) => "unprotected",
            EthereumFault::Chain { .. } => "wrong_chain",
            EthereumFault::Authorization { .. } => "wrong_chain_of_authorization",
            EthereumFault::IntrinsicGas { .. } => "intrinsic_gas",
            EthereumFault::GasCap(_) => "gas_cap",
            EthereumFault::InitCode { .. } => "init_code",
            EthereumFault::Inconsistent(_) => "inconsistent",
            EthereumFault::Quota { .. } => "over_quota",
            EthereumFault::Signature => "bad_signature",
        }
    }
}

impl EthereumTransaction {
    /// Decodes a transaction in its EIP-2718 form.
    ///
    /// # Errors
    /// [`EthereumFault::Undecodable`] if the bytes are not exactly one canonical transaction.
    pub fn decode(bytes: &[u8]) -> Result<EthereumTransaction, EthereumFault> {
        use alloy_eips::eip2718::Decodable2718;
        let mut rest = bytes;
        let envelope = EthereumTxEnvelope::decode_2718(&mut rest).map_err(|_| EthereumFault::Undecodable)?;
        if rest.is_empty() { Ok(EthereumTransaction { envelope }) } else { Err(EthereumFault::Undecodable) }
    }

    /// Its hash, which is also its id.
    pub fn hash(&self) -> Digest {
        Digest(self.envelope.tx_hash().0)
    }

    /// Its nonce.
    pub fn nonce(&self) -> u64 {
        self.envelope.nonce()
    }

    /// The gas that it declares.
    pub fn gas_limit(&self) -> u64 {
        self.envelope.gas_limit()
    }

    /// The most wei that it pays for a unit of gas.
    pub fn max_fee(&self) -> u128 {
        self.envelope.max_fee_per_gas()
    }

    /// Its parts.
    pub fn parts(&self) -> EthereumParts {
        let envelope = &self.envelope;
        let signature = envelope.signature();
        EthereumParts {
            kind: envelope.tx_type() as u8,
            chain: envelope.chain_id(),
            nonce: envelope.nonce(),
            gas_limit: envelope.gas_limit(),
            max_fee: envelope.max_fee_per_gas(),
            max_tip: envelope.max_priority_fee_per_gas(),
            to: envelope.to().map(|to| Address(to.0.0)),
            value: envelope.value(),
            input: envelope.input().clone(),
            access_list: envelope.access_list().cloned(),
            authorizations: envelope.authorization_list().map(<[_]>::to_vec),
            y_is_odd: signature.v(),
            r: signature.r(),
            s: signature.s(),
        }
    }

    /// The most wei that it takes from its sender: all gas at the highest price, and its value. `None` if no such
    /// amount can exist.
    pub fn cost_max(&self) -> Option<u128> {
        let gas = u128::from(self.gas_limit()).checked_mul(self.max_fee())?;
        gas.checked_add(u128::try_from(self.envelope.value()).ok()?)
    }

    /// Checks everything that needs no state and no signature.
    ///
    /// # Errors
    /// [`EthereumFault`] names the first fault that no state and no sender could make valid.
    pub fn check(&self, rules: EthereumRules) -> Result<(), EthereumFault> {
        let EthereumRules { chain, spec } = rules;
        let envelope = &self.envelope;
        if matches!(envelope, EthereumTxEnvelope::Eip4844(_)) {
            return Err(EthereumFault::Blob);
        }
        match envelope.chain_id() {
            None => return Err(EthereumFault::Unprotected(chain)),
            Some(got) if got != chain => return Err(EthereumFault::Chain { chain, got }),
            Some(_) => {}
        }
        for authorization in envelope.authorization_list().unwrap_or_default() {
            let got = u64::try_from(*authorization.chain_id()).unwrap_or(u64::MAX);
            if got != chain {
                return Err(EthereumFault::Authorization { chain, got });
            }
        }
        if envelope.authorization_list().is_some_and(<[_]>::is_empty) {
            return Err(EthereumFault::Inconsistent("it delegates, but has no authorization"));
        }
        if envelope.max_priority_fee_per_gas().is_some_and(|tip| tip > envelope.max_fee_per_gas()) {
            return Err(EthereumFault::Inconsistent("the highest tip is above the highest fee"));
        }
        if envelope.nonce() == u64::MAX {
            return Err(EthereumFault::Inconsistent("the nonce cannot be incremented"));
        }
        let (got, most) = (envelope.input().len(), init_code_max(spec));
        if envelope.is_create() && got > most {
            return Err(EthereumFault::InitCode { got, most });
        }
        self.check_gas(spec, None)
    }

    /// Checks the gas limit of a transaction whose sender is known: from Amsterdam on (EIP-2780), what it costs
    /// before it does anything depends on whom it calls.
    ///
    /// # Errors
    /// [`EthereumFault::IntrinsicGas`].
    pub fn check_from(&self, sender: &Address, spec: SpecId) -> Result<(), EthereumFault> {
        if spec.is_enabled_in(SpecId::AMSTERDAM) { self.check_gas(spec, Some(sender)) } else { Ok(()) }
    }

    /// Without a sender, the gas limit is that of the cheapest one: a call of the sender itself.
    fn check_gas(&self, spec: SpecId, sender: Option<&Address>) -> Result<(), EthereumFault> {
        let limit = self.gas_limit();
        if limit > TRANSACTION_GAS_MAX {
            return Err(EthereumFault::GasCap(limit));
        }
        let transaction = TxEnv { gas_limit: u64::MAX, ..self.unsigned(EvmAddress::ZERO) };
        let is_parted = spec.is_enabled_in(SpecId::AMSTERDAM);
        let parted = is_parted.then(|| {
            let is_of = |sender: &Address| transaction.kind.to().is_some_and(|to| to.0.0 == sender.0);
            Eip2780TxInfo { value: transaction.value, is_self_transfer: sender.is_none_or(is_of) }
        });
        let gas = validate_initial_tx_gas(&transaction, spec, false, is_parted, u64::MAX, parted)
            .map_err(|_| EthereumFault::Inconsistent("its gas overflows"))?;
        let needed = gas.initial_total_gas().max(gas.floor_gas());
        if limit < needed { Err(EthereumFault::IntrinsicGas { limit, needed }) } else { Ok(()) }
    }

    /// Recovers the signer. This costs as much as about thirty transfers.
    ///
    /// # Errors
    /// [`EthereumFault::Signature`].
    pub fn recover_sender(&self) -> Result<Address, EthereumFault> {
        self.envelope.recover_signer().map(|sender| Address(sender.0.0)).map_err(|_| EthereumFault::Signature)
    }

    /// The transaction in executable form, sent by `sender`. Authorizations are recovered here, once.
    pub fn to_job(&self, sender: &Address) -> Arc<TxEnv> {
        let authorizations = self.envelope.authorization_list().unwrap_or_default().iter().cloned();
        let authorization_list =
            authorizations.map(|authorization| Either::Right(authorization.into_recovered())).collect();
        Arc::new(TxEnv { authorization_list, ..self.unsigned(EvmAddress::new(sender.0)) })
    }

    fn unsigned(&self, caller: EvmAddress) -> TxEnv {
        let envelope = &self.envelope;
        let tx_type = match envelope {
            EthereumTxEnvelope::Legacy(_) => TransactionType::Legacy,
            EthereumTxEnvelope::Eip2930(_) => TransactionType::Eip2930,
            EthereumTxEnvelope::Eip1559(_) => TransactionType::Eip1559,
            EthereumTxEnvelope::Eip4844(_) => TransactionType::Eip4844,
            EthereumTxEnvelope::Eip7702(_) => TransactionType::Eip7702,
        };
        let authorizations = envelope.authorization_list().unwrap_or_default().iter().cloned();
        TxEnv {
            tx_type: tx_type as u8,
            caller,
            gas_limit: envelope.gas_limit(),
            gas_price: envelope.max_fee_per_gas(),
            kind: envelope.kind(),
            value: envelope.value(),
            data: envelope.input().clone(),
            nonce: envelope.nonce(),
            chain_id: envelope.chain_id(),
            access_list: envelope.access_list().cloned().unwrap_or_default(),
            gas_priority_fee: envelope.max_priority_fee_per_gas(),
            blob_hashes: envelope.blob_versioned_hashes().map(<[B256]>::to_vec).unwrap_or_default(),
            max_fee_per_blob_gas: envelope.max_fee_per_blob_gas().unwrap_or_default(),
            authorization_list: authorizations.map(Either::Left).collect(),
        }
    }
}
