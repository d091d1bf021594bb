//! Refusals in OUCH: a number for programs, and words for people in an option.

use protocols::ouch::{
    OuchCancel, OuchCancelReject, OuchEnter, OuchInbound, OuchMessage, OuchModify, OuchOption, OuchOutbound,
    OuchRejected, OuchReplace,
};

use super::WORDS;

/// The most bytes of an option's value.
const WORDS_MAX: usize = 254;

/// The number of a refusal that is the door's own, and why in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OuchRefusal {
    pub reason: u16,
    pub words: String,
}

impl OuchRefusal {
    pub(crate) fn new(reason: u16, words: impl ToString) -> OuchRefusal {
        OuchRefusal { reason, words: words.to_string() }
    }

    /// The answer to a message of the participant; nothing for what has no number of an order.
    pub(crate) fn of(&self, message: &OuchInbound, nanoseconds: u64) -> Option<OuchMessage<OuchOutbound>> {
        let (user_ref, client_order) = match *message {
            OuchInbound::Enter(OuchEnter { user_ref, client_order, .. })
            | OuchInbound::Replace(OuchReplace { user_ref, client_order, .. }) => (user_ref, client_order),
            OuchInbound::Cancel(OuchCancel { user_ref, .. }) | OuchInbound::Modify(OuchModify { user_ref, .. }) => {
                return Some(not_cancelled(nanoseconds, user_ref, &self.words));
            }
            _ => (message.new_user_ref()?, [b' '; 14]),
        };
        let body = OuchRejected { nanoseconds, user_ref, reason: self.reason, client_order };
        Some(self.said(OuchOutbound::Rejected(body)))
    }

    /// A message with its words.
    pub(super) fn said(&self, body: OuchOutbound) -> OuchMessage<OuchOutbound> {
        said(body, &self.words)
    }
}

/// An order is not cancelled.
pub(super) fn not_cancelled(nanoseconds: u64, user_ref: u32, words: &str) -> OuchMessage<OuchOutbound> {
    said(OuchOutbound::CancelReject(OuchCancelReject { nanoseconds, user_ref }), words)
}

fn said(body: OuchOutbound, words: &str) -> OuchMessage<OuchOutbound> {
    let end = (0..=words.len().min(WORDS_MAX)).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
    let value = words.as_bytes()[..end].to_vec();
    OuchMessage { body, options: Some(vec![OuchOption::Unknown { tag: WORDS, value }]) }
}

/// The words of a message.
pub(crate) fn words_of(options: Option<&[OuchOption]>) -> Option<String> {
    options?.iter().find_map(|option| match option {
        OuchOption::Unknown { tag: WORDS, value } => String::from_utf8(value.clone()).ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_length_fit_into_an_option() {
        for words in ["", "the market is halted", &"ü".repeat(400)] {
            let message = not_cancelled(1, 2, words);
            let mut bytes = Vec::new();
            message.encode(&mut bytes).expect("it fits");
            let read = OuchMessage::<OuchOutbound>::decode(&bytes).expect("just encoded");
            let told = words_of(read.options.as_deref()).expect("words");
            assert!(words.starts_with(&told) && told.len() >= words.len().min(WORDS_MAX - 1));
        }
    }
}
