//! `walras snapshot`: the state after one block in one file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use ledger::{Genesis, Ledger, Roots};
use node::snapshot::{install, read_snapshot, state_of, write_snapshot};
use primitives::Digest;
use serde_json::{Value, json};
use store::RealDisk;

use crate::keystore::Passphrase;
use crate::lane::LANE_KEY_FILE;
use crate::restart_lane::restore_solo;

/// Takes, checks and restores snapshots.
#[derive(clap::Subcommand)]
pub enum SnapshotCommand {
    /// Writes the state after the last durable block of a home into one file; a node may run on the home meanwhile.
    #[command(after_help = "Examples:
  walras snapshot create --home ./exchange
  walras snapshot create --home ./exchange --out /backup/exchange.snapshot --json")]
    Create {
        /// Directory that `walras init` made.
        #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
        home: PathBuf,
        /// The file to write; by default `walras-HEIGHT.snapshot` here.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Checks every digest of a snapshot and that money is conserved in it, and prints its state root.
    #[command(after_help = "Examples:
  walras snapshot verify walras-1200.snapshot
  walras snapshot verify walras-1200.snapshot --root 0x4f1c…  (the root that another node reports for this height)")]
    Verify {
        /// The snapshot.
        file: PathBuf,
        /// The state root that it must have.
        #[arg(long)]
        root: Option<Digest>,
    },
    /// Creates the store of a new home from a snapshot; its node continues from there.
    #[command(after_help = "Example:
  walras snapshot restore walras-1200.snapshot --home ./second --root 0x4f1c… --genesis exchange/genesis.json

The home needs the genesis.json of the chain (or give --genesis) and must have no store yet. Blocks and receipts from
before the snapshot are not in it. If the chain has one node and a payment lane, its lane starts again under a new
identity: give the home before with --lane-from, so that settled payments stand. A validator's vote log is removed:
it listens until it is safe to vote again. Before it takes part it asks the others for the certificate of the
restored height, and stops if they signed another state.")]
    Restore {
        /// The snapshot.
        file: PathBuf,
        /// Directory with the chain's genesis.json and no store; with --genesis it may be a new one.
        #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
        home: PathBuf,
        /// The chain's genesis file, for a home that has none.
        #[arg(long, value_name = "FILE")]
        genesis: Option<PathBuf>,
        /// The state root that it must have.
        #[arg(long)]
        root: Option<Digest>,
        /// Chain of one node with a payment lane: the home before, whose lane is closed for good and carried over.
        #[arg(long, value_name = "HOME")]
        lane_from: Option<PathBuf>,
        #[command(flatten)]
        passphrase: Passphrase,
    },
}

impl SnapshotCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            SnapshotCommand::Create { home, out } => create(&home, out, json)?,
            SnapshotCommand::Verify { file, root } => {
                let (ledger, found) = read(&file, root)?;
                report(&ledger, found, &file, "is sound", json);
            }
            SnapshotCommand::Restore { file, home, genesis, root, lane_from, passphrase } => {
                if let Some(genesis) = genesis {
                    begin_home(&home, &genesis)?;
                }
                restore(&file, &home, root, (lane_from.as_deref(), &passphrase), json)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn create(home: &Path, out: Option<PathBuf>, json: bool) -> anyhow::Result<()> {
    let (genesis, data) = home_of(home)?;
    let disk = RealDisk::existing(&data).with_context(|| format!("{} holds no store yet", data.display()))?;
    let view = store::view(disk)?;
    let waiting = progress("{bar:40} {pos}/{len} blocks replayed after the checkpoint", view.blocks.remaining());
    let replay = state_of(view, &genesis, |left| waiting.set_position(waiting.length().unwrap_or(0) - left))?;
    waiting.finish_and_clear();
    let height = replay.ledger.height();
    ensure!(height > 0, "no block has been committed yet: there is only the genesis");
    let out = out.unwrap_or_else(|| format!("walras-{height}.snapshot").into());
    let writing = spinner("writing");
    write_snapshot(&replay.ledger, &out)?;
    writing.finish_and_clear();
    report(&replay.ledger, replay.root, &out, "written", json);
    Ok(())
}

/// Installs a snapshot in a home, and says so.
pub fn restore(
    file: &Path,
    home: &Path,
    root: Option<Digest>,
    (lane_from, passphrase): (Option<&Path>, &Passphrase),
    json: bool,
) -> anyhow::Result<()> {
    let (genesis, data) = home_of(home).context("nothing is restored; use --genesis FILE to make a new home")?;
    let (ledger, found) = read(file, root)?;
    ensure!(
        ledger.chain() == genesis.chain,
        "{} is of chain {}, but the genesis of {} is of chain {}",
        file.display(),
        ledger.chain(),
        home.display(),
        genesis.chain
    );
    let is_solo = ::founding::genesis_file::read_with_founding(&home.join("genesis.json"))?.1.is_none();
    ensure!(is_solo || lane_from.is_none(), "--lane-from: validators restart their lane with `walras restart`");
    let (ledger, lane) = match ledger.lane() {
        Some(_) if is_solo => restart_solo_lane(ledger, home, lane_from, passphrase)?,
        _ => (ledger, None),
    };
    let begun = if lane.is_some() { Roots::of(&ledger).parts().root() } else { found };
    let writing = spinner("writing");
    install(&ledger, &data)?;
    writing.finish_and_clear();
    report(&ledger, begun, &data, "restored", json);
    if let Some(lane) = lane.filter(|_| !json) {
        let aside = lane["aside"].as_array().map_or(0, Vec::len);
        eprintln!(
            "the lane is of network {} now: {} outputs and {} claims are carried over, {aside} outputs stay aside; so the \
             state root is no more that of the snapshot, {found}",
            lane["network"], lane["outputs"], lane["claims"]
        );
    }
    if archive_votes(&data)? && !json {
        eprintln!("the vote log of this home is removed: the validator listens until it is safe to vote again");
    }
    if root.is_none() && !json {
        eprintln!("compare the state root with one that you trust before you rely on this state");
    }
    Ok(())
}

/// The lane of a chain of one node starts again: see [`restore_solo`].
fn restart_solo_lane(
    ledger: Ledger,
    home: &Path,
    lane_from: Option<&Path>,
    passphrase: &Passphrase,
) -> anyhow::Result<(Ledger, Option<Value>)> {
    ensure!(
        !home.join("data/lane").exists(),
        "{} has a lane of before: restore into another home, and give this one as --lane-from",
        home.display()
    );
    if let Some(before) = lane_from {
        for name in [LANE_KEY_FILE, "walras.toml"] {
            let (from, to) = (before.join(name), home.join(name));
            if from.exists() {
                std::fs::copy(&from, &to).with_context(|| to.display().to_string())?;
            }
        }
    }
    let (ledger, described) = restore_solo(ledger, home, lane_from, passphrase)?;
    Ok((ledger, Some(described)))
}

/// Makes a home from a genesis file, or checks that the existing home has the same one.
fn begin_home(home: &Path, genesis: &Path) -> anyhow::Result<()> {
    let name = |path: &Path| path.display().to_string();
    let text = std::fs::read(genesis).with_context(|| name(genesis))?;
    ::founding::genesis_file::read(genesis)?;
    std::fs::create_dir_all(home).with_context(|| name(home))?;
    let own = home.join("genesis.json");
    if own.exists() {
        let same = std::fs::read(&own).with_context(|| name(&own))? == text;
        ensure!(same, "{} already exists and differs from --genesis: give another --home", own.display());
        return Ok(());
    }
    std::fs::write(&own, text).with_context(|| name(&own))?;
    let config = home.join("walras.toml");
    if !config.exists() {
        std::fs::write(&config, node::config::TEMPLATE).with_context(|| name(&config))?;
    }
    Ok(())
}

/// Removes a validator's vote log: in a home that is assembled from copies it may be older than the validator's last
/// vote. Returns whether there was one.
fn archive_votes(data: &Path) -> anyhow::Result<bool> {
    let votes = data.join("votes");
    match std::fs::remove_dir_all(&votes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| votes.display().to_string()),
    }
}

fn home_of(home: &Path) -> anyhow::Result<(Genesis, PathBuf)> {
    let genesis = ::founding::genesis_file::read(&home.join("genesis.json"))
        .with_context(|| format!("{} is no home", home.display()))?;
    Ok((genesis, home.join("data")))
}

/// Reads a snapshot and compares its state root with the expected one.
pub fn read(file: &Path, root: Option<Digest>) -> anyhow::Result<(Ledger, Digest)> {
    let reading = spinner("reading and checking");
    let ledger = read_snapshot(file)?;
    reading.set_message("hashing");
    let found = Roots::of(&ledger).parts().root();
    reading.finish_and_clear();
    ensure!(
        root.is_none_or(|root| root == found),
        "{}: the state root is {found}, not {}: this is not the expected state",
        file.display(),
        root.unwrap_or_default()
    );
    Ok((ledger, found))
}

fn report(ledger: &Ledger, root: Digest, place: &Path, what: &str, json: bool) {
    let (height, accounts, offers) = (ledger.height(), ledger.accounts().len(), ledger.book().len());
    if json {
        let block = ledger.last_block().to_string();
        println!(
            "{}",
            json!({
                "path": place, "chain": ledger.chain(), "height": height, "block": block,
                "state_root": root.to_string(), "accounts": accounts, "offers": offers,
            })
        );
    } else {
        println!("{}: {what}: height {height}, {accounts} accounts, {offers} offers", place.display());
        println!("state root {root}");
    }
}

fn progress(template: &str, length: u64) -> ProgressBar {
    ProgressBar::new(length).with_style(ProgressStyle::with_template(template).expect("a sound template"))
}

/// Shows a spinner on a terminal while something takes long.
fn spinner(message: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} … {elapsed}").expect("a sound template");
    let spinner = ProgressBar::new_spinner().with_style(style).with_message(message);
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    spinner
}
