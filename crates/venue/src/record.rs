//! Records of the journal, and what each came to.
//!
//! The journal is a [`store::Store`]: its "blocks" are records, numbered from 1, and its "receipts" are what each of
//! them came to. All integers are little-endian, in borsh.
//!
//! | record | bytes |
//! |---|---|
//! | first | 0, version 3, [`VenueSettings`] |
//! | others | 1, the time of the step, its inputs, the digest of what it came to |
//!
//! What a record came to: the count of fills before it, its fills ([`VenueFill`]), and the settle that it cut. If one
//! signature holds for the reports of all its fills, the time of the step follows. A record is made after its step, so
//! it states the result that was reported; a replay that comes to another one is refused.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Body, Digest};

use crate::input::VenueInput;
use crate::report::VenueFill;
use crate::settings::VenueSettings;

const FOUNDED: u8 = 0;
const STEP: u8 = 1;
const VERSION: u8 = 3;
const CONTEXT: &str = "walras 2026 venue root outcome v1";

/// A record that was read.
pub(crate) enum JournalRecord {
    Founded(VenueSettings),
    Step { clock_ms: u64, inputs: Vec<VenueInput>, outcome: Digest },
}

fn write(part: &impl BorshSerialize, bytes: &mut Vec<u8>) {
    part.serialize(bytes).expect("writing to memory cannot fail");
}

pub(crate) fn encode_founded(settings: &VenueSettings) -> Vec<u8> {
    let mut bytes = vec![FOUNDED, VERSION];
    write(settings, &mut bytes);
    bytes
}

pub(crate) fn encode_step(clock_ms: u64, inputs: &[VenueInput], outcome: &[u8], bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.push(STEP);
    write(&clock_ms, bytes);
    write(&inputs, bytes);
    write(&outcome_digest(outcome), bytes);
}

pub(crate) fn decode(bytes: &[u8]) -> Result<JournalRecord, String> {
    match bytes {
        [FOUNDED, VERSION, rest @ ..] => borsh::from_slice(rest).map(JournalRecord::Founded).map_err(text),
        [FOUNDED, version, ..] => Err(format!("its format has version {version}, and this program reads {VERSION}")),
        [STEP, rest @ ..] => {
            let (clock_ms, inputs, outcome) = borsh::from_slice(rest).map_err(text)?;
            Ok(JournalRecord::Step { clock_ms, inputs, outcome })
        }
        _ => Err("it is of no known kind".into()),
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

pub(crate) fn outcome_digest(outcome: &[u8]) -> Digest {
    Digest::of(CONTEXT, outcome)
}

/// What a record came to, with the clock of [`crate::machine::VenueMachine::step_clock`].
pub(crate) fn encode_outcome(
    before: u64,
    fills: &[VenueFill],
    cut: &Option<Body>,
    step_clock: Option<u64>,
    bytes: &mut Vec<u8>,
) {
    bytes.clear();
    write(&before, bytes);
    write(&fills, bytes);
    write(cut, bytes);
    step_clock.iter().for_each(|clock_ms| write(clock_ms, bytes));
}

/// How many fills were made before a record, by what it came to.
pub(crate) fn fills_before(outcome: &[u8]) -> Option<u64> {
    outcome.first_chunk().map(|first| u64::from_le_bytes(*first))
}

/// The fills of a record, and the clock under which one signature holds for all of their reports.
pub(crate) fn fills_of(mut outcome: &[u8]) -> Result<(Vec<VenueFill>, Option<u64>), String> {
    let (_, fills, _): (u64, Vec<VenueFill>, Option<Body>) =
        BorshDeserialize::deserialize(&mut outcome).map_err(text)?;
    let is_single = outcome.is_empty();
    let clock_ms = (!is_single).then(|| borsh::from_slice(outcome)).transpose().map_err(text)?;
    Ok((fills, clock_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_another_version_is_refused_by_number() {
        for version in [0, VERSION + 1] {
            let error = decode(&[FOUNDED, version, 1, 2, 3]).err();
            let wanted = format!("its format has version {version}, and this program reads {VERSION}");
            assert_eq!(error, Some(wanted));
        }
        assert_eq!(decode(&[9, VERSION]).err().as_deref(), Some("it is of no known kind"));
    }
}
