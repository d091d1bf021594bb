//! The configuration: one TOML file; the environment can override every key.

mod lane;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use doors::Http;
pub use lane::{ApartShard, LaneConfig, MemberShards};
use pit::VenueConfig;
use serde::{Deserialize, Serialize};

/// The operator's settings. Precedence: flag, then `WALRAS_SECTION__KEY`, then file, then default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The HTTP interface.
    pub http: Http,
    /// Ethereum's JSON-RPC.
    pub ethereum: EthereumConfig,
    /// The connections to other validators.
    pub network: NetworkConfig,
    /// How blocks are made.
    pub blocks: BlocksConfig,
    /// Pending transactions.
    pub mempool: MempoolConfig,
    /// The store.
    pub store: StoreConfig,
    /// The history of accounts.
    pub history: HistoryConfig,
    /// The payment lane.
    pub lane: LaneConfig,
    /// A venue of continuous markets.
    pub venue: VenueConfig,
}

/// Ethereum's JSON-RPC, on a chain with contracts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EthereumConfig {
    /// The address to listen on, by default loopback. TLS, tokens and limits are those of the HTTP interface.
    pub listen: SocketAddr,
}

impl Default for EthereumConfig {
    fn default() -> EthereumConfig {
        EthereumConfig { listen: SocketAddr::from(([127, 0, 0, 1], 8545)) }
    }
}

/// The connections to other validators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// The UDP address to listen on for the other validators.
    pub listen: SocketAddr,
    /// The socket of `walras signer`, if the signer holds the validator's key; relative to the home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<PathBuf>,
    /// Whether evidence against a validator is sent to the ledger, from the validator's own account.
    pub accuse: bool,
    /// A validator that is more heights behind than this fetches a state instead of blocks; 0 if only when the others
    /// no longer hold the blocks.
    pub state_behind: u64,
    /// The number of the next rules that this validator approves, as long as the program knows them; 0 to approve
    /// none, and to withdraw. Without it the account's owner approves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<u32>,
    /// For rehearsals: follows no rules above these, as an older program would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_rules: Option<u32>,
}

/// How blocks are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlocksConfig {
    /// Maximum number of transactions in a block; a block is made as soon as so many are pending.
    pub transactions: usize,
    /// A block is made when a transaction has been pending this long, and never sooner after the last one. Validators
    /// follow their genesis instead.
    pub interval_ms: u64,
    /// Threads that apply blocks; 0 for one per core.
    pub threads: usize,
    /// Whether signatures in other validators' sub-blocks are checked on arrival, during agreement.
    pub check_ahead: bool,
}

/// Pending transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MempoolConfig {
    /// Maximum number of pending transactions.
    pub transactions: usize,
}

/// The store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// The number of blocks between checkpoints, which are written in the background.
    pub checkpoint_blocks: u64,
    /// Minimum number of blocks kept, with their receipts, behind the newest checkpoint; 0 keeps all.
    pub keep_blocks: u64,
    /// Bytes to keep free on the disk: with less, the node accepts no transactions.
    pub free_bytes: u64,
    /// Number of transactions that can be found by their id.
    pub indexed_transactions: usize,
    /// Number of transactions whose blocks' bodies stay in memory, newest first; 0 keeps none.
    pub cached_bodies: usize,
    /// Number of transactions whose blocks' receipts stay in memory, newest first, ready to be proved; 0 keeps none.
    pub cached_receipts: usize,
    /// Number of blocks whose candles are rebuilt in the background when the node starts.
    pub candle_blocks: u64,
}

/// The history of accounts: their orders, fills, transfers and balances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryConfig {
    /// Whether the node keeps it.
    pub keep: bool,
    /// Minimum number of blocks whose rows are kept; 0 keeps all.
    pub keep_blocks: u64,
    /// The PostgreSQL that has it, as a URL or as words (`host=… dbname=…`), without a password; the data directory if
    /// there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<String>,
    /// The file of its password, which only its owner can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres_password_file: Option<PathBuf>,
    /// Certificates that may sign for it, PEM: one that is not on this machine is reached by TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres_ca: Option<PathBuf>,
    /// The schema of its tables: each node has its own.
    pub postgres_schema: String,
}

impl Default for HistoryConfig {
    fn default() -> HistoryConfig {
        HistoryConfig {
            keep: true,
            keep_blocks: 0,
            postgres: None,
            postgres_password_file: None,
            postgres_ca: None,
            postgres_schema: "walras".into(),
        }
    }
}

impl NetworkConfig {
    /// The newest rules that the node follows.
    pub(crate) fn newest_rules(&self) -> u32 {
        self.newest_rules.map_or(ledger::RULES_NEWEST, |newest| newest.min(ledger::RULES_NEWEST))
    }
}

impl Default for NetworkConfig {
    fn default() -> NetworkConfig {
        let listen = SocketAddr::from(([127, 0, 0, 1], 9100));
        NetworkConfig { listen, signer: None, accuse: true, state_behind: 10_000, approve: None, newest_rules: None }
    }
}

impl Default for BlocksConfig {
    fn default() -> BlocksConfig {
        BlocksConfig { transactions: 100_000, interval_ms: 500, threads: 0, check_ahead: true }
    }
}

impl Default for MempoolConfig {
    fn default() -> MempoolConfig {
        MempoolConfig { transactions: 500_000 }
    }
}

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig {
            checkpoint_blocks: 100,
            keep_blocks: 0,
            free_bytes: 256 << 20,
            indexed_transactions: 4_000_000,
            cached_bodies: 200_000,
            cached_receipts: 200_000,
            candle_blocks: 200_000,
        }
    }
}

/// Errors in a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// Not TOML, an unknown key, or a value of the wrong type.
    #[error("{place}: {message}")]
    Invalid {
        /// The file or the variable.
        place: String,
        /// The error, and what may have been meant.
        message: String,
    },
}

/// The commented file that `walras init` writes; it holds exactly the defaults.
pub const TEMPLATE: &str = include_str!("config.toml");

impl Config {
    /// The settings with every file that they name below a home, unless it is named from the root on.
    pub fn within(mut self, home: &Path) -> Config {
        let files = [
            &mut self.network.signer,
            &mut self.venue.edge_secret,
            &mut self.history.postgres_password_file,
            &mut self.history.postgres_ca,
        ];
        for path in files.into_iter().flatten().chain(self.http.files().into_iter().flatten()) {
            *path = home.join(&path);
        }
        self
    }

    /// Reads a file (defaults if there is none), then the variables that begin with `WALRAS_`.
    ///
    /// # Errors
    /// [`ConfigError`] names the file or variable, the key, and for an unknown key the nearest known one.
    pub fn load(path: Option<&Path>, variables: impl Iterator<Item = (String, String)>) -> Result<Config, ConfigError> {
        let mut table = toml::Table::new();
        if let Some(path) = path {
            let unreadable = |reason| ConfigError::Unreadable { path: path.into(), reason };
            let text = std::fs::read_to_string(path).map_err(unreadable)?;
            table = text.parse().map_err(|error: toml::de::Error| invalid(path.display(), error.to_string()))?;
            check_keys(&table, &path.display().to_string())?;
        }
        let mut variables: Vec<_> = variables.filter(|(name, _)| name.starts_with("WALRAS_")).collect();
        variables.sort();
        for (name, value) in variables {
            // Variables without a section, such as WALRAS_DATA, are not configuration keys.
            if let Some((section, key)) = name["WALRAS_".len()..].to_lowercase().split_once("__") {
                overlay(&mut table, &name, section, key, &value)?;
            }
        }
        let place = path.map_or("environment".into(), |path| path.display().to_string());
        table.try_into().map_err(|error: toml::de::Error| invalid(place, error.to_string()))
    }
}

fn invalid(place: impl std::fmt::Display, message: String) -> ConfigError {
    ConfigError::Invalid { place: place.to_string(), message: message.trim_end().to_string() }
}

/// The defaults as a table of all keys, including those that are unset by default.
fn known() -> toml::Table {
    let mut defaults = Config::default();
    defaults.http.probes = Some(defaults.http.listen);
    defaults.network.signer = Some(PathBuf::new());
    (defaults.network.approve, defaults.network.newest_rules) = (Some(0), Some(0));
    defaults.lane.bind = Some(std::net::IpAddr::from([0; 4]));
    let venue = &mut defaults.venue;
    (venue.edge_listen, venue.edge_secret) = (Some(venue.listen), Some(PathBuf::new()));
    venue.edge_clock_error_ns = Some(0);
    let history = &mut defaults.history;
    history.postgres = Some(String::new());
    (history.postgres_password_file, history.postgres_ca) = (Some(PathBuf::new()), Some(PathBuf::new()));
    for path in defaults.http.files() {
        *path = Some(PathBuf::new());
    }
    toml::Table::try_from(defaults).expect("the defaults are a table")
}

fn check_keys(table: &toml::Table, place: &str) -> Result<(), ConfigError> {
    let known = known();
    for (section, value) in table {
        let Some(keys) = known.get(section).and_then(toml::Value::as_table) else {
            return Err(invalid(place, unknown("section", section, known.keys())));
        };
        for key in value.as_table().into_iter().flat_map(toml::Table::keys) {
            if !keys.contains_key(key) {
                return Err(invalid(format!("{place}, [{section}]"), unknown("key", key, keys.keys())));
            }
        }
    }
    Ok(())
}

fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&String> = known.collect();
    let nearest = known.iter().max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)));
    match nearest {
        Some(nearest) if strsim::jaro_winkler(nearest, name) > 0.7 => {
            format!("unknown {kind} {name:?}; did you mean {nearest:?}?")
        }
        _ => {
            let names: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
            format!("unknown {kind} {name:?}; known are {}", names.join(", "))
        }
    }
}

fn overlay(table: &mut toml::Table, name: &str, section: &str, key: &str, text: &str) -> Result<(), ConfigError> {
    let known = known();
    let keys = known.get(section).and_then(toml::Value::as_table);
    let keys = keys.ok_or_else(|| invalid(name, unknown("section", section, known.keys())))?;
    let default = keys.get(key).ok_or_else(|| invalid(name, unknown("key", key, keys.keys())))?;
    let value = match default {
        toml::Value::Integer(_) => text.parse().map(toml::Value::Integer).ok(),
        toml::Value::Boolean(_) => text.parse().map(toml::Value::Boolean).ok(),
        toml::Value::Array(_) => {
            Some(text.split(',').filter(|part| !part.is_empty()).map(toml::Value::from).collect::<Vec<_>>().into())
        }
        _ => Some(toml::Value::from(text)),
    };
    let kind = if default.is_bool() { "true or false" } else { "a whole number" };
    let value = value.ok_or_else(|| invalid(name, format!("{text:?} is not {kind}")))?;
    let section = table.entry(section.to_string()).or_insert_with(|| toml::Table::new().into());
    section.as_table_mut().expect("checked").insert(key.to_string(), value);
    Ok(())
}

impl Config {
    /// What an operator should know before a node starts with these settings. `validators` is the number of those that
    /// decide blocks, if there are several.
    pub fn warnings(&self, validators: Option<usize>) -> Vec<String> {
        let instant = (self.blocks.interval_ms == 0).then(|| {
            "[blocks] interval_ms = 0 makes a block of every transaction as soon as it arrives: the node spends its \
             time on blocks and not on transactions; 500 is the default"
                .to_string()
        });
        instant.into_iter().chain(validators.and_then(tolerance_warning)).collect()
    }
}

/// A warning for a number of validators of which none may fail.
pub fn tolerance_warning(validators: usize) -> Option<String> {
    (2..=3).contains(&validators).then(|| {
        format!(
            "{validators} validators tolerate no failure: while one of them is down, nothing is decided. Four tolerate \
             one, seven tolerate two"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_surprise_are_warned_of() {
        let mut config = Config::default();
        assert_eq!(config.warnings(Some(4)), Vec::<String>::new());
        assert!(config.warnings(Some(3))[0].starts_with("3 validators tolerate no failure"));
        config.blocks.interval_ms = 0;
        assert!(config.warnings(None)[0].contains("interval_ms = 0"));
        assert_eq!(config.warnings(Some(2)).len(), 2);
    }

    fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("walras.toml");
        std::fs::write(&path, text).expect("writable");
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Config::load(Some(&path), variables).map_err(|error| error.to_string())
    }

    #[test]
    fn the_template_holds_the_defaults() {
        assert_eq!(load(TEMPLATE, &[]), Ok(Config::default()));
    }

    #[test]
    fn variables_win_over_the_file() {
        let config = load(
            "[blocks]\ninterval_ms = 7\ntransactions = 9\n",
            &[
                ("WALRAS_BLOCKS__INTERVAL_MS", "8"),
                ("WALRAS_HTTP__LISTEN", "127.0.0.1:0"),
                ("WALRAS_NETWORK__ACCUSE", "false"),
                ("WALRAS_DATA", "x"),
            ],
        )
        .expect("sound");
        assert!(!config.network.accuse);
        assert_eq!((config.blocks.interval_ms, config.blocks.transactions), (8, 9));
        assert_eq!(config.http.listen.port(), 0);
    }

    /// What the template only shows, since it is unset by default, is a key that a file may set.
    #[test]
    fn settings_that_the_template_leaves_out_can_be_set() {
        let is_setting = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
        let (mut section, mut shown) = (String::new(), 0);
        for line in TEMPLATE.lines() {
            if line.starts_with('[') {
                section = line.into();
            }
            let Some(setting) = line.strip_prefix("# ").filter(is_setting) else { continue };
            let table = format!("{section}\n{setting}\n").parse().expect("TOML");
            check_keys(&table, "the template").expect(setting);
            shown += 1;
        }
        assert!(shown >= 3, "{shown} settings");
    }

    /// What the template shows as a file's name is one below the home.
    #[test]
    fn files_are_named_from_the_home_on() {
        let (home, mut section, mut shown) = (Path::new("/a home"), String::new(), 0);
        for line in TEMPLATE.lines() {
            if line.starts_with('[') {
                section = line.into();
            }
            let Some((key, name)) = line.strip_prefix("# ").and_then(|line| line.split_once(" = ")) else { continue };
            let name = name.trim_matches('"');
            if key.contains(' ') || name.contains(|sign: char| !sign.is_ascii_lowercase() && !"-.".contains(sign)) {
                continue;
            }
            let text = format!("{section}\n{key} = \"{name}\"\n");
            let within = load(&text, &[]).expect("sound").within(home);
            let table = toml::Table::try_from(within).expect("a table");
            let found = table[section.trim_matches(['[', ']'])][key].as_str().expect("a text");
            assert_eq!(Path::new(found), home.join(name), "{text}");
            shown += 1;
        }
        assert!(shown >= 6, "{shown} files");
    }

    #[test]
    fn mistakes_are_named_with_their_remedy() {
        let text = |text, variables: &[(&str, &str)]| load(text, variables).expect_err("refused");
        assert!(text("[blocks]\nintervall_ms = 7\n", &[]).contains("did you mean \"interval_ms\"?"));
        assert!(text("[block]\n", &[]).contains("did you mean \"blocks\"?"));
        assert!(text("[zzz]\n", &[]).contains("known are"));
        assert!(text("[blocks]\ninterval_ms = \"soon\"\n", &[]).contains("interval_ms"));
        assert!(text("[blocks\n", &[]).contains("walras.toml"));
        assert!(text("", &[("WALRAS_BLOCKS__INTERVAL_MS", "soon")]).contains("WALRAS_BLOCKS__INTERVAL_MS"));
        assert!(text("", &[("WALRAS_NETWORK__ACCUSE", "no")]).contains("\"no\" is not true or false"));
        assert!(text("", &[("WALRAS_BLOCKS__CHECK_AHEAD", "perhaps")]).contains("true or false"));
        assert!(text("", &[("WALRAS_HTP__LISTEN", "x")]).contains("did you mean \"http\"?"));
    }
}
