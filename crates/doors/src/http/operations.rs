//! Operations that a client asks for: the same bodies as in answers, read with nothing left over, for whoever misspells
//! a field would sign something else.

use api::OperationBody;
use primitives::operations::{AskedAs, FieldKind, FieldList, FieldValue, OperationField};
use primitives::{ClientId, Life, Operation, Signature};
use serde_json::{Map, Value as Json};

use super::unsigned::{SIGNATURE, bytes_of_hex};
use super::{Api, number, parse};
use crate::kit::Failure;

/// What is left of a body, and where it stands in it.
struct Given {
    place: String,
    fields: Map<String, Json>,
}

impl Given {
    fn of(place: String, value: Json) -> Result<Given, Failure> {
        match value {
            Json::Object(fields) => Ok(Given { place, fields }),
            other => Err(Failure::malformed(format!("{place}: {other} is not an object"))),
        }
    }

    /// The place of a field: within the operation itself it is only the field's name.
    fn inner(&self, name: &str) -> String {
        self.place.strip_prefix("operation").map_or(name.into(), |rest| format!("{rest}.{name}")[1..].into())
    }

    /// # Errors
    /// Something was given that no field has.
    fn end(&self) -> Result<(), Failure> {
        match self.fields.keys().next() {
            Some(name) => Err(Failure::malformed(format!("{}.{name}: there is no such field", self.place))),
            None => Ok(()),
        }
    }
}

fn text(place: &str, value: Json) -> Result<String, Failure> {
    match value {
        Json::String(text) => Ok(text),
        other => Err(Failure::malformed(format!("{place}: {other} is not text; write \"…\""))),
    }
}

fn signature(place: &str, text: &str) -> Result<Signature, Failure> {
    let bytes = bytes_of_hex(place, text)?;
    let length = bytes.len();
    let bytes: [u8; SIGNATURE] = bytes
        .try_into()
        .map_err(|_| Failure::malformed(format!("{place}: a signature has {SIGNATURE} bytes, this one {length}")))?;
    Ok(Signature(bytes))
}

/// A number of so many bytes.
fn short(place: &str, bytes: usize, value: &Json) -> Result<FieldValue, Failure> {
    let most = (1u64 << (8 * bytes)) - 1;
    let number = value.as_u64().filter(|number| *number <= most);
    number
        .map(FieldValue::Number)
        .ok_or_else(|| Failure::malformed(format!("{place}: {value} is not a whole number from 0 to {most}")))
}

fn choice(place: &str, texts: &[&'static str], text: &str) -> Result<FieldValue, Failure> {
    let found = texts.iter().find(|one| **one == text).copied();
    found.map(FieldValue::Choice).ok_or_else(|| {
        let all = texts.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", ");
        Failure::malformed(format!("{place}: {text:?} is none of {all}"))
    })
}

/// The value of a field that may be missing.
fn usual(kind: FieldKind) -> Option<FieldValue> {
    match kind {
        FieldKind::Life => Some(FieldValue::Life(Life::Rests)),
        FieldKind::Client => Some(FieldValue::Client(ClientId::NONE)),
        kind if kind.is_optional() => Some(FieldValue::Number(0)),
        _ => None,
    }
}

impl Api {
    /// The operation of a body.
    pub(super) fn operation(&self, body: &OperationBody) -> Result<Operation, Failure> {
        let mut fields: Map<String, Json> = body.fields().map(|(name, value)| (name.into(), value.clone())).collect();
        let row = match fields.remove("type") {
            Some(Json::String(kind)) if kind == "encoded" => {
                return encoded(Given { place: "operation".into(), fields });
            }
            Some(_) => body.row(),
            None => return Err(Failure::malformed("operation: missing field `type`")),
        };
        let row = row.ok_or_else(|| {
            let action = body.get("action").map_or(String::new(), |action| format!(", action {action}"));
            Failure::malformed(format!("operation: unknown variant `{}`{action}", body.text("type")))
        })?;
        row.action.and_then(|_| fields.remove("action"));
        match row.asked {
            AskedAs::Fields => {}
            AskedAs::Bytes { what, .. } => return Err(as_bytes(what)),
            AskedAs::Never => {
                let why = "operation: a validator's node posts its presence by itself, signed by the validator's key";
                return Err(Failure::malformed(why));
            }
        }
        let values = self.given_values(row.fields, Given { place: "operation".into(), fields })?;
        Operation::of_values(row, &values).map_err(|error| Failure::malformed(format!("operation: {error}")))
    }

    fn given_values(&self, fields: &[OperationField], mut given: Given) -> Result<Vec<FieldValue>, Failure> {
        let values = fields.iter().map(|field| {
            let missing = || Failure::malformed(format!("{}: missing field `{}`", given.place, field.name));
            match given.fields.remove(field.name) {
                Some(value) if !value.is_null() => self.given_value(given.inner(field.name), field.kind, value),
                _ => usual(field.kind).ok_or_else(missing),
            }
        });
        let values: Vec<FieldValue> = values.collect::<Result<_, Failure>>()?;
        given.end()?;
        Ok(values)
    }

    fn given_value(&self, place: String, kind: FieldKind, value: Json) -> Result<FieldValue, Failure> {
        if let (FieldKind::Long, Some(number)) = (kind, value.as_u64()) {
            return Ok(FieldValue::Number(number));
        }
        Ok(match kind {
            FieldKind::Short(bytes) => short(&place, bytes, &value)?,
            FieldKind::List(list) => self.given_list(place, list, value)?,
            FieldKind::Group(fields) => {
                FieldValue::Group(self.given_values(fields, Given::of(format!("operation.{place}"), value)?)?)
            }
            kind => self.given_text(&place, kind, text(&place, value)?)?,
        })
    }

    fn given_text(&self, place: &str, kind: FieldKind, text: String) -> Result<FieldValue, Failure> {
        Ok(match kind {
            FieldKind::Address => FieldValue::Address(parse(place, &text)?),
            FieldKind::Key => FieldValue::Key(parse(place, &text)?),
            FieldKind::Signature => FieldValue::Signature(signature(place, &text)?),
            FieldKind::Asset => FieldValue::Asset(self.asset(&text)?),
            FieldKind::Units | FieldKind::Long => FieldValue::Number(number(place, &text)?),
            FieldKind::Price => FieldValue::Price(parse(place, &text)?),
            FieldKind::Life => FieldValue::Life(parse(place, &text)?),
            FieldKind::Client => FieldValue::Client(parse(place, &text)?),
            FieldKind::Choice(texts) => choice(place, texts, &text)?,
            FieldKind::Bytes => FieldValue::Bytes(bytes_of_hex(place, &text)?),
            FieldKind::Text => FieldValue::Text(text),
            FieldKind::Short(_) | FieldKind::List(_) | FieldKind::Group(_) | FieldKind::Whole | FieldKind::Digest => {
                unreachable!("no field that is asked for as text has the kind of {place}")
            }
        })
    }

    fn given_list(&self, place: String, list: &FieldList, value: Json) -> Result<FieldValue, Failure> {
        let Json::Array(entries) = value else {
            return Err(Failure::malformed(format!("{place}: {value} is not a list")));
        };
        let entry = |(at, entry): (usize, Json)| {
            self.given_values(list.fields, Given::of(format!("operation.{place}[{at}]"), entry)?)
        };
        let mut entries = entries.into_iter().enumerate().map(entry).collect::<Result<Vec<_>, Failure>>()?;
        if list.is_sorted {
            entries.sort_by_key(|entry| match entry[..] {
                [FieldValue::Asset(asset), ..] => asset.0.to_be_bytes().to_vec(),
                [FieldValue::Key(key), ..] => key.0.to_vec(),
                [FieldValue::Address(address), ..] => address.0.to_vec(),
                _ => Vec::new(),
            });
        }
        Ok(FieldValue::List(entries))
    }
}

fn as_bytes(what: &str) -> Failure {
    Failure::malformed(format!(
        "operation: {what} is only shown in this form; to ask for it, give {{\"type\":\"encoded\",\"bytes\":\"0x…\"}}"
    ))
}

/// Any operation, as bytes.
fn encoded(mut given: Given) -> Result<Operation, Failure> {
    let bytes = given.fields.remove("bytes").ok_or_else(|| Failure::malformed("operation: missing field `bytes`"))?;
    given.end()?;
    borsh::from_slice(&bytes_of_hex("bytes", &text("bytes", bytes)?)?)
        .map_err(|error| Failure::malformed(format!("bytes: not an operation: {error}")))
}
