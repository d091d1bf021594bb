//! Ethereum's state tests as published: JSON files with tests, each with cases by fork.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use ledger::contracts::ethereum::{Address, B256, Bytes, U256, hex, keccak256};
use ledger::contracts::{AccountInfo, BlockEnv, CfgEnv, EthereumTransaction, EvmContext, SpecId, TxEnv, evm_code};
use serde::Deserialize;

/// An account of a state.
#[derive(Clone, Debug)]
pub struct FixtureAccount {
    pub info: AccountInfo,
    pub storage: BTreeMap<U256, U256>,
}

/// A state by address.
pub type FixtureState = BTreeMap<Address, FixtureAccount>;

/// One case: a transaction, the state before it, and the expected result.
#[derive(Clone, Debug)]
pub struct Case {
    /// File, test, fork and number of the case.
    pub name: String,
    pub pre: Arc<FixtureState>,
    pub context: Arc<EvmContext>,
    /// The transaction; `None` if its bytes do not decode, as the case then expects.
    pub transaction: Option<Arc<TxEnv>>,
    /// Whether the transaction must be refused.
    pub is_refused: bool,
    /// The state root after it.
    pub root: B256,
    /// The hash of the list of its logs.
    pub logs: B256,
}

/// Contents of a file.
#[derive(Default)]
pub struct FixtureFile {
    pub cases: Vec<Case>,
    /// Cases that are skipped, each with the reason.
    pub unsupported: Vec<(String, String)>,
}

/// A value that is written as a string.
struct Written<T>(T);

impl<'de, T: FromStr<Err: std::fmt::Display>> Deserialize<'de> for Written<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Written<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Written).map_err(|error| serde::de::Error::custom(format!("{text:?}: {error}")))
    }
}

#[derive(Deserialize)]
struct Test {
    #[serde(default, rename = "_info")]
    info: Info,
    env: Env,
    pre: BTreeMap<String, PreAccount>,
    transaction: Signer,
    post: BTreeMap<String, Vec<Post>>,
    #[serde(default)]
    config: Config,
}

#[derive(Default, Deserialize)]
struct Info {
    #[serde(default, rename = "filling-tool-version")]
    tool: String,
}

#[derive(Default, Deserialize)]
struct Config {
    chainid: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Env {
    current_coinbase: Written<Address>,
    current_gas_limit: String,
    current_number: String,
    current_timestamp: String,
    current_difficulty: Option<String>,
    current_base_fee: Option<String>,
    current_random: Option<String>,
    current_excess_blob_gas: Option<String>,
}

#[derive(Deserialize)]
struct PreAccount {
    balance: String,
    nonce: String,
    code: Written<Bytes>,
    storage: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Signer {
    sender: Option<Written<Address>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Post {
    hash: Written<B256>,
    logs: Written<B256>,
    txbytes: Option<Written<Bytes>>,
    expect_exception: Option<String>,
    indexes: Indexes,
}

#[derive(Deserialize)]
struct Indexes {
    data: usize,
    gas: usize,
    value: usize,
}

/// The test files under a folder, in order.
///
/// # Errors
/// If something cannot be read; the error names it.
pub fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        if folder.is_file() {
            found.push(folder);
            continue;
        }
        for entry in std::fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let path = entry.with_context(|| format!("{}", folder.display()))?.path();
            if path.is_dir() || path.extension().is_some_and(|extension| extension == "json") {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the cases of a file.
///
/// # Errors
/// If the file is invalid; the error names the file and the problem.
pub fn read(path: &Path) -> Result<FixtureFile> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let tests: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(&text).with_context(|| format!("{}: not a test file", path.display()))?;
    let mut file = FixtureFile::default();
    let short = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    for (name, test) in tests {
        let name = if name == short { name } else { format!("{short}/{name}") };
        match test.get("post") {
            None => file.unsupported.push((name, "not a state test".into())),
            Some(_) => {
                let test: Test = serde_json::from_value(test).with_context(|| format!("{}: {name}", path.display()))?;
                add(&mut file, &name, test).with_context(|| format!("{}: {name}", path.display()))?;
            }
        }
    }
    Ok(file)
}

fn add(file: &mut FixtureFile, name: &str, test: Test) -> Result<()> {
    let pre: Result<FixtureState> =
        test.pre.iter().map(|(address, account)| Ok((address.parse()?, account.to_account()?))).collect();
    let pre = Arc::new(pre?);
    for (fork, posts) in &test.post {
        let rules = rules(fork);
        let context = rules.as_ref().map(|rules| test.env.context(rules, &test.config)).transpose()?;
        for post in posts {
            let Indexes { data, gas, value } = post.indexes;
            let name = format!("{name} {fork} [{data} {gas} {value}]");
            match (&context, &post.txbytes) {
                (None, _) => file.unsupported.push((name, format!("rules of {fork}: the chain begins with Cancun"))),
                (Some(_), _) if is_draft(fork, &test.info) => {
                    file.unsupported.push((name, format!("a draft of {fork}, made before the fork was final")));
                }
                (_, None) => file.unsupported.push((name, "the test has no signed transaction".into())),
                (Some(context), Some(bytes)) => {
                    let sender = test.transaction.sender.as_ref().map(|sender| sender.0);
                    file.cases.push(case(name, &pre, context, &bytes.0, post, sender)?);
                }
            }
        }
    }
    Ok(())
}

/// Whether a case later than Cancun was made by retesteth, which ended with Cancun: the fork was not final then and
/// changed later.
fn is_draft(fork: &str, info: &Info) -> bool {
    fork != "Cancun" && info.tool.starts_with("retesteth")
}

fn case(
    name: String,
    pre: &Arc<FixtureState>,
    context: &Arc<EvmContext>,
    bytes: &[u8],
    post: &Post,
    sender: Option<Address>,
) -> Result<Case> {
    let is_refused = post.expect_exception.is_some();
    let signed = EthereumTransaction::decode(bytes).and_then(|decoded| Ok((decoded.recover_sender()?, decoded)));
    let transaction = match signed {
        Ok((signer, decoded)) => {
            let is_signer = sender.is_none_or(|sender| sender.0.0 == signer.0);
            ensure!(is_signer, "{name}: the transaction is signed by {signer}");
            Some(decoded.to_job(&signer))
        }
        Err(fault) => {
            ensure!(is_refused, "{name}: {fault}");
            None
        }
    };
    let (pre, context) = (pre.clone(), context.clone());
    Ok(Case { name, pre, context, transaction, is_refused, root: post.hash.0, logs: post.logs.0 })
}

/// A fork with the maximum number of blobs of a transaction, and the rate at which the price of blobs changes.
struct Rules {
    spec: SpecId,
    blobs: u64,
    blob_fraction: u64,
}

fn rules(fork: &str) -> Option<Rules> {
    match fork {
        "Cancun" => Some(Rules { spec: SpecId::CANCUN, blobs: 6, blob_fraction: 3_338_477 }),
        "Prague" => Some(Rules { spec: SpecId::PRAGUE, blobs: 9, blob_fraction: 5_007_716 }),
        "Osaka" => Some(Rules { spec: SpecId::OSAKA, blobs: 6, blob_fraction: 5_007_716 }),
        _ => None,
    }
}

impl Env {
    fn context(&self, rules: &Rules, config: &Config) -> Result<Arc<EvmContext>> {
        let chain = config.chainid.as_deref().map_or(Ok(1), small)?;
        let cfg = CfgEnv::new().with_spec_and_mainnet_gas_params(rules.spec).with_chain_id(chain);
        let cfg = cfg.with_max_blobs_per_tx(rules.blobs);
        let optional = |text: &Option<String>| text.as_deref().map_or(Ok(U256::ZERO), number);
        let difficulty = optional(&self.current_difficulty)?;
        let mut block = BlockEnv {
            number: number(&self.current_number)?,
            beneficiary: self.current_coinbase.0,
            timestamp: number(&self.current_timestamp)?,
            gas_limit: small(&self.current_gas_limit)?,
            basefee: optional(&self.current_base_fee)?.try_into().context("currentBaseFee")?,
            difficulty,
            prevrandao: Some(self.current_random.as_deref().map_or(Ok(difficulty), number)?.into()),
            ..BlockEnv::default()
        };
        let excess = optional(&self.current_excess_blob_gas)?.try_into().context("currentExcessBlobGas")?;
        block.set_blob_excess_gas_and_price(excess, rules.blob_fraction);
        Ok(Arc::new(EvmContext { block, rules: cfg }))
    }
}

impl PreAccount {
    fn to_account(&self) -> Result<FixtureAccount> {
        let storage: Result<BTreeMap<U256, U256>> =
            self.storage.iter().map(|(slot, value)| Ok((number(slot)?, number(value)?))).collect();
        let storage = storage?.into_iter().filter(|(_, value)| !value.is_zero()).collect();
        let code = evm_code(self.code.0.clone());
        let (balance, nonce) = (number(&self.balance)?, small(&self.nonce)?);
        let info =
            AccountInfo { balance, nonce, code_hash: keccak256(&self.code.0), code: Some(code), account_id: None };
        Ok(FixtureAccount { info, storage })
    }
}

/// A quantity: hexadecimal with `0x`, leading zeros allowed, or decimal.
fn number(text: &str) -> Result<U256> {
    let parsed = match text.strip_prefix("0x") {
        Some("") => Ok(U256::ZERO),
        Some(digits) => U256::from_str_radix(digits, 16),
        None => U256::from_str_radix(text, 10),
    };
    parsed.map_err(|error| anyhow::anyhow!("{text:?}: {error}"))
}

fn small(text: &str) -> Result<u64> {
    number(text)?.try_into().with_context(|| format!("{text:?} does not fit into 64 bits"))
}

/// The hash of a block in a state test: that of its number, in decimal.
pub fn block_hash(number: u64) -> B256 {
    keccak256(number.to_string())
}

/// A hash in printed form.
pub fn shown(hash: &B256) -> String {
    hex::encode_prefixed(hash)
}
