//! `walras wallet asset`: listing an asset on the running chain, closing one, controlling its holders, seeing what
//! there is.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use api::{AssetBody, AssetsBody, ListingBody};
use client::hexadecimal::hex_bytes;
use primitives::{Amount, AssetControl, AssetListing, Closing, Digest, MAX_ISSUED, Operation};
use serde_json::json;

use super::holders::HolderCommand;
use super::send::Sender;
use super::server::Server;
use crate::decimal::{from_units, to_units};

/// The least units of an asset that an offer sells or asks for, unless the issuer says otherwise.
const LEAST_UNITS: Amount = 4_096;

/// Assets of this account's: list one on the running chain, announce that one closes, see all.
#[derive(clap::Subcommand)]
pub enum AssetCommand {
    /// List an asset, which this account issues. Its name is the symbol, a point and the number that it gets. Others
    /// may use it once the block is certified. It costs the fees that `walras wallet asset show` tells, for ever gone.
    #[command(after_help = "Examples:
  walras wallet asset list --key bank.json --symbol EUR --decimals 2 --supply-max 1000000000
  walras wallet asset list --key bank.json --symbol EUR --decimals 2 --supply-max 1000000000 \\
      --document $(sha256sum terms.pdf | cut -d' ' -f1)")]
    List {
        /// 1 to 6 letters, digits, `-` or `_`, a letter first.
        #[arg(long)]
        symbol: String,
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
        /// What this account controls in the hands of others, for ever: open, freezable, admitted, recoverable or
        /// admitted_recoverable.
        #[arg(long, value_name = "CONTROL", default_value = "open")]
        control: AssetControl,
        /// The most fees to pay; without it, whatever a listing costs now.
        #[arg(long, value_name = "FEES")]
        most_fees: Option<u64>,
        #[command(flatten)]
        sender: Sender,
    },
    /// Announce that an asset closes: when the notice is over its offers return, and it is paid and burnt only.
    #[command(after_help = "Examples:
  walras wallet asset close --key bank.json --asset EUR.17
  walras wallet asset close --key bank.json --asset EUR.17 --revoke")]
    Close {
        /// The asset.
        #[arg(long)]
        asset: String,
        /// Take an announcement back, before the last height has come.
        #[arg(long)]
        revoke: bool,
        #[command(flatten)]
        sender: Sender,
    },
    #[command(flatten)]
    Holders(HolderCommand),
    /// Show all assets, and what a listing costs.
    #[command(after_help = "Example:\n  walras wallet asset show")]
    Show {
        #[command(flatten)]
        server: Server,
    },
}

impl AssetCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            AssetCommand::List { symbol, decimals, supply_max, least_units, document, control, most_fees, sender } => {
                let most =
                    supply_max.map_or(Ok(MAX_ISSUED), |text| to_units(&text, decimals)).context("--supply-max")?;
                let document = document.as_deref().map_or(Ok(Digest::default()), digest)?;
                sender.send(json, |server, _, _| {
                    let fees = asked(&terms(server)?, most_fees)?;
                    let listing =
                        AssetListing { symbol, decimals, control, least_units, supply_max: most, document, fees };
                    Ok(Operation::ListAsset(Box::new(listing)))
                })
            }
            AssetCommand::Close { asset, revoke, sender } => sender.send(json, |_, _, assets| {
                let closing = if revoke { Closing::Revoke } else { Closing::Announce };
                Ok(Operation::CloseAsset { asset: assets.find(&asset)?.asset, closing })
            }),
            AssetCommand::Holders(command) => command.run(json),
            AssetCommand::Show { server } => show(json, &server),
        }
    }
}

/// How the node's chain lists assets.
fn terms(server: &Server) -> anyhow::Result<ListingBody> {
    server.node().limits()?.listing.context("this node does not list assets: it is older than rules 15")
}

/// The fees to pay.
fn asked(terms: &ListingBody, most: Option<u64>) -> anyhow::Result<u64> {
    ensure!(
        terms.policy == "priced",
        "this chain lists no assets after its genesis (`listing.policy` is {:?})",
        terms.policy
    );
    let fees: u64 = terms.fees.parse().context("the node's fees of a listing are no number")?;
    if let Some(most) = most {
        ensure!(fees <= most, "a listing costs {fees} fees now, and --most-fees is {most}");
    }
    Ok(fees)
}

fn digest(text: &str) -> anyhow::Result<Digest> {
    let bytes = hex_bytes(text).context("--document: not hexadecimal")?;
    Ok(Digest(bytes.try_into().ok().context("--document: a SHA-256 has 64 hexadecimal digits")?))
}

fn show(json: bool, server: &Server) -> anyhow::Result<ExitCode> {
    let (body, terms) = (server.node().get::<AssetsBody>("/v1/assets")?, terms(server)?);
    if json {
        println!("{}", json!({"assets": body.assets, "listing": terms}));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{:<14} {:>24} {:>24}  issuer", "asset", "issued", "at most");
    body.assets.iter().for_each(|asset| println!("{}", row(asset)));
    let ListingBody { policy, fees, open, assets_max, notice } = terms;
    match &*policy {
        "priced" => println!("A listing costs {fees} fees; {open} of {assets_max} assets are open."),
        _ => println!("This chain lists no assets after its genesis."),
    }
    println!("An asset closes {notice} heights after it was announced.");
    Ok(ExitCode::SUCCESS)
}

fn row(asset: &AssetBody) -> String {
    let shown =
        |units: &str| units.parse().map_or_else(|_| units.to_string(), |units| from_units(units, asset.decimals));
    let most = asset.listed.as_ref().map_or_else(String::new, |listed| shown(&listed.supply_max));
    let closes = asset.closes.map_or_else(String::new, |last| format!("; trades up to height {last}"));
    format!("{:<14} {:>24} {most:>24}  {}{closes}", asset.symbol, shown(&asset.issued), asset.issuer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priced(fees: &str) -> ListingBody {
        ListingBody { policy: "priced".into(), fees: fees.into(), open: 2, assets_max: 9, notice: 7 }
    }

    #[test]
    fn a_listing_pays_what_is_asked_for_and_no_more_than_its_issuer_permits() {
        assert_eq!(asked(&priced("20"), None).expect("the price"), 20);
        assert_eq!(asked(&priced("20"), Some(20)).expect("the price"), 20);
        let dear = asked(&priced("40"), Some(20)).expect_err("too dear").to_string();
        assert!(dear.contains("costs 40 fees now, and --most-fees is 20"), "{dear}");
        let closed = asked(&ListingBody { policy: "closed".into(), ..priced("20") }, None).expect_err("closed");
        assert!(closed.to_string().contains("lists no assets"), "{closed}");
        assert!(digest("0x00").is_err() && digest(&"7".repeat(64)).is_ok());
    }
}
