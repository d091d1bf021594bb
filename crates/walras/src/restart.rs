//! `walras restart`: a home in a network that starts again from a snapshot.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::founding::{Founding, Restarted};
use anyhow::{Context, ensure};
use consensus::Finality;
use ledger::{BlockReceipts, Genesis, Ledger, ReceiptsTrie, Restart, Roots, Snapshot, outcome_root};
use primitives::{Address, Digest, PublicKey};
use serde_json::{Value, json};
use store::{Options, RealDisk, Store};

use crate::durable::write_durable;
use crate::init::make_home;
use crate::keystore::Passphrase;
use crate::lane::LANE_KEY_FILE;
use crate::pay::ListFile;
use crate::restart_lane::{self, LaneRestart};
use crate::snapshot;
use crate::validator_keys::{ACCOUNT_KEY_FILE, KEY_FILE, LINK_KEY_FILE};

/// Makes a validator's home in a network that starts again from a snapshot of an earlier network.
#[derive(clap::Args)]
#[command(after_help = "Example:
  walras restart --from ./validator-0 --snapshot walras-1200.snapshot --root 0x4f1c… --home ./validator-0-again

With a payment lane, in two steps; between them all operators exchange their files, and users show receipts:
  walras restart --from ./validator-0 --snapshot walras-1200.snapshot --home ./validator-0-again --close part-0
  walras restart --from ./validator-0 --snapshot walras-1200.snapshot --home ./validator-0-again \\
    --part part-0 --part part-1 --part part-2 --part part-3

Every validator does this with the same snapshot and number, and compares the printed identity with the others' before
it starts the new home. The identity is a digest of the founded network's identity, the number, the snapshot, and what
the payment lane begins with. Settled payments stand; of payments from deposits after the snapshot nothing is carried
over, because the depositors have that money again. Signatures from before are not valid under it, so vote logs
start empty and no old one is ever edited. Blocks above the snapshot are lost, and so are their transactions: they are
signed for the old identity, so their senders have to sign them again. Keep the old home, and never run it again.

If the committee is absent, so that nothing is decided, name the accounts of the validators that are there, and all
operators give the same list in the same order:
  walras restart --from ./validator-0 --snapshot walras-1200.snapshot --home ./validator-0-again \\
    --committee 0x11…,0x22…,0x33…")]
pub struct RestartCommand {
    /// The home in the old network; its node is stopped.
    #[arg(long, value_name = "HOME")]
    from: PathBuf,
    /// The snapshot that all have agreed on; `walras snapshot create` makes one.
    #[arg(long, value_name = "FILE")]
    snapshot: PathBuf,
    /// The new home.
    #[arg(long)]
    home: PathBuf,
    /// The state root that the snapshot must have, as the other operators report it.
    #[arg(long)]
    root: Option<Digest>,
    /// The number of this restart, counted from 1; by default one more than the home's.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    number: Option<u32>,
    /// Accounts that take the seats of the committee, in this order; each has a stake. By default the drawn committee
    /// stays. With a payment lane, both steps name them.
    #[arg(long, value_name = "ACCOUNT", value_delimiter = ',')]
    committee: Vec<Address>,
    /// The rules that the network begins with, if not with those of the state; all operators give the same number.
    #[arg(long, value_name = "NUMBER")]
    rules: Option<u32>,
    /// Start from a state for which the home has no certificate: all operators have compared its root by other means.
    #[arg(long, requires = "root")]
    uncertified: bool,
    /// First step with a payment lane: close the lane of the old home for good, make the first lane keys in the new
    /// one, and write this file for the other operators.
    #[arg(long, value_name = "FILE", conflicts_with = "part")]
    close: Option<PathBuf>,
    /// Second step with a payment lane: the file of an operator; give those of all operators, your own too.
    #[arg(long, value_name = "FILE")]
    part: Vec<PathBuf>,
    /// Receipts that users showed, one on each line; all operators must use the same ones.
    #[arg(long, value_name = "FILE")]
    receipt: Vec<PathBuf>,
    #[command(flatten)]
    passphrase: Passphrase,
}

/// A restart that was begun.
struct Begun {
    number: u32,
    identity: Digest,
    snapshot: Digest,
    snapshot_root: Digest,
}

impl RestartCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let (genesis, founding) = ::founding::genesis_file::read_with_founding(&self.from.join("genesis.json"))
            .with_context(|| format!("{} is no home", self.from.display()))?;
        let founding = founding.with_context(|| {
            format!("{}: a single node restarts with `walras snapshot restore`", self.from.display())
        })?;
        let (mut ledger, root) = snapshot::read(&self.snapshot, self.root)?;
        self.check(&genesis, &founding, &ledger, root)?;
        let before = founding.restarted.as_ref().map_or(0, |restarted| restarted.restart.number);
        let number = self.number.unwrap_or(before.saturating_add(1));
        ensure!(number > before, "--number {number}: this home is already of restart {before}: give a higher number");
        let first = founding.first_digest(&genesis);
        let state = ledger.clone();
        let committee = self.committee.clone();
        let lane = LaneRestart {
            from: &self.from,
            home: &self.home,
            snapshot: &state,
            first,
            number,
            committee,
            rules: self.rules,
        };
        if let Some(to) = &self.close {
            ensure!(!self.home.join("genesis.json").exists(), "{} is a home already", self.home.display());
            make_home(&self.home)?;
            return Ok(report_part(&lane.close(to, &self.receipt, &self.passphrase)?, json));
        }
        let carried = state.lane().map(|_| lane.carry(&self.part, &self.receipt)).transpose()?;
        let (carried, begun) = carried.unzip();
        let committee = self.committee.clone();
        let rules = self.rules;
        let restart = Restart { number, snapshot: Snapshot::digest(&ledger), committee, lane: begun, rules };
        let identity = ledger.begin_again(&first, &restart, carried.as_ref())?;
        if carried.is_some() {
            remember(&self.from.join("data"), number, &identity)?;
        }
        let described = carried.as_ref().zip(restart.lane.as_ref()).map(|(list, of)| restart_lane::described(list, of));
        let list = carried.as_ref().map(|carried| ListFile::new(&first, &restart, carried));
        let snapshot = restart.snapshot;
        let founding = restarted(founding, &ledger, restart)?;
        let genesis = founding.found(genesis);
        self.write(&genesis, &founding, &ledger, &lane, list)?;
        let begun = Begun { number, identity, snapshot, snapshot_root: root };
        self.report(&ledger, &begun, described, json);
        Ok(ExitCode::SUCCESS)
    }

    /// Says what was begun.
    fn report(&self, ledger: &Ledger, begun: &Begun, lane: Option<Value>, json: bool) {
        let (height, root) = (ledger.height(), Roots::of(ledger).parts().root());
        let Begun { number, identity, snapshot, snapshot_root } = begun;
        if json {
            println!(
                "{}",
                json!({
                    "home": self.home, "network": identity.to_string(), "restart": number, "height": height,
                    "snapshot": snapshot.to_string(), "snapshot_state_root": snapshot_root.to_string(),
                    "state_root": root.to_string(), "lane": lane,
                })
            );
        } else {
            println!("Home       {}", self.home.display());
            println!("Network    {identity}   (compare it with the other validators')");
            println!("Restart    {number}");
            println!("Height     {height}");
            println!("State      {root}");
            println!("Before     {snapshot_root}   (the snapshot's own: a restart ends what its identity names)");
            if let Some(lane) = lane {
                println!("Lane       {} outputs and {} claims, list {}", lane["outputs"], lane["claims"], lane["list"]);
                let aside = lane["aside"].as_array().map_or(0, Vec::len);
                println!("Aside      {aside} outputs whose logs are missing; their units stay in escrow");
            }
            println!("\nStart it:  walras node --home {}", self.home.display());
        }
    }

    /// Refuses a state of another network, and a state that no quorum of this one has signed.
    fn check(&self, genesis: &Genesis, founding: &Founding, ledger: &Ledger, root: Digest) -> anyhow::Result<()> {
        let (file, network) = (self.snapshot.display(), founding.digest(genesis));
        let of = ledger.validators().terms.network;
        ensure!(
            ledger.chain() == genesis.chain && of == network,
            "{file} is of network {of}, and {} is of network {network}: take a snapshot of this network",
            self.from.display()
        );
        ensure!(ledger.height() > 0, "{file} is the genesis state: found a new network instead");
        if self.uncertified {
            return Ok(());
        }
        let certified = certified_outcome(&self.from.join("data"), founding, ledger.height())?;
        let (receipts, signed) = certified.with_context(|| {
            format!(
                "{} holds no certificate of the state after block {}: take a snapshot of a certified height, or \
                 compare the state root {root} with all other operators and give it with --root and --uncertified",
                self.from.display(),
                ledger.height()
            )
        })?;
        ensure!(
            signed == outcome_root(&root, &receipts),
            "the validators certified another state after block {} than {file} has: take a snapshot of another validator",
            ledger.height()
        );
        Ok(())
    }

    /// The genesis is written last: without it the directory is not a home.
    fn write(
        &self,
        genesis: &Genesis,
        founding: &Founding,
        ledger: &Ledger,
        lane: &LaneRestart<'_>,
        list: Option<ListFile>,
    ) -> anyhow::Result<()> {
        make_home(&self.home)?;
        for name in [KEY_FILE, LINK_KEY_FILE, ACCOUNT_KEY_FILE, LANE_KEY_FILE, "walras.toml"] {
            let from = self.from.join(name);
            if from.exists() {
                let to = self.home.join(name);
                std::fs::copy(&from, &to).with_context(|| to.display().to_string())?;
                std::fs::set_permissions(&to, std::fs::Permissions::from_mode(0o600))?;
            }
        }
        let data = self.home.join("data");
        list.map_or(Ok(()), |list| list.write(&self.home))?;
        if ledger.lane().is_some() && self.from.join(LANE_KEY_FILE).exists() {
            lane.make_logs(ledger.network(), &self.passphrase)?;
        }
        node::snapshot::begin_again(ledger, &data, founding.lineage(genesis))?;
        ::founding::genesis_file::write_with_founding(&self.home.join("genesis.json"), genesis, Some(founding))?;
        Ok(())
    }
}

/// Remembers in the old home which network a restart made: a second run with this number must make the same one, so
/// that one operator never signs in two.
fn remember(data: &Path, number: u32, identity: &Digest) -> anyhow::Result<()> {
    let folder = data.join("lane");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let path = folder.join(format!("restart-{number}"));
    if path.exists() {
        let before = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ensure!(
            before.trim() == identity.to_string(),
            "restart {number} made network {} from this home, and these parts make {identity}: use the same parts, or \
             agree on a higher --number",
            before.trim()
        );
        return Ok(());
    }
    Ok(write_durable(&path, identity.to_string().as_bytes())?)
}

fn report_part(part: &Value, json: bool) -> ExitCode {
    if json {
        println!("{part}");
    } else {
        println!("The lane of this home is closed for restart {}; never run the old node again.", part["restart"]);
        println!("Part       {}   (send it to all operators)", part["part"]);
        println!("Digest     {}   (compare it with what they received)", part["digest"]);
        println!("Contents   {} logs, {} shown certificates", part["logs"], part["shown"]);
    }
    ExitCode::SUCCESS
}

/// The founding of the network that starts again from a state.
fn restarted(founding: Founding, ledger: &Ledger, restart: Restart) -> anyhow::Result<Founding> {
    let height = ledger.height();
    let epoch = ledger.schedule().epoch_of(height + 1);
    let committee = ledger.committee(epoch).context("the state contains no committee for the next height")?;
    let keys: Vec<PublicKey> = committee.iter().map(|member| member.key).collect();
    let rules = consensus::Rules { begins: height, ..founding.rules };
    Ok(Founding { restarted: Some(Restarted { restart, height, keys }), rules, ..founding })
}

/// The receipts root of a height, and the outcome of it that a quorum has signed, from a stopped node's disk.
fn certified_outcome(data: &Path, founding: &Founding, height: u64) -> anyhow::Result<Option<(Digest, Digest)>> {
    let open = |folder: &Path| -> anyhow::Result<Store<RealDisk>> {
        let disk = RealDisk::existing(folder).with_context(|| folder.display().to_string())?;
        let opened = Store::open(disk, Options::default());
        Ok(opened.context("cannot open the old home to look for the certificate: stop its node first")?.0)
    };
    let (blocks, certificates) = (open(data)?, open(&data.join("certificates"))?);
    let Some(receipts) = blocks.receipts(height)? else { return Ok(None) };
    let receipts: BlockReceipts = borsh::from_slice(&receipts).context("cannot decode the receipts")?;
    let Some(finality) = certificates.block(height.saturating_add(founding.rules.lag))? else { return Ok(None) };
    let finality: Finality = borsh::from_slice(&finality).context("cannot decode the certificate")?;
    Ok(Some((ReceiptsTrie::new(&receipts).root(), finality.certificate.statement.root)))
}
