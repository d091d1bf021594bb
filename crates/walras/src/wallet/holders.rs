//! `walras wallet asset freeze | admit | recover | recall`: what an issuer says of holders of its asset.

use std::process::ExitCode;

use anyhow::Context;
use primitives::venue::{VenueId, VenueOperation};
use primitives::{Address, HolderRecovery, HolderState, Operation, Reference, ReferenceKind};

use super::Quantity;
use super::send::Sender;

/// Why: it is public for ever, so no personal data.
#[derive(clap::Args, Clone)]
pub struct Grounds {
    /// Why, such as the number of an order of a court. It is public for ever: no personal data.
    #[arg(long, value_name = "VALUE")]
    reference: String,
    /// What the reference is: a text of ASCII characters, a UUID, the SHA-256 of a message with a salt inside, or a
    /// number.
    #[arg(long, value_name = "KIND", default_value = "text")]
    reference_kind: ReferenceKind,
}

impl Grounds {
    fn read(&self) -> anyhow::Result<Reference> {
        Reference::read(self.reference_kind, &self.reference).context("--reference")
    }
}

/// What an issuer says of holders of an asset that it controls.
#[derive(clap::Subcommand)]
pub enum HolderCommand {
    /// Freeze a holder: from the next block on it neither spends, buys nor receives the asset. Its offers end, and its
    /// shares of pools are paid out to it. At venues the freeze counts after their delay.
    #[command(after_help = "Example:
  walras wallet asset freeze --key issuer.json --asset EUR.17 --holder 0x53e0… --reference 'order 7/2026'")]
    Freeze {
        /// The asset.
        #[arg(long)]
        asset: String,
        /// The holder.
        #[arg(long)]
        holder: Address,
        #[command(flatten)]
        grounds: Grounds,
        #[command(flatten)]
        sender: Sender,
    },
    /// Admit a holder to an asset that is for admitted holders, or open one that was frozen.
    #[command(after_help = "Example:
  walras wallet asset admit --key issuer.json --asset EUR.17 --holder 0x53e0… --reference 'client 4711'")]
    Admit {
        /// The asset.
        #[arg(long)]
        asset: String,
        /// The holder.
        #[arg(long)]
        holder: Address,
        #[command(flatten)]
        grounds: Grounds,
        #[command(flatten)]
        sender: Sender,
    },
    /// Move units of a holder who has been frozen for 86,400 heights, to this account or to an open holder.
    #[command(after_help = "Example:
  walras wallet asset recover --key issuer.json --asset EUR.17 --amount 12.50 --from 0x53e0… --to 0x77c1… \\
      --reference 'order 7/2026'")]
    Recover {
        #[command(flatten)]
        quantity: Quantity,
        /// The frozen holder.
        #[arg(long)]
        from: Address,
        /// Who receives them.
        #[arg(long)]
        to: Address,
        #[command(flatten)]
        grounds: Grounds,
        #[command(flatten)]
        sender: Sender,
    },
    /// Collect all that such a holder has at a venue, for the holder: then its units can be recovered.
    #[command(after_help = "Example:
  walras wallet asset recall --key issuer.json --asset EUR.17 --holder 0x53e0… --venue 0")]
    Recall {
        /// The asset.
        #[arg(long)]
        asset: String,
        /// The holder.
        #[arg(long)]
        holder: Address,
        /// The venue.
        #[arg(long)]
        venue: VenueId,
        #[command(flatten)]
        sender: Sender,
    },
}

impl HolderCommand {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            HolderCommand::Freeze { asset, holder, grounds, sender } => {
                say(json, sender, asset, (holder, HolderState::Frozen), &grounds)
            }
            HolderCommand::Admit { asset, holder, grounds, sender } => {
                say(json, sender, asset, (holder, HolderState::Open), &grounds)
            }
            HolderCommand::Recover { quantity, from, to, grounds, sender } => {
                let reference = grounds.read()?;
                sender.send(json, |_, _, assets| {
                    let (asset, amount) = quantity.units(assets)?;
                    Ok(Operation::Recover(Box::new(HolderRecovery { asset, from, to, amount, reference })))
                })
            }
            HolderCommand::Recall { asset, holder: account, venue, sender } => sender.send(json, |_, _, assets| {
                let asset = assets.find(&asset)?.asset;
                Ok(Operation::Venue(Box::new(VenueOperation::Recall { venue, asset, account })))
            }),
        }
    }
}

fn say(
    json: bool,
    sender: Sender,
    asset: String,
    (account, state): (Address, HolderState),
    grounds: &Grounds,
) -> anyhow::Result<ExitCode> {
    let reference = grounds.read()?;
    sender.send(json, |_, _, assets| {
        let asset = assets.find(&asset)?.asset;
        Ok(Operation::SetHolder { asset, account, state, reference })
    })
}
