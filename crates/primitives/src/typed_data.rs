//! Native transactions as typed data (EIP-712), which an Ethereum wallet shows field by field before it signs.
//!
//! The *domain* is name `Walras`, version `1`, the number of the chain, and as `salt` the identity of the network: two
//! networks with one chain number share no signature. The *message* is one flat structure for each kind of operation.
//! It begins with the account, the sequence number and the last height, so that the signature covers the whole
//! [`Body`].
//!
//! | kind | structure |
//! |---|---|
//! | create account | `CreateAccount(address account,uint64 sequence,uint64 until,address registered,bytes32 key)` |
//! | create offer | `CreateOffer(address account,uint64 sequence,uint64 until,uint32 sell,uint32 buy,uint64 amount,string limit)` |
//! | cancel offer | `CancelOffer(address account,uint64 sequence,uint64 until,uint32 sell,uint32 buy,string limit,uint64 offer)` |
//! | pay | `Pay(address account,uint64 sequence,uint64 until,address to,uint32 asset,uint64 amount)` |
//! | issue | `Issue(address account,uint64 sequence,uint64 until,address to,uint32 asset,uint64 amount)` |
//! | burn | `Burn(address account,uint64 sequence,uint64 until,uint32 asset,uint64 amount)` |
//! | stake | `Stake(address account,uint64 sequence,uint64 until,uint64 units,bytes32 key,string host,bytes possession)` |
//! | unstake | `Unstake(address account,uint64 sequence,uint64 until,uint64 units)` |
//! | accuse | `Accuse(address account,uint64 sequence,uint64 until,bytes evidence)` |
//! | withdraw | `Withdraw(address account,uint64 sequence,uint64 until,bytes32 to,uint32 asset,uint64 amount)` |
//! | lane | `Lane(address account,uint64 sequence,uint64 until,bytes post)` |
//!
//! What is done at a venue has structures of its own, see [`venues`]. A limit is the decimal text of its price, which
//! has one form. Evidence is in its wire encoding.

pub mod venues;

use borsh::{BorshDeserialize, BorshSerialize};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SECP256K1};

use crate::hash::keccak256;
use crate::{Address, Body, Digest, Operation, to_hex};

/// The name in the domain of all typed data.
pub const TYPED_DATA_NAME: &str = "Walras";
/// The version in the domain of all typed data.
pub const TYPED_DATA_VERSION: &str = "1";
const DOMAIN: &str = "EIP712Domain(string name,string version,uint256 chainId,bytes32 salt)";

/// A signature of secp256k1 in the compact form (EIP-2098): r, then s with the parity of the point in its first bit.
/// Only a low s is valid, so a signature has only one form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct WalletSignature(pub [u8; 64]);

/// Why bytes are not a signature of a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalletSignatureError {
    /// The length is wrong.
    #[error("a signature of a wallet has 65 bytes (r, s, v), or 64 in the compact form of EIP-2098")]
    Length,
    /// The last byte names no point.
    #[error("the last byte of the signature, v, is not 27, 28, 0 or 1")]
    Parity,
    /// s is the higher of its two possible values.
    #[error("the signature has a high s: sign with the low one (EIP-2)")]
    HighS,
}

impl WalletSignature {
    /// Converts the answer of `eth_signTypedData_v4`: 65 bytes, or 64 in the compact form.
    ///
    /// # Errors
    /// [`WalletSignatureError`] describes the fault in the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<WalletSignature, WalletSignatureError> {
        if let Ok(compact) = bytes.try_into() {
            return Ok(WalletSignature(compact));
        }
        let bytes: [u8; 65] = bytes.try_into().map_err(|_| WalletSignatureError::Length)?;
        let parity = match bytes[64] {
            0 | 27 => 0,
            1 | 28 => 1,
            _ => return Err(WalletSignatureError::Parity),
        };
        let mut compact: [u8; 64] = bytes[..64].try_into().expect("64 bytes");
        if compact[32] >> 7 != 0 || !has_low_s(&compact) {
            return Err(WalletSignatureError::HighS);
        }
        compact[32] |= parity << 7;
        Ok(WalletSignature(compact))
    }

    /// The account whose key signed this hash, if there is one and s is low.
    pub fn recover(&self, hash: &[u8; 32]) -> Option<Address> {
        let mut compact = self.0;
        let parity = compact[32] >> 7;
        compact[32] &= 0x7f;
        if !has_low_s(&compact) {
            return None;
        }
        let signature = RecoverableSignature::from_compact(&compact, RecoveryId::from_u8_masked(parity)).ok()?;
        let key = SECP256K1.recover_ecdsa(Message::from_digest(*hash), &signature).ok()?;
        Some(wallet_address(&key))
    }
}

/// Whether s, the second half, is at most half the order of the curve.
fn has_low_s(compact: &[u8; 64]) -> bool {
    const HALF_ORDER: [u8; 32] = [
        0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d, 0x57,
        0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
    ];
    compact[32..] <= HALF_ORDER[..]
}

fn wallet_address(key: &secp256k1::PublicKey) -> Address {
    let hash = keccak256(&key.serialize_uncompressed()[1..]);
    Address(hash[12..].try_into().expect("twenty bytes"))
}

/// A secp256k1 key in the form of Ethereum wallets.
pub struct WalletKey(secp256k1::SecretKey);

impl WalletKey {
    /// The key of these 32 bytes; `None` for zero and for values not below the order of the curve.
    pub fn from_bytes(bytes: [u8; 32]) -> Option<WalletKey> {
        secp256k1::SecretKey::from_byte_array(bytes).ok().map(WalletKey)
    }

    /// The account that it controls.
    pub fn address(&self) -> Address {
        wallet_address(&self.0.public_key(SECP256K1))
    }

    /// Signs a hash, deterministically and with a low s.
    pub fn sign(&self, hash: &[u8; 32]) -> WalletSignature {
        let (parity, mut compact) =
            SECP256K1.sign_ecdsa_recoverable(Message::from_digest(*hash), &self.0).serialize_compact();
        compact[32] |= (i32::from(parity) as u8 & 1) << 7;
        WalletSignature(compact)
    }
}

/// A value of a field of typed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedValue {
    /// `address`.
    Address(Address),
    /// `uint32`.
    Uint32(u32),
    /// `uint64`.
    Uint64(u64),
    /// `bytes32`.
    Bytes32([u8; 32]),
    /// `bytes`.
    Bytes(Vec<u8>),
    /// `string`.
    Text(String),
    /// Structures of one type, such as `VenueCap[]`.
    List(TypedList),
}

/// A list of structures in a field of typed data. It says its type even where it is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedList {
    /// The name of the structure.
    pub structure: &'static str,
    /// The type of the list: the name, and brackets.
    pub kind: &'static str,
    /// Names and types of its fields.
    pub fields: &'static [(&'static str, &'static str)],
    /// The values of each entry, in order of the fields.
    pub entries: Vec<Vec<TypedValue>>,
}

/// The signed content of a transaction, as a wallet shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedData {
    /// The name of the structure.
    pub primary: &'static str,
    /// Its fields, in order.
    pub fields: Vec<(&'static str, TypedValue)>,
}

impl TypedValue {
    /// The name of its type.
    pub fn kind(&self) -> &'static str {
        match self {
            TypedValue::Address(_) => "address",
            TypedValue::Uint32(_) => "uint32",
            TypedValue::Uint64(_) => "uint64",
            TypedValue::Bytes32(_) => "bytes32",
            TypedValue::Bytes(_) => "bytes",
            TypedValue::Text(_) => "string",
            TypedValue::List(list) => list.kind,
        }
    }

    /// Its text in JSON; of a list that of its entries.
    pub fn text(&self) -> String {
        match self {
            TypedValue::Address(address) => address.to_string(),
            TypedValue::Uint32(number) => number.to_string(),
            TypedValue::Uint64(number) => number.to_string(),
            TypedValue::Bytes32(bytes) => format!("0x{}", to_hex(bytes)),
            TypedValue::Bytes(bytes) => format!("0x{}", to_hex(bytes)),
            TypedValue::Text(text) => text.clone(),
            TypedValue::List(list) => {
                let text = |entry: &Vec<TypedValue>| entry.iter().map(TypedValue::text).collect::<Vec<_>>().join(" ");
                list.entries.iter().map(text).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Its word in the structure.
    fn word(&self) -> [u8; 32] {
        match self {
            TypedValue::Address(address) => left_padded(&address.0),
            TypedValue::Uint32(number) => left_padded(&number.to_be_bytes()),
            TypedValue::Uint64(number) => left_padded(&number.to_be_bytes()),
            TypedValue::Bytes32(bytes) => *bytes,
            TypedValue::Bytes(bytes) => keccak256(bytes),
            TypedValue::Text(text) => keccak256(text.as_bytes()),
            TypedValue::List(list) => {
                let kind = list.type_text();
                let hashes: Vec<[u8; 32]> = list.entries.iter().map(|entry| structure_hash(&kind, entry)).collect();
                keccak256(hashes.as_flattened())
            }
        }
    }
}

impl TypedList {
    fn type_text(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|(name, kind)| format!("{kind} {name}")).collect();
        format!("{}({})", self.structure, fields.join(","))
    }
}

/// The hash of a structure, by its type and the values of its fields.
fn structure_hash<'a>(type_text: &str, values: impl IntoIterator<Item = &'a TypedValue>) -> [u8; 32] {
    let mut words = vec![keccak256(type_text.as_bytes())];
    words.extend(values.into_iter().map(TypedValue::word));
    keccak256(words.as_flattened())
}

fn left_padded(bytes: &[u8]) -> [u8; 32] {
    let mut word = [0; 32];
    word[32 - bytes.len()..].copy_from_slice(bytes);
    word
}

impl TypedData {
    /// The typed data of a transaction's body.
    pub fn of(body: &Body) -> TypedData {
        use TypedValue::{Bytes, Bytes32, Text, Uint32, Uint64};
        let (primary, rest) = match &body.operation {
            Operation::CreateAccount { account, key } => {
                ("CreateAccount", vec![("registered", TypedValue::Address(*account)), ("key", Bytes32(key.0))])
            }
            Operation::CreateOffer { sell, buy, amount, limit } => {
                let pair = [("sell", Uint32(sell.0)), ("buy", Uint32(buy.0))];
                let terms = [("amount", Uint64(*amount)), ("limit", Text(limit.to_string()))];
                ("CreateOffer", pair.into_iter().chain(terms).collect())
            }
            Operation::CancelOffer { sell, buy, limit, offer } => {
                let pair = [("sell", Uint32(sell.0)), ("buy", Uint32(buy.0))];
                let place = [("limit", Text(limit.to_string())), ("offer", Uint64(*offer))];
                ("CancelOffer", pair.into_iter().chain(place).collect())
            }
            Operation::Pay { to, asset, amount } => {
                ("Pay", vec![("to", TypedValue::Address(*to)), ("asset", Uint32(asset.0)), ("amount", Uint64(*amount))])
            }
            Operation::Issue { to, asset, amount } => {
                let what = [("asset", Uint32(asset.0)), ("amount", Uint64(*amount))];
                ("Issue", [("to", TypedValue::Address(*to))].into_iter().chain(what).collect())
            }
            Operation::Burn { asset, amount } => {
                ("Burn", vec![("asset", Uint32(asset.0)), ("amount", Uint64(*amount))])
            }
            Operation::Stake(stake) => {
                let validator = [("units", Uint64(stake.units)), ("key", Bytes32(stake.key.0))];
                let place = [("host", Text(stake.address.clone())), ("possession", Bytes(stake.possession.0.to_vec()))];
                ("Stake", validator.into_iter().chain(place).collect())
            }
            Operation::Unstake { units } => ("Unstake", vec![("units", Uint64(*units))]),
            Operation::Accuse(evidence) => {
                let bytes = borsh::to_vec(evidence).expect("writing to memory cannot fail");
                ("Accuse", vec![("evidence", Bytes(bytes))])
            }
            Operation::Withdraw { to, asset, amount } => {
                ("Withdraw", vec![("to", Bytes32(to.0)), ("asset", Uint32(asset.0)), ("amount", Uint64(*amount))])
            }
            Operation::Lane(post) => ("Lane", vec![("post", Bytes(post.to_vec()))]),
            Operation::Venue(operation) => venues::structure(operation),
        };
        let mut fields = vec![
            ("account", TypedValue::Address(body.account)),
            ("sequence", Uint64(body.sequence)),
            ("until", Uint64(body.until)),
        ];
        fields.extend::<Vec<(&'static str, TypedValue)>>(rest);
        TypedData { primary, fields }
    }

    /// Its type as it is hashed: name, types and names of the fields, and the types of its lists by name.
    pub fn type_text(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|(name, value)| format!("{} {name}", value.kind())).collect();
        let mut lists: Vec<String> = self.lists().map(TypedList::type_text).collect();
        lists.sort();
        format!("{}({}){}", self.primary, fields.join(","), lists.concat())
    }

    /// The lists among its fields.
    pub fn lists(&self) -> impl Iterator<Item = &TypedList> {
        self.fields.iter().filter_map(|(_, value)| match value {
            TypedValue::List(list) => Some(list),
            _ => None,
        })
    }

    /// The hash that the key signs, for a chain and a network.
    pub fn hash(&self, chain: u64, network: &Digest) -> [u8; 32] {
        let message = structure_hash(&self.type_text(), self.fields.iter().map(|(_, value)| value));
        let domain = [
            keccak256(DOMAIN.as_bytes()),
            keccak256(TYPED_DATA_NAME.as_bytes()),
            keccak256(TYPED_DATA_VERSION.as_bytes()),
            left_padded(&chain.to_be_bytes()),
            network.0,
        ];
        keccak256(&[&[0x19, 0x01][..], &keccak256(domain.as_flattened()), &message].concat())
    }
}
