//! `walras doctor`: looks at a home and its node as an experienced operator would, and says what to do.

use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::{LaneShardBody, SealingStatus, UpgradeBody};
use client::{ClientError, NodeClient};
use node::config::ApartShard;
use serde_json::json;

use super::config::Settings;
use super::status::sealed_wait;
use crate::lane::{LANE_KEY_FILE, link_key_file};
use crate::validator_keys::{ACCOUNT_KEY_FILE, KEY_FILE, LINK_KEY_FILE};

/// Seconds between a block's time and this machine's clock that need no attention.
const CLOCK_SECONDS: u64 = 60;
/// Milliseconds for which a decided height may wait for its envelopes.
const SEALED_WAIT_MS: u64 = 10_000;
/// How long a shard may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks for what is wrong with a home and its node, and says what to do. Exits with 1 if something must be mended.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras doctor --home ./exchange
  walras doctor --home ./network/validator-0 --server http://127.0.0.1:8080")]
pub struct Doctor {
    /// Directory that `walras init` made.
    #[arg(long, env = "WALRAS_HOME", default_value = "walras-home")]
    home: PathBuf,
    /// Address of the home's node; by default the configured one.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Good,
    Warning,
    Bad,
}

impl Grade {
    fn name(self) -> &'static str {
        match self {
            Grade::Good => "ok",
            Grade::Warning => "warning",
            Grade::Bad => "bad",
        }
    }
}

/// What was looked at, and what to do about it.
#[derive(Debug)]
struct Finding {
    subject: &'static str,
    grade: Grade,
    text: String,
}

impl Finding {
    fn good(subject: &'static str, text: impl Into<String>) -> Finding {
        Finding { subject, grade: Grade::Good, text: text.into() }
    }

    fn warning(subject: &'static str, text: impl Into<String>) -> Finding {
        Finding { subject, grade: Grade::Warning, text: text.into() }
    }

    fn bad(subject: &'static str, text: impl Into<String>) -> Finding {
        Finding { subject, grade: Grade::Bad, text: text.into() }
    }
}

impl Doctor {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let findings = self.findings();
        if json {
            let told = |of: &Finding| json!({"subject": of.subject, "grade": of.grade.name(), "text": of.text});
            println!("{}", json!({"findings": findings.iter().map(told).collect::<Vec<_>>()}));
        } else {
            findings.iter().for_each(|of| println!("{:<8} {:<10} {}", of.grade.name(), of.subject, of.text));
        }
        let is_bad = findings.iter().any(|of| of.grade == Grade::Bad);
        Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn findings(&self) -> Vec<Finding> {
        let settings = match Settings::of(&self.home) {
            Ok(settings) => settings,
            Err(error) => return vec![Finding::bad("settings", terminal::in_words(&error))],
        };
        let mut findings: Vec<Finding> =
            settings.warnings().into_iter().map(|warning| Finding::warning("settings", warning)).collect();
        if findings.is_empty() {
            findings.push(Finding::good("settings", "genesis, file and environment are sound"));
        }
        findings.extend(keys(&self.home, settings.founding.is_some()));
        findings.push(disk(&self.home, settings.config.store.free_bytes));
        findings.extend(settings.config.lane.apart.iter().map(shard_apart));
        let scheme = if settings.config.http.certificate.is_some() { "https" } else { "http" };
        let usual = || format!("{scheme}://{}", settings.config.http.listen);
        let node = NodeClient::at(self.server.clone().unwrap_or_else(usual));
        findings.extend(running(&node, &settings));
        findings
    }
}

/// A shard of the payment lane that runs apart: whether somebody listens for the node.
fn shard_apart(of: &ApartShard) -> Finding {
    let (number, address) = (of.shard, &of.address);
    let mut places = match address.to_socket_addrs() {
        Ok(places) => places,
        Err(error) => {
            let text =
                format!("{address}, where shard {number} should be, is no address: {error}. Set it in [lane] apart");
            return Finding::warning("shards", text);
        }
    };
    let is_there = places.any(|place| TcpStream::connect_timeout(&place, PATIENCE).is_ok());
    match is_there {
        true => Finding::good("shards", format!("somebody listens at {address}, where shard {number} should")),
        false => Finding::warning(
            "shards",
            format!(
                "nobody listens at {address}: start shard {number} there (walras shard --shard {number}), or set its \
                 address in [lane] apart. Until then this member signs nothing for the owners in its range"
            ),
        ),
    }
}

/// The key files: those that a node needs are there, and only their owner can read any of them.
fn keys(home: &Path, is_validator: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if is_validator && !home.join(KEY_FILE).exists() {
        let text = format!(
            "{KEY_FILE} is missing: restore it from your backup, or set [network] signer if another \
             process holds it"
        );
        findings.push(Finding::warning("keys", text));
    }
    let shards = (0..=u8::MAX).map(|shard| link_key_file(shard.into()));
    let others = [KEY_FILE, LINK_KEY_FILE, ACCOUNT_KEY_FILE, LANE_KEY_FILE, "issuer-key.json"].map(String::from);
    for name in others.into_iter().chain(shards) {
        let path = home.join(&name);
        let Ok(about) = std::fs::metadata(&path) else { continue };
        if about.permissions().mode() & 0o077 != 0 {
            findings
                .push(Finding::bad("keys", format!("{name} can be read by other users: chmod 600 {}", path.display())));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good("keys", "only their owner can read them"));
    }
    findings
}

fn disk(home: &Path, least: u64) -> Finding {
    match node::free_bytes(home) {
        Some(free) if free < least => {
            let (free, least) = (free >> 20, least >> 20);
            Finding::bad(
                "disk",
                format!(
                    "{free} MiB free, and [store] free_bytes wants {least}: the node accepts \
                 nothing; free some space, or set [store] keep_blocks"
                ),
            )
        }
        Some(free) if free < 10 * least => Finding::warning("disk", format!("only {} MiB free", free >> 20)),
        Some(free) => Finding::good("disk", format!("{} MiB free", free >> 20)),
        None => Finding::warning("disk", "the system does not say how much is free"),
    }
}

/// The node itself, if it runs.
fn running(node: &NodeClient, settings: &Settings) -> Vec<Finding> {
    let status = match node.status() {
        Ok(status) => status,
        Err(ClientError::NoAnswer { .. }) => return vec![stopped(node, settings)],
        Err(error) => return vec![Finding::bad("node", error.to_string())],
    };
    let mut findings = vec![match node.unready() {
        Ok(None) => Finding::good("node", format!("ready at height {}", status.height)),
        Ok(Some(why)) => Finding::bad("node", format!("{}: {}", why.code, why.message)),
        Err(error) => Finding::bad("node", error.to_string()),
    }];
    if status.version != env!("CARGO_PKG_VERSION") {
        let text = format!(
            "the node runs {}, this command is {}: restart the node",
            status.version,
            env!("CARGO_PKG_VERSION")
        );
        findings.push(Finding::warning("version", text));
    }
    findings.extend(lane_shards(&status.lane_shards));
    findings.extend(status.sealing.as_ref().map(sealing));
    findings.push(network(node, settings));
    findings.extend(node.upgrade().ok().map(|now| rules(&now, settings.config.network.approve)));
    findings.extend((status.height > 0).then(|| clock(status.time_ms)));
    if let Ok(Some(validator)) = node.validator() {
        let absent: Vec<String> = validator
            .peers
            .iter()
            .take(validator.validators)
            .filter(|peer| !peer.connected && peer.validator != validator.me)
            .map(|peer| peer.validator.to_string())
            .collect();
        findings.push(match absent.is_empty() {
            true => Finding::good("peers", "every validator is connected"),
            false => Finding::warning("peers", format!("not connected: validator {}", absent.join(", "))),
        });
        // A moment is usual: a message, and the work.
        if let Some(wait) = validator.sealed_wait.as_ref().filter(|wait| wait.ms > SEALED_WAIT_MS) {
            let text = format!("{}: see WalrasSealedWaits in docs/operators.md", sealed_wait(wait));
            findings.push(Finding::bad("envelopes", text));
        }
        if validator.silent {
            findings.push(Finding::bad(
                "votes",
                "the vote log was lost, so this validator does not vote: see docs/operators.md",
            ));
        }
    }
    findings
}

/// The shards of the payment lane, as the running node has them.
fn lane_shards(all: &[LaneShardBody]) -> Vec<Finding> {
    let down = all.iter().filter(|of| !of.up).map(|of| {
        let (shard, height) = (of.shard, of.facts_height);
        let text = match of.apart {
            true => format!(
                "the node is not connected to shard {shard}, which knows blocks up to {height}: start it (walras shard \
                 --shard {shard}), or see its log. It begins no lane epoch by itself"
            ),
            false => format!(
                "shard {shard} does not run, or another process has its port: the node's log names the error. It tries \
                 again by itself"
            ),
        };
        Finding::warning("shards", text)
    });
    let down: Vec<Finding> = down.collect();
    let all_up = || Finding::good("shards", "every shard of this member runs and is connected");
    if down.is_empty() { all.first().map(|_| all_up()).into_iter().collect() } else { down }
}

/// Whether the committee has a sealing key.
fn sealing(of: &SealingStatus) -> Finding {
    match (of.in_force, &of.missing) {
        (Some(key), _) => Finding::good("sealing", format!("the key {key} has {} holders", of.holders)),
        (None, why) => {
            let why = why.as_deref().unwrap_or("the node does not say why");
            Finding::warning("sealing", format!("clients cannot seal orders: {why}. See docs/sealed.md"))
        }
    }
}

/// Whether the node is of the network of the home.
fn network(node: &NodeClient, settings: &Settings) -> Finding {
    let expected = match &settings.founding {
        Some(founding) => founding.lineage(&settings.genesis).chain.genesis,
        None => settings.genesis.digest(),
    };
    match node.terms() {
        Ok(terms) if terms.network == expected => Finding::good("network", format!("{expected}")),
        Ok(terms) => Finding::bad(
            "network",
            format!(
                "the node at {} is of network {}, and this home of {expected}: give its --server",
                node.url(),
                terms.network
            ),
        ),
        Err(error) => Finding::bad("network", error.to_string()),
    }
}

/// Whether the node follows the rules that its chain has agreed on, and approves those that its operator wants.
fn rules(now: &UpgradeBody, approve: Option<u32>) -> Finding {
    let agreed = now.coming.as_ref().map_or((now.confirmed, now.since), |coming| (coming.rules, coming.acts));
    match (agreed, approve) {
        ((rules, acts), _) if rules > now.known => Finding::bad(
            "rules",
            format!(
                "the chain follows rules {rules} from height {acts}, and this node knows up to {}: install a version of \
                 walras for them before, the signer first",
                now.known
            ),
        ),
        (_, Some(wanted)) if wanted > now.confirmed + 1 || wanted > now.known => Finding::warning(
            "rules",
            format!(
                "[network] approve = {wanted} approves nothing: the next rules are {}, and this node knows up to {}",
                now.confirmed + 1,
                now.known
            ),
        ),
        _ => Finding::good("rules", format!("{} are in force, and this node knows up to {}", now.rules, now.known)),
    }
}

fn clock(block_ms: u64) -> Finding {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let seconds = now_ms.abs_diff(block_ms) / 1_000;
    match seconds <= CLOCK_SECONDS {
        true => Finding::good("clock", format!("the newest block is {seconds} s from this machine's clock")),
        false => Finding::warning(
            "clock",
            format!(
                "the newest block is {seconds} s from this machine's clock: nothing \
             happens, the network stalls, or a clock is wrong (see `walras status --peers`, and timedatectl)"
            ),
        ),
    }
}

/// A node that does not answer: is its address free?
fn stopped(node: &NodeClient, settings: &Settings) -> Finding {
    match TcpListener::bind(settings.config.http.listen) {
        Ok(_) => Finding::warning("node", format!("no node answers at {}; its address is free: start it", node.url())),
        Err(error) => Finding::bad(
            "node",
            format!(
                "no node answers at {}, and its address cannot be used: {error}. \
             Another process has it (`ss -ltnp`), or [http] listen is no address of this machine",
                node.url()
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = folder.path().join(KEY_FILE);
        assert_eq!(keys(folder.path(), false)[0].grade, Grade::Good);
        assert_eq!(keys(folder.path(), true)[0].grade, Grade::Warning, "a validator's key is missing");
        std::fs::write(&key, "{}").expect("written");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).expect("set");
        let found = keys(folder.path(), true);
        assert!(found[0].grade == Grade::Bad && found[0].text.contains("chmod 600"), "{found:?}");
    }

    #[test]
    fn rules_that_the_node_does_not_know_are_found() {
        let now = |confirmed, known| UpgradeBody {
            height: 9,
            rules: 11,
            confirmed,
            confirmed_manifest: String::new(),
            since: 25,
            coming: None,
            known,
            manifest: None,
            operator: None,
            notice_min: 1,
            patience: 1,
            approved: Vec::new(),
            unready: Vec::new(),
        };
        assert_eq!(rules(&now(11, 11), None).grade, Grade::Good);
        let ahead = rules(&now(12, 11), None);
        assert!(ahead.grade == Grade::Bad && ahead.text.contains("rules 12 from height 25"), "{ahead:?}");
        assert_eq!(rules(&now(11, 12), Some(12)).grade, Grade::Good);
        assert_eq!(rules(&now(11, 11), Some(12)).grade, Grade::Warning, "it approves what it does not know");
    }

    #[test]
    fn a_shard_that_nobody_runs_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let of = ApartShard { shard: 3, address, key: String::new() };
        assert_eq!(shard_apart(&of).grade, Grade::Good);
        drop(listener);
        let found = shard_apart(&of);
        assert!(found.grade == Grade::Warning && found.text.contains("walras shard --shard 3"), "{found:?}");
    }

    #[test]
    fn a_full_disk_and_a_wrong_clock_are_found() {
        assert_eq!(disk(Path::new("/"), u64::MAX / 10).grade, Grade::Bad);
        assert_eq!(disk(Path::new("/"), 0).grade, Grade::Good);
        assert_eq!(clock(0).grade, Grade::Warning);
    }
}
