//! Whether a run can test a claim at all: its size, and what else the machine did.
//!
//! A claim that a busy machine or a run of seconds decides by chance is *not tested* there, and says why. What a run
//! had is read from its provenance, so that rows of a file are judged as they were when they were taken.

use serde_json::Value;

use super::chart::cell_text;

/// What a run must have for a claim to be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimNeeds {
    /// Rows alone.
    Rows,
    /// Free processors: a core for each thread, beside what others run.
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
    /// How many threads of others ran at its beginning or its end, whichever was more.
    others: Option<f64>,
    /// The load of the minute before, which older files have alone.
    load: f64,
}

/// Threads of others that disturb nobody: they run for a moment.
const FEW: f64 = 0.5;

impl RunCircumstances {
    /// Those of a run with this provenance. A size that it does not tell is small; a load that it does not tell is
    /// none.
    pub fn of(provenance: &Value) -> RunCircumstances {
        let threads = provenance["threads"].as_array().into_iter().flatten().filter_map(Value::as_u64).max();
        RunCircumstances {
            is_small: provenance["size"] != "full",
            threads: threads.unwrap_or(1),
            cores: provenance["cores"].as_u64().unwrap_or(1),
            others: provenance["others_running"].as_f64(),
            load: provenance["load_before"][0].as_f64().unwrap_or(0.0),
        }
    }

    /// Why such a run cannot test what has these needs.
    pub fn lack(&self, needs: ClaimNeeds) -> Option<String> {
        let RunCircumstances { is_small, threads, cores, others, load } = *self;
        let (full, quiet) = match needs {
            ClaimNeeds::Rows => (false, false),
            ClaimNeeds::Quiet => (false, true),
            ClaimNeeds::Full => (true, false),
            ClaimNeeds::FullAndQuiet => (true, true),
        };
        if full && is_small {
            return Some("a run of this size does not decide it; `--size full` tests it".into());
        }
        if !quiet {
            return None;
        }
        if threads > cores {
            return Some(format!("{threads} threads have {cores} cores"));
        }
        let text = |number: f64| cell_text(&number.into());
        match others {
            Some(others) => (others > (cores - threads) as f64 + FEW)
                .then(|| format!("{} threads of others ran on {cores} cores beside {threads}", text(others))),
            None => (load > cores as f64).then(|| format!("a load of {} on {cores} cores decides it", text(load))),
        }
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
        let beside = |others: f64| {
            let provenance = json!({ "size": "full", "threads": [1, 2], "cores": 4, "others_running": others });
            RunCircumstances::of(&provenance).lack(ClaimNeeds::Quiet)
        };
        assert_eq!(beside(2.4), None);
        assert_eq!(beside(3.0).expect("too many"), "3 threads of others ran on 4 cores beside 2");
        assert_eq!(lacks(RunCircumstances::of(&json!({}))), [false, false, true, true], "nothing is told");
    }
}
