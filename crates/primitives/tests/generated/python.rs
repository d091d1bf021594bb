//! The operations of the Python client.

use std::fmt::Write as _;

use primitives::operations::{FieldKind, OperationField};

use crate::{asked, flat, lists};

const HEAD: &str = r#""""Operations of transactions, from the table of operations.

Written by `make operations`, not by hand. Assets are numbers, amounts units, and limits decimals in units. Keys,
signatures and bytes are hexadecimal after ``0x``.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from walras.client.encoding import NO_CLIENT, RESTS, Field, Operation, Structure

"#;

/// The source of `walras/client/operations.py`.
pub fn source() -> String {
    let mut source = String::from(HEAD);
    let names = lists(asked()).into_iter().map(|list| list.name).chain(asked().map(|row| row.structure));
    let mut names: Vec<String> = names.map(|name| format!("    \"{name}\",\n")).collect();
    names.sort();
    write!(source, "__all__ = [\n{}]\n", names.concat()).expect("memory");
    for list in lists(asked()) {
        let fields: Vec<&OperationField> = list.fields.iter().collect();
        source += &class(list.name, "Structure", list.about, list.structure, None, &fields);
    }
    for row in asked() {
        source += &class(row.structure, "Operation", row.about, row.structure, Some(row.code), &flat(row.fields));
    }
    source
}

fn class(
    name: &str,
    base: &str,
    about: &str,
    structure: &str,
    code: Option<&[u8]>,
    fields: &[&OperationField],
) -> String {
    let mut class = format!("\n\n@dataclass(frozen=True, slots=True)\nclass {name}({base}):\n{}\n", documented(about));
    for field in fields {
        let (kind, usual) = python_type(field.kind);
        let usual = usual.map(|usual| format!(" = {usual}")).unwrap_or_default();
        writeln!(class, "    {}: {kind}{usual}\n{}", attribute(field), documented(field.about)).expect("memory");
    }
    writeln!(class, "    NAME: ClassVar[str] = \"{structure}\"").expect("memory");
    if let Some(code) = code {
        writeln!(class, "    CODE: ClassVar[bytes] = bytes({code:?})").expect("memory");
    }
    class += "    FIELDS: ClassVar[tuple[Field, ...]] = (\n";
    for field in fields {
        let more = match field.kind {
            FieldKind::Choice(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
                format!(", ({}{})", texts.join(", "), if texts.len() == 1 { "," } else { "" })
            }
            FieldKind::List(list) => format!(", ({},)", list.name),
            _ => String::new(),
        };
        writeln!(
            class,
            "        Field(\"{}\", \"{}\", \"{}\", \"{}\"{more}),",
            attribute(field),
            field.typed,
            field.kind.typed(),
            form(field.kind)
        )
        .expect("memory");
    }
    class + "    )\n"
}

/// A docstring, wrapped.
fn documented(about: &str) -> String {
    let about = about.trim().replace('`', "``");
    let mut lines = vec![String::from("    \"\"\"")];
    for word in about.split_whitespace() {
        let line = lines.last_mut().expect("one line");
        if line.len() + word.len() > 112 {
            lines.push(format!("    {word}"));
        } else {
            if line.trim() != "\"\"\"" {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n") + "\"\"\""
}

/// The attribute of a field: its name in typed data in lower case, where Python has no such keyword.
fn attribute(field: &OperationField) -> String {
    let mut name = String::new();
    for letter in field.typed.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    match name.as_str() {
        "class" => "fee_class".into(),
        "from" => "from_".into(),
        _ => name,
    }
}

fn python_type(kind: FieldKind) -> (String, Option<&'static str>) {
    match kind {
        FieldKind::Asset | FieldKind::Units | FieldKind::Long | FieldKind::Short(_) => ("int".into(), None),
        FieldKind::Price => ("Decimal".into(), None),
        FieldKind::Life => ("str".into(), Some("RESTS")),
        FieldKind::Client => ("str".into(), Some("NO_CLIENT")),
        FieldKind::List(list) => (format!("tuple[{}, ...]", list.name), None),
        _ => ("str".into(), None),
    }
}

/// How it is encoded.
pub fn form(kind: FieldKind) -> String {
    match kind {
        FieldKind::Address => "address".into(),
        FieldKind::Key | FieldKind::Signature | FieldKind::Client => "raw".into(),
        FieldKind::Asset => "u32".into(),
        FieldKind::Units | FieldKind::Long => "u64".into(),
        FieldKind::Short(bytes) => format!("u{}", 8 * bytes),
        FieldKind::Price => "price".into(),
        FieldKind::Life => "life".into(),
        FieldKind::Choice(_) => "choice".into(),
        FieldKind::Text => "text".into(),
        FieldKind::Bytes => "bytes".into(),
        FieldKind::List(_) => "list".into(),
        FieldKind::Group(_) | FieldKind::Whole | FieldKind::Digest => {
            unreachable!("groups are dissolved, and summaries are not asked")
        }
    }
}
