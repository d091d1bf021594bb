//! `walras wallet deposit`, `collect`, `authorize` and others: what a trader does with venues.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use api::{OrderNumberBody, TradingKeyBody, VenueDepositBody};
use client::{Assets, NodeClient, Ticks};
use primitives::venue::{
    KeyScope, Mandate, MarketId, MarketMandate, OrderNumber, TICK_MAX, VenueId, VenueOperation, possession_bytes,
};
use primitives::{Address, AssetId, MAX_ISSUED, Operation, Price, PublicKey, SecretKey};
use serde_json::json;

use super::send::Sender;
use super::server::Server;
use super::{Quantity, account};
use crate::decimal::to_units;
use crate::keystore::{self, Passphrase};

/// What a trader does with venues of continuous markets.
#[derive(clap::Subcommand)]
pub enum AtVenues {
    /// Deposit at a venue of continuous markets, where orders of your trading keys can spend it.
    #[command(after_help = "Example:
  walras wallet deposit --key alice.json --venue 0 --asset USD --amount 1000")]
    Deposit {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        #[command(flatten)]
        quantity: Quantity,
        #[command(flatten)]
        sender: Sender,
    },
    /// Take units out of a deposit. The ledger pays them once earlier fills cannot count any more, without the venue.
    #[command(after_help = "Examples:
  walras wallet collect --key alice.json --venue 0 --asset USD --amount 250
  walras wallet collect --key alice.json --venue 0 --asset USD --all")]
    Collect {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// The asset.
        #[arg(long)]
        asset: String,
        /// Amount, in whole assets; if less is free, all that is free.
        #[arg(long, required_unless_present = "all")]
        amount: Option<String>,
        /// All that is free.
        #[arg(long, conflicts_with = "amount")]
        all: bool,
        #[command(flatten)]
        sender: Sender,
    },
    /// Let a key trade for this account at a venue, within bounds that never change. It cannot withdraw.
    #[command(
        after_help = "Example, trade EUR/USD between 0.90 and 1.30, and lose at most 500 USD and 400 EUR on balance:
  walras wallet new --key alice-trading.json
  walras wallet authorize --key alice.json --venue 0 --trading-key alice-trading.json --market 0:0.90:1.30 \\
    --lose USD:500 --lose EUR:400"
    )]
    Authorize {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// Key file of the trading key, which signs that it agrees.
        #[arg(long, value_name = "FILE")]
        trading_key: PathBuf,
        /// File with the passphrase of the trading key, if it has another one.
        #[arg(long, value_name = "FILE")]
        trading_passphrase_file: Option<PathBuf>,
        /// A market in which it trades, with the lowest and the highest price; without them at any price.
        #[arg(long = "market", value_name = "NUMBER[:LOW:HIGH]", required = true)]
        markets: Vec<String>,
        /// The most that it may lose of an asset on balance over its whole life; of others it can lose nothing.
        #[arg(long = "lose", value_name = "ASSET:AMOUNT")]
        losses: Vec<String>,
        #[command(flatten)]
        sender: Sender,
    },
    /// End a trading key of this account for ever. Its orders are dead once the delay is past.
    #[command(after_help = "Example:
  walras wallet revoke --key alice.json --venue 0 --trading-key 0x8a88…")]
    Revoke {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// The public key, as `wallet trading-keys` lists it, or its key file.
        #[arg(long, value_name = "KEY|FILE")]
        trading_key: String,
        #[command(flatten)]
        sender: Sender,
    },
    /// End all orders of a trading key below a number, whatever the venue does with its cancels. They are dead once the
    /// delay is past, and the key goes on with higher numbers.
    #[command(after_help = "Examples:
  walras wallet raise-floor --key alice.json --venue 0 --trading-key 0x8a88… --below 0:20785:17
  walras wallet raise-floor --key alice.json --venue 0 --trading-key 0x8a88… --today    # no order before tomorrow")]
    RaiseFloor {
        /// The venue's number.
        #[arg(long)]
        venue: VenueId,
        /// The public key, as `wallet trading-keys` lists it, or its key file.
        #[arg(long, value_name = "KEY|FILE")]
        trading_key: String,
        /// The lowest number that lives: incarnation of the venue, day since 1970, and reference of the order.
        #[arg(
            long,
            value_name = "INCARNATION:DAY:REFERENCE",
            required_unless_present = "today",
            conflicts_with = "today"
        )]
        below: Option<OrderNumber>,
        /// All numbers up to today's last one, of the present incarnation.
        #[arg(long)]
        today: bool,
        #[command(flatten)]
        sender: Sender,
    },
    /// Show an account's deposits at venues.
    #[command(after_help = "Example:\n  walras wallet deposits --key alice.json")]
    Deposits {
        /// The account; by default the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Show an account's trading keys at venues, and what they may do.
    #[command(after_help = "Example:\n  walras wallet trading-keys --key alice.json")]
    TradingKeys {
        /// The account; by default the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
}

fn at(operation: VenueOperation) -> Operation {
    Operation::Venue(Box::new(operation))
}

impl AtVenues {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            AtVenues::Deposit { venue, quantity, sender } => sender.send(json, |server, _, assets| {
                let (asset, units) = quantity.units(assets)?;
                warn_of(&server.node(), venue)?;
                Ok(at(VenueOperation::Deposit { venue, asset, units }))
            }),
            AtVenues::Collect { venue, asset, amount, all: _, sender } => sender.send(json, |server, own, assets| {
                let listed = assets.find(&asset)?;
                // More than is free asks for all that is free, even if fills change it meanwhile.
                let units = amount.map_or(Ok(MAX_ISSUED), |amount| to_units(&amount, listed.decimals))?;
                check_collection(&server.node().deposits(own)?, venue, &asset, assets)?;
                Ok(at(VenueOperation::Collect { venue, asset: listed.asset, units }))
            }),
            AtVenues::Authorize { venue, trading_key, trading_passphrase_file, markets, losses, sender } => {
                let passphrase = trading_passphrase_file.map_or_else(|| sender.passphrase.clone(), Passphrase::of_file);
                let trading = keystore::open(&trading_key, &passphrase)?;
                sender.send(json, |server, own, assets| {
                    let node = server.node();
                    check_new_key(&node, venue, &trading, own)?;
                    let mandate = mandate(&node, assets, venue, &markets, &losses)?;
                    let (key, network) = (trading.public(), node.terms()?.network);
                    let possession = trading.sign(&possession_bytes(&network, venue, own, &key));
                    Ok(at(VenueOperation::Authorize { venue, key, mandate, possession }))
                })
            }
            AtVenues::Revoke { venue, trading_key, sender } => {
                let key = public_key(&trading_key, &sender.passphrase)?;
                sender.send(json, |server, own, _| {
                    check_own_key(&server.node(), venue, &key, own)?;
                    Ok(at(VenueOperation::Revoke { venue, key }))
                })
            }
            AtVenues::RaiseFloor { venue, trading_key, below, today: _, sender } => {
                let key = public_key(&trading_key, &sender.passphrase)?;
                sender.send(json, |server, own, _| {
                    let node = server.node();
                    check_own_key(&node, venue, &key, own)?;
                    let floor = below.map_or_else(|| tomorrow(&node, venue), Ok)?;
                    check_floor(&node, venue, &key, &floor)?;
                    Ok(at(VenueOperation::RaiseFloor { venue, key, floor }))
                })
            }
            AtVenues::Deposits { address, key, server } => {
                show_deposits(json, &account(address, key, &server)?, &server.node())
            }
            AtVenues::TradingKeys { address, key, server } => {
                show_trading_keys(json, &account(address, key, &server)?, &server.node())
            }
        }
    }
}

fn show_deposits(json: bool, of: &Address, node: &NodeClient) -> anyhow::Result<ExitCode> {
    let found = node.deposits(of)?;
    if json {
        println!("{}", json!({"account": of.to_string(), "deposits": found}));
    } else {
        let assets = node.assets()?;
        println!("{} has {} deposits", of.checked(), found.len());
        found.iter().for_each(|deposit| println!("  {}", deposit_in_words(deposit, &assets)));
    }
    Ok(ExitCode::SUCCESS)
}

fn show_trading_keys(json: bool, of: &Address, node: &NodeClient) -> anyhow::Result<ExitCode> {
    let found = node.trading_keys(of)?;
    if json {
        println!("{}", json!({"account": of.to_string(), "keys": found}));
    } else {
        let assets = node.assets()?;
        println!("{} has {} trading keys", of.checked(), found.len());
        found.iter().for_each(|key| println!("{}", key_in_words(key, &assets)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Warns before money goes to a venue that cannot settle.
fn warn_of(node: &NodeClient, venue: VenueId) -> anyhow::Result<()> {
    let all = node.venues()?;
    let found = all.venues.iter().find(|of| of.venue == venue).with_context(|| no_venue(venue))?;
    if found.is_convicted {
        eprintln!("warning: venue {venue} was convicted of a false report: nothing settles there before a fence");
    }
    let units = |text: &str| text.parse::<u64>().unwrap_or(0);
    if units(&found.bond) < units(&all.terms.bond_min) {
        eprintln!("warning: the bond of venue {venue} is below the least that the chain asks for: it does not settle");
    }
    Ok(())
}

fn no_venue(venue: VenueId) -> String {
    format!("there is no venue {venue}: `walras venue show` lists them")
}

/// Refuses a request that the ledger would refuse, with what the deposit is.
fn check_collection(own: &[VenueDepositBody], venue: VenueId, asset: &str, assets: &Assets) -> anyhow::Result<()> {
    let found = own.iter().find(|deposit| deposit.venue == venue && deposit.asset == asset);
    let found = found.with_context(|| {
        format!("this account has no deposit of {asset} at venue {venue}: `walras wallet deposits` lists what it has")
    })?;
    if let Some(leaving) = &found.leaving {
        bail!(
            "a request for {} of this deposit is running since block {}: one runs at a time, wait until it is paid",
            assets.money(&leaving.units, asset),
            leaving.since_height
        );
    }
    Ok(())
}

fn check_new_key(node: &NodeClient, venue: VenueId, trading: &SecretKey, own: &Address) -> anyhow::Result<()> {
    let key = trading.public();
    ensure!(
        key.address() != *own,
        "--trading-key is the key of the account itself, which can withdraw and pay: make another one with `walras wallet new`"
    );
    if let Some(known) = node.trading_key(venue, &key)? {
        let whose = if known.account == own.to_string() { "this account" } else { &known.account };
        bail!(
            "the key {key} was authorised at venue {venue} before, by {whose}: `walras wallet trading-keys` shows what \
             it may do. Bounds of a key never change, and a revoked one stays dead: to change them make another key"
        );
    }
    Ok(())
}

fn check_own_key(node: &NodeClient, venue: VenueId, key: &PublicKey, own: &Address) -> anyhow::Result<()> {
    let known = node.trading_key(venue, key)?;
    let known = known.with_context(|| format!("nobody has authorised the key {key} at venue {venue}"))?;
    ensure!(
        known.account == own.to_string(),
        "the key {key} at venue {venue} is one of {}, not of this account: only that account can revoke it",
        known.account
    );
    if let Some(height) = known.revoked_height {
        bail!("the key {key} was revoked in block {height} already");
    }
    Ok(())
}

/// The first number of tomorrow (UTC).
fn tomorrow(node: &NodeClient, venue: VenueId) -> anyhow::Result<OrderNumber> {
    let incarnation = node.venue(venue)?.incarnation;
    let day = pit::ouch::day_of(pit::clock_ms()).saturating_add(1);
    Ok(OrderNumber { incarnation, day, reference: 0 })
}

/// A floor must be above those that the key has or awaits: another raise would cost a fee and change nothing.
fn check_floor(node: &NodeClient, venue: VenueId, key: &PublicKey, floor: &OrderNumber) -> anyhow::Result<()> {
    let Some(known) = node.trading_key(venue, key)? else { return Ok(()) };
    let of = |body: &OrderNumberBody| {
        let OrderNumberBody { incarnation, day, reference } = *body;
        OrderNumber { incarnation, day, reference }
    };
    let floors = [&known.floor].into_iter().chain(known.raises.iter().map(|raise| &raise.floor)).map(of);
    let highest = floors.max().expect("the first is there");
    ensure!(*floor > highest, "the floor of the key {key} is {highest}, or will be: --below names a higher number");
    Ok(())
}

/// A public key as text, or that of a key file.
fn public_key(text: &str, passphrase: &Passphrase) -> anyhow::Result<PublicKey> {
    match text.parse() {
        Ok(key) => Ok(key),
        Err(_) if Path::new(text).exists() => Ok(keystore::open(Path::new(text), passphrase)?.public()),
        Err(_) => bail!("--trading-key: {text:?} is neither a public key (0x and 64 digits) nor a key file"),
    }
}

/// The bounds of a key, from the market's own prices.
fn mandate(
    node: &NodeClient,
    assets: &Assets,
    venue: VenueId,
    markets: &[String],
    losses: &[String],
) -> anyhow::Result<Mandate> {
    let listed = node.venue_markets(venue)?;
    let band = |text: &String| -> anyhow::Result<MarketMandate> {
        let mut parts = text.split(':');
        let number = parts.next().unwrap_or_default();
        let market: MarketId =
            number.parse().with_context(|| format!("--market: {number:?} is no number of a market"))?;
        let found = listed.iter().find(|of| of.market == market);
        let found = found.with_context(|| {
            format!("--market: venue {venue} has no market {market}: `walras venue show --venue {venue}` lists them")
        })?;
        let prices = [parts.next(), parts.next()];
        ensure!(parts.next().is_none(), "--market: {text:?} is not NUMBER or NUMBER:LOW:HIGH");
        let [Some(low), Some(high)] = prices else {
            ensure!(prices == [None, None], "--market: {text:?} has one price: give the lowest and the highest");
            return Ok(MarketMandate { market, tick_min: 1, tick_max: TICK_MAX });
        };
        let ticks = ticks_of(found, assets)?;
        let of = |text: &str| -> anyhow::Result<u32> {
            let price: Price = text.parse().with_context(|| format!("--market: {text:?}"))?;
            ticks.of(price).with_context(|| format!("--market {market}"))
        };
        let (tick_min, tick_max) = (of(low)?, of(high)?);
        ensure!(tick_min <= tick_max, "--market {text}: the lowest price is above the highest");
        Ok(MarketMandate { market, tick_min, tick_max })
    };
    let mut bands: Vec<MarketMandate> = markets.iter().map(band).collect::<Result<_, _>>()?;
    bands.sort_by_key(|of| of.market);
    ensure!(bands.windows(2).all(|two| two[0].market < two[1].market), "--market: a market is given twice");
    let cap = |text: &String| -> anyhow::Result<(AssetId, u64)> {
        let (symbol, amount) =
            text.split_once(':').with_context(|| format!("--lose: {text:?} is not ASSET:AMOUNT, as in USD:500"))?;
        let listed = assets.find(symbol)?;
        Ok((listed.asset, to_units(amount, listed.decimals)?))
    };
    let mut caps: Vec<(AssetId, u64)> = losses.iter().map(cap).collect::<Result<_, _>>()?;
    caps.sort_by_key(|(asset, _)| *asset);
    ensure!(caps.windows(2).all(|two| two[0].0 < two[1].0), "--lose: an asset is given twice");
    if caps.is_empty() {
        eprintln!(
            "warning: without --lose the key can lose nothing of any asset, so that none of its orders can settle"
        );
    }
    Ok(Mandate { scope: KeyScope::Venue, markets: bands, caps })
}

/// The prices of a market.
fn ticks_of(market: &api::VenueMarketBody, assets: &Assets) -> anyhow::Result<Ticks> {
    let terms = &market.terms;
    let decimals = [assets.find(&terms.base)?.decimals, assets.find(&terms.quote)?.decimals];
    Ok(Ticks { lot_units: terms.lot_units.parse()?, tick_units: terms.tick_units.parse()?, decimals })
}

fn deposit_in_words(deposit: &VenueDepositBody, assets: &Assets) -> String {
    let money = |units: &str| assets.money(units, &deposit.asset);
    let leaving = deposit.leaving.as_ref().map(|leaving| match leaving.is_owed {
        true => format!("; {} leaves and is owed", money(&leaving.units)),
        false => format!("; {} leaves, asked for in block {}", money(&leaving.units), leaving.since_height),
    });
    format!("venue {}: {} free{}", deposit.venue, money(&deposit.free), leaving.unwrap_or_default())
}

fn key_in_words(key: &TradingKeyBody, assets: &Assets) -> String {
    let state = match (key.is_dead, key.revoked_height) {
        (true, _) => "dead".into(),
        (false, Some(height)) => format!("revoked in block {height}, dies when the delay is past"),
        (false, None) => "alive".into(),
    };
    let market = |of: &api::MarketMandateBody| format!("{} ({} to {} ticks)", of.market, of.tick_min, of.tick_max);
    let markets: Vec<String> = key.mandate.markets.iter().map(market).collect();
    let caps: Vec<String> = key.mandate.caps.iter().map(|cap| assets.money(&cap.units, &cap.asset)).collect();
    let net = |net: &api::NetBody| match net.units.strip_prefix('-') {
        Some(lost) => format!("lost {}", assets.money(lost, &net.asset)),
        None => format!("gained {}", assets.money(&net.units, &net.asset)),
    };
    let so_far: Vec<String> = key.net.iter().map(net).collect();
    let so_far = if so_far.is_empty() { "no trade yet".into() } else { so_far.join(", ") };
    let losses = if caps.is_empty() { "nothing".into() } else { caps.join(", ") };
    let OrderNumberBody { incarnation, day, reference } = key.floor;
    let floor = OrderNumber { incarnation, day, reference };
    let floor = match floor == (OrderNumber { incarnation: 0, day: 0, reference: 0 }) {
        true => String::new(),
        false => format!("; orders below {floor} are dead"),
    };
    format!(
        "  {} at venue {}: {state}{floor}\n    markets {}; may lose {losses}; {so_far}",
        key.key,
        key.venue,
        markets.join(", ")
    )
}
