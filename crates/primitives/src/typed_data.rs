//! Native transactions as typed data (EIP-712), which an Ethereum wallet shows field by field before it signs.
//!
//! The *domain* is name `Walras`, version `1`, the number of the chain, and as `salt` the identity of the network: two
//! networks with one chain number share no signature. The *message* is one flat structure for each kind of operation.
//! It begins with the account, the sequence number and the last height, so that the signature covers the whole
//! [`Body`].
//!
//! The structures follow from the table of operations ([`crate::operations`]); `docs/specification.md` lists them. A
//! limit is the decimal text of its price, which has one form; a life is the text of [`crate::Life`]. Evidence is in
//! its wire encoding. A *digest* is the Keccak hash of an operation at a venue: settles have up to a megabyte, and
//! evidence has reports, orders and paths that no person reads. What they are about is shown.

use crate::hash::keccak256;
use crate::keys::{ChangedBy, KeySignatures, KeysChange, RecoverKeys};
use crate::operations::{FieldKind, FieldList, FieldValue, OperationField};
use crate::{Address, Body, Digest, Operation, to_hex};

/// The name in the domain of all typed data.
pub const TYPED_DATA_NAME: &str = "Walras";
/// The version in the domain of all typed data.
pub const TYPED_DATA_VERSION: &str = "1";
const DOMAIN: &str = "EIP712Domain(string name,string version,uint256 chainId,bytes32 salt)";

/// A value of a field of typed data.
#[derive(Clone, Debug)]
pub enum TypedValue {
    /// `address`.
    Address(Address),
    /// `uint8`.
    Uint8(u8),
    /// `uint32`.
    Uint32(u32),
    /// `uint64`.
    Uint64(u64),
    /// `bytes16`.
    Bytes16([u8; 16]),
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
#[derive(Clone, Debug)]
pub struct TypedList {
    /// What it lists.
    pub of: &'static FieldList,
    /// The values of each entry, in order of the fields.
    pub entries: Vec<Vec<TypedValue>>,
}

/// The signed content of a transaction, as a wallet shows it.
#[derive(Clone, Debug)]
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
            TypedValue::Uint8(_) => "uint8",
            TypedValue::Uint32(_) => "uint32",
            TypedValue::Uint64(_) => "uint64",
            TypedValue::Bytes16(_) => "bytes16",
            TypedValue::Bytes32(_) => "bytes32",
            TypedValue::Bytes(_) => "bytes",
            TypedValue::Text(_) => "string",
            TypedValue::List(list) => list.of.kind,
        }
    }

    /// Its text in JSON; of a list that of its entries.
    pub fn text(&self) -> String {
        match self {
            TypedValue::Address(address) => address.to_string(),
            TypedValue::Uint8(number) => number.to_string(),
            TypedValue::Uint32(number) => number.to_string(),
            TypedValue::Uint64(number) => number.to_string(),
            TypedValue::Bytes16(bytes) => format!("0x{}", to_hex(bytes)),
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
            TypedValue::Uint8(number) => left_padded(&[*number]),
            TypedValue::Uint32(number) => left_padded(&number.to_be_bytes()),
            TypedValue::Uint64(number) => left_padded(&number.to_be_bytes()),
            TypedValue::Bytes16(bytes) => std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0)),
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
    /// Names and types of its structure's fields.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.of.fields.iter().map(|field| (field.typed, field.kind.typed()))
    }

    fn type_text(&self) -> String {
        let fields: Vec<String> = self.fields().map(|(name, kind)| format!("{kind} {name}")).collect();
        format!("{}({})", self.of.structure, fields.join(","))
    }
}

/// The fields of an operation's structure, those of groups one by one.
fn typed_fields(
    fields: &'static [OperationField],
    values: Vec<FieldValue>,
    operation: &Operation,
) -> Vec<(&'static str, TypedValue)> {
    let mut values = values.into_iter();
    let mut typed = Vec::new();
    for field in fields {
        let value = match field.kind {
            FieldKind::Whole => TypedValue::Bytes(encoding(operation)[operation.row().code.len()..].to_vec()),
            FieldKind::Digest => TypedValue::Bytes32(keccak256(&encoding(operation)[1..])),
            FieldKind::Group(inner) => {
                let Some(FieldValue::Group(values)) = values.next() else { unreachable!("a group has values") };
                typed.extend(typed_fields(inner, values, operation));
                continue;
            }
            kind => typed_value(kind, values.next().expect("a value for each field"), operation),
        };
        if !field.typed.is_empty() {
            typed.push((field.typed, value));
        }
    }
    typed
}

fn encoding(operation: &Operation) -> Vec<u8> {
    borsh::to_vec(operation).expect("writing to memory cannot fail")
}

fn typed_value(kind: FieldKind, value: FieldValue, operation: &Operation) -> TypedValue {
    match (kind, value) {
        (_, FieldValue::Address(address)) => TypedValue::Address(address),
        (_, FieldValue::Key(key)) => TypedValue::Bytes32(key.0),
        (_, FieldValue::Signature(signature)) => TypedValue::Bytes(signature.0.to_vec()),
        (_, FieldValue::Asset(asset)) => TypedValue::Uint32(asset.0),
        (FieldKind::Short(1), FieldValue::Number(number)) => TypedValue::Uint8(number as u8),
        (FieldKind::Short(_), FieldValue::Number(number)) => TypedValue::Uint32(number.try_into().unwrap_or(u32::MAX)),
        (_, FieldValue::Number(number)) => TypedValue::Uint64(number),
        (_, FieldValue::Price(price)) => TypedValue::Text(price.to_string()),
        (_, FieldValue::Life(life)) => TypedValue::Text(life.to_string()),
        (_, FieldValue::Client(client)) => TypedValue::Bytes16(client.0),
        (_, FieldValue::Choice(text)) => TypedValue::Text(text.into()),
        (_, FieldValue::Text(text)) => TypedValue::Text(text),
        (_, FieldValue::Bytes(bytes)) => TypedValue::Bytes(bytes),
        (FieldKind::List(of), FieldValue::List(entries)) => {
            let entry =
                |values| typed_fields(of.fields, values, operation).into_iter().map(|(_, value)| value).collect();
            TypedValue::List(TypedList { of, entries: entries.into_iter().map(entry).collect() })
        }
        (_, FieldValue::List(_) | FieldValue::Group(_)) => {
            unreachable!("a list has the kind of one, and groups are dissolved")
        }
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
        let row = body.operation.row();
        let mut fields = vec![
            ("account", TypedValue::Address(body.account)),
            ("sequence", TypedValue::Uint64(body.sequence)),
            ("until", TypedValue::Uint64(body.until)),
        ];
        fields.extend(typed_fields(row.fields, body.operation.values(), &body.operation));
        TypedData { primary: row.structure, fields }
    }

    /// The typed data of a change of keys, for the wallets that agree to it: the fields of the operation without its
    /// signatures.
    pub fn of_change(change: &KeysChange, by: ChangedBy) -> TypedData {
        let unsigned = RecoverKeys { change: change.clone(), signatures: KeySignatures::default() };
        let operation = Operation::RecoverKeys(Box::new(unsigned));
        let fields = typed_fields(operation.row().fields, operation.values(), &operation);
        let primary = if by == ChangedBy::Signers { "KeysConsent" } else { "RecoveryConsent" };
        let agreed = |name: &str| !["keySignatures", "walletSignatures"].contains(&name);
        TypedData { primary, fields: fields.into_iter().filter(|(name, _)| agreed(name)).collect() }
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
        self.hash_under(TYPED_DATA_NAME, chain, network)
    }

    /// The same in a domain of this name and salt.
    pub(crate) fn hash_under(&self, name: &str, chain: u64, salt: &Digest) -> [u8; 32] {
        let message = structure_hash(&self.type_text(), self.fields.iter().map(|(_, value)| value));
        let domain = [
            keccak256(DOMAIN.as_bytes()),
            keccak256(name.as_bytes()),
            keccak256(TYPED_DATA_VERSION.as_bytes()),
            left_padded(&chain.to_be_bytes()),
            salt.0,
        ];
        keccak256(&[&[0x19, 0x01][..], &keccak256(domain.as_flattened()), &message].concat())
    }
}
