//! `walras wallet`: keys, operations, balances, and what happens to them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use primitives::{Address, Amount, AssetId, Body, Evidence, Operation, Price, PublicKey, Sequence, Stake, Transaction};
use serde_json::Value;

use crate::decimal::{from_units, to_unit_price, to_units};
use crate::keystore::{self, Passphrase};

/// How long a node that lags is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Holds keys, sends any operation, looks at balances.
#[derive(clap::Subcommand)]
pub enum Wallet {
    /// Make a key.
    #[command(after_help = "Example:\n  walras wallet new --key alice.json")]
    New {
        /// File to write.
        #[arg(long)]
        key: PathBuf,
        #[command(flatten)]
        passphrase: Passphrase,
    },
    /// Print the address of a key file.
    #[command(after_help = "Example:\n  walras wallet address --key alice.json")]
    Address {
        /// The key file.
        #[arg(long)]
        key: PathBuf,
    },
    /// Show an account's balances and offers.
    #[command(
        visible_alias = "balances",
        after_help = "Examples:\n  walras wallet show --key alice.json\n  walras wallet show 0x53e0…"
    )]
    Show {
        /// The account; else the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Follow an account: outcomes, fills and balances as they come.
    #[command(after_help = "Example:\n  walras wallet watch --key alice.json")]
    Watch {
        /// The account; else the key's.
        address: Option<Address>,
        /// The key file.
        #[arg(long, required_unless_present = "address")]
        key: Option<PathBuf>,
        #[command(flatten)]
        server: Server,
    },
    /// Pay an account.
    #[command(after_help = "Example:\n  walras wallet pay --key alice.json --to 0x53e0… --asset EUR --amount 12.50")]
    Pay {
        /// Receiving account.
        #[arg(long)]
        to: Address,
        #[command(flatten)]
        quantity: Quantity,
        #[command(flatten)]
        sender: Sender,
    },
    /// Offer an asset for another; it meets the batch of the next block.
    #[command(
        after_help = "Example, sell 100 EUR for at least 1.10 USD each:\n  walras wallet offer --key alice.json --sell EUR --buy USD --amount 100 --limit 1.10"
    )]
    Offer {
        /// Asset to sell.
        #[arg(long)]
        sell: String,
        /// Asset to receive.
        #[arg(long)]
        buy: String,
        /// Amount to sell at most, in whole assets.
        #[arg(long)]
        amount: String,
        /// Least price: whole assets bought per whole asset sold, net of commission.
        #[arg(long)]
        limit: Price,
        #[command(flatten)]
        sender: Sender,
    },
    /// Take a resting offer back.
    #[command(after_help = "Example:\n  walras wallet cancel --key alice.json --offer 7")]
    Cancel {
        /// The offer's id, as `wallet show` lists it.
        #[arg(long)]
        offer: Sequence,
        #[command(flatten)]
        sender: Sender,
    },
    /// Register an account, or rotate the own key.
    #[command(
        after_help = "Examples:\n  walras wallet create-account --key alice.json --new-key 0x8a88…\n  walras wallet create-account --key alice.json --new-key 0x8a88… --rotate"
    )]
    CreateAccount {
        /// Public key of the new account, or the own account's next key.
        #[arg(long)]
        new_key: PublicKey,
        /// Put the own account under the new key instead of making an account.
        #[arg(long)]
        rotate: bool,
        #[command(flatten)]
        sender: Sender,
    },
    /// Issue units of an own asset.
    #[command(
        after_help = "Example:\n  walras wallet issue --key issuer.json --to 0x53e0… --asset EUR --amount 1000000"
    )]
    Issue {
        /// Receiving account.
        #[arg(long)]
        to: Address,
        #[command(flatten)]
        quantity: Quantity,
        #[command(flatten)]
        sender: Sender,
    },
    /// Burn units of an own asset.
    #[command(after_help = "Example:\n  walras wallet burn --key issuer.json --asset EUR --amount 1000")]
    Burn {
        #[command(flatten)]
        quantity: Quantity,
        #[command(flatten)]
        sender: Sender,
    },
    /// Become a validator, add to the own stake, or change the validator's key or address.
    #[command(after_help = "Examples:
  walras wallet stake --key alice.json --amount 1000 --validator-key home/validator-key.json --address a.example:9100
  walras wallet stake --key alice.json --validator-key new-home/validator-key.json    # the next draw has this key")]
    Stake {
        /// What to add to the stake, in whole units of the first asset.
        #[arg(long, default_value = "0")]
        amount: String,
        /// Key file of the validator; else the account's own key validates.
        #[arg(long, value_name = "FILE")]
        validator_key: Option<PathBuf>,
        /// File with the passphrase of the validator's key, if it has another one.
        #[arg(long, value_name = "FILE", requires = "validator_key")]
        validator_passphrase_file: Option<PathBuf>,
        /// Where other validators reach it (UDP); else where they do now.
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
        #[command(flatten)]
        sender: Sender,
    },
    /// Take from the own stake. It is paid back when it can no longer be punished.
    #[command(after_help = "Example:\n  walras wallet unstake --key alice.json --amount 1000")]
    Unstake {
        /// What to take, in whole units of the first asset.
        #[arg(long)]
        amount: String,
        #[command(flatten)]
        sender: Sender,
    },
    /// Show that a validator contradicted itself: it loses a part of its stake and is never drawn again.
    #[command(after_help = "Example:\n  walras wallet accuse --key alice.json --evidence 0x0300…")]
    Accuse {
        /// The evidence, in hexadecimal, as a validator logs it.
        #[arg(long, value_name = "HEX")]
        evidence: String,
        #[command(flatten)]
        sender: Sender,
    },
}

/// How much of what.
#[derive(clap::Args, Clone)]
pub struct Quantity {
    /// The asset.
    #[arg(long)]
    asset: String,
    /// Amount, in whole assets.
    #[arg(long)]
    amount: String,
}

impl Quantity {
    fn units(&self, assets: &[Listed]) -> anyhow::Result<(AssetId, Amount)> {
        let listed = find(assets, &self.asset)?;
        Ok((listed.asset, to_units(&self.amount, listed.decimals)?))
    }
}

/// The node to talk to.
#[derive(clap::Args, Clone)]
pub struct Server {
    /// Address of a node.
    #[arg(long, env = "WALRAS_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
}

/// Who sends, and how.
#[derive(clap::Args, Clone)]
pub struct Sender {
    /// The key file.
    #[arg(long)]
    key: PathBuf,
    /// The account, if it is not the one that the key was made for.
    #[arg(long)]
    account: Option<Address>,
    /// Sequence number, if not the next free one.
    #[arg(long)]
    sequence: Option<Sequence>,
    /// Answer once the transaction waits, without waiting for its block.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    passphrase: Passphrase,
    #[command(flatten)]
    server: Server,
}

/// An asset as the node lists it.
struct Listed {
    asset: AssetId,
    symbol: String,
    decimals: u8,
    least_units: Amount,
}

impl Server {
    fn agent() -> ureq::Agent {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(60)));
        config.build().into()
    }

    /// The JSON at a path, or the node's error as ours.
    fn get(&self, path: &str) -> anyhow::Result<Value> {
        let response = Self::agent().get(format!("{}{path}", self.server)).call();
        self.json(response)
    }

    fn post(&self, path: &str, body: &[u8]) -> anyhow::Result<Value> {
        let request = Self::agent().post(format!("{}{path}", self.server)).content_type("application/octet-stream");
        self.json(request.send(body))
    }

    fn json(&self, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> anyhow::Result<Value> {
        let unreachable = || format!("no node answers at {}; give another --server", self.server);
        let mut response = response.with_context(unreachable)?;
        let value: Value = response.body_mut().read_json().context("the node's answer is not JSON")?;
        match &value["error"] {
            Value::Null => Ok(value),
            error => bail!("{}: {}", text(&error["code"]), text(&error["message"])),
        }
    }

    /// Waits while the node lags behind the others, or has just started: what it says of an account's sequence numbers
    /// may be out of date, and a transaction that repeats one that is done would seem to be committed.
    fn wait_until_caught_up(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let unreachable = || format!("no node answers at {}; give another --server", self.server);
            let mut response = Self::agent().get(format!("{}/readyz", self.server)).call().with_context(unreachable)?;
            if response.status().is_success() {
                return Ok(());
            }
            let value: Value = response.body_mut().read_json().unwrap_or_default();
            if begun.elapsed() > PATIENCE {
                bail!(
                    "the node has not caught up ({}), and may name a sequence number that is used; try again later, give \
                     another --server, or the number with --sequence",
                    text(&value["error"]["message"])
                );
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn chain(&self) -> anyhow::Result<u64> {
        self.get("/v1/limits")?["chain"].as_u64().context("the node names no chain")
    }

    fn assets(&self) -> anyhow::Result<Vec<Listed>> {
        let value = self.get("/v1/assets")?;
        let entries = value["assets"].as_array().context("the node lists no assets")?;
        let listed = entries.iter().map(|entry| {
            Some(Listed {
                asset: AssetId(u32::try_from(entry["asset"].as_u64()?).ok()?),
                symbol: entry["symbol"].as_str()?.into(),
                decimals: u8::try_from(entry["decimals"].as_u64()?).ok()?,
                least_units: entry["least_units"].as_str()?.parse().ok()?,
            })
        });
        listed.collect::<Option<_>>().context("the node's list of assets cannot be read")
    }
}

impl Listed {
    /// The least size of an offer, for people.
    fn least(&self) -> String {
        format!("{} {}", from_units(self.least_units, self.decimals), self.symbol)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn find<'a>(assets: &'a [Listed], symbol: &str) -> anyhow::Result<&'a Listed> {
    let known = || assets.iter().map(|asset| asset.symbol.as_str()).collect::<Vec<_>>().join(", ");
    assets
        .iter()
        .find(|asset| asset.symbol == symbol)
        .with_context(|| format!("no asset {symbol:?}; there are {}", known()))
}

impl Sender {
    fn send(
        self,
        json: bool,
        operation: impl FnOnce(&Server, &Address, &[Listed]) -> anyhow::Result<Operation>,
    ) -> anyhow::Result<ExitCode> {
        let assets = self.server.assets()?;
        let account = match self.account {
            Some(account) => account,
            None => keystore::address(&self.key)?,
        };
        let operation = operation(&self.server, &account, &assets)?;
        let sequence = match self.sequence {
            Some(sequence) => sequence,
            None => {
                self.server.wait_until_caught_up()?;
                let state = self.server.get(&format!("/v1/accounts/{account}"))?;
                state["sequence"]["next"].as_u64().context("the node names no next sequence number")?
            }
        };
        let chain = self.server.chain()?;
        let key = keystore::open(&self.key, &self.passphrase)?;
        let transaction = Body { chain, account, sequence, operation }.sign(&key);
        self.answer(json, &transaction)
    }

    fn answer(&self, json: bool, transaction: &Transaction) -> anyhow::Result<ExitCode> {
        let path = if self.no_wait { "/v1/transactions" } else { "/v1/transactions?wait=committed" };
        let answer = self.server.post(path, &borsh::to_vec(transaction)?)?;
        let refused = answer["outcome"]["result"] == "refused";
        if json {
            println!("{answer}");
        } else {
            println!("transaction {}", text(&answer["id"]));
            println!("{}", describe(&answer));
        }
        Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn describe(answer: &Value) -> String {
    let outcome = &answer["outcome"];
    match outcome["result"].as_str() {
        None => "waits for a block".into(),
        Some("applied") => format!("committed in block {}", answer["height"]),
        Some("offered") => format!(
            "committed in block {}: sold {} units, received {}, {} rest, {} returned ({})",
            answer["height"],
            text(&outcome["sold"]),
            text(&outcome["bought"]),
            text(&outcome["left"]),
            text(&outcome["returned"]),
            text(&outcome["why"]).replace('_', " ")
        ),
        Some(_) => format!("refused in block {}: {}", answer["height"], text(&outcome["message"])),
    }
}

impl Wallet {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        match self {
            Wallet::New { key, passphrase } => {
                let public = keystore::create(&key, &passphrase)?.public();
                print_key(json, &key, &public.address(), Some(&public));
                Ok(ExitCode::SUCCESS)
            }
            Wallet::Address { key } => {
                print_key(json, &key, &keystore::address(&key)?, None);
                Ok(ExitCode::SUCCESS)
            }
            Wallet::Show { address, key, server } => show(json, account(address, key)?, &server),
            Wallet::Watch { address, key, server } => watch(json, account(address, key)?, &server),
            Wallet::Pay { to, quantity, sender } => sender.send(json, |_, _, assets| {
                let (asset, amount) = quantity.units(assets)?;
                Ok(Operation::Pay { to, asset, amount })
            }),
            Wallet::Offer { sell, buy, amount, limit, sender } => sender.send(json, |_, _, assets| {
                let (sell, buy) = (find(assets, &sell)?, find(assets, &buy)?);
                let amount = to_units(&amount, sell.decimals)?;
                let limit = to_unit_price(limit, sell.decimals, buy.decimals)?;
                ensure!(amount >= sell.least_units, "--amount: an offer sells at least {}", sell.least());
                let asks_enough = !limit.accepts(amount, buy.least_units.saturating_sub(1));
                ensure!(asks_enough, "an offer asks at least {}: raise --amount or --limit", buy.least());
                Ok(Operation::CreateOffer { sell: sell.asset, buy: buy.asset, amount, limit })
            }),
            Wallet::Cancel { offer, sender } => sender.send(json, |server, account, assets| {
                let listed = server.get(&format!("/v1/accounts/{account}/offers?limit=1000"))?;
                let resting = listed["offers"].as_array().into_iter().flatten();
                let found = resting.into_iter().find(|resting| resting["id"] == offer);
                let found = found.with_context(|| format!("no offer {offer} of this account rests"))?;
                let (sell, buy) = (find(assets, text(&found["sell"]))?.asset, find(assets, text(&found["buy"]))?.asset);
                Ok(Operation::CancelOffer { sell, buy, limit: text(&found["limit"]).parse()?, offer })
            }),
            Wallet::CreateAccount { new_key, rotate, sender } => sender.send(json, |_, own, _| {
                let account = if rotate { *own } else { new_key.address() };
                Ok(Operation::CreateAccount { account, key: new_key })
            }),
            Wallet::Issue { to, quantity, sender } => sender.send(json, |_, _, assets| {
                let (asset, amount) = quantity.units(assets)?;
                Ok(Operation::Issue { to, asset, amount })
            }),
            Wallet::Burn { quantity, sender } => sender.send(json, |_, _, assets| {
                let (asset, amount) = quantity.units(assets)?;
                Ok(Operation::Burn { asset, amount })
            }),
            Wallet::Stake { amount, validator_key, validator_passphrase_file, address, sender } => {
                let (key, passphrase) = match (validator_key, validator_passphrase_file) {
                    (Some(key), Some(file)) => (key, Passphrase::of_file(file)),
                    (Some(key), None) => (key, sender.passphrase.clone()),
                    (None, _) => (sender.key.clone(), sender.passphrase.clone()),
                };
                sender.send(json, |server, account, assets| {
                    let units = staked_units(&amount, assets)?;
                    let address = address.map_or_else(|| network_address(server, account), Ok)?;
                    let chain = server.chain()?;
                    let validator = keystore::open(&key, &passphrase)?;
                    Ok(Operation::Stake(Box::new(Stake::new(units, address, chain, account, &validator))))
                })
            }
            Wallet::Unstake { amount, sender } => {
                sender.send(json, |_, _, assets| Ok(Operation::Unstake { units: staked_units(&amount, assets)? }))
            }
            Wallet::Accuse { evidence, sender } => sender.send(json, |_, _, _| {
                let bytes = hex_bytes(&evidence).context("--evidence: not a hexadecimal number of bytes")?;
                let evidence: Evidence = borsh::from_slice(&bytes).context("--evidence: these bytes are none")?;
                Ok(Operation::Accuse(Box::new(evidence)))
            }),
        }
    }
}

/// Units of the first asset.
fn staked_units(amount: &str, assets: &[Listed]) -> anyhow::Result<Amount> {
    let staked = assets.iter().find(|listed| listed.asset == AssetId(0)).context("the node lists no first asset")?;
    to_units(amount, staked.decimals)
}

/// Where an account's validator is reached now.
fn network_address(server: &Server, account: &Address) -> anyhow::Result<String> {
    let body = server.get("/v1/validators")?;
    let mut validators = body["validators"].as_array().into_iter().flatten();
    let own = validators.find(|one| one["account"] == account.to_string());
    let address = own.map(|own| text(&own["address"])).filter(|address| !address.is_empty());
    address.map(Into::into).context("the registry has no address of this account's validator: give --address HOST:PORT")
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    if digits.len().is_multiple_of(2) { (0..digits.len()).step_by(2).map(pair).collect() } else { None }
}

fn print_key(json: bool, path: &Path, address: &Address, public: Option<&PublicKey>) {
    if json {
        let public = public.map(ToString::to_string);
        println!("{}", serde_json::json!({"key": path, "address": address.to_string(), "public_key": public}));
        return;
    }
    match public {
        // The address alone, for other commands to take.
        None => println!("{address}"),
        Some(public) => {
            println!("Address     {address}");
            println!("Public key  {public}");
            println!("Key file    {}", path.display());
        }
    }
}

fn account(address: Option<Address>, key: Option<PathBuf>) -> anyhow::Result<Address> {
    match (address, key) {
        (Some(address), _) => Ok(address),
        (None, Some(key)) => keystore::address(&key),
        (None, None) => bail!("give an address or --key"),
    }
}

fn show(json: bool, address: Address, server: &Server) -> anyhow::Result<ExitCode> {
    let account = server.get(&format!("/v1/accounts/{address}"))?;
    let offers = server.get(&format!("/v1/accounts/{address}/offers?limit=1000"))?;
    if json {
        println!("{}", serde_json::json!({"account": account, "offers": offers["offers"]}));
        return Ok(ExitCode::SUCCESS);
    }
    let assets = server.assets()?;
    let whole = |symbol: &str, units: &Value| {
        let units = text(units).parse().unwrap_or(0);
        find(&assets, symbol).map_or(units.to_string(), |asset| from_units(units, asset.decimals))
    };
    println!("{address} at height {}", account["height"]);
    for balance in account["balances"].as_array().into_iter().flatten() {
        let symbol = text(&balance["asset"]);
        let (available, locked) = (whole(symbol, &balance["available"]), whole(symbol, &balance["locked"]));
        println!("  {symbol:<12} {available:>24}  (+ {locked} in offers)");
    }
    for offer in offers["offers"].as_array().into_iter().flatten() {
        let (sell, buy) = (text(&offer["sell"]), text(&offer["buy"]));
        println!(
            "  offer {:<6} sells {} {sell} for {buy}, limit {} (in units)",
            offer["id"],
            whole(sell, &offer["amount"]),
            text(&offer["limit"])
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(json: bool, address: Address, server: &Server) -> anyhow::Result<ExitCode> {
    let url = format!("{}/v1/stream", server.server.replacen("http", "ws", 1));
    let (mut socket, _) =
        tungstenite::connect(&url).with_context(|| format!("no node answers at {}", server.server))?;
    let request = serde_json::json!({"subscribe": [format!("account:{address}")]});
    socket.send(tungstenite::Message::text(request.to_string()))?;
    loop {
        let message = match socket.read()? {
            tungstenite::Message::Text(text) => text,
            tungstenite::Message::Close(frame) => {
                bail!(
                    "the node closed the stream: {}",
                    frame.map_or("no reason given".into(), |f| f.reason.to_string())
                )
            }
            _ => continue,
        };
        let event: Value = serde_json::from_str(&message).context("the node's message is not JSON")?;
        match event["type"].as_str() {
            Some("heartbeat") => {}
            _ if json => println!("{event}"),
            Some("error") => bail!("{}", text(&event["message"])),
            Some("snapshot") => println!("{address} holds {}", held(&event["account"]["balances"])),
            _ => println!("block {}: {}; holds {}", event["height"], happened(&event), held(&event["balances"])),
        }
    }
}

fn held(balances: &Value) -> String {
    let balance = |balance: &Value| format!("{} {}", text(&balance["available"]), text(&balance["asset"]));
    let all: Vec<String> = balances.as_array().into_iter().flatten().map(balance).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

fn happened(event: &Value) -> String {
    let outcomes = event["outcomes"].as_array().map_or(0, Vec::len);
    let fill = |fill: &Value| {
        let (sold, sell, bought, buy) = (&fill["sold"], &fill["sell"], &fill["bought"], &fill["buy"]);
        format!("sold {} {} for {} {}", text(sold), text(sell), text(bought), text(buy))
    };
    let fills = event["fills"].as_array().into_iter().flatten().map(fill);
    [format!("{outcomes} own transactions")].into_iter().chain(fills).collect::<Vec<_>>().join(", ")
}
