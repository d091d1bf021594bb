//! The table of native operations: what each one is called, what its fields are, and what they mean.
//!
//! An operation is declared twice and nowhere else: as a variant of [`Operation`], whose encoding is the wire's, and as
//! an [`OperationRow`] here. A test holds that both agree. From the rows come typed data, the bodies of JSON both ways
//! with their schema, the tables of `docs/specification.md`, and the sources of the clients in Python and TypeScript.
//! What an operation does, and its words for people, stand where they are decided: in `ledger::footprint`, in its
//! effects, and in `doors`.

mod native;
mod since;
mod value;
mod venues;

use crate::venue::VenueOperation;

use crate::transaction::OperationKind;
use crate::{Operation, Reference, SESSION_WEIGHT};

pub use native::NATIVE;
pub use value::FieldValue;
pub use venues::VENUES;

/// An operation: its names, its fields in the order in which they are encoded, shown and signed, and its price.
#[derive(Debug)]
pub struct OperationRow {
    /// The bytes that its encoding begins with.
    pub code: &'static [u8],
    /// Its `type` in JSON.
    pub name: &'static str,
    /// Its `action` in JSON, at a venue.
    pub action: Option<&'static str>,
    /// The name of its structure of typed data.
    pub structure: &'static str,
    /// What it does, as a sentence.
    pub about: &'static str,
    /// The fees that it costs at least; [`Operation::weight`] adds what its size and its end cost.
    pub fees: u64,
    /// Who signs it.
    pub signer: Signers,
    /// Which weight of an account with a policy signs it.
    pub needs: Needs,
    /// In which form it is asked for.
    pub asked: AskedAs,
    /// Its fields.
    pub fields: &'static [OperationField],
}

/// Whose keys sign an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signers {
    /// The account's own key.
    Owner,
    /// The account's own key, and its session keys of every scope.
    Cancelling,
    /// The account's own key, and its session keys of scope `trade`.
    Trading,
    /// The account's own key, and its session keys of scope `duty`.
    Duty,
    /// The account's own key; if it freezes, its session keys of scope `control`, too.
    Controlling,
    /// The key of the account's validator; of what has a number the account's own key and its session keys of scope
    /// `duty`, too.
    Validator,
}

/// Which weight of a policy an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// That which spends.
    Move,
    /// That which decides who may spend, and what exists.
    Govern,
}

/// In which form an operation is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedAs {
    /// By its fields.
    Fields,
    /// As bytes: its fields are a summary.
    Bytes {
        /// What it is, with its article.
        what: &'static str,
        /// What it has in its encoding.
        layout: &'static str,
    },
    /// Never: a node posts it by itself.
    Never,
}

/// A field of an operation.
#[derive(Debug)]
pub struct OperationField {
    /// Its name in JSON; empty if JSON has it not.
    pub name: &'static str,
    /// Its name in typed data; empty if typed data has it not.
    pub typed: &'static str,
    /// Its type.
    pub kind: FieldKind,
    /// What it is, as a sentence.
    pub about: &'static str,
}

/// The type of a field: how it is encoded, shown and signed.
#[derive(Clone, Copy, Debug)]
pub enum FieldKind {
    /// 20 bytes, as hexadecimal.
    Address,
    /// 32 bytes of a public key or of a digest, as hexadecimal.
    Key,
    /// 64 bytes of a signature, as hexadecimal.
    Signature,
    /// A `u32`; a symbol in JSON.
    Asset,
    /// A `u64` of units or shares; decimal text in JSON.
    Units,
    /// Another `u64`, such as a height; decimal text in JSON, where a number is taken too.
    Long,
    /// A number of so many bytes, at most 4; a number in JSON, where one of a single byte may be missing for 0.
    Short(usize),
    /// A price.
    Price,
    /// How long an offer rests; missing in JSON, it `rests`.
    Life,
    /// 16 bytes of a client's own name, as hexadecimal; missing for none.
    Client,
    /// A byte that is the index of one of these texts.
    Choice(&'static [&'static str]),
    /// A `u32` length, and as many bytes of text.
    Text,
    /// A `u32` length, and as many bytes; hexadecimal in JSON.
    Bytes,
    /// A `u32` count, and as many structures.
    List(&'static FieldList),
    /// Fields that JSON has as an object, and bytes and typed data without any bounds.
    Group(&'static [OperationField]),
    /// In typed data alone: the operation's bytes after its code.
    Whole,
    /// In typed data alone: the Keccak hash of the operation's bytes, with its code at the venue.
    Digest,
}

/// The structures of a list.
#[derive(Debug)]
pub struct FieldList {
    /// The name of an entry's type in programs.
    pub name: &'static str,
    /// The name of the structure in typed data.
    pub structure: &'static str,
    /// The type of the list in typed data: the name, and brackets.
    pub kind: &'static str,
    /// What an entry is, as a sentence.
    pub about: &'static str,
    /// Whether entries that are asked for are put in order of their first field.
    pub is_sorted: bool,
    /// The fields of an entry.
    pub fields: &'static [OperationField],
}

const fn field(name: &'static str, kind: FieldKind, about: &'static str) -> OperationField {
    OperationField { name, typed: name, kind, about }
}

impl OperationField {
    /// With another name in typed data.
    const fn typed(self, typed: &'static str) -> OperationField {
        OperationField { typed, ..self }
    }
}

impl OperationField {
    /// Whether typed data has it, itself or by its parts.
    pub const fn is_signed(&self) -> bool {
        !self.typed.is_empty()
    }
}

impl FieldKind {
    /// Whether a body that is asked for may leave it out.
    pub const fn is_optional(self) -> bool {
        matches!(self, FieldKind::Life | FieldKind::Client | FieldKind::Short(1))
    }

    /// Its name in typed data; a group has none.
    pub const fn typed(self) -> &'static str {
        match self {
            FieldKind::Address => "address",
            FieldKind::Key | FieldKind::Digest => "bytes32",
            FieldKind::Signature | FieldKind::Bytes | FieldKind::Whole => "bytes",
            FieldKind::Short(1) => "uint8",
            FieldKind::Asset | FieldKind::Short(_) => "uint32",
            FieldKind::Units | FieldKind::Long => "uint64",
            FieldKind::Price | FieldKind::Life | FieldKind::Choice(_) | FieldKind::Text => "string",
            FieldKind::Client => "bytes16",
            FieldKind::List(list) => list.kind,
            FieldKind::Group(_) => "",
        }
    }
}

/// The rows of all operations.
pub fn all() -> impl Iterator<Item = &'static OperationRow> {
    NATIVE.iter().chain(VENUES)
}

/// The row of a `type` of JSON, and of an `action` at a venue.
pub fn named(name: &str, action: Option<&str>) -> Option<&'static OperationRow> {
    all().find(|row| row.name == name && row.action == action)
}

impl OperationRow {
    /// Its name in lists: the `type`, or `venue` and the action.
    pub fn title(&self) -> String {
        [self.name].into_iter().chain(self.action).collect::<Vec<_>>().join(" ").replace('_', " ")
    }
}

impl Operation {
    /// What it is for, if it says so.
    pub fn reference(&self) -> Option<&Reference> {
        match self {
            Operation::PayReferenced { reference, .. }
            | Operation::IssueReferenced { reference, .. }
            | Operation::SetHolder { reference, .. } => Some(reference),
            Operation::Recover(recovery) => Some(&recovery.reference),
            _ => None,
        }
    }

    /// Its `type` in JSON.
    pub fn name(&self) -> &'static str {
        self.row().name
    }

    /// Its row.
    pub fn row(&self) -> &'static OperationRow {
        let kind = OperationKind::from(self) as usize;
        match &NATIVE[FIRST[kind]] {
            row if kind != usize::from(VENUE) && row.code.len() == 1 => row,
            _ => self.row_within(),
        }
    }

    /// The row of an operation of a kind that has several.
    fn row_within(&self) -> &'static OperationRow {
        let mut code = [0; 2];
        // Only the first bytes are asked for: the encoding ends where they are full.
        drop(borsh::BorshSerialize::serialize(self, &mut &mut code[..]));
        let rows = if code[0] == VENUE { VENUES } else { NATIVE };
        let at = rows.partition_point(|row| row.code <= &code[..row.code.len()]);
        &rows[at - 1]
    }

    /// The values of its row's fields, but for what typed data alone has.
    pub fn values(&self) -> Vec<FieldValue> {
        if let Some(summary) = self.summary() {
            return summary;
        }
        let (row, bytes) = (self.row(), borsh::to_vec(self).expect("writing to memory cannot fail"));
        value::read(row.fields, &mut &bytes[row.code.len()..]).expect("the row describes the encoding")
    }

    /// What is shown of an operation that is asked for as bytes.
    fn summary(&self) -> Option<Vec<FieldValue>> {
        let reported = |report: &dyn crate::venue::SignedReport| {
            let report = report.fill();
            let place = [report.venue.into(), report.incarnation.into(), report.index].map(FieldValue::Number);
            place.into_iter().chain([FieldValue::Address(report.account)]).collect()
        };
        match self {
            Operation::Accuse(evidence) => {
                let numbers = [evidence.epoch, evidence.member.into(), evidence.height].map(FieldValue::Number);
                Some(numbers.into_iter().chain([FieldValue::Choice(evidence.contradiction.name())]).collect())
            }
            Operation::Venue(operation) => match &**operation {
                VenueOperation::Settle(settle) => {
                    let (venue, incarnation) = (settle.venue.into(), settle.incarnation.into());
                    Some([venue, incarnation, settle.from, settle.fills.len() as u64].map(FieldValue::Number).into())
                }
                VenueOperation::Accuse(evidence) => Some(reported(&evidence.report)),
                VenueOperation::Claim(claim) => Some(reported(&claim.report)),
                VenueOperation::AccuseStep(evidence) => Some(reported(&evidence.report)),
                VenueOperation::ClaimStep(claim) => Some(reported(&claim.report)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The operation of a row with these values, in the order of its fields.
    ///
    /// # Errors
    /// The operation's encoding refuses them.
    pub fn of_values(row: &OperationRow, values: &[FieldValue]) -> Result<Operation, borsh::io::Error> {
        let mut bytes = row.code.to_vec();
        value::write(row.fields, values, &mut bytes)?;
        borsh::from_slice(&bytes)
    }
}

/// The code that all operations at venues begin with.
const VENUE: u8 = 11;

/// The place in [`NATIVE`] of the first row of each kind; those at venues have none. Every transaction's weight is
/// asked for several times in a block, so it takes no search.
const FIRST: [usize; OperationKind::Sealed as usize + 1] = {
    let (mut first, mut at) = ([0; OperationKind::Sealed as usize + 1], NATIVE.len());
    while at > 0 {
        at -= 1;
        first[NATIVE[at].code[0] as usize] = at;
    }
    first
};
