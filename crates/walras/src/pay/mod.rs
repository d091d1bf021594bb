//! `walras pay`: a purse for the payment lane. Money comes from the ledger by a deposit, moves with the signatures of a
//! quorum in one round trip, and goes back by a redemption.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use payments::{
    BridgeOperation, ContestedOutput, FastReceipt, HomeEpoch, OutputId, OutputProof, PaidProof, PaymentBody,
    PaymentView, Recipient, SpentOutput, owner_message,
};
use primitives::{Address, AssetId, Operation};
use serde_json::{Value, json};

mod address;
pub mod audit;
mod lanes;
mod network;
mod purse;
mod restore;
mod show;
mod slip;
mod spend;
pub mod watch;

use address::{Payee, Shown, lane_address};
use lanes::Lanes;
use network::{LaneNetwork, LaneNow};
use purse::{Deposit, Held, Purse, Seed};
use slip::{DepositSlip, Slip, Verified, qr};
use spend::Confirmed;

use crate::keystore::{self, Passphrase};
use crate::wallet::fate::Fate;
use crate::wallet::send::Sender;
use crate::wallet::server::{Server, text};

/// How long a deposit's block may take to be certified.
const CERTIFIED_PATIENCE: Duration = Duration::from_secs(60);

/// Where the purse is.
#[derive(Clone, clap::Args)]
pub struct Place {
    /// The purse's folder.
    #[arg(long, value_name = "DIR", env = "WALRAS_PURSE", default_value = "walras-purse")]
    purse: PathBuf,
    /// File whose first line is the purse's passphrase; else WALRAS_PASSPHRASE, else it is asked for.
    #[arg(long, value_name = "FILE")]
    purse_passphrase_file: Option<PathBuf>,
}

impl Place {
    fn open(&self) -> anyhow::Result<Purse> {
        Purse::open(&self.purse)
    }

    fn passphrase(&self) -> Passphrase {
        Passphrase::of(self.purse_passphrase_file.clone())
    }
}

/// How the lane is reached.
#[derive(Clone, clap::Args)]
pub struct Reach {
    #[command(flatten)]
    server: Server,
    /// How long to wait for a quorum, in seconds. What is not confirmed by then is finished later.
    #[arg(long = "lane-patience", value_name = "SECONDS", default_value_t = 30)]
    lane_patience: u64,
}

impl Reach {
    fn patience(&self) -> Duration {
        Duration::from_secs(self.lane_patience)
    }
}

/// Pays in the payment lane: confirmed by a quorum in one round trip.
#[derive(clap::Subcommand)]
pub enum Pay {
    /// Make a purse for the lane of a node, or of a genesis file.
    #[command(after_help = "Examples:
  walras pay new                                     # for the lane of the node at 127.0.0.1:8080
  walras pay new --purse alice --genesis exchange/genesis.json")]
    New {
        /// Take network and keys from this genesis file instead of from the node.
        #[arg(long, value_name = "FILE")]
        genesis: Option<PathBuf>,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        server: Server,
    },
    /// Print a new lane address of this purse.
    #[command(after_help = "Example:\n  walras pay address --purse bob")]
    Address {
        #[command(flatten)]
        place: Place,
    },
    /// Move money from a ledger account into the purse.
    #[command(after_help = "Example:\n  walras pay deposit --key alice.json --asset EUR --amount 100")]
    Deposit {
        /// The asset.
        #[arg(long)]
        asset: String,
        /// Amount, in whole assets.
        #[arg(long)]
        amount: String,
        #[command(flatten)]
        sender: Sender,
        #[command(flatten)]
        place: Place,
    },
    /// Show what the purse holds: what is settled, fast and pending.
    #[command(after_help = "Example:\n  walras pay balance")]
    Balance {
        /// Ask no node. What can only go home is then not told apart.
        #[arg(long)]
        offline: bool,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        server: Server,
    },
    /// Pay a lane address, or a ledger account.
    #[command(after_help = "Examples:
  walras pay send --to lane:5b01… --asset EUR --amount 12.50 --receipt coffee.txt
  walras pay send --to 0x53e0… --asset EUR --amount 12.50    # an account: redeem the receipt then")]
    Send {
        /// A lane address, as `walras pay address` prints it, or an account of the ledger.
        #[arg(long)]
        to: Payee,
        /// The asset.
        #[arg(long)]
        asset: String,
        /// Amount, in whole assets.
        #[arg(long)]
        amount: String,
        /// File for the receipt, which the recipient needs; else receipt-….txt here.
        #[arg(long, value_name = "FILE")]
        receipt: Option<PathBuf>,
        /// Leave settling to the recipient.
        #[arg(long)]
        no_settle: bool,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        reach: Reach,
    },
    /// Check a receipt and take its money into the purse.
    #[command(after_help = "Example:\n  walras pay receive coffee.txt --purse bob")]
    Receive {
        /// File with receipts.
        file: PathBuf,
        /// Check and keep only; settle later.
        #[arg(long)]
        no_settle: bool,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        reach: Reach,
    },
    /// Finish and settle everything, and renew what can be spent for the last time in this epoch.
    #[command(after_help = "Example:\n  walras pay settle       # run it once in each lane epoch at least")]
    Settle {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        reach: Reach,
    },
    /// Check a receipt offline, with the keys of the lane alone. This proves that it is fast, not that it is settled.
    #[command(after_help = "Examples:
  walras pay verify coffee.txt --purse bob
  walras pay verify coffee.txt --genesis exchange/genesis.json")]
    Verify {
        /// File with receipts.
        file: PathBuf,
        /// Take network and keys from this genesis file instead of from the purse.
        #[arg(long, value_name = "FILE")]
        genesis: Option<PathBuf>,
        #[command(flatten)]
        place: Place,
    },
    /// Write the receipts of an own payment again: to a file, and as QR codes in the terminal.
    #[command(after_help = "Examples:
  walras pay export 0x6e0b12 --qr
  walras pay export 0x6e0b12 --file coffee.txt")]
    Export {
        /// The payment's digest, or its beginning.
        payment: String,
        /// File to write; else standard output.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Draw QR codes.
        #[arg(long)]
        qr: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Move money back to a ledger account, or post receipts of payments to accounts.
    #[command(after_help = "Examples:
  walras pay redeem --key alice.json --asset EUR --amount 50    # to the key's account
  walras pay redeem --key bob.json coffee.txt                   # what a receipt pays to accounts
  walras pay redeem --key alice.json                            # what an earlier command left")]
    Redeem {
        /// Files with receipts of payments to accounts.
        files: Vec<PathBuf>,
        /// The asset.
        #[arg(long, requires = "amount")]
        asset: Option<String>,
        /// Amount, in whole assets.
        #[arg(long, requires = "asset")]
        amount: Option<String>,
        #[command(flatten)]
        sender: Sender,
        #[command(flatten)]
        place: Place,
        /// How long to wait for a quorum, in seconds.
        #[arg(long = "lane-patience", value_name = "SECONDS", default_value_t = 30)]
        lane_patience: u64,
    },
    /// Contest the money of a payment that is stuck: the ledger decides whether the payment stands or the money comes
    /// back to the account of its key. Takes a deposit, which comes back if the payment was not confirmed.
    #[command(after_help = "Example:\n  walras pay contest 0x6e0b12 --key alice.json")]
    Contest {
        /// The payment's digest, or its beginning.
        payment: String,
        #[command(flatten)]
        sender: Sender,
        #[command(flatten)]
        place: Place,
    },
    /// Leave receipts of all that the purse holds for a watcher (`walras watch`), which needs no key.
    #[command(after_help = "Example:\n  walras pay leave watched")]
    Leave {
        /// The watcher's folder.
        folder: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// List the ledger accounts at which money of this purse came home, by itself or by a watcher.
    #[command(after_help = "Example:\n  walras pay accounts")]
    Accounts {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        server: Server,
    },
    /// Write the key of an account at which money of this purse came home, for `walras wallet`.
    #[command(after_help = "Example:\n  walras pay account-key 0x53e0… --out home.json")]
    AccountKey {
        /// The account.
        account: Address,
        /// Key file to write, under the purse's passphrase.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        #[command(flatten)]
        place: Place,
    },
}

impl Pay {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            Pay::New { genesis, place, server } => new(json, genesis, &place, &server),
            Pay::Address { place } => address(json, &place),
            Pay::Deposit { asset, amount, sender, place } => deposit(json, &asset, &amount, &sender, &place),
            Pay::Balance { offline, place, server } => balance(json, offline, &place, &server),
            Pay::Send { to, asset, amount, receipt, no_settle, place, reach } => {
                let order = Order { to, asset, amount, receipt, settles: !no_settle };
                send(json, &order, &place, &reach)
            }
            Pay::Receive { file, no_settle, place, reach } => receive(json, &file, !no_settle, &place, &reach),
            Pay::Settle { place, reach } => settle(json, &place, &reach),
            Pay::Verify { file, genesis, place } => verify(json, &file, genesis, &place),
            Pay::Export { payment, file, qr, place } => export(json, &payment, file, qr, &place),
            Pay::Redeem { files, asset, amount, sender, place, lane_patience } => {
                let patience = Duration::from_secs(lane_patience);
                redeem(json, &files, asset.zip(amount), &sender, &place, patience)
            }
            Pay::Contest { payment, sender, place } => contest(json, &payment, &sender, &place),
            Pay::Leave { folder, place } => leave(json, &folder, &place),
            Pay::Accounts { place, server } => accounts(json, &place, &server),
            Pay::AccountKey { account, out, place } => account_key(json, &account, &out, &place),
        }
    }
}

fn new(json: bool, genesis: Option<PathBuf>, place: &Place, server: &Server) -> anyhow::Result<ExitCode> {
    let network = match genesis {
        Some(path) => LaneNetwork::of_genesis(&path)?,
        None => LaneNetwork::of_server(server)?,
    };
    Purse::create(&place.purse, &network, &place.passphrase())?;
    let (fingerprint, purse) = (network.fingerprint(), place.purse.display());
    if json {
        println!(
            "{}",
            json!({"purse": place.purse, "network": network.id.to_string(), "fingerprint": fingerprint,
                "validators": network.members.len()})
        );
    } else {
        println!("Purse        {purse}");
        println!("Network      {}", network.id);
        println!("Fingerprint  {fingerprint} of {} validators' keys", network.members.len());
        println!("Compare the fingerprint with somebody you trust. The purse believes these keys from now on.");
    }
    Ok(ExitCode::SUCCESS)
}

fn address(json: bool, place: &Place) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let seed = purse.seed(&place.passphrase())?;
    let key = purse.new_key(&seed)?.public();
    let address = lane_address(&purse.network.id, &key);
    if json {
        println!("{}", json!({"address": address}))
    } else {
        println!("{address}")
    }
    Ok(ExitCode::SUCCESS)
}

fn deposit(json: bool, asset: &str, amount: &str, sender: &Sender, place: &Place) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let (asset, amount) = purse.network.units(asset, amount)?;
    let least = purse.network.rules().assets.get(&asset).map_or(1, |rule| rule.least_units);
    ensure!(amount >= least, "a deposit of this asset has at least {}", purse.network.money(asset, least));
    // The node must be of the purse's lane, else the money would become another lane's.
    LaneNow::ask(sender.server(), &purse.network)?;
    resolve_deposits(&purse, sender.server(), Duration::ZERO)?;
    let account = sender.account()?;
    let mut waiting = purse.contents()?.deposits.into_iter();
    let same = waiting.find(|one| (one.asset, one.amount) == (asset.0, amount) && one.account == account.to_string());
    if let Some(same) = same.filter(|_| !sender.is_again()) {
        bail!(
            "the same was deposited before as {0}, and its end is not known: `walras wallet status {0}` tells, \
             `walras pay settle` takes it into the purse. To do it twice, add --again",
            same.transaction
        );
    }
    let seed = purse.seed(&place.passphrase())?;
    let to = purse.new_key(&seed)?.public();
    let (transaction, _) = sender.sign(|_, _, _| Ok(Operation::Withdraw { to, asset, amount }))?;
    let deposit = Deposit {
        transaction: transaction.id().to_string(),
        account: account.to_string(),
        sequence: transaction.body.sequence,
        to: to.to_string(),
        asset: asset.0,
        amount,
        home: None,
    };
    purse.keep_deposit(&deposit)?;
    let fate = match sender.commit(json, &transaction) {
        Ok(fate) => fate,
        Err(error) => {
            purse.forget_deposit(&deposit)?;
            return Err(error);
        }
    };
    let Fate::Committed(_) = &fate else {
        resolve_deposits(&purse, sender.server(), Duration::ZERO)?;
        return Ok(fate.tell(json, &transaction.id(), &sender.server().assets()?));
    };
    resolve_deposits(&purse, sender.server(), CERTIFIED_PATIENCE)?;
    let is_in = !purse.contents()?.deposits.iter().any(|one| one.transaction == deposit.transaction);
    if json {
        println!(
            "{}",
            json!({"transaction": deposit.transaction, "asset": purse.network.symbol(asset),
                "amount": amount.to_string(), "spendable": is_in})
        );
    } else if is_in {
        println!("deposited {}: settled, {}", purse.network.money(asset, amount), show::SETTLED);
    } else {
        println!("deposited {}: spendable once its block is certified", purse.network.money(asset, amount));
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks what became of deposits; waits so long for blocks to be certified.
fn resolve_deposits(purse: &Purse, server: &Server, patience: Duration) -> anyhow::Result<()> {
    let begun = std::time::Instant::now();
    for mut deposit in purse.contents()?.deposits {
        let id = deposit.transaction.parse().context("the id of a deposit")?;
        let height = match Fate::of(server, &id)? {
            Fate::Refused(_) => {
                purse.forget_deposit(&deposit)?;
                continue;
            }
            Fate::Committed(body) => body["height"].as_u64().context("the height of a deposit")?,
            Fate::Waiting(_) | Fate::Unknown(_) => continue,
        };
        while !is_certified(server, height)? {
            if begun.elapsed() >= patience {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if !is_certified(server, height)? {
            continue;
        }
        if let Some(home) = home_of(purse, server, &deposit)? {
            deposit.home = Some(home);
            purse.keep_deposit(&deposit)?;
        }
    }
    Ok(())
}

/// Whether validators of the lane accept what the block of this height backs.
fn is_certified(server: &Server, height: u64) -> anyhow::Result<bool> {
    let answered = server.ask("/v1/validator")?;
    // A node that is alone certifies nothing.
    Ok(answered.status == 404 || answered.sound()?["certified_anywhere"].as_u64().is_some_and(|at| at >= height))
}

/// The home of a deposit: the epoch for which the ledger knows its output. The name is computed here.
fn home_of(purse: &Purse, server: &Server, deposit: &Deposit) -> anyhow::Result<Option<HomeEpoch>> {
    let now = LaneNow::ask(server, &purse.network)?.epoch;
    let account: Address = deposit.account.parse()?;
    for home in (now.saturating_sub(payments::REDEEM_EPOCHS)..=now).rev() {
        let id = OutputId::of_deposit(&purse.network.id, home, &account, deposit.sequence);
        let answered = server.ask(&format!("/v1/lane/outputs/{id}"))?;
        if answered.status == 404 {
            continue;
        }
        let output = answered.sound()?;
        let is_same = text(&output["to"]) == deposit.to && text(&output["amount"]) == deposit.amount.to_string();
        ensure!(is_same, "the node shows another output {id} than was deposited; give another --server");
        return Ok(Some(home));
    }
    Ok(None)
}

fn balance(json: bool, offline: bool, place: &Place, server: &Server) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let now = match offline {
        true => None,
        false => {
            let now = LaneNow::ask(server, &purse.network).context("to ask no node, add --offline")?;
            resolve_deposits(&purse, server, Duration::ZERO)?;
            Some(now.epoch)
        }
    };
    show::balance(&purse, now, json)?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be sent.
struct Order {
    to: Payee,
    asset: String,
    amount: String,
    receipt: Option<PathBuf>,
    settles: bool,
}

fn send(json: bool, order: &Order, place: &Place, reach: &Reach) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let to = order.to.on(&purse.network.id)?;
    let quantity = purse.network.units(&order.asset, &order.amount)?;
    let mut session = Session::begin(&mut purse, place, &reach.server, reach.patience())?;
    let confirmed = session.pay(to, quantity, order.settles)?;
    let slips = slips(&purse, &confirmed)?;
    let first = confirmed.first().context("nothing was paid")?;
    let default = || PathBuf::from(format!("receipt-{}.txt", &spend::short(&first.payment.digest)[2..]));
    let file = order.receipt.clone().unwrap_or_else(default);
    std::fs::write(&file, slips.join("\n") + "\n").with_context(|| file.display().to_string())?;
    let shown = Shown(&purse.network.id, to).to_string();
    let is_account = matches!(to, Recipient::Account(_));
    if json {
        let payments: Vec<Value> = confirmed.iter().map(show::confirmed_body).collect();
        println!(
            "{}",
            json!({"to": shown, "asset": order.asset, "amount": quantity.1.to_string(), "payments": payments,
                "receipt": file, "promises": {"fast": show::FAST, "settled": show::SETTLED}})
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!("paid {} to {shown}", purse.network.money(quantity.0, quantity.1));
    confirmed.iter().for_each(show::tell);
    println!("Receipt  {}", file.display());
    match is_account {
        true => println!("Anybody redeems it:  walras pay redeem --key KEY {}", file.display()),
        false => println!("The recipient takes it:  walras pay receive {}", file.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The slips for the others of payments.
fn slips(purse: &Purse, confirmed: &[Confirmed]) -> anyhow::Result<Vec<String>> {
    let mut slips = Vec::new();
    for one in confirmed {
        slips.extend(slips_of(purse, &one.payment, &one.certificate)?);
    }
    Ok(slips)
}

fn slips_of(
    purse: &Purse,
    payment: &payments::SignedPayment,
    certificate: &payments::PaymentCertificate,
) -> anyhow::Result<Vec<String>> {
    let mut slips: Vec<Slip> = spend::receipts(purse, payment, certificate)?.into_iter().map(Slip::Receipt).collect();
    if !spend::to_accounts(payment)?.is_empty() {
        slips.push(Slip::ToAccounts(PaymentBody::parse(&payment.payment)?, certificate.clone()));
    }
    Ok(slips.iter().map(|slip| slip.encode(&purse.network.id)).collect())
}

/// A purse that is about to spend: it knows its secrets, the lane, and what it has spent.
struct Session<'a> {
    purse: &'a mut Purse,
    seed: Seed,
    lanes: Lanes,
}

impl<'a> Session<'a> {
    fn begin(purse: &'a mut Purse, place: &Place, server: &Server, patience: Duration) -> anyhow::Result<Session<'a>> {
        let seed = purse.seed(&place.passphrase())?;
        resolve_deposits(purse, server, Duration::ZERO)?;
        let mut lanes = Lanes::to_spend(server, &purse.network, patience)?;
        if purse.is_copy() {
            let found = restore::ask(purse, &seed, &mut lanes)?;
            eprintln!(
                "the purse was copied or restored: a quorum told what it has spent, {found} payments it had lost"
            );
        }
        Ok(Session { purse, seed, lanes })
    }

    fn pay(&mut self, to: Recipient, quantity: (AssetId, u64), settles: bool) -> anyhow::Result<Vec<Confirmed>> {
        let payments = spend::begin(self.purse, &self.seed, &self.lanes, to, quantity)?;
        let mut confirmed = Vec::new();
        for payment in payments {
            confirmed.push(spend::confirm(self.purse, &mut self.lanes, payment)?);
        }
        for one in confirmed.iter_mut().filter(|_| settles) {
            // The receipt is good without it, and it is tried again.
            if let Err(error) = spend::settle(self.purse, &mut self.lanes, one) {
                eprintln!("not settled yet: {error:#}");
            }
        }
        Ok(confirmed)
    }
}

fn receive(json: bool, file: &PathBuf, settles: bool, place: &Place, reach: &Reach) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let slips = Slip::read(&text, &purse.network.id).with_context(|| file.display().to_string())?;
    let mut taken = Vec::new();
    // All of a file, or nothing.
    for slip in &slips {
        let Slip::Receipt(receipt) = slip else {
            bail!("{}: it pays ledger accounts: walras pay redeem --key KEY {0}", file.display());
        };
        let Verified::Output(holding) = slip.verify(&purse.network).with_context(|| file.display().to_string())? else {
            bail!("{}: it proves no output", file.display());
        };
        let owner = match holding.output.to {
            Recipient::Key(owner) if purse.owns(&owner) => owner,
            to => bail!("{}: it pays {}, which is not of this purse", file.display(), Shown(&purse.network.id, to)),
        };
        taken.push((receipt, holding, owner));
    }
    let mut rows = Vec::new();
    for (receipt, holding, _) in &taken {
        let is_new = purse.keep_receipt(&holding.id, receipt)?;
        rows.push((holding, is_new));
    }
    let failed = if settles { settle_received(&purse, reach) } else { vec!["it was not asked for".into()] };
    let now_held = purse.contents()?.held;
    let is_settled =
        |id: &OutputId| now_held.iter().find(|held| held.holding.id == *id).is_none_or(|held| held.is_settled);
    if json {
        let row = |(holding, is_new): &(&Box<payments::Holding>, bool)| {
            json!({
                "output": holding.id.to_string(),
                "asset": purse.network.symbol(holding.output.asset),
                "amount": holding.output.amount.to_string(),
                "new": is_new,
                "settled": is_settled(&holding.id),
            })
        };
        println!("{}", json!({"received": rows.iter().map(row).collect::<Vec<_>>()}));
        return Ok(ExitCode::SUCCESS);
    }
    for (holding, is_new) in &rows {
        let again = if *is_new { "" } else { " (it was here already)" };
        println!("received {}{again}", purse.network.money(holding.output.asset, holding.output.amount));
    }
    if rows.iter().all(|(holding, _)| is_settled(&holding.id)) {
        println!("Settled: {}", show::SETTLED);
    } else {
        println!("Fast: {}", show::FAST);
        println!("Not settled yet ({}): walras pay settle", failed.join("; "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Settles what was received; why some is not.
fn settle_received(purse: &Purse, reach: &Reach) -> Vec<String> {
    let settled = Lanes::new(&reach.server, &purse.network, reach.patience())
        .and_then(|mut lanes| spend::settle_all(purse, &mut lanes));
    match settled {
        Ok((_, failed)) => failed,
        Err(error) => vec![format!("{error:#}")],
    }
}

fn settle(json: bool, place: &Place, reach: &Reach) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    resolve_deposits(&purse, &reach.server, CERTIFIED_PATIENCE)?;
    let mut lanes = Lanes::new(&reach.server, &purse.network, reach.patience())?;
    let mut failed = Vec::new();
    let mut finished = 0;
    for payment in purse.outbox.unfinished()? {
        match spend::confirm(&purse, &mut lanes, payment) {
            Ok(_) => finished += 1,
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    let (settled, unsettled) = spend::settle_all(&purse, &mut lanes)?;
    failed.extend(unsettled);
    let (mut renewed, mut sent_home) = (0, 0);
    let now = lanes.now.epoch;
    let is_old = |held: &Held| held.home + 1 == now || held.home + 2 == now;
    if purse.contents()?.held.iter().any(is_old) {
        let mut session = Session::begin(&mut purse, place, &reach.server, reach.patience())?;
        renewed = spend::renew(session.purse, &session.seed, &mut session.lanes)?;
        sent_home = spend::send_home(session.purse, &session.seed, &mut session.lanes)?;
    }
    let unposted: Vec<_> = purse.contents()?.sent.into_iter().filter(|sent| show::is_unposted(&purse, sent)).collect();
    if json {
        println!(
            "{}",
            json!({"finished": finished, "settled": settled, "renewed": renewed, "sent_home": sent_home,
                "unposted": unposted.iter().map(|sent| sent.payment.digest.to_string()).collect::<Vec<_>>(),
                "failed": failed})
        );
    } else {
        println!("finished {finished}, settled {settled}, renewed {renewed}, sent home {sent_home}");
        if !unposted.is_empty() {
            println!("{} payments to accounts wait to be redeemed: walras pay redeem --key KEY", unposted.len());
        }
        failed.iter().for_each(|reason| eprintln!("not done: {reason}"));
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verify(json: bool, file: &PathBuf, genesis: Option<PathBuf>, place: &Place) -> anyhow::Result<ExitCode> {
    let network = match genesis {
        Some(path) => LaneNetwork::of_genesis(&path)?,
        None => purse::read_network(&place.purse).context("give --purse, or --genesis")?,
    };
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let slips = Slip::read(&text, &network.id).with_context(|| file.display().to_string())?;
    let mut proved = Vec::new();
    for slip in &slips {
        let verified = slip.verify(&network);
        match verified.with_context(|| format!("{}: this receipt proves nothing", file.display()))? {
            Verified::Output(holding) => proved.push((holding.output, holding.id.to_string())),
            Verified::Payment(body) => {
                let outputs = body.payment.outputs.iter().zip(body.output_ids());
                let to_account =
                    |(output, _): &(&payments::Output, OutputId)| matches!(output.to, Recipient::Account(_));
                proved.extend(outputs.filter(to_account).map(|(output, id)| (*output, id.to_string())));
            }
        }
    }
    if json {
        let row = |(output, id): &(payments::Output, String)| {
            json!({"output": id, "to": Shown(&network.id, output.to).to_string(), "asset": network.symbol(output.asset),
                "amount": output.amount.to_string(), "proves": "fast"})
        };
        println!("{}", json!({"receipts": proved.iter().map(row).collect::<Vec<_>>(), "promise": show::FAST}));
        return Ok(ExitCode::SUCCESS);
    }
    for (output, _) in &proved {
        let money = network.money(output.asset, output.amount);
        println!("{money} for {}", Shown(&network.id, output.to));
    }
    println!("Fast: {}", show::FAST);
    println!("An offline check proves fast only. `walras pay receive` settles it.");
    Ok(ExitCode::SUCCESS)
}

fn export(json: bool, name: &str, file: Option<PathBuf>, codes: bool, place: &Place) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let sent = spend::find(&purse, name)?;
    let waits = "the payment is not confirmed yet: walras pay settle";
    let slips = slips_of(&purse, &sent.payment, sent.certificate.as_ref().context(waits)?)?;
    if let Some(file) = &file {
        std::fs::write(file, slips.join("\n") + "\n").with_context(|| file.display().to_string())?;
    }
    if json {
        println!("{}", json!({"payment": sent.payment.digest.to_string(), "receipts": slips, "file": file}));
        return Ok(ExitCode::SUCCESS);
    }
    for slip in &slips {
        if codes {
            let long = || format!("a receipt of {} characters does not fit a QR code: hand on a file", slip.len());
            println!("{}", qr(slip).with_context(long)?);
        } else if file.is_none() {
            println!("{slip}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn redeem(
    json: bool,
    files: &[PathBuf],
    quantity: Option<(String, String)>,
    sender: &Sender,
    place: &Place,
    patience: Duration,
) -> anyhow::Result<ExitCode> {
    let mut purse = place.open()?;
    let mut certified = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        for slip in Slip::read(&text, &purse.network.id).with_context(|| file.display().to_string())? {
            slip.verify(&purse.network).with_context(|| format!("{}: it proves nothing", file.display()))?;
            match slip {
                Slip::ToAccounts(body, certificate) => certified.push((body, certificate)),
                Slip::Receipt(_) | Slip::Deposit(_) => {
                    bail!("{}: it pays a lane address: walras pay receive {0}", file.display())
                }
            }
        }
    }
    if let Some((asset, amount)) = quantity {
        let quantity = purse.network.units(&asset, &amount)?;
        let to = Recipient::Account(sender.account()?);
        let mut session = Session::begin(&mut purse, place, sender.server(), patience)?;
        let confirmed = session.pay(to, quantity, true)?;
        if !json {
            confirmed.iter().for_each(show::tell);
        }
    }
    if files.is_empty() {
        for sent in purse.contents()?.sent.into_iter().filter(|sent| show::is_unposted(&purse, sent)) {
            let Some(certificate) = sent.certificate else { continue };
            certified.push((PaymentBody::parse(&sent.payment.payment)?, certificate));
        }
    }
    ensure!(!certified.is_empty(), "there is nothing to redeem: give --asset and --amount, or a file");
    let mut rows = Vec::new();
    for (body, certificate) in certified {
        let operation = BridgeOperation::Redeem { payment: body.payment.encode(), certificate };
        let Some(transaction) = post(json, sender, &operation)? else { return Ok(ExitCode::FAILURE) };
        purse.keep_posted(&body.digest, &transaction)?;
        rows.push((body, transaction));
    }
    let waiting = sender.server().get("/v1/lane")?["waiting_claims"].as_u64().unwrap_or(0);
    if json {
        let row = |(body, transaction): &(PaymentBody, primitives::TransactionId)| json!({"payment": body.digest.to_string(), "transaction": transaction.to_string()});
        println!("{}", json!({"redeemed": rows.iter().map(row).collect::<Vec<_>>(), "waiting_claims": waiting}));
        return Ok(ExitCode::SUCCESS);
    }
    for (body, _) in &rows {
        for output in &body.payment.outputs {
            if let Recipient::Account(account) = output.to {
                let money = purse.network.money(output.asset, output.amount);
                println!("redeemed {money} to {}", account.checked());
            }
        }
    }
    if waiting > 0 {
        println!("{waiting} claims wait for the limit on outflow; they are paid in order and do not expire");
    }
    Ok(ExitCode::SUCCESS)
}

/// Posts something about the lane to the ledger; its transaction, if it was committed. Else what happened is told.
fn post(json: bool, sender: &Sender, operation: &BridgeOperation) -> anyhow::Result<Option<primitives::TransactionId>> {
    let (transaction, assets) = sender.sign(|_, _, _| Ok(Operation::Lane(operation.encode().into())))?;
    let fate = sender.commit(json, &transaction)?;
    if let Fate::Committed(_) = fate {
        return Ok(Some(transaction.id()));
    }
    fate.tell(json, &transaction.id(), &assets);
    Ok(None)
}

fn contest(json: bool, name: &str, sender: &Sender, place: &Place) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let sent = spend::find(&purse, name)?;
    ensure!(sent.certificate.is_none(), "the payment is confirmed: nobody can contest its money with success");
    let now = LaneNow::ask(sender.server(), &purse.network)?;
    let (contents, seed) = (purse.contents()?, purse.seed(&place.passphrase())?);
    let mut opened = Vec::new();
    for SpentOutput { id, asset, amount } in PaymentView::parse(&sent.payment.payment)?.inputs() {
        let held = contents.spent.get(&id).with_context(|| format!("the purse has lost what proves output {id}"))?;
        let output = SpentOutput { id, asset, amount };
        let contested = ContestedOutput { output, home: held.home, owner: held.owner };
        let exit = PaymentBody::new(contested.exit(purse.network.id));
        let key = purse.secret(&seed, &held.owner)?;
        let signature = key.sign(&owner_message(&purse.network.id, held.home, &exit.digest));
        let proof: OutputProof = held.holding.proof.clone();
        let operation = BridgeOperation::Resolve { deposit: now.case_deposit, contested, signature, proof };
        let Some(transaction) = post(json, sender, &operation)? else { return Ok(ExitCode::FAILURE) };
        opened.push((id, held.owner.address(), transaction));
    }
    if json {
        let row = |(id, account, transaction): &(OutputId, Address, primitives::TransactionId)| json!({"output": id.to_string(), "account": account.to_string(), "transaction": transaction.to_string()});
        println!("{}", json!({"contested": opened.iter().map(row).collect::<Vec<_>>()}));
        return Ok(ExitCode::SUCCESS);
    }
    for (id, account, _) in &opened {
        println!("contested output {id}: if no payment of it stands, it comes to account {}", account.checked());
    }
    println!("`walras pay account-key` writes the key of such an account.");
    Ok(ExitCode::SUCCESS)
}

fn leave(json: bool, folder: &PathBuf, place: &Place) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let slip = |held: &Held| match &held.holding.proof {
        OutputProof::Payment(proof) => {
            Slip::Receipt(FastReceipt { output: held.holding.output, proof: PaidProof::clone(proof) })
        }
        OutputProof::Ledger => Slip::Deposit(DepositSlip {
            home: held.home,
            id: held.holding.id,
            owner: held.owner,
            asset: held.holding.output.asset,
            amount: held.holding.output.amount,
        }),
    };
    let slips: Vec<Slip> = purse.contents()?.held.iter().map(slip).collect();
    let count = watch::leave(&slips, &purse.network, folder)?;
    if json {
        println!("{}", json!({"left": count, "folder": folder}));
    } else {
        println!("left {count} receipts in {}; leave them again when the purse has changed", folder.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn accounts(json: bool, place: &Place, server: &Server) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let (assets, mut rows) = (server.assets()?, Vec::new());
    for account in purse.accounts() {
        let answered = server.ask(&format!("/v1/accounts/{account}"))?;
        if answered.status == 404 {
            continue;
        }
        let balances = answered.sound()?["balances"].clone();
        if balances.as_array().is_some_and(|balances| balances.iter().any(|of| of["available"] != "0")) {
            rows.push((account, balances));
        }
    }
    if json {
        let row =
            |(account, balances): &(Address, Value)| json!({"account": account.to_string(), "balances": balances});
        println!("{}", json!({"accounts": rows.iter().map(row).collect::<Vec<_>>()}));
        return Ok(ExitCode::SUCCESS);
    }
    for (account, balances) in &rows {
        let of = |balance: &Value| assets.money(&balance["available"], &balance["asset"]);
        let held: Vec<String> = balances.as_array().into_iter().flatten().map(of).collect();
        println!("{}  {}", account.checked(), held.join(", "));
    }
    if !rows.is_empty() {
        println!("`walras pay account-key` writes the key of such an account. A transaction of it pays its fee in the");
        println!("first asset: where it has none, send it a little first.");
    }
    Ok(ExitCode::SUCCESS)
}

fn account_key(json: bool, account: &Address, out: &PathBuf, place: &Place) -> anyhow::Result<ExitCode> {
    let purse = place.open()?;
    let seed = purse.seed(&place.passphrase())?;
    let key = purse.secret_of_account(&seed, account)?;
    keystore::write(out, &key, &place.passphrase())?;
    if json {
        println!("{}", json!({"key": out, "address": account.to_string()}));
    } else {
        println!("{}: the key of {}", out.display(), account.checked());
    }
    Ok(ExitCode::SUCCESS)
}
