//! A program whose offers end when it does. It trades by a session key, and a node holds the key's signed stop
//! meanwhile:
//!
//! ```sh
//! walras wallet new --key bot.json
//! walras wallet session add --key alice.json --session-key bot.json --cap USD:500 --cap EUR:400 --alive 600
//! cargo run -p walras --example guarded -- http://127.0.0.1:8080 bot.json 'correct horse' 0x53e0…
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use client::wallet::{Numbering, Wallet};
use client::{DisconnectGuard, Guards, NodeClient, keystore};
use primitives::{Address, ClientId, Life, Operation};

/// Offers 10,000 units of EUR for at least 2 units of USD each, guarded until the offer is in a block.
pub fn trade(server: &str, key_file: PathBuf, passphrase: &str, account: Address) -> Result<(), Box<dyn Error>> {
    let patience = Duration::from_secs(60);
    let wallet = Wallet { node: NodeClient::at(server), key_file, numbering: Numbering::default(), patience };
    let open = || Ok::<_, Box<dyn Error>>(keystore::open_under(&wallet.key_file, passphrase)?);
    let signatory = Arc::new(wallet.session_signatory(account, None, open)?);

    // From here on a crash, a panic or a lost connection ends the offers of the slot with the next block.
    let guard = DisconnectGuard::open(&wallet, signatory.clone(), Guards::Slot(signatory.slot))?;
    let (sell, buy) = (signatory.assets.find("EUR")?.asset, signatory.assets.find("USD")?.asset);
    let limit = "2".parse()?;
    let offer = Operation::CreateOffer { sell, buy, amount: 10_000, limit, life: Life::Rests, client: ClientId::NONE };
    let (id, fate) = wallet.send(&signatory, &offer, &mut |_| {})?;
    println!("{id}: {fate:?}; guarded: {}", guard.is_held());

    // A regular end: what was left is taken back, and the offer stays.
    guard.withdraw()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, key_file, passphrase, account] = &arguments[..] else {
        return Err("usage: guarded SERVER KEY_FILE PASSPHRASE ACCOUNT".into());
    };
    trade(server, key_file.into(), passphrase, account.parse()?)
}
