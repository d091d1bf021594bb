//! Values of an operation's fields, read from its encoding and written to it.

use borsh::io::{Error, ErrorKind, Result};
use borsh::{BorshDeserialize, BorshSerialize};

use super::{FieldKind, OperationField};
use crate::{Address, AssetId, ClientId, Life, Price, PublicKey, Signature};

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// [`FieldKind::Address`].
    Address(Address),
    /// [`FieldKind::Key`].
    Key(PublicKey),
    /// [`FieldKind::Signature`].
    Signature(Signature),
    /// [`FieldKind::Asset`].
    Asset(AssetId),
    /// [`FieldKind::Units`], [`FieldKind::Long`] and [`FieldKind::Short`].
    Number(u64),
    /// [`FieldKind::Price`].
    Price(Price),
    /// [`FieldKind::Life`].
    Life(Life),
    /// [`FieldKind::Client`].
    Client(ClientId),
    /// [`FieldKind::Choice`].
    Choice(&'static str),
    /// [`FieldKind::Text`].
    Text(String),
    /// [`FieldKind::Bytes`].
    Bytes(Vec<u8>),
    /// [`FieldKind::List`]: the values of each entry.
    List(Vec<Vec<FieldValue>>),
    /// [`FieldKind::Group`].
    Group(Vec<FieldValue>),
}

/// The values of these fields, which are all of the bytes.
pub(super) fn read(fields: &[OperationField], bytes: &mut &[u8]) -> Result<Vec<FieldValue>> {
    let values = read_some(fields, bytes)?;
    if bytes.is_empty() { Ok(values) } else { Err(ErrorKind::InvalidData.into()) }
}

fn read_some(fields: &[OperationField], bytes: &mut &[u8]) -> Result<Vec<FieldValue>> {
    fields.iter().map(|field| read_one(field.kind, bytes)).collect()
}

fn read_one(kind: FieldKind, bytes: &mut &[u8]) -> Result<FieldValue> {
    Ok(match kind {
        FieldKind::Address => FieldValue::Address(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Key => FieldValue::Key(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Signature => FieldValue::Signature(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Asset => FieldValue::Asset(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Units | FieldKind::Long => FieldValue::Number(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Short(1) => FieldValue::Number(u8::deserialize(bytes)?.into()),
        FieldKind::Short(2) => FieldValue::Number(u16::deserialize(bytes)?.into()),
        FieldKind::Short(_) => FieldValue::Number(u32::deserialize(bytes)?.into()),
        FieldKind::Price => FieldValue::Price(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Life => FieldValue::Life(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Client => FieldValue::Client(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Choice(texts) => {
            let at = usize::from(u8::deserialize(bytes)?);
            FieldValue::Choice(texts.get(at).ok_or_else(|| Error::from(ErrorKind::InvalidData))?)
        }
        FieldKind::Text => FieldValue::Text(BorshDeserialize::deserialize(bytes)?),
        FieldKind::Bytes => FieldValue::Bytes(BorshDeserialize::deserialize(bytes)?),
        FieldKind::List(list) => {
            let count = u32::deserialize(bytes)?;
            FieldValue::List((0..count).map(|_| read_some(list.fields, bytes)).collect::<Result<_>>()?)
        }
        FieldKind::Group(fields) => FieldValue::Group(read_some(fields, bytes)?),
        // They are in no encoding, so no row that has them is read from one.
        FieldKind::Whole | FieldKind::Digest => return Err(ErrorKind::InvalidData.into()),
    })
}

/// Appends the encoding of the values of these fields.
pub(super) fn write(fields: &[OperationField], values: &[FieldValue], bytes: &mut Vec<u8>) -> Result<()> {
    let pairs = fields.iter().zip(values);
    pairs.into_iter().try_for_each(|(field, value)| write_one(field.kind, value, bytes))
}

fn write_one(kind: FieldKind, value: &FieldValue, bytes: &mut Vec<u8>) -> Result<()> {
    match (kind, value) {
        (_, FieldValue::Address(address)) => address.serialize(bytes),
        (_, FieldValue::Key(key)) => key.serialize(bytes),
        (_, FieldValue::Signature(signature)) => signature.serialize(bytes),
        (_, FieldValue::Asset(asset)) => asset.serialize(bytes),
        (FieldKind::Short(width), FieldValue::Number(number)) => {
            bytes.extend_from_slice(&number.to_le_bytes()[..width]);
            Ok(())
        }
        (_, FieldValue::Number(number)) => number.serialize(bytes),
        (_, FieldValue::Price(price)) => price.serialize(bytes),
        (_, FieldValue::Life(life)) => life.serialize(bytes),
        (_, FieldValue::Client(client)) => client.serialize(bytes),
        (FieldKind::Choice(texts), FieldValue::Choice(text)) => {
            let at = texts.iter().position(|one| one == text).ok_or_else(|| Error::from(ErrorKind::InvalidData))?;
            (at as u8).serialize(bytes)
        }
        (_, FieldValue::Text(text)) => text.serialize(bytes),
        (_, FieldValue::Bytes(given)) => given.serialize(bytes),
        (FieldKind::List(list), FieldValue::List(entries)) => {
            (entries.len() as u32).serialize(bytes)?;
            entries.iter().try_for_each(|entry| write(list.fields, entry, bytes))
        }
        (FieldKind::Group(fields), FieldValue::Group(values)) => write(fields, values, bytes),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}
