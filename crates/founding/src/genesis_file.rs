//! The genesis as a readable file: JSON, with symbols for assets and strings for amounts.
//!
//! The fee is given in decimals of the first asset, and may not be omitted: a chain without fees says `"fee": "0"`.
//! Supplies, stakes and minimum sizes are whole units.

use std::path::Path;

use ledger::{Genesis, GenesisError, Listing};
use primitives::{Address, Amount, AssetControl, AssetId, format_units, parse_units};
use serde::{Deserialize, Serialize};

use crate::asset_part::AssetPart;
use crate::charter_part::CharterPart;
use crate::fork_part::ForkPart;
use crate::founders::{Founding, Part};
use crate::lane_part::{self, LanePart};
use crate::limits_part::LimitsEntry;
use crate::listing_part::ListingPart;
use crate::pool_part::PoolPart;
use crate::seal_part::SealPart;
use crate::venue_part::{self, VenuePart};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rules: u32,
    chain: u64,
    /// In decimals of the first asset.
    fee: String,
    epsilon: String,
    mu: String,
    #[serde(default)]
    limits: LimitsEntry,
    assets: Vec<AssetPart>,
    balances: Vec<BalanceEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<LanePart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    venues: Option<VenuePart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pools: Option<PoolPart>,
    /// The committee's sealing key, where it makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seals: Option<SealPart>,
    /// How assets are listed after the genesis.
    #[serde(default, skip_serializing_if = "ListingPart::is_usual")]
    listings: ListingPart,
    /// How its rules change.
    #[serde(default, skip_serializing_if = "CharterPart::is_usual")]
    charter: CharterPart,
    /// Ethereum's forks by height; left out where Osaka stands from the genesis on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forks: Vec<ForkPart>,
    /// Whether it is a developers' chain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    developers: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    consensus: Option<Part>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BalanceEntry {
    account: String,
    asset: String,
    amount: String,
}

/// Errors in a genesis file.
#[derive(Debug, thiserror::Error)]
pub enum GenesisFileError {
    /// The file cannot be read or written.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// The file is not the expected JSON; line and column are named.
    #[error("{0}: {1}")]
    Json(String, serde_json::Error),
    /// A field cannot be parsed.
    #[error("{file}: {field}: {message}")]
    Field {
        /// The file.
        file: String,
        /// The field.
        field: String,
        /// Why.
        message: String,
    },
    /// Fields contradict each other.
    #[error("{0}: {1}")]
    Unsound(String, GenesisError),
}

/// Reads and checks a genesis file. The section about validators is checked and left out.
///
/// # Errors
/// As [`read_with_founding`].
pub fn read(path: &Path) -> Result<Genesis, GenesisFileError> {
    read_with_founding(path).map(|(genesis, _)| genesis)
}

/// Reads and checks a genesis file: the ledger's part, and the validators' part if there is one.
///
/// # Errors
/// [`GenesisFileError`] names file, line or field, and the reason.
pub fn read_with_founding(path: &Path) -> Result<(Genesis, Option<Founding>), GenesisFileError> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| GenesisFileError::Io(name.clone(), error))?;
    parse(&name, &text)
}

/// Reads and checks the text of a genesis file; errors call it `name`.
///
/// # Errors
/// As [`read_with_founding`].
pub fn parse(name: &str, text: &[u8]) -> Result<(Genesis, Option<Founding>), GenesisFileError> {
    let mut file: File = serde_json::from_slice(text).map_err(|error| GenesisFileError::Json(name.into(), error))?;
    let wrong = |(field, message)| GenesisFileError::Field { file: name.into(), field, message };
    let founding = file.consensus.take().map(Part::read).transpose().map_err(wrong)?;
    let genesis = file.into_genesis(name)?;
    if let Some(founding) = &founding {
        genesis.venues.iter().try_for_each(|terms| venue_part::check_network(terms, founding)).map_err(wrong)?;
        genesis.lane.iter().try_for_each(|_| lane_part::check_network(founding)).map_err(wrong)?;
    }
    let genesis = founding.iter().fold(genesis, |genesis, founding| founding.found(genesis));
    genesis.issued_assets().map_err(|error| GenesisFileError::Unsound(name.into(), error))?;
    Ok((genesis, founding))
}

/// Writes the genesis file of a chain with one node.
///
/// # Errors
/// [`GenesisFileError::Io`].
pub fn write(path: &Path, genesis: &Genesis) -> Result<(), GenesisFileError> {
    write_with_founding(path, genesis, None)
}

/// Writes a genesis file, including the validators if there are any.
///
/// # Errors
/// [`GenesisFileError::Io`].
pub fn write_with_founding(
    path: &Path,
    genesis: &Genesis,
    founding: Option<&Founding>,
) -> Result<(), GenesisFileError> {
    let file = File { consensus: founding.map(Founding::part), ..File::of(genesis) };
    let text = serde_json::to_string_pretty(&file).expect("plain data") + "\n";
    std::fs::write(path, text).map_err(|error| GenesisFileError::Io(path.display().to_string(), error))
}

impl File {
    fn of(genesis: &Genesis) -> File {
        let balance = |(account, asset, amount): &(Address, AssetId, Amount)| BalanceEntry {
            account: account.to_string(),
            asset: genesis.assets[asset.0 as usize].symbol.clone(),
            amount: amount.to_string(),
        };
        File {
            rules: genesis.rules,
            chain: genesis.chain,
            fee: format_units(genesis.fee, genesis.assets.first().map_or(0, |asset| asset.decimals)),
            epsilon: genesis.epsilon.to_string(),
            mu: genesis.mu.to_string(),
            limits: LimitsEntry::of(genesis.limits),
            assets: AssetPart::all_of(genesis),
            balances: genesis.balances.iter().map(balance).collect(),
            lane: genesis.lane.as_ref().map(|lane| LanePart::of(lane, &genesis.assets)),
            venues: genesis.venues.as_ref().map(VenuePart::of),
            pools: genesis.pools.as_ref().map(PoolPart::of),
            seals: genesis.seals.as_ref().map(SealPart::of),
            listings: ListingPart::of(&genesis.listings),
            charter: CharterPart::of(&genesis.charter),
            forks: ForkPart::all_of(&genesis.forks),
            developers: genesis.is_developers,
            consensus: None,
        }
    }

    fn into_genesis(self, file: &str) -> Result<Genesis, GenesisFileError> {
        fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
            file: &str,
            field: String,
            text: &str,
        ) -> Result<T, GenesisFileError> {
            let error =
                |error: T::Err| GenesisFileError::Field { file: file.into(), field, message: error.to_string() };
            text.parse().map_err(error)
        }
        let decimals = self.assets.first().map_or(0, |asset| asset.decimals);
        let fee = parse_units(&self.fee, decimals).map_err(|error| GenesisFileError::Field {
            file: file.into(),
            field: "fee".into(),
            message: error.to_string(),
        })?;
        let symbols: Vec<String> = self.assets.iter().map(|asset| asset.symbol.clone()).collect();
        let named = |(field, message)| GenesisFileError::Field { file: file.into(), field, message };
        let assets = self.assets.into_iter().enumerate().map(|(at, asset)| asset.read(at));
        let assets: Vec<(Listing, AssetControl)> = assets.collect::<Result<_, _>>().map_err(named)?;
        let numbered = (0..).map(AssetId).zip(&assets).map(|(number, (_, control))| (number, *control));
        let controls = numbered.filter(|(_, control)| control.freezes()).collect();
        let balances = self.balances.into_iter().enumerate().map(|(i, entry)| {
            let unknown = || GenesisFileError::Field {
                file: file.into(),
                field: format!("balances[{i}].asset"),
                message: format!("no asset {:?} is listed under assets", entry.asset),
            };
            let asset = symbols.iter().position(|symbol| *symbol == entry.asset).ok_or_else(unknown)?;
            let account = parse(file, format!("balances[{i}].account"), &entry.account)?;
            let amount = parse(file, format!("balances[{i}].amount"), &entry.amount)?;
            Ok((account, AssetId(asset as u32), amount))
        });
        let lane = self.lane.map(|lane| lane.read(&symbols)).transpose().map_err(named)?;
        let venues = self.venues.map(VenuePart::read).transpose().map_err(named)?;
        let pools = self.pools.map(PoolPart::read).transpose().map_err(named)?;
        let listings = self.listings.read().map_err(named)?;
        let charter = self.charter.read().map_err(named)?;
        let forks = ForkPart::read_all(&self.forks).map_err(named)?;
        Ok(Genesis {
            lane,
            venues,
            pools,
            seals: self.seals.map(SealPart::read).transpose().map_err(named)?,
            listings,
            controls,
            rules: self.rules,
            charter,
            chain: self.chain,
            fee,
            epsilon: parse(file, "epsilon".into(), &self.epsilon)?,
            mu: parse(file, "mu".into(), &self.mu)?,
            limits: self.limits.limits(),
            assets: assets.into_iter().map(|(listing, _)| listing).collect(),
            balances: balances.collect::<Result<_, GenesisFileError>>()?,
            membership: None,
            forks,
            is_developers: self.developers,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::founders::{Founder, FoundingEngine};
    use consensus::Rules;
    use ledger::{LaneAsset, LaneBls, LaneOutflow, LaneOutput, LaneTerms, Limits};
    use primitives::{Fraction, SecretKey};
    use std::time::Duration;

    fn genesis() -> Genesis {
        Genesis {
            rules: ledger::RULES_NEWEST,
            charter: ledger::CharterTerms::default(),
            chain: 31_337,
            fee: 3,
            epsilon: Fraction::power_of_two(15),
            mu: Fraction::power_of_two(10),
            limits: Limits {
                open_pairs: 77,
                block_gas: 80_000_000,
                sub_block_gas: 20_000_000,
                least_base_fee: 7,
                ..Limits::default()
            },
            assets: vec![Listing::new("USD", 2, Address([1; 20])), Listing::new("EUR", 2, Address([2; 20]))],
            balances: vec![(Address([3; 20]), AssetId(1), u64::MAX >> 1)],
            membership: None,
            lane: None,
            venues: None,
            pools: None,
            listings: ledger::ListingTerms { notice: 77, ..ledger::ListingTerms::priced() },
            controls: Vec::new(),
            seals: None,
            forks: ledger::ForkSchedule::default(),
            is_developers: false,
        }
    }

    #[test]
    fn files_round_trip_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let genesis = genesis();
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        let newest = format!("\"rules\": {}", ledger::RULES_NEWEST);
        for (from, to, expected) in [
            ("\"EUR\",\n      \"amount\"", "\"GBP\",\n      \"amount\"", "balances[0].asset"),
            ("\"2^-10\"", "\"2^-16\"", "mu"),
            ("9223372036854775807", "9223372036854775808", "9223372036854775807"),
            ("9223372036854775807", "many", "balances[0].amount"),
            ("\"least_units\": \"4096\"", "\"least_units\": \"2114\"", "asset 0 (USD): least_units 2114 is below 2115"),
            ("\"least_units\": \"4096\"", "\"least_units\": \"few\"", "assets[0].least_units"),
            ("\"fee\": \"0.03\"", "\"fee\": \"0.003\"", "fee: \"0.003\" is finer than the asset's 2 decimals"),
            ("  \"fee\": \"0.03\",\n", "", "missing field `fee`"),
            (
                "\"open_pairs\": 77",
                "\"open_pairs\": 33554433",
                "limits.resting_offers is 33554432, but limits.open_pairs needs 33554433",
            ),
            ("\"open_pairs\"", "\"open_pears\"", "open_pears"),
            ("\"block_gas\"", "\"block_gass\"", "block_gass"),
            (
                "\"block_gas\": 80000000",
                "\"block_gas\": 0",
                "limits.block_gas is 0, but sub_block_gas of a committee needs 20000000",
            ),
            (
                "\"sub_block_gas\": 20000000",
                "\"sub_block_gas\": 80000001",
                "limits.block_gas is 80000000, but sub_block_gas of a committee needs 80000001",
            ),
            (
                "\"least_base_fee\": 7",
                "\"least_base_fee\": 0",
                "limits.least_base_fee is 0, but limits.block_gas needs 1",
            ),
            ("\"chain\"", "\"chian\"", "line 3"),
            (&newest, "\"rules\": 1", "the chain follows rules 1, and this program rules 11 to"),
        ] {
            assert!(text.contains(from), "{from}");
            std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
            let message = read(&path).expect_err("refused").to_string();
            assert!(message.contains(expected) && message.contains("genesis.json"), "{message}");
        }
    }

    #[test]
    fn a_payment_lane_round_trips_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let key = |seed| SecretKey::from_seed([seed; 32]).public();
        let outflow = Some(LaneOutflow { most: 900, per_height: 80 });
        let asset = |number, outflow| LaneAsset { asset: AssetId(number), least_units: 7, fee: 2, outflow };
        let lane = LaneTerms {
            epoch_heights: 600,
            halt_heights: 50,
            case_deposit: 1_234,
            lapse_penalty: 10_000,
            members: vec![vec![key(1), key(2)], vec![key(3)]],
            registrars: Vec::new(),
            bls: LaneBls::None,
            accounts: Vec::new(),
            assets: vec![asset(0, None), asset(1, outflow)],
            outputs: vec![LaneOutput { to: key(4), asset: AssetId(1), amount: 55 }],
        };
        let mut genesis = Genesis { lane: Some(lane), ..genesis() };
        genesis.balances[0].2 -= 55;
        write(&path, &genesis).expect("written");
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        for (from, to, expected) in [
            ("\"epoch_heights\": 600", "\"epoch_heights\": 1", "lane: epoch_heights"),
            ("\"case_deposit\": \"1234\"", "\"case_deposit\": \"-1\"", "lane.case_deposit"),
            ("\"most\": \"900\"", "\"most\": \"0\"", "lane: an asset is not listed"),
            ("\"most\": \"900\"", "\"most\": \"much\"", "lane.assets[1].outflow.most"),
            ("\"amount\": \"55\"", "\"amount\": \"56\"", "9223372036854775807"),
            ("\"halt_heights\"", "\"halt_hights\"", "halt_hights"),
        ] {
            assert!(text.contains(from), "{from}");
            std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
            let message = read(&path).expect_err("refused").to_string();
            assert!(message.contains(expected) && message.contains("genesis.json"), "{message}");
        }
    }

    fn founding() -> Founding {
        let founder = |index: u8| Founder {
            key: SecretKey::from_seed([index; 32]).public(),
            address: format!("v{index}.example:9100"),
            account: Address([index; 20]),
            stake: 1_000,
        };
        Founding::new(FoundingEngine::Dbft, (0..4).map(founder).collect())
    }

    #[test]
    fn validators_round_trip_and_mistakes_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("genesis.json");
        let mut founding = founding();
        founding.rules = Rules {
            enough: Some(1),
            fast: true,
            window: 5,
            lag: 3,
            bench_after: 0,
            payload_bytes: 99_999,
            ..Rules::default()
        };
        founding.grace = Duration::from_millis(7);
        founding.succession.epoch_heights = 50;
        founding.succession.reward_pool = 12;
        founding.validators[3].account = founding.validators[3].key.address();
        let genesis = founding.found(genesis());
        write_with_founding(&path, &genesis, Some(&founding)).expect("written");
        assert_eq!(read_with_founding(&path).expect("sound"), (genesis.clone(), Some(founding.clone())));
        assert_eq!(read(&path).expect("sound"), genesis);
        let text = std::fs::read_to_string(&path).expect("there");
        for (from, to, expected) in [
            ("\"dbft\"", "\"pbft\"", "pbft"),
            ("v2.example:9100", "v2.example", "consensus.validators[2].address"),
            ("v0.example:9100", ":9100", "consensus.validators[0].address"),
            ("\"stake\": \"1000\"", "\"stake\": \"0\"", "consensus.validators[0].stake"),
            ("\"key\": \"0x", "\"key\": \"0xzz", "consensus.validators[0].key"),
            ("\"window\": 5", "\"window\": 0", "consensus.window: 0: choose from 1 to 64"),
            ("\"enough\": 1", "\"enough\": 5", "consensus.enough: 5: choose from 1 to 4"),
            ("\"grace_ms\": 7", "\"grace_ms\": 70000", "consensus.grace_ms"),
            ("\"sub_block_bytes\": 99999", "\"sub_block_bytes\": 9", "consensus.sub_block_bytes"),
            ("\"grace_ms\"", "\"grase_ms\"", "grase_ms"),
            ("\"committee\": 4", "\"committee\": 257", "consensus.committee: 257: choose from 1 to 256"),
            ("\"slash\": \"2^-4\"", "\"slash\": \"2\"", "consensus.slash"),
            ("\"reward_pool\": \"12\"", "\"reward_pool\": \"-1\"", "consensus.reward_pool"),
            ("\"minimum_stake\": \"250\"", "\"minimum_stake\": \"1001\"", "validator 0: its stake is below the least"),
            ("\"account\": \"0x01", "\"account\": \"0xzz", "consensus.validators[1].account"),
        ] {
            assert!(text.contains(from), "{from}");
            std::fs::write(&path, text.replacen(from, to, 1)).expect("written");
            let message = read(&path).expect_err("refused").to_string();
            assert!(message.contains(expected) && message.contains("genesis.json"), "{message}");
        }
        // Four sub-blocks of 64 MiB fit, 40 do not.
        let large = text.replacen("\"sub_block_bytes\": 99999", "\"sub_block_bytes\": 67108864", 1);
        std::fs::write(&path, &large).expect("written");
        read(&path).expect("sound");
        std::fs::write(&path, large.replacen("\"committee\": 4,", "\"committee\": 40,", 1)).expect("written");
        let message = read(&path).expect_err("refused").to_string();
        assert!(message.contains("a block may need 2684354560 bytes, and at most 2147483648 fit"), "{message}");
        let (first, second) = (founding.validators[0].key.to_string(), founding.validators[1].key.to_string());
        std::fs::write(&path, text.replace(&second, &first)).expect("written");
        assert!(read(&path).expect_err("refused").to_string().contains("consensus.validators[1].key"));
    }

    /// The identity of a network covers everything but addresses.
    #[test]
    fn the_identity_of_a_network_covers_everything_but_addresses() {
        let (genesis, founding) = (genesis(), founding());
        let digest = founding.digest(&genesis);
        let changes: [fn(&mut Genesis, &mut Founding); 30] = [
            |genesis, _| genesis.fee += 1,
            |genesis, _| genesis.limits.resting_offers += 1,
            |genesis, _| genesis.limits.open_pairs += 1,
            |genesis, _| genesis.limits.validators += 1,
            |genesis, _| genesis.limits.block_gas += 1,
            |genesis, _| genesis.limits.sub_block_gas += 1,
            |genesis, _| genesis.limits.least_base_fee += 1,
            |genesis, _| genesis.assets[1].least_units += 1,
            |genesis, _| genesis.rules += 1,
            |genesis, _| genesis.chain += 1,
            |genesis, _| genesis.balances[0].2 -= 1,
            |_, founding| founding.validators[1].stake += 1,
            |_, founding| founding.validators.swap(0, 1),
            |_, founding| drop(founding.validators.pop()),
            |_, founding| founding.rules.enough = Some(1),
            |_, founding| founding.rules.fast = true,
            |_, founding| founding.rules.window += 1,
            |_, founding| founding.rules.lag += 1,
            |_, founding| founding.rules.bench_after += 1,
            |_, founding| founding.rules.payload_bytes += 1,
            |_, founding| founding.unit *= 2,
            |_, founding| founding.grace *= 2,
            |_, founding| founding.validators[1].account = Address([9; 20]),
            |_, founding| founding.succession.epoch_heights += 1,
            |_, founding| founding.succession.committee += 1,
            |_, founding| founding.succession.minimum_stake += 1,
            |_, founding| founding.succession.unbonding_epochs += 1,
            |_, founding| founding.succession.reward += 1,
            |_, founding| founding.succession.reward_pool += 1,
            |_, founding| founding.succession.slash = Fraction::ZERO,
        ];
        for (number, change) in changes.iter().enumerate() {
            let (mut genesis, mut founding) = (genesis.clone(), founding.clone());
            change(&mut genesis, &mut founding);
            assert_ne!(founding.digest(&genesis), digest, "change {number}");
        }
        let mut moved = founding.clone();
        moved.validators[2].address = "elsewhere.example:9100".into();
        assert_eq!(moved.digest(&genesis), digest);
        assert_eq!(
            founding.digest(&founding.found(genesis.clone())),
            digest,
            "the digest does not depend on the genesis that contains it"
        );
        assert_eq!(moved.found(genesis.clone()), founding.found(genesis));
    }
}
