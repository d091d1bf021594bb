//! The table of operations agrees with the operations.

use std::collections::BTreeSet;

use primitives::operations::{self, AskedAs, FieldKind, NATIVE, VENUES};
use primitives::{Operation, Transaction, TypedData};

/// The transactions of the vectors, among which are all operations at the limits of their fields.
fn transactions() -> Vec<Transaction> {
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/vectors.json")).expect("vectors");
    let of = |vector: &serde_json::Value| {
        let digits = vector["transaction"].as_str().expect("bytes").trim_start_matches("0x");
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        borsh::from_slice(&bytes).expect("a transaction")
    };
    ["vectors", "typed_data"].iter().flat_map(|list| vectors[list].as_array().expect("a list")).map(of).collect()
}

#[test]
fn each_operation_has_a_row_which_reads_and_writes_its_encoding() {
    let mut met = BTreeSet::new();
    for Transaction { body, .. } in transactions() {
        let operation = &body.operation;
        let row = operation.row();
        let bytes = borsh::to_vec(operation).expect("memory");
        assert!(bytes.starts_with(row.code), "{}", row.title());
        met.insert(row.structure);
        if row.asked == AskedAs::Fields {
            let again = Operation::of_values(row, &operation.values()).expect("the values are whole");
            assert_eq!(again, *operation, "{}", row.title());
        }
        assert_eq!(TypedData::of(&body).primary, row.structure);
    }
    let all: BTreeSet<_> = operations::all().map(|row| row.structure).collect();
    assert_eq!(met, all, "an operation has no row, or a row has no sample");
}

/// Rows are found by their codes, which ascend.
#[test]
fn codes_ascend_and_no_name_stands_twice() {
    for rows in [NATIVE, VENUES] {
        assert!(rows.is_sorted_by(|one, next| one.code < next.code));
    }
    let names: BTreeSet<_> = operations::all().map(|row| (row.name, row.action)).collect();
    let structures: BTreeSet<_> = operations::all().map(|row| row.structure).collect();
    let count = NATIVE.len() + VENUES.len();
    assert_eq!((names.len(), structures.len()), (count, count));
}

/// What is asked for by its fields has each of them in JSON and in typed data.
#[test]
fn what_is_asked_for_by_fields_leaves_nothing_out() {
    for row in operations::all().filter(|row| row.asked == AskedAs::Fields) {
        for field in row.fields {
            assert!(!field.name.is_empty() && !field.typed.is_empty(), "{}: {}", row.title(), field.name);
            let is_tag = ["type", "action", "kind"].iter().any(|tag| [field.name, field.typed].contains(tag));
            assert!(!is_tag, "{}: {} is what clients tell operations by", row.title(), field.name);
            assert!(!matches!(field.kind, FieldKind::Whole | FieldKind::Digest), "{}: {}", row.title(), field.name);
        }
    }
}
