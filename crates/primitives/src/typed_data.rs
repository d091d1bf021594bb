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
//! | create offer | `CreateOffer(address account,uint64 sequence,uint64 until,uint32 sell,uint32 buy,uint64 amount,string limit,string life,bytes16 client)` |
//! | cancel | `Cancel(address account,uint64 sequence,uint64 until,Offer[] offers)Offer(uint32 sell,uint32 buy,string limit,uint64 offer)` |
//! | replace | `Replace(address account,uint64 sequence,uint64 until,uint32 sell,uint32 buy,string oldLimit,uint64 offer,uint64 remains,uint64 amount,string limit,string life,bytes16 client)` |
//! | exact order | `Exact(address account,uint64 sequence,uint64 until,uint32 sell,uint32 buy,string side,uint64 units,uint64 bound,bytes16 client)` |
//! | pay | `Pay(address account,uint64 sequence,uint64 until,address to,uint32 asset,uint64 amount)` |
//! | issue | `Issue(address account,uint64 sequence,uint64 until,address to,uint32 asset,uint64 amount)` |
//! | burn | `Burn(address account,uint64 sequence,uint64 until,uint32 asset,uint64 amount)` |
//! | stake | `Stake(address account,uint64 sequence,uint64 until,uint64 units,bytes32 key,string host,bytes possession)` |
//! | unstake | `Unstake(address account,uint64 sequence,uint64 until,uint64 units)` |
//! | accuse | `Accuse(address account,uint64 sequence,uint64 until,bytes evidence)` |
//! | withdraw | `Withdraw(address account,uint64 sequence,uint64 until,bytes32 to,uint32 asset,uint64 amount)` |
//! | open a pool | `OpenPool(address account,uint64 sequence,uint64 until,uint32 a,uint32 b,uint8 class,uint64 x,uint64 y)` |
//! | provide | `Provide(address account,uint64 sequence,uint64 until,uint32 a,uint32 b,uint8 class,uint64 shares,uint64 mostA,uint64 mostB)` |
//! | leave | `Leave(address account,uint64 sequence,uint64 until,uint32 a,uint32 b,uint8 class,uint64 shares,uint64 leastA,uint64 leastB)` |
//! | authorise a session key | `AuthorizeSession(address account,uint64 sequence,uint64 until,uint32 slot,bytes32 key,string scope,uint64 ends,uint64 alive,SessionCap[] caps,bytes possession)SessionCap(uint32 asset,uint64 units)` |
//! | revoke a session key | `RevokeSession(address account,uint64 sequence,uint64 until,uint32 slot)` |
//! | keep a session alive | `SessionAlive(address account,uint64 sequence,uint64 until,uint32 slot,uint64 through)` |
//! | lane | `Lane(address account,uint64 sequence,uint64 until,bytes post)` |
//! | present | `Present(address account,uint64 sequence,uint64 until,uint64 epoch)` |
//!
//! What is done at a venue has structures of its own, see [`venues`]. A limit is the decimal text of its price, which
//! has one form; a life is the text of [`crate::Life`]. Evidence is in its wire encoding.

pub mod venues;

use crate::hash::keccak256;
use crate::{
    Address, Body, Digest, OfferPlace, OfferReplacement, Operation, PoolOperation, SessionCap, SessionOperation,
    SessionTerms, to_hex,
};

/// The name in the domain of all typed data.
pub const TYPED_DATA_NAME: &str = "Walras";
/// The version in the domain of all typed data.
pub const TYPED_DATA_VERSION: &str = "1";
const DOMAIN: &str = "EIP712Domain(string name,string version,uint256 chainId,bytes32 salt)";

/// A value of a field of typed data.
#[derive(Clone, Debug, PartialEq, Eq)]
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
            TypedValue::Uint8(_) => "uint8",
            TypedValue::Uint32(_) => "uint32",
            TypedValue::Uint64(_) => "uint64",
            TypedValue::Bytes16(_) => "bytes16",
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
    fn type_text(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|(name, kind)| format!("{kind} {name}")).collect();
        format!("{}({})", self.structure, fields.join(","))
    }
}

/// The offers that a cancel names.
fn named(places: &[OfferPlace]) -> TypedList {
    use TypedValue::{Text, Uint32, Uint64};
    let entry = |OfferPlace { sell, buy, limit, offer }: &OfferPlace| {
        vec![Uint32(sell.0), Uint32(buy.0), Text(limit.to_string()), Uint64(*offer)]
    };
    let fields = &[("sell", "uint32"), ("buy", "uint32"), ("limit", "string"), ("offer", "uint64")];
    TypedList { structure: "Offer", kind: "Offer[]", fields, entries: places.iter().map(entry).collect() }
}

/// The structure of an operation on a pool, and its fields after those that all have.
fn pool_structure(operation: &PoolOperation) -> (&'static str, Vec<(&'static str, TypedValue)>) {
    use TypedValue::{Uint32, Uint64};
    let pool = operation.pool();
    let key = [("a", Uint32(pool.a.0)), ("b", Uint32(pool.b.0)), ("class", TypedValue::Uint8(pool.class))];
    let (primary, rest) = match *operation {
        PoolOperation::Open { x, y, .. } => ("OpenPool", vec![("x", x), ("y", y)]),
        PoolOperation::Provide { shares, most_a, most_b, .. } => {
            ("Provide", vec![("shares", shares), ("mostA", most_a), ("mostB", most_b)])
        }
        PoolOperation::Leave { shares, least_a, least_b, .. } => {
            ("Leave", vec![("shares", shares), ("leastA", least_a), ("leastB", least_b)])
        }
    };
    (primary, key.into_iter().chain(rest.into_iter().map(|(name, units)| (name, Uint64(units)))).collect())
}

/// The structure of an operation on session keys, and its fields after those that all have.
fn session_structure(operation: &SessionOperation) -> (&'static str, Vec<(&'static str, TypedValue)>) {
    use TypedValue::{Bytes, Bytes32, List, Text, Uint32, Uint64};
    match operation {
        SessionOperation::Authorize { terms, possession } => {
            let SessionTerms { slot, key, scope, until, alive, caps } = terms;
            let entries =
                caps.iter().map(|SessionCap { asset, units }| vec![Uint32(asset.0), Uint64(*units)]).collect();
            let fields = &[("asset", "uint32"), ("units", "uint64")];
            let caps = TypedList { structure: "SessionCap", kind: "SessionCap[]", fields, entries };
            let who = [("slot", Uint32(*slot)), ("key", Bytes32(key.0)), ("scope", Text(scope.name().into()))];
            let when = [("ends", Uint64(*until)), ("alive", Uint64(*alive))];
            let rest = [("caps", List(caps)), ("possession", Bytes(possession.0.to_vec()))];
            ("AuthorizeSession", who.into_iter().chain(when).chain(rest).collect())
        }
        SessionOperation::Revoke { slot } => ("RevokeSession", vec![("slot", Uint32(*slot))]),
        SessionOperation::Alive { slot, through } => {
            ("SessionAlive", vec![("slot", Uint32(*slot)), ("through", Uint64(*through))])
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
        use TypedValue::{Bytes, Bytes16, Bytes32, Text, Uint32, Uint64};
        let (primary, rest) = match &body.operation {
            Operation::CreateAccount { account, key } => {
                ("CreateAccount", vec![("registered", TypedValue::Address(*account)), ("key", Bytes32(key.0))])
            }
            Operation::CreateOffer { sell, buy, amount, limit, life, client } => {
                let pair = [("sell", Uint32(sell.0)), ("buy", Uint32(buy.0))];
                let terms = [("amount", Uint64(*amount)), ("limit", Text(limit.to_string()))];
                let more = [("life", Text(life.to_string())), ("client", Bytes16(client.0))];
                ("CreateOffer", pair.into_iter().chain(terms).chain(more).collect())
            }
            Operation::Cancel(places) => ("Cancel", vec![("offers", TypedValue::List(named(places)))]),
            Operation::Replace(replace) => {
                let OfferReplacement { old, remains, amount, limit, life, client } = **replace;
                let pair = [("sell", Uint32(old.sell.0)), ("buy", Uint32(old.buy.0))];
                let place = [("oldLimit", Text(old.limit.to_string())), ("offer", Uint64(old.offer))];
                let sizes = [("remains", Uint64(remains)), ("amount", Uint64(amount))];
                let terms = [("limit", Text(limit.to_string())), ("life", Text(life.to_string()))];
                let fields = pair.into_iter().chain(place).chain(sizes).chain(terms);
                ("Replace", fields.chain([("client", Bytes16(client.0))]).collect())
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
            Operation::Present { epoch } => ("Present", vec![("epoch", Uint64(*epoch))]),
            Operation::Lane(post) => ("Lane", vec![("post", Bytes(post.to_vec()))]),
            Operation::Venue(operation) => venues::structure(operation),
            Operation::Pool(operation) => pool_structure(operation),
            Operation::Session(operation) => session_structure(operation),
            Operation::Exact { sell, buy, side, units, bound, client } => {
                let what = [("sell", Uint32(sell.0)), ("buy", Uint32(buy.0)), ("side", Text(side.name().into()))];
                let terms = [("units", Uint64(*units)), ("bound", Uint64(*bound)), ("client", Bytes16(client.0))];
                ("Exact", what.into_iter().chain(terms).collect())
            }
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
