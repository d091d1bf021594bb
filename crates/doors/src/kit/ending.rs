//! How connections of streams end.

use std::borrow::Cow;
use std::time::Duration;

use axum::extract::ws::close_code;

/// How long a connection stays open after a message that is too long: its rest is not read, and to close at once would
/// destroy the reason on its way to the client.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// The close code and the reason for a client whose message cannot be read; `None` if its connection is broken.
/// Messages have at most `limit` bytes.
pub(crate) fn ended_by(error: axum::Error, limit: usize) -> Option<(u16, Cow<'static, str>)> {
    match *error.into_inner().downcast::<tungstenite::Error>().ok()? {
        tungstenite::Error::Capacity(_) => {
            let reason = format!("a message has at most {limit} bytes, see /v1/limits: send shorter ones");
            Some((close_code::SIZE, reason.into()))
        }
        tungstenite::Error::Utf8(_) => Some((close_code::INVALID, "a text message is UTF-8".into())),
        tungstenite::Error::Protocol(_) => Some((close_code::PROTOCOL, "not the WebSocket protocol".into())),
        _ => None,
    }
}
