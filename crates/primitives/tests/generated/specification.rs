//! The tables of `docs/specification.md`.

use std::fmt::Write as _;

use primitives::operations::{self, AskedAs, FieldKind, NATIVE, OperationField, OperationRow, VENUES};

use crate::{flat, lists};

/// The text with its tables as they must be, each between a comment that names it and one that ends it.
pub fn with_tables(text: &str) -> String {
    let tables = [("typed data", typed_data()), ("native", native()), ("venues", at_venues())];
    tables.into_iter().fold(text.to_owned(), |text, (name, table)| {
        let (begin, end) = (format!("<!-- operations: {name} -->\n\n"), "\n<!-- end -->");
        let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no table `{name}`"));
        let (_, after) = rest.split_once(end).expect("the table ends");
        [before, &begin, &table, end, after].concat()
    })
}

fn typed_data() -> String {
    let mut table = String::from("| operation | structure |\n|---|---|\n");
    for row in operations::all() {
        writeln!(table, "| {} | `{}` |", row.title(), row_type(row)).expect("memory");
    }
    table
}

/// The type of a row's structure, as it is hashed.
fn row_type(row: &'static OperationRow) -> String {
    let fields = flat(row.fields).into_iter().map(|field| format!("{} {}", field.kind.typed(), field.typed));
    let head = ["address account", "uint64 sequence", "uint64 until"].map(String::from);
    let fields: Vec<String> = head.into_iter().chain(fields).collect();
    let mut inner: Vec<String> = lists([row].into_iter())
        .into_iter()
        .map(|list| {
            let fields: Vec<String> =
                list.fields.iter().map(|field| format!("{} {}", field.kind.typed(), field.typed)).collect();
            format!("{}({})", list.structure, fields.join(","))
        })
        .collect();
    inner.sort();
    format!("{}({}){}", row.structure, fields.join(","), inner.concat())
}

fn native() -> String {
    let mut table = String::from("| code | operation | fields | fees |\n|---|---|---|---|\n");
    for row in NATIVE {
        table += &line(row.code, row);
        if row.code == [10] {
            table += "| 11 | venue | an operation at a venue, see below | |\n";
        }
    }
    table
}

fn at_venues() -> String {
    let mut table = String::from("| code | operation | fields |\n|---|---|---|\n");
    for row in VENUES {
        let action = row.action.expect("an action").replace('_', " ");
        writeln!(table, "| {} | {action} | {} |", row.code[1], layout(row)).expect("memory");
    }
    table
}

fn line(code: &[u8], row: &OperationRow) -> String {
    let code = code.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
    format!("| {code} | {} | {} | {} |\n", row.title(), layout(row), row.fees)
}

fn layout(row: &OperationRow) -> String {
    match row.asked {
        AskedAs::Bytes { layout, .. } => layout.into(),
        _ => all(row.fields),
    }
}

fn all(fields: &[OperationField]) -> String {
    fields.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn one(field: &OperationField) -> String {
    let kind = match field.kind {
        FieldKind::Address => "address".into(),
        FieldKind::Key => "public key".into(),
        FieldKind::Signature => "signature".into(),
        FieldKind::Asset => "asset".into(),
        FieldKind::Units => "amount".into(),
        FieldKind::Long => "`u64`".into(),
        FieldKind::Short(bytes) => format!("`u{}`", 8 * bytes),
        FieldKind::Price => "price".into(),
        FieldKind::Life => "life".into(),
        FieldKind::Client => "16 bytes".into(),
        FieldKind::Choice(texts) => {
            let texts = texts.iter().enumerate().map(|(at, text)| format!("{at} {text}"));
            format!("`u8`, {}", texts.collect::<Vec<_>>().join(", "))
        }
        FieldKind::Text => "`u32` length, then as many bytes of text".into(),
        FieldKind::Bytes => "`u32` length, then as many bytes".into(),
        FieldKind::List(list) => format!("`u32` count, then each ({})", all(list.fields)),
        FieldKind::Group(fields) => format!("({})", all(fields)),
        FieldKind::Whole | FieldKind::Digest => unreachable!("not of the encoding"),
    };
    format!("{}: {kind}", field.name)
}
