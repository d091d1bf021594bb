//! `walras bench PAPER`: tables and figures of the five papers, and the tables of documents that are made of them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bench::paper::document;
use bench::paper::exhibit::{Paper, PaperOptions, RunSize};
use serde_json::Value;

use crate::research::figures::print_figures;
use crate::tables;

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
    #[arg(long, value_delimiter = ',', default_values_t = [1u32, 2],
          value_parser = clap::value_parser!(u32).range(1..=1_024))]
    threads: Vec<u32>,
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

/// A document whose tables are those of exhibits.
#[derive(clap::Args)]
pub struct DocumentArgs {
    /// The document.
    #[arg(default_value = "docs/benchmarks.md")]
    document: PathBuf,
    /// The folder that exhibits wrote into, beside the document or below it.
    #[arg(long, default_value = "docs/figures")]
    figures: PathBuf,
    /// Write nothing; fail if a table differs from its data.
    #[arg(long)]
    check: bool,
}

/// What to show must be said, in one way or several.
fn what() -> clap::ArgGroup {
    clap::ArgGroup::new("exhibits").required(true).multiple(true).args(["figure", "table", "name", "all", "list"])
}

/// Numbers of threads as measurements take them.
pub fn ascending(threads: &[u32]) -> anyhow::Result<Vec<usize>> {
    let threads: Vec<usize> = threads.iter().map(|threads| *threads as usize).collect();
    anyhow::ensure!(threads.is_sorted_by(|a, b| a < b), "--threads: write ascending numbers, as 1,2,8");
    Ok(threads)
}

/// Prints what there is, of one paper or of all.
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

impl PaperArgs {
    /// Shows what is asked for.
    pub fn run(self, paper: Paper, json: bool, say: &mut dyn FnMut(&str)) -> anyhow::Result<ExitCode> {
        if self.list {
            print_list(&[paper], json);
            return Ok(ExitCode::SUCCESS);
        }
        let exhibits = bench::paper::chosen(paper, &self.figure, &self.table, &self.name, self.all)?;
        let threads = ascending(&self.threads)?;
        let size = match self.size {
            SizeName::Small => RunSize::Small,
            SizeName::Full => RunSize::Full,
        };
        let options = PaperOptions { size, threads, seed: self.seed, data: self.data };
        let report = bench::paper::run(&exhibits, &options, self.out.as_deref(), say)?;
        print(&report, json);
        Ok(ExitCode::SUCCESS)
    }
}

/// One JSON document, or of each exhibit its title, its kind, how it was made, its rows and what became of its claims.
fn print(report: &Value, json: bool) {
    if json {
        println!("{report}");
        return;
    }
    for exhibit in report["exhibits"].as_array().into_iter().flatten() {
        let mut shown = exhibit.clone();
        let fields = shown.as_object_mut().into_iter();
        fields.for_each(|fields| {
            fields.retain(|name, _| !["claims", "the_paper_says", "columns", "provenance"].contains(&name.as_str()))
        });
        println!("{}", tables::text(&shown));
        for value in exhibit["the_paper_says"].as_array().into_iter().flatten() {
            let text = |name: &str| value[name].as_str().unwrap_or_default();
            println!("the paper, {}: {}: {}", text("section"), text("what"), text("value"));
        }
        for claim in exhibit["claims"].as_array().into_iter().flatten() {
            let text = |name: &str| claim[name].as_str().unwrap_or_default();
            println!("claim: {}: {}: {}", text("claim"), text("verdict").to_uppercase(), text("numbers"));
        }
        println!();
    }
}

impl DocumentArgs {
    /// Makes the tables anew, or checks them.
    pub fn run(&self, json: bool) -> anyhow::Result<ExitCode> {
        let path = self.document.display().to_string();
        let text = std::fs::read_to_string(&self.document).with_context(|| path.clone())?;
        let folder = self.document.parent().unwrap_or(std::path::Path::new(""));
        let link = self.figures.strip_prefix(folder).unwrap_or(&self.figures).display().to_string();
        let made = document::with_tables(&text, &self.figures, &link)?;
        let (tables, differs) = (document::shown(&text).len(), made != text);
        if self.check && differs {
            anyhow::bail!("{path}: a table differs from its data; `walras bench document` makes it anew");
        }
        if differs {
            std::fs::write(&self.document, made).with_context(|| path.clone())?;
        }
        let changed = differs && !self.check;
        print_figures(&serde_json::json!({ "document": path, "tables": tables, "changed": changed }), json);
        Ok(ExitCode::SUCCESS)
    }
}
