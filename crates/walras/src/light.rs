//! `walras light`: what a quorum of validators has signed, checked with nothing but the genesis file.
//!
//! Certificates are signed by the committee of their epoch. From the founders, whom the genesis names, the client walks
//! over the handovers (`node::handover`) to the epoch of the certificate that it checks, and believes nothing on the
//! way that the committee before has not signed. With `--trust` it writes down how far it has come, and begins there
//! the next time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use borsh::BorshDeserialize;
use consensus::{Certificate, Chain};
use ledger::{AccountProof, Genesis, ReceiptProof, outcome_root};
use node::{Handover, Lineage};
use primitives::{Address, Digest, PublicKey, TransactionId};
use serde_json::{Value, json};

use crate::decimal::from_units;

/// How long a certificate is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Checks an account or a receipt of a node that is not trusted, against certificates and the genesis file alone.
#[derive(clap::Subcommand)]
pub enum Light {
    /// Prove what an account holds.
    #[command(after_help = "Example:
  walras light account --genesis genesis.json --server http://127.0.0.1:8080 0x1111111111111111111111111111111111111111")]
    Account {
        #[command(flatten)]
        source: Source,
        /// The account.
        address: Address,
    },
    /// Prove what became of a transaction.
    #[command(after_help = "Example:
  walras light transaction --genesis genesis.json --server http://127.0.0.1:8080 0x6e0b…")]
    Transaction {
        #[command(flatten)]
        source: Source,
        /// Its id.
        id: TransactionId,
    },
}

/// Whom to ask, and whom to believe.
#[derive(clap::Args)]
pub struct Source {
    /// The genesis file, from somebody you trust.
    #[arg(long, value_name = "FILE")]
    genesis: PathBuf,
    /// Any node of the network.
    #[arg(long, env = "WALRAS_SERVER", default_value = "http://127.0.0.1:8080")]
    server: String,
    /// A file in which the last proved committee is remembered; the next run begins there instead of at the genesis.
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// A client that holds the genesis.
struct Client {
    server: String,
    genesis: Genesis,
    /// The committees that are trusted, from the first to the last of consecutive epochs.
    chains: Vec<Chain>,
    /// How far the walk has come.
    lineage: Lineage,
    /// The last epoch of which a certificate was asked for.
    shown: u64,
    trust: Option<PathBuf>,
}

/// What a certificate says of a block.
struct Certified {
    state: Digest,
    receipts: Digest,
    signers: usize,
    /// Of the committee.
    validators: usize,
    epoch: u64,
}

impl Light {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let (Light::Account { source, .. } | Light::Transaction { source, .. }) = &self;
        let mut client = Client::new(source)?;
        let proved = match &self {
            Light::Account { address, .. } => client.account(address)?,
            Light::Transaction { id, .. } => client.transaction(id)?,
        };
        client.remember()?;
        if json {
            println!("{proved}");
        } else {
            println!("{}", in_words(&proved, &client.genesis));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Client {
    fn new(source: &Source) -> anyhow::Result<Client> {
        let (genesis, founding) = node::genesis_file::read_with_founding(&source.genesis)?;
        let founding = founding.with_context(|| {
            format!("{}: names no validators, so nobody signs blocks of this chain", source.genesis.display())
        })?;
        let mut lineage = founding.lineage(&genesis);
        let trust = source.trust.clone();
        if let Some(path) = trust.as_ref().filter(|path| path.exists()) {
            recall(path, &mut lineage)?;
        }
        let (server, chains, shown) = (source.server.clone(), vec![lineage.chain.clone()], lineage.chain.epoch);
        Ok(Client { server, genesis, chains, lineage, shown, trust })
    }

    /// Writes down how far it has come: to the epoch of the newest certificate. The walk may have come further, but
    /// then the next certificate could be of an epoch before the one that is trusted.
    fn remember(&self) -> anyhow::Result<()> {
        let Some(path) = &self.trust else { return Ok(()) };
        let shown = self.chains.iter().find(|chain| chain.epoch == self.shown);
        let Chain { genesis, epoch, keys, .. } = shown.expect("the walk has come there");
        let keys: Vec<String> = keys.iter().map(PublicKey::to_string).collect();
        let text = json!({ "network": genesis.to_string(), "epoch": epoch, "keys": keys }).to_string() + "\n";
        std::fs::write(path, text).with_context(|| path.display().to_string())
    }

    /// The committee of an epoch, proved by handovers from the last that is trusted.
    fn committee(&mut self, epoch: u64) -> anyhow::Result<&Chain> {
        while self.lineage.chain.epoch < epoch {
            let from = self.lineage.chain.epoch + 1;
            let body = self.get(&format!("/v1/handovers?from={from}"))?;
            let page = body["handovers"].as_array().map(Vec::as_slice).unwrap_or_default();
            ensure!(
                !page.is_empty(),
                "the node shows no handover to epoch {from}, which it takes to prove the committee of epoch {epoch}: give \
                 another --server"
            );
            for entry in page {
                let handover: Handover = decode(&entry["handover"])?;
                self.lineage.follow(&handover).context("give another --server: this node's answer proves nothing")?;
                self.chains.push(self.lineage.chain.clone());
            }
        }
        let first = self.chains[0].epoch;
        let known = epoch.checked_sub(first).and_then(|at| self.chains.get(usize::try_from(at).ok()?));
        self.shown = self.shown.max(known.map_or(0, |chain| chain.epoch));
        known.with_context(|| {
            format!(
                "the certificate is of epoch {epoch}, before epoch {first}, at which --trust begins: leave --trust out"
            )
        })
    }

    /// Waits until a block with the proof's state is certified.
    fn account(&mut self, address: &Address) -> anyhow::Result<Value> {
        let body = self.get(&format!("/v1/accounts/{address}/proof"))?;
        let height = body["height"].as_u64().context("the answer has no height")?;
        let proof: AccountProof = decode(&body["proof"])?;
        let root = proof.parts.root();
        let begun = Instant::now();
        // Where each block changes the state, this proof is good for one certificate, which is still to come.
        loop {
            // The last blocks may be empty ones that changed nothing.
            for height in (height.saturating_sub(2 * self.lineage.lag)..=height).rev() {
                let Some(certified) = self.certified(height)? else { continue };
                if certified.state == root {
                    return self.proved(address, &proof, height, &certified);
                }
            }
            ensure!(begun.elapsed() < PATIENCE, "no certificate of the state at height {height} appears");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn proved(
        &self,
        address: &Address,
        proof: &AccountProof,
        height: u64,
        certified: &Certified,
    ) -> anyhow::Result<Value> {
        let account = proof.verify(&certified.state, address).context("the proof does not hold")?;
        let symbol = |asset: primitives::AssetId| self.genesis.assets[asset.0 as usize].symbol.clone();
        let balances = account.map(|account| {
            let amounts = account.balances.iter().map(|(asset, amount)| (symbol(*asset), json!(amount.to_string())));
            amounts.collect::<serde_json::Map<_, _>>()
        });
        Ok(json!({
            "account": address.to_string(),
            "exists": account.is_some(),
            "spendable": balances,
            "height": height,
            "state_root": certified.state.to_string(),
            "signed_by": certified.signers,
            "validators": certified.validators,
            "epoch": certified.epoch,
        }))
    }

    fn transaction(&mut self, id: &TransactionId) -> anyhow::Result<Value> {
        let body = self.get(&format!("/v1/transactions/{id}?proof=true"))?;
        let height = body["height"].as_u64().context("the transaction is in no block yet")?;
        let proof: ReceiptProof = decode(&body["proof"])?;
        let begun = Instant::now();
        let certified = loop {
            if let Some(certified) = self.certified(height)? {
                break certified;
            }
            ensure!(begun.elapsed() < PATIENCE, "no certificate of block {height} appears");
            std::thread::sleep(Duration::from_millis(200));
        };
        let outcome = proof.verify(&certified.receipts, id).context("the proof does not hold")?;
        Ok(json!({
            "transaction": id.to_string(),
            "height": height,
            "outcome": outcome.map(|outcome| match outcome.refusal() {
                None => "committed".to_string(),
                Some(refusal) => refusal.code().to_string(),
            }),
            "receipts_root": certified.receipts.to_string(),
            "signed_by": certified.signers,
            "validators": certified.validators,
            "epoch": certified.epoch,
        }))
    }

    /// The certificate of a block's outcome, checked; `None` if there is none yet.
    fn certified(&mut self, height: u64) -> anyhow::Result<Option<Certified>> {
        let Ok(body) = self.get(&format!("/v1/blocks/{height}/certificate")) else { return Ok(None) };
        let certificate: Certificate = decode(&body["certificate"])?;
        let lag = self.lineage.lag;
        let epoch = self.lineage.schedule.epoch_of(height.saturating_add(lag));
        let server = self.server.clone();
        let chain = self.committee(epoch)?;
        certificate.verify(chain).with_context(|| {
            format!(
                "the certificate of block {height} does not hold under the validators that the genesis leads to. \
                 Either the genesis file is of another network than the node at {server}: get the file from somebody \
                 who runs a validator of it; or the node lies: give another --server. Believe nothing of its answers until then"
            )
        })?;
        let validators = chain.keys.len();
        let root = |field: &str| -> anyhow::Result<Digest> {
            let text = body[field].as_str().with_context(|| format!("the answer has no {field}"))?;
            text.parse().with_context(|| field.to_string())
        };
        let (state, receipts) = (root("state_root")?, root("receipts_root")?);
        let statement = certificate.statement;
        ensure!(statement.height == height + lag, "the certificate is of another block");
        ensure!(statement.root == outcome_root(&state, &receipts), "the roots are not those that were signed");
        let signers = certificate.signatures.len();
        Ok(Some(Certified { state, receipts, signers, validators, epoch }))
    }

    fn get(&self, path: &str) -> anyhow::Result<Value> {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(60)));
        let agent: ureq::Agent = config.build().into();
        let response = agent.get(format!("{}{path}", self.server)).call();
        let mut response =
            response.with_context(|| format!("no node answers at {}; give another --server", self.server))?;
        let value: Value = response.body_mut().read_json().context("the node's answer is not JSON")?;
        match &value["error"] {
            Value::Null => Ok(value),
            error => bail!("{}", error["message"].as_str().unwrap_or("the node refuses")),
        }
    }
}

/// What was proved, for people: amounts in decimals.
fn in_words(proved: &Value, genesis: &Genesis) -> String {
    let text = |name: &str| proved[name].as_str().unwrap_or("?");
    let amount = |(symbol, units): (&String, &Value)| {
        let decimals = genesis.assets.iter().find(|asset| asset.symbol == *symbol).map_or(0, |asset| asset.decimals);
        let units = units.as_str().and_then(|units| units.parse().ok()).unwrap_or(0);
        format!("{} {symbol}", from_units(units, decimals))
    };
    let height = &proved["height"];
    let fact = match (&proved["account"], proved["exists"] == true, proved["spendable"].as_object()) {
        (Value::Null, ..) => match proved["outcome"].as_str() {
            Some("committed") => format!("{} is committed in block {height}", text("transaction")),
            Some(code) => format!("{} is refused in block {height}: {code}", text("transaction")),
            None => format!("{} is not in block {height}", text("transaction")),
        },
        (_, false, _) => format!("{} does not exist at height {height}", text("account")),
        (_, true, spendable) => {
            let amounts: Vec<String> = spendable.into_iter().flatten().map(amount).collect();
            let held = if amounts.is_empty() { "nothing".into() } else { amounts.join(", ") };
            format!("{} can spend {held} at height {height}", text("account"))
        }
    };
    let (signed, validators, epoch) = (&proved["signed_by"], &proved["validators"], &proved["epoch"]);
    format!("{fact}\nSigned by {signed} of the {validators} validators of epoch {epoch}.")
}

/// Goes on from a committee that was proved before.
fn recall(path: &Path, lineage: &mut Lineage) -> anyhow::Result<()> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| name.to_string())?;
    let remembered: Value = serde_json::from_str(&text).with_context(|| name.to_string())?;
    let network = lineage.chain.genesis;
    ensure!(
        remembered["network"] == network.to_string(),
        "{name}: is of another network than the genesis: give another --trust"
    );
    let epoch = remembered["epoch"].as_u64().with_context(|| format!("{name}: names no epoch"))?;
    let keys = remembered["keys"].as_array().with_context(|| format!("{name}: names no keys"))?;
    let keys: Option<Vec<PublicKey>> = keys.iter().map(|key| key.as_str()?.parse().ok()).collect();
    let keys = keys.filter(|keys| (1..=consensus::committee::MEMBERS_MAX).contains(&keys.len()));
    let keys = keys.with_context(|| format!("{name}: keys that are none"))?;
    let heights = lineage.schedule.first_height(epoch)..=lineage.schedule.last_height(epoch);
    lineage.chain = Chain { genesis: network, epoch, heights, keys };
    Ok(())
}

/// What a node encoded in hexadecimal.
fn decode<T: BorshDeserialize>(value: &Value) -> anyhow::Result<T> {
    let text = value.as_str().context("the answer has no proof")?;
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let nibble = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?)).collect();
    borsh::from_slice(&bytes.context("a proof that is not hexadecimal")?).context("a proof that cannot be read")
}

#[cfg(test)]
mod tests {
    use ledger::Listing;

    use super::*;

    #[test]
    fn people_read_decimals() {
        let issuer = Address([9; 20]);
        let assets = vec![Listing::new("USD", 2, issuer), Listing::new("BTC", 8, issuer)];
        let genesis = Genesis { assets, ..Genesis::default() };
        let signed = json!({"height": 7, "signed_by": 3, "validators": 4, "epoch": 1});
        let said = |more: Value| {
            let mut proved = signed.clone();
            proved.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            in_words(&proved, &genesis)
        };
        let rich = said(json!({"account": "0x11", "exists": true, "spendable": {"BTC": "150000000", "USD": "5"}}));
        assert!(rich.starts_with("0x11 can spend 1.5 BTC, 0.05 USD at height 7\n"), "{rich}");
        assert!(rich.ends_with("Signed by 3 of the 4 validators of epoch 1."), "{rich}");
        let absent = said(json!({"account": "0x11", "exists": false, "spendable": null}));
        assert!(absent.starts_with("0x11 does not exist at height 7"), "{absent}");
        let refused = said(json!({"transaction": "0x22", "outcome": "overdraft"}));
        assert!(refused.starts_with("0x22 is refused in block 7: overdraft"), "{refused}");
    }
}
