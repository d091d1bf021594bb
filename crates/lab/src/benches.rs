//! `walras-lab bench`: the rows of two registries, measurements and exhibits of papers, as commands.

use std::process::ExitCode;

use anyhow::Context;
use bench::measurement::BenchShown;
use bench::paper::exhibit::Paper;
use bench::registry::{BENCHES, BenchRow};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

use crate::papers::{DocumentArgs, PaperArgs, print_list};

/// What to measure.
#[derive(Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// List every table, figure and headline number of the five papers, with what each costs.
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    bench: Option<AskedBench>,
}

/// One row of a registry, with what was given to its command.
enum AskedBench {
    Measurement(&'static BenchRow, ArgMatches),
    Paper(Paper, PaperArgs),
    Document(DocumentArgs),
}

const DOCUMENT: &str = "document";

impl FromArgMatches for AskedBench {
    fn from_arg_matches(matches: &ArgMatches) -> Result<AskedBench, clap::Error> {
        let nothing = || clap::Error::new(ErrorKind::MissingSubcommand);
        let (name, given) = matches.subcommand().ok_or_else(nothing)?;
        if let Some(row) = BENCHES.iter().find(|row| row.name == name) {
            return Ok(AskedBench::Measurement(row, given.clone()));
        }
        match Paper::ALL.into_iter().find(|paper| paper.name() == name) {
            Some(paper) => PaperArgs::from_arg_matches(given).map(|args| AskedBench::Paper(paper, args)),
            None => DocumentArgs::from_arg_matches(given).map(AskedBench::Document),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = AskedBench::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for AskedBench {
    fn augment_subcommands(command: Command) -> Command {
        let of_papers = Paper::ALL.into_iter().map(PaperArgs::command);
        let document = DocumentArgs::augment_args(Command::new(DOCUMENT));
        command.subcommands(BENCHES.iter().map(BenchRow::command).chain(of_papers).chain([document]))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        AskedBench::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        let rows = BENCHES.iter().map(|row| row.name).chain(Paper::ALL.map(Paper::name));
        rows.chain([DOCUMENT]).any(|known| known == name)
    }
}

impl BenchArgs {
    /// Runs the measurement, or lists.
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let mut say = |step: &str| eprintln!("{step} …");
        match self.bench {
            Some(AskedBench::Measurement(row, given)) if !self.list => {
                show(row.measured(&given, &mut say).map_err(anyhow::Error::from_boxed).context(row.name)?, json)
            }
            Some(AskedBench::Paper(paper, args)) if !self.list => args.run(paper, json, &mut say)?,
            Some(AskedBench::Document(args)) if !self.list => args.run(json)?,
            _ => print_list(&Paper::ALL, json),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(shown: BenchShown, json: bool) {
    match shown {
        BenchShown::Figures(figures) => terminal::print_figures(&figures, json),
        BenchShown::Rows(report) if json => println!("{report}"),
        BenchShown::Rows(report) => print!("{}", terminal::text(&report)),
        BenchShown::Files(paths) => paths.iter().for_each(|path| println!("{}", path.display())),
    }
}
