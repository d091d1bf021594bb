//! `walras wallet buy`, `sell`, `offer`, `exact`, `replace`, `cancel`: orders of the batch market.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use api::OfferBody;
use client::{Assets, OrderForms, WantedOrder};
use primitives::{
    Address, Amount, AssetId, CANCELS_MAX, ClientId, ExactSide, Life, LifeError, OfferPlace, OfferReplacement,
    Operation, Price, Sequence,
};

use super::exact::ExactTerms;
use super::sealed::OrderSender;
use super::server::Server;
use crate::decimal::{to_unit_price, to_units};

/// The life of an offer; a hyphen stands for a space.
fn life(text: &str) -> Result<Life, LifeError> {
    text.replace('-', " ").parse()
}

/// An order for an amount of a market's base.
#[derive(clap::Args)]
pub struct MarketOrder {
    /// The market: the asset that is bought or sold, and the one that it is priced in.
    #[arg(long, value_name = "BASE/QUOTE")]
    market: String,
    /// Amount of the base, in whole assets.
    #[arg(long)]
    amount: String,
    /// The limit: whole quote per whole base, net of commission.
    #[arg(long)]
    price: Price,
    /// What becomes of what the next batch does not fill: it `rests` until it is filled or cancelled, rests
    /// `until-1234`, or is for `one-batch`.
    #[arg(long, default_value = "rests", value_parser = life)]
    life: Life,
    /// A name of your own for the order, 16 bytes in hexadecimal. It is signed, and no state has it.
    #[arg(long)]
    client: Option<ClientId>,
    #[command(flatten)]
    sender: OrderSender,
}

impl MarketOrder {
    fn place(self, json: bool, side: ExactSide) -> anyhow::Result<ExitCode> {
        let MarketOrder { market, amount, price, life, client, sender } = self;
        let client = client.unwrap_or_default();
        let wanted = WantedOrder { side, market: &market, amount: &amount, price, life, client };
        sender.place(json, |assets| OrderForms::of(&wanted, assets))
    }
}

/// Orders of the batch market.
#[derive(clap::Subcommand)]
pub enum OfferCommand {
    /// Buy an amount of a market's base at a price or better. What the next batch would fill whole stops at the amount.
    #[command(
        after_help = "What waits in the book is an offer of what the amount costs: a better batch fills it with more, \
                      never dearer.

Example, buy 100 EUR for at most 1.10 USD each:
  walras wallet buy --key alice.json --market EUR/USD --amount 100 --price 1.10"
    )]
    Buy(MarketOrder),
    /// Sell an amount of a market's base at a price or better.
    #[command(after_help = "Example, sell 100 EUR for at least 1.10 USD each:
  walras wallet sell --key alice.json --market EUR/USD --amount 100 --price 1.10")]
    Sell(MarketOrder),
    /// Offer an asset for another; the offer takes part in the batch of the next block.
    #[command(after_help = "Example, sell 100 EUR for at least 1.10 USD each:
  walras wallet offer --key alice.json --sell EUR --buy USD --amount 100 --limit 1.10
The same, if it trades at once, and otherwise not:
  walras wallet offer --key alice.json --sell EUR --buy USD --amount 100 --limit 1.10 --life one-batch
The same, read by no validator before its block is decided; another account pays:
  walras wallet offer --key alice.json --sell EUR --buy USD --amount 100 --limit 1.10 --sealed --payer fees.json")]
    Offer {
        /// Asset to sell.
        #[arg(long)]
        sell: String,
        /// Asset to receive.
        #[arg(long)]
        buy: String,
        /// Maximum amount to sell, in whole assets.
        #[arg(long)]
        amount: String,
        /// Minimum price: whole assets bought per whole asset sold, net of commission.
        #[arg(long)]
        limit: Price,
        /// How long it rests: `rests` until it is sold or cancelled, `until-1234` up to the batch of that height, or
        /// `one-batch`.
        #[arg(long, default_value = "rests", value_parser = life)]
        life: Life,
        /// A name of your own for the order, 16 bytes in hexadecimal. It is signed, and no state has it.
        #[arg(long)]
        client: Option<ClientId>,
        #[command(flatten)]
        sender: OrderSender,
    },
    /// Buy or sell exactly so much in the batch of the next block, within a bound, or nothing. Exit 1 if not filled.
    #[command(
        after_help = "Examples, buy exactly 100 EUR for at most 111 USD; sell exactly 100 EUR for at least 109 USD:
  walras wallet exact --key alice.json --buy EUR --amount 100 --pay USD --most 111
  walras wallet exact --key alice.json --sell EUR --amount 100 --receive USD --least 109"
    )]
    Exact {
        #[command(flatten)]
        terms: ExactTerms,
        /// A name of your own for the order, 16 bytes in hexadecimal.
        #[arg(long)]
        client: Option<ClientId>,
        #[command(flatten)]
        sender: OrderSender,
    },
    /// Replace a resting offer. What was sold of it meanwhile makes the new one smaller: it never sells twice.
    #[command(after_help = "Example:
  walras wallet replace --key alice.json --offer 7 --amount 100 --limit 1.12")]
    Replace {
        /// The offer's id, as `wallet show` lists it.
        #[arg(long)]
        offer: Sequence,
        /// Amount that the new offer sells, in whole assets, if what rests now rests then.
        #[arg(long)]
        amount: String,
        /// Minimum price: whole assets bought per whole asset sold, net of commission.
        #[arg(long)]
        limit: Price,
        /// How long it rests: `rests`, `until-1234` or `one-batch`.
        #[arg(long, default_value = "rests", value_parser = life)]
        life: Life,
        /// A name of your own for the order, 16 bytes in hexadecimal.
        #[arg(long)]
        client: Option<ClientId>,
        #[command(flatten)]
        sender: OrderSender,
    },
    /// Cancel resting offers, up to 32 with one transaction.
    #[command(after_help = "Examples:
  walras wallet cancel --key alice.json --offer 7
  walras wallet cancel --key alice.json --offer 7,8,9")]
    Cancel {
        /// The ids of the offers, as `wallet show` lists them. Those that rest no more are left out.
        #[arg(long, required = true, value_delimiter = ',')]
        offer: Vec<Sequence>,
        #[command(flatten)]
        sender: OrderSender,
    },
}

impl OfferCommand {
    pub(super) fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            OfferCommand::Buy(order) => order.place(json, ExactSide::Buy),
            OfferCommand::Sell(order) => order.place(json, ExactSide::Sell),
            OfferCommand::Offer { sell, buy, amount, limit, life, client, sender } => {
                sender.send(json, |_, _, assets| {
                    let (sell, buy, amount, limit) = offered(assets, [&sell, &buy], &amount, limit)?;
                    Ok(Operation::CreateOffer { sell, buy, amount, limit, life, client: client.unwrap_or_default() })
                })
            }
            OfferCommand::Exact { terms, client, sender } => {
                sender.send(json, |_, _, assets| terms.operation(assets, client.unwrap_or_default()))
            }
            OfferCommand::Replace { offer, amount, limit, life, client, sender } => {
                let is_sealed = sender.is_sealed();
                sender.send(json, |server, account, assets| {
                    let old = resting(&[offer], is_sealed, server, account)?.pop();
                    let old = old.with_context(|| format!("this account has no resting offer {offer}"))?;
                    let new = replacement(&old, (offer, &amount, limit), assets)?;
                    Ok(Operation::Replace(Box::new(OfferReplacement {
                        life,
                        client: client.unwrap_or_default(),
                        ..new
                    })))
                })
            }
            OfferCommand::Cancel { offer, sender } => {
                let is_sealed = sender.is_sealed();
                sender.send(json, |server, account, assets| {
                    cancel(&offer, &resting(&offer, is_sealed, server, account)?, assets)
                })
            }
        }
    }
}

/// The assets, the units and the limit of an offer that is large enough.
fn offered(
    assets: &Assets,
    symbols: [&str; 2],
    amount: &str,
    limit: Price,
) -> anyhow::Result<(AssetId, AssetId, Amount, Price)> {
    let (sell, buy) = (assets.find(symbols[0])?, assets.find(symbols[1])?);
    let amount = to_units(amount, sell.decimals)?;
    let limit = to_unit_price(limit, sell.decimals, buy.decimals)?;
    ensure!(amount >= sell.least_units, "--amount: an offer sells at least {}", sell.money(sell.least_units));
    let asks_enough = !limit.accepts(amount, buy.least_units.saturating_sub(1));
    ensure!(asks_enough, "an offer asks at least {}: raise --amount or --limit", buy.money(buy.least_units));
    Ok((sell.asset, buy.asset, amount, limit))
}

/// What replaces an offer that rests, with the usual life and no name.
fn replacement(
    found: &OfferBody,
    (offer, amount, limit): (Sequence, &str, Price),
    assets: &Assets,
) -> anyhow::Result<OfferReplacement> {
    let (sell, buy) = (assets.find(&found.sell)?, assets.find(&found.buy)?);
    Ok(OfferReplacement {
        old: OfferPlace { sell: sell.asset, buy: buy.asset, limit: found.limit.parse()?, offer },
        remains: found.amount.parse()?,
        amount: to_units(amount, sell.decimals)?,
        limit: to_unit_price(limit, sell.decimals, buy.decimals)?,
        life: Life::default(),
        client: ClientId::default(),
    })
}

/// Those of the offers that rest, by id. Whoever seals asks for all offers of the account, so that the node does not
/// learn which are meant.
fn resting(ids: &[Sequence], is_sealed: bool, server: &Server, account: &Address) -> anyhow::Result<Vec<OfferBody>> {
    let (node, ids) = (server.node(), ids.iter().copied().collect::<BTreeSet<_>>());
    if is_sealed {
        let is_named = |offer: &OfferBody| offer.id.parse().is_ok_and(|id| ids.contains(&id));
        return Ok(node.offers(account)?.into_iter().filter(is_named).collect());
    }
    let found = ids.into_iter().map(|id| node.offer(account, id)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Cancels those of the offers that rest.
fn cancel(ids: &[Sequence], resting: &[OfferBody], assets: &Assets) -> anyhow::Result<Operation> {
    let place = |found: &OfferBody| {
        let (sell, buy) = (assets.find(&found.sell)?.asset, assets.find(&found.buy)?.asset);
        Ok(OfferPlace { sell, buy, limit: found.limit.parse()?, offer: found.id.parse()? })
    };
    let places = resting.iter().map(place).collect::<anyhow::Result<Vec<_>>>()?;
    let named = || ids.iter().map(Sequence::to_string).collect::<Vec<_>>().join(", ");
    ensure!(!places.is_empty(), "this account has no resting offer {}", named());
    ensure!(places.len() <= CANCELS_MAX, "--offer: at most {CANCELS_MAX} offers in one transaction");
    Ok(Operation::Cancel(places.into()))
}
