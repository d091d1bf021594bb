//! The calls of each load, and their times.

use std::path::Path;
use std::time::Duration;

use ledger::contracts::ethereum::keccak256;
use yaml_rust2::{Yaml, YamlLoader};

use super::DiabloError;

/// Bytes of a video: a longer one would only load the network.
const VIDEO_BYTES: usize = 1_000;

/// A contract with its calls, and their gas.
pub(super) struct Program {
    /// The code that creates the contract.
    pub code: &'static str,
    /// Gas that a call declares.
    pub gas: u64,
    /// The input of each call.
    pub input: fn(u64) -> Vec<u8>,
}

fn call(signature: &str, words: &[u64]) -> Vec<u8> {
    let mut data = keccak256(signature)[..4].to_vec();
    words.iter().for_each(|word| data.extend([&[0; 24][..], &word.to_be_bytes()].concat()));
    data
}

const STOCKS: [&str; 5] = ["buyApple()", "buyAmazon()", "buyFacebook()", "buyGoogle()", "buyMicrosoft()"];

/// The contract of a load, and the call of each number.
pub(super) fn program(load: &str) -> Option<Program> {
    let exchange = |input| Program { code: include_str!("../../contracts/Exchange.hex"), gas: 60_000, input };
    Some(match load {
        "gafam" => exchange(|number| call(STOCKS[(number % 5) as usize], &[])),
        "apple" => exchange(|_| call(STOCKS[0], &[])),
        "amazon" => exchange(|_| call(STOCKS[1], &[])),
        "facebook" => exchange(|_| call(STOCKS[2], &[])),
        "google" => exchange(|_| call(STOCKS[3], &[])),
        "microsoft" => exchange(|_| call(STOCKS[4], &[])),
        "football" => {
            Program { code: include_str!("../../contracts/Counter.hex"), gas: 60_000, input: |_| call("add()", &[]) }
        }
        "dota" => Program {
            code: include_str!("../../contracts/Game.hex"),
            gas: 500_000,
            input: |number| call("update(int256,int256)", &[number % 7, number % 11]),
        },
        "uber" => Program {
            code: include_str!("../../contracts/Rides.hex"),
            gas: 1_000_000,
            input: |number| call("find(uint256,uint256)", &[number * 31 % 10_000, number * 17 % 10_000]),
        },
        "youtube" => Program {
            code: include_str!("../../contracts/Videos.hex"),
            gas: 150_000,
            input: |number| {
                let words = [32, VIDEO_BYTES as u64];
                let mut data = call("upload(bytes)", &words);
                data.extend((0..VIDEO_BYTES.next_multiple_of(32) as u64).map(|byte| (byte * 7 + number) as u8));
                data
            },
        },
        _ => return None,
    })
}

/// The times of calls: from second `steps[i].0` on, `steps[i].1` in each second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan(Vec<(u64, u64)>);

impl Plan {
    pub fn read(data: &Path, load: &str) -> Result<Plan, DiabloError> {
        let path = data.join(format!("workload-{load}.yaml"));
        let named = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| DiabloError::Unreadable { path: named.clone(), reason: error.to_string() })?;
        Plan::parse(&text).map_err(|reason| DiabloError::Malformed { path: named, reason })
    }

    fn parse(text: &str) -> Result<Plan, &'static str> {
        let documents = YamlLoader::load_from_str(text).map_err(|_| "it is not YAML")?;
        let steps = documents.first().and_then(|document| document["txs"].as_hash()).ok_or("it has no `txs`")?;
        let number = |value: &Yaml| value.as_i64().and_then(|value| u64::try_from(value).ok());
        let steps: Option<Vec<(u64, u64)>> =
            steps.iter().map(|(second, rate)| Some((number(second)?, number(rate)?))).collect();
        let steps = steps.ok_or("`txs` contains a value that is not a number")?;
        if !steps.is_sorted_by(|a, b| a.0 < b.0) {
            return Err("its seconds are not in ascending order");
        }
        match steps.last() {
            Some((_, 0)) => Ok(Plan(steps)),
            _ => Err("it does not end with a rate of 0"),
        }
    }

    /// Seconds with their rates.
    fn seconds(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.windows(2).flat_map(|step| (step[0].0..step[1].0).map(move |second| (second, step[0].1)))
    }

    /// The time of each call.
    pub fn times(&self) -> impl Iterator<Item = Duration> + '_ {
        self.seconds().flat_map(|(second, rate)| {
            (0..rate).map(move |number| Duration::from_secs_f64(second as f64 + number as f64 / rate as f64))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_step_function() {
        let plan = Plan::parse("id: x\ntxs:\n    0: 3\n    2: 1\n    4: 0\n").expect("sound");
        assert_eq!(plan.seconds().collect::<Vec<_>>(), [(0, 3), (1, 3), (2, 1), (3, 1)]);
        assert_eq!((plan.times().count(), plan.times().nth(3)), (8, Some(Duration::from_secs(1))));
        for (text, why) in [
            ("id: x", "it has no `txs`"),
            ("txs:\n  0: 3\n", "it does not end with a rate of 0"),
            ("txs:\n  2: 3\n  1: 0\n", "its seconds are not in ascending order"),
            ("txs:\n  0: -3\n  1: 0\n", "`txs` contains a value that is not a number"),
            ("txs: {", "it is not YAML"),
        ] {
            assert_eq!(Plan::parse(text), Err(why), "{text}");
        }
    }
}
