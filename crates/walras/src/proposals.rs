//! `walras upgrade parameters | propose | vote`: what validators vote about.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use api::{ComingChangeBody, ParameterBody, ParametersBody, ProposalBody};
use client::hexadecimal::hex_bytes;
use primitives::{
    Address, Amount, AssetControl, Digest, LANE_DEPOSITS, LaneAssetTerms, MAX_ISSUED, Operation, PARAMETERS, Parameter,
    PlainListing, ProposalWord, ProposedChange,
};
use serde_json::json;

use crate::decimal::to_units;
use crate::wallet::send::Sender;
use crate::wallet::server::Server;

/// The least units of an asset that an offer sells or asks for, unless the proposal says otherwise.
const LEAST_UNITS: Amount = 4_096;

/// Propose one change of the chain. It costs 1000 fees, and replaces what the account has open.
#[derive(clap::Subcommand)]
pub enum ProposeCommand {
    /// Another value of a parameter: at most twice as much as will be in force, and at least half.
    #[command(after_help = "Example:\n  walras upgrade propose parameter --name fee --value 200 --key account.key")]
    Parameter {
        /// Its name; `walras upgrade parameters` lists them.
        #[arg(long)]
        name: String,
        /// Its value, in units of the parameter.
        #[arg(long)]
        value: u64,
        #[command(flatten)]
        sender: Sender,
    },
    /// An asset with a plain name, where the policy of listings is `voted`.
    #[command(after_help = "Example:
  walras upgrade propose listing --symbol EUR --issuer 0x2df6…c1 --decimals 2 --supply-max 1000000000 --key account.key")]
    Listing {
        /// 1 to 12 letters, digits, `-` or `_`, a letter first.
        #[arg(long)]
        symbol: String,
        /// The account that issues it.
        #[arg(long)]
        issuer: Address,
        /// Decimal places.
        #[arg(long)]
        decimals: u8,
        /// The most that may exist at one time, in whole assets; by default 9223372036854775807 units.
        #[arg(long, value_name = "AMOUNT")]
        supply_max: Option<String>,
        /// The least that an offer sells or asks for, in units.
        #[arg(long, value_name = "UNITS", default_value_t = LEAST_UNITS)]
        least_units: Amount,
        /// SHA-256 of a document that says what it is, in hexadecimal.
        #[arg(long, value_name = "HEX")]
        document: Option<String>,
        #[command(flatten)]
        sender: Sender,
    },
    /// The terms of an asset in the payment lane, from a later lane epoch on.
    #[command(after_help = "Examples:
  walras upgrade propose lane --asset EUR.17 --least-units 100 --fee 1 --key account.key
  walras upgrade propose lane --asset EUR.17 --least-units 100 --fee 1 --deposits refused --key account.key")]
    Lane {
        /// The asset. No issuer controls it.
        #[arg(long)]
        asset: String,
        /// The smallest output and the smallest deposit, in units.
        #[arg(long, value_name = "UNITS")]
        least_units: Amount,
        /// What each payment leaves in escrow, in units; zero stays zero.
        #[arg(long, value_name = "UNITS")]
        fee: Amount,
        /// Whether units may enter the lane; those in it always leave.
        #[arg(long, value_parser = LANE_DEPOSITS, default_value = LANE_DEPOSITS[1])]
        deposits: String,
        /// The most that leaves at once beyond what enters, in units. An asset has a limit from its first terms on, or
        /// never.
        #[arg(long, value_name = "UNITS", requires = "outflow_per_height")]
        outflow_most: Option<Amount>,
        /// What of that limit is regained at each height, in units.
        #[arg(long, value_name = "UNITS", requires = "outflow_most")]
        outflow_per_height: Option<Amount>,
        #[command(flatten)]
        sender: Sender,
    },
    /// That an asset closes, whatever its issuer says.
    #[command(after_help = "Example:\n  walras upgrade propose closing --asset EUR.17 --key account.key")]
    Closing {
        /// The asset.
        #[arg(long)]
        asset: String,
        #[command(flatten)]
        sender: Sender,
    },
}

impl ProposeCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let proposes = |change| Ok(Operation::Propose(Box::new(change)));
        match self {
            ProposeCommand::Parameter { name, value, sender } => {
                let parameter = named(&name)?;
                sender.send(json, |_, _, _| proposes(ProposedChange::Parameter { parameter, value }))
            }
            ProposeCommand::Listing { symbol, issuer, decimals, supply_max, least_units, document, sender } => {
                let most = supply_max.map_or(Ok(MAX_ISSUED), |text| to_units(&text, decimals));
                let supply_max = most.context("--supply-max")?;
                let document = document.map_or(Ok(Digest::default()), |text| digest("--document", &text))?;
                let control = AssetControl::Open;
                let listing = PlainListing { issuer, symbol, decimals, control, least_units, supply_max, document };
                sender.send(json, |_, _, _| proposes(ProposedChange::List(listing)))
            }
            ProposeCommand::Lane {
                asset: symbol,
                least_units,
                fee,
                deposits,
                outflow_most,
                outflow_per_height,
                sender,
            } => sender.send(json, |_, _, assets| {
                let (asset, deposits) = (assets.find(&symbol)?.asset, deposits == LANE_DEPOSITS[1]);
                let [outflow_most, outflow_per_height] =
                    [outflow_most, outflow_per_height].map(Option::unwrap_or_default);
                let terms = LaneAssetTerms { asset, least_units, fee, deposits, outflow_most, outflow_per_height };
                proposes(ProposedChange::Lane(terms))
            }),
            ProposeCommand::Closing { asset, sender } => {
                sender.send(json, |_, _, assets| proposes(ProposedChange::Close { asset: assets.find(&asset)?.asset }))
            }
        }
    }
}

/// Votes about an open proposal.
pub fn vote(proposal: &str, word: ProposalWord, sender: Sender, json: bool) -> anyhow::Result<ExitCode> {
    let id = digest("--proposal", proposal)?;
    sender.send(json, |server, _, _| {
        let open = server.node().parameters()?.proposals;
        let is_open = open.iter().any(|one| one.id == id.to_string());
        ensure!(is_open, "no open proposal has the id {id}: `walras upgrade parameters` lists those that are open");
        Ok(Operation::Vote { proposal: id, word })
    })
}

/// Shows the parameters in force, what waits, and what is proposed.
pub fn show(server: &Server, json: bool) -> anyhow::Result<ExitCode> {
    let body = server.node().parameters()?;
    if json {
        println!("{}", json!(body));
    } else {
        lines(&body).iter().for_each(|line| println!("{line}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn named(name: &str) -> anyhow::Result<Parameter> {
    let known = Parameter::ALL.into_iter().find(|one| one.name() == name);
    known.with_context(|| format!("--name: {name:?} is no parameter: choose one of {}", PARAMETERS.join(", ")))
}

fn digest(option: &str, text: &str) -> anyhow::Result<Digest> {
    let bytes = hex_bytes(text).with_context(|| format!("{option}: not hexadecimal"))?;
    Ok(Digest(bytes.try_into().ok().with_context(|| format!("{option}: it has 64 hexadecimal digits"))?))
}

fn lines(body: &ParametersBody) -> Vec<String> {
    let mut lines = vec![format!("parameters from height {} on", body.height + 1)];
    lines.extend(body.parameters.iter().map(|one| parameter(one, body.height)));
    lines.extend(body.coming.iter().map(coming));
    lines.extend(body.proposals.iter().flat_map(proposal));
    if body.proposals.is_empty() {
        lines.push("nothing is proposed".into());
    }
    lines
}

fn parameter(of: &ParameterBody, height: u64) -> String {
    let rests = of.rests_until.filter(|until| *until > height);
    let rests = rests.map_or_else(String::new, |until| format!("; changes again from height {until} on"));
    format!("  {:<16} {:>20}  (from {} to {}{rests})", of.parameter, of.value, of.least, of.most)
}

fn coming(of: &ComingChangeBody) -> String {
    let values = of.parameters.iter().map(|one| format!("{} is {}", one.parameter, one.value));
    let lists = of.lists.iter().map(|name| format!("{name} is listed"));
    let closes = of.closes.iter().map(|name| format!("{name} is announced to close"));
    let lane = of.lane.iter().map(|name| format!("terms of {name} in later epochs of the payment lane are decided"));
    let all: Vec<String> = values.chain(lists).chain(closes).chain(lane).collect();
    format!("from height {} on: {}", of.acts, all.join(", "))
}

fn proposal(of: &ProposalBody) -> [String; 2] {
    let ProposalBody { id, proposer, words, seats, seats_needed, all_seats, stake, all_stake, .. } = of;
    [
        format!("{proposer} {words}"),
        format!(
            "  {id}: {seats} of {all_seats} seats ({seats_needed} needed), {stake} of {all_stake} staked units (two \
             thirds needed), {} boundaries left",
            of.boundaries_left
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_none_is_told_those_that_are() {
        assert_eq!(named("until_max").expect("one"), Parameter::UntilMax);
        let wrong = named("block_gas").expect_err("none").to_string();
        assert!(wrong.contains("\"block_gas\" is no parameter") && wrong.contains("fee, least_base_fee"), "{wrong}");
        let short = digest("--proposal", "0x07").expect_err("short").to_string();
        assert!(short.contains("--proposal: it has 64"), "{short}");
    }
}
