//! `walras upgrade`: which rules the chain follows, which come, and what an account says about them and about
//! parameters.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use api::{ApprovedRulesBody, ComingRulesBody, UpgradeBody};
use primitives::{Digest, Height, Operation, ProposalWord, Upgrade};
use serde_json::json;

use crate::lane_terms;
use crate::proposals::{self, ProposeCommand};
use crate::wallet::send::Sender;
use crate::wallet::server::Server;

/// See, approve and propose what the chain will follow: rules, parameters, assets.
#[derive(clap::Subcommand)]
pub enum UpgradeCommand {
    /// Show the rules in force, those to come, and who approves of them. Exits with 1 if the node does not follow the
    /// newest rules that the chain has agreed on.
    #[command(after_help = "Example:\n  walras upgrade status --server http://10.0.0.7:8080")]
    Status {
        #[command(flatten)]
        server: Server,
    },
    /// Approve the next rules with the key of an account that has staked, or of the operator of a chain of one node.
    ///
    /// A validating node does it by itself if `[network] approve` names the rules.
    #[command(after_help = "Example:\n  walras upgrade approve --rules 12 --key account.key")]
    Approve {
        /// The number of the rules: those in force, or the next ones.
        #[arg(long)]
        rules: u32,
        /// Heights from the agreement until they act; by default the fewest that the chain permits. Approvals count
        /// together only if they name the same.
        #[arg(long, value_name = "HEIGHTS")]
        notice: Option<Height>,
        #[command(flatten)]
        sender: Sender,
    },
    /// Withdraw an approval. Do this, and wait for it, before the program is replaced by an older one.
    #[command(after_help = "Example:\n  walras upgrade withdraw --rules 12 --key account.key")]
    Withdraw {
        /// The number of the rules.
        #[arg(long)]
        rules: u32,
        #[command(flatten)]
        sender: Sender,
    },
    /// Show the parameters of the chain, what waits, and what is proposed about them.
    #[command(after_help = "Example:\n  walras upgrade parameters --server http://10.0.0.7:8080")]
    Parameters {
        #[command(flatten)]
        server: Server,
    },
    /// Show on what terms the payment lane carries assets, in each lane epoch that counts.
    #[command(after_help = "Example:\n  walras upgrade lane --server http://10.0.0.7:8080")]
    Lane {
        #[command(flatten)]
        server: Server,
    },
    /// Propose a change of the chain, on which validators vote, with the key of an account that has staked, or of the
    /// operator of a chain of one node.
    #[command(subcommand)]
    Propose(ProposeCommand),
    /// Vote about an open proposal with the key of an account that has staked. The last vote counts.
    #[command(after_help = "Example:\n  walras upgrade vote --proposal 0x5a1c…07 --key account.key")]
    Vote {
        /// The id of the proposal.
        #[arg(long, value_name = "HEX")]
        proposal: String,
        /// Vote against it.
        #[arg(long)]
        no: bool,
        #[command(flatten)]
        sender: Sender,
    },
}

impl UpgradeCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            UpgradeCommand::Status { server } => status(&server, json),
            UpgradeCommand::Approve { rules, notice, sender } => sender.send(json, |server, _, _| {
                let now = server.node().upgrade()?;
                let upgrade =
                    Upgrade { rules, manifest: meaning(&now, rules)?, notice: notice.unwrap_or(now.notice_min) };
                Ok(Operation::Approve { upgrade, at: now.height })
            }),
            UpgradeCommand::Withdraw { rules, sender } => sender
                .send(json, |server, _, _| Ok(Operation::Unapprove { rules, at: server.node().upgrade()?.height })),
            UpgradeCommand::Parameters { server } => proposals::show(&server, json),
            UpgradeCommand::Lane { server } => lane_terms::show(&server.node(), json),
            UpgradeCommand::Propose(command) => command.run(json),
            UpgradeCommand::Vote { proposal, no, sender } => {
                let word = if no { ProposalWord::No } else { ProposalWord::Yes };
                proposals::vote(&proposal, word, sender, json)
            }
        }
    }
}

/// What this program means by rules; the node must mean the same.
fn meaning(now: &UpgradeBody, rules: u32) -> anyhow::Result<Digest> {
    let newest = ledger::RULES_NEWEST;
    let own = ledger::manifest(rules).with_context(|| {
        format!("this program does not know rules {rules} (it knows up to {newest}): install a version that does")
    })?;
    let of_node = if rules == now.confirmed { Some(&now.confirmed_manifest) } else { now.manifest.as_ref() };
    ensure!(
        of_node == Some(&own.to_string()),
        "the node does not know rules {rules}, or means something else by them (it knows up to {}): install the same \
         version of walras there first; an approval without the program is a fault",
        now.known
    );
    Ok(own)
}

fn status(server: &Server, json: bool) -> anyhow::Result<ExitCode> {
    let now = server.node().upgrade()?;
    let agreed = now.coming.as_ref().map_or(now.confirmed, |coming| coming.rules);
    if json {
        println!("{}", json!(now));
    } else {
        lines(&now).iter().for_each(|line| println!("{line}"));
    }
    Ok(if agreed <= now.known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(now: &UpgradeBody) -> Vec<String> {
    let mut lines =
        vec![format!("rules {} at height {}; this node knows up to {}", now.rules, now.height + 1, now.known)];
    if now.since > now.height + 1 {
        lines.push(format!("rules {} are confirmed and act from height {}", now.confirmed, now.since));
    }
    lines.extend(now.coming.as_ref().map(coming));
    lines.extend(now.approved.iter().map(approved));
    if !now.unready.is_empty() {
        lines.push(format!("have not approved rules {}: {}", now.confirmed, now.unready.join(", ")));
    }
    if now.coming.is_none() && now.approved.is_empty() {
        lines.push(format!("nobody approves rules {} yet", now.confirmed + 1));
    }
    lines
}

fn coming(of: &ComingRulesBody) -> String {
    let when = of.confirms.map_or(String::new(), |boundary| format!(", if they are confirmed at height {boundary}"));
    format!("rules {} are agreed on and act from height {}{when}; {} of 3 tries missed", of.rules, of.acts, of.tries)
}

fn approved(of: &ApprovedRulesBody) -> String {
    format!(
        "rules {} (manifest {}, notice {}): {} of {} staked units, {} of {} seats ({} needed): {}",
        of.rules,
        of.manifest,
        of.notice,
        of.stake,
        of.all_stake,
        of.seats,
        of.all_seats,
        of.seats_needed,
        of.accounts.join(", ")
    )
}
