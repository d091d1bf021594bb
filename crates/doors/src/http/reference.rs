//! The reference of the interface in `docs/api.md`, made from the OpenAPI document, and with it from the handlers and
//! from the bodies of [`api`]. A test compares the two; `write_reference` renews it.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{asyncapi, described, description};

/// Where the reference begins and ends in the page.
const BEGIN: &str = "<!-- From here on made from the interface's description: `make api-reference` renews it. -->\n";
const END: &str = "<!-- Up to here. -->\n";

/// The calls, and the bodies that they name.
fn reference(document: &Value) -> String {
    let (mut text, mut named) = (String::new(), Vec::new());
    for (path, item) in object(&document["paths"]) {
        for (method, operation) in object(item) {
            call(&mut text, path, method, operation, &mut named);
        }
    }
    for body in asyncapi::bodies() {
        if !named.iter().any(|name| name == body) {
            named.push(body.into());
        }
    }
    text.push_str("\n## Bodies\n");
    let mut at = 0;
    while let Some(name) = named.get(at).cloned() {
        let schema = &document["components"]["schemas"][&name];
        write!(text, "\n### {name}\n\n{}\n", sentences(schema)).expect("memory");
        body(&mut text, schema, &mut named);
        at += 1;
    }
    text
}

fn call(text: &mut String, path: &str, method: &str, operation: &Value, named: &mut Vec<String>) {
    let says = ["summary", "description"].map(|part| operation[part].as_str().unwrap_or_default());
    let says = says.join(" ").replace('\n', " ");
    write!(text, "\n### `{} {path}`\n\n{}\n", method.to_uppercase(), says.trim()).expect("memory");
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters: Vec<String> = parameters.filter(|of| of["in"] == "query").map(parameter).collect();
    if !parameters.is_empty() {
        write!(text, "\nParameters: {}.\n", parameters.join(", ")).expect("memory");
    }
    for (kind, content) in object(&operation["requestBody"]["content"]) {
        let schema = &content["schema"];
        let what = match schema["properties"].as_object() {
            None if schema.get("$ref").is_some() => format!(", a {}", shape(schema, named)),
            None => String::new(),
            Some(fields) => {
                let fields: Vec<String> = fields.keys().map(|field| format!("`{field}`")).collect();
                format!(" with {}", fields.join(", "))
            }
        };
        write!(text, "\nBody: `{kind}`{what}.\n").expect("memory");
    }
    for (status, response) in object(&operation["responses"]).into_iter().filter(|(status, _)| status.starts_with('2'))
    {
        let kinds = object(&response["content"]).into_iter().map(|(kind, content)| match content.get("schema") {
            Some(schema) if kind == "application/json" => shape(schema, named),
            _ => format!("`{kind}`"),
        });
        let kinds: Vec<String> = kinds.collect();
        let kinds = if kinds.is_empty() { "nothing".into() } else { kinds.join(" or ") };
        write!(text, "\nAnswer ({status}): {kinds}.\n").expect("memory");
    }
}

fn parameter(of: &Value) -> String {
    let name = of["name"].as_str().unwrap_or_default();
    let values = of["schema"]["enum"].as_array().map(|values| {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        format!(": {}", values.join(", "))
    });
    let says = of["description"].as_str().map(|says| format!(" ({says})"));
    format!("`{name}`{}{}", values.unwrap_or_default(), says.unwrap_or_default())
}

/// The fields of a body, or its forms.
fn body(text: &mut String, schema: &Value, named: &mut Vec<String>) {
    let parts = schema["allOf"].as_array();
    let forms = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    if let Some(forms) = forms {
        text.push('\n');
        for form in forms {
            writeln!(text, "- {}", one_form(form, named)).expect("memory");
        }
        return;
    }
    let own = std::iter::once(schema).chain(parts.into_iter().flatten());
    let (mut fields, mut others) = (String::new(), Vec::new());
    for part in own {
        if part.get("$ref").is_some() {
            others.push(shape(part, named));
        }
        for (name, field) in object(&part["properties"]) {
            let line = format!("| `{name}` | {} | {} |", shape(field, named), sentences(field));
            writeln!(fields, "{line}").expect("memory");
        }
    }
    if !others.is_empty() {
        write!(text, "\nAll fields of {}, and:\n", others.join(" and ")).expect("memory");
    }
    write!(text, "\n| field | type | |\n|---|---|---|\n{fields}").expect("memory");
}

/// One form of a body that has several.
fn one_form(form: &Value, named: &mut Vec<String>) -> String {
    let is_name = |field: &Value| field["enum"].as_array().is_some_and(|of| of.len() == 1);
    let Some(fields) = form["properties"].as_object() else { return shape(form, named) };
    let names = fields.iter().filter(|(_, field)| is_name(field));
    let names: Vec<String> = names.map(|(key, field)| format!("`\"{key}\": {}`", field["enum"][0])).collect();
    let rest = fields.iter().filter(|(_, field)| !is_name(field));
    let rest: Vec<String> = rest
        .map(|(key, field)| {
            let says = sentences(field);
            format!("`{key}` ({}): {}", shape(field, named), says.trim_end_matches('.'))
        })
        .collect();
    let rest = if rest.is_empty() { String::new() } else { format!(" Fields: {}.", rest.join("; ")) };
    format!("{}: {}{rest}", names.join(", "), sentences(form))
}

/// The type of a value, in words; notes the bodies that it names.
fn shape(schema: &Value, named: &mut Vec<String>) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.rsplit('/').next().unwrap_or_default().to_string();
        if !named.contains(&name) {
            named.push(name.clone());
        }
        return format!("[{name}](#{})", name.to_lowercase());
    }
    let forms = ["oneOf", "anyOf", "allOf"].iter().find_map(|of| schema[*of].as_array());
    if let Some(forms) = forms {
        let forms: Vec<String> = forms.iter().map(|form| shape(form, named)).collect();
        return forms.join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let of = |kind: &Value| {
                let mut one = schema.as_object().cloned().unwrap_or_default();
                one.insert("type".into(), kind.clone());
                shape(&Value::Object(one), named)
            };
            kinds.iter().map(of).collect::<Vec<_>>().join(" or ")
        }
        Value::String(kind) if kind == "array" => format!("list of {}", shape(&schema["items"], named)),
        Value::String(kind) if kind == "object" && schema["additionalProperties"].is_object() => {
            format!("{} by name", shape(&schema["additionalProperties"], named))
        }
        Value::String(kind) => kind.clone(),
        _ => "any".into(),
    }
}

fn sentences(schema: &Value) -> String {
    let inner =
        || schema["oneOf"].as_array().and_then(|forms| forms.iter().find_map(|form| form["description"].as_str()));
    schema["description"].as_str().or_else(inner).unwrap_or_default().replace('\n', " ").replace('|', "\\|")
}

fn object(value: &Value) -> Vec<(&String, &Value)> {
    value.as_object().map(Map::iter).into_iter().flatten().collect()
}

fn page() -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let text = std::fs::read_to_string(&path).expect("docs/api.md");
    (path, text)
}

fn made() -> String {
    reference(&description::document(&described().split_for_parts().1))
}

#[test]
fn the_reference_is_that_of_the_interface() {
    let (_, page) = page();
    let kept = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).expect("the marks").0;
    let made = made();
    let first = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(kept == made, "docs/api.md drifts: `make api-reference` renews it. First difference: {first:?}");
}

#[test]
#[ignore = "writes docs/api.md"]
fn write_reference() {
    let (path, page) = page();
    let (before, rest) = page.split_once(BEGIN).expect("a mark");
    let after = rest.split_once(END).expect("a mark").1;
    std::fs::write(path, [before, BEGIN, &made(), END, after].concat()).expect("written");
}
