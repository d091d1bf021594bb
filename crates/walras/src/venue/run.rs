//! Running a venue at a node: its keys, the directory of its journal, and how it stands.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use client::NodeClient;
use node::{Config, Node};
use pit::door::VenueStatusBody;
use pit::{Pit, PitSettings, VenueConfig, prepare_incarnation};
use primitives::venue::{VenueId, VenueOperator};
use primitives::{Address, SecretKey};
use serde_json::json;
use venue::VenueKeys;
use zeroize::Zeroizing;

use crate::keystore::{self, Passphrase};

/// The key in a home of the account that settles.
const OPERATOR_KEY: &str = "venue-operator.json";
/// The key in a home that signs reports.
const REPORT_KEY: &str = "venue-report.json";

/// The directory of the journals in a home.
fn journals(home: &Path) -> PathBuf {
    home.join("data").join("venues")
}

/// Makes the keys of a venue's operator in a home, and the directory of an incarnation that has reported nothing.
#[derive(clap::Args)]
pub struct VenuePrepare {
    /// The home of the node that is to run the venue.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// The venue's number.
    #[arg(long)]
    venue: VenueId,
    /// The incarnation: 0 at first, and after each fence the one that `walras venue show` says.
    #[arg(long, default_value_t = 0)]
    incarnation: u32,
    #[command(flatten)]
    passphrase: Passphrase,
}

impl VenuePrepare {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let VenuePrepare { home, venue, incarnation, passphrase } = self;
        anyhow::ensure!(
            home.join("genesis.json").exists(),
            "{} is no home; make one with `walras init`",
            home.display()
        );
        // Keys that exist are opened, and a passphrase of new ones is asked for twice.
        let is_known = [OPERATOR_KEY, REPORT_KEY].iter().any(|name| home.join(name).exists());
        let passphrase = if is_known { passphrase.known()? } else { passphrase.read_new()? };
        let VenueOperator { account: operator, report_key } = prepare(&home, venue, incarnation, &passphrase)?;
        if json {
            println!("{}", json!({ "operator": operator.to_string(), "report_key": report_key.to_string() }));
        } else {
            println!("operator    {operator}");
            println!("report key  {report_key}");
            println!(
                "Name both with `walras venue open`, send the operator units for fees, and set [venue] run = true."
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes what a venue's operator needs in a home; keys that exist stay.
pub fn prepare(
    home: &Path,
    venue: VenueId,
    incarnation: u32,
    passphrase: &Zeroizing<String>,
) -> anyhow::Result<VenueOperator> {
    let key = |name: &str| -> anyhow::Result<SecretKey> {
        let path = home.join(name);
        let made = if path.exists() { keystore::open_under } else { keystore::create_under };
        Ok(made(&path, passphrase)?)
    };
    let (operator, report) = (key(OPERATOR_KEY)?, key(REPORT_KEY)?);
    prepare_incarnation(&journals(home), venue, incarnation)?;
    Ok(VenueOperator { account: operator.public().address(), report_key: report.public() })
}

/// A venue that runs in this process, above the node's pipelines.
pub struct HostedVenue {
    pit: Arc<Pit>,
    account: Address,
}

impl HostedVenue {
    /// Refuses what the start of a home's venue would refuse. Nothing is bound, and no key is opened.
    pub fn check(home: &Path, config: &Config) -> anyhow::Result<()> {
        if !config.venue.run {
            return Ok(());
        }
        for path in [OPERATOR_KEY, REPORT_KEY].map(|name| home.join(name)) {
            let missing = || format!("[venue] run: {} is missing: run `walras venue prepare`", path.display());
            anyhow::ensure!(path.exists(), missing());
        }
        config.venue.edge()?;
        pit::check(&config.venue, &config.http).context("the venue")
    }

    /// Opens the doors of the venue of a home, if it is configured to run one.
    pub async fn start(home: &Path, config: &Config, passphrase: &Passphrase) -> anyhow::Result<Option<HostedVenue>> {
        HostedVenue::check(home, config)?;
        if !config.venue.run {
            return Ok(None);
        }
        let open = |name: &str| keystore::open(&home.join(name), passphrase);
        let (operator, report) = (open(OPERATOR_KEY)?, open(REPORT_KEY)?);
        let account = operator.public().address();
        let keys = move || VenueKeys { account, operator: operator.clone(), report: report.clone() };
        let config: (VenueConfig, &doors::Http) = (config.venue.clone(), &config.http);
        let edge = config.0.edge()?;
        let settings = PitSettings { config: config.0, directory: journals(home), keys: Box::new(keys), edge };
        let pit = Pit::start(settings, config.1).await.context("the venue")?;
        Ok(Some(HostedVenue { pit: Arc::new(pit), account }))
    }

    /// The venue's calls, which the node answers at its own address too: the page makes them.
    pub fn calls(&self) -> doors::Router {
        self.pit.calls()
    }

    /// Gives the venue the pipeline of a node.
    pub fn connect(&self, node: &Node, data: &Path) {
        let serve = || node.exchange().serve_venue(&self.pit, self.account, data);
        if let Err(error) = tokio::task::block_in_place(serve) {
            tracing::error!(%error, "the node runs no venue");
        }
    }

    /// Prints where traders reach it.
    pub fn greet(&self) {
        let (venue, address, ouch) = (self.pit.venue(), self.pit.address(), self.pit.ouch_address());
        let edge = self.pit.edge().map_or(String::new(), |edge| format!(", its edge on {}", edge.place().streams));
        println!("venue {venue} on http://{address}, OUCH on {ouch}{edge}");
    }

    /// Stops it, after what waits.
    pub fn stop(&self) {
        tokio::task::block_in_place(|| self.pit.stop());
    }
}

/// Shows how a running venue stands: backlog, busts, bond, journal, pauses. Exits with 1 if it does not match.
#[derive(clap::Args)]
pub struct VenueStatus {
    /// Where the venue takes orders over HTTP.
    #[arg(long = "at", value_name = "URL", default_value = "http://127.0.0.1:8070")]
    url: String,
}

impl VenueStatus {
    pub fn run(&self, json: bool) -> anyhow::Result<ExitCode> {
        let status: VenueStatusBody = NodeClient::at(&self.url).get("/v1/venue")?;
        let matches = status.standing == "runs" && status.paused.is_none();
        if json {
            println!("{}", json!(status));
        } else {
            lines(&status).iter().for_each(|line| println!("{line}"));
        }
        Ok(if matches { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn lines(status: &VenueStatusBody) -> Vec<String> {
    let known = |what: Option<String>| what.unwrap_or_else(|| "?".into());
    let standing = match (&status.why, &status.paused) {
        (Some(why), _) => format!("{}: {why}", status.standing),
        (None, Some(pause)) => format!("paused ({}): {}", pause.code, pause.message),
        (None, None) => "matching".into(),
    };
    let waits = status.fills - status.settled.min(status.fills);
    let in_flight = status.in_flight.as_ref();
    vec![
        standing,
        format!(
            "venue {}, incarnation {}, certified height {}",
            status.venue,
            known(status.incarnation.map(|of| of.to_string())),
            known(status.height.map(|of| of.to_string()))
        ),
        format!(
            "{} fills, {} settled, {waits} waiting, {} bust since start{}",
            status.fills,
            status.settled,
            status.busts,
            in_flight.map_or(String::new(), |of| format!("; settle {} in flight until {}", of.sequence, of.until))
        ),
        format!(
            "bond {} units, operator {} units for fees",
            known(status.bond.clone()),
            known(status.operator_balance.clone())
        ),
        format!("journal {} records, {} sessions, markets {:?}", status.records, status.sessions, status.markets),
    ]
}
