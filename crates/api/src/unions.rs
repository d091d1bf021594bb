//! Unions as generators of clients expect them.

use serde_json::{Map, Value, json};

/// What tells the forms of a union apart, in the order of a form's name.
const TAGS: [&str; 3] = ["type", "action", "result"];

/// Makes the unions of an OpenAPI document plain: a union within a union becomes one union of all forms, fields beside
/// a union become fields of its forms, each form with a tag gets a name, and so does an object in a form.
/// Public generators know no others: they leave them out, with all calls that use them.
///
/// `schemas` are `components.schemas` of the document; what they permit stays the same.
pub fn flatten_unions(schemas: &mut Map<String, Value>) {
    let unions: Vec<(String, Vec<Value>)> =
        schemas.iter().filter_map(|(name, schema)| Some((name.clone(), schema["oneOf"].as_array()?.clone()))).collect();
    let mut lifted = Map::new();
    for (name, schema) in schemas.iter_mut() {
        let forms = match schema["oneOf"].as_array() {
            Some(forms) => {
                forms.iter().flat_map(|form| forms_of(form, &unions).unwrap_or_else(|| vec![form.clone()])).collect()
            }
            None => match forms_of(schema, &unions) {
                Some(forms) => forms,
                None => continue,
            },
        };
        let forms = forms.into_iter().map(|form| titled(name, named(name, form, &mut lifted))).collect();
        let schema = schema.as_object_mut().expect("a schema is an object");
        schema.remove("allOf");
        schema.insert("oneOf".into(), forms);
    }
    schemas.extend(lifted);
}

/// The forms of the union that `schema` consists of beside fields of its own, each with those fields.
fn forms_of(schema: &Value, unions: &[(String, Vec<Value>)]) -> Option<Vec<Value>> {
    let [union, own] = schema["allOf"].as_array()?.as_slice() else { return None };
    let name = union["$ref"].as_str()?.rsplit('/').next()?;
    let (_, forms) = unions.iter().find(|(union, _)| union == name)?;
    let with_own = |form: &Value| {
        let mut form = form.clone();
        for (field, schema) in own["properties"].as_object()? {
            form["properties"][field] = schema.clone();
        }
        form["required"].as_array_mut()?.extend(own["required"].as_array()?.iter().cloned());
        Some(form)
    };
    forms.iter().map(with_own).collect()
}

/// A form with the name that generators give it: its tags, then the union.
fn titled(union: &str, mut form: Value) -> Value {
    let tag = |name| form["properties"][name]["enum"].as_array()?.first()?.as_str();
    let tags: Vec<&str> = TAGS.into_iter().filter_map(tag).collect();
    if !tags.is_empty() {
        form["title"] = name_of(union, &tags).into();
    }
    form
}

/// A form without objects in it: they go among the schemas, named by their fields.
fn named(union: &str, mut form: Value, lifted: &mut Map<String, Value>) -> Value {
    for (field, schema) in form.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let name = name_of(union, &[field]);
        if schema["type"] == "object" && lifted.get(&name).is_none_or(|known| known == schema) {
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            lifted.insert(name, std::mem::replace(schema, reference));
        }
    }
    form
}

/// The words of `tags`, then the union.
fn name_of(union: &str, tags: &[&str]) -> String {
    let words = tags.iter().flat_map(|tag| tag.split('_')).filter(|word| !word.is_empty());
    let name: String = words.map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    name + union.trim_end_matches("Body")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn unions_within_and_beside_become_plain() {
        let form = |tag: &str, name: &str| {
            json!({"type": "object", "required": [tag],
            "properties": {tag: {"enum": [name]}}})
        };
        let inner = json!({"$ref": "#/components/schemas/Inner"});
        let own = json!({"required": ["type"], "properties": {"type": {"enum": ["venue"]}}});
        let count = json!({"required": ["count"], "properties": {"count": {"type": "integer"}}});
        let document = json!({
            "Inner": {"oneOf": [form("action", "open_all"), form("action", "close")]},
            "OuterBody": {"oneOf": [form("type", "pay"), {"allOf": [inner, own]}]},
            "Counted": {"allOf": [inner, count], "description": "with a count"},
            "Parts": {"allOf": [{"$ref": "#/components/schemas/Plain"}, count]},
            "Plain": {"type": "object"},
            "OrderBody": {"oneOf": [{"required": ["halt"], "properties": {"halt": form("market", "a")}}]},
        });
        let mut schemas = document.as_object().expect("schemas").clone();
        super::flatten_unions(&mut schemas);
        let titles = |name: &str| -> Vec<String> {
            schemas[name]["oneOf"].as_array().expect("a union").iter().map(|form| form["title"].to_string()).collect()
        };
        assert_eq!(titles("OuterBody"), ["\"PayOuter\"", "\"VenueOpenAllOuter\"", "\"VenueCloseOuter\""]);
        assert_eq!(schemas["OuterBody"]["oneOf"][1]["required"], json!(["action", "type"]));
        assert_eq!(titles("Counted"), ["\"OpenAllCounted\"", "\"CloseCounted\""]);
        assert_eq!(schemas["Counted"]["oneOf"][0]["properties"]["count"], json!({"type": "integer"}));
        assert_eq!(
            (&schemas["Counted"]["allOf"], &schemas["Counted"]["description"]),
            (&json!(null), &json!("with a count"))
        );
        let named = json!({"$ref": "#/components/schemas/HaltOrder"});
        assert_eq!(schemas["OrderBody"]["oneOf"][0]["properties"]["halt"], named);
        assert_eq!(schemas["HaltOrder"], form("market", "a"));
        // What has no union in it stays as it is.
        assert_eq!(schemas["Parts"], document["Parts"]);
    }
}
