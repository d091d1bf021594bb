//! Whether a run can test a claim at all: its size, and what else the machine did.
//!
//! A claim that a busy machine or a run of seconds decides by chance is *not tested* there, and says why. What a run had
//! is read from its provenance, so that rows of a file are judged as they were when they were taken.

use serde_json::Value;

use super::chart::cell_text;

/// What a run must have for a claim to be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimNeeds {
    /// Rows alone.
    Rows,
    /// Free processors: a load of at most one a core before, and a core for each thread.
    Quiet,
    /// The full size.
    Full,
    /// Both.
    FullAndQuiet,
}

/// What a run had.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCircumstances {
    is_small: bool,
    /// The most threads that it used.
    threads: u64,
    cores: u64,
    /// The load of the minute before.
    load: f64,
}

impl RunCircumstances {
    /// Those of a run with this provenance. A size that it does not tell is small; a load that it does not tell is none.
    pub fn of(provenance: &Value) -> RunCircumstances {
        let threads = provenance["threads"].as_array().into_iter().flatten().filter_map(Value::as_u64).max();
        RunCircumstances {
            is_small: provenance["size"] != "full",
            threads: threads.unwrap_or(1),
            cores: provenance["cores"].as_u64().unwrap_or(1),
            load: provenance["load_before"][0].as_f64().unwrap_or(0.0),
        }
    }

    /// Why such a run cannot test what has these needs.
    pub fn lack(&self, needs: ClaimNeeds) -> Option<String> {
        let RunCircumstances { is_small, threads, cores, load } = *self;
        let (full, quiet) = match needs {
            ClaimNeeds::Rows => (false, false),
            ClaimNeeds::Quiet => (false, true),
            ClaimNeeds::Full => (true, false),
            ClaimNeeds::FullAndQuiet => (true, true),
        };
        if full && is_small {
            return Some("chance decides it at this size; `--size full` tests it".into());
        }
        if quiet && threads > cores {
            return Some(format!("{threads} threads have {cores} cores"));
        }
        (quiet && load > cores as f64)
            .then(|| format!("a load of {} on {cores} cores decides it", cell_text(&load.into())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_lacks_its_size_its_cores_or_its_quiet() {
        let run = |size: &str, threads: u64, load: f64| {
            let provenance = json!({ "size": size, "threads": [1, threads], "cores": 2, "load_before": [load, 9, 9] });
            RunCircumstances::of(&provenance)
        };
        let lacks = |run: RunCircumstances| {
            let all = [ClaimNeeds::Rows, ClaimNeeds::Quiet, ClaimNeeds::Full, ClaimNeeds::FullAndQuiet];
            all.map(|needs| run.lack(needs).is_some())
        };
        assert_eq!(lacks(run("full", 2, 2.0)), [false; 4]);
        assert_eq!(lacks(run("full", 2, 2.1)), [false, true, false, true]);
        assert_eq!(lacks(run("full", 3, 0.0)), [false, true, false, true]);
        assert_eq!(lacks(run("small", 2, 0.0)), [false, false, true, true]);
        assert_eq!(lacks(RunCircumstances::of(&json!({}))), [false, false, true, true], "nothing is told");
    }
}
