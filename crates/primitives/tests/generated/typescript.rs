//! The operations of the TypeScript client: as it signs them, and as a node shows them.

use std::fmt::Write as _;

use primitives::operations::{self, FieldKind, OperationField, OperationRow};

use crate::{asked, flat, lists};

const HEAD: &str = r#"/** Operations of transactions, written by `make operations` from the table of operations. */

/** How long an offer rests: until it is sold or cancelled, up to the batch of a height, or in its own batch alone. */
export type Life = "rests" | `until ${bigint}` | "one batch";

/** A field: its name and type in typed data, and how it is encoded; of a choice its texts, of a list its structure. */
export type OperationField = { name: string; type: string; form: string; texts?: readonly string[]; of?: string };
"#;

/// The source of `src/operations.ts`.
pub fn source() -> String {
    let mut source = String::from(HEAD);
    for list in lists(asked()) {
        let fields: Vec<&OperationField> = list.fields.iter().collect();
        write!(source, "\n/** {} */\nexport type {} = {{{} }};\n", list.about, list.name, signed(&fields))
            .expect("memory");
    }
    source += "\n/** What the ledger is asked for. Assets are numbers, amounts units, limits shortest decimals in units. */\n";
    source += "export type Operation =";
    for row in asked() {
        write!(source, "\n  /** {} */\n  | {{ kind: \"{}\";{} }}", row.about, row.structure, signed(&flat(row.fields)))
            .expect("memory");
    }
    source += ";\n\n/** The first bytes and the fields of each operation, in the order in which they are encoded and hashed. */\n";
    source += "export const OPERATIONS: Record<Operation[\"kind\"], { code: readonly number[]; fields: readonly OperationField[] }> = {\n";
    for row in asked() {
        write!(source, "  {}: {{\n    code: {:?},\n    fields: [\n", row.structure, row.code).expect("memory");
        flat(row.fields).into_iter().for_each(|field| source += &described(field));
        source += "    ],\n  },\n";
    }
    source += "};\n\n/** The structures of lists, by name. */\nexport const LISTED: Record<string, readonly OperationField[]> = {\n";
    for list in lists(asked()) {
        writeln!(source, "  {}: [", list.structure).expect("memory");
        list.fields.iter().for_each(|field| source += &described(field));
        source += "    ],\n";
    }
    source += "};\n\n/** An operation as a node shows it. Assets are symbols, and units are decimal text. */\n";
    source += "export type OperationBody =";
    operations::all().for_each(|row| source += &shown(row));
    source + ";\n"
}

/// Fields as a program gives them.
fn signed(fields: &[&OperationField]) -> String {
    let one = |field: &&OperationField| {
        let (mark, kind) = match field.kind {
            FieldKind::Asset | FieldKind::Short(_) => ("", "number".into()),
            FieldKind::Units | FieldKind::Long => ("", "bigint".into()),
            FieldKind::Life => ("?", "Life".into()),
            FieldKind::Client => ("?", "string".into()),
            FieldKind::Choice(texts) => ("", choice(texts)),
            FieldKind::List(list) => ("", format!("{}[]", list.name)),
            _ => ("", "string".into()),
        };
        format!(" {}{mark}: {kind};", field.typed)
    };
    let fields: String = fields.iter().map(one).collect();
    fields.trim_end_matches(';').into()
}

fn choice(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(" | ")
}

fn described(field: &OperationField) -> String {
    let more = match field.kind {
        FieldKind::Choice(texts) => {
            format!(", texts: [{}]", texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", "))
        }
        FieldKind::List(list) => format!(", of: \"{}\"", list.structure),
        _ => String::new(),
    };
    let (name, kind, form) = (field.typed, field.kind.typed(), crate::python::form(field.kind));
    format!("      {{ name: \"{name}\", type: \"{kind}\", form: \"{form}\"{more} }},\n")
}

/// An operation as JSON has it.
fn shown(row: &OperationRow) -> String {
    let action = row.action.map(|action| format!(" action: \"{action}\";")).unwrap_or_default();
    format!("\n  | {{ type: \"{}\";{action}{} }}", row.name, shown_fields(row.fields))
}

fn shown_fields(fields: &[OperationField]) -> String {
    let one = |field: &OperationField| {
        let (mark, kind) = match field.kind {
            FieldKind::Short(_) => ("", "number".into()),
            FieldKind::Client => ("?", "string".into()),
            FieldKind::Choice(texts) => ("", choice(texts)),
            FieldKind::List(list) => ("", format!("{{{} }}[]", shown_fields(list.fields))),
            FieldKind::Group(fields) => ("", format!("{{{} }}", shown_fields(fields))),
            _ => ("", "string".into()),
        };
        format!(" {}{mark}: {kind};", field.name)
    };
    let fields: String = fields.iter().filter(|field| !field.name.is_empty()).map(one).collect();
    fields.trim_end_matches(';').into()
}
