//! The lane that a purse is for: pinned when the purse is made, so that no node can put other validators in their
//! place later.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, ensure};
use ledger::Ledger;
use payments::{AssetRule, HomeEpoch, LaneCommittee, LaneRules};
use primitives::{Amount, AssetId, Digest, PublicKey};
use serde_json::{Value, json};

use crate::decimal::{from_units, to_units};
use crate::wallet::server::{Server, text};

/// An asset of the lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneMoney {
    pub asset: AssetId,
    pub symbol: String,
    pub decimals: u8,
    pub rule: AssetRule,
}

impl LaneMoney {
    /// An amount for people.
    pub fn money(&self, units: Amount) -> String {
        format!("{} {}", from_units(units, self.decimals), self.symbol)
    }
}

/// What never changes of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneNetwork {
    /// What everything that is signed names.
    pub id: Digest,
    /// The keys of each member's shards.
    pub members: Vec<Vec<PublicKey>>,
    pub assets: Vec<LaneMoney>,
}

impl LaneNetwork {
    /// As a genesis file says, which somebody trusted has handed over.
    pub fn of_genesis(path: &Path) -> anyhow::Result<LaneNetwork> {
        let (genesis, _) = node::genesis_file::read_with_founding(path)?;
        let state = Ledger::new(&genesis)?;
        let lane = state.lane().with_context(|| format!("{}: this chain has no payment lane", path.display()))?;
        let money = |entry: &ledger::LaneAsset| {
            let listing = &genesis.assets[entry.asset.0 as usize];
            LaneMoney {
                asset: entry.asset,
                symbol: listing.symbol.clone(),
                decimals: listing.decimals,
                rule: AssetRule { least_units: entry.least_units, fee: entry.fee },
            }
        };
        let terms = lane.terms();
        let assets = terms.assets.iter().map(money).collect();
        Ok(LaneNetwork { id: lane.network(), members: terms.members.clone(), assets })
    }

    /// As a node says.
    pub fn of_server(server: &Server) -> anyhow::Result<LaneNetwork> {
        let lane = server.get("/v1/lane").context("the node's lane")?;
        let listed = server.assets()?;
        let money = |entry: &Value| {
            let known = listed.find(text(&entry["asset"]))?;
            let units = |name: &str| text(&entry[name]).parse::<Amount>().context("an amount of the lane");
            Ok(json!({
                "asset": known.asset.0,
                "symbol": known.symbol,
                "decimals": known.decimals,
                "least_units": units("least_units")?,
                "fee": units("fee")?,
            }))
        };
        let assets = lane["assets"].as_array().context("the node lists no assets of the lane")?;
        let assets = assets.iter().map(money).collect::<anyhow::Result<Vec<Value>>>()?;
        LaneNetwork::parse(&json!({"network": lane["network"], "members": lane["members"], "assets": assets}))
    }

    /// Reads what [`LaneNetwork::encode`] writes.
    pub fn parse(value: &Value) -> anyhow::Result<LaneNetwork> {
        let key = |key: &Value| text(key).parse::<PublicKey>().context("the key of a shard");
        let shards = |shards: &Value| shards.as_array().context("a member has shards")?.iter().map(key).collect();
        let money = |entry: &Value| {
            let number = |name: &str| entry[name].as_u64().with_context(|| format!("an asset has no {name}"));
            Ok(LaneMoney {
                asset: AssetId(u32::try_from(number("asset")?)?),
                symbol: entry["symbol"].as_str().context("an asset has no symbol")?.into(),
                decimals: u8::try_from(number("decimals")?)?,
                rule: AssetRule { least_units: number("least_units")?, fee: number("fee")? },
            })
        };
        let list = |name: &str| value[name].as_array().with_context(|| format!("the lane has no {name}"));
        let members: Vec<Vec<PublicKey>> = list("members")?.iter().map(shards).collect::<anyhow::Result<_>>()?;
        let sound = (1..=payments::VALIDATORS_MAX).contains(&members.len()) && members.iter().all(|of| !of.is_empty());
        ensure!(sound, "a lane has 1 to 256 members, each with a shard");
        Ok(LaneNetwork {
            id: text(&value["network"]).parse().context("the lane's network")?,
            members,
            assets: list("assets")?.iter().map(money).collect::<anyhow::Result<_>>()?,
        })
    }

    pub fn encode(&self) -> Value {
        let members: Vec<Vec<String>> =
            self.members.iter().map(|shards| shards.iter().map(ToString::to_string).collect()).collect();
        let money = |money: &LaneMoney| {
            json!({
                "asset": money.asset.0,
                "symbol": money.symbol,
                "decimals": money.decimals,
                "least_units": money.rule.least_units,
                "fee": money.rule.fee,
            })
        };
        let assets: Vec<Value> = self.assets.iter().map(money).collect();
        json!({"network": self.id.to_string(), "members": members, "assets": assets})
    }

    /// A short name of network and keys, for people to compare.
    pub fn fingerprint(&self) -> String {
        let mut bytes = self.id.0.to_vec();
        for shards in &self.members {
            bytes.extend((shards.len() as u32).to_le_bytes());
            shards.iter().for_each(|key| bytes.extend(key.0));
        }
        Digest::of("walras 2026 lane fingerprint v1", &bytes).to_string()[2..18].into()
    }

    pub fn committee(&self, epoch: HomeEpoch) -> LaneCommittee {
        LaneCommittee::new(self.id, epoch, self.members.clone())
    }

    pub fn rules(&self) -> LaneRules {
        let assets = self.assets.iter().map(|money| (money.asset, money.rule)).collect();
        LaneRules { network: self.id, assets, other: AssetRule { least_units: 1, fee: 0 } }
    }

    pub fn find(&self, symbol: &str) -> anyhow::Result<&LaneMoney> {
        let known = || self.assets.iter().map(|money| money.symbol.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.assets.iter().find(|money| money.symbol == symbol);
        found.with_context(|| format!("the lane carries no asset {symbol:?}; there are {}", known()))
    }

    pub fn units(&self, symbol: &str, amount: &str) -> anyhow::Result<(AssetId, Amount)> {
        let money = self.find(symbol)?;
        Ok((money.asset, to_units(amount, money.decimals)?))
    }

    pub fn symbol(&self, asset: AssetId) -> String {
        let found = self.assets.iter().find(|money| money.asset == asset);
        found.map_or_else(|| format!("asset {asset}"), |money| money.symbol.clone())
    }

    /// An amount for people.
    pub fn money(&self, asset: AssetId, units: Amount) -> String {
        let found = self.assets.iter().find(|money| money.asset == asset);
        found.map_or_else(|| format!("{units} units of asset {asset}"), |money| money.money(units))
    }
}

/// How the lane stands, as a node says.
#[derive(Clone, Debug)]
pub struct LaneNow {
    pub epoch: HomeEpoch,
    pub heights_left: u64,
    pub halted: bool,
    pub case_deposit: Amount,
    addresses: Vec<Vec<SocketAddr>>,
    home_ports: u64,
}

impl LaneNow {
    /// Asks a node, which must be of this network and know its members by the same keys.
    pub fn ask(server: &Server, network: &LaneNetwork) -> anyhow::Result<LaneNow> {
        let lane = server.get("/v1/lane").context("the node's lane")?;
        ensure!(
            text(&lane["network"]) == network.id.to_string() && lane["members"] == network.encode()["members"],
            "the node is of another lane than this purse, or names other keys: nothing was sent. Give another --server"
        );
        let address = |address: &Value| text(address).parse::<SocketAddr>().context("the address of a shard");
        let shards = |shards: &Value| shards.as_array().context("addresses of shards")?.iter().map(address).collect();
        let addresses = lane["addresses"].as_array().context("the node names no shards")?;
        let addresses: Vec<Vec<SocketAddr>> = addresses.iter().map(shards).collect::<anyhow::Result<_>>()?;
        let counts = network.members.iter().map(Vec::len);
        ensure!(
            addresses.iter().map(Vec::len).eq(counts),
            "the node does not know where the lane's shards are: give the --server of a member, or set [lane] addresses"
        );
        let number = |name: &str| lane[name].as_u64().with_context(|| format!("the node tells no {name}"));
        Ok(LaneNow {
            epoch: number("epoch")?,
            heights_left: number("heights_left")?,
            halted: lane["halted"] == true,
            case_deposit: text(&lane["case_deposit"]).parse().context("the deposit of a case")?,
            addresses,
            home_ports: number("home_ports")?.max(1),
        })
    }

    /// The shards of a home.
    pub fn directory(&self, network: &LaneNetwork, home: HomeEpoch) -> lane::LaneDirectory {
        let above = (home % self.home_ports) as u16;
        let at = |address: &SocketAddr| SocketAddr::new(address.ip(), address.port().saturating_add(above));
        let addresses = self.addresses.iter().map(|shards| shards.iter().map(at).collect()).collect();
        lane::LaneDirectory { committee: network.committee(home), addresses }
    }
}
