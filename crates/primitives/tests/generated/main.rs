//! What is generated from the table of operations, and committed: tables of `docs/specification.md`, and sources of the
//! clients in Python and TypeScript. This test compares; `make operations` writes.

mod python;
mod specification;
mod typescript;

use std::path::Path;

use primitives::operations::{self, AskedAs, FieldKind, FieldList, OperationField, OperationRow};

/// Compares a file of the project with what it must be, or writes it.
fn compare(path: &str, expected: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("WALRAS_WRITE_OPERATIONS").is_some() {
        std::fs::write(&file, expected).expect("a writable checkout");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{path} is not what the table of operations says: run `make operations`");
}

/// The fields of typed data, those of groups one by one, in the order of the encoding.
fn flat(fields: &'static [OperationField]) -> Vec<&'static OperationField> {
    let inner = |field: &'static OperationField| match field.kind {
        FieldKind::Group(fields) => flat(fields),
        _ => vec![field],
    };
    fields.iter().filter(|field| field.is_signed()).flat_map(inner).collect()
}

/// The rows that a client encodes.
fn asked() -> impl Iterator<Item = &'static OperationRow> {
    operations::all().filter(|row| row.asked == AskedAs::Fields)
}

/// The lists of these rows, each once.
fn lists(rows: impl Iterator<Item = &'static OperationRow>) -> Vec<&'static FieldList> {
    let mut found: Vec<&'static FieldList> = Vec::new();
    for field in rows.flat_map(|row| flat(row.fields)) {
        if let FieldKind::List(list) = field.kind
            && !found.iter().any(|known| known.structure == list.structure)
        {
            found.push(list);
        }
    }
    found
}

#[test]
fn the_specification_has_the_table_of_operations() {
    let path = "docs/specification.md";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let text = std::fs::read_to_string(file).expect("the specification");
    compare(path, &specification::with_tables(&text));
}

#[test]
fn the_python_client_has_the_table_of_operations() {
    compare("sdk/python/python/walras/client/operations.py", &python::source());
}

#[test]
fn the_typescript_client_has_the_table_of_operations() {
    compare("sdk/typescript/src/operations.ts", &typescript::source());
}
