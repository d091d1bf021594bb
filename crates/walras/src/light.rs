//! `walras light`: what a quorum of validators has signed, checked with nothing but the genesis file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use borsh::BorshDeserialize;
use consensus::{Certificate, Chain};
use ledger::{AccountProof, Genesis, ReceiptProof, outcome_root};
use primitives::{Address, Digest, TransactionId};
use serde_json::{Value, json};

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
}

/// A client that holds the genesis.
struct Client {
    server: String,
    genesis: Genesis,
    chain: Chain,
    lag: u64,
}

/// What a certificate says of a block.
struct Certified {
    state: Digest,
    receipts: Digest,
    signers: usize,
}

impl Light {
    pub fn run(self, json: bool) -> anyhow::Result<ExitCode> {
        let proved = match self {
            Light::Account { source, address } => Client::new(source)?.account(&address)?,
            Light::Transaction { source, id } => Client::new(source)?.transaction(&id)?,
        };
        if json {
            println!("{proved}");
        } else {
            println!("{}", serde_json::to_string_pretty(&proved)?);
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Client {
    fn new(source: Source) -> anyhow::Result<Client> {
        let (genesis, founding) = node::genesis_file::read_with_founding(&source.genesis)?;
        let founding = founding.with_context(|| {
            format!("{}: names no validators, so nobody signs blocks of this chain", source.genesis.display())
        })?;
        let chain = founding.chain(&genesis);
        Ok(Client { server: source.server, genesis, chain, lag: founding.rules.lag })
    }

    /// Tries the newest blocks until one with the proof's state is certified.
    fn account(&self, address: &Address) -> anyhow::Result<Value> {
        let begun = Instant::now();
        loop {
            let body = self.get(&format!("/v1/accounts/{address}/proof"))?;
            let height = body["height"].as_u64().context("the answer has no height")?;
            let proof: AccountProof = decode(&body["proof"])?;
            let root = proof.parts.root();
            // The last blocks may be empty ones that changed nothing.
            for height in (height.saturating_sub(2 * self.lag)..=height).rev() {
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
        let symbol = |asset: primitives::AssetId| self.genesis.assets[asset.0 as usize].0.clone();
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
            "validators": self.chain.keys.len(),
        }))
    }

    fn transaction(&self, id: &TransactionId) -> anyhow::Result<Value> {
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
            "validators": self.chain.keys.len(),
        }))
    }

    /// The certificate of a block's outcome, checked; `None` if there is none yet.
    fn certified(&self, height: u64) -> anyhow::Result<Option<Certified>> {
        let Ok(body) = self.get(&format!("/v1/blocks/{height}/certificate")) else { return Ok(None) };
        let certificate: Certificate = decode(&body["certificate"])?;
        let of_founders = self.chain.heights.contains(&height);
        ensure!(of_founders, "block {height} is of a later committee, and this client knows the founders' alone");
        certificate.verify(&self.chain).context("the certificate does not hold")?;
        let root = |field: &str| -> anyhow::Result<Digest> {
            let text = body[field].as_str().with_context(|| format!("the answer has no {field}"))?;
            text.parse().with_context(|| field.to_string())
        };
        let (state, receipts) = (root("state_root")?, root("receipts_root")?);
        let statement = certificate.statement;
        ensure!(statement.height == height + self.lag, "the certificate is of another block");
        ensure!(statement.root == outcome_root(&state, &receipts), "the roots are not those that were signed");
        Ok(Some(Certified { state, receipts, signers: certificate.signatures.len() }))
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

/// What a node encoded in hexadecimal.
fn decode<T: BorshDeserialize>(value: &Value) -> anyhow::Result<T> {
    let text = value.as_str().context("the answer has no proof")?;
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let nibble = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?)).collect();
    borsh::from_slice(&bytes.context("a proof that is not hexadecimal")?).context("a proof that cannot be read")
}
