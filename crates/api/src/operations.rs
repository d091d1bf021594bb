//! Operations of transactions, for what a node shows and for what it is asked to prepare: by the table of
//! [`primitives::operations`].

use std::fmt;

use primitives::operations::{self, FieldKind, FieldList, OperationField, OperationRow};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, RefBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// The operation of a transaction: its `type`, at a venue its `action`, and its fields. Assets are symbols, and units
/// are decimal text.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationBody {
    fields: Vec<(String, Value)>,
}

impl OperationBody {
    /// That of a row, with the values of its fields.
    pub fn of(row: &OperationRow, values: impl IntoIterator<Item = (&'static str, Value)>) -> OperationBody {
        let names = [("type", Some(row.name)), ("action", row.action)];
        let names = names.into_iter().filter_map(|(name, text)| Some((name, Value::from(text?))));
        OperationBody { fields: names.chain(values).map(|(name, value)| (name.into(), value)).collect() }
    }

    /// Its fields, in order; the `type` is one of them.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// The text of a field, or its number as text; empty if it has no such field.
    pub fn text(&self, name: &str) -> String {
        match self.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    /// Its row in the table of operations.
    pub fn row(&self) -> Option<&'static OperationRow> {
        let text = |name| self.get(name).and_then(Value::as_str);
        operations::named(text("type")?, text("action"))
    }
}

impl Serialize for OperationBody {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.fields())
    }
}

impl<'de> Deserialize<'de> for OperationBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OperationBody, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = OperationBody;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(r#"an operation such as {"type":"pay","to":"0x…","asset":"EUR","amount":"1250"}"#)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OperationBody, A::Error> {
                let mut fields: Vec<(String, Value)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.iter().any(|(known, _)| *known == name) {
                        return Err(serde::de::Error::custom(format!("operation.{name}: it is given twice")));
                    }
                    fields.push((name, value));
                }
                Ok(OperationBody { fields })
            }
        }
        from.deserialize_map(Fields)
    }
}

impl ToSchema for OperationBody {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let lists = operations::all().flat_map(|row| row.fields).filter_map(|field| match field.kind {
            FieldKind::List(list) => Some(list),
            _ => None,
        });
        for list in lists {
            let name = entry_schema(list);
            if !schemas.iter().any(|(known, _)| *known == name) {
                schemas.push((name, object(list.fields, &[]).description(Some(list.about)).into()));
            }
        }
    }
}

/// The name of the schema of a list's entry.
fn entry_schema(list: &FieldList) -> String {
    format!("{}Body", list.name)
}

/// The name of the schema of a group that answers about venues have, too.
fn group_schema(field: &OperationField) -> Option<&'static str> {
    match field.name {
        "operator" | "from" | "to" => Some("VenueOperatorBody"),
        "terms" => Some("VenueMarketTermsBody"),
        "mandate" => Some("MandateBody"),
        "floor" => Some("OrderNumberBody"),
        _ => None,
    }
}

impl PartialSchema for OperationBody {
    fn schema() -> RefOr<Schema> {
        let rows = operations::all().map(row_schema);
        let encoded = object(&[field_of("bytes", "The bytes, in hexadecimal.")], &[("type", "encoded")])
            .description(Some("Any operation in its wire encoding, to ask for it. Answers show each by its kind."));
        let all = rows.chain([encoded]).fold(OneOfBuilder::new(), |all, one| all.item(one.build()));
        all.description(Some("The operation of a transaction. Assets are symbols, and units are decimal text.")).into()
    }
}

const fn field_of(name: &'static str, about: &'static str) -> OperationField {
    OperationField { name, typed: name, kind: FieldKind::Bytes, about }
}

fn row_schema(row: &'static OperationRow) -> ObjectBuilder {
    let names = [("type", Some(row.name)), ("action", row.action)];
    let names: Vec<_> = names.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    object(row.fields, &names).description(Some(row.about))
}

/// An object of these fields, and of texts that are always the same.
fn object(fields: &[OperationField], fixed: &[(&str, &str)]) -> ObjectBuilder {
    let text = |value: &str| ObjectBuilder::new().schema_type(Type::String).enum_values(Some([value])).build();
    let fixed = fixed
        .iter()
        .fold(ObjectBuilder::new(), |object, (name, value)| object.property(*name, text(value)).required(*name));
    fields.iter().filter(|field| !field.name.is_empty()).fold(fixed, |object, field| {
        let object = object.property(field.name, field_schema(field));
        if field.kind.is_optional() { object } else { object.required(field.name) }
    })
}

fn field_schema(field: &OperationField) -> RefOr<Schema> {
    let plain = |of: SchemaType| ObjectBuilder::new().schema_type(of).description(Some(field.about));
    match field.kind {
        FieldKind::Short(bytes) => {
            let most = (1u64 << (8 * bytes)) - 1;
            plain(Type::Integer.into()).minimum(Some(0)).maximum(Some(most as f64)).into()
        }
        FieldKind::Choice(texts) => plain(Type::String.into()).enum_values(Some(texts.iter().copied())).into(),
        FieldKind::List(list) => {
            let entry = Ref::from_schema_name(entry_schema(list));
            ArrayBuilder::new().items(entry).description(Some(field.about)).into()
        }
        FieldKind::Group(fields) => match group_schema(field) {
            Some(name) => {
                let of = Ref::from_schema_name(name);
                RefOr::Ref(RefBuilder::new().ref_location(of.ref_location).description(Some(field.about)).build())
            }
            None => object(fields, &[]).description(Some(field.about)).into(),
        },
        _ => plain(Type::String.into()).into(),
    }
}

/// The account that settles for a venue, and the key that signs its reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueOperatorBody {
    /// The account.
    pub account: String,
    /// The report key.
    pub report_key: String,
}

/// The terms of a market.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueMarketTermsBody {
    /// Symbol of the asset that is traded.
    pub base: String,
    /// Symbol of the asset in which it is paid.
    pub quote: String,
    /// Base units of a lot.
    pub lot_units: String,
    /// Quote units of a lot for one tick.
    pub tick_units: String,
    /// The most lots of an order.
    pub lots_max: u32,
    /// The most that an order pays in fees, in millionths of the quote units that it trades.
    pub fee_cap_ppm: u32,
    /// What a bust costs the bond, in units of the first asset for each lot.
    pub penalty: String,
}

/// The number of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderNumberBody {
    /// The incarnation of the venue that the order is for.
    pub incarnation: u32,
    /// The day of the session.
    pub day: u16,
    /// The client's reference.
    pub reference: u32,
}
