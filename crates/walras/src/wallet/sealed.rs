//! `--sealed`: orders in envelopes, which nobody reads before the block that holds them is decided.

use std::path::PathBuf;
use std::process::ExitCode;

use client::wallet::{SealedSent, Signatory};
use client::{Assets, OrderError, OrderForms};
use primitives::{Address, Operation};

use super::send::Sender;
use super::server::Server;
use crate::keystore::Passphrase;

/// Who sends an order, and whether in an envelope.
#[derive(clap::Args, Clone)]
pub struct OrderSender {
    /// Send the order in an envelope that the validators together open once its block is decided. It costs 33 fees
    /// more, and shows who pays, when, and how large it is. Without a sealing key nothing is sent.
    #[arg(long)]
    sealed: bool,
    /// Key file of the account that pays for the envelope; by default the one that trades. Another one hides who
    /// trades.
    #[arg(long, value_name = "FILE", requires = "sealed")]
    payer: Option<PathBuf>,
    /// File with the passphrase of the payer's key, if it has another one.
    #[arg(long, value_name = "FILE", requires = "payer")]
    payer_passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    sender: Sender,
}

impl OrderSender {
    /// Whether the order goes in an envelope: then the node is asked nothing that names it.
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Signs an operation and delivers it.
    pub fn send(
        self,
        json: bool,
        operation: impl FnOnce(&Server, &Address, &Assets) -> anyhow::Result<Operation>,
    ) -> anyhow::Result<ExitCode> {
        if !self.sealed {
            return self.sender.send(json, operation);
        }
        let trader = self.sender.signer()?;
        let operation = operation(self.sender.server(), &trader.account, &trader.assets)?;
        self.seal(json, &trader, operation)
    }

    /// Places an order. In an envelope it goes as an offer: no node is asked what the next batch would do with it.
    pub fn place(
        self,
        json: bool,
        forms: impl FnOnce(&Assets) -> Result<OrderForms, OrderError>,
    ) -> anyhow::Result<ExitCode> {
        if !self.sealed {
            return self.sender.place(json, forms);
        }
        let trader = self.sender.signer()?;
        let offer = forms(&trader.assets)?.offer;
        self.seal(json, &trader, offer)
    }

    fn seal(self, json: bool, trader: &Signatory, operation: Operation) -> anyhow::Result<ExitCode> {
        let passphrase = self.payer_passphrase_file.map(Passphrase::of_file);
        let payer = self.payer.map(|key| self.sender.payer(key, passphrase)).transpose()?;
        let SealedSent { envelope, fate, orders } =
            self.sender.send_sealed(json, trader, payer.as_ref(), &operation)?;
        match (json, orders.first()) {
            (false, Some((id, of_order))) if fate.is_final() => {
                println!("envelope {envelope} is open");
                Ok(self.sender.report(json, id, of_order, &trader.assets))
            }
            (true, Some((id, of_order))) if fate.is_final() => {
                Ok(self.sender.report(json, id, of_order, &trader.assets))
            }
            _ => Ok(self.sender.report(json, &envelope, &fate, &trader.assets)),
        }
    }
}
