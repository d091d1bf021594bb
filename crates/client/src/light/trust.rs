//! What a light client trusts, for how long, and where it starts.
//!
//! Signatures alone prove nothing: an attacker who has bought the keys of validators that have left can sign another
//! history from their epoch on, at no risk. The validators' stake prevents this: it can be punished until
//! `unbonding_epochs` epochs after the last one in which it counted. So a client that starts from the committee of an
//! epoch follows it no further than that, and only if its last run is not longer ago than its trust period, which
//! must be shorter than those epochs take. After that it starts from a *pin* that a trusted source gives it: a
//! height, and the root of the state after it.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use primitives::{Digest, Height, PublicKey};
use proofs::{Chain, Lineage, MEMBERS_MAX};
use serde::{Deserialize, Serialize};

use super::error::LightError;
use crate::durable::write_durable;
use crate::error::ClientError;

/// A height and the root of the state after it, from a trusted source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The height.
    pub height: Height,
    /// The state root after it.
    pub state: Digest,
}

/// A text is no pin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not HEIGHT:DIGEST, such as 1200:0x6e0b…")]
pub struct PinError(String);

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Pin, PinError> {
        let form = || PinError(text.into());
        let (height, state) = text.split_once(':').ok_or_else(form)?;
        Ok(Pin { height: height.parse().map_err(|_| form())?, state: state.parse().map_err(|_| form())? })
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.height, self.state)
    }
}

/// Where a client starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// From the founders.
    Genesis,
    /// From what it proved before, at this time (milliseconds since 1970).
    Memory {
        /// The time.
        proved_ms: u64,
    },
    /// From a pin.
    Pin,
}

impl Beginning {
    /// A stable word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Beginning::Genesis => "genesis",
            Beginning::Memory { .. } => "memory",
            Beginning::Pin => "pin",
        }
    }

    /// Refuses a proof that is older than the trust period.
    ///
    /// # Errors
    /// [`LightError::OldTrust`].
    pub fn check_age(self, now_ms: u64, period: Duration) -> Result<(), LightError> {
        let Beginning::Memory { proved_ms } = self else { return Ok(()) };
        let age = Duration::from_millis(now_ms.abs_diff(proved_ms));
        if age <= period { Ok(()) } else { Err(LightError::OldTrust { age, period }) }
    }
}

/// The last epoch whose certificates count for a client that started from the committee of `from`: as long as that
/// committee's stakes can be punished.
pub fn last_epoch(from: u64, unbonding_epochs: u64) -> u64 {
    from.saturating_add(unbonding_epochs)
}

/// Refuses an epoch that is proved by keys whose stakes have been paid back.
///
/// # Errors
/// [`LightError::PaidBack`].
pub fn check_epoch(base: Beginning, from: u64, epoch: u64, unbonding_epochs: u64) -> Result<(), LightError> {
    let begun_with = base.name();
    let counts = epoch <= last_epoch(from, unbonding_epochs);
    if counts { Ok(()) } else { Err(LightError::PaidBack { epoch, from, begun_with }) }
}

/// Refuses a newest state that is too old.
///
/// # Errors
/// [`LightError::Stale`].
pub fn check_freshness(height: Height, time_ms: u64, now_ms: u64, max_age: Duration) -> Result<(), LightError> {
    let (off, is_ahead) = (Duration::from_millis(now_ms.abs_diff(time_ms)), time_ms > now_ms);
    if off <= max_age { Ok(()) } else { Err(LightError::Stale { height, off, is_ahead }) }
}

/// This machine's clock, milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A committee that was proved, as it is stored.
#[derive(Serialize, Deserialize)]
struct Remembered {
    epoch: u64,
    keys: Vec<String>,
    network: String,
    proved_ms: u64,
}

/// Continues from a committee that was proved before; returns when that was.
///
/// # Errors
/// [`LightError`]: the file cannot be used, or is of another network.
pub fn recall(path: &Path, lineage: &mut Lineage) -> Result<Beginning, LightError> {
    let damaged = |what: String| ClientError::contents(path, what);
    let bytes = std::fs::read(path).map_err(|cause| ClientError::file(path, "cannot be read", cause))?;
    let kept: Remembered = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let network = lineage.chain.genesis;
    if kept.network != network.to_string() {
        return Err(LightError::OtherMemory { file: path.display().to_string(), network });
    }
    let keys: Option<Vec<PublicKey>> = kept.keys.iter().map(|key| key.parse().ok()).collect();
    let keys = keys.filter(|keys| (1..=MEMBERS_MAX).contains(&keys.len()));
    let keys = keys.ok_or_else(|| damaged("has invalid keys: remove it to start anew".into()))?;
    let heights = lineage.schedule.first_height(kept.epoch)..=lineage.schedule.last_height(kept.epoch);
    lineage.chain = Chain { genesis: network, epoch: kept.epoch, heights, keys };
    Ok(Beginning::Memory { proved_ms: kept.proved_ms })
}

/// Continues from a committee that was proved not longer ago than the trust period, if committees change.
///
/// # Errors
/// [`LightError`].
pub fn recall_fresh(path: &Path, lineage: &mut Lineage, period: Duration) -> Result<Beginning, LightError> {
    let base = recall(path, lineage)?;
    if !lineage.schedule.is_fixed() {
        base.check_age(now_ms(), period)?;
    }
    Ok(base)
}

/// Stores a committee that was proved now.
///
/// # Errors
/// [`ClientError::File`].
pub fn remember(path: &Path, chain: &Chain) -> Result<(), ClientError> {
    let keys = chain.keys.iter().map(PublicKey::to_string).collect();
    let kept = Remembered { epoch: chain.epoch, keys, network: chain.genesis.to_string(), proved_ms: now_ms() };
    let text = serde_json::to_string(&kept).expect("plain fields");
    write_durable(path, (text + "\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn pins_are_read_as_they_are_written() {
        let pin = Pin { height: 1_200, state: Digest([7; 32]) };
        assert_eq!(pin.to_string().parse(), Ok(pin));
        for wrong in ["", "1200", "1200:", ":0x07", "x:0x07", "1200:0x07"] {
            assert!(wrong.parse::<Pin>().is_err_and(|error| error.to_string().contains("HEIGHT:DIGEST")), "{wrong}");
        }
    }

    #[test]
    fn stakes_that_are_paid_back_prove_nothing() {
        for (from, epoch, unbonding, holds) in [
            (0, 0, 0, true),
            (0, 1, 0, false),
            (0, 2, 2, true),
            (0, 3, 2, false),
            (7, 9, 2, true),
            (7, u64::MAX, 2, false),
        ] {
            let checked = check_epoch(Beginning::Genesis, from, epoch, unbonding);
            assert_eq!(checked.is_ok(), holds, "{from} {epoch} {unbonding}");
            assert!(checked.err().is_none_or(|error| matches!(error, LightError::PaidBack { .. })));
        }
        assert!(check_epoch(Beginning::Genesis, u64::MAX, u64::MAX, u64::MAX).is_ok());
    }

    #[test]
    fn what_was_proved_long_ago_is_proved_anew() {
        let period = Duration::from_secs(7 * 86_400);
        let check = |base: Beginning| base.check_age(100 * DAY_MS, period);
        assert!(check(Beginning::Memory { proved_ms: 93 * DAY_MS }).is_ok());
        assert!(check(Beginning::Memory { proved_ms: 93 * DAY_MS - 1 }).is_err());
        // Setting the clock back makes nothing younger.
        assert!(check(Beginning::Memory { proved_ms: 108 * DAY_MS }).is_err());
        assert!(check(Beginning::Pin).is_ok() && check(Beginning::Genesis).is_ok());
    }

    #[test]
    fn old_answers_and_wrong_clocks_are_named() {
        let check = |time_ms, now_ms| check_freshness(9, time_ms, now_ms, Duration::from_secs(600));
        assert!(check(1_000_000, 1_600_000).is_ok() && check(1_600_000, 1_000_000).is_ok());
        assert!(check(1_000_000, 1_600_001).is_err_and(|error| error.to_string().contains("old")));
        assert!(check(u64::MAX, 0).is_err_and(|error| error.to_string().contains("ahead of this machine's clock")));
    }

    #[test]
    fn a_remembered_committee_is_recalled_by_its_network_alone() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("committee.json");
        let schedule = proofs::Schedule { epoch_heights: 10, delay: 2 };
        let heights = schedule.first_height(3)..=schedule.last_height(3);
        let chain = Chain { genesis: Digest([9; 32]), epoch: 3, heights, keys: vec![PublicKey([4; 32])] };
        remember(&path, &chain).expect("written");
        let start = |genesis| {
            let chain = Chain { genesis, epoch: 0, heights: 1..=12, keys: vec![PublicKey([5; 32])] };
            Lineage { schedule, lag: 1, begins: 0, chain }
        };
        let mut lineage = start(Digest([9; 32]));
        let base = recall_fresh(&path, &mut lineage, Duration::from_secs(60)).expect("fresh");
        assert!(matches!(base, Beginning::Memory { .. }) && lineage.chain == chain, "{lineage:?}");
        let mut other = start(Digest([8; 32]));
        assert!(matches!(recall(&path, &mut other), Err(LightError::OtherMemory { .. })));
        assert_eq!(other, start(Digest([8; 32])), "nothing is taken from it");
        std::fs::write(&path, b"{}").expect("writable");
        let damaged = recall(&path, &mut lineage).expect_err("no committee");
        assert!(damaged.to_string().contains("committee.json"), "{damaged}");
    }
}
