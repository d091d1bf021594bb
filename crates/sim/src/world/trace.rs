//! A digest over all events of a run.

/// BLAKE3 over all events: the same seed gives the same one.
#[derive(Default)]
pub(crate) struct Trace(blake3::Hasher);

impl Trace {
    /// An event with a number that tells it from others of its kind.
    pub fn note(&mut self, event: &str, number: u64) {
        self.0.update(event.as_bytes()).update(&number.to_le_bytes());
    }

    /// What an event brought.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// In hexadecimal.
    pub fn digest(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}
