//! Keys of Ethereum accounts, and what they sign.

use alloy_consensus::{SignableTransaction, Signed, TxEip1559, TxEip2930, TxEip7702, TxLegacy};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use revm::context::transaction::AccessList;
use revm::primitives::alloy_primitives::Signature;
use revm::primitives::{Address as EvmAddress, B256, TxKind, U256, keccak256};
use secp256k1::{All, Message, Secp256k1, SecretKey};

use primitives::Address;

/// A secret key of the curve secp256k1.
#[derive(Clone)]
pub struct EthereumKey {
    curve: Secp256k1<All>,
    secret: SecretKey,
}

/// A transaction to sign: with one price (a legacy one, or EIP-2930 with an access list), else with a dynamic fee
/// (EIP-1559), and with delegations (EIP-7702) if it has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EthereumRequest {
    /// The number of the chain.
    pub chain: u64,
    /// The nonce of the sender.
    pub nonce: u64,
    /// The account that is called; `None` creates a contract.
    pub to: Option<Address>,
    /// Wei to send.
    pub value: u128,
    /// The most gas to pay for.
    pub gas_limit: u64,
    /// The most wei to pay per unit of gas.
    pub max_fee: u128,
    /// The most of these wei that go to the proposer.
    pub max_tip: u128,
    /// Whether it has one price: it pays `max_fee` per unit of gas, whatever the base fee is.
    pub has_one_price: bool,
    /// Addresses and slots that it names beforehand.
    pub access_list: AccessList,
    /// Input of the call, or code that creates the contract.
    pub data: Vec<u8>,
    /// Delegations that it activates; then it makes a call and creates no contract.
    pub delegations: Vec<SignedAuthorization>,
}

impl EthereumKey {
    /// The key of a seed; `None` for the few seeds that have none.
    pub fn from_seed(seed: [u8; 32]) -> Option<EthereumKey> {
        let secret = SecretKey::from_byte_array(seed).ok()?;
        Some(EthereumKey { curve: Secp256k1::new(), secret })
    }

    /// The address of its account.
    pub fn address(&self) -> Address {
        let public = self.secret.public_key(&self.curve).serialize_uncompressed();
        let mut address = [0; 20];
        address.copy_from_slice(&keccak256(&public[1..]).0[12..]);
        Address(address)
    }

    /// Signs a hash.
    pub fn sign_hash(&self, hash: B256) -> Signature {
        let signed = self.curve.sign_ecdsa_recoverable(Message::from_digest(hash.0), &self.secret);
        let (parity, bytes) = signed.serialize_compact();
        let [r, s] = [&bytes[..32], &bytes[32..]].map(U256::from_be_slice);
        Signature::new(r, s, i32::from(parity) & 1 == 1)
    }

    /// Signs a transaction; its bytes in EIP-2718 form.
    pub fn sign(&self, request: &EthereumRequest) -> Vec<u8> {
        match request {
            _ if !request.delegations.is_empty() => self.sign_envelope(with_delegations(request)),
            _ if !request.has_one_price => self.sign_envelope(with_fee(request)),
            _ if request.access_list.0.is_empty() => self.sign_envelope(legacy(request)),
            _ => self.sign_envelope(with_list(request)),
        }
    }

    /// Signs a delegation: the account runs the code of another one, for a chain and at a nonce of the account
    /// (EIP-7702).
    pub fn delegate(&self, to: &Address, chain: u64, nonce: u64) -> SignedAuthorization {
        let authorization = Authorization { chain_id: U256::from(chain), address: EvmAddress::new(to.0), nonce };
        let signature = self.sign_hash(authorization.signature_hash());
        authorization.into_signed(signature)
    }

    fn sign_envelope<T: SignableTransaction<Signature>>(&self, transaction: T) -> Vec<u8>
    where
        Signed<T>: Encodable2718,
    {
        let signature = self.sign_hash(transaction.signature_hash());
        transaction.into_signed(signature).encoded_2718()
    }
}

impl EthereumRequest {
    /// A transaction of an account that did not sign it, for a developers' chain and for simulations. Its signature
    /// belongs to no key and differs for each account, so that each transaction has its own id. It is never zero, also
    /// for the account zero: clients refuse a block with a signature that is zero in part.
    pub fn unsigned(&self, sender: &Address) -> Vec<u8> {
        let r = U256::from_be_slice(&[&[1], &sender.0[..]].concat());
        let nobodys = Signature::new(r, U256::from(1), false);
        match self.has_one_price {
            _ if !self.delegations.is_empty() => with_delegations(self).into_signed(nobodys).encoded_2718(),
            false => with_fee(self).into_signed(nobodys).encoded_2718(),
            true if self.access_list.0.is_empty() => legacy(self).into_signed(nobodys).encoded_2718(),
            true => with_list(self).into_signed(nobodys).encoded_2718(),
        }
    }

    fn kind(&self) -> TxKind {
        self.to.map_or(TxKind::Create, |to| TxKind::Call(EvmAddress::new(to.0)))
    }
}

fn legacy(request: &EthereumRequest) -> TxLegacy {
    TxLegacy {
        chain_id: Some(request.chain),
        nonce: request.nonce,
        gas_price: request.max_fee,
        gas_limit: request.gas_limit,
        to: request.kind(),
        value: U256::from(request.value),
        input: request.data.clone().into(),
    }
}

fn with_list(request: &EthereumRequest) -> TxEip2930 {
    TxEip2930 {
        chain_id: request.chain,
        nonce: request.nonce,
        gas_price: request.max_fee,
        gas_limit: request.gas_limit,
        to: request.kind(),
        value: U256::from(request.value),
        access_list: request.access_list.clone(),
        input: request.data.clone().into(),
    }
}

fn with_fee(request: &EthereumRequest) -> TxEip1559 {
    TxEip1559 {
        chain_id: request.chain,
        nonce: request.nonce,
        gas_limit: request.gas_limit,
        max_fee_per_gas: request.max_fee,
        max_priority_fee_per_gas: request.max_tip,
        to: request.kind(),
        value: U256::from(request.value),
        access_list: request.access_list.clone(),
        input: request.data.clone().into(),
    }
}

fn with_delegations(request: &EthereumRequest) -> TxEip7702 {
    TxEip7702 {
        chain_id: request.chain,
        nonce: request.nonce,
        gas_limit: request.gas_limit,
        max_fee_per_gas: request.max_fee,
        max_priority_fee_per_gas: request.max_tip,
        to: EvmAddress::new(request.to.unwrap_or_default().0),
        value: U256::from(request.value),
        access_list: request.access_list.clone(),
        authorization_list: request.delegations.clone(),
        input: request.data.clone().into(),
    }
}

/// The address of the contract that an account creates with a nonce.
pub fn contract_address(creator: &Address, nonce: u64) -> Address {
    Address(EvmAddress::new(creator.0).create(nonce).0.0)
}
