//! What server and client count alike: who was heard when, and what the socket has not taken.

use super::{HEARTBEAT_MS, SoupError, SoupPacket, SoupReject, TIMEOUT_MS};

/// Bounds of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoupLimits {
    /// The most bytes of a packet from the other side, type and payload.
    pub packet_max: u16,
    /// No message is added while so many bytes wait for the socket; so at most one packet more than this waits.
    pub unsent_max: usize,
    /// Milliseconds after which a silent or stalled side is given up.
    pub timeout_ms: u64,
}

impl Default for SoupLimits {
    fn default() -> SoupLimits {
        SoupLimits { packet_max: 4_096, unsent_max: 262_144, timeout_ms: TIMEOUT_MS }
    }
}

/// Why a connection is closed, once the bytes before it are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoupClose {
    /// The client left.
    #[error("the client logged out")]
    Logout,
    /// The session is over.
    #[error("the session ended")]
    Ended,
    /// The login was refused.
    #[error("the login was refused: {0:?}")]
    Refused(SoupReject),
    /// No login came in time.
    #[error("no login arrived within {0} ms")]
    LoginLate(u64),
    /// Nothing was heard.
    #[error("no packet arrived for {0} ms")]
    Silent(u64),
    /// The socket took nothing.
    #[error("the other side read nothing for {ms} ms; {unsent} bytes wait")]
    Stalled {
        /// For so long.
        ms: u64,
        /// Bytes that wait.
        unsent: usize,
    },
    /// The server forgot messages before they were sent.
    #[error("the other side reads too slowly: message {next} is forgotten, the first kept is {first}")]
    Behind {
        /// The number that is due.
        next: u64,
        /// The first that is there.
        first: u64,
    },
    /// The server accepts another session or number than the client asked for.
    #[error("the login was accepted from message {has}, not {needs}, or for another session")]
    Mismatch {
        /// The number that was asked for.
        needs: u64,
        /// The number that was accepted.
        has: u64,
    },
    /// A packet is wrong.
    #[error(transparent)]
    Invalid(#[from] SoupError),
}

/// The counts of one connection.
#[derive(Clone, Debug)]
pub(super) struct SoupLink {
    pub(super) limits: SoupLimits,
    /// When the last whole packet came, or the connection began.
    heard_ms: u64,
    /// When the last bytes were given to send.
    spoke_ms: u64,
    /// When the socket last took bytes, or nothing waited.
    took_ms: u64,
    /// Bytes that wait for the socket.
    unsent: usize,
}

impl SoupLink {
    pub(super) fn new(limits: SoupLimits, now_ms: u64) -> SoupLink {
        SoupLink { limits, heard_ms: now_ms, spoke_ms: now_ms, took_ms: now_ms, unsent: 0 }
    }

    /// A whole packet came. Parts of one do not count: who sends a byte now and then is silent.
    pub(super) fn hear(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    /// The socket took bytes.
    pub(super) fn took(&mut self, now_ms: u64, bytes: usize) {
        self.unsent = self.unsent.saturating_sub(bytes);
        self.took_ms = now_ms;
    }

    /// Whether one more packet may wait, beside `more` bytes.
    pub(super) fn has_room(&self, more: usize) -> bool {
        self.unsent + more < self.limits.unsent_max
    }

    /// Counts bytes that are given to send.
    pub(super) fn speak(&mut self, now_ms: u64, bytes: Vec<u8>) -> Vec<u8> {
        if self.unsent == 0 {
            self.took_ms = now_ms;
        }
        self.unsent += bytes.len();
        self.spoke_ms = now_ms;
        bytes
    }

    /// Counts a packet that is given to send.
    pub(super) fn packet(&mut self, now_ms: u64, packet: &SoupPacket<'_>) -> Result<Vec<u8>, SoupError> {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes)?;
        Ok(self.speak(now_ms, bytes))
    }

    /// Whether a heartbeat is due. Where bytes wait it would tell nothing that they do not.
    pub(super) fn is_beat_due(&self, now_ms: u64) -> bool {
        self.unsent == 0 && now_ms.saturating_sub(self.spoke_ms) >= HEARTBEAT_MS
    }

    /// Whether the other side still reads and, within `timeout_ms`, speaks.
    pub(super) fn check(&self, now_ms: u64, timeout_ms: u64) -> Result<(), SoupClose> {
        let (silent, stalled) = (now_ms.saturating_sub(self.heard_ms), now_ms.saturating_sub(self.took_ms));
        if silent >= timeout_ms {
            return Err(SoupClose::Silent(silent));
        }
        if self.unsent > 0 && stalled >= self.limits.timeout_ms {
            return Err(SoupClose::Stalled { ms: stalled, unsent: self.unsent });
        }
        Ok(())
    }

    /// When the other side is given up if nothing happens.
    pub(super) fn give_up_ms(&self, timeout_ms: u64) -> u64 {
        let stalled = if self.unsent > 0 { self.took_ms.saturating_add(self.limits.timeout_ms) } else { u64::MAX };
        stalled.min(self.heard_ms.saturating_add(timeout_ms))
    }

    /// When a heartbeat is due if nothing happens.
    pub(super) fn beat_ms(&self) -> u64 {
        if self.unsent > 0 { u64::MAX } else { self.spoke_ms.saturating_add(HEARTBEAT_MS) }
    }
}
