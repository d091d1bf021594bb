//! Typed data in the form of `eth_signTypedData_v4`.

use primitives::{Digest, TYPED_DATA_NAME, TYPED_DATA_VERSION, TypedData, TypedValue};
use serde_json::{Map, Value, json};

/// The input of `eth_signTypedData_v4`, for a chain and a network.
pub fn typed_data(data: &TypedData, chain: u64, network: &Digest) -> Value {
    let domain = [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("salt", "bytes32")];
    let mut types = Map::new();
    types.insert("EIP712Domain".into(), fields(domain));
    types.insert(data.primary.into(), fields(data.fields.iter().map(|(name, value)| (*name, value.kind()))));
    data.lists().for_each(|list| drop(types.insert(list.of.structure.into(), fields(list.fields()))));
    let message: Map<String, Value> = data.fields.iter().map(|(name, value)| ((*name).into(), shown(value))).collect();
    json!({
        "types": types,
        "primaryType": data.primary,
        "domain": {
            "name": TYPED_DATA_NAME,
            "version": TYPED_DATA_VERSION,
            "chainId": chain_number(chain),
            "salt": network.to_string(),
        },
        "message": message,
    })
}

fn fields<'a>(all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    all.into_iter().map(|(name, kind)| json!({"name": name, "type": kind})).collect()
}

fn shown(value: &TypedValue) -> Value {
    let TypedValue::List(list) = value else { return value.text().into() };
    let entry = |values: &Vec<TypedValue>| -> Value {
        let named = list.fields().zip(values).map(|((name, _), value)| ((*name).into(), shown(value)));
        Value::Object(named.collect())
    };
    list.entries.iter().map(entry).collect()
}

/// The number of a chain as wallets expect it: a JSON number, and text where a double would change it.
fn chain_number(chain: u64) -> Value {
    const DOUBLES: u64 = 1 << 53;
    if chain < DOUBLES { chain.into() } else { chain.to_string().into() }
}
