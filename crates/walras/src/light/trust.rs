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

use anyhow::{Context, ensure};
use consensus::Chain;
use node::Lineage;
use primitives::{Digest, Height, PublicKey};
use serde_json::{Value, json};

use crate::durable::write_durable;

/// A height and the root of the state after it, from a trusted source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    pub height: Height,
    pub state: Digest,
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Pin, String> {
        let form = || format!("{text:?} is not HEIGHT:DIGEST, such as 1200:0x6e0b…; `walras light pin` prints one");
        let (height, state) = text.split_once(':').ok_or_else(form)?;
        Ok(Pin { height: height.parse().map_err(|_| form())?, state: state.parse().map_err(|_| form())? })
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}", self.height, self.state)
    }
}

/// Reads a span of time: a number and s, m, h or d.
pub fn span(text: &str) -> Result<Duration, String> {
    let form = || format!("{text:?} is not a span of time; write a number with s, m, h or d, such as 12h");
    let unit = text.char_indices().next_back().ok_or_else(form)?;
    let seconds: u64 = match unit.1 {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(form()),
    };
    let number: u64 = text[..unit.0].parse().map_err(|_| form())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(form)
}

/// Where a client starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// From the founders.
    Genesis,
    /// From what it proved before, at this time.
    Memory { proved_ms: u64 },
    /// From a pin.
    Pin,
}

impl Beginning {
    pub fn name(self) -> &'static str {
        match self {
            Beginning::Genesis => "genesis",
            Beginning::Memory { .. } => "memory",
            Beginning::Pin => "pin",
        }
    }

    /// Refuses a proof that is older than the trust period.
    pub fn check_age(self, now_ms: u64, period: Duration) -> anyhow::Result<()> {
        let Beginning::Memory { proved_ms } = self else { return Ok(()) };
        let age = Duration::from_millis(now_ms.abs_diff(proved_ms));
        ensure!(
            age <= period,
            "the remembered committee was proved {} hours ago, and the trust period is {} hours: its validators may \
             have sold their keys since. Ask somebody you trust for a pin (`walras light pin` at a node of \
             theirs), and give it as --trust HEIGHT:DIGEST",
            age.as_secs() / 3_600,
            period.as_secs() / 3_600
        );
        Ok(())
    }
}

/// The last epoch whose certificates count for a client that started from the committee of `from`: as long as that
/// committee's stakes can be punished.
pub fn last_epoch(from: u64, unbonding_epochs: u64) -> u64 {
    from.saturating_add(unbonding_epochs)
}

/// Refuses an epoch that is proved by keys whose stakes have been paid back.
pub fn check_epoch(base: Beginning, from: u64, epoch: u64, unbonding_epochs: u64) -> anyhow::Result<()> {
    ensure!(
        epoch <= last_epoch(from, unbonding_epochs),
        "the answer is of epoch {epoch}, and this client starts from the validators of epoch {from} ({}): their stakes \
         have been paid back since, so their keys prove nothing any more. Ask somebody you trust for a pin \
         (`walras light pin` at a node of theirs), and give it as --trust HEIGHT:DIGEST",
        base.name()
    );
    Ok(())
}

/// Refuses a newest state that is too old.
pub fn check_freshness(height: Height, time_ms: u64, now_ms: u64, max_age: Duration) -> anyhow::Result<()> {
    let off = Duration::from_millis(now_ms.abs_diff(time_ms));
    let when = if time_ms > now_ms { "ahead of this machine's clock" } else { "old" };
    ensure!(
        off <= max_age,
        "block {height}, the newest that the node shows, is {} seconds {when}: the node lags or hides later blocks, \
         the network has stalled, or this machine's clock is wrong. Ask another --server, set the clock, or accept it \
         with a larger --max-age",
        off.as_secs()
    );
    Ok(())
}

/// This machine's clock.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Continues from a committee that was proved before; returns when that was.
pub fn recall(path: &Path, lineage: &mut Lineage) -> anyhow::Result<Beginning> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| name.to_string())?;
    let remembered: Value = serde_json::from_str(&text).with_context(|| name.to_string())?;
    let network = lineage.chain.genesis;
    ensure!(
        remembered["network"] == network.to_string(),
        "{name}: belongs to another network than the genesis: give another --remember, or the matching genesis"
    );
    let number = |field: &str| remembered[field].as_u64().with_context(|| format!("{name}: has no {field}"));
    let (epoch, proved_ms) = (number("epoch")?, number("proved_ms")?);
    let keys = remembered["keys"].as_array().with_context(|| format!("{name}: has no keys"))?;
    let keys: Option<Vec<PublicKey>> = keys.iter().map(|key| key.as_str()?.parse().ok()).collect();
    let keys = keys.filter(|keys| (1..=consensus::MEMBERS_MAX).contains(&keys.len()));
    let keys = keys.with_context(|| format!("{name}: invalid keys"))?;
    let heights = lineage.schedule.first_height(epoch)..=lineage.schedule.last_height(epoch);
    lineage.chain = Chain { genesis: network, epoch, heights, keys };
    Ok(Beginning::Memory { proved_ms })
}

/// Continues from a committee that was proved not longer ago than the trust period, if committees change.
pub fn recall_fresh(path: &Path, lineage: &mut Lineage, period: Duration) -> anyhow::Result<Beginning> {
    let base = recall(path, lineage)?;
    if !lineage.schedule.is_fixed() {
        base.check_age(now_ms(), period)?;
    }
    Ok(base)
}

/// Stores a committee that was proved now.
pub fn remember(path: &Path, chain: &Chain) -> anyhow::Result<()> {
    let Chain { genesis, epoch, keys, .. } = chain;
    let keys: Vec<String> = keys.iter().map(PublicKey::to_string).collect();
    let text =
        json!({ "network": genesis.to_string(), "epoch": epoch, "keys": keys, "proved_ms": now_ms() }).to_string();
    Ok(write_durable(path, (text + "\n").as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn pins_and_spans_are_read_as_they_are_written() {
        let pin = Pin { height: 1_200, state: Digest([7; 32]) };
        assert_eq!(pin.to_string().parse(), Ok(pin));
        for wrong in ["", "1200", "1200:", ":0x07", "x:0x07", "1200:0x07"] {
            assert!(wrong.parse::<Pin>().is_err_and(|error| error.contains("walras light pin")), "{wrong}");
        }
        assert_eq!(span("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(span("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for wrong in ["", "7", "d", "-1d", "1w", "99999999999999999999d", "18446744073709551615d"] {
            assert!(span(wrong).is_err(), "{wrong}");
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
            assert!(checked.err().is_none_or(|error| error.to_string().contains("--trust HEIGHT:DIGEST")));
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
}
