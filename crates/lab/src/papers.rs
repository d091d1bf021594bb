//! `walras-lab bench PAPER`: tables and figures of the five papers, and the tables of documents that are made of them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use bench::measurement::{ascending, threads};
use bench::paper::ClaimTally;
use bench::paper::chart::cell_text;
use bench::paper::document;
use bench::paper::exhibit::{Paper, PaperOptions, RunSize};
use bench::paper::sheet::sheet;
use clap::{Args, Command};
use serde_json::Value;

/// How thorough a run is.
#[derive(Clone, Copy, clap::ValueEnum)]
enum SizeName {
    /// Seconds for each exhibit: whether everything runs, and whether the shape is there.
    Small,
    /// Minutes for each: the numbers.
    Full,
}

/// What to show of a paper, and how.
#[derive(clap::Args)]
#[command(group = what())]
pub struct PaperArgs {
    /// Numbers of figures.
    #[arg(long, value_delimiter = ',')]
    figure: Vec<u32>,
    /// Numbers of tables.
    #[arg(long, value_delimiter = ',')]
    table: Vec<u32>,
    /// Other names that `--list` shows: section-7.1-payments, proxy-rate, validation-d.
    #[arg(long, value_delimiter = ',')]
    name: Vec<String>,
    /// Every table, figure and headline number that there is.
    #[arg(long)]
    all: bool,
    /// Only list them, with what each costs.
    #[arg(long)]
    list: bool,
    /// How thorough the runs are.
    #[arg(long, value_enum, default_value = "small")]
    size: SizeName,
    /// Numbers of threads, ascending; exhibits that use one number take the last.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 2], value_parser = threads())]
    threads: Vec<usize>,
    /// Seed of everything that is drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder with `coingecko` and `diablo`; exhibits without their data say so.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Folder for PAPER-ID.json, .csv and .svg of each exhibit.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Make the tables of a document anew from what exhibits wrote with `--out`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  walras-lab bench document\n  walras-lab bench document --check
  walras-lab bench document --sheet docs/exhibits.md")]
pub struct DocumentArgs {
    /// The document.
    #[arg(default_value = "docs/benchmarks.md")]
    document: PathBuf,
    /// The folder that exhibits wrote into, beside the document or below it.
    #[arg(long, default_value = "docs/figures")]
    figures: PathBuf,
    /// A page with a thumbnail of every exhibit, made of the same folder.
    #[arg(long, value_name = "PAGE")]
    sheet: Option<PathBuf>,
    /// Write nothing; fail if a table, or the page, differs from its data.
    #[arg(long)]
    check: bool,
}

/// What to show must be said, in one way or several.
fn what() -> clap::ArgGroup {
    clap::ArgGroup::new("exhibits").required(true).multiple(true).args(["figure", "table", "name", "all", "list"])
}

/// Lists the exhibits of one paper or of all.
pub fn print_list(papers: &[Paper], json: bool) {
    let list = bench::paper::list(papers);
    if json {
        println!("{list}");
        return;
    }
    for one in list["rows"].as_array().into_iter().flatten() {
        let text = |name: &str| one[name].as_str().unwrap_or_default();
        let id = format!("{} {}", text("paper"), text("id"));
        let seconds = format!("{} s, full {} s", one["seconds_small"], one["seconds_full"]);
        println!("{id:<36} {:<16} {:<12} {seconds:<20} {}", text("section"), text("kind"), text("title"));
    }
}

/// What the command of a paper says of itself, and how it is asked.
fn help(paper: Paper) -> (&'static str, &'static str) {
    match paper {
        Paper::Speedex => (
            "Tables and figures of SPEEDEX: prices, whole blocks, payments, the filter. Each is labelled measured, \
             simulated, Monte Carlo, computed or quoted, and says whether what the paper claims holds",
            "Examples:
  walras-lab bench speedex --list
  walras-lab bench speedex --figure 7 --threads 1,2,4
  walras-lab bench speedex --all --size small --out figures     # figures/speedex-figure-7.json, .csv and .svg",
        ),
        Paper::RedBelly => (
            "Tables and figures of Smart Red Belly: transaction management, rates, the trace of NASDAQ",
            "Example:\n  walras-lab bench red-belly --table 1 --figure 3 --size full",
        ),
        Paper::BlockStm => (
            "The plot of Block-STM, and the same executor under the EVM",
            "Example:\n  walras-lab bench block-stm --all --threads 1,2,4,8",
        ),
        Paper::Accept => (
            "Tables and figures of Accept: schemes, shards, trees, the set of spent outputs",
            "Example:\n  walras-lab bench accept --table 2 --size full",
        ),
        Paper::Onyx => (
            "Tables and figures of Onyx: multicast to a thousand receivers, hedging, fair order queues",
            "Examples:
  walras-lab bench onyx --table 3 --size full --json
  walras-lab bench onyx --name proxy-rate,release-span
  walras-lab bench onyx --figure 15 --out figures     # writes figures/onyx-figure-15.json, .csv and .svg",
        ),
    }
}

impl PaperArgs {
    /// The command of a paper.
    pub fn command(paper: Paper) -> Command {
        let (about, examples) = help(paper);
        PaperArgs::augment_args(Command::new(paper.name())).about(about).after_help(examples)
    }

    /// Shows what is asked for.
    pub fn run(self, paper: Paper, json: bool, say: &mut dyn FnMut(&str)) -> anyhow::Result<()> {
        if self.list {
            print_list(&[paper], json);
            return Ok(());
        }
        let exhibits = bench::paper::chosen(paper, &self.figure, &self.table, &self.name, self.all)?;
        ascending(&self.threads).map_err(anyhow::Error::from_boxed)?;
        let size = match self.size {
            SizeName::Small => RunSize::Small,
            SizeName::Full => RunSize::Full,
        };
        let options = PaperOptions { size, threads: self.threads, seed: self.seed, data: self.data };
        let report = bench::paper::run(&exhibits, &options, self.out.as_deref(), say)?;
        print(&report, json);
        judged(&ClaimTally::of(&report), json)
    }
}

/// What became of all claims: an error if one fails that is not known to.
fn judged(tally: &ClaimTally, json: bool) -> anyhow::Result<()> {
    let ClaimTally { hold, known, untested, fail } = tally;
    if !json {
        println!("claims: {hold} hold, {known} are known not to hold, {untested} are not tested, {} fail", fail.len());
    }
    anyhow::ensure!(
        fail.is_empty(),
        "claims fail that should hold; a busy machine may be why, so run these again on a quiet one: {}",
        fail.join("; ")
    );
    Ok(())
}

/// One JSON document, or of each exhibit its title, its kind, how it was made, its rows and what became of its claims.
fn print(report: &Value, json: bool) {
    if json {
        println!("{report}");
        return;
    }
    for exhibit in report["exhibits"].as_array().into_iter().flatten() {
        let text = |name: &str| exhibit[name].as_str().unwrap_or_default();
        println!("{} {} ({}): {} ({})", text("paper"), text("id"), text("section"), text("title"), text("kind"));
        println!("{}\n\n{}", text("method"), table(exhibit));
        for value in exhibit["the_paper_says"].as_array().into_iter().flatten() {
            let text = |name: &str| value[name].as_str().unwrap_or_default();
            println!("the paper, {}: {}: {}", text("section"), text("what"), text("value"));
        }
        for claim in exhibit["claims"].as_array().into_iter().flatten() {
            let text = |name: &str| claim[name].as_str().unwrap_or_default();
            let reasons = ["unmet", "untested"].into_iter().filter_map(|name| claim.get(name)?.as_str());
            let why: String = reasons.map(|why| format!(" ({why})")).collect();
            println!("claim: {}: {}: {}{why}", text("claim"), text("verdict").to_uppercase(), text("numbers"));
        }
        println!();
    }
}

/// The rows of an exhibit as lines, with its columns in their order: numbers to the right, a list of numbers below.
fn table(exhibit: &Value) -> String {
    let list = |name: &str| exhibit[name].as_array().into_iter().flatten();
    let columns: Vec<&str> = list("columns").filter_map(Value::as_str).collect();
    let is_list = |column: &str| list("rows").any(|row| row[column].is_array());
    let (lists, columns): (Vec<&str>, Vec<&str>) = columns.into_iter().partition(|column| is_list(column));
    let cells = |row: &Value| columns.iter().map(|column| cell_text(&row[*column])).collect::<Vec<String>>();
    let head = columns.iter().map(|column| (*column).to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(list("rows").map(cells)).collect();
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let is_text = |column: &str| list("rows").any(|row| row[column].is_string());
    let padded = |line: &Vec<String>| {
        let cells = line.iter().enumerate().map(|(at, cell)| match is_text(columns[at]) {
            true => format!("{cell:<width$}", width = widths[at]),
            false => format!("{cell:>width$}", width = widths[at]),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let below = lists.iter().flat_map(|column| list("rows").map(move |row| format!("{column}: {}\n", row[*column])));
    lines.iter().map(padded).chain(below).collect()
}

impl DocumentArgs {
    /// Makes the tables anew, or checks them.
    pub fn run(&self, json: bool) -> anyhow::Result<()> {
        let path = self.document.display().to_string();
        let text = std::fs::read_to_string(&self.document).with_context(|| path.clone())?;
        let made = document::with_tables(&text, &self.figures, &self.link(&self.document))?;
        let mut changed = self.renew(&self.document, &text, &made)?;
        if let Some(page) = &self.sheet {
            let before = std::fs::read_to_string(page).unwrap_or_default();
            changed |= self.renew(page, &before, &sheet(&self.figures, &self.link(page))?)?;
        }
        let tables = document::shown(&text).len();
        terminal::print_figures(&serde_json::json!({ "document": path, "tables": tables, "changed": changed }), json);
        Ok(())
    }

    /// How a document names the folder of the figures.
    fn link(&self, document: &Path) -> String {
        let folder = document.parent().unwrap_or(Path::new(""));
        self.figures.strip_prefix(folder).unwrap_or(&self.figures).display().to_string()
    }

    /// Writes what differs, or fails about it where it is only checked; whether something was written.
    fn renew(&self, path: &Path, before: &str, made: &str) -> anyhow::Result<bool> {
        let (name, differs) = (path.display(), made != before);
        anyhow::ensure!(
            !(self.check && differs),
            "{name}: it differs from its data; `walras-lab bench document` makes it anew"
        );
        if differs {
            std::fs::write(path, made).with_context(|| name.to_string())?;
        }
        Ok(differs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_its_columns_and_rows_in_their_order() {
        let rows = serde_json::json!([
            { "who": "ours", "count": 1_200, "ms": 0.5, "each": [1, 2] }, { "who": "a loop", "count": 7, "ms": null },
        ]);
        let exhibit = serde_json::json!({ "columns": ["who", "count", "ms", "each"], "rows": rows });
        let expected = "who     count   ms\nours    1,200  0.5\na loop      7    –\neach: [1,2]\neach: null\n";
        assert_eq!(table(&exhibit), expected);
    }

    #[test]
    fn a_claim_that_fails_although_it_should_hold_is_an_error_that_names_it() {
        let tally = |fail: &[&str]| {
            let fail = fail.iter().map(|claim| (*claim).to_owned()).collect();
            ClaimTally { hold: 3, known: 2, untested: 1, fail }
        };
        assert!(judged(&tally(&[]), true).is_ok(), "what is known not to hold, or not tested, is no failure");
        let error = judged(&tally(&["figure-1: it is fast"]), true).expect_err("it fails").to_string();
        assert!(error.contains("figure-1: it is fast") && error.contains("quiet"), "{error}");
    }
}
