//! `walras status`: one node, as it says itself.

use std::process::ExitCode;

use anyhow::Context;
use api::{NodeStatus, PeerStatus, SealedWait, SealingStatus, ValidatorStatus};
use client::Unready;
use serde_json::json;

use crate::wallet::server::Server;

/// Shows how a node stands. Exits with 1 if it is not ready.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  walras status
  walras status --server http://10.0.0.7:8080 --json
  walras status --peers")]
pub struct StatusCommand {
    /// Instead, show the validators and followers that a validator sees. Exits with 1 if too few are connected to
    /// decide a block.
    #[arg(long)]
    peers: bool,
    #[command(flatten)]
    server: Server,
}

impl StatusCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let node = self.server.node();
        if self.peers {
            return peers(&node.validator()?.context("this is a solo node, or it has just started: no peers")?, json);
        }
        let (status, validator, unready) = (node.status()?, node.validator()?, node.unready()?);
        if json {
            let reason = unready.as_ref().map(|Unready { code, message }| json!({"code": code, "message": message}));
            println!("{}", json!({"status": status, "validator": validator, "unready": reason}));
        } else {
            lines(&status, validator.as_ref(), unready.as_ref()).iter().for_each(|line| println!("{line}"));
        }
        Ok(if unready.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn lines(status: &NodeStatus, validator: Option<&ValidatorStatus>, unready: Option<&Unready>) -> Vec<String> {
    let standing = unready.map_or("ready".to_string(), |why| format!("not ready ({}): {}", why.code, why.message));
    let seconds = status.uptime_ms / 1_000;
    let mut lines = vec![
        format!("{standing}"),
        format!("version {}, engine {}, chain {}, up {seconds} s", status.version, status.engine, status.chain),
        format!("height {}, {} accounts, {} resting offers", status.height, status.accounts, status.offers),
        format!(
            "{} of {} pending, {:.1} transactions a second; {} committed and {} refused since start",
            status.mempool.transactions,
            status.mempool.limit,
            status.transactions_per_second,
            status.committed,
            status.refused
        ),
    ];
    lines.extend(status.stalled.clone());
    let down: Vec<String> = status.lane_shards.iter().filter(|of| !of.up).map(|of| of.shard.to_string()).collect();
    if !down.is_empty() {
        let all = status.lane_shards.len();
        lines.push(format!("of {all} shards of the payment lane down: {} (walras shard list)", down.join(", ")));
    }
    lines.extend(status.sealing.as_ref().map(sealing));
    lines.extend(validator.map(role));
    lines.extend(validator.and_then(|of| of.sealed_wait.as_ref()).map(sealed_wait));
    lines.extend(validator.and_then(|of| of.admission.clone()));
    lines
}

/// The committee's sealing key.
fn sealing(of: &SealingStatus) -> String {
    let missing = of.missing.as_deref().unwrap_or_default();
    match (of.in_force, of.age) {
        (Some(key), Some(age)) => format!("sealing key {key}, {age} heights old, {} holders", of.holders),
        _ => format!("no sealing key: {missing}"),
    }
}

/// What the ledger waits for.
pub(super) fn sealed_wait(of: &SealedWait) -> String {
    let silent: Vec<String> = of.silent.iter().map(u8::to_string).collect();
    let SealedWait { height, ms, .. } = of;
    format!("height {height} waits for its envelopes for {ms} ms; no shares from: validator {}", silent.join(", "))
}

/// What a validator is, and how far.
fn role(of: &ValidatorStatus) -> String {
    let what = match (of.follows, of.silent) {
        (true, _) => "follower".to_string(),
        (false, true) => format!("validator {}, silent because its vote log was lost", of.me),
        (false, false) => format!("validator {}", of.me),
    };
    format!(
        "{what} of epoch {}: {} of {} others connected, {} needed to decide; decided {}, certified {} (others {})",
        of.epoch,
        of.connected,
        of.validators.saturating_sub(usize::from(!of.follows)),
        of.needed,
        of.decided,
        of.certified,
        of.certified_anywhere
    )
}

fn peers(status: &ValidatorStatus, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        println!("{}", json!({"me": status.me, "needed": status.needed, "peers": status.peers}));
    } else {
        println!("{:>4}  {:<11} {:<7} {:>10} {:>10} {:>8}", "who", "link", "votes", "decided", "certified", "ms");
        status.peers.iter().for_each(|peer| println!("{}", row(peer, status)));
    }
    let seen = status.connected + usize::from(!status.follows);
    Ok(if seen >= status.needed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(peer: &PeerStatus, status: &ValidatorStatus) -> String {
    let is_self = peer.validator == status.me;
    let link = match (is_self, peer.connected) {
        (true, _) => "this one",
        (false, true) => "connected",
        (false, false) => "absent",
    };
    let is_follower = usize::from(peer.validator) >= status.validators;
    let votes = match (is_follower, peer.votes) {
        (true, _) => "follows",
        (false, true) => "yes",
        (false, false) => "no",
    };
    let trip = peer.round_trip_ms.map_or("-".into(), |ms| format!("{ms:.1}"));
    format!("{:>4}  {link:<11} {votes:<7} {:>10} {:>10} {trip:>8}", peer.validator, peer.decided, peer.certified)
}
