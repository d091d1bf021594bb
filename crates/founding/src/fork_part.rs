//! The part of a genesis file about forks of Ethereum.

use ledger::{Fork, ForkSchedule};
use primitives::Height;
use serde::{Deserialize, Serialize};

/// A step of a [`ForkSchedule`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForkPart {
    /// The name of the fork.
    fork: String,
    /// The height of its first block.
    height: Height,
}

impl ForkPart {
    /// All steps of a schedule; none of the usual one.
    pub(crate) fn all_of(schedule: &ForkSchedule) -> Vec<ForkPart> {
        let steps = schedule.steps().iter().filter(|_| !schedule.is_usual());
        steps.map(|(height, fork)| ForkPart { fork: fork.name().into(), height: *height }).collect()
    }

    /// The schedule, or the field and what is wrong with it. No steps are the usual schedule.
    pub(crate) fn read_all(parts: &[ForkPart]) -> Result<ForkSchedule, (String, String)> {
        if parts.is_empty() {
            return Ok(ForkSchedule::default());
        }
        let step = |(at, part): (usize, &ForkPart)| match part.fork.parse::<Fork>() {
            Ok(fork) => Ok((part.height, fork)),
            Err(unknown) => Err((format!("forks[{at}].fork"), unknown.to_string())),
        };
        let steps = parts.iter().enumerate().map(step).collect::<Result<_, _>>()?;
        ForkSchedule::new(steps).map_err(|why| ("forks".into(), why.into()))
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Fork, ForkSchedule, Genesis, Limits};
    use primitives::{Address, Fraction};

    use crate::genesis_file::{read, write};

    #[test]
    fn a_schedule_of_forks_round_trips_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let assets = vec![ledger::Listing::new("USD", 2, Address([1; 20]))];
        let limits = Limits::default().with_contracts(1);
        let usual = Genesis { fee: 1, mu: Fraction::power_of_two(10), assets, limits, ..Genesis::default() };
        write(&path, &usual).expect("written");
        assert!(!std::fs::read_to_string(&path).expect("there").contains("forks"), "an old file reads as before");
        let steps = vec![(0, Fork::Osaka), (1_000, Fork::Bpo1), (2_000, Fork::Bpo2)];
        let genesis = Genesis { forks: ForkSchedule::new(steps).expect("sound"), ..usual.clone() };
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        assert_ne!(genesis.digest(), usual.digest(), "it is part of the chain's identity");
        let text = std::fs::read_to_string(&path).expect("there");
        for (from, to, expected) in [
            ("\"bpo2\"", "\"hogota\"", "forks[2].fork: this program knows the forks osaka, bpo1, bpo2 and amsterdam"),
            ("\"bpo2\"", "\"hogota\"", "start a version of walras that knows it"),
            ("\"height\": 0", "\"height\": 1", "forks: the first begins at height 0"),
            ("\"height\": 2000", "\"height\": 1000", "begins at a greater height"),
            ("\"bpo2\"", "\"amsterdam\"", "only a developers' chain may have it"),
            ("\"height\": 2000", "\"from\": 2000", "from"),
        ] {
            assert!(text.contains(from), "{from}");
            std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
            let message = read(&path).expect_err("refused").to_string();
            assert!(message.contains(expected) && message.contains("genesis.json"), "{message}");
        }
    }
}
