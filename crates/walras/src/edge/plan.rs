//! `walras edge`: trees and what they cost; the venue's secret; signed bundles; the sample market maker, remote.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use fairnet::{Plan, PlanRequest, TreeCost};
use primitives::{PublicKey, from_hex};
use serde_json::{Value, json};

use super::bundles::{TrueBundles, verify};
use super::member::{GatewayCommand, ProxyCommand};

/// A venue's market edge: plan its tree, make its secret, run its members.
#[derive(clap::Subcommand)]
pub enum EdgeMember {
    /// Plan the tree between a venue and its participants, and say what it costs.
    #[command(after_help = "Examples:
  walras edge plan --participants 1000
  walras edge plan --participants 100 --hedging 2 --trees 2 --json
  walras edge plan --participants 1000 --depth 2")]
    Plan(PlanCommand),
    /// Make the secret that every machine of a venue's edge needs.
    #[command(after_help = "Example:\n  walras edge secret --out edge-secret")]
    Secret {
        /// The file; it must not exist.
        #[arg(long)]
        out: PathBuf,
    },
    /// Run a proxy of a venue's market edge.
    Proxy(ProxyCommand),
    /// Run gateways of a venue's market edge.
    Gateway(GatewayCommand),
    /// The sample market maker as a remote strategy: reads what `walras edge gateway --feed` prints, and writes the
    /// orders that `walras edge gateway --orders` reads. The module market_maker.wat issues the same in the gateway.
    #[command(after_help = "Example:
  mkfifo orders
  walras edge gateway --member 1000 --root 10.0.0.1:9400 --secret edge-secret --feed --orders < orders \\
    | walras edge quote > orders")]
    Quote,
    /// Verify bundles of orders that a root has signed: chain, cut-offs, stamps, signatures.
    #[command(after_help = "Example:
  curl -s http://127.0.0.1:8090/v1/bundles > bundles.json
  walras edge verify --bundles bundles.json --key 0x…")]
    Verify {
        /// What `/v1/bundles` answered.
        #[arg(long)]
        bundles: PathBuf,
        /// The root's public key, from somebody that you trust; by default the one in the file, which proves less.
        #[arg(long)]
        key: Option<String>,
    },
}

/// What the tree shall be.
#[derive(clap::Args)]
pub struct PlanCommand {
    /// Receivers.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    participants: u32,
    /// Hops from the root to the receivers; by the rule of the paper if absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=8))]
    depth: Option<u32>,
    /// Additional copies for each node below the first layer.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=16))]
    hedging: u32,
    /// Parallel trees, by symbol.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    trees: u16,
    /// Price of a proxy's machine for an hour, in dollars; the paper's by default.
    #[arg(long, default_value_t = 0.34)]
    machine_price: f64,
}

/// Answers each line of the feed with orders, until the feed ends.
fn quote(feed: impl BufRead, mut orders: impl Write) -> anyhow::Result<()> {
    for line in feed.lines() {
        let line = line.context("standard input")?;
        let shown: Value = serde_json::from_str(&line)
            .with_context(|| format!("standard input: {line:?} is no line of `walras edge gateway --feed`"))?;
        let messages = shown["messages"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for body in messages.flat_map(|message| edge::sample_quotes(message.as_bytes())) {
            writeln!(orders, "0x{}", primitives::to_hex(&body)).context("standard output")?;
        }
        // The gateway stamps an order when it reads it.
        orders.flush().context("standard output")?;
    }
    Ok(())
}

impl EdgeMember {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            EdgeMember::Plan(plan) => {
                let report = plan.report()?;
                if json { println!("{report}") } else { print!("{}", terminal::text(&report)) }
            }
            EdgeMember::Proxy(proxy) => return proxy.run(),
            EdgeMember::Gateway(gateway) => return gateway.run(),
            EdgeMember::Quote => quote(std::io::stdin().lock(), terminal::output::Out)?,
            EdgeMember::Verify { bundles, key } => verify_file(&bundles, key.as_deref(), json)?,
            EdgeMember::Secret { out } => {
                super::make_secret(&out)?;
                let path = out.display().to_string();
                if json { println!("{}", json!({ "secret": path })) } else { println!("{path}") }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn verify_file(path: &Path, key: Option<&str>, json: bool) -> anyhow::Result<()> {
    let name = path.display();
    let file = std::fs::read_to_string(path).with_context(|| name.to_string())?;
    let page: Value = serde_json::from_str(&file).with_context(|| name.to_string())?;
    let text = key.or(page["key"].as_str()).context("the file names no key: give --key")?;
    let key = PublicKey(from_hex(text).context("--key")?);
    let TrueBundles { bundles, orders, late } = verify(&page, &key).with_context(|| name.to_string())?;
    if json {
        println!("{}", json!({ "bundles": bundles, "orders": orders, "late": late, "key": text }));
    } else {
        println!("{bundles} bundles hold, with {orders} orders, {late} of them late; signed by {text}");
    }
    Ok(())
}

impl PlanCommand {
    fn plan(&self, depth: Option<u32>) -> Result<Plan, fairnet::PlanError> {
        let PlanCommand { participants, hedging, trees, .. } = *self;
        Plan::new(&PlanRequest { epoch: 1, receivers: participants, depth, hedging, trees })
    }

    fn report(&self) -> anyhow::Result<Value> {
        let plan = self.plan(self.depth)?;
        let rows: Vec<Value> =
            (1..=4).filter_map(|depth| Some(self.row(&self.plan(Some(depth)).ok()?, plan.depth()))).collect();
        Ok(json!({
            "participants": self.participants,
            "depth": plan.depth(),
            "widths": plan.widths(),
            "hedging": plan.hedging(),
            "trees": plan.trees(),
            "proxies": plan.proxies(),
            "copies_of_a_packet": plan.copies_of_packet(),
            "dollars_an_hour": dollars(plan.proxies(), self.machine_price),
            "latency": "estimated without hedging, from a fit to table 3 of the paper and by its own formula",
            "rows": rows,
        }))
    }

    /// One depth, and whether it is the one that is chosen.
    fn row(&self, plan: &Plan, chosen: u32) -> Value {
        let fan_out = (0..plan.depth()).map(|layer| plan.fan_out(layer)).max().unwrap_or(1);
        let latency = |cost: TreeCost| (cost.latency_us(plan.depth(), fan_out) * 10.0).round() / 10.0;
        json!({
            "depth": plan.depth(),
            "fan_out": fan_out,
            "proxies": plan.proxies(),
            "copies": plan.copies_of_packet(),
            "latency_us": latency(TreeCost::FITTED),
            "paper_us": latency(TreeCost::PAPER),
            "dollars_an_hour": dollars(plan.proxies(), self.machine_price),
            "chosen": plan.depth() == chosen,
        })
    }
}

fn dollars(proxies: u64, price: f64) -> f64 {
    (proxies as f64 * price * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairnet_plan_of_a_thousand_is_that_of_the_paper() {
        let command = PlanCommand { participants: 1_000, depth: None, hedging: 2, trees: 3, machine_price: 0.34 };
        let report = command.report().expect("a tree");
        assert_eq!(report["widths"], json!([1, 10, 100, 1_000]));
        assert_eq!((&report["proxies"], &report["dollars_an_hour"]), (&json!(330), &json!(112.2)));
        let impossible = PlanCommand { participants: 3, depth: Some(2), ..command };
        assert!(impossible.report().is_err(), "two proxies cannot hedge by two");
    }
}
