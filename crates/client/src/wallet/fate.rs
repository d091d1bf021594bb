//! The fate of a transaction.

use api::{OutcomeBody, TransactionBody};
use primitives::TransactionId;

use crate::error::ClientError;
use crate::node::NodeClient;

/// What is known of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It is in a block.
    Committed(Box<TransactionBody>),
    /// It is in a block without effect.
    Refused(Box<TransactionBody>),
    /// It is pending, with the problem if there is one.
    Waiting(Option<String>),
    /// The node refused it when it was submitted, with the reason, and knows of no other copy.
    TurnedAway(String),
    /// The node does not know it or does not answer, with the reason if it is known.
    Unknown(Option<String>),
}

impl Fate {
    /// What a node knows about a transaction.
    ///
    /// # Errors
    /// [`ClientError`] if it does not answer.
    pub fn of(node: &NodeClient, id: &TransactionId) -> Result<Fate, ClientError> {
        let body = match node.transaction(id) {
            Ok(body) => body,
            Err(ClientError::Refused { status: 404, code, message, .. }) if code == "refused" => {
                return Ok(Fate::TurnedAway(message));
            }
            Err(error) if error.is_absence() => return Ok(Fate::Unknown(None)),
            Err(error) => return Err(error),
        };
        Ok(match (&*body.status, &body.outcome) {
            ("pending", _) => Fate::Waiting(node.status()?.stalled),
            ("committed", Some(OutcomeBody::Refused { .. })) => Fate::Refused(Box::new(body)),
            ("committed", _) => Fate::Committed(Box::new(body)),
            // A status that this version does not know is no result.
            (other, _) => return Err(node.foreign(&format!("a transaction is {other:?}"))),
        })
    }

    /// Whether a block has decided it. What was refused may be sent again, by anybody, until it ends.
    pub fn is_final(&self) -> bool {
        matches!(self, Fate::Committed(_) | Fate::Refused(_))
    }
}
