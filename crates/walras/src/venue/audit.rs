//! `walras venue audit`: proves that deposits and bonds are what the ledger has in custody, and that the fills of a
//! venue are the leaves of the tree that the ledger knows by its peaks; lists busts.
//!
//! From a node: the sums of all deposits and bonds that it lists, against the sums that its ledger keeps from block to
//! block. The leaves that it lists, joined to a tree, against the peaks. A node could lie in both, so what is proved is
//! that its answers agree. From a home: the state is read from the store, its whole issue is accounted for
//! ([`ledger::Ledger::audit`]), and the leaves are those of the archived receipts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use client::venues::tree_of;
use client::{Assets, NodeClient};
use ledger::{BlockReceipts, FillVerdict, Ledger};
use primitives::format_units;
use primitives::venue::{FillTree, VenueId};
use serde_json::{Value, json};
use store::{RealDisk, View};

use crate::pay::audit::ledger_of;
use crate::wallet::server::Server;

/// What to audit, and from where.
#[derive(clap::Args)]
pub struct VenueAudit {
    /// One venue; by default all.
    #[arg(long)]
    venue: Option<VenueId>,
    /// Read this home instead of asking a node. The node may be running.
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
}

/// What is found.
struct AuditFindings {
    height: u64,
    custody: Vec<CustodySums>,
    venues: Vec<Audited>,
}

/// Units of an asset in custody at venues.
struct CustodySums {
    symbol: String,
    decimals: u8,
    deposits: u128,
    bonds: u128,
}

/// A venue with its fills.
struct Audited {
    venue: VenueId,
    incarnation: u32,
    fills: u64,
    busts: Vec<Bust>,
}

/// A fill that changed nothing.
struct Bust {
    height: u64,
    index: u64,
    reason: Option<String>,
    guilt: Option<String>,
}

impl VenueAudit {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let found = match &self.home {
            Some(home) => of_home(home, self.venue)?,
            None => of_node(&self.server.node(), self.venue)?,
        };
        if json {
            println!("{}", found.body());
        } else {
            found.tell(self.home.is_some());
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn of_node(node: &NodeClient, only: Option<VenueId>) -> anyhow::Result<AuditFindings> {
    let (custody, assets) = (node.custody()?, node.assets()?);
    let held = sums(&custody, &assets)?;
    let mut venues = Vec::new();
    let is_asked = |number: VenueId| only.is_none_or(|only| only == number);
    for number in custody.venues.venues.iter().map(|venue| venue.venue).filter(|number| is_asked(*number)) {
        venues.push(venue_of_node(node, number)?);
    }
    ensure!(only.is_none() || !venues.is_empty(), "there is no such venue: `walras venue show` lists them");
    Ok(AuditFindings { height: custody.venues.height, custody: held, venues })
}

/// Adds up the deposits and bonds that a node lists. The node's own totals must be equal to these sums.
fn sums(custody: &client::venues::VenueCustody, assets: &Assets) -> anyhow::Result<Vec<CustodySums>> {
    let number = |text: &str| text.parse::<u128>().with_context(|| format!("{text:?} is no number of units"));
    let mut listed: BTreeMap<String, (u128, u128)> = BTreeMap::new();
    for deposit in &custody.deposits {
        let leaving = deposit.leaving.as_ref().map_or(Ok(0), |leaving| number(&leaving.units))?;
        listed.entry(deposit.asset.clone()).or_default().0 += number(&deposit.free)? + leaving;
    }
    for venue in &custody.venues.venues {
        let leaving = venue.leaving.as_ref().map_or(Ok(0), |leaving| number(&leaving.units))?;
        listed.entry(assets.first()?.symbol.clone()).or_default().1 += number(&venue.bond)? + leaving;
    }
    listed.retain(|_, (deposits, bonds)| *deposits + *bonds > 0);
    let mut counted = BTreeMap::new();
    for of in &custody.venues.custody {
        counted.insert(of.asset.clone(), (number(&of.deposits)?, number(&of.bonds)?));
    }
    for symbol in listed.keys().chain(counted.keys()) {
        let (of_list, of_ledger) = (listed.get(symbol), counted.get(symbol));
        ensure!(
            of_list == of_ledger,
            "{symbol}: deposits and bonds that the node lists are {of_list:?} units, and its ledger has {of_ledger:?} \
             in custody. Do not deposit; report this line to the operators of the validators"
        );
    }
    let held = |(symbol, (deposits, bonds)): (String, (u128, u128))| {
        let decimals = assets.find(&symbol)?.decimals;
        Ok(CustodySums { symbol, decimals, deposits, bonds })
    };
    listed.into_iter().map(held).collect()
}

/// The fills of a venue, whose tree must be the ledger's. The venue may settle meanwhile: then both are read again.
fn venue_of_node(node: &NodeClient, number: VenueId) -> anyhow::Result<Audited> {
    const AGAIN_MAX: u32 = 10;
    for _ in 0..AGAIN_MAX {
        let venue = node.venue(number)?;
        let tree = node.fill_tree(&venue.fills)?;
        let mut fills = node.settled(number, venue.incarnation)?;
        if (fills.len() as u64) < tree.count() && node.venue(number)? != venue {
            continue;
        }
        // What was settled after the tree was read is in no peak of it.
        fills.truncate(usize::try_from(tree.count()).unwrap_or(usize::MAX));
        ensure!(
            tree_of(&fills) == tree,
            "venue {number}: the {} fills that the node lists do not make the tree of {} fills that the ledger has. \
             Ask another node; if it says the same, report this line",
            fills.len(),
            tree.count()
        );
        let busts = fills.iter().enumerate().filter(|(_, fill)| fill.shown.verdict != "applied");
        let word = |text: &Option<std::borrow::Cow<'static, str>>| text.as_deref().map(str::to_string);
        let bust = |(at, fill): (usize, &client::venues::FillAt)| Bust {
            height: fill.height,
            index: at as u64,
            reason: word(&fill.shown.reason),
            guilt: word(&fill.shown.guilt),
        };
        let busts = busts.map(bust).collect();
        return Ok(Audited { venue: number, incarnation: venue.incarnation, fills: tree.count(), busts });
    }
    anyhow::bail!("venue {number} settles faster than its fills can be read: audit a home, or try again")
}

fn of_home(home: &Path, only: Option<VenueId>) -> anyhow::Result<AuditFindings> {
    let (state, issue) = ledger_of(home)?;
    let venues = state.venues().context("this chain has no venues of continuous markets")?;
    let mut held = Vec::new();
    for (asset, audit) in state.assets().iter().zip(&issue) {
        // The audit has accounted for the whole issue: these are the units that are nowhere else.
        let of = |name: &str| -> u128 {
            let places = audit.places.iter().filter(|(place, _)| *place == name);
            places.map(|(_, units)| u128::from(*units)).sum()
        };
        let (deposits, bonds) = (of("venue deposits"), of("bonds"));
        if deposits + bonds > 0 {
            held.push(CustodySums { symbol: asset.symbol.clone(), decimals: asset.decimals, deposits, bonds });
        }
    }
    held.sort_by(|a, b| a.symbol.cmp(&b.symbol));
    let mut audited = Vec::new();
    for (number, record) in venues.iter().filter(|(number, _)| only.is_none_or(|only| only == *number)) {
        let (tree, busts) = fills_of_home(home, &state, number, record.incarnation)?;
        ensure!(
            tree == record.fills,
            "venue {number}: the fills in the archive do not make the tree of {} fills that the ledger has: either the \
             home does not keep all of their blocks, or it is damaged (`walras inspect` says)",
            record.fills.count()
        );
        audited.push(Audited { venue: number, incarnation: record.incarnation, fills: tree.count(), busts });
    }
    ensure!(only.is_none() || !audited.is_empty(), "there is no such venue");
    Ok(AuditFindings { height: state.height(), custody: held, venues: audited })
}

/// The tree and the busts of an incarnation, from archived receipts.
fn fills_of_home(
    home: &Path,
    state: &Ledger,
    venue: VenueId,
    incarnation: u32,
) -> anyhow::Result<(FillTree, Vec<Bust>)> {
    let View { archive, first, .. } =
        store::view(RealDisk::existing(home.join("data")).context("cannot open the store")?)?;
    let (mut tree, mut busts) = (FillTree::default(), Vec::new());
    for height in first.max(1)..=state.height() {
        let Some(bytes) = archive.receipts(height)? else { continue };
        let receipts: BlockReceipts = borsh::from_slice(&bytes).with_context(|| format!("receipts {height}"))?;
        let own = receipts.venues.iter().filter(|of| (of.venue, of.incarnation) == (venue, incarnation));
        for (leaf, verdict) in own.flat_map(|of| of.leaves.iter().zip(&of.verdicts)) {
            if let FillVerdict::Bust(reason, guilt) = verdict {
                let words = |text: String| text.to_lowercase();
                let (reason, guilt) = (words(format!("{reason:?}")), words(format!("{guilt:?}")));
                busts.push(Bust { height, index: tree.count(), reason: Some(reason), guilt: Some(guilt) });
            }
            ensure!(tree.append(*leaf), "a tree has more fills than can be counted");
        }
    }
    Ok((tree, busts))
}

impl AuditFindings {
    fn body(&self) -> Value {
        let held = |held: &CustodySums| {
            let (deposits, bonds) = (held.deposits.to_string(), held.bonds.to_string());
            json!({"asset": held.symbol, "deposits": deposits, "bonds": bonds})
        };
        let bust = |bust: &Bust| {
            let Bust { height, index, reason, guilt } = bust;
            json!({"height": height, "index": index.to_string(), "reason": reason, "guilt": guilt})
        };
        let venue = |of: &Audited| {
            json!({"venue": of.venue, "incarnation": of.incarnation, "fills": of.fills.to_string(),
                "busts": of.busts.iter().map(bust).collect::<Vec<_>>()})
        };
        json!({"height": self.height, "sound": true, "custody": self.custody.iter().map(held).collect::<Vec<_>>(),
            "venues": self.venues.iter().map(venue).collect::<Vec<_>>()})
    }

    fn tell(&self, is_home: bool) {
        let from = if is_home {
            "the home's ledger accounts for its whole issue"
        } else {
            "what the node lists is what its ledger counts"
        };
        println!("At height {}: {from}", self.height);
        for held in &self.custody {
            let money = |units: u128| match u64::try_from(units) {
                Ok(units) => format!("{} {}", format_units(units, held.decimals), held.symbol),
                Err(_) => format!("{units} units of {}", held.symbol),
            };
            println!("  {} in deposits, {} in bonds", money(held.deposits), money(held.bonds));
        }
        for of in &self.venues {
            let (venue, fills, busts) = (of.venue, of.fills, of.busts.len());
            println!(
                "venue {venue}, incarnation {}: the tree of {fills} fills is the ledger's; {busts} busts",
                of.incarnation
            );
            for bust in &of.busts {
                let [reason, guilt] = [&bust.reason, &bust.guilt].map(|word| word.as_deref().unwrap_or("not said"));
                println!("  fill {} in block {}: {reason}, guilty: {guilt}", bust.index, bust.height);
            }
        }
    }
}
