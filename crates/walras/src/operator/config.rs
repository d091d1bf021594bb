//! `walras config`: checks a home's settings without starting its node, and prints what would be in force.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::founding::Founding;
use anyhow::{Context, ensure};
use ledger::Genesis;
use node::{Config, Node};
use serde_json::json;

use crate::venue::run::HostedVenue;

/// Checks and prints the settings of a home.
#[derive(clap::Subcommand)]
pub enum ConfigCommand {
    /// Check genesis.json, walras.toml and the environment without starting anything. Exits with 1 on a warning.
    #[command(after_help = "Example:\n  walras config check --home ./exchange")]
    Check {
        #[command(flatten)]
        home: HomeArgument,
    },
    /// Print every setting in force: defaults, file and environment together.
    #[command(after_help = "Examples:\n  walras config print --home ./exchange\n  walras config print > walras.toml")]
    Print {
        #[command(flatten)]
        home: HomeArgument,
    },
}

/// The home of a node.
#[derive(clap::Args)]
pub struct HomeArgument {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
}

/// What a node of a home would start with.
pub(super) struct Settings {
    pub config: Config,
    pub genesis: Genesis,
    pub founding: Option<Founding>,
}

impl Settings {
    /// Reads genesis, file and environment, and refuses what a start would refuse.
    pub fn of(home: &Path) -> anyhow::Result<Settings> {
        let path = home.join("genesis.json");
        let name = home.display();
        ensure!(path.exists(), "{name} is no home; make one with: walras init --home {name}");
        let (genesis, founding) = ::founding::genesis_file::read_with_founding(&path)?;
        let config = config(home)?.within(home);
        Node::check(&config, &genesis)?;
        HostedVenue::check(home, &config)?;
        Ok(Settings { config, genesis, founding })
    }

    /// What an operator should know before the node starts.
    pub fn warnings(&self) -> Vec<String> {
        let validators = self.founding.as_ref().map(|founding| founding.validators.len());
        // A developers' chain makes a block of every transaction on purpose.
        let usual = if self.genesis.is_developers { Vec::new() } else { self.config.warnings(validators) };
        [usual, self.config.lane.warnings(self.genesis.lane.as_ref())].concat()
    }
}

/// The settings of a home, or the defaults if it has no file.
fn config(home: &Path) -> anyhow::Result<Config> {
    let path = home.join("walras.toml");
    let path = path.exists().then_some(path.as_path());
    Ok(Config::load(path, std::env::vars())?)
}

impl ConfigCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            ConfigCommand::Check { home: HomeArgument { home } } => check(json, &home),
            ConfigCommand::Print { home: HomeArgument { home } } => {
                let config = config(&home)?;
                match json {
                    true => println!("{}", serde_json::to_value(&config)?),
                    false => print!("{}", toml::to_string(&config).context("the settings are a table")?),
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn check(json: bool, home: &Path) -> anyhow::Result<ExitCode> {
    let settings = Settings::of(home)?;
    let (warnings, network) = (settings.warnings(), settings.genesis.digest().to_string());
    let validators = settings.founding.as_ref().map_or(1, |founding| founding.validators.len());
    if json {
        println!("{}", json!({"genesis": network, "validators": validators, "warnings": warnings}));
    } else {
        println!("genesis {network}, {validators} validators, {} assets", settings.genesis.assets.len());
        warnings.iter().for_each(|warning| println!("warning: {warning}"));
        if warnings.is_empty() {
            println!("the settings are sound");
        }
    }
    Ok(if warnings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
