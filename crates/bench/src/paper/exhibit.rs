//! A table, figure or headline number of a paper: what it shows, what the paper says, what must hold, and how it runs.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::chart::{Chart, ChartPlot, QuotedPoints};
use super::circumstances::RunCircumstances;
use super::claim::ShapeClaim;

/// One of the five papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paper {
    /// Ramseyer, Goel, Mazières: SPEEDEX (NSDI 2023).
    Speedex,
    /// Tennakoon, Hua, Gramoli: Smart Red Belly Blockchain.
    RedBelly,
    /// Gelashvili et al.: Block-STM, and its authors' article.
    BlockStm,
    /// Mathys, Schmid, Sliwinski, Wattenhofer: Accept.
    Accept,
    /// Haseeb et al.: Onyx (SIGCOMM 2025).
    Onyx,
}

impl Paper {
    /// All of them.
    pub const ALL: [Paper; 5] = [Paper::Speedex, Paper::RedBelly, Paper::BlockStm, Paper::Accept, Paper::Onyx];

    /// Its name on the command line, and the beginning of its files' names.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::Speedex => "speedex",
            Paper::RedBelly => "red-belly",
            Paper::BlockStm => "block-stm",
            Paper::Accept => "accept",
            Paper::Onyx => "onyx",
        }
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Paper::Speedex => "SPEEDEX",
            Paper::RedBelly => "Smart Red Belly",
            Paper::BlockStm => "Block-STM",
            Paper::Accept => "Accept",
            Paper::Onyx => "Onyx",
        }
    }

    /// Whether its figures are of the ledger, so that other rules may give other figures.
    pub const fn rests_on_rules(self) -> bool {
        matches!(self, Paper::Speedex | Paper::RedBelly)
    }
}

/// How numbers came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExhibitKind {
    /// The code of this repository on this machine.
    Measured,
    /// The same code on one event queue, with the delays of a model.
    Simulated,
    /// Models of the paper, drawn again.
    MonteCarlo,
    /// A formula, of measured or quoted costs.
    Computed,
    /// From the paper.
    Quoted,
}

impl ExhibitKind {
    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            ExhibitKind::Measured => "measured",
            ExhibitKind::Simulated => "simulated",
            ExhibitKind::MonteCarlo => "Monte Carlo",
            ExhibitKind::Computed => "computed",
            ExhibitKind::Quoted => "quoted",
        }
    }
}

/// How thorough a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunSize {
    /// Seconds: whether everything runs, and whether the shape is there.
    Small,
    /// Minutes: the numbers.
    Full,
}

impl RunSize {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            RunSize::Small => "small",
            RunSize::Full => "full",
        }
    }
}

/// How exhibits run.
#[derive(Clone, Debug)]
pub struct PaperOptions {
    /// The size.
    pub size: RunSize,
    /// Numbers of threads, ascending, at least one; exhibits that use one number take the last.
    pub threads: Vec<usize>,
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// The folder with `coingecko` and `diablo`.
    pub data: PathBuf,
}

impl PaperOptions {
    /// Small runs with one and two threads.
    pub fn small() -> PaperOptions {
        PaperOptions { size: RunSize::Small, threads: vec![1, 2], seed: 1, data: "../shared/data".into() }
    }

    /// Whether the run is small.
    pub fn is_small(&self) -> bool {
        self.size == RunSize::Small
    }

    /// The value of this size.
    pub fn pick<T>(&self, small: T, full: T) -> T {
        if self.is_small() { small } else { full }
    }

    /// A number of draws or packets: a tenth of it in a small run.
    pub fn of(&self, full: u32) -> u32 {
        if self.is_small() { full.div_ceil(10) } else { full }
    }

    /// The largest number of threads.
    ///
    /// # Panics
    /// If there is none.
    pub fn threads_most(&self) -> usize {
        *self.threads.last().expect("at least one number of threads")
    }
}

/// The reason why an exhibit could not be shown.
pub type ExhibitError = Box<dyn std::error::Error + Send + Sync>;

/// The list at `name` of what a measurement reports.
///
/// # Errors
/// If there is none: a table without rows would say that nothing was found.
pub(super) fn listed(report: &Value, name: &str) -> Result<Vec<Value>, ExhibitError> {
    let found = report[name].as_array().cloned();
    found.ok_or_else(|| format!("the measurement reports no list `{name}`").into())
}

/// Called with each step.
pub type ExhibitSteps<'a> = dyn FnMut(&str) + 'a;

/// How an exhibit runs.
#[derive(Clone, Copy)]
pub enum ExhibitRun {
    /// It cannot fail.
    Drawn(fn(&PaperOptions) -> Chart),
    /// It uses threads, disks or sockets.
    Run(fn(&PaperOptions, &mut ExhibitSteps) -> Result<Chart, ExhibitError>),
}

/// What the paper says about one number: what it is, its value and where it stands.
pub type PaperValue = (&'static str, &'static str, &'static str);

/// A table, figure or headline number of a paper.
pub struct Exhibit {
    /// The paper.
    pub paper: Paper,
    /// `table-3`, `figure-15`, or of other numbers the section: `section-7.1-orderbook`.
    pub id: &'static str,
    /// The section that describes it.
    pub section: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// How its numbers came about.
    pub kind: ExhibitKind,
    /// About how many seconds a small and a full run take on two cores.
    pub seconds: (u32, u32),
    /// How its rows are drawn, if the chart does not bring curves of its own.
    pub plot: Option<ChartPlot>,
    /// What the paper says.
    pub says: &'static [PaperValue],
    /// What of it is drawn beside; of bars, the first number is the place of the bar.
    pub points: &'static [QuotedPoints],
    /// What must hold of its rows.
    pub claims: &'static [ShapeClaim],
    /// Claims that are known not to hold, each with the reason.
    pub unmet: &'static [(&'static str, &'static str)],
    /// Validations of the same paper that run before it; if one fails, it is withdrawn.
    pub rests_on: &'static [&'static str],
    /// How it runs.
    pub run: ExhibitRun,
}

impl Exhibit {
    /// The name of its files.
    pub fn file(&self) -> String {
        format!("{}-{}", self.paper.name(), self.id)
    }

    /// Whether other exhibits rest on it.
    pub fn is_validation(&self) -> bool {
        self.id.starts_with("validation-")
    }

    /// What `--list` shows.
    pub fn described(&self) -> Value {
        let axes = self.plot.map_or(Value::Null, |plot| json!([plot.x, plot.y]));
        json!({
            "paper": self.paper.name(), "id": self.id, "section": self.section, "title": self.title,
            "kind": self.kind.name(), "seconds_small": self.seconds.0, "seconds_full": self.seconds.1, "axes": axes,
            "claims": self.claims.iter().map(|claim| claim.says).collect::<Vec<_>>(),
        })
    }

    /// Why a claim is known not to hold.
    pub fn unmet(&self, claim: &str) -> Option<&'static str> {
        self.unmet.iter().find(|(says, _)| *says == claim).map(|(_, why)| *why)
    }

    /// What became of its claims on these rows, in a run of this provenance.
    pub fn judged(&self, rows: &[Value], provenance: &Value) -> Vec<Value> {
        let run = RunCircumstances::of(provenance);
        self.claims.iter().map(|claim| claim.as_json(rows, self.unmet(claim.says), &run)).collect()
    }

    /// What the paper says, as rows.
    pub fn paper_says(&self) -> Vec<Value> {
        self.says.iter().map(|(what, value, at)| json!({ "what": what, "value": value, "section": at })).collect()
    }
}
