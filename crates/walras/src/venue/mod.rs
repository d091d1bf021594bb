//! `walras venue`: venues of continuous markets, as their owners run them and others audit them.

mod audit;
mod evidence;
pub mod run;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use client::{Assets, Ticks};
use primitives::venue::{MarketId, MarketTerms, PPM, VenueId, VenueOperation, VenueOperator};
use primitives::{Address, Amount, Operation, Price, PublicKey};

use crate::decimal::to_units;
use crate::wallet::send::Sender;
use crate::wallet::server::Server;
use audit::VenueAudit;
use evidence::{AccuseVenue, ClaimFill};
use run::{VenuePrepare, VenueStatus};

/// Owns venues of continuous markets, looks at them, and proves what they did.
#[derive(clap::Subcommand)]
pub enum VenueCommand {
    /// Open a venue, which this account owns. Its number is given, so that a repeated command opens no second one.
    #[command(after_help = "Example, with fees of at most 0.2 percent:
  walras venue open --key owner.json --venue 0 --operator 0x53e0… --report-key 0x8a88… --fee-cap 0.2 --bond 10000")]
    Open {
        /// Its number: the next free one, as `walras venue show` says.
        #[arg(long)]
        venue: VenueId,
        #[command(flatten)]
        operator: Appointed,
        /// The most that an order pays in fees, in percent of what it trades.
        #[arg(long, value_name = "PERCENT")]
        fee_cap: String,
        /// The bond, in whole units of the first asset. It is lost if the venue reports what it does not settle.
        #[arg(long)]
        bond: String,
        #[command(flatten)]
        sender: Sender,
    },
    /// List a market. Its terms never change.
    #[command(after_help = "Example, EUR/USD in lots of one EUR and ticks of 0.0001 USD:
  walras venue list --key owner.json --venue 0 --market 0 --base EUR --quote USD --lot 1 --tick 0.0001 \\
    --lots-max 1000000 --fee-cap 0.2 --penalty 0.01")]
    List {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// The market's number: the next free one of the venue.
        #[arg(long)]
        market: MarketId,
        /// The asset that is traded.
        #[arg(long)]
        base: String,
        /// The asset in which it is paid.
        #[arg(long)]
        quote: String,
        /// A lot, in whole units of the base.
        #[arg(long)]
        lot: String,
        /// The price of one tick: whole units of the quote for one of the base.
        #[arg(long)]
        tick: Price,
        /// The most lots of an order.
        #[arg(long)]
        lots_max: u32,
        /// The most that an order pays in fees, in percent of what it trades. A venue takes 0.05 of takers by default;
        /// with a lower cap its fees must be set lower.
        #[arg(long, value_name = "PERCENT")]
        fee_cap: String,
        /// What a bust costs the bond for each lot, in whole units of the first asset.
        #[arg(long)]
        penalty: String,
        #[command(flatten)]
        sender: Sender,
    },
    /// End an incarnation: all of its orders are void at once.
    #[command(after_help = "Example:\n  walras venue fence --key owner.json --venue 0 --incarnation 0")]
    Fence {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// The present incarnation, as `walras venue show` says. A repeated command ends no other one.
        #[arg(long)]
        incarnation: u32,
        #[command(flatten)]
        sender: Sender,
    },
    /// Replace the operator or the report key.
    #[command(after_help = "Example:
  walras venue operator --key owner.json --venue 0 --operator 0x53e0… --report-key 0x8a88…")]
    Operator {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        #[command(flatten)]
        operator: Appointed,
        #[command(flatten)]
        sender: Sender,
    },
    /// Add to the bond, or withdraw from it.
    #[command(after_help = "Examples:
  walras venue bond --key owner.json --venue 0 --amount 500
  walras venue bond --key owner.json --venue 0 --amount 500 --withdraw    # paid after the delay, liable until then")]
    Bond {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// Amount, in whole units of the first asset.
        #[arg(long)]
        amount: String,
        /// Withdraw instead of adding.
        #[arg(long)]
        withdraw: bool,
        #[command(flatten)]
        sender: Sender,
    },
    /// Show venues: owner, operator, bond, settled fills, markets.
    #[command(after_help = "Examples:\n  walras venue show\n  walras venue show --venue 0")]
    Show {
        /// One venue, with its markets.
        #[arg(long)]
        venue: Option<VenueId>,
        #[command(flatten)]
        server: Server,
    },
    /// Show the report keys of a venue's incarnations: a report by any of them convicts it.
    #[command(after_help = "Example:\n  walras venue keys --venue 0")]
    Keys {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        #[command(flatten)]
        server: Server,
    },
    /// Convict a venue by a report of a fill that it did not settle so.
    #[command(after_help = "Examples:
  walras venue accuse --key alice.json --report report.hex
  walras venue accuse --key alice.json --report 0x0000… --other 0x0000…")]
    Accuse(AccuseVenue),
    /// Claim a reported fill that an ended incarnation never settled: it costs the venue's bond a penalty.
    #[command(after_help = "Example:
  walras venue claim --key alice.json --report report.hex --buy buy.hex --sell sell.hex --fill fill.hex")]
    Claim(ClaimFill),
    /// Prove that deposits and bonds are what the ledger has in custody, and that fills are those of the ledger's tree.
    #[command(after_help = "Examples:
  walras venue audit
  walras venue audit --venue 0 --home ./exchange")]
    Audit(VenueAudit),
    /// Make the operator's keys in a node's home, and the directory of an incarnation that has reported nothing.
    #[command(after_help = "Example:\n  walras venue prepare --home ./exchange --venue 0")]
    Prepare(VenuePrepare),
    /// Show how a running venue stands: backlog, busts, bond, journal, pauses.
    #[command(after_help = "Example:\n  walras venue status --at http://127.0.0.1:8070")]
    Status(VenueStatus),
}

/// Who settles and reports.
#[derive(clap::Args, Clone)]
pub struct Appointed {
    /// The account that settles.
    #[arg(long)]
    operator: Address,
    /// The public key that signs reports.
    #[arg(long)]
    report_key: PublicKey,
}

impl Appointed {
    fn of(&self) -> VenueOperator {
        VenueOperator { account: self.operator, report_key: self.report_key }
    }
}

fn at(operation: VenueOperation) -> Operation {
    Operation::Venue(Box::new(operation))
}

/// A percentage in millionths.
fn millionths(name: &str, percent: &str) -> anyhow::Result<u32> {
    let ppm = to_units(percent, 4).with_context(|| format!("{name}: a percentage with at most four decimals"))?;
    let ppm = u32::try_from(ppm).ok().filter(|ppm| *ppm <= PPM);
    ppm.with_context(|| format!("{name}: {percent} is more than 100 percent"))
}

impl VenueCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            VenueCommand::Open { venue, operator, fee_cap, bond, sender } => sender.send(json, |server, _, assets| {
                let fee_cap_ppm = millionths("--fee-cap", &fee_cap)?;
                let bond = opening_bond(server, assets, venue, &bond)?;
                Ok(at(VenueOperation::Open { venue, operator: operator.of(), fee_cap_ppm, bond }))
            }),
            VenueCommand::List { venue, market, base, quote, lot, tick, lots_max, fee_cap, penalty, sender } => sender
                .send(json, |server, _, assets| {
                    let known = server.node().venue(venue)?.markets;
                    ensure!(market == known, "--market: the next free number of venue {venue} is {known}");
                    let (lot_units, tick_units) = sizes(assets, &base, &quote, &lot, tick)?;
                    let terms = MarketTerms {
                        base: assets.find(&base)?.asset,
                        quote: assets.find(&quote)?.asset,
                        lot_units,
                        tick_units,
                        lots_max,
                        fee_cap_ppm: millionths("--fee-cap", &fee_cap)?,
                        penalty: to_units(&penalty, assets.first()?.decimals)?,
                    };
                    check_terms(server, assets, &terms)?;
                    Ok(at(VenueOperation::List { venue, market, terms }))
                }),
            VenueCommand::Fence { venue, incarnation, sender } => sender.send(json, |server, _, _| {
                let present = server.node().venue(venue)?.incarnation;
                ensure!(
                    incarnation == present,
                    "--incarnation: venue {venue} is in incarnation {present}; incarnation {incarnation} is not ended twice"
                );
                Ok(at(VenueOperation::Fence { venue, incarnation }))
            }),
            VenueCommand::Operator { venue, operator, sender } => sender.send(json, |server, _, _| {
                let present = server.node().venue(venue)?.operator;
                let from = VenueOperator {
                    account: present.account.parse().context("the node's operator is no account")?,
                    report_key: present.report_key.parse().context("the node's report key is no key")?,
                };
                let to = operator.of();
                ensure!(from != to, "this is the operator of venue {venue} already, with this report key");
                Ok(at(VenueOperation::ChangeOperator { venue, from, to }))
            }),
            VenueCommand::Bond { venue, amount, withdraw, sender } => sender.send(json, |_, _, assets| {
                let units = to_units(&amount, assets.first()?.decimals)?;
                Ok(at(match withdraw {
                    true => VenueOperation::Unbond { venue, units },
                    false => VenueOperation::Bond { venue, units },
                }))
            }),
            VenueCommand::Show { venue, server } => show::show(json, venue, &server),
            VenueCommand::Keys { venue, server } => show::keys(json, venue, &server),
            VenueCommand::Accuse(accuse) => accuse.run(json),
            VenueCommand::Claim(claim) => claim.run(json),
            VenueCommand::Audit(audit) => audit.run(json),
            VenueCommand::Prepare(prepare) => prepare.run(json),
            VenueCommand::Status(status) => status.run(json),
        }
    }
}

/// The bond with which the next venue opens.
fn opening_bond(server: &Server, assets: &Assets, venue: VenueId, bond: &str) -> anyhow::Result<Amount> {
    let bond = to_units(bond, assets.first()?.decimals)?;
    let all = server.node().venues()?;
    ensure!(
        venue as usize == all.venues.len(),
        "--venue: the next free number is {}; `walras venue show` lists the venues that there are",
        all.venues.len()
    );
    let least = all.terms.bond_min.parse().unwrap_or(0);
    ensure!(bond >= least, "--bond: a venue opens with at least {}", assets.first()?.money(least));
    Ok(bond)
}

fn check_terms(server: &Server, assets: &Assets, terms: &MarketTerms) -> anyhow::Result<()> {
    let least = server.node().venues()?.terms.penalty_min.parse().unwrap_or(0);
    ensure!(terms.penalty >= least, "--penalty: a lot costs at least {}", assets.first()?.money(least));
    ensure!(terms.is_sound(0), "these terms are impossible: base and quote differ, and so many lots can exist");
    Ok(())
}

/// Base units of a lot, and quote units of a lot for one tick.
fn sizes(assets: &Assets, base: &str, quote: &str, lot: &str, tick: Price) -> anyhow::Result<(u64, u64)> {
    let (base, quote) = (assets.find(base)?, assets.find(quote)?);
    ensure!(base.asset != quote.asset, "--quote: a market has two assets");
    let lot_units = to_units(lot, base.decimals).context("--lot")?;
    ensure!(lot_units > 0, "--lot: a lot is at least {}", base.money(1));
    let tick_units = Ticks::units(lot_units, tick, [base.decimals, quote.decimals]);
    let tick_units = tick_units.with_context(|| {
        format!(
            "--tick: {tick} {} for a lot of {} is no whole number of units of {}, of which the least is {}: raise \
             --lot or --tick",
            quote.symbol,
            base.money(lot_units),
            quote.symbol,
            quote.money(1)
        )
    })?;
    Ok((lot_units, tick_units))
}

/// Bytes in hexadecimal, or in a file that has them so.
fn hex_or_file(name: &str, text: &str) -> anyhow::Result<Vec<u8>> {
    let path = PathBuf::from(text);
    let text = match path.exists() {
        true => std::fs::read_to_string(&path).with_context(|| path.display().to_string())?,
        false => text.to_string(),
    };
    client::hexadecimal::hex_bytes(text.trim())
        .with_context(|| format!("{name}: neither a file nor bytes in hexadecimal"))
}
