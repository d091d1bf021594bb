//! `--fork`: a step of the schedule by which contracts run under Ethereum's forks.

use std::str::FromStr;

use anyhow::Context;
use ledger::{Fork, ForkSchedule};
use primitives::Height;

/// A fork, and the height of its first block: `bpo1@1000`, or `osaka`, which begins with the genesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkArg(Height, Fork);

impl FromStr for ForkArg {
    type Err = String;

    fn from_str(text: &str) -> Result<ForkArg, String> {
        let (name, height) = text.split_once('@').unwrap_or((text, "0"));
        let wrong = || format!("{height:?} is no height: write FORK@HEIGHT, such as bpo1@1000");
        let height = height.parse().ok().ok_or_else(wrong)?;
        Ok(ForkArg(height, name.parse().map_err(|unknown: ledger::UnknownFork| unknown.to_string())?))
    }
}

/// The schedule of these steps. Unless one begins with the genesis, Osaka does.
pub fn schedule(given: &[ForkArg]) -> anyhow::Result<ForkSchedule> {
    let mut steps: Vec<(Height, Fork)> = given.iter().map(|ForkArg(height, fork)| (*height, *fork)).collect();
    steps.sort_unstable();
    if steps.first().is_none_or(|(height, _)| *height > 0) {
        steps.insert(0, (0, Fork::Osaka));
    }
    ForkSchedule::new(steps).map_err(anyhow::Error::msg).context("--fork")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_written_as_forks_with_heights() {
        let read = |all: &[&str]| {
            let given: Vec<ForkArg> = all.iter().map(|one| one.parse()).collect::<Result<_, _>>()?;
            schedule(&given).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(read(&[]), Ok(ForkSchedule::default()));
        let steps = vec![(0, Fork::Osaka), (10, Fork::Bpo1), (20, Fork::Bpo2)];
        assert_eq!(read(&["bpo2@20", "bpo1@10"]), Ok(ForkSchedule::new(steps).expect("sound")));
        assert_eq!(read(&["amsterdam"]).expect("sound").steps(), [(0, Fork::Amsterdam)]);
        for (wrong, why) in [
            (&["fusaka"][..], "start a version of walras that knows it"),
            (&["bpo1@soon"], "such as bpo1@1000"),
            (&["bpo1@10", "bpo2@10"], "begins at a greater height"),
            (&["bpo2@10", "bpo1@20"], "a later fork"),
        ] {
            let message = read(wrong).expect_err("refused");
            assert!(message.contains(why), "{message}");
        }
    }
}
