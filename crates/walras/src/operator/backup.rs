//! `walras backup` and `walras restore`: what must be kept of a home, in one folder, and a home from it.
//!
//! A backup has the home's own files (genesis, settings, encrypted keys), and the chain. A chain of one node exists
//! nowhere else, so all of its blocks are copied. Of a network of validators the others have them, and a snapshot of
//! the state is enough. Never in a backup: a vote log, or what shards of the payment lane have signed. A node that
//! comes back with old ones could sign the opposite of what it signed since.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use node::snapshot::{state_of, write_snapshot};
use primitives::Digest;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::RealDisk;

use crate::keystore::Passphrase;
use crate::snapshot::restore;

const MANIFEST: &str = "backup.json";
/// Files of the home, in a backup.
const FILES: &str = "home";
/// The store of a chain of one node, in a backup.
const STORE: &str = "data";
/// The state of a network of validators, in a backup.
const SNAPSHOT: &str = "state.snapshot";
const FORMAT: u32 = 1;

/// Writes what must be kept of a home into a new folder; its node may run meanwhile.
#[derive(clap::Args)]
#[command(after_help = "Example:
  walras backup --home ./exchange --out /backup/2026-11-26

The folder has the keys of the home, encrypted as they are: keep it and the passphrase in different places. It never has
votes, or logs of the payment lane.")]
pub struct Backup {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// The folder to make.
    #[arg(long)]
    out: PathBuf,
}

/// Makes a home from a backup.
#[derive(clap::Args)]
#[command(after_help = "Example:
  walras restore /backup/2026-11-26 --home ./exchange

A chain of one node goes on after the last block of the backup: what was in later blocks is lost. A validator fetches
later blocks from the others, and votes again once that is safe.")]
pub struct RestoreBackup {
    /// The folder that `walras backup` made.
    backup: PathBuf,
    /// The home to make.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Chain of one node with a payment lane: the home before, whose lane is closed for good and carried over.
    #[arg(long, value_name = "HOME")]
    lane_from: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Passphrase,
}

/// What a backup has, with a digest of each file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    chain: u64,
    height: u64,
    state_root: String,
    files: Vec<FileEntry>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    path: String,
    bytes: u64,
    blake3: String,
}

impl Backup {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let Backup { home, out } = self;
        ensure!(!out.exists(), "{} exists: name a new folder with --out", out.display());
        let (genesis, founding) = ::founding::genesis_file::read_with_founding(&home.join("genesis.json"))
            .with_context(|| format!("{} is no home", home.display()))?;
        make_folder(&out.join(FILES))?;
        // Keys, settings, and what the chain was founded or restarted with.
        for name in file_names(&home)?.into_iter().filter(|name| name.ends_with(".json") || name.ends_with(".toml")) {
            copy_file(&home.join(&name), &out.join(FILES).join(&name))?;
        }
        let data = home.join("data");
        let (height, root) = match RealDisk::existing(&data) {
            Ok(disk) if founding.is_none() => {
                let copy = RealDisk::new(out.join(STORE)).with_context(|| out.display().to_string())?;
                let progress = spinner("{spinner} {bytes} copied");
                store::back_up(&disk, &copy, &mut |bytes| progress.inc(bytes))?;
                progress.finish_and_clear();
                // The replay proves that the copy is sound.
                let replay = state_of(store::view(copy)?, &genesis, |_| ())?;
                (replay.ledger.height(), replay.root)
            }
            Ok(disk) => {
                let replay = state_of(store::view(disk)?, &genesis, |_| ())?;
                if replay.ledger.height() > 0 {
                    write_snapshot(&replay.ledger, &out.join(SNAPSHOT))?;
                }
                (replay.ledger.height(), replay.root)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (0, Digest::default()),
            Err(error) => return Err(error).with_context(|| data.display().to_string()),
        };
        let files = entries(&out)?;
        let manifest = Manifest { format: FORMAT, chain: genesis.chain, height, state_root: root.to_string(), files };
        // Written last: a folder without it is not a backup.
        write_new(&out.join(MANIFEST), &serde_json::to_vec_pretty(&manifest)?)?;
        report(&out, "written", &manifest, json);
        Ok(ExitCode::SUCCESS)
    }
}

impl RestoreBackup {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let RestoreBackup { backup, home, lane_from, passphrase } = self;
        let manifest = read_manifest(&backup)?;
        let is_empty = std::fs::read_dir(&home).map_or(true, |mut entries| entries.next().is_none());
        ensure!(is_empty, "{} is not empty: nothing is restored; name a new home with --home", home.display());
        make_folder(&home)?;
        for name in file_names(&backup.join(FILES))? {
            copy_file(&backup.join(FILES).join(&name), &home.join(&name))?;
        }
        let (genesis, _) = ::founding::genesis_file::read_with_founding(&home.join("genesis.json"))?;
        let (store, snapshot) = (backup.join(STORE), backup.join(SNAPSHOT));
        let root: Digest = manifest.state_root.parse().ok().context("backup.json: state_root is no digest")?;
        if store.exists() && genesis.lane.is_some() {
            // What the lane's shards signed since is unknown, so the lane starts again under another identity.
            let replay = state_of(store::view(RealDisk::existing(&store)?)?, &genesis, |_| ())?;
            let state = home.join(SNAPSHOT);
            write_snapshot(&replay.ledger, &state)?;
            let restored = restore(&state, &home, Some(root), (lane_from.as_deref(), &passphrase), json);
            std::fs::remove_file(&state).with_context(|| state.display().to_string())?;
            restored?;
        } else if snapshot.exists() {
            restore(&snapshot, &home, Some(root), (None, &passphrase), json)?;
        } else {
            if store.exists() {
                let data = RealDisk::new(home.join("data")).with_context(|| home.display().to_string())?;
                store::back_up(&RealDisk::existing(&store)?, &data, &mut |_| ())?;
                let replay = state_of(store::view(data)?, &genesis, |_| ())?;
                ensure!(replay.root == root, "the state root is {}, but the backup's is {root}", replay.root);
            }
            report(&home, "restored", &manifest, json);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads a backup's list and compares every file with it.
fn read_manifest(backup: &Path) -> anyhow::Result<Manifest> {
    let path = backup.join(MANIFEST);
    let text = std::fs::read(&path).with_context(|| format!("{} is no backup, or unfinished", backup.display()))?;
    let manifest: Manifest = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    let format = manifest.format;
    ensure!(format == FORMAT, "{}: format {format}; this version reads format {FORMAT}", path.display());
    let found = entries(backup)?;
    for file in &manifest.files {
        let same = found.iter().any(|other| other == file);
        ensure!(same, "{}: {} is missing or damaged: take another backup", backup.display(), file.path);
    }
    Ok(manifest)
}

/// All files of a backup but its list.
fn entries(folder: &Path) -> anyhow::Result<Vec<FileEntry>> {
    let mut files = Vec::new();
    for part in ["", FILES, STORE] {
        let inner = folder.join(part);
        if !inner.exists() {
            continue;
        }
        for name in file_names(&inner)?.into_iter().filter(|name| name != MANIFEST && name != "lock") {
            let path = inner.join(&name);
            let mut hasher = blake3::Hasher::new();
            let file = std::fs::File::open(&path).with_context(|| path.display().to_string())?;
            hasher.update_reader(&file).with_context(|| path.display().to_string())?;
            let bytes = hasher.count();
            let path = if part.is_empty() { name } else { format!("{part}/{name}") };
            files.push(FileEntry { path, bytes, blake3: hasher.finalize().to_hex().to_string() });
        }
    }
    Ok(files)
}

/// The names of a folder's own files, in order.
fn file_names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = entry.file_name().into_string();
            names.push(name.map_err(|name| anyhow::anyhow!("{}: not UTF-8", Path::new(&name).display()))?);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| folder.display().to_string())
}

fn copy_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    let content = std::fs::read(from).with_context(|| from.display().to_string())?;
    write_new(to, &content)
}

/// Writes a new file that only its owner reads, durably.
fn write_new(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().with_context(|| path.display().to_string())
}

fn report(place: &Path, what: &str, manifest: &Manifest, json: bool) {
    let Manifest { chain, height, state_root, files, .. } = manifest;
    let (count, bytes) = (files.len(), files.iter().map(|file| file.bytes).sum::<u64>());
    if json {
        println!(
            "{}",
            json!({
                "path": place, "chain": chain, "height": height, "state_root": state_root, "files": count,
                "bytes": bytes,
            })
        );
    } else {
        println!("{}: {what}: height {height}, {count} files, {bytes} bytes", place.display());
        println!("state root {state_root}");
    }
}

fn spinner(template: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    spinner.set_style(ProgressStyle::with_template(template).expect("a sound template"));
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    spinner
}
