//! The hash of typed data (EIP-712) in the form of `eth_signTypedData_v4`.

use std::collections::BTreeSet;

use ledger::contracts::ethereum::{B256, U256, keccak256};
use serde_json::{Map, Value};

use super::values::{read_address, read_data, read_quantity};

/// The fields of a domain, in order, for data that does not describe their type.
const DOMAIN_FIELDS: [(&str, &str); 5] = [
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
    ("salt", "bytes32"),
];
const DOMAIN: &str = "EIP712Domain";

/// The types that typed data describes.
struct Types<'a>(&'a Map<String, Value>);

/// The hash that the signer of typed data signs.
///
/// # Errors
/// The reason if it is no typed data.
pub(super) fn typed_data_hash(data: &Value) -> Result<B256, String> {
    let types = Types(data["types"].as_object().ok_or("types: an object is expected")?);
    let primary = data["primaryType"].as_str().ok_or("primaryType: a name is expected")?;
    let domain = types.hash_struct(DOMAIN, &data["domain"])?;
    let mut said = [&[0x19, 0x01][..], &domain[..]].concat();
    if primary != DOMAIN {
        said.extend(types.hash_struct(primary, &data["message"])?);
    }
    Ok(keccak256(said))
}

impl<'a> Types<'a> {
    /// The fields of a struct, each with its name and type.
    fn fields(&self, name: &str, value: &Value) -> Result<Vec<(String, String)>, String> {
        let Some(fields) = self.0.get(name) else {
            if name != DOMAIN {
                return Err(format!("{name} is not among the types"));
            }
            let present = DOMAIN_FIELDS.iter().filter(|(field, _)| !value[*field].is_null());
            return Ok(present.map(|(field, kind)| ((*field).into(), (*kind).into())).collect());
        };
        let field = |field: &Value| Some((field["name"].as_str()?.into(), field["type"].as_str()?.into()));
        let fields = fields.as_array().and_then(|fields| fields.iter().map(field).collect::<Option<Vec<_>>>());
        fields.ok_or(format!("{name}: a list of names and types is expected"))
    }

    fn described(&self, name: &str, value: &Value) -> Result<String, String> {
        let fields = self.fields(name, value)?;
        let fields: Vec<String> = fields.iter().map(|(field, kind)| format!("{kind} {field}")).collect();
        Ok(format!("{name}({})", fields.join(",")))
    }

    /// The description of a struct and of all structs in it, those by name.
    fn encode_type(&self, name: &str, value: &Value) -> Result<String, String> {
        let (mut inner, mut rest) = (BTreeSet::new(), vec![name.to_string()]);
        while let Some(one) = rest.pop() {
            for (_, kind) in self.fields(&one, value)? {
                let base = kind.split('[').next().unwrap_or_default();
                if self.0.contains_key(base) && base != name && inner.insert(base.to_string()) {
                    rest.push(base.into());
                }
            }
        }
        let mut text = self.described(name, value)?;
        for one in &inner {
            text += &self.described(one, &Value::Null)?;
        }
        Ok(text)
    }

    fn hash_struct(&self, name: &str, value: &Value) -> Result<[u8; 32], String> {
        let mut said = keccak256(self.encode_type(name, value)?).to_vec();
        for (field, kind) in self.fields(name, value)? {
            said.extend(self.encode(&kind, &value[&field]).map_err(|why| format!("{field}: {why}"))?);
        }
        Ok(keccak256(said).0)
    }

    /// A value as one word.
    fn encode(&self, kind: &str, value: &Value) -> Result<[u8; 32], String> {
        if let Some((base, length)) = kind.strip_suffix(']').and_then(|kind| kind.rsplit_once('[')) {
            let all = value.as_array().ok_or("a list is expected")?;
            if !length.is_empty() && length.parse() != Ok(all.len()) {
                return Err(format!("{} values, where {length} are expected", all.len()));
            }
            let words = all.iter().map(|one| self.encode(base, one)).collect::<Result<Vec<_>, _>>()?;
            return Ok(keccak256(words.concat()).0);
        }
        if self.0.contains_key(kind) {
            return if value.is_null() { Ok([0; 32]) } else { self.hash_struct(kind, value) };
        }
        match kind {
            "string" => Ok(keccak256(value.as_str().ok_or("a text is expected")?).0),
            "bytes" => Ok(keccak256(read_data(value)?).0),
            "bool" => Ok(word(U256::from(u8::from(value.as_bool().ok_or("true or false is expected")?)))),
            "address" => {
                let mut word = [0; 32];
                word[12..].copy_from_slice(&read_address(value)?.0);
                Ok(word)
            }
            _ => encode_sized(kind, value),
        }
    }
}

fn word(number: U256) -> [u8; 32] {
    number.to_be_bytes()
}

/// Values whose type names their size: `bytes32`, `uint64`, `int256`.
fn encode_sized(kind: &str, value: &Value) -> Result<[u8; 32], String> {
    let unknown = || format!("{kind} is no type");
    if let Some(size) = kind.strip_prefix("bytes") {
        let size: usize = size.parse().ok().filter(|size| (1..=32).contains(size)).ok_or_else(unknown)?;
        let bytes = read_data(value)?;
        if bytes.len() != size {
            return Err(format!("{} bytes, where {size} are expected", bytes.len()));
        }
        let mut word = [0; 32];
        word[..size].copy_from_slice(&bytes);
        return Ok(word);
    }
    let (is_signed, bits) = match (kind.strip_prefix("uint"), kind.strip_prefix("int")) {
        (Some(bits), _) => (false, bits),
        (None, Some(bits)) => (true, bits),
        (None, None) => return Err(unknown()),
    };
    let bits: usize = if bits.is_empty() { 256 } else { bits.parse().map_err(|_| unknown())? };
    if !(8..=256).contains(&bits) || !bits.is_multiple_of(8) {
        return Err(unknown());
    }
    let (is_negative, size) = read_integer(value)?;
    let most = bits - usize::from(is_signed);
    let fits = match is_negative {
        false => size.bit_len() <= most,
        true => is_signed && (size - U256::from(1)).bit_len() <= most,
    };
    match fits {
        true => Ok(word(if is_negative { U256::ZERO.wrapping_sub(size) } else { size })),
        false => Err(format!("{value} does not fit into {kind}")),
    }
}

/// Whether a number is below zero, and its size: a JSON number, or decimal or hexadecimal text.
fn read_integer(value: &Value) -> Result<(bool, U256), String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return Err("a whole number is expected".into()),
    };
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text.as_str()), |digits| (true, digits));
    let size = match digits.strip_prefix("0x") {
        Some(_) => read_quantity(&Value::from(digits))?,
        None => U256::from_str_radix(digits, 10).map_err(|_| format!("{text} is no whole number"))?,
    };
    Ok((is_negative && !size.is_zero(), size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mail() -> Value {
        json!({
            "types": {
                "EIP712Domain": [
                    {"name": "name", "type": "string"}, {"name": "version", "type": "string"},
                    {"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"},
                ],
                "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
                "Mail": [
                    {"name": "from", "type": "Person"}, {"name": "to", "type": "Person"},
                    {"name": "contents", "type": "string"},
                ],
            },
            "primaryType": "Mail",
            "domain": {
                "name": "Ether Mail", "version": "1", "chainId": 1,
                "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
            },
            "message": {
                "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
                "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
                "contents": "Hello, Bob!",
            },
        })
    }

    /// The example of EIP-712.
    #[test]
    fn the_example_of_typed_data_has_its_hash() {
        let expected = "0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2";
        assert_eq!(typed_data_hash(&mail()).map(|hash| hash.to_string()), Ok(expected.into()));
        let mut without = mail();
        without["types"].as_object_mut().expect("types").remove("EIP712Domain");
        assert_eq!(typed_data_hash(&without).map(|hash| hash.to_string()), Ok(expected.into()));
    }

    /// Known answers of viem 2.57.20 and @metamask/eth-sig-util 9.0.0. `alloy-dyn-abi` 1.7.3 reads no description of
    /// the domain and refuses a structure that is null, so this module is not replaced by it.
    #[test]
    fn a_domain_is_hashed_as_it_is_described() {
        let described = |fields: Value| {
            let mut data = mail();
            data["types"]["EIP712Domain"] = fields;
            typed_data_hash(&data).map(|hash| hash.to_string())
        };
        let fewer = described(json!([{"name": "name", "type": "string"}]));
        assert_eq!(fewer, Ok("0x35691434f5530cf289f37370b78630e37258f2713bc1317a760338b22daf96c5".into()));
        let turned = described(json!([{"name": "chainId", "type": "uint256"}, {"name": "name", "type": "string"}]));
        assert_eq!(turned, Ok("0x7cc65c16e069ded16f30627397651c006e588775fd64a46988411d8dd1ea232f".into()));
        let mut without = mail();
        without["message"]["from"] = Value::Null;
        assert!(typed_data_hash(&without).is_ok());
    }

    #[test]
    fn values_of_typed_data_are_held_to_their_types() {
        let types = mail();
        let types = Types(types["types"].as_object().expect("types"));
        let encoded = |kind: &str, value: Value| types.encode(kind, &value).map(U256::from_be_bytes);
        for seven in [json!(7), json!("7"), json!("0x7")] {
            assert_eq!(encoded("uint8", seven), Ok(U256::from(7)));
        }
        assert_eq!(encoded("int8", json!(-1)), Ok(U256::MAX));
        assert_eq!(encoded("int8", json!("-128")), Ok(U256::MAX - U256::from(127)));
        for (kind, wrong) in [
            ("uint8", json!(256)),
            ("uint8", json!(-1)),
            ("int8", json!(128)),
            ("int8", json!(-129)),
            ("uint9", json!(1)),
            ("bytes33", json!("0x")),
            ("bytes2", json!("0x01")),
            ("bool", json!(1)),
            ("uint256[2]", json!([1])),
            ("Nobody", json!({})),
            ("uint256", json!(1.5)),
        ] {
            assert!(encoded(kind, wrong.clone()).is_err(), "{kind} {wrong}");
        }
    }
}
