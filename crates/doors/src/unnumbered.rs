//! A message of the stream that is written once for all who hear it: each connection adds its own number.

use std::sync::Arc;

use serde_json::Value;

/// The text of a message up to its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unnumbered(Arc<str>);

impl Unnumbered {
    /// Writes a message, an object that is not empty.
    pub(crate) fn of(message: &Value) -> Unnumbered {
        let text = message.to_string();
        Unnumbered(text.strip_suffix('}').unwrap_or(&text).into())
    }

    /// The message of a connection.
    pub(crate) fn numbered(&self, sequence: u64) -> String {
        format!(r#"{},"sequence":{sequence}}}"#, self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_the_message_with_its_number() {
        let message = json!({"type": "book", "text": "a } and a \" {", "levels": [{"price": "1"}]});
        let told: Value = serde_json::from_str(&Unnumbered::of(&message).numbered(7)).expect("JSON");
        let mut wanted = message;
        wanted["sequence"] = 7.into();
        assert_eq!(told, wanted);
    }
}
